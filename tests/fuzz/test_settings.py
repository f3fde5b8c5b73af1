"""Settings and TinyJit: whatever is set between two calls, a jit gives what the plain function gives then.

A setting is anything besides its arguments and the user's state that changes what a call means: default
dtypes and device, the modes of a thread, every flag. A program sets some of them anew before each call.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazygrad import Tensor, TinyJit, autocast, dtypes, enable_grad, no_grad
from lazygrad.config import Context, ContextVar
from lazygrad.device import Device
from tests.fuzz.harness import fuzzed

X, WHOLE = np.array([1.0, -2.0, 4.0], np.float32), np.array([0, 2, 3], np.int32)


@contextlib.contextmanager
def default_dtype(name: str, kind: str) -> Iterator[None]:
    before = getattr(dtypes, f"default_{kind}")
    setattr(dtypes, f"default_{kind}", getattr(dtypes, name))
    try:
        yield
    finally:
        setattr(dtypes, f"default_{kind}", before)


@contextlib.contextmanager
def default_device(name: str) -> Iterator[None]:
    before = Device.DEFAULT
    Device.DEFAULT = name
    try:
        yield
    finally:
        Device.DEFAULT = before


#: Setting → what it may be set to.
MODES: dict[str, list[Callable[[], Any]]] = {
    "float": [lambda name=name: default_dtype(name, "float") for name in ("float16", "float32", "float64")],
    "int": [lambda name=name: default_dtype(name, "int") for name in ("int32", "int64", "int16")],
    "device": [lambda name=name: default_device(name) for name in ("CPU", "PYTHON")],
    "grad": [no_grad, enable_grad],
    "training": [Tensor.train, Tensor.test],
    "autocast": [
        lambda: autocast("bfloat16"),
        lambda: autocast("float16"),
        lambda: autocast(enabled=False),
    ],
}
#: Flag → values besides its default. With them the same call is captured anew.
GRAPHS: dict[str, list[int | str]] = {
    "NOOPT": [1], "FUSE": [0], "CHECK_INDEX": [0], "MEMORY_BUDGET": ["1MB"], "FFT": [0], "SCAN": [0],
    "TF32": [1], "POISON": [1], "CHECK": ["nan"], "BEAM": [1], "BEAM_KEEPS_ORDER": [1], "OPTS": ["random:63"],
    "DEV": ["PYTHON"], "PLAN_FOR": ["cl"],
}  # fmt: skip
#: Flags with which a call means the same and runs the same capture.
SAME: dict[str, list[int | str]] = {"THREADS": [1, 3], "JIT": [2], "TRACEMETA": [0], "CACHELEVEL": [1]}
#: Flags that say where things are, what is printed and how long is waited; JIT_NESTED is asked in a capture.
SILENT = """
    DEBUG DEBUG_STYLE VIZ VIZ_SAVE GRAPH TRACEBACK NO_COLOR CACHEDB CC CPU_TARGET BEAM_TIMEOUT_SEC JIT_NESTED
"""

SETTINGS = {
    **MODES,
    **{
        name: [lambda name=name, value=value: Context(**{name: value}) for value in values]
        for name, values in (GRAPHS | SAME).items()
        if name not in ("BEAM", "PLAN_FOR", "CHECK")  # as slow as they are
    },
}

PROGRAMS: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "new tensors": lambda x, i: (
        Tensor([1.5]) * 2,
        Tensor([3]) + 1,
        Tensor.ones(2) * 2,
        Tensor.arange(3) + 1,
    ),
    "numbers": lambda x, i: (i * 1.5, i.sum(), i / 2, (i > 0).where(2, 3.5) + x),
    "means": lambda x, i: (i.mean(), x.std(), i.cast("float16").softmax(), i.argmax()),
    "products": lambda x, i: (x.unsqueeze(1) @ x.unsqueeze(0), x.linear(x.reshape(3, 1))),
    "random": lambda x, i: (Tensor.rand(3) + 1, x.dropout(0.5) + 1, Tensor.randint(3, high=5) * 2),
    "slopes": lambda x, i: (x * x).sum().gradient(x)[0] * 2,
    "indices": lambda x, i: (x[i.minimum(2)], x[i] + 1),
    "transforms": lambda x, i: x.repeat(8).rfft(),
    "loops": lambda x, i: Tensor.scan(lambda state, each: (state * 0.5 + each, state), x[0], x)[1],
}


def outcome(function: Callable[..., Any], x: Tensor, i: Tensor) -> list[Any]:
    """The numbers that a call gives, with dtypes and devices, or what it raises."""
    Tensor.manual_seed(7)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # what changes too often runs without captures
            made = function(x, i)
            return [
                (t.dtype, t.device, t.cast("float32").numpy())
                for t in (made if type(made) is tuple else (made,))
            ]
    except Exception as error:
        return [type(error)]


def compare(found: list[Any], wanted: list[Any], where: str) -> None:
    assert len(found) == len(wanted), f"{where}: {found}, not {wanted}"
    for ours, theirs in zip(found, wanted, strict=True):
        if isinstance(theirs, type):
            assert ours is theirs, where
            continue
        assert ours[:2] == theirs[:2], where
        np.testing.assert_allclose(ours[2], theirs[2], rtol=1e-2, atol=1e-2, err_msg=where)


STEPS = st.lists(
    st.dictionaries(st.sampled_from(sorted(SETTINGS)), st.integers(0, 2), max_size=2), min_size=3, max_size=7
)


@fuzzed(quick=6, sweep=1200, share=150)
@given(st.sampled_from(sorted(PROGRAMS)), STEPS)
def test_no_setting_is_stale(name: str, steps: list[dict[str, int]]) -> None:
    function = PROGRAMS[name]
    jitted = TinyJit(lambda x, i: function(x, i))
    inside = name != "indices"
    x, i = Tensor(X).requires_grad_().realize(), Tensor(WHOLE.clip(0, 2) if inside else WHOLE).realize()
    for step in [{}, {}, {}, *steps, {}]:
        with contextlib.ExitStack() as stack:
            for setting, choice in step.items():
                choices = SETTINGS[setting]
                stack.enter_context(choices[choice % len(choices)]())
            compare(outcome(jitted, x, i), outcome(function, x, i), f"{name} with {step} of {steps}")


@pytest.mark.parametrize("setting", sorted(SETTINGS))
def test_each_setting(setting: str) -> None:
    """One after another, with the program that it changes most."""
    name = {"products": "products", "autocast": "products", "training": "random", "grad": "slopes"}.get(
        setting, {"CHECK_INDEX": "indices", "FFT": "transforms", "SCAN": "loops"}.get(setting, "new tensors")
    )
    function = PROGRAMS[name]
    jitted = TinyJit(lambda x, i: function(x, i))
    x, i = Tensor(X).requires_grad_().realize(), Tensor(WHOLE).realize()
    for step in [None, None, None, *SETTINGS[setting], None]:
        with step() if step is not None else contextlib.nullcontext():
            compare(outcome(jitted, x, i), outcome(function, x, i), setting)


def test_every_flag_is_a_setting_or_says_nothing_of_results() -> None:
    flags = {flag.name for flag in ContextVar.all.values() if type(flag).__module__.startswith("lazygrad")}
    assert {*GRAPHS, *SAME, *SILENT.split()} == flags
    assert {flag.name for flag in (*ContextVar.of_code, *ContextVar.of_graphs)} == set(GRAPHS)


@pytest.mark.parametrize(
    "name", [name for name in sorted({*GRAPHS, *SAME}) if name not in ("BEAM", "PLAN_FOR")]
)
def test_a_flag_that_changes_graphs_is_captured_anew(name: str) -> None:
    jitted = TinyJit(lambda x: x * 2 + 1)
    x = Tensor(X).realize()
    for _ in range(3):
        jitted(x)
    with Context(**{name: (GRAPHS | SAME)[name][0]}):
        assert jitted(x).tolist() == [3.0, -3.0, 9.0]
    assert len(jitted.captures) == (2 if name in GRAPHS else 1)

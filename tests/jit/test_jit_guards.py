"""What a captured function reads besides tensors: a change is noticed. Each trap as a user meets it."""

from __future__ import annotations

import dataclasses
import decimal
import functools
import gc
import math
import time
import types
import warnings

import numpy as np
import pytest

from lazygrad import Context, JitError, Tensor, TinyJit, dtypes
from lazygrad.jit.bytecode import is_user_code, reads_of
from tests.jit.jit_support import captures, numbers, runs

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")


# ---- Python arguments ----


def test_a_python_argument_is_no_constant():
    f = TinyJit(lambda x, n: x * n)
    for call, n in enumerate([1, 1, 2, 2, 1, 2, 3, 3, 1]):
        assert f(Tensor([float(call)]), n).item() == call * n


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (1, 2),
        (1, 1.0),
        (1, True),
        (0.0, -0.0),
        (2.0, math.nan),
        ("add", "mul"),
        ((1, 2), (1, 3)),
        ({"a": 1}, {"a": 2}),
        (0j, complex(0.0, -0.0)),
        ({0.0}, {-0.0}),
        (frozenset([1]), frozenset([1.0])),
        ({1: "a"}, {True: "a"}),
        ({0.0: "a"}, {-0.0: "a"}),
        ({(1,): "a"}, {(1.0,): "a"}),
        (dict.fromkeys(range(99), 1), dict.fromkeys([0.0, *range(1, 99)], 1)),
        ([0j] * 99, [complex(0.0, -0.0)] * 99),
        (set(range(99)), {0.0, *range(1, 99)}),
        (range(1), range(0, 1, 2)),
        (slice(0, 1), slice(0, 1.0)),
        (decimal.Decimal("1"), decimal.Decimal("1.0")),
        (np.float64(1.0), np.array(1.0)),
    ],
)
def test_arguments_of_every_kind_are_compared(first, second, capsys):
    @TinyJit
    def f(x, option):
        print("ran")
        return x + 1

    x = numbers(2)
    for option in (first, first, first, second, second, first, second):
        f(x, option)
    assert runs(capsys) == 3


@pytest.mark.parametrize(
    ("kind", "first", "second"), [(float, 2.0, 3.0), (float, 0.0, -0.0), (int, 2, 3), (str, "a", "b")]
)
def test_a_number_of_a_class_of_ones_own_is_compared(kind, first, second):
    """It may have attributes, and methods that say otherwise, but is a number all the same."""
    own = type("Own", (kind,), {"__eq__": lambda self, other: True, "__hash__": kind.__hash__})
    f = TinyJit(lambda x, option: x / float(ord(option) if kind is str else option))
    for option in (first, first, first, second, second, first, second):
        expected = (
            math.copysign(math.inf, option) if not option else 1 / (ord(option) if kind is str else option)
        )
        assert f(Tensor([1.0]), own(option)).item() == pytest.approx(expected)


def test_items_of_a_set_come_in_an_order():
    """0 and 8 have one place in a small set: the first that came is the first."""
    f = TinyJit(lambda x, options: x + next(iter(options)))
    assert [f(Tensor([0.0]), options).item() for options in [{8, 0}] * 3 + [{0, 8}] * 3] == [8, 8, 8, 0, 0, 0]


def test_a_frozen_object_that_is_replaced_by_an_equal_one():
    @dataclasses.dataclass(frozen=True)
    class Options:
        scale: float

    options = Options(1)
    f = TinyJit(lambda x: x * options.scale)
    x, found = Tensor([3]).realize(), []
    for options in [Options(1)] * 3 + [Options(1.0)] * 3 + [Options(1)]:  # noqa: B007  the closure's
        found.append(f(x).dtype)
    assert found == [dtypes.int] * 3 + [dtypes.float] * 3 + [dtypes.int]


def test_nan_equals_itself(capsys):
    f = TinyJit(lambda x, n: (print("ran"), x + n)[1])
    for _ in range(5):
        f(numbers(2), float("nan"))
    assert runs(capsys) == 2


def test_a_list_argument_of_numbers():
    f = TinyJit(lambda x, axes: x.sum(axes[0]) if len(axes) == 1 else x.sum())
    x = numbers(2, 3)
    for axes in ([0], [0], [0], [1], [0, 1], [0]):
        expected = x.numpy().sum(tuple(axes)) if len(axes) == 1 else x.numpy().sum()
        np.testing.assert_allclose(f(x, axes).numpy(), expected, rtol=1e-5)


def test_flags_of_a_dataclass_argument():
    @dataclasses.dataclass
    class Options:
        scale: float
        names: list[str]

    f = TinyJit(lambda x, options: x * options.scale + len(options.names))
    options = Options(2.0, [])
    for call in range(8):
        if call == 4:
            options.scale = 3.0
        if call == 6:
            options.names.append("a")
        assert f(Tensor([1.0]), options).item() == options.scale + len(options.names)


def test_after_three_captures_a_changing_number_runs_uncaptured_and_warns_once():
    f = TinyJit(lambda x, step: x + step)
    x = Tensor([1.0]).realize()
    for step in range(5):
        assert f(x, step).item() == 1.0 + step
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for step in range(5, 12):
            assert f(x, step).item() == 1.0 + step
    assert len(found) == 1
    assert "without its captures where argument `step` differs" in str(found[0].message)
    assert found[0].filename == __file__
    for step in (1, 2, 3):
        assert f(x, step).item() == 1.0 + step, "what was captured still replays"


def test_the_reason_is_printed(capsys):
    f = TinyJit(lambda x, n: x * n)
    x = numbers(2)
    for n in (1, 1, 1):
        f(x, n)
    capsys.readouterr()
    with Context(DEBUG=1):
        f(x, 2)
    assert "JIT captures test_the_reason_is_printed.<locals>.<lambda> again: argument `n` was 1, now 2" in (
        capsys.readouterr().out
    )


def test_another_form_of_the_call():
    f = TinyJit(lambda x, y=None: x + 1 if y is None else x + y)
    x, y = numbers(2), numbers(2, seed=1)
    for _ in range(3):
        np.testing.assert_array_equal(f(x).numpy(), x.numpy() + 1)
    for _ in range(3):
        np.testing.assert_array_equal(f(x, y).numpy(), x.numpy() + y.numpy())
        np.testing.assert_array_equal(f(x, y=y).numpy(), x.numpy() + y.numpy())
        np.testing.assert_array_equal(f(x).numpy(), x.numpy() + 1)


# ---- closures and globals ----


def test_a_number_of_the_closure():
    scale = 1.0
    f = TinyJit(lambda x: x * scale)
    for call in range(9):
        if call % 3 == 0:
            scale = call + 1.0
        assert f(Tensor([2.0])).item() == 2.0 * scale


@pytest.mark.parametrize(
    "held", [lambda f: f, functools.partial, lambda f: types.MethodType(lambda self, x: self(x), f)]
)
def test_a_number_of_the_closure_of_a_function_that_no_name_leads_to(held):
    """Of a large table so many functions are looked at; that one is found when it runs."""
    factor = 1.0

    def scaled(x):
        return x * factor

    table = dict.fromkeys(range(2000), helper)
    table[1999] = held(scaled)

    @TinyJit
    def f(x):
        chosen = table[1999]
        return chosen(x)

    for call in range(9):
        if call % 3 == 0:
            factor = call + 1.0
        assert f(Tensor([2.0])).item() == 2.0 * factor


def test_a_list_of_the_closure():
    layers = [2.0]

    @TinyJit
    def f(x):
        for scale in layers:
            x = x * scale
        return x

    for call in range(8):
        if call in (3, 6):
            layers.append(3.0)
        assert f(Tensor([1.0])).item() == 2.0 * 3.0 ** (len(layers) - 1)


def test_a_dict_of_the_closure():
    config = {"scale": 1.0}
    f = TinyJit(lambda x: x * config["scale"])
    for call in range(6):
        config["scale"] = 1.0 + call // 3
        assert f(Tensor([2.0])).item() == 2.0 * config["scale"]


GLOBAL = 1.0
SETTINGS = types.SimpleNamespace(scale=1.0)


def test_a_global(monkeypatch):
    f = TinyJit(lambda x: x * GLOBAL)
    for value in (1.0, 1.0, 1.0, 5.0, 5.0, 1.0):
        monkeypatch.setitem(globals(), "GLOBAL", value)
        assert f(Tensor([2.0])).item() == 2.0 * value


def helper(x):
    return x * GLOBAL + helper_of_helper(x)


def helper_of_helper(x):
    return x + SETTINGS.scale


def test_globals_of_functions_that_run_inside(monkeypatch):
    f = TinyJit(lambda x: helper(x))
    for one, two in ((1.0, 1.0), (1.0, 1.0), (1.0, 1.0), (5.0, 1.0), (5.0, 7.0), (5.0, 7.0)):
        monkeypatch.setitem(globals(), "GLOBAL", one)
        monkeypatch.setattr(SETTINGS, "scale", two)
        assert f(Tensor([2.0])).item() == 2.0 * one + 2.0 + two


def test_a_function_that_is_replaced(monkeypatch):
    f = TinyJit(lambda x: helper_of_helper(x))
    for _ in range(3):
        assert f(Tensor([2.0])).item() == 3.0
    monkeypatch.setitem(globals(), "helper_of_helper", lambda x: x * 10)
    for _ in range(3):
        assert f(Tensor([2.0])).item() == 20.0


def decorated(fxn):
    factor = [3.0]

    @functools.wraps(fxn)
    def inside(x):
        return fxn(x) * factor[0]

    inside.factor = factor
    return inside


def test_the_closure_of_a_decorator():
    @decorated
    def triple(x):
        return x + 1

    f = TinyJit(triple)
    for call in range(6):
        triple.factor[0] = 3.0 + call // 3
        assert f(Tensor([1.0])).item() == 2.0 * triple.factor[0]


def test_a_decorator_of_the_library():
    scale = [2.0]

    @TinyJit
    @Tensor.train()
    def f(x):
        return x * scale[0] * (2 if Tensor.training else 1)

    for call in range(8):
        scale[0] = 2.0 + call // 3
        assert f(Tensor([1.0])).item() == 2 * scale[0]


def test_a_loop_variable_of_a_function_made_inside():
    """The cells of a function that is made in the call are no state from outside."""

    def f(x):
        total = x
        for n in range(3):
            scale = (lambda n=n: n + 1.0)()
            total = total + (lambda s=scale: x * s)()
            total = (lambda: total * n)() if n == 2 else total
        return total

    jitted = TinyJit(f)
    for call in range(5):
        assert jitted(Tensor([float(call)])).item() == f(Tensor([float(call)])).item()
    assert captures(jitted) == 1


class Builder:
    """An object that the function makes and changes."""

    def __init__(self):
        self.count = 0

    def add(self, x):
        self.count += 1
        return x + self.count


def test_objects_made_inside_are_no_state():
    @TinyJit
    def f(x):
        builder = Builder()
        return builder.add(builder.add(x))

    for call in range(6):
        assert f(Tensor([float(call)])).item() == call + 3.0
    assert captures(f) == 1


def test_a_partial():
    f = TinyJit(functools.partial(lambda scale, x: x * scale, 3.0))
    for call in range(4):
        assert f(Tensor([float(call)])).item() == 3.0 * call


def test_a_callable_object():
    class Scale:
        def __init__(self):
            self.by = 2.0

        def __call__(self, x):
            return x * self.by

    scale = Scale()
    f = TinyJit(scale)
    for call in range(7):
        scale.by = 2.0 + call // 3
        assert f(Tensor([1.0])).item() == scale.by


# ---- attributes ----


class Config:
    def __init__(self):
        self.rate, self.mode = 0.5, "double"


class Slots:
    __slots__ = ("scale",)

    def __init__(self):
        self.scale = 1.0


class Step:
    power = 1  # an attribute of the class

    def __init__(self):
        self.config, self.slots, self.count = Config(), Slots(), 0
        self.run = TinyJit(self.forward)

    @property
    def rate(self):
        return self.config.rate

    def forward(self, x):
        x = x * self.rate * self.slots.scale
        if self.config.mode == "double":
            x = x * 2
        return x**self.power


def test_attribute_chains():
    step = Step()
    x = Tensor([3.0]).realize()
    for change in (
        lambda: None,
        lambda: setattr(step.config, "rate", 1.5),
        lambda: setattr(step.config, "mode", "single"),
        lambda: setattr(step.slots, "scale", 4.0),
        lambda: setattr(step, "power", 2),
        lambda: setattr(step, "config", Config()),
    ):
        change()
        for _ in range(3):
            assert step.run(x).item() == step.forward(x).item()


def test_an_attribute_of_the_class(monkeypatch):
    step = Step()
    x = Tensor([3.0]).realize()
    for _ in range(3):
        assert step.run(x).item() == 3.0
    monkeypatch.setattr(Step, "power", 3)
    for _ in range(3):
        assert step.run(x).item() == 27.0


def test_attributes_that_nobody_reads_may_change():
    step = Step()
    x = Tensor([3.0]).realize()
    for call in range(6):
        step.count = call
        step.config.note = call
        step.run(x)
    assert captures(step.run) == 1


def test_a_counter_inside_goes_on():
    """Python inside does not run in a replay; a counter that the function reads makes it run."""

    class Counter:
        def __init__(self):
            self.steps = 0

        def __call__(self, x):
            self.steps += 1
            return x + self.steps

    counter = Counter()
    f = TinyJit(counter)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for call in range(9):
            assert f(Tensor([0.0])).item() == call + 1.0
    assert counter.steps == 9
    assert "`self.steps` differs" in str(found[0].message)


def test_what_the_function_keeps_of_a_call_is_kept():
    class Model:
        def __init__(self):
            self.last = None

        def __call__(self, x):
            self.last = x * 2
            return self.last + 1

    model = Model()
    f = TinyJit(model)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for call in range(9):
            assert f(Tensor([float(call)])).item() == 2.0 * call + 1
            assert model.last.item() == 2.0 * call
    assert "`self.last` differs" in str(found[0].message)


# ---- what bytecode says ----


def test_chains():
    scale = 1

    def f(self, x):
        self.a.b += x
        self.c = GLOBAL
        return [self.d * n * scale for n in range(3)] + math.pi

    found = {f"{c.kind}:{'.'.join((c.root, *c.attributes))}" for c in reads_of(f.__code__).chains}
    assert {"param:self.a.b", "param:self.c", "param:self.d", "global:GLOBAL", "free:scale"} <= found


def test_whose_code_is_looked_at():
    assert is_user_code(helper.__code__)
    assert not is_user_code(Tensor.rand.__func__.__code__)
    assert not is_user_code(functools.wraps.__code__)
    assert not is_user_code(
        np.zeros_like.__wrapped__.__code__ if hasattr(np.zeros_like, "__wrapped__") else np.rot90.__code__
    )


def test_dtypes_are_compared():
    f = TinyJit(lambda x, dtype: x.cast(dtype) + 1)
    for dtype in (dtypes.int, dtypes.int, dtypes.int, dtypes.half, dtypes.int):
        assert f(Tensor([1.5]), dtype).dtype is dtype


def test_errors_name_the_jit():
    f = TinyJit(helper)
    assert repr(f) == "<TinyJit of helper>"
    g = TinyJit(lambda x: x.sum().item())
    g(numbers(2))
    with pytest.raises(JitError, match="<TinyJit of"):
        g(numbers(2))


def test_what_the_garbage_collector_calls_is_no_part_of_the_function():
    space = {"count": 0, "time": time}
    exec("def called(phase, info):\n    global count\n    count += 1\n    time.perf_counter()", space)
    gc.callbacks.append(space["called"])
    try:

        @TinyJit
        def f(x):
            gc.collect()
            return (x + 1).realize()

        x = Tensor([1.0]).realize()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for _ in range(8):
                assert f(x).tolist() == [2.0]
    finally:
        gc.callbacks.remove(space["called"])
    assert space["count"] > 0


def test_a_clock_is_seen_after_something_was_computed():
    """Planning and running are not watched; what the function calls after them is."""

    @TinyJit
    def step(x):
        y = (x + 1).realize()
        return (y * time.perf_counter()).realize()

    step(Tensor([1.0]))
    with pytest.raises(JitError, match="perf_counter"):
        step(Tensor([2.0]))

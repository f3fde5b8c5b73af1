"""TinyJit: errors and what is left after them, jits in jits, methods, copies and pickles."""

from __future__ import annotations

import copy
import gc
import pickle

import numpy as np
import pytest

from lazygrad import Context, JitError, Tensor, TinyJit
from lazygrad.device import GlobalCounters
from tests.jit.jit_support import numbers

# ---- errors and states ----


def test_nothing_to_capture():
    f = TinyJit(lambda x: x)
    x = numbers(3)
    f(x)
    with pytest.raises(JitError, match=r"didn't JIT anything!"):
        f(x)


@pytest.mark.parametrize(
    ("read", "said"),
    [
        (lambda t: t.item(), r"\.item\(\)"),
        (lambda t: t.reshape(1, 1).numpy(), r"\.numpy\(\)"),
        (lambda t: t.tolist(), r"\.tolist\(\)"),
        (float, r"float\(\)"),
        (bool, r"if/bool\(\)"),
        (lambda t: f"{t:.2f}", "formatting it"),
        (np.asarray, "numpy"),
    ],
)
def test_reading_a_value_inside_is_refused_with_the_line(read, said):
    @TinyJit
    def f(x):
        total = x.sum()
        read(total)  # the line
        return total

    f(numbers(3))
    message = (
        rf"test_jit_methods\.py:\d+: {said} reads a tensor's value while <TinyJit of .*return the tensor"
    )
    for _ in range(2):
        with pytest.raises(JitError, match=message):
            f(numbers(3))


def test_reading_outside_and_in_call_one_is_fine():
    f = TinyJit(lambda x: x.sum())
    for call in range(4):
        assert f(Tensor([1.0, float(call)])).item() == 1.0 + call


def test_an_exception_in_a_capture_leaves_it_usable():

    @TinyJit
    def f(x, fails=False):
        y = (x + 1).realize()
        if fails:
            raise KeyError("mine")
        return y * 2

    assert f(Tensor([1.0])).item() == 4.0
    with pytest.raises(KeyError, match="mine"):
        f(Tensor([1.0]), True)
    for call in range(5):
        assert f(Tensor([float(call)])).item() == 2.0 * call + 2
    assert f.captured.kernels == 2
    x = Tensor([1.0, 2.0])
    assert (x + 1).tolist() == [2.0, 3.0], "nothing is recorded any more"


@pytest.mark.usefixtures("undisturbed")
def test_reset_frees():
    f = TinyJit(lambda x: ((x @ x).softmax() @ x).contiguous() + 1)
    x = numbers(64, 64)
    gc.collect()
    before = GlobalCounters.mem_used
    for _ in range(4):
        f(x)
    f.reset()
    gc.collect()
    assert GlobalCounters.mem_used == before
    assert f.captured is None
    for _ in range(3):
        np.testing.assert_allclose(f(x).numpy(), f.fxn(x).numpy(), rtol=1e-5)


def test_a_function_that_cannot_be_called():
    with pytest.raises(TypeError, match="TinyJit takes a function"):
        TinyJit(3)


# ---- nesting ----


def test_inner_jits_are_inlined():
    inner = TinyJit(lambda x: (x + 1).contiguous() * 2)
    outer = TinyJit(lambda x: inner(x) + inner(x * 3))
    for call in range(6):
        x = numbers(4, seed=call)
        np.testing.assert_allclose(outer(x).numpy(), (x.numpy() + 1) * 2 + (x.numpy() * 3 + 1) * 2, rtol=1e-5)
    assert outer.captured is not None
    for call in range(4):
        x = numbers(4, seed=call)
        np.testing.assert_allclose(inner(x).numpy(), (x.numpy() + 1) * 2, rtol=1e-5)


def test_nesting_can_be_an_error():
    inner = TinyJit(lambda x: x + 1)
    outer = TinyJit(lambda x: inner(x) * 2)
    x = numbers(4)
    with Context(JIT_NESTED="error"):
        outer(x)
        message = (
            r"^having TinyJit inside another TinyJit is not supported len\(capturing\)=1 capturing=\[.*\]$"
        )
        with pytest.raises(RuntimeError, match=message):
            outer(x)


# ---- methods, copies ----


class Model:
    def __init__(self, seed: int) -> None:
        self.w = numbers(4, 4, seed=seed)
        self.scale = 2.0

    @TinyJit
    def forward(self, x):
        return (x @ self.w) * self.scale

    def __call__(self, x):
        return self.forward(x)


def test_a_method_captures_for_each_instance():
    models = [Model(0), Model(1)]
    for call in range(5):
        x = numbers(2, 4, seed=call)
        for model in models:
            np.testing.assert_allclose(model(x).numpy(), x.numpy() @ model.w.numpy() * 2, rtol=1e-5)
    assert models[0].forward is not models[1].forward
    assert isinstance(Model.forward, TinyJit)


class SlotModel:
    __slots__ = ("w",)

    def __init__(self, seed):
        self.w = numbers(4, seed=seed)

    @TinyJit
    def forward(self, x):
        return x * self.w


def test_a_method_of_a_class_with_slots():
    """There is no place to keep a capture of each instance: the instance is an argument."""
    models = [SlotModel(0), SlotModel(1)]
    for call in range(5):
        x = numbers(4, seed=call)
        for model in models:
            np.testing.assert_array_equal(model.forward(x).numpy(), x.numpy() * model.w.numpy())


@pytest.mark.usefixtures("undisturbed")
def test_a_model_with_a_jit_is_freed():
    model = Model(0)
    x = numbers(2, 4)
    for _ in range(4):
        model(x)
    gc.collect()
    held = GlobalCounters.mem_used
    del model
    gc.collect()
    assert GlobalCounters.mem_used < held


def test_a_jit_in_an_attribute_is_no_part_of_the_state():
    from lazygrad.nn.state import get_state_dict

    model = Model(0)
    for _ in range(3):
        model(numbers(2, 4))
    model.jitted = TinyJit(model.__call__)
    assert list(get_state_dict(model)) == ["w"]


def test_copies_capture_anew():
    model = Model(0)
    x = numbers(2, 4)
    for _ in range(3):
        model(x)
    twin = copy.deepcopy(model)
    twin.w.assign(twin.w * 0).realize()
    for _ in range(4):
        assert not twin(x).numpy().any()
        assert model(x).numpy().any()


def top_level(x):
    return x + 1


def test_pickled_jits_capture_anew():
    f = TinyJit(top_level)
    for _ in range(3):
        f(numbers(2))
    g = pickle.loads(pickle.dumps(f))
    assert g.captured is None
    for _ in range(3):
        assert g(Tensor([1.0])).item() == 2.0

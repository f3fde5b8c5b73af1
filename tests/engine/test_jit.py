"""TinyJit: what goes in and comes out, errors, nesting, what is printed. Each trap as a user meets it."""

from __future__ import annotations

import copy
import dataclasses
import gc
import itertools
import pickle
import threading
import warnings
import weakref
from collections import namedtuple
from typing import Any

import numpy as np
import pytest

from lazygrad import Context, Device, JitError, Tensor, TinyJit, Variable, dtypes, jit
from lazygrad.device import GlobalCounters
from tests.engine.jit_support import arrays, as_eager, captures, numbers
from tests.helpers import needs


def test_jit_is_tinyjit():
    assert jit is TinyJit


def test_call_one_is_plain_two_captures_three_replays():
    ran = itertools.count()  # a list would be compared: the function would be captured again

    @TinyJit
    def double(x):
        next(ran)
        return x * 2

    for call in range(5):
        assert double(Tensor([call, 1.0])).tolist() == [2.0 * call, 2.0]
    assert next(ran) == 2
    assert double.captured.kernels == 1


def test_results_are_realized_in_every_call():
    @TinyJit
    def f(x):
        return x + 1, x.sum()

    for _ in range(4):
        assert all(t.is_realized for t in f(numbers(4, 4)))


def test_many_kernels():
    def make():
        w = numbers(8, 8, seed=1)
        return lambda x: ((x @ w).softmax() @ w).sum(0)

    as_eager(make, [lambda seed=seed: (numbers(8, 8, seed=seed),) for seed in range(5)])


# ---- results ----


def test_results_that_the_caller_holds_are_never_overwritten():
    f = TinyJit(lambda x: x + 1)
    held = [f(Tensor([float(call)])) for call in range(8)]
    assert [t.item() for t in held] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]


def test_a_result_that_only_a_lazy_value_needs_is_not_overwritten():
    f = TinyJit(lambda x: x + 1)
    lazy = [f(Tensor([float(call)])) * 10 for call in range(8)]
    assert [t.item() for t in lazy] == [10.0 * call + 10 for call in range(8)]


def test_a_result_that_only_numpy_holds_is_not_overwritten():
    f = TinyJit(lambda x: x + 1)
    views = [np.asarray(f(Tensor([float(call)]))) for call in range(8)]
    assert [v.item() for v in views] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]


def test_a_view_of_a_result_is_not_overwritten():
    f = TinyJit(lambda x: (x + 1).reshape(2, 2))
    views = [f(Tensor([0.0, 1.0, 2.0, float(call)]))[1] for call in range(6)]
    assert [v.tolist() for v in views] == [[3.0, call + 1.0] for call in range(6)]


def test_a_result_may_be_written_in_place():
    f = TinyJit(lambda x: x + 1)
    x = numbers(4)
    for _ in range(6):
        y = f(x)
        y += 100
        y.realize()
        np.testing.assert_allclose(y.numpy(), x.numpy() + 101, rtol=1e-6)


def test_results_are_reused_when_nobody_holds_them():
    f = TinyJit(lambda x: x + 1)
    x = numbers(64)
    for _ in range(4):
        f(x)
    addresses = {f(x).uop.facts["buffer"]._buf.address for _ in range(20)}
    assert len(addresses) <= 2


@pytest.mark.usefixtures("undisturbed")
def test_memory_is_steady():
    w = numbers(16, 16)
    state = Tensor.zeros(16, 16).contiguous().realize()

    @TinyJit
    def step(x):
        state.assign(state * 0.5 + x @ w)
        return state.sum(), state + 1

    x = numbers(16, 16)
    for _ in range(10):
        step(x)
    gc.collect()
    before = GlobalCounters.mem_used
    for _ in range(200):
        step(x)
    gc.collect()
    assert GlobalCounters.mem_used == before


def test_a_result_goes_back_in():
    f = TinyJit(lambda x: x * 2)
    x = Tensor([1.0])
    for _ in range(8):
        x = f(x)
    assert x.item() == 256.0


@dataclasses.dataclass(frozen=True)
class Outcome:
    loss: Tensor
    count: int
    more: Any = None


Pair = namedtuple("Pair", ["a", "b"])


def test_results_in_any_nesting():
    def make():
        def f(x):
            return {
                "list": [x + 1, x * 2],
                "tuple": (x - 1, None, 3, "text"),
                "pair": Pair(x.sum(), 1.5),
                "outcome": Outcome(x.max(), 4, [x + 7]),
                "nothing": None,
            }

        return f

    f = TinyJit(make())
    made = []
    for call in range(4):
        x = numbers(3, seed=call)
        result = f(x)
        assert isinstance(result["pair"], Pair)
        assert isinstance(result["outcome"], Outcome)
        made.append((x, result))
    for x, result in made:
        n = x.numpy()
        np.testing.assert_array_equal(result["list"][0].numpy(), n + 1)
        np.testing.assert_array_equal(result["list"][1].numpy(), n * 2)
        np.testing.assert_array_equal(result["tuple"][0].numpy(), n - 1)
        assert result["tuple"][1:] == (None, 3, "text")
        assert result["pair"].b == 1.5
        assert result["outcome"].loss.item() == n.max()
        np.testing.assert_array_equal(result["outcome"].more[0].numpy(), n + 7)
    assert made[2][1]["list"] is not made[3][1]["list"]


def test_nothing_returned():
    total = Tensor.zeros(3).contiguous().realize()

    @TinyJit
    def add(x):
        total.assign(total + x)

    for _ in range(5):
        assert add(Tensor([1.0, 2.0, 3.0])) is None
    assert total.tolist() == [5.0, 10.0, 15.0]


def test_an_argument_returned_is_that_argument():
    @TinyJit
    def f(x, y):
        return x, x + y, y.reshape(2, 2)

    for call in range(5):
        x, y = numbers(4, seed=call), numbers(4, seed=call + 10)
        same, total, view = f(x, y)
        assert same is x
        np.testing.assert_array_equal(total.numpy(), x.numpy() + y.numpy())
        np.testing.assert_array_equal(view.numpy(), y.numpy().reshape(2, 2))


def test_a_tensor_from_outside_returned_is_that_tensor():
    cache = Tensor.zeros(4).contiguous().realize()

    @TinyJit
    def f(x):
        return cache.assign(cache + x)

    for call in range(5):
        assert f(Tensor([1.0, 1.0, 1.0, 1.0])) is cache
        assert cache.tolist() == [call + 1.0] * 4


def test_the_same_result_twice():
    def make():
        def f(x):
            y = x + 1
            return y, y, y.reshape(2, 2)

        return f

    as_eager(make, [lambda n=n: (numbers(4, seed=n),) for n in range(4)])


def test_results_carry_no_gradient():
    """Backward outside of the function finds no graph in a replay; so it says so from the first call on."""
    w = numbers(4).requires_grad_()
    f = TinyJit(lambda x: (x * w).sum())
    for _ in range(4):
        loss = f(numbers(4))
        assert not loss.requires_grad
        with pytest.raises(RuntimeError, match="requires no gradient"):
            loss.backward()


# ---- arguments ----


class Plain:
    def __init__(self, weight, scale):
        self.weight, self.scale, self.unused = weight, scale, 0


@dataclasses.dataclass
class Batch:
    x: Tensor
    y: Tensor
    name: str = "a"


def test_arguments_in_any_nesting():
    @TinyJit
    def f(x, *more, pair, options, batch, module):
        a, b = pair
        inner = options["deep"][0]["t"]
        return x + a * b + inner + more[0] + batch.x * batch.y + module.weight * module.scale

    for call in range(5):
        t = [numbers(4, seed=10 * call + n) for n in range(9)]  # t[2] is passed and not used
        module = Plain(t[7], 2.0)
        module.unused = call  # nobody reads it
        got = f(
            t[0],
            t[1],
            t[2],
            pair=(t[3], t[4]),
            options={"deep": [{"t": t[5]}]},
            batch=Batch(t[6], t[8]),
            module=module,
        )
        n = [v.numpy() for v in t]
        expected = n[0] + n[3] * n[4] + n[5] + n[1] + n[6] * n[8] + n[7] * np.float32(2.0)
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-5)
    assert captures(f) == 1


def test_keywords_in_another_order():
    f = TinyJit(lambda *, a, b: a - b)
    for call in range(4):
        a, b = numbers(3, seed=call), numbers(3, seed=call + 9)
        result = f(a=a, b=b) if call % 2 else f(b=b, a=a)
        np.testing.assert_array_equal(result.numpy(), a.numpy() - b.numpy())


def test_unrealized_arguments_are_realized_first():
    f = TinyJit(lambda x: x + 1)
    for call in range(5):
        x = Tensor([1.0, 2.0]) * call
        assert f(x).tolist() == [call + 1.0, 2.0 * call + 1]
        if call:
            assert x.is_realized


def test_constants_become_memory():
    f = TinyJit(lambda x, y: x * y)
    for call in range(6):
        assert f(Tensor(float(call)), Tensor.full((2,), 3.0)).tolist() == [3.0 * call] * 2


@pytest.mark.parametrize("dtype", [dtypes.bool, dtypes.int8, dtypes.float16, dtypes.bfloat16, dtypes.int64])
def test_constants_of_every_kind(dtype):
    f = TinyJit(lambda x: x.cast(dtypes.float32) + 1)
    for call in range(5):
        assert f(Tensor.full((3,), call % 2, dtype=dtype)).tolist() == [1.0 + call % 2] * 3


def test_the_same_tensor_twice():
    f = TinyJit(lambda x, y: x * 10 + y)
    for call in range(4):
        x = Tensor([float(call)])
        assert f(x, x).item() == 11.0 * call
    assert f(Tensor([1.0]), Tensor([2.0])).item() == 12.0, "captured with one tensor, called with two"
    x = Tensor([3.0])
    assert f(x, x).item() == 33.0


def test_captured_with_two_tensors_and_called_with_one():
    f = TinyJit(lambda x, y: x * 10 + y)
    for call in range(4):
        assert f(Tensor([float(call)]), Tensor([1.0])).item() == 10.0 * call + 1
    x = Tensor([3.0])
    assert f(x, x).item() == 33.0


def test_the_same_memory_twice_where_it_is_written():
    def make():
        def f(x, y):
            x.assign(x + 1)
            return x + y

        return f

    def plain(x, y):
        return make()(x, y).numpy()

    f = TinyJit(make())
    for _ in range(4):
        f(numbers(3), numbers(3, seed=1))
    x, z = numbers(3), numbers(3)
    np.testing.assert_array_equal(f(x, x).numpy(), plain(z, z))
    np.testing.assert_array_equal(x.numpy(), z.numpy())


def test_parts_of_a_larger_tensor():
    data = numbers(20, 4)
    f = TinyJit(lambda x: x.sum(1))
    for start in range(0, 16, 3):
        np.testing.assert_array_equal(
            f(data[start : start + 4]).numpy(), f.fxn(data[start : start + 4]).numpy()
        )


def test_views_that_are_not_contiguous():
    f = TinyJit(lambda x: x * 2 + 1)
    for call in range(5):
        x = numbers(4, 4, seed=call)
        for view in (x.T, x.flip(0), x[:, 1:2].expand(4, 4)):
            np.testing.assert_array_equal(f(view).numpy(), view.numpy() * 2 + 1)


def test_writing_to_a_part_is_refused():
    data = numbers(8, 4)

    @TinyJit
    def f(x):
        x.assign(x * 0)
        return x + 1

    f(data[0])
    with pytest.raises(JitError, match=r"argument `x` is a part or another view of a larger tensor"):
        f(data[1])


def test_writing_to_an_argument():
    def make():
        def f(x, y):
            x.assign(x * 2 + y)
            x[0] = 0
            return x.sum()

        return f

    made = []
    for wrap in (lambda f: f, TinyJit):
        f, x = wrap(make()), numbers(4)
        views = x.reshape(2, 2)
        results = []
        for call in range(6):
            before = x + 0  # recorded before the write, computed after it
            results.append(f(x, numbers(4, seed=call)).item())
            results += [before.numpy(), x.numpy(), views.numpy()]
        made.append(results)
    for a, b in zip(*made, strict=True):
        np.testing.assert_array_equal(a, b)


def test_another_argument_is_written_in_each_call():
    f = TinyJit(lambda x: x.assign(x + 1))
    tensors = [Tensor([float(n), 0.0]).realize() for n in range(6)]
    for t in tensors:
        assert f(t) is t
    assert [t.tolist() for t in tensors] == [[n + 1.0, 1.0] for n in range(6)]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda: numbers(4, 5), r"argument `x`: was \(4, 4\) float on CPU, now \(4, 5\)$"),
        (lambda: numbers(16), r"argument `x`: was \(4, 4\) float on CPU, now \(16,\)$"),
        (lambda: numbers(4, 4).cast("int").realize(), r"was \(4, 4\) float on CPU, now \(4, 4\) int$"),
        (lambda: numbers(4, 4).to("PYTHON"), r"was \(4, 4\) float on CPU, now \(4, 4\) on PYTHON$"),
    ],
)
def test_arguments_that_do_not_fit(other, message):
    with Context(DEV="CPU"):
        f = TinyJit(lambda x: x + 1)
        for _ in range(3):
            f(numbers(4, 4))
        with pytest.raises(JitError, match=message):
            f(other())
        assert f(Tensor.zeros(4, 4)).tolist() == [[1.0] * 4] * 4, "still usable"


def test_a_nested_argument_that_does_not_fit_is_named():
    f = TinyJit(lambda batch: batch["x"][0] + 1)
    for _ in range(3):
        f({"x": [numbers(2)]})
    with pytest.raises(JitError, match=r"argument `batch`\['x'\]\[0\]: was \(2,\) float"):
        f({"x": [numbers(3)]})


def test_numpy_arrays_are_refused_where_they_would_be_frozen():
    f = TinyJit(lambda x, y: x + Tensor(y))
    f(numbers(100), np.zeros(100, np.float32))
    with pytest.raises(
        JitError, match=r"argument `y` is a numpy array of 100 elements.*pass Tensor\(array\)"
    ):
        f(numbers(100), np.zeros(100, np.float32))


def test_small_numpy_arrays_are_compared():
    f = TinyJit(lambda x, y: x + Tensor(y))
    for call in range(6):
        assert f(Tensor([1.0, 2.0]), np.full(2, call // 3, np.float32)).tolist() == [
            1.0 + call // 3,
            2.0 + call // 3,
        ]


def test_empty_tensors():
    f = TinyJit(lambda x, y: x.sum() + y)
    for call in range(4):
        assert f(Tensor.zeros(0, 3), Tensor([float(call)])).tolist() == [float(call)]


def test_an_argument_with_gradients_from_outside():
    w = numbers(3).requires_grad_()
    f = TinyJit(lambda h: h * 2)
    for call in range(4):
        h = w * float(call)
        np.testing.assert_array_equal(f(h).numpy(), w.numpy() * np.float32(call) * 2)


def test_gradients_into_such_an_argument_are_refused():
    w = numbers(3).requires_grad_()

    @TinyJit
    def f(h):
        loss = (h * 2).sum()
        loss.backward()
        return loss

    f(w * 3)
    with pytest.raises(
        JitError, match=r"gradients flow into an argument of shape \(3,\) that was computed outside"
    ):
        f(w * 3)


def test_an_argument_that_the_function_changes():
    """A replay would not put the tensor into the dict: such calls run uncaptured."""

    def f(batch):
        batch["sum"] = batch["x"].sum()
        return batch["x"] + 1

    f = TinyJit(f)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for call in range(8):
            batch = {"x": Tensor([1.0, float(call)])}
            f(batch)
            assert batch["sum"].item() == call + 1.0
    assert "argument `batch` differs" in str(found[0].message)


def test_long_lists_of_numbers_are_compared():
    f = TinyJit(lambda x, weights: x * sum(weights))
    weights = [1.0] * 1000
    for call in range(6):
        weights[500] = float(call // 3)
        assert f(Tensor([1.0]), weights).item() == 999.0 + call // 3


def test_memory_of_the_captured_call_is_let_go():
    x = numbers(64, 64)
    f = TinyJit(lambda x: (((x + 1).contiguous() * 2).contiguous() + 3).contiguous() * 4)
    f(x)
    f(x)
    buffer = weakref.ref(x.uop.src[0].facts["buffer"])
    size = 64 * 64 * 4
    del x
    gc.collect()
    assert buffer() is None
    assert f.captured.replay.taken_bytes == 2 * size, "three values in between, two at a time"


# ---- symbolic sizes ----


def test_a_variable_is_rebound_in_each_call():
    cache = numbers(8, 4)
    f = TinyJit(lambda n: cache[:n].sum(0))
    n = Variable("n", 1, 8)
    for size in (2, 3, 8, 1, 5):
        np.testing.assert_allclose(f(n.bind(size)).numpy(), cache.numpy()[:size].sum(0), rtol=1e-5, atol=1e-6)
    assert captures(f) == 1


def test_arguments_and_results_of_symbolic_size():
    data = numbers(8, 4)
    f = TinyJit(lambda x: x * 2 + 1)
    n = Variable("n", 1, 8)
    results = [(size, f(data[: n.bind(size)])) for size in (2, 3, 8, 1, 5)]
    for size, result in results:
        np.testing.assert_array_equal(result.numpy(), data.numpy()[:size] * 2 + 1)
    assert captures(f) == 1


def test_a_variable_with_two_values_is_refused():
    data = numbers(8)
    f = TinyJit(lambda x, y: x.sum().contiguous() + y.sum().contiguous())
    n = Variable("n", 1, 8)
    f(data[: n.bind(2)], data[: n.bind(3)])
    with pytest.raises(JitError, match="Variable n is bound to 3, and to 2 elsewhere"):
        f(data[: n.bind(2)], data[: n.bind(3)])


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
    message = rf"test_jit\.py:\d+: {said} reads a tensor's value while <TinyJit of .*return the tensor"
    for _ in range(2):
        with pytest.raises(JitError, match=message):
            f(numbers(3))


def test_reading_outside_and_in_call_one_is_fine():
    f = TinyJit(lambda x: x.sum())
    for call in range(4):
        assert f(Tensor([1.0, float(call)])).item() == 1.0 + call


def test_an_exception_in_a_capture_leaves_it_usable():
    fails = iter([False, True, *[False] * 10])

    @TinyJit
    def f(x):
        y = (x + 1).realize()
        if next(fails):
            raise KeyError("mine")
        return y * 2

    assert f(Tensor([1.0])).item() == 4.0
    with pytest.raises(KeyError, match="mine"):
        f(Tensor([1.0]))
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


# ---- flags and output ----


def test_jit_0_never_captures():
    ran = itertools.count()
    f = TinyJit(lambda x: (next(ran), x + 1)[1])
    with Context(JIT=0):
        for _ in range(4):
            f(numbers(2))
    assert next(ran) == 4


def test_jit_2_runs_kernel_by_kernel(capsys):
    f = TinyJit(lambda x: (x + 1).contiguous() * 2)
    with Context(JIT=2):
        for call in range(5):
            assert f(Tensor([float(call)])).item() == 2.0 * call + 2
        x = Tensor([1.0]).realize()
        capsys.readouterr()
        with Context(DEBUG=2):
            f(x)
    assert capsys.readouterr().out.count("*** CPU") == 2


def test_what_debug_prints(capsys):
    f = TinyJit(lambda x: ((x + 1).contiguous() * 2).contiguous() - 3)
    x = Tensor([1.0]).realize()
    f(x)
    capsys.readouterr()
    with Context(DEBUG=1):
        f(x)
    out = capsys.readouterr().out
    assert "JIT captured 3 kernels with 1 inputs\n" in out
    assert "JIT GRAPHing batch with 3 kernels on device CPU\n" in out
    with Context(DEBUG=2):
        f(x)
    rows = capsys.readouterr().out.splitlines()
    assert len(rows) == 1
    assert "<batched 3>" in rows[0]


def test_one_kernel_is_no_graph(capsys):
    f = TinyJit(lambda x: x + 1)
    x = Tensor([1.0]).realize()
    f(x)
    with Context(DEBUG=1):
        f(x)
    line = "JIT GRAPHing failed batch with 1 kernels on device CPU: only one kernel doesn't graph"
    assert line in capsys.readouterr().out
    with Context(DEBUG=2):
        f(x)
    assert "E_" in capsys.readouterr().out


def test_kernels_are_counted():
    f = TinyJit(lambda x: ((x + 1).contiguous() * 2).contiguous() - 3)
    x = numbers(4)
    for _ in range(3):
        f(x)
    before = GlobalCounters.kernel_count
    f(x)
    assert GlobalCounters.kernel_count == before + 3


# ---- devices ----


@pytest.mark.parametrize("device", ["PYTHON", "NULL", "CPU"])
def test_devices(device):
    f = TinyJit(lambda x: (x + 1).contiguous() * 2)
    for call in range(5):
        result = f(Tensor([1.0, float(call)], device=device)).tolist()
        assert device == "NULL" or result == [4.0, 2.0 * call + 2]


def test_two_devices_in_one_function():
    """A copy between devices parts the list; what does not depend on it still runs as one."""

    def make():
        def f(x):
            a = (x + 1).contiguous()
            b = (a.to("PYTHON") * 3).to("CPU")
            c = (x * 2).contiguous() - 1
            return a + b, c

        return f

    with Context(DEV="CPU"):
        f = as_eager(make, [lambda n=n: (numbers(4, seed=n),) for n in range(5)])
    batches = f.captured.replay.batches
    assert [len(b.actions) for b in batches if b.native] == [3, 1]


@needs("clang")
def test_kernels_of_two_devices_in_turns_run_as_one_batch_each(capsys):
    def f(a, b):
        for _ in range(3):
            a = (a + 1).realize()
            b = (b * 2).realize()
        return a, b

    jitted = TinyJit(f)
    for call in range(4):
        a, b = Tensor([float(call)], device="CPU"), Tensor([float(call)], device="CLANG")
        with Context(DEBUG=int(call == 1)):
            a, b = jitted(a, b)
        assert (a.item(), b.item()) == (call + 3.0, call * 8.0)
    out = capsys.readouterr().out
    assert "JIT reordered kernels that do not depend on each other: 2 batches, not 6\n" in out
    assert "JIT GRAPHing batch with 3 kernels on device CPU\n" in out
    assert "JIT GRAPHing batch with 3 kernels on device CLANG\n" in out


def test_host_data_is_copied_once():
    """A list in the function is the same in every call: its copy to the device is made once."""
    f = TinyJit(lambda x: x + Tensor([1.0, 2.0]))
    for call in range(5):
        assert f(Tensor([0.0, float(call)])).tolist() == [1.0, call + 2.0]
    assert f.captured.kernels == 1


def test_host_data_that_is_returned_is_fresh_memory():
    f = TinyJit(lambda x: (x + 1, Tensor([1.0, 2.0])))
    for call in range(5):
        _, constant = f(Tensor([float(call)]))
        assert constant.tolist() == [1.0, 2.0]
        constant += 5
        constant.realize()


def test_an_argument_on_the_host():
    f = TinyJit(lambda x: x.to("CPU") * 2)
    for call in range(5):
        assert f(Tensor(np.array([1.0, call], np.float32), device="NPY")).tolist() == [2.0, 2.0 * call]


# ---- threads ----


def test_threads_share_a_jit():
    w = numbers(8, 8)
    f = TinyJit(lambda x: (x @ w).relu().sum(0))
    wrong = []

    def work(seed):
        for call in range(40):
            x = numbers(8, 8, seed=100 * seed + call)
            got = f(x).numpy()
            expected = np.maximum(x.numpy() @ w.numpy(), 0).sum(0)
            if not np.allclose(got, expected, rtol=1e-4, atol=1e-4):
                wrong.append((seed, call))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_captures_in_two_threads_do_not_mix():
    """Each thread captures its own function while the other runs."""
    found = {}

    def work(number):
        f = TinyJit(lambda x: (x + number).contiguous() * 2)
        found[number] = [f(Tensor([float(call)])).item() for call in range(20)]
        found[-number] = f.captured.kernels

    threads = [threading.Thread(target=work, args=(n,)) for n in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for n in (1, 2, 3):
        assert found[n] == [2.0 * (call + n) for call in range(20)]
        assert found[-n] == 2


def test_arrays_helper():
    assert arrays({"a": [1, None]}) == {"a": [1, None]}
    assert Device.DEFAULT

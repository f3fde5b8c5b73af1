"""TinyJit: what goes in: nested, shared, parts of larger tensors, symbolic sizes."""

from __future__ import annotations

import dataclasses
import gc
import warnings
import weakref

import numpy as np
import pytest

from lazygrad import JitError, Tensor, TinyJit, Variable, dtypes
from lazygrad.device.allocator import take_back
from tests.jit.jit_support import captures, numbers

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
        np.testing.assert_allclose(
            f(data[start : start + 4]).numpy(), f.fxn(data[start : start + 4]).numpy(), rtol=1e-6
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
    take_back()  # what has ended is let go with the next allocation
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


def test_an_argument_of_its_own_size_that_is_seen_with_a_symbolic_one():
    """Its memory is not for the greatest size, so the call has a copy."""
    f = TinyJit(lambda x: x * 2 + 1)
    n = Variable("n", 1, 8)
    for size in (2, 3, 8, 1, 5):
        data = numbers(size, 4).realize()
        result = f(data.reshape(n.bind(size), 4)).reshape(size, 4)
        np.testing.assert_array_equal(result.numpy(), data.numpy() * 2 + 1)
    assert captures(f) == 1


def test_a_reshape_that_a_variable_s_value_allows():
    """With another value it is refused in a replay too."""
    f = TinyJit(lambda x, n: x.reshape(n, 4) + 1)
    n, data = Variable("n", 1, 8), numbers(12).realize()
    for _ in range(3):
        np.testing.assert_array_equal(f(data, n.bind(3)).numpy(), data.numpy().reshape(3, 4) + 1)
    with pytest.raises(ValueError, match=r"cannot reshape \(12,\) into \(n=2, 4\): 12 elements into n=2\*4"):
        f(data, n.bind(2))


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_one_capture_is_for_all_values_with_which_slices_and_pads_fit():
    """Others are refused at the line, as without a jit, however often; and the capture stays."""
    cache, n = numbers(8, 4), Variable("n", 1, 8)
    f = TinyJit(
        lambda n: (cache[: n + 1].sum(0), cache[n - 1 : n + 2] * 2, cache[1:n].pad(((0, 7 - n), (0, 0))))
    )
    for _ in range(3):
        for bound in (2, 3, 6, 1, 5):
            total, part, padded = f(n.bind(bound))
            np.testing.assert_allclose(total.numpy(), cache.numpy()[: bound + 1].sum(0), rtol=1e-5, atol=1e-6)
            np.testing.assert_array_equal(part.numpy(), cache.numpy()[bound - 1 : bound + 2] * 2)
            expected = np.zeros((6, 4))
            expected[: bound - 1] = cache.numpy()[1:bound]
            np.testing.assert_array_equal(padded.numpy(), expected)
        for bound in (7, 8):
            with pytest.raises(
                ValueError, match=f"0 <= n={bound}-1 <= n={bound}[+]2 <= 8|n={bound}[+]1 <= 8"
            ):
                f(n.bind(bound))
    assert captures(f) == 1


def test_a_function_that_catches_what_does_not_fit():
    """What it does then holds for that value only."""

    def last_two(n):
        try:
            return cache[n : n + 2].sum(0)
        except ValueError:
            return cache[0] * 0

    cache, n, f = numbers(8, 4), Variable("n", 1, 8), TinyJit(last_two)
    for bound in (7, 7, 7, 3, 3, 7, 8, 4, 8):
        np.testing.assert_array_equal(f(n.bind(bound)).numpy(), last_two(n.bind(bound)).numpy())
    assert captures(f) == 3


def test_a_limit_of_a_variable_that_the_function_binds_itself():
    cache, n = numbers(8, 4), Variable("n", 1, 8)
    f = TinyJit(lambda x: cache[n.bind(3) : n.bind(3) + 2] + x)
    for turn in range(4):
        np.testing.assert_array_equal(f(Tensor([turn])).numpy(), cache.numpy()[3:5] + turn)


def test_limits_of_variables_of_one_name_and_other_bounds():
    cache, n, m = numbers(8, 4), Variable("n", 1, 8), Variable("n", 0, 9)
    f = TinyJit(lambda n, m: (cache[n : n + 2].sum(0).realize(), cache[: m + 1].sum(0)))
    for bound in (2, 3, 6, 4):
        part, start = f(n.bind(bound), m.bind(bound))
        np.testing.assert_allclose(part.numpy(), cache.numpy()[bound : bound + 2].sum(0), 1e-5, 1e-5)
        np.testing.assert_allclose(start.numpy(), cache.numpy()[: bound + 1].sum(0), 1e-5, 1e-5)
    assert captures(f) == 1
    with pytest.raises(ValueError, match="axis 0 needs"):
        f(n.bind(7), m.bind(7))


def test_writes_at_a_variable_whose_last_value_is_beyond_the_end():
    cache, n = Tensor.zeros(4, 2).contiguous().realize(), Variable("n", 0, 4)

    @TinyJit
    def write(value, n):
        cache[n : n + 1].assign(value).realize()

    for row in range(4):
        write(Tensor.full((1, 2), row + 1.0).contiguous(), n.bind(row))
    assert cache.tolist() == [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0], [4.0, 4.0]]
    with pytest.raises(ValueError, match=r"axis 0 needs 0 <= n=4 <= n=4\+1 <= 4"):
        write(Tensor.full((1, 2), 5.0).contiguous(), n.bind(4))
    assert cache.tolist()[3] == [4.0, 4.0]


def test_a_variable_with_two_values_is_refused():
    data = numbers(8)
    f = TinyJit(lambda x, y: x.sum().contiguous() + y.sum().contiguous())
    n = Variable("n", 1, 8)
    f(data[: n.bind(2)], data[: n.bind(3)])
    with pytest.raises(JitError, match="Variable n is bound to 3, and to 2 elsewhere"):
        f(data[: n.bind(2)], data[: n.bind(3)])

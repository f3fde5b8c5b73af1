"""Indexing against numpy: reading, writing, gather and scatter."""

from __future__ import annotations

from typing import Any

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from lazygrad import Context, Tensor, dtypes
from tests.helpers import needs
from tests.tensor.support import data, like_torch, same, value

X = np.arange(2 * 3 * 4, dtype=np.float32).reshape(2, 3, 4)
I = np.array([[0, 2, -1], [1, 1, 0]])
J = np.array([0, 3, -2])
MASK = X % 3 == 0
ROWS = np.array([True, False])

KEYS: dict[str, Any] = {
    "int": 1,
    "negative": -1,
    "numpy int": np.int64(1),
    "two ints": (0, -2),
    "all ints": (1, 2, 3),
    "slice": slice(1, 2),
    "open slices": (slice(None, 1), slice(1, None)),
    "step": (slice(None), slice(None), slice(None, None, 2)),
    "step from": (slice(None), slice(None), slice(1, None, 3)),
    "backwards": (slice(None), slice(None, None, -1)),
    "backwards step": (slice(None), slice(None), slice(-1, 0, -2)),
    "empty": (slice(2, 1),),
    "beyond": (slice(-100, 100), slice(5, 9)),
    "ellipsis": (Ellipsis, 1),
    "new axis": (None, slice(None), None, 1),
    "ellipsis and new": (1, Ellipsis, None),
    "nothing": (),
    "list": [1, 0, 1],
    "array": (slice(None), I),
    "array at front": (np.array([1, 0]),),
    "arrays together": (slice(None), np.array([0, 2]), np.array([3, 1])),
    "arrays apart": (np.array([0, 1]), slice(None), np.array([3, 1])),
    "arrays broadcast": (slice(None), I[:, :, None], J),
    "array and int": (np.array([0, 1, 1]), 2),
    "int and array": (1, np.array([0, 2, -2])),
    "array and slice": (slice(None, None, -1), I, slice(1, 3)),
    "array and new": (None, np.array([0, 1, -1]), Ellipsis, None),
    "mask": MASK,
    "mask of rows": ROWS,
    "mask behind": (slice(None), np.array([True, False, True])),
    "mask and int": (ROWS, 1),
    "mask of two": X[:, :, 0] > 3,
    "empty array": (slice(None), np.array([], dtype=np.int64)),
}


@pytest.mark.parametrize("name", KEYS)
def test_reading(name: str) -> None:
    key = KEYS[name]
    same(Tensor(X)[key], np.asarray(X[key]))


def test_an_int_beside_arrays_selects_first() -> None:
    same(Tensor(X)[1, :, Tensor(J)], X[1][:, J])
    same(Tensor(X)[Tensor(1), :, J], X[1][:, J])


@pytest.mark.parametrize("name", KEYS)
def test_writing_a_number(name: str) -> None:
    key = KEYS[name]
    expected, tensor = X.copy(), Tensor(X.copy()).realize()
    expected[key] = -7
    tensor[key] = -7
    np.testing.assert_array_equal(tensor.numpy(), expected)


@pytest.mark.parametrize("name", KEYS)
def test_writing_values(name: str) -> None:
    key = KEYS[name]
    shape = X[key].shape
    values = data(*shape, seed=3)
    expected, tensor = X.copy(), Tensor(X.copy())
    expected[key] = values
    tensor[key] = Tensor(values)
    np.testing.assert_array_equal(tensor.numpy(), expected)


def test_tensors_as_indices() -> None:
    x = Tensor(X)
    same(x[Tensor([1, 0])], X[[1, 0]])
    same(x[:, Tensor(I), Tensor(J)], X[:, I, J])
    same(x[Tensor(np.array([1, 0], np.uint8))], X[[1, 0]])
    same(x[Tensor(1)], X[1])


def test_out_of_range() -> None:
    x = Tensor([1, 2, 3])
    with Context(CHECK_INDEX=0):
        assert x[Tensor([5, 0, -4, 3])].tolist() == [0, 1, 0, 0]
        assert Tensor(X)[Tensor([0]), Tensor([3])].tolist() == [
            [0.0] * 4
        ]  # axis 1 has size 3: no neighbour is read
        x[Tensor([7, 1])] = Tensor([9, 9])
        assert x.tolist() == [1, 9, 3]
    for key, message in [
        (3, "index 3 is out of bounds for axis 0 with size 3"),
        (-4, "index -4 is out of bounds"),
    ]:
        with pytest.raises(IndexError, match=message):
            x[key]
    with pytest.raises(IndexError, match="out of bounds for axis 1 with size 3"):
        Tensor(X)[0, 3]


def test_mistakes() -> None:
    x = Tensor(X)
    with pytest.raises(IndexError, match=r"4 indices for a tensor with 3 axes, shape \(2, 3, 4\)"):
        x[0, 0, 0, 0]
    with pytest.raises(IndexError, match="a single ellipsis"):
        x[..., 0, ...]
    with pytest.raises(IndexError, match=r"integers or bools, not dtypes\.float"):
        x[Tensor([1.0])]
    with pytest.raises(IndexError, match="not 'a'"):
        x["a"]
    with pytest.raises(IndexError, match="do not broadcast"):
        x[Tensor([0, 1]), Tensor([0, 1, 2])]
    with pytest.raises(ValueError, match="step must not be 0"):
        x[::0]
    with pytest.raises(ValueError, match=r"value of shape \(5,\) to a part of shape \(3, 4\)"):
        x[0] = Tensor(data(5))
    with pytest.raises(
        TypeError, match=r"values of dtypes\.float cannot be written into a tensor of dtypes\.int"
    ):
        Tensor([1, 2])[0] = Tensor(1.5)


def test_repeated_writes_take_the_last() -> None:
    x = Tensor([0, 0, 0])
    x[Tensor([1, 1, 2, 1])] = Tensor([5, 6, 7, 8])
    assert x.tolist() == [0, 8, 7]


def test_a_slice_is_a_view() -> None:
    x = Tensor(X.copy()).realize()
    part = x[:, 1]
    part[:, 0] = 100.0
    x[0, 1, 1] = 200.0
    expected = X.copy()
    expected[:, 1, 0] = 100.0
    expected[0, 1, 1] = 200.0
    np.testing.assert_array_equal(x.numpy(), expected)
    np.testing.assert_array_equal(part.numpy(), expected[:, 1])


def test_in_place_arithmetic_on_a_part() -> None:
    x = Tensor(X.copy()).realize()
    x[1] += 10
    x[:, 0] *= 2
    expected = X.copy()
    expected[1] += 10
    expected[:, 0] *= 2
    np.testing.assert_array_equal(x.numpy(), expected)


def test_a_write_does_not_change_what_was_read_before() -> None:
    x = Tensor([1.0, 2.0, 3.0])
    before = x * 10
    x[0] = 50.0
    assert before.tolist() == [10, 20, 30]
    assert (x * 10).tolist() == [500, 20, 30]


def test_masked_select_and_nonzero() -> None:
    same(Tensor(X).masked_select(Tensor(MASK)), X[MASK])
    assert Tensor(X).nonzero().tolist() == np.argwhere(X).tolist()
    assert Tensor([0, 3, 0, 1]).nonzero().tolist() == [[1], [3]]


def test_take() -> None:
    same(Tensor(X).take(Tensor(I)), np.take(X, I))
    order = np.argsort(X, axis=1)
    same(Tensor(X).take_along_dim(Tensor(order), 1), np.take_along_axis(X, order, 1))


@needs("torch")
def test_values_at_places_that_are_arithmetic_are_added_in_order() -> None:
    """No loaded value shows that these places repeat: lanes side by side would each add to the old value."""
    index = (Tensor.arange(8) // 2 + 1).clamp(max=3)
    assert Tensor.zeros(4).scatter_add(0, index, Tensor.ones(8)).tolist() == [0.0, 2.0, 2.0, 4.0]


def test_gather_and_scatter_like_torch() -> None:
    x, index, src = data(4, 3), np.array([[0, 1, 2], [2, 0, 0]]), data(2, 3, seed=1)
    like_torch(lambda x, i: x.gather(0, i), lambda x, i: x.gather(0, i), [x, index])
    like_torch(lambda x, i: x.gather(1, i), lambda x, i: x.gather(1, i), [x, index])
    like_torch(
        lambda x, i, s: x.scatter_add(0, i, s), lambda x, i, s: x.scatter_add(0, i, s), [x, index, src]
    )
    unique = np.array([[0, 1, 2], [2, 0, 0]])
    like_torch(lambda x, i, s: x.scatter(0, i, s), lambda x, i, s: x.scatter(0, i, s), [x, unique, src])
    like_torch(
        lambda x, i: x.scatter(1, i, 3.0), lambda x, i: x.scatter(1, i, 3.0), [x, unique], backward=False
    )
    for reduce in ("sum", "amax", "amin", "mean"):
        for include in (True, False):
            like_torch(
                lambda x, i, s, r=reduce, n=include: x.scatter_reduce(0, i, s, r, include_self=n),
                lambda x, i, s, r=reduce, n=include: x.scatter_reduce(0, i, s, r, include_self=n),
                [x, index, src],
            )
    like_torch(
        lambda x, i, s: x.scatter_reduce(0, i, s, "prod"),
        lambda x, i, s: x.scatter_reduce(0, i, s, "prod"),
        [x, index, src],
        backward=False,
    )
    like_torch(lambda x, i: x.index_select(1, i), lambda x, i: x.index_select(1, i), [x, np.array([2, 0, 2])])
    like_torch(lambda x, i: x[i] * x[:, 1], lambda x, i: x[i] * x[:, 1], [data(4, 4), np.array([3, 3, 0, 1])])


@needs("torch")
def test_gradients_through_writes() -> None:
    def ours(x: Tensor, v: Tensor) -> Tensor:
        y = x * 2
        y[0] = v
        y[:, 1] = 5.0
        return y * y

    def theirs(x: Any, v: Any) -> Any:
        y = x * 2
        y[0] = v
        y[:, 1] = 5.0
        return y * y

    like_torch(ours, theirs, [data(3, 4), data(4, seed=1)])


def test_gather_mistakes() -> None:
    x = Tensor(data(4, 3))
    with pytest.raises(ValueError, match=r"gather needs an index with 2 axes.*not shape \(3,\)"):
        x.gather(0, Tensor([0, 1, 2]))
    with pytest.raises(TypeError, match=r"index of integers, not of dtypes\.float"):
        x.gather(0, Tensor([[0.0]]))
    with pytest.raises(ValueError, match="is larger on axis 1"):
        x.gather(0, Tensor([[0, 0, 0, 0]]))
    with pytest.raises(ValueError, match="one of sum, mean, prod, amax, amin, not 'max'"):
        x.scatter_reduce(0, Tensor([[0]]), x, "max")


# *** random keys


@st.composite
def shapes_and_keys(draw: Any) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
    entries: list[Any] = []
    for size in shape[: draw(st.integers(0, len(shape)))]:
        kind = draw(st.sampled_from(["int", "slice", "slice", "array", "new"]))
        if kind == "new":
            entries.append(None)
        if kind == "int":
            entries.append(draw(st.integers(-size, size - 1)))
        elif kind == "array":
            entries.append(np.array(draw(st.lists(st.integers(-size, size - 1), min_size=2, max_size=2))))
        else:
            ends = st.none() | st.integers(-size - 1, size + 1)
            step = draw(st.none() | st.integers(-3, 3).filter(bool))
            entries.append(slice(draw(ends), draw(ends), step))
    if draw(st.booleans()):
        entries.insert(draw(st.integers(0, len(entries))), Ellipsis)
        used = sum(e is not None and e is not Ellipsis for e in entries)
        hypothesis.assume(used <= len(shape))
    ints = any(isinstance(e, int) for e in entries)
    hypothesis.assume(not (ints and any(isinstance(e, np.ndarray) for e in entries)))  # not as in numpy
    try:
        np.empty(shape)[tuple(entries)]
    except IndexError:
        hypothesis.assume(False)
    return shape, tuple(entries)


@hypothesis.given(shapes_and_keys())
@hypothesis.settings(max_examples=60)
def test_any_key(case: tuple[tuple[int, ...], tuple[Any, ...]]) -> None:
    shape, key = case
    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    np.testing.assert_array_equal(value(Tensor(x)[key]), x[key])
    written, tensor = x.copy(), Tensor(x.copy())
    written[key] = -1
    tensor[key] = -1
    np.testing.assert_array_equal(tensor.numpy(), written)


def test_symbolic_slices() -> None:
    from lazygrad import Variable

    x = Tensor(X)
    n = Variable("n", 1, 3).bind(2)
    assert x[:, :n].sum().item() == X[:, :2].sum()
    assert x[:, n - 1].tolist() == X[:, 1].tolist()
    assert dtypes.float is x[:, :n].dtype


@pytest.mark.parametrize(
    ("key", "values"),
    [
        (lambda v: slice(v, v + 2), (0, 1, 2)),
        (lambda v: slice(v - 1, v + 1), (1, 2, 3)),
        (lambda v: slice(None, v), (1, 2, 3, 4)),
        (lambda v: slice(v - 1, 2 * v), (1, 2)),
        (lambda v: v, (0, 1, 3)),
    ],
)
def test_what_a_variable_is_bound_to_must_fit(key: Any, values: tuple[int, ...]) -> None:
    """Not all that it could be: its greatest value is far outside."""
    from lazygrad import Variable

    for bound in values:
        at, place = key(Variable("v", 0, 9).bind(bound)), key(bound)
        expected = X[:, 1, place]
        x = Tensor(X).requires_grad_(True)
        part = x[:, 1, at]
        np.testing.assert_array_equal(part.contiguous().numpy(), expected)
        assert part.sum().item() == expected.sum()
        (part * part).sum().backward()
        gradient = np.zeros_like(X)
        gradient[:, 1, place] = 2 * expected
        np.testing.assert_array_equal(x.grad.numpy(), gradient)
        written, array = Tensor(X.copy()), X.copy()
        written[:, 1, at] = 7
        array[:, 1, place] = 7
        np.testing.assert_array_equal(written.numpy(), array)


@pytest.mark.parametrize(
    ("key", "error", "message"),
    [
        (
            lambda v: slice(v.bind(3), v.bind(3) + 2),
            ValueError,
            r"cannot shrink \(4,\) to \(\(v=3, v=3\+2\),\): axis 0 needs 0 <= v=3 <= v=3\+2 <= 4$",
        ),
        (lambda v: slice(v, v + 2), ValueError, "0 <= v <= v[+]2 <= 4 whatever the Variables are bound to"),
        (lambda v: v.bind(4), IndexError, "index v=4 is out of bounds for axis 0 with size 4"),
        (lambda v: v, IndexError, "index v may be out of bounds for axis 0 with size 4"),
    ],
)
def test_what_a_variable_is_bound_to_does_not_fit(key: Any, error: type, message: str) -> None:
    from lazygrad import Variable

    with pytest.raises(error, match=message):
        Tensor(X[0, 0])[key(Variable("v", 0, 9))]


def test_an_axis_of_symbolic_size() -> None:
    from lazygrad import Variable

    x = Tensor(X)[:, :, : Variable("v", 1, 4).bind(3)]
    assert x[:, :, 2].tolist() == X[:, :, 2].tolist()
    assert x[:, :, -3].tolist() == X[:, :, 0].tolist()
    assert x[:, :, 1:3].tolist() == X[:, :, 1:3].tolist()
    with pytest.raises(IndexError, match="index 3 is out of bounds for axis 2 with size v=3"):
        x[:, :, 3]


# ---- places that are computed, and the same along a loop


@pytest.mark.parametrize("flags", [{}, {"NOOPT": 1}, {"FUSE": 0}])
@pytest.mark.parametrize("device", ["CPU", "PYTHON", pytest.param("CLANG", marks=needs("clang"))])
def test_everything_arrives_at_a_place_that_is_the_same_along_a_loop(device, flags):
    def places(each):
        return Tensor.arange(6, device=device) // each

    def filled(value):
        return Tensor.full((2,), value, device=device)

    values = Tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], device=device)
    with Context(**flags):
        assert filled(0.0).index_add(0, places(6), values).tolist() == [21, 0]
        assert filled(0.0).index_add(0, places(3), values).tolist() == [6, 15]
        assert filled(0.0).index_add(0, places(6), Tensor.ones(6, device=device)).tolist() == [6, 0]
        assert filled(1.0).scatter_reduce(0, places(6), values, "prod").tolist() == [720, 1]
        assert filled(3.0).scatter_reduce(0, places(6), values, "amax").tolist() == [6, 3]
        assert filled(3.0).scatter_reduce(0, places(3), values, "amin").tolist() == [1, 3]
        assert filled(0.0).scatter(0, places(6), values).tolist() == [6, 0]


@pytest.mark.parametrize(("size", "slope"), [((1, 1), 35.0), ((1, 5), 7.0), ((7, 1), 5.0)])
@pytest.mark.parametrize("method", ["adaptive_avg_pool2d", "area", "bicubic", "nearest"])
def test_the_gradient_of_an_enlarged_axis_of_one(method, size, slope):
    x = Tensor.ones(1, 2, *size, requires_grad=True)
    larger = x.adaptive_avg_pool2d((7, 5)) if method[0] == "a" and "_" in method else None
    larger = x.interpolate((7, 5), mode=method) if larger is None else larger
    assert np.allclose(larger.sum().gradient(x)[0].numpy(), slope)

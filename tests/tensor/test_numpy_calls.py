"""numpy's operators and functions on tensors give Tensors with gradients, on either side, or errors."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor, dtypes, no_grad
from lazygrad.tensor.numpy_calls import ELEMENTWISE, OPERATORS

FLOATS, INTS = np.array([3.0, 0.5], np.float32), np.array([3, 5], np.int32)
OF_FLOATS = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "eq", "ne", "lt", "le", "gt", "ge"]
OF_INTS = ["lshift", "rshift", "and_", "or_", "xor", "floordiv", "mod", "pow"]


@pytest.mark.parametrize("name", OF_FLOATS)
def test_an_array_on_the_left_gives_a_tensor(name: str) -> None:
    function, values = getattr(operator, name), np.array([2.0, 0.5], np.float32)
    for left in (FLOATS, np.float32(3), np.float64(0.5), np.array(3.0)):
        found = function(left, Tensor(values))
        assert type(found) is Tensor
        np.testing.assert_allclose(found.numpy(), function(left, values), rtol=1e-6)


@pytest.mark.parametrize("name", OF_INTS)
def test_integers_on_the_left_give_a_tensor(name: str) -> None:
    function, values = getattr(operator, name), np.array([2, 3], np.int32)
    for left in (INTS, np.int32(3), np.int64(7)):
        found = function(left, Tensor(values))
        assert (type(found), found.tolist()) == (Tensor, function(left, values).tolist())


def test_the_other_operators() -> None:
    w = Tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    product = np.eye(2, dtype=np.float32) @ w
    assert (product.requires_grad, product.tolist()) == (True, w.tolist())
    quotient, rest = divmod(np.array([5.0, 7.0], np.float32), w)
    assert (quotient.tolist(), rest.tolist()) == ([[5.0, 3.0], [1.0, 1.0]], [[0.0, 1.0], [2.0, 3.0]])
    assert divmod(7, Tensor([2, 4]))[1].tolist() == [1, 3]


def test_the_gradient_flows_through() -> None:
    w = Tensor([1.0, 2.0], requires_grad=True)
    (FLOATS * w).sum().backward()
    assert w.grad is not None
    assert w.grad.tolist() == FLOATS.tolist()
    loss = np.float32(0.5) * w.sum()
    assert loss.gradient(w)[0].tolist() == [0.5, 0.5]
    assert np.exp(np.log(w)).sum().gradient(w)[0].tolist() == pytest.approx([1.0, 1.0])
    assert np.concatenate([FLOATS, w]).sum().gradient(w)[0].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.longdouble, np.int8, np.bool_])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_a_number_of_numpy_is_weak_on_both_sides(kind: Any, dtype: str) -> None:
    t = Tensor([1.0, 2.0], dtype=dtype)
    for number in (kind(1), np.array(kind(1))):
        assert str((number + t).dtype) == str((t + number).dtype) == str(t.dtype)
        assert (number + t).tolist() == (t + number).tolist() == [2.0, 3.0]
        assert (number == t).tolist() == (t == number).tolist() == [True, False]


def test_numbers_of_numpy_beside_integers() -> None:
    t = Tensor([1, 2], dtype=dtypes.int8)
    assert (np.int64(5) * t).dtype is (t * np.int64(5)).dtype is dtypes.int8
    assert (np.float64(0.5) * t).dtype is (t * np.float32(0.5)).dtype is dtypes.default_float
    assert (t > np.int64(1000)).tolist() == (np.int64(1000) < t).tolist() == [False, False]
    with pytest.raises(OverflowError, match=r"500 does not fit into dtypes\.char"):
        np.int64(500) * t
    assert (np.array([5]) * t).dtype is dtypes.int64  # an array has its dtype


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_by_their_numpy_names(name: str) -> None:
    t = Tensor([[1, 2], [3, 4]])
    x, y = np.array([[5, 6], [7, 8]], np.int32), t.numpy()
    found, wanted = getattr(np, name)(x, t), getattr(np, name)(x, y)
    if name != "divmod":
        found, wanted = (found,), (wanted,)
    for mine, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(mine.numpy(), theirs, rtol=1e-6)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_functions_on_elements(name: str) -> None:
    function: Any = getattr(np, name)
    integers = name in ("gcd", "lcm", "invert")
    values = np.array([6, 4], np.int32) if integers else np.array([0.25, 0.75], np.float32)
    values = values + 1 if name == "arccosh" else values
    found = function(*[Tensor(values)] * function.nin)
    assert type(found) is Tensor
    np.testing.assert_allclose(found.numpy(), function(*[values] * function.nin), rtol=1e-5)
    if function.nin == 2:
        other = values[::-1].copy()
        np.testing.assert_allclose(
            function(other, Tensor(values)).numpy(), function(other, values), rtol=1e-5
        )


X, Y = np.arange(6, dtype=np.float32).reshape(2, 3) - 2, np.ones((2, 3), np.float32)
#: functions of (numpy's functions, a tensor or an array, another)
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda x, y: np.sum(x, axis=0, keepdims=True),
    "sum of all": lambda x, y: np.sum(x),
    "mean": lambda x, y: np.mean(x, 1, dtype=np.float64),
    "prod": lambda x, y: np.prod(x, axis=(0, 1)),
    "max": lambda x, y: np.max(x, axis=1),
    "amin": lambda x, y: np.amin(x, 0),
    "any": lambda x, y: np.any(x, axis=1),
    "all": lambda x, y: np.all(x),
    "var": lambda x, y: np.var(x),
    "std": lambda x, y: np.std(x, axis=1, ddof=1),
    "cumsum": lambda x, y: np.cumsum(x),
    "cumsum along": lambda x, y: np.cumsum(x, axis=-1),
    "cumprod": lambda x, y: np.cumprod(x, 0),
    "argmax": lambda x, y: np.argmax(x),
    "argmin": lambda x, y: np.argmin(x, axis=1, keepdims=True),
    "swapaxes": lambda x, y: np.swapaxes(x, 0, 1),
    "moveaxis": lambda x, y: np.moveaxis(x, 0, 1),
    "fliplr": lambda x, y: np.fliplr(x),
    "tril": lambda x, y: np.tril(x, -1),
    "triu": lambda x, y: np.triu(x),
    "inner": lambda x, y: np.inner(x, y),
    "kron": lambda x, y: np.kron(x, y),
    "vstack": lambda x, y: np.vstack([x, Y]),
    "hstack": lambda x, y: np.hstack((Y, x)),
    "dstack": lambda x, y: np.dstack((Y, x)),
    "column_stack": lambda x, y: np.column_stack((Y, x)),
    "zeros_like": lambda x, y: np.zeros_like(x, dtype=np.int64),
    "ones_like": lambda x, y: np.ones_like(x),
    "full_like": lambda x, y: np.full_like(x, 7),
    "concatenate": lambda x, y: np.concatenate([Y, x], axis=1),
    "concatenate flat": lambda x, y: np.concatenate([x, Y], axis=None),
    "stack": lambda x, y: np.stack([Y, x], axis=-1),
    "where": lambda x, y: np.where(x > 0, x, Y),
    "where of numbers": lambda x, y: np.where(x > 0, 1.0, 0.0),
    "clip": lambda x, y: np.clip(x, -1, 2.5),
    "clip by name": lambda x, y: np.clip(X, a_min=y, a_max=None),
    "sort": lambda x, y: np.sort(-x),
    "sort of all": lambda x, y: np.sort(-x, axis=None),
    "argsort": lambda x, y: np.argsort(-x, axis=0),
    "transpose": lambda x, y: np.transpose(x),
    "transpose by axes": lambda x, y: np.transpose(x, (1, 0)),
    "reshape": lambda x, y: np.reshape(x, (3, -1)),
    "ravel": lambda x, y: np.ravel(x),
    "expand_dims": lambda x, y: np.expand_dims(x, 1),
    "squeeze": lambda x, y: np.squeeze(x[:1]),
    "flip": lambda x, y: np.flip(x),
    "flip along": lambda x, y: np.flip(x, 1),
    "roll": lambda x, y: np.roll(x, 1),
    "roll along": lambda x, y: np.roll(x, 1, axis=1),
    "repeat": lambda x, y: np.repeat(x, 2),
    "repeat along": lambda x, y: np.repeat(x, 2, axis=0),
    "tile": lambda x, y: np.tile(x, (2, 1)),
    "round": lambda x, y: np.round(x / 3, 1),
    "einsum": lambda x, y: np.einsum("ij,ij->i", Y, x),
    "tensordot": lambda x, y: np.tensordot(Y, x, axes=([0, 1], [0, 1])),
    "outer": lambda x, y: np.outer(x, Y),
    "dot": lambda x, y: np.dot(X.T, y),
    "dot of a line": lambda x, y: np.dot(x, Y[0]),
    "dot of a number": lambda x, y: np.dot(2.0, x),
    "broadcast_to": lambda x, y: np.broadcast_to(x, (2, 2, 3)),
    "norm": lambda x, y: np.linalg.norm(x),
    "norm along": lambda x, y: np.linalg.norm(x, ord=1, axis=1),
}


@pytest.mark.parametrize("name", CALLS)
def test_functions_of_numpy_make_tensors(name: str) -> None:
    found, wanted = CALLS[name](Tensor(X), Tensor(Y)), CALLS[name](X, Y)
    assert type(found) is Tensor
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5)


def test_what_only_looks_may_look() -> None:
    w = Tensor([1.0, 2.0], requires_grad=True)
    assert (np.shape(w), np.ndim(w), np.size(w)) == ((2,), 1, 2)
    assert np.allclose(w, [1.0, 2.0])
    assert np.array_equal(w, w)
    np.testing.assert_allclose(w, [1.0, 2.0])
    assert np.asarray(w).tolist() == [1.0, 2.0]
    assert np.percentile(w.detach(), 50) == 1.5  # of values numpy computes what no method does
    with no_grad():
        assert np.percentile(w, 50) == 1.5


def test_an_array_is_written_from_values_only() -> None:
    array = np.ones(2)
    same = array
    array += Tensor([1.0, 2.0])
    array *= np.float64(2)
    assert (array is same, array.tolist()) == (True, [4.0, 6.0])
    np.add.at(array, [0], Tensor([1.0]))
    np.multiply(array, Tensor([2.0, 0.0]), out=array)
    assert array.tolist() == [10.0, 0.0]


W = Tensor([1.0, 2.0], requires_grad=True)
REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: operator.iadd(np.ones(2), W), r"lose the gradient.*array = array \+ tensor"),
    (lambda: operator.imatmul(np.ones((2, 2)), W.reshape(2, 1)), "lose the gradient"),
    (lambda: np.add(1, W, out=np.ones(2)), "lose the gradient"),
    (lambda: np.copyto(np.ones(2), W), "np.copyto would lose the gradient"),
    (lambda: np.percentile(W, 50), r"np.percentile would lose the gradient.*tensor.detach\(\).numpy\(\)"),
    (lambda: np.median(W), r"write tensor.median\(...\)"),
    (lambda: np.add(1, 2, out=W), r"write tensor.assign\(...\)"),
    (lambda: np.spacing(W), r"np.spacing takes no Tensors; np.spacing of tensor.detach\(\).numpy\(\)"),
    (lambda: np.sign(W), r"np.sign takes no Tensors; write tensor.sign\(...\)"),
    (lambda: np.add.reduce(W), r"write tensor.sum\(...\)"),
    (lambda: np.add(W, 1, dtype="float64"), "np.add of Tensors takes no dtype"),
    (lambda: np.sum(W, where=[True, False]), "np.sum of Tensors takes a, axis, dtype, keepdims"),
    (lambda: np.array(["a", "b"]) + W, "numpy dtype str"),
    (lambda: np.array([1j, 2]) * W, "numpy dtype complex128"),
    (lambda: np.array([None, 2]) * W, "numpy dtype object"),
    (lambda: W * np.ma.array([1.0, 2.0], mask=[0, 1]), "a Tensor has no mask"),
]


@pytest.mark.parametrize(("call", "text"), REFUSED, ids=range(len(REFUSED)))
def test_what_would_lose_something_is_refused(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(TypeError, match=text):
        call()


def test_integers_beyond_a_dtype_compare_as_numbers_do() -> None:
    for dtype in (dtypes.bool, dtypes.int8, dtypes.int64, dtypes.uint64):
        greatest = Tensor([dtypes.max(dtype), 0], dtype=dtype)
        for number in (2**64, -(2**64), 10**30):
            assert (greatest < number).tolist() == [number > 0] * 2
            assert (number <= greatest).tolist() == [number < 0] * 2
            assert (greatest == number).tolist() == [False] * 2

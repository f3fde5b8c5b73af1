"""Creation, dtypes, promotion, and what is special about single values.

Errors at the call, in the user's words.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor, Variable, dtypes
from lazygrad.dtype import least_upper_dtype, numpy_name, set_default_dtype
from lazygrad.ir.ops import Ops
from tests.tensor.support import data, same, value

# *** creation

CREATED: dict[str, tuple[Callable[[], Tensor], Any]] = {
    "full": (lambda: Tensor.full((2, 3), 7), np.full((2, 3), 7, np.int32)),
    "full of a float": (lambda: Tensor.full((2,), 1.5), np.full((2,), 1.5, np.float32)),
    "full of a bool": (lambda: Tensor.full((), True), np.array(True)),
    "zeros": (lambda: Tensor.zeros(2, 3), np.zeros((2, 3), np.float32)),
    "zeros of a tuple": (lambda: Tensor.zeros((2, 3), dtype="int8"), np.zeros((2, 3), np.int8)),
    "ones": (lambda: Tensor.ones(4, dtype=dtypes.float64), np.ones(4)),
    "empty": (lambda: Tensor.empty(2, 2), np.zeros((2, 2), np.float32)),
    "zeros_like": (lambda: Tensor([[1, 2]]).zeros_like(), np.zeros((1, 2), np.int32)),
    "ones_like": (lambda: Tensor([[1.5, 2]]).ones_like(dtype="int32"), np.ones((1, 2), np.int32)),
    "full_like": (lambda: Tensor([1.5, 2]).full_like(3), np.full(2, 3, np.float32)),
    "arange": (lambda: Tensor.arange(5), np.arange(5, dtype=np.int32)),
    "arange from to": (lambda: Tensor.arange(2, 11, 3), np.arange(2, 11, 3, dtype=np.int32)),
    "arange down": (lambda: Tensor.arange(5, -5, -3), np.arange(5, -5, -3, dtype=np.int32)),
    "arange of nothing": (lambda: Tensor.arange(5, 5), np.arange(0, dtype=np.int32)),
    "arange of floats": (lambda: Tensor.arange(0.5, 3, 0.25), np.arange(0.5, 3, 0.25, dtype=np.float32)),
    "arange in a dtype": (lambda: Tensor.arange(4, dtype="float16"), np.arange(4, dtype=np.float16)),
    "arange far": (lambda: Tensor.arange(2**40, 2**40 + 3), np.arange(2**40, 2**40 + 3)),
    "linspace": (lambda: Tensor.linspace(-1, 2, 7), np.linspace(-1, 2, 7, dtype=np.float32)),
    "linspace of one": (lambda: Tensor.linspace(3, 9, 1), np.array([3], np.float32)),
    "eye": (lambda: Tensor.eye(3), np.eye(3, dtype=np.float32)),
    "eye wide": (lambda: Tensor.eye(2, 4, dtype="int32"), np.eye(2, 4, dtype=np.int32)),
}


@pytest.mark.parametrize("name", CREATED)
def test_creation(name: str) -> None:
    make, expected = CREATED[name]
    same(make(), expected)


def test_creation_takes_no_memory() -> None:
    for tensor in (
        Tensor.zeros(3),
        Tensor.eye(3),
        Tensor.arange(3),
        Tensor.ones(2, 3).tril(),
        Tensor.rand(5),
    ):
        assert not any(n.op is Ops.BUFFER for n in tensor.uop.toposort())


def test_linspace_ends_exactly() -> None:
    x = value(Tensor.linspace(0.1, 0.7, 1001))
    assert (x[0], x[-1]) == (np.float32(0.1), np.float32(0.7))


def test_requires_grad() -> None:
    assert Tensor.zeros(3, requires_grad=True).requires_grad
    assert Tensor.rand(3, requires_grad=True).requires_grad
    assert not Tensor.ones(3).requires_grad


def test_symbolic_sizes() -> None:
    n = Variable("n", 1, 8).bind(5)
    assert Tensor.arange(n).shape == (n,)
    assert Tensor.arange(n).sum().item() == 10
    assert Tensor.ones(n, 2).sum().item() == 10.0
    assert (Tensor.arange(10)[:n] + Tensor.arange(n)).sum().item() == 20
    assert Tensor.arange(10).cast("float32")[:n].mean().item() == 2.0


def test_a_size_is_bound_and_becomes_a_number_again() -> None:
    """The elements are as many as the bound value says; gradients flow through."""
    n = Variable("n", 1, 8)
    for size in (4, 2):
        x = Tensor.arange(3 * size).cast("float32").reshape(3, size).requires_grad_()
        seen = x.reshape(3, n.bind(size))
        assert (seen * 2).reshape(size * 3).tolist() == [2.0 * i for i in range(3 * size)]
        assert (seen.T @ seen).reshape(size, size).tolist() == (x.T @ x).tolist()
        (seen * seen).sum().backward()
        assert x.grad.tolist() == (x * 2).tolist()
    with pytest.raises(ValueError, match=r"cannot reshape \(3, 2\) into \(3, n=4\): 6 elements into n=4\*3"):
        Tensor.ones(3, 2).reshape(3, n.bind(4))


# *** dtypes

NUMBERS = [
    dtypes.bool,
    dtypes.int8,
    dtypes.uint8,
    dtypes.int32,
    dtypes.int64,
    dtypes.float16,
    dtypes.float32,
    dtypes.float64,
]


@pytest.mark.parametrize(("a", "b"), list(itertools.product(NUMBERS, NUMBERS)), ids=str)
def test_promotion(a: Any, b: Any) -> None:
    x, y = Tensor([1, 0], dtype=a), Tensor([[1], [1]], dtype=b)
    assert (x + y).dtype is least_upper_dtype(a, b)
    assert (x == y).dtype is dtypes.bool
    assert (x + y).shape == (2, 2)


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_numbers_are_weak(dtype: Any) -> None:
    x = Tensor([1, 0], dtype=dtype)
    assert (x + True).dtype is dtype
    assert (x + 1).dtype is (dtypes.int32 if dtype is dtypes.bool else dtype)
    assert (x * 1.5).dtype is (dtype if dtypes.is_float(dtype) else dtypes.float32)
    assert (1 / x).dtype is (dtype if dtypes.is_float(dtype) else dtypes.float32)
    assert x.exp().dtype is (dtype if dtypes.is_float(dtype) else dtypes.float32)
    assert (x > 0.5).where(x, 2).dtype is (dtypes.int32 if dtype is dtypes.bool else dtype)


@pytest.mark.parametrize("dtype", NUMBERS[1:], ids=str)
@pytest.mark.parametrize(
    "op",
    [operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod],
    ids=lambda o: o.__name__,
)
def test_arithmetic_in_every_dtype(op: Any, dtype: Any) -> None:
    a = np.array([7, 3, 100, 1, 0], numpy_name(dtype))
    b = np.array([2, 5, 30, 1, 7], numpy_name(dtype))
    same(op(Tensor(a), Tensor(b)), op(a, b), rtol=1e-3)


def test_integer_edges() -> None:
    x = Tensor([5, -5, 0, -(2**31)])
    assert (x // 0).tolist() == [0, 0, 0, 0]
    assert (x % 0).tolist() == [0, 0, 0, 0]
    assert (x // -1).tolist() == [-5, 5, 0, -(2**31)]
    assert (x + (2**31 - 1)).tolist()[0] == -(2**31) + 4
    assert (Tensor([1, -1]) << 32).tolist() == [0, 0]
    assert (Tensor([1, -1]) >> 32).tolist() == [0, -1]
    assert Tensor([-7, 7]).idiv(2).tolist() == [-3, 3]
    assert Tensor([-7, 7]).div(2, rounding_mode="floor").tolist() == [-4, 3]
    assert Tensor([250], dtype="uint8").add(10).tolist() == [4]


def test_casts() -> None:
    x = Tensor([1.9, -1.9, np.inf, -np.inf, np.nan, 3e9])
    assert x.int().tolist() == [1, -1, 2**31 - 1, -(2**31), 0, 2**31 - 1]
    assert x.bool().tolist() == [True] * 6
    assert Tensor([300, -1]).cast("uint8").tolist() == [44, 255]
    for name, dtype in [
        ("half", "float16"),
        ("float", "float32"),
        ("double", "float64"),
        ("int", "int32"),
        ("long", "int64"),
    ]:
        assert getattr(Tensor([1]), name)().dtype is getattr(dtypes, dtype)


def test_comparison_with_a_number_out_of_range() -> None:
    x = Tensor([1, -128], dtype="int8")
    assert (x < 300).tolist() == [True, True]
    assert (x == 256).tolist() == [False, False]
    assert (Tensor([5], dtype="uint8") > -1).tolist() == [True]


def test_default_dtypes() -> None:
    try:
        set_default_dtype("float64")
        set_default_dtype("int64")
        assert Tensor.zeros(2).dtype is dtypes.float64
        assert (Tensor([1, 2]) / 2).dtype is dtypes.float64
        assert Tensor.arange(3).dtype is dtypes.int64
    finally:
        set_default_dtype("float32")
        set_default_dtype("int32")


def test_accumulation() -> None:
    assert Tensor([200, 100], dtype="uint8").sum().item() == 300
    assert Tensor.full((3000,), 1.0, dtype="float16").sum().item() == 3000.0
    half = Tensor(np.full((1, 4096), 0.1, np.float16))
    assert abs((half @ half.T).item() - 4096 * float(np.float16(0.1)) ** 2) < 0.05
    assert (half @ half.T).dtype is dtypes.float16
    assert half.matmul(half.T, dtype="float32").dtype is dtypes.float32
    assert Tensor([1, 2]).sum(dtype="float64").dtype is dtypes.float64
    assert Tensor([True, True, False]).sum().item() == 2


def test_reductions_over_nothing() -> None:
    x = Tensor.zeros(2, 0)
    assert x.sum(1).tolist() == [0, 0]
    assert x.prod().item() == 1
    assert x.all().item() is True
    assert x.any().item() is False
    assert np.isnan(x.mean(1).numpy()).all()
    assert x.sum(0).shape == (0,)
    with pytest.raises(ValueError, match=r"max over no elements: axis 1 of shape \(2, 0\) has size 0"):
        x.max(1)


def test_negative_zero_and_nan_survive_joining_and_padding() -> None:
    x = Tensor([-0.0, np.nan, np.inf])
    joined = value(x.cat(x, x))
    assert np.signbit(joined[::3]).all()
    assert np.isnan(joined[1::3]).all()
    padded = value(x.pad((1, 1), value=-0.0))
    assert np.signbit(padded[[0, 1, 4]]).all()


def test_joining_many() -> None:
    rows = [Tensor(np.full((3,), i, np.float32)) for i in range(70)]
    same(Tensor.stack(rows), np.arange(70, dtype=np.float32)[:, None].repeat(3, 1))
    same(Tensor.cat([Tensor([1]), Tensor([2.5])], 0), np.array([1, 2.5], np.float32))


def test_large_windows() -> None:
    x = np.arange(40, dtype=np.float32)
    for k, s, d in itertools.product((1, 2, 5), (1, 2, 3, 7), (1, 2, 4)):
        places = (40 - d * (k - 1) - 1) // s + 1
        expected = x[np.arange(places)[:, None] * s + np.arange(k) * d]
        same(Tensor(x)._pool((k,), s, d), expected)


def test_pool_of_the_tutorial() -> None:
    x, ones = Tensor.arange(16).reshape(1, 1, 4, 4), Tensor.ones(1, 1, 3, 3)
    assert x.cast("float32").conv2d(ones).flatten().tolist() == [45, 54, 81, 90]
    assert x._pool((3, 3), 1, 1).shape == (1, 1, 2, 2, 3, 3)
    assert x._pool((2, 2), 2, 1).shape == (1, 1, 2, 2, 2, 2)
    assert x._pool((2, 2), 1, 2)[0, 0, 0, 0].flatten().tolist() == [0, 2, 8, 10]


def test_sample_of_the_front_end_page() -> None:
    t = Tensor([1, 2, 3, 4, 5])
    np.testing.assert_allclose(
        ((t + 1) * 2 * t).relu().log_softmax().numpy(), [-56, -48, -36, -20, 0], atol=1e-5
    )


def test_in_place_operators() -> None:
    x = Tensor([1.0, 2.0, 3.0]).realize()
    y = x
    x += 1
    x *= 2
    x -= 1
    x /= 2
    assert y is x
    assert x.tolist() == [1.5, 2.5, 3.5]
    n = Tensor([5, 6]).realize()
    n //= 2
    n <<= 1
    n |= 1
    assert n.tolist() == [5, 7]
    with pytest.raises(
        TypeError, match=r"a result of dtypes\.float cannot be written into a tensor of dtypes\.int"
    ):
        n /= 2


def test_operators_with_arrays_and_lists() -> None:
    x = Tensor([1.0, 2.0])
    assert (x + np.array([1.0, 1.0], np.float32)).tolist() == [2, 3]
    assert (x * [3, 4]).tolist() == [3, 8]
    assert (2 - x).tolist() == [1, 0]
    assert (x @ [1.0, 1.0]).item() == 3


def test_sequential() -> None:
    assert Tensor([1.0, -1.0]).sequential([Tensor.relu, lambda x: x + 1, Tensor.sum]).item() == 3


# *** mistakes

X = Tensor(data(2, 3))
MISTAKES: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: X + Tensor(data(4)), ValueError, r"\(2, 3\), \(4,\)"),
    (
        lambda: X @ X,
        ValueError,
        r"cannot multiply matrices of shapes \(2, 3\) and \(2, 3\): the inner sizes 3 and 2 differ",
    ),
    (lambda: X @ Tensor(1.0), ValueError, "at least one axis"),
    (lambda: X.reshape(4), ValueError, r"cannot reshape \(2, 3\) into \(4,\): 6 elements into 4"),
    (lambda: X.sum(2), IndexError, r"axis 2 is out of range for shape \(2, 3\): its axes are from -2 to 1"),
    (lambda: X.sum((0, 0)), ValueError, "twice"),
    (lambda: X.sum(0, dim=1), TypeError, "axis or dim"),
    (lambda: X.sum("a"), TypeError, "axis must be an int or a sequence of ints, not 'a'"),
    (lambda: X.permute(0), ValueError, r"cannot permute \(2, 3\)"),
    (lambda: X.expand(4, 3), ValueError, r"cannot broadcast \(2, 3\) to \(4, 3\)"),
    (
        lambda: X.cat(Tensor(data(2, 4)), dim=0),
        ValueError,
        r"equal sizes on all other axes, not \(2, 3\), \(2, 4\)",
    ),
    (lambda: X.cat([1]), TypeError, r"cat takes tensors, not 1"),
    (lambda: Tensor.stack(X, X[0]), ValueError, r"stack needs equal shapes, not \(2, 3\) and \(3,\)"),
    (lambda: Tensor.cat(), TypeError, "cat needs a Tensor"),
    (lambda: X.split(0), ValueError, "positive size, not 0"),
    (lambda: X.split([1, 2]), ValueError, r"split sizes \(1, 2\) add up to 3, axis 0 has size 2"),
    (lambda: X.pad((1,)), ValueError, "pairs"),
    (lambda: X.pad((3, 0), mode="reflect"), ValueError, "takes at most 2"),
    (lambda: X.pad((3, 0), mode="mirror"), ValueError, "not 'mirror'"),
    (lambda: -Tensor([True]), TypeError, "use ~"),
    (lambda: Tensor([True]) - Tensor([False]), TypeError, r"use \^"),
    (lambda: X & 1, TypeError, "bits of dtypes.float and dtypes.float"),
    (lambda: ~X, TypeError, "bits of dtypes.float"),
    (lambda: Tensor([1]) ** -1, ValueError, "an integer tensor to the power -1"),
    (lambda: Tensor([1], dtype="int8") + 300, OverflowError, "300 does not fit into dtypes.char"),
    (lambda: X + "a", TypeError, "'a'"),
    (lambda: X + None, TypeError, "not None"),
    (lambda: X.where(None, X), TypeError, "not None"),
    (lambda: Tensor([1, 2**31]), OverflowError, "2147483648 does not fit into dtypes.int"),
    (lambda: Tensor([1, -129], dtype="int8"), OverflowError, "-129 does not fit into dtypes.char"),
    (lambda: Tensor([float("nan")], dtype="int"), OverflowError, "nan does not fit into dtypes.int"),
    (lambda: Tensor([1.5, 10**400]), OverflowError, "an integer of the list does not fit into dtypes.float"),
    (lambda: X.clamp(), ValueError, "min or max"),
    (lambda: X.masked_fill(X, 1), TypeError, "bool mask"),
    (lambda: X.gelu("erf"), ValueError, "'none' or 'tanh', not 'erf'"),
    (lambda: X.div(2, rounding_mode="up"), ValueError, "not 'up'"),
    (lambda: Tensor.arange(1, 5, 0), ValueError, "a step other than 0"),
    (lambda: Tensor.arange("a"), TypeError, "numbers, not"),
    (lambda: Tensor.zeros(2, -1), ValueError, r"not be negative, as in \(2, -1\)"),
    (lambda: Tensor.full((2,), "a"), TypeError, "fill_value must be a number, not 'a'"),
    (lambda: Tensor.linspace(0, 1, -1), ValueError, "not -1"),
    (lambda: Tensor.einsum("ij,jk->ik", X, X), ValueError, "letter j has sizes 3 and 2"),
    (lambda: Tensor.einsum("ij->ik", X), ValueError, "letter 'k' must occur"),
    (lambda: Tensor.einsum("ijk->k", X), ValueError, r"does not name the axes of shape \(2, 3\)"),
    (lambda: Tensor.einsum("ij,ij", X), ValueError, "names 2 operands, 1 are given"),
    (
        lambda: Tensor(data(1, 3, 5, 5)).conv2d(Tensor(data(2, 4, 3, 3))),
        ValueError,
        "3 channels, the weights take 4",
    ),
    (
        lambda: Tensor(data(1, 3, 2, 2)).conv2d(Tensor(data(2, 3, 3, 3))),
        ValueError,
        "a window of 3 elements does not fit",
    ),
    (
        lambda: Tensor(data(1, 3, 5, 5)).conv2d(Tensor(data(2, 3, 3, 3)), stride=(1, 2, 3)),
        ValueError,
        "stride must be one number or 2",
    ),
    (lambda: X.conv2d(Tensor(data(2, 3, 3, 3))), ValueError, "both have axes"),
    (
        lambda: X.cross_entropy(Tensor([1])),
        ValueError,
        r"classes of shape \(1,\) for logits of shape \(2, 3\): \(2,\) is needed",
    ),
    (lambda: X.cross_entropy(Tensor([1.0, 2.0])), TypeError, "class numbers must be integers"),
    (lambda: X.cross_entropy(Tensor([1, 2]), "max"), ValueError, "mean, sum, none, not 'max'"),
    (lambda: X.mse_loss(Tensor.ones(2)), ValueError, r"target of shape \(2, 3\), not \(2,\)"),
    (lambda: X.one_hot(3), TypeError, "needs integers"),
    (lambda: X.tril().diagonal(0, 1, 1), ValueError, "two different axes"),
    (lambda: X[0].tril(), ValueError, "at least two axes"),
    (lambda: X.to("PYTHON") + X.to("CPU"), ValueError, "tensors on PYTHON and CPU cannot be combined"),
    (lambda: X.sort(2), IndexError, "axis 2"),
    (lambda: X.topk(9), ValueError, "topk takes from 0 to"),
    (lambda: X.cast("flaot"), TypeError, "did you mean 'float'"),
    (lambda: X.flatten(1, 0), ValueError, "start_dim <= end_dim"),
    (lambda: X.roll((1, 2)), ValueError, "needs the axes"),
    (lambda: X.meshgrid(X), ValueError, "1-d tensors"),
    (lambda: X.unfold(1, 5, 1), ValueError, "does not fit"),
]


def test_a_variable_without_a_value() -> None:
    rows = Variable("rows", 1, 5)
    assert "CPU (rows, 2) float" in repr(Tensor.ones(rows, 2))
    with pytest.raises(ValueError, match=r"Variable rows has no value: bind it .* rows.bind"):
        Tensor.ones(rows, 2).sum().realize()
    assert Tensor.ones(rows.bind(3), 2).sum().item() == 6


def test_nothing_equals_a_tensor_but_numbers() -> None:
    assert (X == None) is False  # noqa: E711
    assert (X != None) is True  # noqa: E711
    assert X not in [None, "x"]


@pytest.mark.parametrize(("call", "kind", "message"), MISTAKES, ids=range(len(MISTAKES)))
def test_mistakes(call: Callable[[], Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()


def test_what_is_asked_by_other_names() -> None:
    x = Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert (x.nelement(), x.ndimension(), x.itemsize) == (6, 2, 4)
    assert (x.byte().dtype, x.char().dtype) == (dtypes.uint8, dtypes.int8)
    assert [Tensor([1], dtype=name).is_signed() for name in ("float", "int8", "uint16", "bool")] == [
        True,
        True,
        False,
        False,
    ]
    assert [Tensor(one).is_nonzero() for one in (0.0, 0.5, False)] == [False, True, False]
    assert x.is_same_size(x + 1)
    assert not x.is_same_size(x[0])
    parts = [part.shape for part in x.split_with_sizes([1, 2], 1)]
    assert parts == [part.shape for part in x.unsafe_split_with_sizes([1, 2], dim=1)] == [(2, 1), (2, 2)]
    assert len(x.unsafe_chunk(3, 1)) == len(x.unsafe_split(1, 1)) == 3


def test_a_narrow_copy_has_memory_of_its_own() -> None:
    x = Tensor([1, 2, 3]).realize()
    part = x.narrow_copy(0, 1, 2).realize()
    x.zero_()
    assert part.tolist() == [2, 3]


@pytest.mark.parametrize(
    ("fxn", "expected"),
    [
        (lambda n, x: n + x, [5.5, 4.0]),
        (lambda n, x: n - x, [0.5, 2.0]),
        (lambda n, x: n * x, [7.5, 3.0]),
        (lambda n, x: n / x, [1.2, 3.0]),
        (lambda n, x: n // x, [1.0, 3.0]),
        (lambda n, x: n % x, [0.5, 0.0]),
        (lambda n, x: n < x, [False, False]),
        (lambda n, x: n >= x, [True, True]),
        (lambda n, x: n > x * 1.2, [False, True]),
    ],
)
def test_a_variable_on_the_left_of_a_tensor(fxn, expected) -> None:
    """The tensor answers: it is not read for its value, as a number beside a node is."""
    found = fxn(Variable("n", 1, 9).bind(3), Tensor([2.5, 1.0])).tolist()
    assert found == pytest.approx(expected)


def test_a_tensor_is_no_operand_of_a_node() -> None:
    with pytest.raises(TypeError, match="a node takes nodes and numbers beside it, not Tensor"):
        Variable("n", 1, 9).maximum(Tensor([2.5]))

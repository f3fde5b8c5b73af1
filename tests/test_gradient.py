"""Gradients: every op has a cell, every rule agrees with finite differences, first and second order."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lazygrad import Function, Tensor, dtypes
from lazygrad.gradient import GRADIENTS, NO_GRADIENT, filled, gradient
from lazygrad.ir.args import CollectiveArg, ReduceArg
from lazygrad.ir.ops import OPS, Kind, Ops
from lazygrad.ir.uop import UOp
from lazygrad.shape.rules import shape_of
from tests.tensor.graph_oracle import evaluate
from tests.tensor.support import check_gradients, data

#: Ops of later forms only: a tensor graph holds none of them.
LATER = frozenset(
    (
        Ops.SINK,
        Ops.NOOP,
        Ops.VIEW,
        Ops.DEFINE_GLOBAL,
        Ops.DEFINE_LOCAL,
        Ops.DEFINE_ACC,
        Ops.STAGE,
        Ops.ONE_PASS,
        Ops.SPECIAL,
    )
    + (
        Ops.RANGE,
        Ops.ENDRANGE,
        Ops.IF,
        Ops.ENDIF,
        Ops.BARRIER,
        Ops.BREAK,
        Ops.FETCH,
        Ops.COMMIT,
        Ops.WAIT,
        Ops.PREFETCH,
        Ops.INDEX,
        Ops.STORE,
        Ops.LOAD,
        Ops.REDUCE,
    )
    + (Ops.VECTORIZE, Ops.GEP, Ops.PACK, Ops.DOT, Ops.WMMA, Ops.SHUFFLE, Ops.DEFERRED)
)


def test_every_op_of_a_tensor_graph_has_a_cell() -> None:
    assert set(GRADIENTS) == set(Ops) - LATER


def uop_op(op: Ops, *more: Any) -> Callable[..., Tensor]:
    """A node built directly, for ops that no method makes alone."""

    def apply(*tensors: Tensor) -> Tensor:
        return Tensor._make(UOp(op, tensors[0].dtype, tuple(t.uop for t in tensors), *more), *tensors)

    return apply


A, B = data(2, 3, seed=1, dtype=np.float64), data(2, 3, seed=2, dtype=np.float64)
POSITIVE = data(2, 3, seed=3, low=0.3, high=2.0, dtype=np.float64)
LINE = data(5, seed=4, dtype=np.float64)
INDEX = Tensor(np.array([[3, 0, 3], [1, 9, 0]]))
PLACES = Tensor(np.array([2, 0, 2, 7]))
VALUES = data(4, seed=5, dtype=np.float64)


class Product(Function):
    """A gradient of one's own; more in tests/tensor/test_function.py."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        self.save_for_backward(a, b)
        return a * b

    def backward(self, grad: Tensor) -> tuple[Tensor, Tensor]:
        a, b = self.saved_tensors
        return grad * b, grad * a


RULES: dict[Any, tuple[Callable[..., Tensor], list[Any]]] = {
    Ops.ADD: (lambda a, b: a + b * b, [A, B]),
    Ops.SUB: (lambda a, b: a * a - b, [A, B]),
    Ops.MUL: (lambda a, b: a * b, [A, B]),
    Ops.MULACC: (uop_op(Ops.MULACC), [A, B, A + 1]),
    Ops.NEG: (lambda a: -(a * a), [A]),
    Ops.FDIV: (lambda a, b: a / b, [A, POSITIVE]),
    Ops.FMOD: (lambda a, b: a.fmod(b) * a, [A * 3, POSITIVE]),
    Ops.RECIP: (lambda a: a.reciprocal(), [POSITIVE]),
    Ops.POW: (uop_op(Ops.POW), [POSITIVE, B]),
    Ops.MAX: (lambda a, b: a.maximum(b) * a, [A, B]),
    Ops.MIN: (lambda a, b: a.minimum(b) * a, [A, B]),
    Ops.WHERE: (lambda a, b: (a > 0).where(a * a, a * b), [A, B]),
    Ops.CAST: (lambda a: (a * a).cast(dtypes.float64) * a, [A]),
    Ops.SQRT: (lambda a: a.sqrt(), [POSITIVE]),
    Ops.EXP: (lambda a: a.exp(), [A]),
    Ops.LOG: (lambda a: a.log(), [POSITIVE]),
    Ops.EXP2: (lambda a: a.exp2(), [A]),
    Ops.LOG2: (lambda a: a.log2(), [POSITIVE]),
    Ops.SIN: (lambda a: a.sin(), [A * 3]),
    Ops.COS: (lambda a: a.cos(), [A * 3]),
    Ops.TANH: (lambda a: a.tanh(), [A]),
    Ops.ERF: (lambda a: a.erf(), [A]),
    Ops.TRUNC: (lambda a: a.trunc() * a * a, [A]),
    Ops.RESHAPE: (lambda a: a.reshape(3, 2) * a.reshape(3, 2), [A]),
    Ops.EXPAND: (lambda a: (a.reshape(2, 1, 3).expand(2, 4, 3) * Tensor(data(2, 4, 3))) ** 2, [A]),
    Ops.PERMUTE: (lambda a: a.permute(1, 0) ** 2, [A]),
    Ops.PAD: (lambda a: a.pad(((1, 2), (0, 1))) ** 2, [A]),
    Ops.SHRINK: (lambda a: a.shrink(((0, 1), (1, 3))) ** 2, [A]),
    Ops.FLIP: (lambda a: a.flip(1) * a, [A]),
    (Ops.REDUCE_AXIS, Ops.ADD): (lambda a: a.sum(1) ** 2, [A]),
    (Ops.REDUCE_AXIS, Ops.MUL): (lambda a: a.prod(1), [A]),
    (Ops.REDUCE_AXIS, Ops.MUL, "axes"): (
        lambda a: a.reshape(2, 3, 2).prod((0, 2)),
        [data(2, 6, dtype=np.float64)],
    ),
    (Ops.REDUCE_AXIS, Ops.MAX): (lambda a: a.max(1) ** 2, [A]),
    (Ops.REDUCE_AXIS, Ops.MIN): (lambda a: a.min(0) ** 2, [A]),
    (Ops.SCAN, Ops.ADD): (lambda a: a.cumsum(1) ** 2, [A]),
    (Ops.SCAN, Ops.MUL): (lambda a: a.cumprod(0) ** 2, [A]),
    (Ops.SCAN, Ops.MAX): (lambda a: a.cummax(1) ** 2, [A]),
    (Ops.SCAN, Ops.MIN): (lambda a: a.cummin(0) ** 2, [A]),
    (Ops.SCAN, Ops.MULACC): (
        lambda a, b: uop_op(Ops.SCAN, ReduceArg(Ops.MULACC, (1,)))(a, b) ** 2,
        [A, B],
    ),
    Ops.GATHER: (lambda a: a[INDEX] ** 2, [LINE]),
    (Ops.SCATTER, None): (
        lambda a, v: uop_op(Ops.SCATTER)(a, PLACES, v) ** 2,
        [LINE, VALUES],
    ),
    (Ops.SCATTER, Ops.ADD): (lambda a, v: uop_op(Ops.SCATTER, Ops.ADD)(a, PLACES, v) ** 2, [LINE, VALUES]),
    (Ops.SCATTER, Ops.MAX): (lambda a, v: uop_op(Ops.SCATTER, Ops.MAX)(a, PLACES, v) ** 2, [LINE, VALUES]),
    (Ops.SCATTER, Ops.MIN): (lambda a, v: uop_op(Ops.SCATTER, Ops.MIN)(a, PLACES, v) ** 2, [LINE, VALUES]),
    Ops.CONTIGUOUS: (lambda a: a.exp().contiguous() * a, [A]),
    Ops.COPY: (lambda a: a.to("PYTHON").to("CPU") * a, [A]),
    (Ops.MULTI, "parts"): (lambda a: a.shard(("CPU", "CPU:1"), axis=1).to("CPU") ** 2, [A]),
    (Ops.MULTI, "copies"): (lambda a: a.shard(("CPU", "CPU:1")).to("CPU") ** 2, [A]),
    Ops.ASSIGN: (lambda b: uop_op(Ops.ASSIGN)(Tensor(A), b) * b, [B]),
    Ops.FUNCTION: (lambda a, b: Product.apply(a, b) * a, [A, B]),
}


@pytest.mark.parametrize("key", RULES, ids=str)
def test_rule_against_finite_differences(key: Any) -> None:
    function, arrays = RULES[key]
    check_gradients(function, arrays)


def test_every_rule_is_tested() -> None:
    tested = {key[0] if isinstance(key, tuple) else key for key in RULES}
    refused = {Ops.COLLECTIVE}  # `test_what_ranks_send_has_no_gradient`
    assert tested | refused == {op for op, rule in GRADIENTS.items() if rule is not NO_GRADIENT}


def test_what_ranks_send_has_no_gradient() -> None:
    x = Tensor.ones(2).uop
    sent = UOp(Ops.COLLECTIVE, x.dtype, (x,), CollectiveArg("all_gather", None, ("CPU",), 0, (), (), (2,)))
    with pytest.raises(NotImplementedError, match="the gradient of all_gather"):
        GRADIENTS[Ops.COLLECTIVE](x, sent)


def test_a_gradient_asked_for_after_the_value_was_computed() -> None:
    x = Tensor([3.0], requires_grad=True)
    y = (x * x).realize()
    (dx,) = y.sum().gradient(x)
    assert dx.tolist() == [6.0]


def test_nothing_flows_through_integers() -> None:
    x = Tensor([1.5, 2.5], requires_grad=True)
    y = (x.cast(dtypes.int).cast(dtypes.float) * x).sum()
    np.testing.assert_array_equal(evaluate(y.gradient(x)[0].uop), [1, 2])
    node = x.uop.cast(dtypes.int).cast(dtypes.float)
    assert gradient(node, filled((2,), dtypes.float, 1.0), [x.uop]) == {}


def test_detach_stops() -> None:
    x = Tensor([2.0, 3.0], requires_grad=True)
    np.testing.assert_array_equal(evaluate((x.detach() * x).sum().gradient(x)[0].uop), [2, 3])


def test_a_target_in_the_middle() -> None:
    x = Tensor([2.0, 3.0], requires_grad=True)
    y = x * x
    z = (y.reshape(1, 2) * 3).sum()
    gy, gx = z.gradient(y, x)
    np.testing.assert_array_equal(evaluate(gy.uop), [3, 3])
    np.testing.assert_array_equal(evaluate(gx.uop), [12, 18])


def test_nothing_flows_through_a_leaf() -> None:
    x = Tensor([2.0, 3.0], requires_grad=True)
    y = x * x
    z = (y * x).sum().uop
    found = gradient(z, UOp.const(dtypes.float, 1.0), [x.uop, y.uop], leaves={y.uop})
    np.testing.assert_array_equal(evaluate(found[x.uop]), [4, 9])  # that of y, which is of x, is not in it
    np.testing.assert_array_equal(evaluate(found[y.uop]), [2, 3])


def test_only_what_is_asked_for_is_built() -> None:
    x, y = Tensor([1.0, 2.0], requires_grad=True), Tensor([3.0, 4.0], requires_grad=True)
    product = (x * y).sin().sum()
    (gx,) = product.gradient(x)
    ones = {n for n in gx.uop.toposort() if n.op is Ops.MUL and n.src[1] is x.uop}
    assert not ones - set(product.uop.toposort()), "the gradient of y was built too"


# *** edges, as in PyTorch unless a reason is given


def slope(function: Callable[[Tensor], Tensor], at: Any) -> Any:
    x = Tensor(np.array(at, dtype=np.float64), requires_grad=True)
    return evaluate(function(x).sum().gradient(x)[0].uop).tolist()


def test_equals_share() -> None:
    assert slope(lambda x: x.maximum(1.0), [0.0, 1.0, 2.0]) == [0, 0.5, 1]
    assert slope(lambda x: x.minimum(1.0), [0.0, 1.0, 2.0]) == [1, 0.5, 0]
    assert slope(lambda x: x.max(), [2.0, 1.0, 2.0]) == [0.5, 0, 0.5]
    assert slope(lambda x: x.min(), [1.0, 1.0, 1.0, 3.0]) == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0])


def test_clamp_and_relu_and_abs_at_the_edge() -> None:
    assert slope(lambda x: x.clamp(-1.0, 1.0), [-2.0, -1.0, 0.0, 1.0, 2.0]) == [0, 0, 1, 0, 0]
    assert slope(lambda x: x.clamp_min(1.0) + x.clamp_max(1.0), [0.0, 1.0, 2.0]) == [1, 0, 1]
    assert slope(lambda x: x.clamp(Tensor([1.0])), [0.0, 1.0, 2.0]) == [0, 0.5, 1]
    assert slope(lambda x: Tensor([0.0, 1.0, 2.0]).clamp(max=x), [1.0]) == [1.5]
    assert slope(lambda x: x.relu(), [-1.0, 0.0, 1.0]) == [0, 0, 1]
    assert slope(lambda x: x.abs(), [-1.0, 0.0, 1.0]) == [-1, 0, 1]
    assert slope(lambda x: x.sigmoid(), [0.0]) == [0.25]
    assert slope(lambda x: x.sign() + x.floor() + x.round(), [-1.5, 0.0, 2.0]) == [0, 0, 0]


def test_products_with_zeros() -> None:
    assert slope(lambda x: x.prod(), [2.0, 3.0, 4.0]) == [12, 8, 6]
    assert slope(lambda x: x.prod(), [2.0, 0.0, 4.0]) == [0, 8, 0]
    assert slope(lambda x: x.prod(), [0.0, 3.0, 0.0]) == [0, 0, 0]
    check_gradients(lambda x: x.prod(), [np.array([2.0, 0.0, 4.0, 0.0])])


def test_powers_at_zero() -> None:
    assert slope(lambda x: x**2, [0.0, 3.0]) == [0, 6]
    assert slope(lambda x: x**1, [0.0]) == [1]
    power = uop_op(Ops.POW)
    base = Tensor(np.array([0.0, 0.0, 2.0, 0.0]), requires_grad=True)
    exponent = Tensor(np.array([0.0, 2.0, 0.0, 1.0]), requires_grad=True)
    by_base, by_exponent = power(base, exponent).sum().gradient(base, exponent)
    assert evaluate(by_base.uop).tolist() == [0, 0, 0, 1]
    assert evaluate(by_exponent.uop).tolist() == [0, 0, pytest.approx(np.log(2.0)), 0]


# *** where never answers for the branch not taken


LEAKS: dict[str, tuple[Callable[[Tensor], Tensor], list[float], list[float]]] = {
    "log": (lambda x: (x > 0).where(x.log(), 0.0), [0.0, 2.0], [0, 0.5]),
    "x log x": (lambda x: (x > 0).where(x.log() * x, 0.0), [0.0, 1.0], [0, 1]),
    "sqrt": (lambda x: (x > 0).where(x.sqrt(), 0.0), [0.0, 4.0], [0, 0.25]),
    "1/x": (lambda x: (x == 0).where(0.0, 1.0 / x), [0.0, 2.0], [0, -0.25]),
    "exp": (lambda x: (x < 100).where(x.exp(), 0.0), [1e4, 0.0], [0, 1]),
    "square of nan": (lambda x: x.isnan().where(0.0, x * x), [float("nan"), 3.0], [0, 6]),
    "tanh of nan": (lambda x: x.isnan().where(0.0, x.tanh()), [float("nan"), 0.0], [0, 1]),
    "nested": (
        lambda x: (x > 0).where((x > 1).where(x.log().log(), 0.0), 0.0),
        [0.0, 0.5, np.e],
        [0, 0, 1 / np.e],
    ),
    "moved": (lambda x: (x > 0).where(x.log().flip(0).flip(0), 0.0), [0.0, 2.0], [0, 0.5]),
    "shared": (lambda x: (x > 0).where(x.sqrt(), 0.0) + x * 2, [0.0, 4.0], [2, 2.25]),
}


@pytest.mark.parametrize("name", LEAKS)
def test_where_keeps_nan_out(name: str) -> None:
    function, at, expected = LEAKS[name]
    assert slope(function, at) == pytest.approx(expected)


def test_where_keeps_nan_out_of_norms() -> None:
    x = Tensor(np.array([[0.0, 0.0], [3.0, 4.0]]), requires_grad=True)
    length = (x * x).sum(1, keepdim=True).sqrt()
    unit = (length > 0).where(x / length, 0.0)
    found = evaluate(unit.sum().gradient(x)[0].uop)
    np.testing.assert_allclose(found, [[0, 0], [0.032, -0.024]], atol=1e-12)


def test_where_is_right_where_the_gradient_happens_to_be_zero() -> None:
    """Cutting by the condition, not by `gradient == 0`: second derivatives see the difference."""
    x = Tensor(np.array([0.0, 1.0]), requires_grad=True)
    y = ((x > -1).where(x * 3.0 * x.exp(), 0.0) ** 2).sum()
    (first,) = y.gradient(x)
    (second,) = first.sum().gradient(x)
    assert evaluate(first.uop)[0] == 0
    np.testing.assert_allclose(evaluate(second.uop)[0], 18.0)


LIMITS = {
    "x at most c, else c": lambda x, c: (x < c).where(x, c),
    "c, else x above it": lambda x, c: (x <= c).where(c, x),
    "x above c, else c": lambda x, c: (x > c).where(x, c),
    "c, else x below it": lambda x, c: (x >= c).where(c, x),
    "c at c": lambda x, c: (x <= c).where(x, c),
    "x at c": lambda x, c: (x < c).where(c, x),
}


@pytest.mark.parametrize("c", [0.0, 1.0, math.inf, math.nan])
@pytest.mark.parametrize("name", LIMITS)
def test_slopes_of_a_limit(name, c):
    """Whether the condition or its result is asked, the slope is 1 where x was chosen."""
    at = [-math.inf, -1.0, -0.0, 0.0, 0.5, 1.0, 2.0, math.inf, math.nan]
    x = Tensor(np.array(at), requires_grad=True)
    limit = Tensor(np.full(len(at), c))
    found = slope(lambda x: LIMITS[name](x, x._filled(c)), at)
    # the same choice with c from memory, whose condition is kept as it is
    (plain,) = LIMITS[name](x, limit).sum().gradient(x)
    assert found == evaluate(plain.uop).tolist()


def test_the_gradient_of_relu_reads_its_result():
    """So that a network stores one of the two."""
    x = Tensor(data(4), requires_grad=True)
    y = x.relu()
    (grad,) = y.sum().gradient(x)
    assert y.uop in grad.uop.src[0].src


def test_contractions_stay_plain() -> None:
    """No select inside the products of a matrix multiplication behind a relu."""
    x, w, v = (Tensor(data(4, 4, seed=i), requires_grad=True) for i in range(3))
    (grad,) = ((x @ w).relu() @ v).relu().sum().gradient(w)
    for node in grad.uop.toposort():
        if node.op is Ops.REDUCE_AXIS:
            assert node.src[0].op is not Ops.WHERE


# *** the walk


def test_a_long_chain() -> None:
    x = Tensor([1.0], requires_grad=True)
    y: Tensor = x
    for _ in range(20_000):
        y = y + x
    (grad,) = y.sum().gradient(x)
    assert len(grad.uop.toposort()) > 20_000


def test_third_order() -> None:
    x = Tensor(np.array([0.7]), requires_grad=True)
    y = x.sin() * x * x
    for _ in range(3):
        (y,) = y.sum().gradient(x)
    s, c, t = np.sin(0.7), np.cos(0.7), 0.7
    np.testing.assert_allclose(evaluate(y.uop), [-t * t * c - 6 * t * s + 6 * c], rtol=1e-9)


def test_gradients_have_shape_and_dtype_of_their_tensor() -> None:
    for dtype in (dtypes.float16, dtypes.float32, dtypes.float64):
        x = Tensor(data(3, 1), dtype=dtype, requires_grad=True)
        (grad,) = (x.expand(3, 4) * 2).sum().gradient(x)
        assert grad.dtype is dtype
        assert grad.shape == (3, 1)


def test_the_slope_of_the_cosine_at_0_is_0() -> None:
    x = Tensor([0.0], requires_grad=True)
    assert x.cos().sum().gradient(x)[0].tolist() == [0.0]
    assert x.sin().sum().gradient(x)[0].tolist() == [1.0]


def test_ops_without_a_value_have_no_rule() -> None:
    for op, info in OPS.items():
        if info.kind is Kind.ELEMENTWISE:
            assert op in GRADIENTS
    assert shape_of(filled((2, 3), dtypes.int, 1)) == (2, 3)


# ---- many slices of one tensor ----

#: The slices of 40 along an axis: (begin, end) of each.
SPANS = {
    "one after another": [(t, t + 1) for t in range(40)],
    "backwards": [(t, t + 1) for t in reversed(range(40))],
    "not from the start": [(t + 3, t + 4) for t in range(40)],
    "long and short": [(3 * t // 2, 3 * (t + 1) // 2) for t in range(40)],
    "with gaps": [(2 * t, 2 * t + 1) for t in range(40)],
    "overlapping": [(t, t + 2) for t in range(70)],
    "some twice": [(t // 2, t // 2 + 1) for t in range(80)],
    "some empty": [(t, t + t % 2) for t in range(80)],
}


@pytest.mark.parametrize(
    ("axis", "name"), [*((0, name) for name in SPANS), (1, "one after another"), (1, "long and short")]
)
def test_the_gradients_of_many_slices_add_up(axis: int, name: str) -> None:
    spans = SPANS[name]
    values, expected = data(2, 90, seed=4), np.zeros((2, 90), np.float32)
    if axis == 0:
        values, expected = values.T.copy(), expected.T.copy()
    x, total = Tensor(values, requires_grad=True), Tensor(0.0)
    for weight, (begin, end) in enumerate(spans):
        part = (slice(None),) * axis + (slice(begin, end),)
        total = total + (x[part].square() * weight).sum()
        expected[part] += 2 * weight * values[part]
    total.backward()
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-5)


def test_the_gradients_of_many_slices_that_follow_each_other_are_joined() -> None:
    x = Tensor(data(40, 2, seed=4), requires_grad=True)
    total = Tensor(0.0)
    for t in range(40):
        total = total + (x[t].square() * t).sum()
    (grad,) = total.gradient(x)
    nodes = grad.uop.toposort()
    assert [len(node.src) for node in nodes if node.op is Ops.COPY and len(node.src) > 2] == [41]
    assert not any(node.op is Ops.PAD for node in nodes)
    (second,) = (grad * grad).sum().gradient(x)
    weights = np.arange(40, dtype=np.float32)[:, None]
    np.testing.assert_allclose(second.numpy(), 8 * weights**2 * x.numpy(), rtol=1e-5)

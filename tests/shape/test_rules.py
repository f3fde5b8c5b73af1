"""The shape of every op: a cell for each, and what each says."""

from __future__ import annotations

import re

import pytest

from lazygrad.dtype import dtypes
from lazygrad.ir import Ops, UOp, Variable
from lazygrad.ir.args import ReduceArg
from lazygrad.shape import SHAPES, ShapeTracker, expand, reshape, shape_of, shape_or_none

DEVICE = UOp(Ops.DEVICE, arg="CPU")
n = Variable("n", 1, 10)


def buffer(size: int, dtype=dtypes.float) -> UOp:
    return UOp(Ops.BUFFER, dtype, (DEVICE, UOp(Ops.UNIQUE, arg=0)), size)


def view(*shape) -> UOp:
    return UOp(Ops.VIEW, arg=ShapeTracker.from_shape(shape))


def data(number: int, size: int) -> UOp:
    return UOp(Ops.DEFINE_GLOBAL, dtypes.float.ptr(size), arg=number)


def test_every_op_has_a_cell() -> None:
    assert set(SHAPES) == set(Ops)


X = reshape(buffer(6), (2, 3))
INDEX = buffer(5, dtypes.int)


@pytest.mark.parametrize(
    ("node", "shape"),
    [
        (buffer(6), (6,)),
        (UOp(Ops.CONST, dtypes.float, (DEVICE,), 1.0), ()),
        (UOp.const(dtypes.float, 1.0), ()),
        (UOp(Ops.IOTA, dtypes.int, (DEVICE,), 7), (7,)),
        (UOp(Ops.COPY, dtypes.float, (X, DEVICE)), (2, 3)),
        (UOp(Ops.COPY, dtypes.float, (X, X, DEVICE)), (4, 3)),
        (UOp(Ops.CONTIGUOUS, dtypes.float, (X,)), (2, 3)),
        (UOp(Ops.DETACH, dtypes.float, (X,)), (2, 3)),
        (UOp(Ops.ASSIGN, dtypes.float, (X, X)), (2, 3)),
        (UOp(Ops.ADD, dtypes.float, (X, X)), (2, 3)),
        (UOp(Ops.CAST, dtypes.int, (X,)), (2, 3)),
        (UOp(Ops.RESHAPE, dtypes.float, (X,), (3, 2)), (3, 2)),
        (UOp(Ops.EXPAND, dtypes.float, (reshape(X, (6, 1)),), (6, 4)), (6, 4)),
        (UOp(Ops.PERMUTE, dtypes.float, (X,), (1, 0)), (3, 2)),
        (UOp(Ops.PAD, dtypes.float, (X,), ((1, 2), (0, 1))), (5, 4)),
        (UOp(Ops.SHRINK, dtypes.float, (X,), ((1, 2), (0, 3))), (1, 3)),
        (UOp(Ops.FLIP, dtypes.float, (X,), (0,)), (2, 3)),
        (UOp(Ops.REDUCE_AXIS, dtypes.float, (X,), ReduceArg(Ops.ADD, (1,))), (2, 1)),
        (UOp(Ops.GATHER, dtypes.float, (buffer(6), INDEX)), (5,)),
        (UOp(Ops.SCATTER, dtypes.float, (buffer(6), INDEX, buffer(5)), Ops.ADD), (6,)),
        (n.bind(3), ()),
        (UOp(Ops.CAST, dtypes.int, (n.bind(3),)), ()),
        (UOp(Ops.CAST, dtypes.int, (n,)), ()),
        # kernel ASTs
        (view(2, 3), (2, 3)),
        (UOp(Ops.CONST, dtypes.float, (view(2, 3),), 1.0), (2, 3)),
        (UOp(Ops.IOTA, dtypes.int, (view(2, 3),)), (2, 3)),
        (UOp(Ops.LOAD, dtypes.float, (data(1, 6), view(n, 3))), (n, 3)),
        (UOp(Ops.LOAD, dtypes.float, (data(1, 6), view(6), UOp(Ops.CAST, dtypes.int, (X,)))), (2, 3)),
        (UOp(Ops.VIEW, dtypes.float, (X,), ShapeTracker.from_shape((2, 3)).pad(((0, 0), (1, 1)))), (2, 5)),
        # symbolic
        (UOp(Ops.PAD, dtypes.float, (expand(reshape(buffer(1), (1,)), (n,)),), ((0, 10 - n),)), (10,)),
    ],
)  # fmt: skip
def test_shapes(node: UOp, shape) -> None:
    assert shape_of(node) == shape


@pytest.mark.parametrize(
    "node",
    [
        DEVICE,
        UOp(Ops.UNIQUE, arg=3),
        data(0, 6),
        UOp(Ops.STORE, dtypes.void, (data(0, 6), view(6), UOp.const(dtypes.float, 1.0))),
        UOp.sink(),
        UOp(Ops.LOAD, dtypes.float, (UOp(Ops.INDEX, dtypes.float.ptr(6), (data(0, 6), n)),)),
    ],
)
def test_what_has_no_shape(node: UOp) -> None:
    assert shape_or_none(node) is None
    with pytest.raises(ValueError, match=re.escape(f"{node.op} has no shape")):
        shape_of(node)


def test_elementwise_ops_take_one_shape() -> None:
    with pytest.raises(ValueError, match=re.escape("Ops.ADD takes values of one shape, not of (2, 3), (6,)")):
        shape_of(UOp(Ops.ADD, dtypes.float, (X, buffer(6))))


def test_a_long_chain_needs_no_recursion() -> None:
    node = X
    for _ in range(20_000):
        node = UOp(Ops.NEG, dtypes.float, (node,))
    assert shape_of(node) == (2, 3)


def test_values_one_after_another_differ_in_their_first_size_only():
    line = UOp(Ops.RESHAPE, dtypes.float, (X,), (6,))
    with pytest.raises(
        ValueError, match=r"joins values of one shape but for the first size, not \(2, 3\) and \(6,\)"
    ):
        shape_of(UOp(Ops.COPY, dtypes.float, (X, line, DEVICE)))

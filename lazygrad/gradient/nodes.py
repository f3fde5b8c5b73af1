"""Graphs that gradients are written with, and others too: constants in a shape, reductions, running values,
reads and writes at computed places.
"""

from __future__ import annotations

from ..dtype import ConstType, DType, dtypes, sum_acc_dtype
from ..ir.args import ReduceArg
from ..ir.index import sint
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..ir.walks import device_of
from ..shape import movement
from ..shape.rules import shape_of


def filled(shape: tuple[sint, ...], dtype: DType, value: ConstType) -> UOp:
    """A constant of this shape, without memory."""
    return movement.expanded(UOp.const(dtype, value), shape)


def like(node: UOp, value: ConstType) -> UOp:
    """A constant of a node's shape and dtype."""
    return filled(shape_of(node), node.dtype, value)


def times(node: UOp, value: ConstType) -> UOp:
    return node * like(node, value)


def reduce_axes(node: UOp, op: Ops, axes: tuple[int, ...]) -> UOp:
    """Combine along axes, which keep size 1; axes of size 1 have nothing to combine."""
    axes = tuple(a for a in axes if shape_of(node)[a] != 1)
    return UOp(Ops.REDUCE_AXIS, node.dtype, (node,), ReduceArg(op, axes)) if axes else node


def sum_axes(node: UOp, axes: tuple[int, ...]) -> UOp:
    """The sum along axes, which keep size 1, in the node's dtype but accumulated in a dtype wide enough."""
    wide = sum_acc_dtype(node.dtype)
    return reduce_axes(node.cast(wide), Ops.ADD, axes).cast(node.dtype)


def iota(node: UOp, size: sint) -> UOp:
    """0, 1, ... on the device of a node."""
    device = device_of(node)
    return UOp(Ops.IOTA, dtypes.int64, () if device is None else (UOp(Ops.DEVICE, arg=device),), size)


# *** running values, computed addresses


def scan(x: UOp, op: Ops, axis: int, *factor: UOp) -> UOp:
    """Along an axis, each element combined with all before it; MULACC: y[i] = y[i-1]·factor[i] + x[i]."""
    if shape_of(x)[axis] in (0, 1):
        return x
    return UOp(Ops.SCAN, x.dtype, (x, *factor), ReduceArg(op, (axis,)))


def scan_winner(node: UOp, place: UOp) -> UOp:
    """Which element a running maximum (or minimum) is, counted by `place`: the last of equals; NaN stays."""
    x, (axis,) = node.src[0], node.arg.axes
    wins = x.eq(node) | x.ne(x) if dtypes.is_float(x.dtype) else x.eq(node)
    return scan(wins.where(place, like(place, 0)), Ops.MAX, axis)


def counter(node: UOp, shape: tuple[sint, ...], axis: int) -> UOp:
    """0, 1, ... along one axis of a shape, on the device of a node."""
    row = movement.reshape(
        iota(node, shape[axis]), tuple(size if i == axis else 1 for i, size in enumerate(shape))
    )
    return movement.expand(row, shape)


def gather(x: UOp, index: UOp) -> UOp:
    return UOp(Ops.GATHER, x.dtype, (x, index))


def scatter(base: UOp, index: UOp, values: UOp, op: Ops | None) -> UOp:
    return UOp(Ops.SCATTER, base.dtype, (base, index, values), op)

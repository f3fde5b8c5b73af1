"""Index arithmetic becomes int32 or int64: the first step of legalizing.

Before, `dtypes.index` is an unbounded integer. After, every such node is an int32 where its bounds and
those of what it is made of fit, else an int64.
"""

from __future__ import annotations

from ...dtype import DType, dtypes
from ...ir.index import bounds, note_bounds
from ...ir.ops import ALU, COMPARISONS, Ops
from ...ir.uop import UOp
from ..expressions.constants import power_of_two

_INT32 = (-(1 << 31), (1 << 31) - 1)


def choose_width(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
    """A node with int32 or int64 in the place of `index`, from those of its sources."""
    if node.dtype.scalar_type is dtypes.index:
        made = _integer(node, src)
        if made not in src:
            note_bounds(made, *bounds(node))
        return made
    if src == node.src:
        return None
    if node.op in COMPARISONS and node.src[0].dtype.scalar_type is dtypes.index:
        width = _common(src)
        return UOp(node.op, node.dtype, tuple([s.cast(width) for s in src]))
    return src[0].cast(node.dtype) if node.op is Ops.CAST else None


def _width(node: UOp) -> DType:
    low, high = bounds(node)
    return dtypes.int32 if _INT32[0] <= low and high <= _INT32[1] else dtypes.int64


def _common(src: tuple[UOp, ...]) -> DType:
    wide = any(s.dtype.scalar_type is dtypes.int64 for s in src)
    return dtypes.int64 if wide else dtypes.int32


def _integer(node: UOp, src: tuple[UOp, ...]) -> UOp:
    """The int32 or int64 node for an index node, from those of its sources."""
    op, count, width = node.op, node.dtype.count, _width(node)
    if op is Ops.CAST:
        return src[0].cast(width.vec(count))
    if op is Ops.RANGE:  # the size is compared with, so it must fit too
        width = _width(node.src[0])
        return UOp(op, width, tuple([s.cast(width) for s in src]), node.arg)
    if op not in ALU:  # CONST, DEFINE_VAR, SPECIAL, VECTORIZE, GEP, LOAD, REDUCE, ...
        if op in (Ops.GEP, Ops.REDUCE):
            width = src[0].dtype.scalar_type
        elif op is Ops.VECTORIZE:
            width = _common(src)
            src = tuple([s.cast(width) for s in src])
        return UOp(op, width.vec(count), src, node.arg)
    values = src[1:] if op is Ops.WHERE else src
    if _common(values) is dtypes.int64:
        width = dtypes.int64
    values = tuple([s.cast(width) for s in values])
    if op is Ops.MUL:
        made = _product(*values)
    else:
        made = UOp(op, width.vec(count), src[:1] + values if op is Ops.WHERE else values)
    if op in (Ops.MUL, Ops.IDIV, Ops.MOD) and width is dtypes.int64 and _width(node) is dtypes.int32:
        note_bounds(made, *bounds(node))
        made = made.cast(dtypes.int32)  # a quotient or remainder is small again
    return made


def _product(x: UOp, y: UOp) -> UOp:
    power = power_of_two(y)
    return x << power if power and x.op is not Ops.CONST else x * y

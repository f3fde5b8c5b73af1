"""Index arithmetic becomes int32 or int64: the first step of `legalize`.

Before, `dtypes.index` is an unbounded integer. After, every such node is an int32 where its bounds and
those of what it is made of fit, else an int64. Floor divisions and remainders become shifts, masks, or
divisions of operands that bounds or construction make not negative, on which rounding down and C's
rounding to zero agree.
"""

from __future__ import annotations

from collections.abc import Callable

from ..dtype import DType, dtypes
from ..ir.index import bounds, note_bounds
from ..ir.ops import ALU, COMPARISONS, Ops
from ..ir.uop import UOp

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


def _fits(low_high: tuple[int, int]) -> bool:
    return _INT32[0] <= low_high[0] and low_high[1] <= _INT32[1]


def _width(node: UOp) -> DType:
    return dtypes.int32 if _fits(bounds(node)) else dtypes.int64


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
    rule = _STRENGTH.get(op)
    made = rule(node, values) if rule is not None else None
    if made is None:
        made = UOp(op, width.vec(count), src[:1] + values if op is Ops.WHERE else values)
    if rule is not None and width is dtypes.int64 and _fits(bounds(node)):
        made = made.cast(dtypes.int32)  # a quotient or remainder is small again
    return made


# *** cheaper forms of products, quotients and remainders


def _constant(node: UOp) -> int | None:
    """The value of a constant, the same in every lane."""
    if node.op is not Ops.CONST:
        return None
    if node.dtype.count == 1:
        return int(node.arg)
    return int(node.arg[0]) if len(set(node.arg)) == 1 else None


def _power(value: int | None) -> int | None:
    """k where the value is 2**k."""
    return value.bit_length() - 1 if value is not None and value > 0 and value & (value - 1) == 0 else None


def _product(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
    x, y = src
    power = _power(_constant(y))
    return x << power if power and x.op is not Ops.CONST else None


def _floor_quotient(x: UOp, divisor: UOp, not_negative: bool) -> UOp:
    """`x // divisor` for a positive divisor, from a division of a number that is not negative.

    For negative x, floor(x / d) = ~(~x // d), and ~x is not negative.
    """
    if not_negative:
        return x // divisor
    sign = x >> (x.dtype.scalar_type.itemsize * 8 - 1)
    magnitude = x ^ sign
    note_bounds(magnitude, 0, int(dtypes.max(x.dtype)))  # so that the next step sees a safe division
    return (magnitude // divisor) ^ sign


def _positive_divisor(node: UOp, y: UOp) -> UOp:
    """The divisor, at least 1 also where the quotient is not used but computed all the same."""
    if bounds(node.src[1])[0] > 0:
        return y
    divisor = (y < 1).where(1, y)
    note_bounds(divisor, 1, int(dtypes.max(y.dtype)))
    return divisor


def _quotient(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
    x, y = src
    value = _constant(y)
    power = _power(value)
    if power is not None:
        return x >> power if power else x
    if value == 0:
        return x.const_like(0)
    not_negative = bounds(node.src[0])[0] >= 0
    if value is not None and value < 0:  # x // -d = -x // d
        return _floor_quotient(-x, y.const_like(-value), bounds(node.src[0])[1] <= 0)
    return _floor_quotient(x, _positive_divisor(node, y), not_negative)


def _remainder(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
    x, y = src
    value = _constant(y)
    if _power(value) is not None:
        return x & (int(value or 0) - 1)
    if value == 0:
        return x.const_like(0)
    if bounds(node.src[0])[0] >= 0 and (value is None or value > 0):
        return x % _positive_divisor(node, y)
    quotient = _quotient(node, src)
    return None if quotient is None else x - quotient * y


_STRENGTH: dict[Ops, Callable[[UOp, tuple[UOp, ...]], UOp | None]] = {
    Ops.MUL: _product,
    Ops.IDIV: _quotient,
    Ops.MOD: _remainder,
}

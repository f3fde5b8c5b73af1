"""Constants, one lane of a vector, and a vector of lanes."""

from __future__ import annotations

from collections.abc import Sequence

from ...dtype import ConstType, DType, dtypes
from ...ir.ops import OPS, Ops, execute
from ...ir.uop import UOp


def lane_values(node: UOp) -> tuple[ConstType, ...]:
    """The values of a CONST, one per lane."""
    return node.arg if node.dtype.count > 1 else (node.arg,)


def is_zero(node: UOp) -> bool:
    """Whether a node is the constant 0, in every lane."""
    return node.op is Ops.CONST and not any(lane_values(node))


def power_of_two(node: UOp) -> int | None:
    """k where a node is the constant 2**k, in every lane."""
    values = set(lane_values(node)) if node.op is Ops.CONST else set()
    value = int(values.pop()) if len(values) == 1 else 0
    return value.bit_length() - 1 if value > 0 and value & (value - 1) == 0 else None


def fold(op: Ops, dtype: DType, src: tuple[UOp, ...]) -> UOp | None:
    """The constant that an op of constants is, exactly; None where a source is not constant."""
    for s in src:
        if s.op is not Ops.CONST:
            return None
    lanes = zip(*(lane_values(s) for s in src), strict=True)
    scalar, source = dtype.scalar_type, src[-1].dtype.scalar_type
    values = tuple([execute(op, scalar, lane, source) for lane in lanes])
    return UOp(Ops.CONST, dtype, (), values if dtype.count > 1 else values[0])


def unchanged(op: Ops, dtype: DType, src: tuple[UOp, ...]) -> UOp | None:
    """The integer that an op leaves as it is, as x of `x + 0`, `x * 1` or `x << 0`; None where it does not.

    One lane of a vector may be that where the vector is not: of `x + (0, 1, 2, 3)` the first.
    """
    if len(src) != 2 or not dtypes.is_int(dtype):
        return None
    first, second = src
    if op in _RIGHT_ZERO:
        return first if second.op is Ops.CONST and second.arg == 0 and first.dtype is dtype else None
    identity = OPS[op].identity
    if identity is None or not OPS[op].commutes:
        return None
    neutral = identity(dtype)
    for one, other in ((first, second), (second, first)):
        if other.op is Ops.CONST and other.arg == neutral and one.dtype is dtype:
            return one
    return None


#: What a zero on the right leaves as it is.
_RIGHT_ZERO = (Ops.SUB, Ops.SHL, Ops.SHR)


def gathered(lanes: Sequence[UOp]) -> UOp:
    """A vector of these scalars; one alone stays a scalar."""
    if len(lanes) == 1:
        return lanes[0]
    dtype = lanes[0].dtype.vec(len(lanes))
    if all(lane.op is Ops.CONST for lane in lanes):
        return UOp(Ops.CONST, dtype, (), tuple([lane.arg for lane in lanes]))
    return UOp(Ops.VECTORIZE, dtype, tuple(lanes))


def lane_of(node: UOp, lane: int) -> UOp:
    """One lane of a vector; a scalar is its own lane."""
    if node.dtype.count == 1:
        return node
    if node.op is Ops.VECTORIZE:
        return node.src[lane]
    if node.op is Ops.CONST:
        return UOp(Ops.CONST, node.dtype.scalar_type, (), node.arg[lane])
    return UOp(Ops.GEP, node.dtype.scalar_type, (node,), (lane,))

"""Where elements are in the flattened tensor: the arithmetic behind indexing, as graphs of integers."""

from __future__ import annotations

from collections.abc import Sequence

from ...device import Devices
from ...dtype import DType, dtypes
from ...gradient import expanded, filled
from ...ir.index import sint
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...shape import movement, shape_of
from ...shape.sizes import mul, prod
from ..creation import counting_dtype, iota


def places_in(shape: tuple[sint, ...], device: Devices) -> UOp:
    """The address of each element of a tensor."""
    count = prod(shape)
    return movement.reshape(iota(count, counting_dtype(count), device), shape)


def strides_of(shape: Sequence[sint]) -> list[sint]:
    strides: list[sint] = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = mul(strides[axis + 1], shape[axis + 1])
    return strides


def number(value: sint, shape: tuple[sint, ...], dtype: DType) -> UOp:
    """A size as a value of this shape."""
    if isinstance(value, int):
        return filled(shape, dtype, value)
    return expanded(UOp(Ops.CAST, dtype, (value,)), shape)


def wrapped(position: UOp, size: sint, counting: DType) -> tuple[UOp, UOp]:
    """(indices with negative ones counted from the end, whether they are in range)."""
    shape = shape_of(position)
    unsigned = dtypes.is_unsigned(position.dtype)
    wide = counting if position.dtype.itemsize <= counting.itemsize and not unsigned else dtypes.int64
    position = position.cast(wide)
    limit, zero = number(size, shape, wide), filled(shape, wide, 0)
    if not unsigned:
        position = (position < zero).where(position + limit, position)
    inside = (zero <= position) & (position < limit)
    return position.cast(counting), inside


def aligned(node: UOp, before: int, rank: int, behind: int) -> UOp:
    """A node broadcast against axes in the middle of a shape: size 1 elsewhere."""
    shape = shape_of(node)
    return movement.reshape(node, (1,) * (before + rank - len(shape)) + shape + (1,) * behind)


def every(node: UOp, axis: int, step: int) -> UOp:
    """Every step-th place of an axis: as rows of `step` places, of which the first is kept."""
    shape = shape_of(node)
    size = shape[axis]
    if not isinstance(size, int):
        raise NotImplementedError(f"a slice with step {step} along an axis of symbolic size")
    count = -(-size // step)
    if count <= 1:
        return movement.shrink(node, tuple((0, count) if i == axis else (0, s) for i, s in enumerate(shape)))
    missing = count * step - size
    if missing and node.op is Ops.SHRINK:
        # rather than padding, take the places that follow in the source
        source, spans = node.src[0], node.arg
        begin, end = spans[axis]
        longest = shape_of(source)[axis]
        if isinstance(end, int) and isinstance(longest, int) and end + missing <= longest:
            node = movement.shrink(
                source, tuple((begin, end + missing) if i == axis else s for i, s in enumerate(spans))
            )
            missing = 0
    if missing:
        node = movement.pad(node, tuple((0, missing) if i == axis else (0, 0) for i in range(len(shape))))
    rows = movement.reshape(node, shape[:axis] + (count, step) + shape[axis + 1 :])
    first = movement.shrink(
        rows, tuple((0, 1) if i == axis + 1 else (0, s) for i, s in enumerate(shape_of(rows)))
    )
    return movement.reshape(first, shape[:axis] + (count,) + shape[axis + 1 :])

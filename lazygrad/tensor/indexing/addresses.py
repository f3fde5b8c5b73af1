"""Where elements are in the flattened tensor: the arithmetic behind indexing, as graphs of integers."""

from __future__ import annotations

from collections.abc import Sequence

from ...config import CHECK_INDEX
from ...device import Devices
from ...dtype import DType, dtypes
from ...gradient import filled
from ...ir.args import CheckArg
from ...ir.index import bounds, sint
from ...ir.ops import Ops
from ...ir.uop import UOp, origin
from ...schedule.graph.reports import Site
from ...shape import movement, shape_of, shape_text, vmax
from ...shape.movement import expanded
from ...shape.sizes import mul, prod
from ..creation import counting_dtype, iota
from ..modes import Setting, mode
from ..trace import user_line


def addresses_in(shape: tuple[sint, ...], device: Devices) -> UOp:
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


def wrapped(
    position: UOp, size: sint, counting: DType, known: bool = False, wraps: bool = True
) -> tuple[UOp, UOp | None]:
    """(indices with negative ones counted from the end, whether they are in range: which is checked, unless
    it is `known`; None where their bounds say that they are).

    wraps  False: a negative index is out of range
    """
    shape, given = shape_of(position), position
    least, most = bounds(position)
    if isinstance(size, int) and least >= 0 and most < size:
        return position.cast(counting), None
    unsigned = dtypes.is_unsigned(position.dtype)
    wide = counting if position.dtype.itemsize <= counting.itemsize and not unsigned else dtypes.int64
    position = position.cast(wide)
    limit, zero = number(size, shape, wide), filled(shape, wide, 0)
    if wraps and not unsigned:
        position = (position < zero).where(position + limit, position)
    inside = (zero <= position) & (position < limit)
    if not known:
        inside = checked(inside, inside, given, size)
    return position.cast(counting), inside


# *** indices that only the data knows


class trusted(Setting):
    """Within it (or a function it decorates) indices are not checked: they are in range by construction, or
    are out of range on purpose.
    """

    name, value = "trusted", True


def is_checking() -> bool:
    """Whether indices are checked here."""
    return bool(CHECK_INDEX) and not mode.trusted


def checked(value: UOp, good: UOp, index: UOp, size: sint) -> UOp:
    """The value; where a kernel that computes it finds that an index is not good for an axis of this size,
    reading a result raises IndexError with the user's line.
    """
    if not is_checking() or _always_fits(index.dtype, size):
        return value
    if isinstance(size, int) and not size and 0 not in shape_of(index):
        raise IndexError(f"an index of shape {shape_text(shape_of(index))} for an axis of size 0")
    arg = CheckArg(size if isinstance(size, int) else shape_text((size,)).strip("(,)"))
    return with_origin(UOp(Ops.CHECK, value.dtype, (value, good, index), arg), "an index")


def demanded(good: UOp, problem: str) -> UOp:
    """The bools; where a kernel that computes one finds that it is false, reading a result raises ValueError
    with this text and the user's line.
    """
    if not CHECK_INDEX:
        return good
    place = filled(shape_of(good), dtypes.int32, 0)
    return with_origin(
        UOp(Ops.CHECK, good.dtype, (good, good, place), CheckArg(0, problem=problem)), "a value"
    )


def with_origin(check: UOp, what: str = "an index") -> UOp:
    """A CHECK that knows the user's call that it comes from."""
    if "site" not in check.facts:
        check.facts["site"] = Site(what if origin.current is None else origin.current.name, user_line())
    return check


def _always_fits(dtype: DType, size: sint) -> bool:
    """Whether every number of a type is in range: bytes look up in a table of 256."""
    return dtypes.is_unsigned(dtype) and isinstance(size, int) and int(dtypes.max(dtype)) < size


def is_below(index: UOp, count: sint) -> UOp:
    """Whether numbers are from 0 on and below `count`: negative ones are great as unsigned numbers."""
    unsigned = _UNSIGNED[index.dtype.itemsize]
    if vmax(count) > dtypes.max(unsigned):
        index, unsigned = index.cast(dtypes.int64), dtypes.uint64
    return index.cast(unsigned) < number(count, shape_of(index), unsigned)


_UNSIGNED = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}


def aligned(node: UOp, before: int, rank: int, behind: int) -> UOp:
    """A node broadcast against axes in the middle of a shape: size 1 elsewhere."""
    shape = shape_of(node)
    return movement.reshape(node, (1,) * (before + rank - len(shape)) + shape + (1,) * behind)


def part(node: UOp, axis: int, begin: sint, end: sint) -> UOp:
    """The part [begin, end) of one axis."""
    return movement.shrink(
        node, tuple((begin, end) if i == axis else (0, s) for i, s in enumerate(shape_of(node)))
    )


def every(node: UOp, axis: int, step: int) -> UOp:
    """Every step-th place of an axis: as rows of `step` places, of which the first is kept."""
    shape = shape_of(node)
    size = shape[axis]
    if not isinstance(size, int):
        raise NotImplementedError(f"a slice with step {step} along an axis of symbolic size is not supported")
    count = -(-size // step)
    if count <= 1:
        return part(node, axis, 0, count)
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
    return movement.reshape(part(rows, axis + 1, 0, 1), shape[:axis] + (count,) + shape[axis + 1 :])

"""Index tuples: at which place of a value somebody needs it, one index expression for each axis."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from ...ir.index import as_index, as_sint, bounds, const, sint
from ...ir.nest import ranges_of
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...shape.tracker import ShapeTracker
from ...shape.view import CACHED, strides_of

Indices = tuple[UOp, ...]

#: Instead of index tuples: read at places that only the data knows; and not read, but written further.
ANYWHERE: Indices = (UOp(Ops.NOOP, const(0).dtype, (), "anywhere"),)
CONTINUES: Indices = (UOp(Ops.NOOP, const(0).dtype, (), "continues"),)


def free_ranges(indices: Indices) -> frozenset[UOp]:
    """The ranges that the place depends on."""
    found: set[UOp] = set()
    for at in indices:
        if at.op is Ops.RANGE:  # most are: no set of one is made for each
            found.add(at)
        elif at.op is not Ops.CONST:
            found |= ranges_of(at)
    return frozenset(found)


def are_all(indices: Indices, shape: Sequence[sint]) -> bool:
    """Whether these are plainly all places of a shape: along each axis a range of its own, as long as it."""
    pairs = [(at, size) for at, size in zip(indices, shape, strict=False) if size != 1]
    ranges = {at for at, size in pairs if at.op is Ops.RANGE and as_sint(at.src[0]) == size}
    return len(indices) == len(shape) and len(ranges) == len(pairs)


def block_of(indices: Indices, r: UOp) -> int:
    """The most steps of a range that all see the same place: n where indices have `r // n` alone; else 1."""
    found = 0
    for at in indices:
        if at is r:
            return 1
        if at.op is Ops.CONST or r not in ranges_of(at):
            continue
        for node in at.toposort():
            if r not in node.src:
                continue
            if node.op is not Ops.IDIV or node.src[0] is not r or node.src[1].op is not Ops.CONST:
                return 1
            found = math.gcd(found, node.src[1].arg)
    return max(found, 1)


def through(tracker: ShapeTracker, indices: Indices, shape: tuple[sint, ...]) -> Indices:
    """The indices of the base at which a view is read."""
    axes = _axes_of(tracker, shape)
    if axes is not None:
        found = tuple([const(0) if axis is None else indices[axis] for axis in axes])
        if all(_is_within(at, size) for at, size in zip(found, shape, strict=True)):
            return found
    flat, _ = tracker.indexed(indices)
    result: list[UOp] = []
    rest = flat
    for size in reversed(shape):
        if size == 1:
            result.append(const(0))
            continue
        whole = as_index(size)
        result.append(rest % whole)
        rest = rest // whole
    if result and shape[0] != 1:
        # the first axis needs no remainder: what is left is its index
        outermost = flat
        for size in reversed(shape[1:]):
            outermost = outermost // as_index(size)
        result[-1] = outermost
    return tuple(reversed(result))


def _is_within(at: UOp, size: sint) -> bool:
    low, high = bounds(at)
    return low >= 0 and high < bounds(as_index(size))[0]


@functools.lru_cache(CACHED)
def _axes_of(tracker: ShapeTracker, shape: tuple[sint, ...]) -> tuple[int | None, ...] | None:
    """For each axis of the base the axis that walks it, None where it stays at 0; None where a view does
    more than put axes in another order, repeat and cut off what is behind.
    """
    view = tracker.views[0]
    sizes = (*view.shape, *view.strides, view.offset, *shape)
    if len(tracker.views) > 1 or view.mask is not None or not all(isinstance(size, int) for size in sizes):
        return None
    walking = {step: axis for axis, step in enumerate(view.strides) if step != 0}
    found = tuple([walking.get(step) for step in strides_of(shape)])
    moving, matched = len(view.strides) - view.strides.count(0), sum(axis is not None for axis in found)
    return found if moving == matched and view.offset == 0 else None

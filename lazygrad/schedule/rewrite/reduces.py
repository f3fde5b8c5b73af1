"""Sums of sums are one sum: in the plain graph a chain of movements and reductions becomes one reduction.

The gradient of a convolution with respect to its input sums over output channels, lays the result out as
windows, and sums these back into rows and columns: it is one sum over channels and places of the window. For
that the reduced axes of the inner reduction go last, where the movements above leave them alone, and one
reduction takes them all. What is cut away above it is cut away below, and what only sees padding along a
reduced axis is left out.

This computes the same in another order of summation. Nobody else reads what is inside of a chain.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence

from ...decisions import yes_or_no
from ...dtype import dtypes
from ...ir.args import ReduceArg
from ...ir.index import sint
from ...ir.ops import MOVEMENT, Ops
from ...ir.uop import UOp
from ...ir.walks import has_op
from ...shape import (
    Shape,
    base_and_tracker,
    expand,
    flip,
    pad,
    permute,
    prod,
    reshape,
    shape_of,
    shrink,
    vmax,
)
from ...shape.tracker import ShapeTracker
from ...shape.view import ranges_over
from ...simplify.validity import has_division, limits, simplified
from ...target import Target
from ..graph.requested import near
from ..graph.versions import effective
from .im2col import is_worth_storing
from .reduces_of_broadcasts import repeated_axes

LINKS = MOVEMENT | {Ops.REDUCE_AXIS, Ops.DETACH}
#: One reduction may take this many times the steps of the chain: it needs no memory in between.
MORE = 1.5
#: What is cut away of one reduction is cut away below it only from such a part of it on, if its places there
#: are found by divisions, as those of interleaved phases: nothing is computed in tiles then.
DIVIDED = 0.25


class Chains:
    """The chains of a walk: each from a node that somebody else reads down to a reduction."""

    def __init__(self, order: Sequence[UOp], roots: Collection[UOp]) -> None:
        self.readers: dict[UOp, UOp | None] = {}  # link → its only reader
        if has_op(order, Ops.REDUCE_AXIS):
            for node in order:
                for source in dict.fromkeys(
                    [effective(s) if "forwarded_to" in s.facts else s for s in node.src]
                ):
                    if source.op in LINKS:
                        self.readers[source] = None if source in self.readers else node
            self.readers.update((root, None) for root in roots)

    def below(self, top: UOp) -> list[UOp]:
        """The links of the chain that ends in `top`, from its lowest reduction up; empty where none ends."""
        if top not in self.readers:
            return []
        reader = self.readers[top]
        links, reductions, op = [top], 0, None
        if reader is not None and reader.op is Ops.REDUCE_AXIS:
            op = reader.arg.op  # a reduction by another op ends the chain
        elif reader is not None and reader.op in LINKS:
            return []
        while True:
            node = links[-1]
            if node.op is Ops.REDUCE_AXIS:
                if reductions == 0 and op is node.arg.op:
                    return []  # the chain goes on above `top`
                if reductions and op is not node.arg.op:
                    break
                op, reductions = node.arg.op, len(links)
            source = effective(node.src[0])
            if source.op not in LINKS or self.readers.get(source) is None:
                break
            links.append(source)
        return links[:reductions][::-1]


def merged(top: UOp, links: list[UOp], value: dict[UOp, UOp], target: Target) -> UOp | None:
    """The plain value of the chain that ends in a node as one reduction, of as many links as pay; None where
    nothing is gained.

    It is told of the node as it is asked for: who reads a link is not known of plain nodes.

    links  those of the chain, from its lowest reduction up
    value  what the nodes below are in the plain graph
    """
    for first, link in enumerate(links):
        if link.op is Ops.REDUCE_AXIS:
            source = value[effective(link.src[0])]
            if _is_small_contraction(source, link, target) and _are_windows(links[first + 1 :]):
                continue
            found = _one_reduction(links[first:], source)
            if found is not None and yes_or_no("merge_reduces", near(found), True, lambda: True):
                return found
    return None


def _is_small_contraction(source: UOp, node: UOp, target: Target) -> bool:
    """Whether a reduction is a sum of many products whose results the caches hold.

    Storing it and adding what overlaps is faster than products behind the conditions of windows.
    """
    if target.grid or target.vector_bytes == 0 or len(target.memory.caches) < 2:
        return False
    if node.arg.op is not Ops.ADD or source.op is not Ops.MUL or not dtypes.is_float(node.dtype):
        return False
    count = _count(shape_of(node))
    if not is_worth_storing(count, node.dtype.itemsize, _count(shape_of(source)), target):
        return False
    still = [repeated_axes(factor) for factor in source.src]
    return bool(still[0] - still[1]) and bool(still[1] - still[0])


def _are_windows(links: Sequence[UOp]) -> bool:
    """Whether padding comes before a sum: places of windows that overlap are added."""
    pads = [i for i, link in enumerate(links) if link.op is Ops.PAD]
    return bool(pads) and any(link.op is Ops.REDUCE_AXIS for link in links[pads[0] :])


def _one_reduction(links: Sequence[UOp], source: UOp) -> UOp | None:
    shapes = [shape_of(source)]  # before each link, and at the end
    for link in links:
        shapes.append(shape_of(link))
    reductions = [i for i, link in enumerate(links) if link.op is Ops.REDUCE_AXIS]
    top = reductions[-1] + 1
    smallest = min(range(top, len(shapes)), key=lambda i: _count(shapes[i]))  # the rest stays above
    cuts = smallest > top and _count(shapes[smallest]) < _count(shapes[top])
    end = smallest if cuts else top
    op = links[0].arg.op
    padded = any(view.mask is not None for view in base_and_tracker(source)[1].views)
    if len(reductions) == 1 and not cuts and not (padded and op is Ops.ADD):
        return None
    if op is not Ops.ADD and any(link.op is Ops.PAD for link in links[:end]):
        return None  # its zeros count
    before = sum(_count(shapes[i]) for i in reductions)
    moved = source
    tails: list[list[sint]] = []
    for link, shape in zip(links[:end], shapes, strict=False):
        tail = tuple(size for sizes in tails for size in sizes)
        if link.op is Ops.REDUCE_AXIS:
            moved = _to_the_end(moved, shape, link.arg.axes)
            tails.append([shape[axis] for axis in link.arg.axes])
        elif link.op is not Ops.DETACH:
            moved = _moved(moved, link, shape, tail)
    shape = shapes[end]
    moved = _outer_first(moved, len(shape), [len(sizes) for sizes in tails])
    if op is Ops.ADD:
        spans, gaps = _summed(base_and_tracker(moved)[1], len(shape))
        if gaps and len(reductions) > 1:
            return None  # rows and columns are better summed one after the other
        moved = shrink(moved, spans)
    after = _count(shape_of(moved))
    if len(reductions) == 1 and after > (1 - DIVIDED) * before:
        divides = _divides(base_and_tracker(moved)[1])
        if divides and not _divides(base_and_tracker(source)[1]):
            return None
    if after >= before if len(reductions) == 1 else after > MORE * before:
        return None
    axes = tuple(range(len(shape), len(shape_of(moved))))
    result = reshape(UOp(Ops.REDUCE_AXIS, moved.dtype, (moved,), ReduceArg(op, axes)), shape)
    for link, below in zip(links[end:], shapes[end:], strict=False):
        if link.op is not Ops.DETACH:
            result = _moved(result, link, below, ())
    return result


def _count(shape: Shape) -> int:
    return vmax(prod(shape))


# *** movement below the axes at the end


def _to_the_end(moved: UOp, shape: Shape, axes: Sequence[int]) -> UOp:
    """The axes, of size 1 from here on, moved to the end."""
    whole = shape_of(moved)
    rest = [axis for axis in range(len(whole)) if axis not in axes]
    kept = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    tail = tuple(whole[axis] for axis in (*range(len(shape), len(whole)), *axes))
    return reshape(permute(moved, (*rest, *axes)), kept + tail)


def _moved(moved: UOp, link: UOp, shape: Shape, tail: Shape) -> UOp:
    """The movement of a link, on the axes in front."""
    op, arg = link.op, link.arg
    if op is Ops.RESHAPE:
        return reshape(moved, (*arg, *tail))
    if op is Ops.EXPAND:
        return expand(moved, (*arg, *tail))
    if op is Ops.PERMUTE:
        return permute(moved, (*arg, *range(len(shape), len(shape) + len(tail))))
    if op is Ops.PAD:
        return pad(moved, (*arg, *((0, 0) for _ in tail)))
    if op is Ops.SHRINK:
        return shrink(moved, (*arg, *((0, size) for size in tail)))
    return flip(moved, arg)


def _outer_first(moved: UOp, rank: int, counts: Sequence[int]) -> UOp:
    """The axes of the lowest reduction, then of the highest and on down: gradients undo them in reverse."""
    runs, begin = [], rank
    for count in counts:
        runs.append(range(begin, begin + count))
        begin += count
    order = [axis for run in (*runs[:1], *runs[:0:-1]) for axis in run]
    return permute(moved, (*range(rank), *order))


# *** padding


@functools.lru_cache(4096)
def _divides(tracker: ShapeTracker) -> bool:
    """Whether places in what is below are found by divisions."""
    place, valid = tracker.indexed(ranges_over(tracker.shape))
    return any(map(has_division, (place, valid)))


@functools.lru_cache(4096)
def _summed(tracker: ShapeTracker, rank: int) -> tuple[tuple[tuple[sint, sint], ...], bool]:
    """The part of the axes from `rank` on that sees more than padding; whether only every n-th place does."""
    shape = tracker.shape
    spans: list[tuple[sint, sint]] = [(0, size) for size in shape]
    if all(view.mask is None for view in tracker.views):
        return tuple(spans), False
    ranges = ranges_over(shape)
    valid, _ = simplified(tracker.indexed(ranges)[1])
    found = limits(valid, ranges)
    if found is not None:
        for axis in range(rank, len(shape)):
            if isinstance(shape[axis], int):
                spans[axis] = found[axis][0], found[axis][1] + 1
    return tuple(spans), has_division(valid)

"""Borders in form 4: where a reduction is masked only near the ends of an output loop, these are loops apart.

    for i in 0..26:  for k in 0..3:  acc += 0 <= i-k < 24 ? a[i-k] * b[k] : 0
becomes
    for i in 0..2:   for k in 0..3:  acc += 0 <= i-k ? a[i-k] * b[k] : 0
    for i in 2..24:  for k in 0..3:  acc += a[i-k] * b[k]
    for i in 24..26: for k in 0..3:  acc += i-k < 24 ? a[i-k] * b[k] : 0

For targets whose vectors have no masks: there each masked product costs a choice between two vectors more.
"""

from __future__ import annotations

import math

from ...dtype import dtypes
from ...ir import index
from ...ir.args import AxisType
from ...ir.index import as_sint
from ...ir.nest import closed_ranges, free_numbers, output_ranges, ranges_of
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...ir.walks import of_op
from ..expressions.ranges import (
    IN_REGISTERS,
    at,
    in_order,
    make_range,
    scanned_ranges,
    stride,
    substitute_ranges,
    typical,
)
from ..linearizing.separate_loops import separate_loops
from .tails import inside_reductions

#: Turns of a reduction below which writing it three times costs more to compile than masks cost to run.
WORTH = 1 << 20
#: The part of a loop that must be free of masks.
MOST = 1 / 2


def split_borders(sink: UOp) -> UOp:
    """The kernel with loops of their own for the ends of output loops, where these alone need masks."""
    made = sink
    for loop in _masked_loops(sink):
        inside = _free_part(made, loop)
        if inside is not None:
            made = _split(made, loop, *inside)
    return sink if made is sink else separate_loops(made)


def _masks(sink: UOp) -> list[UOp]:
    """Comparisons of places that each turn of some reduction makes."""
    return [
        node
        for node in of_op(inside_reductions(sink.toposort()), Ops.CMPLT)
        if node.src[0].dtype is dtypes.index
    ]


def _masked_loops(sink: UOp) -> list[UOp]:
    """The output loops, outermost first, around a long reduction that their place masks."""
    nodes = sink.toposort()
    reduces = of_op(nodes, Ops.REDUCE)
    turns = [math.prod(typical(r.src[0]) for r in (*node.src[1:], *ranges_of(node))) for node in reduces]
    if not reduces or max(turns) < WORTH or in_order(sink):
        return []
    whole = scanned_ranges(nodes).union(*(closed_ranges(node) for node in of_op(nodes, Ops.STAGE)))
    masking = {r for mask in _masks(sink) for r in ranges_of(mask)} - whole
    split = (AxisType.GLOBAL, AxisType.LOOP)
    return [
        r for r in output_ranges(nodes) if r in masking and r.arg.kind in split and r.src[0].op is Ops.CONST
    ]


def _free_part(sink: UOp, loop: UOp) -> tuple[int, int] | None:
    """From where to where no mask of a reduction depends on the loop, if that is most of it."""
    size = loop.src[0].arg
    start, end = 0, size
    for mask in _masks(sink):
        if loop not in ranges_of(mask):
            continue
        ends = _settled(mask, loop, size)
        if ends is None:
            return None
        start, end = max(start, ends[0]), min(end, ends[1])
    return (start, end) if end - start < size and end - start >= MOST * size else None


def _settled(mask: UOp, loop: UOp, size: int) -> tuple[int, int] | None:
    """The longer of the two parts of a loop in which `a < b` has one answer; None if that is not known."""
    ahead = index.sub(mask.src[1], mask.src[0])  # a < b where it is above 0
    step = stride(ahead, loop)
    if not step:
        return None
    least, most = index.bounds(at(ahead, loop, 0))
    if step > 0:
        true, false = (max(0, -least // step + 1), size), (0, min(size, -most // step + 1))
    else:
        true, false = (0, min(size, -(-least // -step))), (max(0, -(-most // -step)), size)
    return max(true, false, key=lambda part: part[1] - part[0])


def _split(sink: UOp, loop: UOp, start: int, end: int) -> UOp:
    """A loop before `start`, from there to `end`, and after it, each with inner loops of its own."""
    nodes = sink.toposort()
    outputs = output_ranges(nodes)
    inner = [r for r in outputs[outputs.index(loop) + 1 :] if r.arg.kind not in IN_REGISTERS]
    fresh = free_numbers(nodes)[0]
    touched = sink.replace(src=tuple([store for store in sink.src if loop in ranges_of(store)]))
    place = sink.src.index(touched.src[0])
    segments: list[UOp] = []
    for first, last in ((0, start), (start, end), (end, loop.src[0].arg)):
        if first == last:
            continue
        own: dict[UOp, UOp] = {}
        if first != start:  # the middle keeps its loops
            own = {r: make_range(as_sint(r.src[0]), fresh + n, r.arg.kind) for n, r in enumerate(inner, 1)}
        walked = make_range(last - first, fresh, loop.arg.kind) if last - first > 1 else index.const(0)
        fresh += 1 + len(inner)
        segments += substitute_ranges(touched, {**own, loop: index.add(walked, index.const(first))}).src
    others = [[s for s in src if s not in touched.src] for src in (sink.src[:place], sink.src[place:])]
    return sink.replace(src=(*others[0], *segments, *others[1]))

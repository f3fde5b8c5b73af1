"""Which ranges become the lanes of vectors, cut to the width of the target's: a part of `vectorize`."""

from __future__ import annotations

import math

from ...dtype import dtypes
from ...ir.nest import free_numbers, ranges_of, scan_ranges
from ...ir.ops import LANEWISE, OPS, Ops
from ...ir.uop import UOp
from ...ir.walks import of_op
from ...target import Core, Target
from ..cost.cost_model import guessing
from ..expressions.lanes import element_cost, step_cost
from ..expressions.ranges import (
    IN_REGISTERS,
    data_dependent,
    index_nodes,
    largest_power_of_two,
    make_range,
    reduces_around,
    stride,
    substitute_ranges,
    typical,
)


def choose_lanes(sink: UOp, target: Target) -> tuple[UOp, set[UOp]]:
    """The graph with its lane ranges cut to the width of vectors, and these ranges.

    No two lane ranges are open at the same time, so that a vector has one range along its lanes. So a range
    is chosen if it saves more than those together that it is open with, and that are not open with each
    other, as the loops over a row for its maximum, its sum, and its results.
    """
    widest = target.vector_bytes or target.load_bytes
    nodes = sink.toposort()
    found = [node for node in of_op(nodes, Ops.RANGE) if node.arg.kind in IN_REGISTERS]
    if widest == 0:
        return sink, set()
    widths = {r: largest_power_of_two(r.src[0].arg, widest // _element_bytes(nodes, r)) for r in found}
    saved = _instructions_saved(nodes, widths, target.core)
    order = [r for r in sorted(found, key=lambda r: (-saved[r], r.arg.id)) if saved[r] > 0]
    meeting = _meeting(nodes, order)
    lanes_first: list[UOp] = []
    for place, r in enumerate(order):
        if meeting[r].isdisjoint(lanes_first):
            others: list[UOp] = []
            for other in order[place + 1 :]:
                if other in meeting[r] and meeting[other].isdisjoint((*lanes_first, *others)):
                    others.append(other)
            if sum([saved[other] for other in others]) <= saved[r]:
                lanes_first.append(r)
    lanes: set[UOp] = set()
    mapping: dict[UOp, UOp] = {}
    fresh = free_numbers(nodes)[0]
    for r in lanes_first:
        width = widths[r]
        if width == r.src[0].arg:
            lanes.add(r)
            continue
        lane = make_range(width, fresh, r.arg.kind)
        fresh += 1
        mapping[r] = make_range(r.src[0].arg // width, r.arg.id, r.arg.kind) * width + lane
        lanes.add(lane)
    return (substitute_ranges(sink, mapping) if mapping else sink), lanes


def _instructions_saved(nodes: list[UOp], widths: dict[UOp, int], core: Core) -> dict[UOp, float]:
    """How many instructions fewer run, roughly, if the lanes of vectors walk a range of registers."""
    addresses = index_nodes(nodes)
    around, by_data = reduces_around(nodes), data_dependent(nodes)
    saved = dict.fromkeys(widths, 0.0)
    for node in nodes:
        is_access = node.op in (Ops.LOAD, Ops.STORE)
        is_value = is_access or node.op is Ops.REDUCE or (node.op in LANEWISE and node not in addresses)
        if node.op is Ops.SCAN:
            for r in scan_ranges(node):
                if r in widths:  # its fastest turns may be lanes, combined with twice the reach each time
                    turns = math.prod(float(typical(other.src[0])) for other in ranges_of(node))
                    saved[r] -= turns * step_cost(widths[r]) if r is scan_ranges(node)[-1] else math.inf
        if not is_value:
            continue
        own = ranges_of(node.src[0] if node.op is Ops.REDUCE else node)
        loops = [ranges_of(reduce).union(reduce.src[1:]) for reduce in around.get(node, ())]
        inside = own.union(*loops)
        count = math.prod(float(typical(r.src[0])) for r in inside if r in own or r not in widths)
        for r in own:
            if r not in widths or widths[r] == 1:
                continue
            step = stride(node.src[0].src[1], r) if is_access else 0
            by_rows = node.op is Ops.LOAD and step != 0 and _has_neighbours(node, r, widths)
            saved[r] += OPS[node.op].cost * count * (1 - element_cost(step, widths[r], by_rows, core))
            if node in by_data:  # a branch, where there are no lanes
                saved[r] += guessing(count, core) * core.arithmetic
            if node.op is Ops.REDUCE and r in node.src[1:]:
                ends = math.prod(float(typical(r.src[0])) for r in ranges_of(node))
                saved[r] -= ends * core.combined
    return saved


def _has_neighbours(load: UOp, lanes: UOp, widths: dict[UOp, int]) -> bool:
    """Whether what is far apart from lane to lane is the columns of a square that can be loaded by rows."""
    place = load.src[0].src[1]
    return any(
        widths.get(r) == widths[lanes] and stride(place, r) == 1 for r in ranges_of(load) if r is not lanes
    )


def _meeting(nodes: list[UOp], ranges: list[UOp]) -> dict[UOp, set[UOp]]:
    """For each of some ranges, the others of them that are open where it is."""
    meeting: dict[UOp, set[UOp]] = {r: set() for r in ranges}
    if len(ranges) > 1:
        for together in {ranges_of(node).intersection(ranges) for node in nodes}:
            for r in together:
                meeting[r] |= together
    return meeting


def _element_bytes(nodes: list[UOp], r: UOp) -> int:
    """The size of the largest element among the values that differ along `r`."""
    sizes = [
        node.dtype.itemsize
        for node in nodes
        if node.op not in (Ops.INDEX, Ops.STORE, Ops.SINK, Ops.RANGE, Ops.STAGE)
        and node.dtype.scalar_type not in (dtypes.index, dtypes.void)
        and r in ranges_of(node)
    ]
    return max(sizes, default=4)

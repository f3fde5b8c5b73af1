"""STAGE of a value: what two loops along an axis compute alike is computed once and kept for a row.

    for i in 0..n:
      for r in 0..m:  total += exp(x[i, r])
      for j in 0..m:  out[i, j] = exp(x[i, j]) / total
becomes
    for i in 0..n:
      for k in 0..m:  temp0[k] = exp(x[i, k])
      for r in 0..m:  total += temp0[r]
      for j in 0..m:  out[i, j] = temp0[j] / total
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ...dtype import dtypes
from ...ir import index
from ...ir.args import AxisType
from ...ir.nest import output_ranges, ranges_of
from ...ir.ops import ELEMENTWISE, OPS, Ops
from ...ir.uop import UOp, toposort
from .loops import Axis, Loops, index_nodes, make_range, substitute_ranges

#: Operations from which on a value that two loops along a row need is kept: writing and reading it cost less.
DEAR = 8


class Kept(NamedTuple):
    """A value as each of some loops along an axis computes it, and what that costs for one element."""

    values: dict[UOp, UOp]  # by the loop's range
    cost: int

    @property
    def nbytes(self) -> int:
        """What is kept for all of one loop."""
        size: int = max(r.src[0].arg for r in self.values)
        return size * max(value.dtype.itemsize for value in self.values.values())


def computed_twice(loops: Loops, axis: Axis) -> Kept | None:
    """The dearest value that two loops along the axis compute alike; None if there is none."""
    if len(axis.ranges) < 2 or axis.parts or axis.blocks or not isinstance(axis.size, int):
        return None
    nodes = loops.sink.toposort()
    here, addresses = set(nodes), index_nodes(nodes)
    around = frozenset(output_ranges(nodes)).difference(axis.ranges)
    best: Kept | None = None
    for r in axis.ranges:
        candidates = [
            node
            for node in nodes
            if node.op in ELEMENTWISE
            and node not in addresses
            and r in (open_ranges := ranges_of(node))
            and open_ranges - {r} <= around
        ]
        for other in axis.ranges[axis.ranges.index(r) + 1 :]:
            there = index.substitute(candidates, {r: other})
            for node in candidates:
                cost = _cost(node, r) if there[node] in here else 0
                if cost > (best.cost if best else 0):
                    best = Kept({r: node, other: there[node]}, cost)
    return best


def with_kept(loops: Loops, axis: Axis, kept: Kept) -> Loops:
    """The loops with the value computed in a loop of its own; that one belongs to the axis too."""
    sink = loops.sink
    nodes = sink.toposort()
    first, value = next(iter(kept.values.items()))
    own = make_range(first.src[0].arg, 1 + max(n.arg.id for n in nodes if n.op is Ops.RANGE), AxisType.LOOP)
    number = sum(node.op is Ops.STAGE for node in nodes)
    memory = UOp(Ops.DEFINE_LOCAL, value.dtype.ptr(own.src[0].arg), (), number)
    computed = substitute_ranges(value, {first: own})
    store = UOp(Ops.STORE, dtypes.void, (UOp(Ops.INDEX, memory.dtype, (memory, own)), computed))
    stage = UOp(Ops.STAGE, memory.dtype, (memory, store, own))
    mapping = {}
    for r in axis.ranges:
        there = index.substitute((value,), {first: r})[value]
        mapping[there] = UOp(Ops.LOAD, value.dtype, (UOp(Ops.INDEX, memory.dtype, (stage, r)),))
    walked = replace(axis, ranges=(*axis.ranges, own))
    axes = tuple(walked if axis.number == each.number else each for each in loops.axes)
    return replace(loops, sink=index.substitute((sink,), mapping)[sink], axes=axes)


def _cost(value: UOp, r: UOp) -> int:
    """What is computed anew for each element along a range, below a value."""
    inside = [node for node in toposort((value,)) if node.op in ELEMENTWISE and r in ranges_of(node)]
    return sum(OPS[node.op].cost for node in inside if node.dtype is not dtypes.index)

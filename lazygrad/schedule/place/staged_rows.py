"""STAGE as a home of values: a row that several loops of a kernel walk is computed once and kept in cache.

softmax(gelu(x)) needs a row of gelu(x) in the loops of the maximum, of the sum and of the result. Computing
it three times is expensive, and so is a trip through memory; a row that is kept costs neither. Placement
counts such a value once, and the kernel says so: its AST has a STAGE of the value, with the row's axis.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import NamedTuple

from ...codegen.expressions.ranges import FEW_TURNS, stride
from ...ir.ops import ELEMENTWISE, OPS, Ops
from ...ir.uop import UOp
from ...ir.walks import reached
from ...shape.movement import base_and_tracker, below_movement
from ...shape.rules import shape_of
from ...target import Target
from ..graph.indices import Indices, free_ranges, through
from ..graph.requested import is_generated, is_materialized


class Row(NamedTuple):
    """A row that a kernel keeps: where the loop that fills it computes the value."""

    indices: Indices
    axis: int
    filling: UOp
    nbytes: int
    nodes: frozenset[UOp]  # that are computed for it


class Rows:
    """What one kernel keeps: `staged` by value. `ranges`: the loops of its results.

    expensive  operations from which on a value that two loops along a row need is kept: those of writing it
               and of reading it again
    """

    __slots__ = ("expensive", "fillings", "found", "outer", "own", "staged", "target")

    def __init__(self, ranges: Indices, target: Target) -> None:
        self.target, self.expensive = target, 2 * target.memory.hit
        loops = [r for r in ranges if r.op is Ops.RANGE]
        self.own = loops[-1] if loops else None
        self.outer = frozenset(loops[:-1])
        self.staged: dict[UOp, Row] = {}
        self.found: dict[UOp, RowCost | None] = {}
        self.fillings: set[UOp] = set()  # the loops that fill rows

    def axis(self, node: UOp, tuples: Mapping[Indices, int], stored: Container[UOp]) -> int | None:
        """The axis of a value along which the kernel's last loop, and others like it, need it, at the same
        place of all other axes; None where no row of it would be kept.
        """
        own = self.own
        if len(tuples) < 2 or own is None or own.src[0].op is not Ops.CONST or node.op not in ELEMENTWISE:
            return None
        nbytes = own.src[0].arg * node.dtype.itemsize
        if nbytes > self.target.row_bytes - sum(row.nbytes for row in self.staged.values()):
            return None
        short = nbytes <= FEW_TURNS * self.target.vector_bytes
        if short and nbytes % self.target.vector_bytes and not self.target.has_masks:
            return None  # no vectors walk it
        first, walks = next(iter(tuples)), {own, *self.fillings}
        found = {axis for at in tuples for axis, index in enumerate(at) if index in walks}
        if len(found) != 1 or len(set(tuples.values())) != 1:
            return None  # or some loop stands in another one, and needs a row again and again
        (axis,) = found
        for at in tuples:
            if len(at) != len(first) or _without(at, axis) != _without(first, axis):
                return None
            if at[axis].op is not Ops.RANGE or at[axis].src != own.src:
                return None
        if not free_ranges(_without(first, axis)) <= self.outer or any(
            at[axis] in self.outer for at in tuples
        ):
            return None
        if not _may_cost(self.expensive, node, stored):
            return None
        needed = self.found[node] = row_cost(node, first, first[axis], stored)
        return axis if needed is not None and needed.cost >= self.expensive else None

    def keep(self, node: UOp, at: Indices, axis: int, filling: UOp) -> Indices:
        """Keep rows of a value; returns where the loop `filling` computes it."""
        place = (*at[:axis], filling, *at[axis + 1 :])
        nbytes, found = filling.src[0].arg * node.dtype.itemsize, self.found[node]
        self.fillings.add(filling)
        self.staged[node] = Row(
            place, axis, filling, nbytes, found.nodes if found is not None else frozenset()
        )
        return place

    def really_staged(self, stored: Mapping[UOp, object]) -> dict[UOp, int]:
        """The values of which rows are kept, and how large these are, once it is known what is stored."""
        return {node: row.nbytes for node, row in self.staged.items() if self._is_dear(node, row, stored)}

    def axes(self, stored: Mapping[UOp, object]) -> dict[UOp, int]:
        """The values of which rows are kept, and along which axis of theirs."""
        return {node: self.staged[node].axis for node in self.really_staged(stored)}

    def _is_dear(self, node: UOp, row: Row, stored: Mapping[UOp, object]) -> bool:
        if row.nodes.isdisjoint(stored):
            return True  # all is computed that was said to be
        found = row_cost(node, row.indices, row.filling, stored)
        return node not in stored and found is not None and found.cost >= self.expensive


def _without(indices: Indices, axis: int) -> Indices:
    return (*indices[:axis], *indices[axis + 1 :])


def _may_cost(operations: int, node: UOp, stored: Container[UOp]) -> bool:
    """Whether a value could take so much work: a few steps, without the places at which it is computed."""
    cost, stack = 0, [node]
    while stack and cost < operations:
        top = stack.pop()
        cost += max(OPS[top.op].cost, 1)
        for source in top.src:
            base = below_movement(source)
            if base.op in ELEMENTWISE and base not in stored and not is_generated(base):
                stack.append(base)
    return cost >= operations


class RowCost(NamedTuple):
    """What a value takes for each element of a row: operations, and the nodes that are computed."""

    cost: int
    nodes: frozenset[UOp]


def row_cost(node: UOp, at: Indices, r: UOp, stored: Container[UOp]) -> RowCost | None:
    """What depends on the loop along a row. None where something is read that is not neighbours in that loop:
    that is better brought in order by a kernel of its own.
    """
    scattered = False

    def computed_from(item: tuple[UOp, Indices]) -> list[tuple[UOp, Indices]]:
        nonlocal scattered
        top, place = item
        found = []
        for source in top.src:
            base, tracker = base_and_tracker(source)
            if is_generated(base):
                continue
            if base.op not in ELEMENTWISE or base in stored or is_materialized(base):
                scattered = scattered or stride(tracker.indexed(place)[0], r) not in (0, 1, -1)
                continue
            below = place if source is base else through(tracker, place, shape_of(base))
            if r in free_ranges(below):
                found.append((base, below))
        return found

    nodes: list[UOp] = []
    for top, _ in reached([(node, at)], computed_from):
        if scattered:
            return None
        nodes.append(top)
    return None if scattered else RowCost(sum(OPS[top.op].cost for top in nodes), frozenset(nodes))

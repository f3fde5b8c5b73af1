"""Tiles of a contraction whose lanes walk the sum: both factors are read where they lie, nothing is packed.

    for each few places of J:                                                         (TILE J)
      for each few places of I:                                                       (UPCAST I, UPCAST J)
        for each vector of steps:   a tile of vectors += vectors of I * vectors of J  (UNROLL)
        combine the lanes of each

That is for products like `x @ weights.T`, both of which are contiguous along the sum. To pack a panel of
weights means to transpose it, which takes longer than multiplying it with few rows; combining lanes takes as
long for each result as a few steps. What is made of a sum afterwards is computed without lanes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from ....ir.ops import Ops
from ....target import Target
from ...cost.cost_model import Loop, cycles
from ..facts import MAX_COST, Facts, size_of
from ..gemm_axes import GemmAxes
from ..moves.actions import Opt, OptOps
from .tiles import SHARED_ROWS

#: Places of I and of J in a tile, the preferred ones first. 8 x 3, which has as many, is slower by a tenth.
SIDES = ((4, 6), (4, 5), (5, 4), (6, 4), (4, 4))
#: Of tiles that take the same but for so much, the first is chosen: it reads all of I least often. Twice 17
#: rows by 6 x 4, which are 36, took 1.1 of the time that they take by 4 x 6, which are 40.
ALIKE = 1.1


class SumTile(NamedTuple):
    """How much of I and of J is computed at once."""

    side: int
    others: int


class SumTiling:
    """A contraction with two of its axes as I and J, and a third for the lanes.

    separate  cycles lost where a tile goes on to another row of memory
    """

    __slots__ = ("axes", "facts", "inner", "separate", "target", "width")

    def __init__(self, facts: Facts, target: Target, roles: GemmAxes, apart: float) -> None:
        self.facts, self.target, self.axes, self.separate = facts, target, roles, apart
        (self.inner,) = [axis for axis in facts.loops.axes if not axis.output]
        self.width = target.vector_bytes // facts.element_bytes

    def tiles(self) -> Iterator[SumTile]:
        """All that may be chosen: those that the registers hold, with a vector of each place of one side. The
        first cache holds what all of I reads again.
        """
        height, length = size_of(self.axes.rows) or 0, size_of(self.axes.lanes) or 0
        if any(2 * access.nbytes > self.target.memory.second for access in self.axes.others):
            return  # all of it is read again for each few places of J
        row = (size_of(self.inner) or 1) * self.facts.element_bytes
        for side, others in SIDES:
            if side > height or others >= length or others * row > self.target.memory.sizes[0] // 2:
                continue
            if side * others + min(side, others) + 1 > self.target.vector_registers:
                continue
            copies = {
                self.axes.rows.number: side,
                self.axes.lanes.number: others,
                self.inner.number: self.width,
            }
            if self.facts.size_of_code(copies, self.inner, self.width) <= MAX_COST:
                yield SumTile(side, others)

    def best_opts(self, most: float = math.inf) -> tuple[float, list[Opt]]:
        """How long it takes with the first of the tiles that take about the least, and its Opts; [] where
        that is longer than `most`.
        """
        found = [(cycles(self.loop_costs(tile), self.target), tile) for tile in self.tiles()]
        least = min([time for time, _ in found], default=math.inf)
        return next(
            ((time, self.opts(tile)) for time, tile in found if time <= ALIKE * least), (math.inf, [])
        )

    def listed(self) -> Iterator[tuple[list[Loop], list[Opt]]]:
        """What the kernel does with each tile, and its Opts."""
        for tile in self.tiles():
            yield self.loop_costs(tile), self.opts(tile)

    def loop_costs(self, tile: SumTile) -> list[Loop]:
        """What the kernel does with a tile."""
        core, memory, item = self.target.core, self.target.memory, self.facts.element_bytes
        rows, lanes = self.axes.rows, self.axes.lanes
        sums = tile.side * tile.others
        top = Loop()
        groups = Loop(-(-(size_of(lanes) or 0) // tile.others), top)
        more = [axis for axis in self.facts.loops.axes if axis.output and axis not in (rows, lanes)]
        outer = Loop(math.prod([size_of(axis) or 1 for axis in more]), groups)
        tiles = Loop(-(-(size_of(rows) or 0) // tile.side), outer, issued=core.iteration)
        body = Loop((size_of(self.inner) or 0) / self.width, tiles, issued=core.iteration)
        body.accumulators, body.waits = sums, core.multiply_add
        body.compute(sums, True)
        body.load(tile.side + tile.others)
        for access in (*self.axes.right, *self.axes.others):
            step, of_lanes, of_rows = (access.step(axis) or 0 for axis in (self.inner, lanes, rows))
            count = tile.others if of_lanes else tile.side
            moved = {body: self.width * step, tiles: tile.side * of_rows, groups: tile.others * of_lanes}
            moved[outer] = min([abs(access.step(axis) or 0) for axis in more], default=0)
            nbytes, apart = float(count * self.target.vector_bytes), abs(of_lanes or of_rows) * item
            body.touch(
                access, access.nbytes, item, nbytes, moved, count if apart >= memory.line else 1, apart
            )
        outside = sum(
            each.price for each in self.facts.operations if not each.reduced and each.op is not Ops.REDUCE
        )
        tiles.compute(sums * (core.combined + outside))
        tiles.store(sums)
        tiles.lost = SHARED_ROWS * self.separate * tile.side
        return [top, groups, outer, tiles, body]

    def opts(self, tile: SumTile) -> list[Opt]:
        """The list of Opts that a tile stands for."""
        rows, lanes = self.axes.rows, self.axes.lanes
        found = []
        for axis, amount in ((rows, tile.side), (lanes, tile.others)):
            if (size_of(axis) or 0) % amount:
                found.append(Opt(OptOps.PADTO, axis.number, amount))
        found.append(Opt(OptOps.TILE, lanes.number, tile.others))
        found.append(Opt(OptOps.UPCAST, rows.number, tile.side))
        found.append(Opt(OptOps.UPCAST, lanes.number, tile.others))
        return [*found, Opt(OptOps.UNROLL, self.inner.reduce, self.width)]

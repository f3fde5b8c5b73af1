"""Plans for a kernel on a processor: which axis lanes walk, and how much of which axis is computed at once.

1. The lanes of vectors walk an axis: one along which neighbours lie in memory, as a rule.
2. If a value loaded in a reduction serves several places of another output axis, a few of these are computed
   at once: a tile of accumulators in registers, each loaded value used by a whole side of it.
3. Otherwise a loop does a few vectors at once: independent sums hide the latency of an addition, and a narrow
   strip of columns would make poor use of what a cache line brings.
4. Short reductions are written out.

Each is a candidate; `heuristic.py` takes one. All are within `MAX_COST`, so that compiling stays a matter of
milliseconds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field

from ....ir.index import as_index, bounds
from ....ir.nest import ranges_of
from ....ir.ops import Ops
from ....ir.uop import UOp
from ....ir.walks import has_op
from ....target import Target
from ...cost.cost_model import Loop
from ...expressions.ranges import BESIDE, FEW_TURNS, divides, largest_power_of_two, typical
from ..facts import MAX_COST, SHORT, Access, Facts, size_of
from ..moves.actions import MAX_UPCAST, Opt, OptOps
from ..moves.inline import rows_along, without_rows
from ..moves.loops import Axis, Loops, is_parallel
from .planned import planned
from .row_blocks import RowBlocks, row_blocks

#: The same, after short reductions were written out.
MAX_WRITTEN_OUT = 320
#: Independent vector sums in a reduction over contiguous elements, the preferred ones first.
SUMS = (4, 8, 2, 1)
#: The shares of the registers that hold sums side by side in a reduction down columns: longer parts of a row
#: are read in order.
STRIPS = (1 / 2, 1 / 4, 1 / 8, 1 / 16)
#: The same for a few rows that share what is read.
STREAM = 3 / 4
#: Steps that are asked for together where an operand comes from memory; measured with 2, 4 and 8 rows times
#: 4096 x 4096.
AHEAD = 4
#: Vectors of running values that are computed at once: only their totals wait for each other.
RUN = 8
#: Operations per element up to which an elementwise loop does two vectors at once, if that is no slower.
CHEAP = 6
#: From this size on an axis may be rounded up to a multiple of a tile's side.
LONG = 16
#: The least and the greatest side of the square in which a transpose reads and writes.
SQUARE, LARGE_SQUARE = 8, 16
#: Strips may make an odd axis so much longer, or as long as whole vectors make it.
PADDING = 1 / 12
#: Axes along which addresses take divisions are written out if they have at most so many places together.
PLACES = 64
#: The sides of register tiles, best first.
SIDES = (8, 6, 4, 5, 7, 3, 2)


def plans(facts: Facts, target: Target, loops: Loops) -> Iterator[Plan]:
    """The candidates, that without lanes first, then the preferred ones first."""
    plan = Plan(facts, target, loops, target.vector_bytes // facts.element_bytes)
    crossing = plan.crossing()
    if crossing:
        plan.transpose(*crossing)
        yield plan.unrolled_short()
        return
    yield copy_of(plan).unrolled_short()
    for axis in reversed(facts.loops.axes):
        if any(axis.number in along for _, along in facts.scans) and not facts.is_contiguous(axis):
            continue  # running values of what lies apart: added one by one they are as near, and as fast
        beside = copy_of(plan)
        if beside.vectorize(axis):
            found = beside.columns(axis) if axis.output and axis.reduce is None else beside.rows(axis)
            alone = copy_of(beside)
            yield from (each.unrolled_short() for each in found)
            yield from (each.unrolled_short() for each in alone.with_short(axis))


def copy_of(plan: Plan) -> Plan:
    made = copy(plan)
    made.amounts, made.padded, made.blocks = dict(plan.amounts), dict(plan.padded), dict(plan.blocks)
    return made


@dataclass(eq=False)
class Plan:
    """The amounts chosen so far, by axis number.

    loops    the kernel as it came, with the rows it keeps; `facts` are those without, until some are left
    width    how many lanes a vector has
    lanes    the axis of the lanes
    staged   the axis along which the kernel's rows are kept
    keeping  the facts with the rows along an axis kept, if there are such rows; for all plans of the kernel
    """

    facts: Facts
    target: Target
    loops: Loops
    width: int
    amounts: dict[int, int] = field(default_factory=dict)
    padded: dict[int, int] = field(default_factory=dict)
    blocks: dict[int, int] = field(default_factory=dict)
    row_blocks: RowBlocks | None = None
    lanes: Axis | None = None
    staged: Axis | None = None
    keeping: dict[int, Facts | None] = field(default_factory=dict)

    def unrolled_short(self) -> Plan:
        """The plan with what is short written out: axes that addresses take divisions of, and reductions."""
        self.write_out_divisions()
        for axis in reversed(self.facts.loops.axes):
            size = size_of(axis)
            if axis.output or axis.number in self.amounts or size is None or size > SHORT:
                continue
            if self.fits(axis, size, MAX_WRITTEN_OUT):
                self.amounts[axis.number] = size
        return self

    def loop_costs(self) -> list[Loop]:
        """What the kernel does with this plan."""
        return planned(self.facts, self.target, self.amounts, self.row_blocks)

    def size_of_code(self) -> float:
        """About how many operations are written out, on vectors."""
        return self.facts.size_of_code(self.amounts) / self.width

    def opts(self) -> list[Opt]:
        """The list of Opts that it stands for."""
        facts = self.facts
        found: list[Opt] = []
        for axis in facts.loops.axes:
            if axis.number in self.padded:
                found.append(Opt(OptOps.PADTO, axis.number, self.padded[axis.number]))
        for axis in facts.loops.axes:
            amount = self.amounts.get(axis.number, 1)
            if amount == 1:
                continue
            if axis.output:
                found.append(Opt(OptOps.UPCAST, axis.number, amount))
            elif self.row_blocks is None:
                found.append(Opt(OptOps.UNROLL, axis.reduce, amount))
        if self.row_blocks is not None:
            found = self.row_blocks.opts(facts, found)
        kept = rows_along(self.loops, self.staged) if self.staged is not None else []
        at_once = {r for axis in self.loops.axes if self.amounts.get(axis.number, 1) > 1 for r in axis.ranges}
        if any(not ranges_of(row).isdisjoint(at_once) for row in kept):  # lanes would need rows of their own
            self.staged = None
        stages = has_op(self.loops.sink.toposort(), Ops.STAGE)
        for axis in reversed(self.loops.axes) if stages else ():
            if axis is not self.staged and rows_along(self.loops, axis):
                found.insert(0, Opt(OptOps.INLINE, axis.number))
        found += [Opt(OptOps.TILE, number, amount) for number, amount in self.blocks.items()]
        return found

    def fits(self, axis: Axis, amount: int, most: int = MAX_COST) -> bool:
        """Whether the kernel stays small with this amount."""
        at_once = {**self.amounts, axis.number: amount}
        size = self.facts.size_of_code(at_once, self.lanes, self.width, self.target.has_gathers)
        return size << len(self.padded) <= most  # each tail writes the body once more

    # *** the axis of the lanes

    def vectorize(self, axis: Axis) -> bool:
        """Give the axis a vector's worth of lanes; whether any were found."""
        self.width = self.target.vector_bytes // self.facts.bytes_along.get(axis.number, 1)
        lanes = self.lanes_of(axis)
        if lanes < 2:
            return False
        if not divides(lanes, axis.size):
            self.padded[axis.number] = lanes
        self.lanes = axis
        self.width = lanes
        self.amounts[axis.number] = lanes
        return True

    def fills_vectors(self, lanes: Axis) -> bool:
        """Whether the lanes are as many as a vector has, not only as many as divide a short axis."""
        return self.width * self.facts.bytes_along.get(lanes.number, 1) >= self.target.vector_bytes

    def lanes_of(self, axis: Axis) -> int:
        """How many lanes an axis is given, up to a vector's worth."""
        whole = max(1, self.width)
        while not divides(whole, axis.size):
            whole //= 2
        return self.padded_lanes(axis, size_of(axis), whole) if whole < self.width else whole

    def padded_lanes(self, axis: Axis, size: int | None, whole: int) -> int:
        """Lanes for a size that vectors do not divide: some of the last vector's stay unused, behind a mask.

        That needs masks that cost nothing, or a loop long enough for one slow turn.
        """
        cheap = self.target.has_masks
        if not cheap and any(axis.number in along for _, along in self.facts.scans):
            return whole  # there is no last turn apart
        if size is None:
            most = max(bounds(as_index(axis.size))[1], 1)
            lanes = min(self.width, 1 << (most - 1).bit_length())  # PADTO refuses many more than there can be
            return lanes if cheap or typical(as_index(axis.size)) >= self.width else whole
        lanes = min(self.width, 1 << (size - 1).bit_length())
        turns = -(-size // lanes)
        keeps = 4 * turns > 3 * (size // whole) or not (cheap or turns > FEW_TURNS)
        return whole if keeps else lanes

    # *** transposes

    def crossing(self) -> tuple[Axis, Axis] | None:
        """Two output axes, one contiguous for stores and the other for loads, where nothing is reduced."""
        facts = self.facts
        if facts.sums:
            return None
        rows = [axis for axis in facts.loops.axes if axis.output and (size_of(axis) or 0) >= SQUARE]
        rows = [axis for axis in rows if axis.number not in facts.sequential]
        for axis in rows:
            for other in rows:
                if axis is not other and self._contiguous_for(axis, other, Ops.STORE):
                    if self._contiguous_for(other, axis, Ops.LOAD):
                        return axis, other
        return None

    def _contiguous_for(self, axis: Axis, other: Axis, op: Ops) -> bool:
        """Whether some load or store is contiguous along the axis and far apart along the other one."""
        return any(
            access.node.op is op and access.step(axis) == 1 and abs(access.step(other) or 0) > 1
            for access in self.facts.accesses
        )

    def transpose(self, axis: Axis, other: Axis) -> None:
        """A square at a time: of as many vectors as each has lanes, where the registers hold two of them.

        All of a cache line is used while it is there.
        """
        most = min(self.width, self.target.vector_registers // 2, LARGE_SQUARE)
        sizes = [size_of(each) or 0 for each in (axis, other)]
        sides = [side for side in (most, SQUARE) if side >= SQUARE and not any(size % side for size in sizes)]
        for each, size in zip((axis, other), sizes, strict=True):
            whole = [*sides, *(side for side in (SQUARE, SQUARE // 2) if size % side == 0)]
            if not sides and size % SQUARE and size >= 4 * SQUARE:
                whole = [SQUARE]
                self.padded[each.number] = SQUARE
            if whole:
                self.amounts[each.number] = whole[0]
        self.take_blocks(axis)

    def take_blocks(self, axis: Axis) -> None:
        """A few squares side by side along the axis that stores walk, then the next ones along the other.

        What was written of a page of memory, and the rows that are read, are then near when their turn comes.
        """
        size = (size_of(axis) or 0) // self.amounts.get(axis.number, 1)
        alone = len(axis.ranges) == 1 and axis.reduce is None and is_parallel(axis)
        side = next((side for side in SIDES if size % side == 0), 0)
        if alone and axis.number not in self.padded and size >= LONG and side > 2:
            self.blocks[axis.number] = side

    def with_short(self, lanes: Axis) -> Iterator[Plan]:
        """A short output axis as a whole, if something that differs along the lanes is the same along it.

        Where a pixel comes from is the same for all channels: computed once, it is used for each.
        """
        facts = self.facts
        for axis in facts.loops.axes:
            size = size_of(axis)
            if not axis.output or axis.number in self.amounts or size is None or not 1 < size <= BESIDE:
                continue
            alike = any(lanes.number in axes and axis.number not in axes for axes in facts.computed)
            if alike and self.fits(axis, size):
                plan = copy_of(self)
                plan.take(axis, size)
                yield plan

    # *** what is computed at once beside it

    def columns(self, lanes: Axis) -> Iterator[Plan]:
        """The lanes are an output's: a tile of accumulators, a strip of columns, or vectors of cheap work."""
        facts, registers = self.facts, self.target.vector_registers
        streamed = facts.streamed(self.width)
        if streamed is not None and streamed[1].number == lanes.number:
            self.stream(*streamed)
            yield copy_of(self)
            yield from self.in_row_blocks(lanes)
            return
        reduces = any(access.reduced for access in facts.accesses)
        rows = [axis for axis in facts.loops.axes if axis.output and axis.number != lanes.number]
        best = max(rows, key=lambda axis: len(facts.reused(axis, lanes)), default=None)
        if best is not None and reduces and facts.reused(best, lanes):
            yield from self.tiles(best, lanes)
        elif reduces or any(lanes.number not in along for _, along in facts.scans):
            strips = [int(registers * share) for share in STRIPS]
            near = facts.is_near(lanes, self.target.memory.line)
            found = list(self.wider(lanes, strips if near else (1,)))
            yield from map(copy_of, found)
            yield from itertools.islice((each for plan in found for each in plan.in_row_blocks(lanes)), 1)
        elif facts.scans:
            vectors = -(-(size_of(lanes) or 1) // self.width)
            some = min(RUN, vectors // 2)
            most = some if self.widened(lanes, some) or vectors > RUN else vectors
            yield from self.wider(lanes, (most, most // 2, most // 4))
        else:
            yield from self.wider(lanes, (2, 1, 4) if facts.size_of_code({}) <= CHEAP else (1, 2, 4))

    def in_row_blocks(self, lanes: Axis) -> Iterator[Plan]:
        """The same with the sum in rounds, if rows are read in order then."""
        self.row_blocks = row_blocks(self.facts, self.target, lanes, self.amounts, self.fits)
        if self.row_blocks is not None:
            self.amounts[self.row_blocks.summed] = self.row_blocks.at_once
            yield self

    def wider(self, lanes: Axis, times: Sequence[int]) -> Iterator[Plan]:
        """So many vectors at once, as far as that is possible."""
        counts = dict.fromkeys(self.widened(lanes, count) for count in times)
        for count in counts or (0,):
            plan = copy_of(self)
            if count:
                plan.take(lanes, count * self.width)
            yield plan

    def stream(self, access: Access, lanes: Axis, rows: list[Axis]) -> None:
        """All rows at once, by vectors that fill most of the registers with sums: an operand is read once.

        Where it comes from memory, the next rows of it are asked for before they are needed.
        """
        side = 1
        for axis in rows:
            size = size_of(axis) or 1
            if size > 1 and self.fits(axis, size):
                self.amounts[axis.number] = size
                side *= size
        share = STRIPS[0] if side == 1 else STREAM
        self.widen(lanes, int(self.target.vector_registers * share) // side)
        (inner,) = [axis for axis in self.facts.loops.axes if not axis.output]
        size = size_of(inner) or 1
        nbytes = (size_of(lanes) or 1) * size * access.node.dtype.itemsize
        ahead = largest_power_of_two(size, AHEAD)
        if side > 1 and ahead > 1 and nbytes > max(self.target.memory.sizes):
            if self.fits(inner, ahead):
                self.amounts[inner.number] = ahead

    def tiles(self, rows: Axis, lanes: Axis) -> Iterator[Plan]:
        """A tile of `side` rows by one or two vectors, with room in the registers for what is loaded."""
        room = self.target.vector_registers * 5 // 8
        for across in (2, 1) if self.widened(lanes, 2) and room >= 8 else (1,):
            for side in self.sides(rows, [side for side in SIDES if side * across <= room]):
                plan = copy_of(self)
                plan.take(rows, side)
                if across == 2:
                    plan.widen(lanes, 2)
                yield plan

    def sides(self, axis: Axis, sides: Sequence[int]) -> list[int]:
        """Those that divide the axis, or any of an axis so long that a turn with fewer does not matter."""
        size = size_of(axis)
        if size is None:
            return [1]
        fitting = [side for side in sides if (size % side == 0 or size >= LONG) and self.fits(axis, side)]
        return fitting or [1]

    def side(self, axis: Axis, sides: Sequence[int]) -> int:
        """The first side that divides the axis, if it is at least half as long as the longest.

        Else that which wastes least, of an axis so long that a turn with fewer does not matter.
        """
        size = size_of(axis)
        sides = [side for side in sides if self.fits(axis, side)]
        if size is None or not sides:
            return 1
        whole = next((side for side in sides if size % side == 0), 1)
        if size < LONG or 2 * whole >= sides[0]:
            return whole
        return min(sides[: len(sides) // 2 + 1], key=lambda side: -size % side)

    def take(self, axis: Axis, side: int) -> None:
        """Compute `side` places of an axis at once, the last ones behind masks if it does not divide."""
        size = size_of(axis)
        if size is None or side < 2:
            return
        self.amounts[axis.number] = side
        if size % side:
            self.padded[axis.number] = side

    def rows(self, lanes: Axis) -> Iterator[Plan]:
        """The lanes are a reduction's: rows side by side that share what is loaded, or one."""
        if lanes.output:
            for plan in self.wider(lanes, SUMS):
                plan.keep(lanes)
                if plan.staged is not None and plan.amounts[lanes.number] == plan.width:
                    plan.widen(lanes, SUMS[0])  # what is kept is not written twice
                yield plan
            if self.fills_vectors(lanes):
                yield from self.side_by_side(lanes, (4, 2, 1))
            return
        for longest in (4, 3, 2):
            plan, sums, served = copy_of(self), 1, set[UOp]()
            for _ in range(2):
                axis, side = plan.next_side(lanes, served, range(longest, 1, -1))
                if axis is None:
                    break
                served.update(access.node for access in plan.facts.reused(axis, lanes))
                plan.take(axis, side)
                sums *= side
            yield from plan.wider(lanes, [count // sums for count in SUMS if count >= sums] or (1,))
            yield from plan.with_all(lanes, sums)
            if sums == 1:
                yield from self.side_by_side(lanes, (2, 1))
                return
        yield from copy_of(self).wider(lanes, SUMS)

    def with_all(self, lanes: Axis, sums: int) -> Iterator[Plan]:
        """Short output axes as wholes beside so many sums, if something that is loaded is the same there.

        Weights are then read once for all images of a small batch: 512 x 13,824 for two of 2 x 2 places took
        4,890 us in the loop over images, and take 2,730 (a Xeon with AVX-512).
        """
        plan = copy_of(self)
        for axis in self.facts.loops.axes:
            size = size_of(axis)
            if not axis.output or axis.number in plan.amounts or size is None or size == 1:
                continue
            if sums * size <= self.target.vector_registers and plan.fits(axis, size):
                if self.facts.reused(axis, lanes):
                    plan.take(axis, size)
                    sums *= size
        if plan.amounts != self.amounts:
            yield plan

    def side_by_side(self, lanes: Axis, times: Sequence[int]) -> Iterator[Plan]:
        """A few rows that share nothing: their walks through memory and their sums go on side by side.

        A layer norm of 4096 x 1024: 1.72 ms row by row, 1.32 by fours.
        """
        outputs = [axis for axis in self.facts.loops.axes if axis.output and axis.number != lanes.number]
        for side in (4, 2) if outputs else ():
            if divides(side, outputs[-1].size) and self.fits(outputs[-1], side):
                plan = copy_of(self)
                plan.take(outputs[-1], side)
                yield from plan.wider(lanes, times)

    def keep(self, lanes: Axis) -> None:
        """Leave the rows that are kept along the lanes as they are, where these fill a vector.

        Softmax of (64, 10) in pairs of lanes: 14.6 us with the exponentials kept, 6.0 without.
        """
        size = size_of(lanes)
        if not self.fills_vectors(lanes):
            return
        if size is None or size <= self.amounts.get(lanes.number, 1):
            return  # it is written out: nothing is computed twice
        if lanes.number not in self.keeping:
            axis, loops = self.loops.axes[lanes.number], self.loops
            kept = rows_along(loops, axis)
            for other in loops.axes if kept else ():
                loops = loops if other is axis else without_rows(loops, other)
            self.keeping[lanes.number] = Facts.of(loops, filling=True) if kept else None
        facts = self.keeping[lanes.number]
        if facts is not None:
            self.staged, self.facts = self.loops.axes[lanes.number], facts

    def next_side(self, lanes: Axis, served: set[UOp], sides: Sequence[int]) -> tuple[Axis | None, int]:
        """The output axis along which most loads that are not served yet are the same, and how much of it."""
        found: tuple[Axis | None, int] = (None, 1)
        best = (0, 0)
        for axis in self.facts.loops.axes:
            size = size_of(axis)
            if not axis.output or size is None or axis.number in self.amounts:
                continue
            more = sum(access.node not in served for access in self.facts.reused(axis, lanes))
            side = self.side(axis, sides)
            if more and side > 1 and (more, side) > best:
                best, found = (more, side), (axis, side)
        return found

    def widened(self, axis: Axis, times: int) -> int:
        """The largest number of vectors up to `times` that divides the axis and keeps the kernel small."""
        size, times = size_of(axis), min(times, MAX_UPCAST // self.width)
        if size is None or times < 2:
            return 0
        if axis.number in self.padded:
            longest = max(size + int(PADDING * size), size + -size % self.width)
            for count in range(times, 1, -1):
                side = count * self.width
                if size + -size % side <= longest and self.fits(axis, side):
                    return count
            return 0
        vectors = size // self.width
        for count in range(times, 1, -1):
            if vectors % count == 0 and self.fits(axis, count * self.width):
                return count
        return 0

    def widen(self, axis: Axis, times: int) -> None:
        count = self.widened(axis, times)
        if count:
            self.take(axis, count * self.width)

    def write_out_divisions(self) -> None:
        """Short axes that addresses take divisions of: written out, these are known, and masks fold away."""
        facts = self.facts
        sizes = {axis.number: size_of(axis) or PLACES + 1 for axis in facts.loops.axes}
        for axes in sorted(facts.divisions, key=lambda axes: math.prod(sizes[number] for number in axes)):
            left = [
                axis for axis in facts.loops.axes if axis.number in axes and axis.number not in self.amounts
            ]
            places = math.prod(sizes[number] for number in axes)
            whole = all(self.amounts.get(number, sizes[number]) == sizes[number] for number in axes)
            if (
                not left
                or not whole
                or places > PLACES
                or any(axis.number in facts.sequential for axis in left)
            ):
                continue
            chosen = {axis.number: sizes[axis.number] for axis in left}
            self.amounts.update(chosen)
            if not self.fits(left[0], chosen[left[0].number]):
                for number in chosen:
                    del self.amounts[number]

"""Which Opts to apply on a processor where nobody says, read off the kernel's accesses and the Target.

1. The axis along which most elements are neighbours in memory is walked by the lanes of vectors.
2. If a value loaded in a reduction serves several places of another output axis, a few of these are computed
   at once: a tile of accumulators in registers, each loaded value used by a whole side of it.
3. Otherwise a loop does a few vectors at once: independent sums hide the latency of an addition, and a narrow
   strip of columns would make poor use of what a cache line brings.
4. Short reductions are written out.

All within `MAX_COST`, so that compiling stays a matter of milliseconds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from ...device import Target
from ...ir.index import as_index
from ...ir.nest import ranges_of, scan_ranges
from ...ir.ops import OPS, Kind, Ops
from ...ir.uop import UOp
from .actions import Opt, OptOps
from .loops import (
    ACROSS,
    GATHERED,
    Axis,
    Loops,
    index_nodes,
    is_computed,
    largest_power_of_two,
    reduces_around,
    stride,
    typical,
)

#: Simple operations in the vectorized kernel (LLVM takes about 8 ms for so many).
MAX_COST = 800
#: The same, after short reductions were written out.
MAX_WRITTEN_OUT = 320
#: A reduction of at most this many steps is written out.
SHORT = 8
#: Independent vector sums in a reduction over contiguous elements; measured with row sums of 4096 x 4096.
SUMS = 4
#: Vectors side by side in a reduction down columns; measured with column sums of 4096 x 4096.
STRIP = 8
#: Cycles from one step of a SCAN to the next, if no other one hides them.
CHAIN = 4.0
#: Operations per element up to which an elementwise loop does two vectors at once.
CHEAP = 6
#: Vectors are used where they take at most this share of the instructions.
WORTHWHILE = 0.8
#: From this size on an axis may be rounded up to a multiple of a tile's side.
LONG = 16
#: The side of the square in which a transpose reads and writes; measured with 4096 x 4096.
SQUARE = 8
#: Axes along which addresses take divisions are written out if they have at most so many places together.
PLACES = 64
#: The sides of register tiles, best first.
SIDES = (8, 6, 4, 5, 7, 3, 2)


@dataclass(frozen=True)
class Access:
    """A load or store: how often it happens, and by how many elements it moves along each axis.

    A stride of None is one that is not the same everywhere; an axis that is missing does not move it.
    """

    node: UOp
    count: float
    strides: dict[int, int | None]
    around: frozenset[int]  # the axes of all loops around it
    reduced: bool  # whether a reduction is around it

    def step(self, axis: Axis) -> int | None:
        return self.strides.get(axis.number, 0)


@dataclass
class Facts:
    """What the choice rests on.

    values   what each operation costs, and the axes along which its value differs
    work     how many operations are done inside the loops of these axes
    sums     how many reductions end, and the axes that they close
    divisions  the axes that some address is computed from by a division, other than a shift
    scans    how many steps running values take, and the axes that they run along
    in_turn  the axes along which some running value takes one step after the other
    """

    loops: Loops
    accesses: list[Access] = field(default_factory=list)
    values: list[tuple[int, frozenset[int]]] = field(default_factory=list)
    work: dict[frozenset[int], float] = field(default_factory=dict)
    sums: list[tuple[float, frozenset[int]]] = field(default_factory=list)
    divisions: set[frozenset[int]] = field(default_factory=set)
    scans: list[tuple[float, frozenset[int]]] = field(default_factory=list)
    in_turn: set[int] = field(default_factory=set)
    element_bytes: int = 1

    @staticmethod
    def of(loops: Loops) -> Facts:
        facts = Facts(loops)
        number_of = {r: axis.number for axis in loops.axes for r in axis.ranges}
        nodes = loops.sink.toposort()
        inside_of = reduces_around(nodes)
        addresses = index_nodes(nodes)
        for node in nodes:
            info = OPS[node.op]
            is_access = node.op in (Ops.LOAD, Ops.STORE)
            if node.op in (Ops.IDIV, Ops.MOD) and node in addresses and not _is_shift(node.src[1]):
                facts.divisions.add(frozenset(number_of[r] for r in ranges_of(node) if r in number_of))
            if node.op is Ops.SCAN:
                along = frozenset(number_of[r] for r in scan_ranges(node) if r in number_of)
                steps = math.prod(float(typical(r.src[0])) for r in ranges_of(node))
                facts.scans.append((steps, along))
                if node.arg is Ops.MULACC:
                    facts.in_turn |= along
            is_value = is_access or node.op is Ops.REDUCE or info.kind is Kind.ELEMENTWISE
            if not is_value or node in addresses:
                continue
            outside = [ranges_of(reduce).union(reduce.src[1:]) for reduce in inside_of.get(node, ())]
            below = node.src[0] if node.op is Ops.REDUCE else node
            inside = ranges_of(below).union(*outside)
            count = math.prod(float(typical(r.src[0])) for r in inside)
            around = frozenset(number_of[r] for r in inside if r in number_of)
            axes = frozenset(number_of[r] for r in ranges_of(below) if r in number_of)
            facts.values.append((info.cost, axes))
            facts.element_bytes = max(facts.element_bytes, node.dtype.itemsize)
            if is_access:
                place = node.src[0].src[1]
                moved = {r: stride(place, r) for r in ranges_of(node.src[0])}
                strides = {number_of[r]: step for r, step in moved.items() if r in number_of}
                facts.accesses.append(Access(node, count, strides, around, bool(outside)))
                continue
            facts.work[around] = facts.work.get(around, 0.0) + count * info.cost
            if node.op is Ops.REDUCE:
                closed = frozenset(number_of[r] for r in node.src[1:] if r in number_of)
                ends = count / math.prod(float(typical(r.src[0])) for r in node.src[1:])
                facts.sums.append((ends, closed))
        return facts

    def size_of_code(self, copies: dict[int, int], lanes: Axis | None = None, width: int = 1) -> int:
        """Operations written out when so many places of these axes are computed at once.

        A vector of `width` places along `lanes` is one operation, unless its lanes are gathered.
        """
        vectors = dict(copies)
        if lanes is not None:
            vectors[lanes.number] = max(1, copies.get(lanes.number, 1) // width)
        total = sum(
            price * math.prod(vectors[number] for number in axes if number in vectors)
            for price, axes in self.values
        )
        if lanes is not None:
            for access in self.accesses:
                if access.step(lanes) not in (0, 1, -1):
                    total += math.prod(copies[number] for number in access.strides if number in copies)
        return total

    def time(self, axis: Axis | None, lanes: float) -> float:
        """Roughly how many instructions run if this axis is walked by so many lanes; None: if none is."""
        total = 0.0
        for access in self.accesses:
            total += access.count * self._share(access, axis, lanes)
        for around, work in self.work.items():
            total += work / lanes if axis is not None and axis.number in around else work
        if axis is not None:
            total += sum(ends * ACROSS for ends, closed in self.sums if axis.number in closed)
        for steps, along in self.scans:
            if axis is None:
                total += CHAIN * steps
            elif axis.number in self.in_turn:
                return math.inf
            elif axis.number in along:
                # a shuffle and an operation for each doubling of the reach, and some more
                total += steps * (2 * math.log2(max(lanes, 2)) + 4 + CHAIN) / lanes
            else:
                total += CHAIN * steps / lanes
        return total

    def _share(self, access: Access, axis: Axis | None, lanes: float) -> float:
        """What one access costs, if those of several lanes become one."""
        if axis is None or axis.number not in access.around:
            return 1.0
        step = access.step(axis)
        if step in (0, 1, -1):
            return 1.0 / lanes
        if access.node.op is Ops.LOAD and self._serves_others(access, axis):
            return GATHERED / 3  # one gathered vector serves a few rows of a tile
        return GATHERED

    def _serves_others(self, access: Access, lanes: Axis) -> bool:
        """Whether several places of another output axis may share what is loaded in a reduction."""
        others = (axis for axis in self.loops.axes if axis.output and axis.number != lanes.number)
        return access.reduced and any(
            axis.number in access.around and access.step(axis) == 0 for axis in others
        )

    def reused(self, axis: Axis, lanes: Axis) -> list[Access]:
        """The loads for the lanes of a reduction that would serve several places of this axis."""
        return [
            access
            for access in self.accesses
            if access.reduced and access.step(lanes) != 0 and access.step(axis) == 0
        ]


def _is_shift(divisor: UOp) -> bool:
    return divisor.op is Ops.CONST and divisor.arg > 0 and divisor.arg & (divisor.arg - 1) == 0


def _size(axis: Axis) -> int | None:
    return axis.size if isinstance(axis.size, int) else None


# *** the choice


def choose(kernel: UOp | Loops, target: Target) -> list[Opt]:
    """The Opts for a kernel (form 3) on a target."""
    loops = Loops.of(kernel) if isinstance(kernel, UOp) else kernel
    if not loops.axes or target.vector_bytes == 0 or in_order(loops):
        return []
    return _Plan(Facts.of(loops), target).opts()


def in_order(loops: Loops) -> bool:
    """Whether some store depends on the order of its loops."""
    return any(store.arg is not None or is_computed(store.src[0].src[1]) for store in loops.sink.src)


class _Plan:
    """The amounts chosen so far, by axis number."""

    def __init__(self, facts: Facts, target: Target) -> None:
        self.facts, self.target = facts, target
        self.amounts: dict[int, int] = {}
        self.padded: dict[int, int] = {}
        self.width = target.vector_bytes // facts.element_bytes

    def opts(self) -> list[Opt]:
        facts = self.facts
        crossing = self.crossing()
        lanes = None if crossing else self.lane_axis()
        if crossing:
            self.transpose(*crossing)
        elif lanes is not None and self.vectorize(lanes):
            if lanes.output and lanes.reduce is None:
                self.beside_columns(lanes)
            else:
                self.beside_rows(lanes)
        self.write_out_divisions()
        self.write_out_short_reductions()
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
            else:
                found.append(Opt(OptOps.UNROLL, axis.reduce, amount))
        return found

    def fits(self, axis: Axis, amount: int, most: int = MAX_COST) -> bool:
        """Whether the kernel stays small with this amount."""
        size = self.facts.size_of_code({**self.amounts, axis.number: amount}, self.lanes, self.width)
        return size << len(self.padded) <= most  # each tail writes the body once more

    # *** the axis of the lanes

    lanes: Axis | None = None

    def lane_axis(self) -> Axis | None:
        """The axis whose lanes save most; the later one of two alike."""
        facts = self.facts
        best, least = None, facts.time(None, 1.0) * WORTHWHILE
        for axis in facts.loops.axes:
            size = typical(as_index(axis.size))
            lanes = size / -(-size // self.width)  # that are used, on average
            time = facts.time(axis, lanes)
            if lanes > 1 and time <= least:
                best, least = axis, time
        return best

    def vectorize(self, axis: Axis) -> bool:
        """Give the axis a vector's worth of lanes; whether any were found."""
        size, width = _size(axis), self.width
        lanes = 1
        if size is not None:
            lanes = largest_power_of_two(size, width)
        if lanes < width and width > 1:
            lanes = self.padded_lanes(axis, size, lanes)
        if lanes < 2:
            return False
        self.lanes = axis
        self.width = lanes
        self.amounts[axis.number] = lanes
        return True

    def padded_lanes(self, axis: Axis, size: int | None, whole: int) -> int:
        """Lanes for a size that vectors do not divide: some of the last vector's stay unused, behind a mask.

        That needs masks that cost nothing, as 64-byte vectors have them, or a loop long enough for one slow
        turn.
        """
        cheap = self.target.vector_bytes >= 64
        if not cheap and any(axis.number in along for _, along in self.facts.scans):
            return whole  # there is no last turn apart
        if size is None:
            if not cheap or typical(as_index(axis.size)) < self.width:
                return 1
            self.padded[axis.number] = self.width
            return self.width
        lanes = min(self.width, 1 << (size - 1).bit_length())
        turns = -(-size // lanes)
        if 4 * turns > 3 * (size // whole) or not (cheap or turns > 4):
            return whole
        self.padded[axis.number] = lanes
        return lanes

    # *** transposes

    def crossing(self) -> tuple[Axis, Axis] | None:
        """Two output axes, one contiguous for stores and the other for loads, where nothing is reduced."""
        facts = self.facts
        if facts.sums:
            return None
        rows = [axis for axis in facts.loops.axes if axis.output and (_size(axis) or 0) >= SQUARE]
        rows = [axis for axis in rows if axis.number not in facts.in_turn]
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
        """A square at a time, so that all of a cache line is used while it is there."""
        for each in (axis, other):
            size = _size(each) or 0
            side = next((side for side in (SQUARE, SQUARE // 2) if size % side == 0), 0)
            if not side and size >= 4 * SQUARE:
                side = self.padded[each.number] = SQUARE
            if side:
                self.amounts[each.number] = side

    # *** what is computed at once beside it

    def beside_columns(self, lanes: Axis) -> None:
        """The lanes are an output's: a tile of accumulators, a strip of columns, or vectors of cheap work."""
        facts = self.facts
        reduces = any(access.reduced for access in facts.accesses)
        rows = [axis for axis in facts.loops.axes if axis.output and axis.number != lanes.number]
        best = max(rows, key=lambda axis: len(facts.reused(axis, lanes)), default=None)
        if best is not None and reduces and facts.reused(best, lanes):
            self.tile(best, lanes)
        elif reduces or any(lanes.number not in along for _, along in facts.scans):
            self.widen(lanes, STRIP)
        elif facts.size_of_code({}) <= CHEAP:
            self.widen(lanes, 2)

    def tile(self, rows: Axis, lanes: Axis) -> None:
        """A tile of `side` rows by one or two vectors, with room in the registers for what is loaded."""
        room = self.target.vector_registers * 5 // 8
        across = 2 if self.widened(lanes, 2) and room >= 8 else 1
        self.take(rows, self.side(rows, [side for side in SIDES if side * across <= room]))
        if across == 2:
            self.widen(lanes, 2)

    def side(self, axis: Axis, sides: Sequence[int]) -> int:
        """The first side that divides the axis, if it is at least half as long as the longest.

        Else that which wastes least, of an axis so long that a turn with fewer does not matter.
        """
        size = _size(axis)
        sides = [side for side in sides if self.fits(axis, side)]
        if size is None or not sides:
            return 1
        whole = next((side for side in sides if size % side == 0), 1)
        if size < LONG or 2 * whole >= sides[0]:
            return whole
        return min(sides[: len(sides) // 2 + 1], key=lambda side: -size % side)

    def take(self, axis: Axis, side: int) -> None:
        """Compute `side` places of an axis at once, the last ones behind masks if it does not divide."""
        size = _size(axis)
        if size is None or side < 2:
            return
        self.amounts[axis.number] = side
        if size % side:
            self.padded[axis.number] = side

    def beside_rows(self, lanes: Axis) -> None:
        """The lanes are a reduction's: rows side by side that share what is loaded, else several sums."""
        facts = self.facts
        if lanes.output:
            self.widen(lanes, 2)
            return
        sums = 1
        served: set[UOp] = set()
        for _ in range(2):
            axis, side = self.next_side(lanes, served)
            if axis is None:
                break
            served.update(access.node for access in facts.reused(axis, lanes))
            self.take(axis, side)
            sums *= side
        if sums < SUMS:
            self.widen(lanes, SUMS // sums)

    def next_side(self, lanes: Axis, served: set[UOp]) -> tuple[Axis | None, int]:
        """The output axis along which most loads that are not served yet are the same, and how much of it."""
        found: tuple[Axis | None, int] = (None, 1)
        best = (0, 0)
        for axis in self.facts.loops.axes:
            size = _size(axis)
            if not axis.output or size is None or axis.number in self.amounts:
                continue
            more = sum(access.node not in served for access in self.facts.reused(axis, lanes))
            side = self.side(axis, (4, 3, 2))
            if more and side > 1 and (more, side) > best:
                best, found = (more, side), (axis, side)
        return found

    def widened(self, axis: Axis, times: int) -> int:
        """The largest number of vectors up to `times` that divides the axis and keeps the kernel small."""
        size = _size(axis)
        if size is None:
            return 0
        if axis.number in self.padded:
            return times if size >= 4 * times * self.width and self.fits(axis, times * self.width) else 0
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
        sizes = {axis.number: _size(axis) or PLACES + 1 for axis in facts.loops.axes}
        for axes in sorted(facts.divisions, key=lambda axes: math.prod(sizes[number] for number in axes)):
            left = [
                axis for axis in facts.loops.axes if axis.number in axes and axis.number not in self.amounts
            ]
            places = math.prod(sizes[number] for number in axes)
            whole = all(self.amounts.get(number, sizes[number]) == sizes[number] for number in axes)
            if not left or not whole or places > PLACES or any(axis.number in facts.in_turn for axis in left):
                continue
            chosen = {axis.number: sizes[axis.number] for axis in left}
            self.amounts.update(chosen)
            if not self.fits(left[0], chosen[left[0].number]):
                for number in chosen:
                    del self.amounts[number]

    def write_out_short_reductions(self) -> None:
        for axis in reversed(self.facts.loops.axes):
            size = _size(axis)
            if axis.output or axis.number in self.amounts or size is None or size > SHORT:
                continue
            if self.fits(axis, size, MAX_WRITTEN_OUT):
                self.amounts[axis.number] = size

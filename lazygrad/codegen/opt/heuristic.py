"""Which Opts to apply where nobody says, read off the kernel's accesses and the Target.

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
from collections.abc import Iterable
from dataclasses import dataclass, field

from ...device import Target
from ...dtype import dtypes
from ...ir.index import as_index, bounds
from ...ir.nest import ranges_of
from ...ir.ops import OPS, Kind, Ops
from ...ir.uop import UOp
from .actions import Opt, OptOps
from .loops import Axis, Loops, is_computed, largest_power_of_two, stride

#: Simple operations in the vectorized kernel (LLVM takes about 8 ms for so many).
MAX_COST = 800
#: A reduction of at most this many steps is written out.
SHORT = 8
#: Independent vector sums in a reduction over contiguous elements; measured with row sums of 4096 x 4096.
SUMS = 4
#: Vectors side by side in a reduction down columns; measured with column sums of 4096 x 4096.
STRIP = 8
#: Operations per element up to which an elementwise loop does two vectors at once.
CHEAP = 6
#: Threads of a workgroup.
THREADS = 128
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
    reduced: frozenset[int]  # the axes of the reductions around it

    def step(self, axis: Axis) -> int | None:
        return self.strides.get(axis.number, 0)


@dataclass
class Facts:
    """What the choice rests on.

    values   what each operation costs, and the axes along which its value differs
    """

    loops: Loops
    accesses: list[Access] = field(default_factory=list)
    values: list[tuple[int, frozenset[int]]] = field(default_factory=list)
    element_bytes: int = 1

    @staticmethod
    def of(loops: Loops) -> Facts:
        facts = Facts(loops)
        number_of = {r: axis.number for axis in loops.axes for r in axis.ranges}
        nodes = loops.sink.toposort()
        inside = _reduced_inside(nodes, number_of)
        for node in nodes:
            if node.op in (Ops.LOAD, Ops.STORE):
                place = node.src[0].src[1]
                moved = {r: stride(place, r) for r in ranges_of(node.src[0])}
                count = math.prod(float(_typical(r.src[0])) for r in ranges_of(node))
                strides = {number_of[r]: step for r, step in moved.items() if r in number_of}
                facts.accesses.append(Access(node, count, strides, inside.get(node, frozenset())))
            if node.op in (Ops.LOAD, Ops.STORE, Ops.REDUCE) or OPS[node.op].kind is Kind.ELEMENTWISE:
                if node.dtype is dtypes.index:
                    continue
                below = node.src[0] if node.op is Ops.REDUCE else node
                axes = frozenset(number_of[r] for r in ranges_of(below) if r in number_of)
                facts.values.append((OPS[node.op].cost, axes))
                facts.element_bytes = max(facts.element_bytes, node.dtype.itemsize)
        return facts

    def cost(self, copies: dict[int, int]) -> int:
        """Operations written out when so many places of these axes are computed at once."""
        return sum(
            price * math.prod(copies[number] for number in axes if number in copies)
            for price, axes in self.values
        )

    def contiguity(self, axis: Axis) -> float:
        """Accesses that would become vectors, less those that would be gathered, lane by lane."""
        score = 0.0
        for access in self.accesses:
            step = access.step(axis)
            weight = 2.0 if access.node.op is Ops.STORE else 1.0
            if step == 1:
                score += weight * access.count
            elif step == -1:
                score += 0.5 * weight * access.count
            elif step != 0:
                score -= weight * access.count
        return score

    def reuse(self, axis: Axis, lanes: Axis) -> float:
        """How often a value loaded for the lanes of a reduction would serve several places of this axis."""
        return sum(
            access.count
            for access in self.accesses
            if access.reduced and access.step(lanes) != 0 and access.step(axis) == 0
        )


def _reduced_inside(nodes: list[UOp], number_of: dict[UOp, int]) -> dict[UOp, frozenset[int]]:
    """The axes that REDUCEs close around each node."""
    around: dict[UOp, frozenset[int]] = {}
    for node in reversed(nodes):
        own = around.get(node, frozenset())
        for source in node.src[:1] if node.op is Ops.REDUCE else node.src:
            more = own
            if node.op is Ops.REDUCE:
                more = own | {number_of[r] for r in node.src[1:] if r in number_of}
            around[source] = around.get(source, frozenset()) | more
    return around


def _typical(size: UOp) -> int:
    return max(bounds(size)[1], 1)


def _size(axis: Axis) -> int | None:
    return axis.size if isinstance(axis.size, int) else None


# *** the choice


def choose(sink: UOp, target: Target) -> list[Opt]:
    """The Opts for a kernel (form 3) on a target."""
    loops = Loops.of(sink)
    if not loops.axes or any(_in_order(store) for store in sink.src):
        return []
    facts = Facts.of(loops)
    if target.grid:
        return _for_grid(facts, target)
    if target.vector_bytes == 0:
        return []
    return _Plan(facts, target).opts()


def _in_order(store: UOp) -> bool:
    return store.arg is not None or is_computed(store.src[0].src[1])


class _Plan:
    """The amounts chosen so far, by axis number."""

    def __init__(self, facts: Facts, target: Target) -> None:
        self.facts, self.target = facts, target
        self.amounts: dict[int, int] = {}
        self.padded: dict[int, int] = {}
        self.width = target.vector_bytes // facts.element_bytes

    def opts(self) -> list[Opt]:
        facts = self.facts
        lanes = self.lane_axis()
        if lanes is not None and self.vectorize(lanes):
            if lanes.output and lanes.reduce is None:
                self.beside_columns(lanes)
            else:
                self.beside_rows(lanes)
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

    def fits(self, axis: Axis, amount: int) -> bool:
        """Whether the kernel stays small with this amount. A vector costs as much as a scalar."""
        copies = {**self.amounts, axis.number: amount}
        if self.lanes is not None:
            number = self.lanes.number
            copies[number] = max(1, copies.get(number, 1) // self.width)
        return self.facts.cost(copies) <= MAX_COST

    # *** the axis of the lanes

    lanes: Axis | None = None

    def lane_axis(self) -> Axis | None:
        """The axis along which most accesses are contiguous; the later one of two alike."""
        best, score = None, 0.0
        for axis in self.facts.loops.axes:
            own = self.facts.contiguity(axis)
            if own > 0 and own >= score and _typical(as_index(axis.size)) > 1:
                best, score = axis, own
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
        if size is None:
            if not cheap or _typical(as_index(axis.size)) < self.width:
                return 1
            self.padded[axis.number] = self.width
            return self.width
        lanes = min(self.width, 1 << (size - 1).bit_length())
        turns = -(-size // lanes)
        if 4 * turns > 3 * (size // whole) or not (cheap or turns > 4):
            return whole
        self.padded[axis.number] = lanes
        return lanes

    # *** what is computed at once beside it

    def beside_columns(self, lanes: Axis) -> None:
        """The lanes are an output's: a tile of accumulators, a strip of columns, or vectors of cheap work."""
        facts = self.facts
        reduces = any(access.reduced for access in facts.accesses)
        rows = [axis for axis in facts.loops.axes if axis.output and axis.number != lanes.number]
        best = max(rows, key=lambda axis: facts.reuse(axis, lanes), default=None)
        if best is not None and reduces and facts.reuse(best, lanes) > 0:
            self.tile(best, lanes)
        elif reduces:
            self.widen(lanes, STRIP)
        elif facts.cost({}) <= CHEAP:
            self.widen(lanes, 2)

    def tile(self, rows: Axis, lanes: Axis) -> None:
        """A tile of `side` rows by one or two vectors, with room in the registers for what is loaded."""
        room = self.target.vector_registers * 5 // 8
        across = 2 if self.widened(lanes, 2) and room >= 8 else 1
        size = _size(rows)
        if size is None:
            return
        for side in SIDES:
            if size % side == 0 and side * across <= room and self.fits(rows, side):
                self.amounts[rows.number] = side
                break
        if across == 2:
            self.widen(lanes, 2)

    def beside_rows(self, lanes: Axis) -> None:
        """The lanes are a reduction's: rows side by side that share what is loaded, else several sums."""
        facts = self.facts
        if lanes.output:
            self.widen(lanes, 2)
            return
        rows = [axis for axis in facts.loops.axes if axis.output and facts.reuse(axis, lanes) > 0]
        sums = 1
        for axis in rows[-2:][::-1]:
            size = _size(axis)
            for side in (4, 3, 2):
                if size is not None and size % side == 0 and self.fits(axis, side):
                    self.amounts[axis.number] = side
                    sums *= side
                    break
        if sums < SUMS:
            self.widen(lanes, SUMS // sums)

    def widened(self, axis: Axis, times: int) -> int:
        """The largest number of vectors up to `times` that divides the axis and keeps the kernel small."""
        size = _size(axis)
        if size is None or axis.number in self.padded:
            return 0
        vectors = size // self.width
        for count in range(times, 1, -1):
            if vectors % count == 0 and self.fits(axis, count * self.width):
                return count
        return 0

    def widen(self, axis: Axis, times: int) -> None:
        count = self.widened(axis, times)
        if count:
            self.amounts[axis.number] = count * self.width

    def write_out_short_reductions(self) -> None:
        for axis in reversed(self.facts.loops.axes):
            size = _size(axis)
            if axis.output or axis.number in self.amounts or size is None or size > SHORT:
                continue
            if self.fits(axis, size):
                self.amounts[axis.number] = size


def _for_grid(facts: Facts, target: Target) -> list[Opt]:
    """On a grid of threads: wide loads, short reductions written out, neighbours in one workgroup."""
    found: list[Opt] = []
    sizes = {axis.number: _size(axis) for axis in facts.loops.axes}
    width = max(target.load_bytes, 1) // facts.element_bytes
    parallel = [axis for axis in facts.loops.axes if axis.output and axis.reduce is None]
    best = max(parallel, key=facts.contiguity, default=None)
    if best is not None and width > 1 and facts.contiguity(best) > 0 and not _reduces(facts.accesses):
        wide = sizes[best.number] or 1
        if wide % width == 0:
            found.append(Opt(OptOps.UPCAST, best.number, width))
            sizes[best.number] = wide // width
    for axis in facts.loops.axes:
        size = sizes[axis.number]
        if axis.output or size is None or size > SHORT:
            continue
        if facts.cost({axis.number: size}) <= MAX_COST:
            found.append(Opt(OptOps.UNROLL, axis.reduce, 0))
    threads = 1
    for axis in reversed(parallel):
        local = largest_power_of_two(sizes[axis.number] or 1, THREADS // threads)
        if local > 1:
            found.append(Opt(OptOps.LOCAL, axis.number, local))
            threads *= local
    return found


def _reduces(accesses: Iterable[Access]) -> bool:
    return any(access.reduced for access in accesses)

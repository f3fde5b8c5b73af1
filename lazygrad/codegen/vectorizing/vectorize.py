"""Scheduled loops (form 4) become vector code (form 5): no UPCAST or UNROLL range is left.

Of the ranges that nest in one another, one is walked by the lanes of vectors: the one along which most
accesses are contiguous. The others become separate values, one per place. So a matmul tile of 8 by 32 is 8
times 2 vector accumulators, and a contiguous row sum keeps vector accumulators and adds their lanes once at
the end.

1. where only the last turn of a loop needs masks, it is cut off, and the others need none (`cut_tails`);
   so are the borders of a masked reduction, where vectors have no masks (`split_borders`);
2. lane ranges are chosen, and cut to the width of the target's vectors (`choose_lanes`);
3. every node is written once for each place of the other ranges that it depends on (`_Expander`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

from ...dtype import dtypes
from ...ir import index
from ...ir.args import AxisType
from ...ir.index import FALSE, TRUE
from ...ir.nest import closed_ranges, ranges_of, scan_ranges, scan_values, stage_stores
from ...ir.ops import Ops
from ...ir.rewrite import notify, resolve, watched
from ...ir.uop import UOp
from ...target import Target
from ..expressions.constants import gathered, lane_of
from ..expressions.lanes import (
    Access,
    Arithmetic,
    Linear,
    Pattern,
    Step,
    across_lanes,
    before_each_lane,
    broadcast,
    combined,
    linear_in,
    neutral_step,
    one_step,
    repeated,
    reverse,
    same_lanes,
    transposed,
    without_neutral,
)
from ..expressions.narrow import NARROW
from ..expressions.ranges import IN_REGISTERS, index_nodes
from ..legalizing.words import split_index
from ..linearizing.separate_loops import any_shared, separate_loops
from .borders import split_borders
from .choose_lanes import choose_lanes
from .tails import cut_tails

Place = tuple[int, ...]


def vectorize(sink: UOp, target: Target) -> UOp:
    """The kernel with lanes and registers in the place of UPCAST and UNROLL ranges."""
    if not target.grid:
        sink = cut_tails(sink if target.has_masks else split_borders(sink))
    sink, lanes = choose_lanes(sink, target)
    writer = _Expander(sink, lanes, target)
    expanded = writer.expanded()
    return separate_loops(expanded) if any_shared(writer.separated) else expanded


# *** writing every node once per place


#: What is gathered: of other sizes there are no instructions, or no memory of that type.
_GATHERED = frozenset(
    (dtypes.float32, dtypes.int32, dtypes.uint32, dtypes.float64, dtypes.int64, dtypes.uint64)
)


class _Expander:
    """Form 5 of each node, for each place of the register ranges that it depends on.

    The *place* of a node is a number for each of `registers[node]`, in that order. Index arithmetic, and the
    conditions made of it, are no values here: who uses them says for which place and lane, so that they stay
    canonical and scalar.
    """

    def __init__(self, sink: UOp, lanes: set[UOp], target: Target) -> None:
        self.sink = sink
        self.masks, self.gathers = target.has_masks, target.has_gathers
        self.scalar_lanes = target.vector_bytes == 0
        self.chains = target.core.chains  # how many sums side by side one reduction is made of, at most
        nodes = sink.toposort()
        ranges_of(sink)
        self.is_index = index_nodes(nodes)
        self.registers: dict[UOp, tuple[UOp, ...]] = {}
        self.lane: dict[UOp, UOp | None] = {}
        self.touched: set[UOp] = set()
        for node in nodes:
            inner = sorted((r for r in ranges_of(node) if r.arg.kind in IN_REGISTERS), key=lambda r: r.arg.id)
            self.registers[node] = tuple([r for r in inner if r not in lanes])
            self.lane[node] = next((r for r in inner if r in lanes), None)
            if inner or not self.touched.isdisjoint(node.src):
                self.touched.add(node)
        self.inner = frozenset(r for node in nodes for r in self.registers[node]) | lanes
        self.separated: list[UOp] = []  # the REDUCEs and STAGEs, whose loops may have come apart
        self._values: dict[UOp, tuple[UOp, ...]] = {}
        self._patterns: dict[UOp, Pattern | None] = {}
        self._squares: dict[tuple[UOp, Place], list[UOp]] = {}
        self._sides: dict[UOp, tuple[UOp, int] | None] = {}
        self.done: dict[tuple[UOp, Place], UOp] = {}

    def expanded(self) -> UOp:
        stores: list[UOp] = []
        for store in self.sink.src:
            places = self.coordinates(store, {})
            for place in places:
                self.expand(store, place)
            for place in places:
                stores.extend(self.stores(store, place))
        return self.sink.replace(src=tuple(stores))

    # *** the walk

    def expand(self, root: UOp, place: Place) -> None:
        """Work out every value that a STORE at one place needs."""
        for need in reversed(self.needs(root, place)):
            resolve(need, self._requested, self._answer, self.done)

    def _requested(self, key: tuple[UOp, Place]) -> list[tuple[UOp, Place]]:
        return self.needs(*key) if key[0] in self.touched else []

    def _answer(self, key: tuple[UOp, Place]) -> UOp:
        node, place = key
        if node in self.touched:
            made = self.build(node, place)
            if watched():
                notify("vectorize", _Expander.build, node, made)
            return made
        if node.op is Ops.STAGE:
            self.separated.append(node)
        return node

    def needs(self, node: UOp, place: Place) -> list[tuple[UOp, Place]]:
        if node.op is Ops.REDUCE:
            return [(node.src[0], inner) for inner in self.reduced_coordinates(node, place)]
        if node.op is Ops.SCAN:
            turns = self.iterations(node, place)
            return [(value, self.narrow(node, turn, value)) for value in scan_values(node) for turn in turns]
        if node.op is Ops.STAGE:
            return [need for store, inner in self.filling(node, place) for need in self.needs(store, inner)]
        return [(value, self.narrow(node, place, value)) for value in self.values_below(node)]

    def values_below(self, node: UOp) -> tuple[UOp, ...]:
        """The values that a node is made of: its sources, and those inside of their index arithmetic."""
        return resolve(node, self._coordinates_below, self._values_of, self._values)

    def _coordinates_below(self, node: UOp) -> list[UOp]:
        return [source for source in node.src if source.op is Ops.INDEX or source in self.is_index]

    def _values_of(self, node: UOp) -> tuple[UOp, ...]:
        found: dict[UOp, None] = {}
        for source in node.src:
            if source.op is Ops.INDEX or source in self.is_index:
                found |= dict.fromkeys(self._values[source])
            elif source.op not in (Ops.DEFINE_GLOBAL, Ops.DEFINE_LOCAL):
                found[source] = None
        return tuple(found)

    def narrow(self, node: UOp, place: Place, below: UOp) -> Place:
        """The place of a node below, from that of the node."""
        own, inner = self.registers[node], self.registers[below]
        if own == inner:
            return place
        number_of = dict(zip(own, place, strict=True))
        return tuple([number_of[r] for r in inner])

    def coordinates(self, node: UOp, fixed: Mapping[UOp, int]) -> list[Place]:
        """The places of a node where these ranges are."""
        own = self.registers[node]
        return list(itertools.product(*((fixed[r],) if r in fixed else range(r.src[0].arg) for r in own)))

    def reduced_coordinates(self, reduce: UOp, place: Place) -> list[Place]:
        """The places of a REDUCE's value: its own, times all those of the ranges that it closes."""
        return self.coordinates(reduce.src[0], dict(zip(self.registers[reduce], place, strict=True)))

    def filling(self, stage: UOp, place: Place) -> list[tuple[UOp, Place]]:
        """The STOREs that fill a STAGE, each at its places: the STAGE's, times those that it closes."""
        fixed = dict(zip(self.registers[stage], place, strict=True))
        return [(store, inner) for store in stage_stores(stage) for inner in self.coordinates(store, fixed)]

    def iterations(self, scan: UOp, place: Place) -> list[Place]:
        """The places of a SCAN that differ only along it, in the order in which it meets them."""
        own = [r for r in scan_ranges(scan) if r in self.registers[scan]]
        at = [self.registers[scan].index(r) for r in own]
        found = []
        for turn in itertools.product(*(range(r.src[0].arg) for r in own)):
            inner = list(place)
            for position, k in zip(at, turn, strict=True):
                inner[position] = k
            found.append(tuple(inner))
        return found

    # *** one node

    def build(self, node: UOp, place: Place) -> UOp:
        if node.op is Ops.LOAD:
            return self.load(node, place)
        if node.op is Ops.REDUCE:
            return self.reduce(node, place)
        if node.op is Ops.SCAN:
            return self.scan(node, place)
        if node.op is Ops.STAGE:
            stores = [
                made for store, inner in self.filling(node, place) for made in self.stores(store, inner)
            ]
            loops = [r for r in closed_ranges(node) if r.arg.kind not in IN_REGISTERS]
            self.separated.append(UOp(Ops.STAGE, node.dtype, (node.src[0], *stores, *loops), node.arg))
            return self.separated[-1]
        src = [self.value(node, place, s) for s in node.src]
        if node.op is Ops.WHERE and (src[0] is TRUE or src[0] is FALSE):
            return src[1] if src[0] is TRUE else src[2]
        lanes = max((s.dtype.count for s in src), default=1)
        if lanes == 1:
            return UOp(node.op, node.dtype, tuple(src), node.arg)
        return UOp(node.op, node.dtype.vec(lanes), tuple([broadcast(s, lanes) for s in src]), node.arg)

    def value(self, node: UOp, place: Place, source: UOp) -> UOp:
        """A source's value at a node's place: a vector where it differs from lane to lane."""
        if source in self.is_index:
            return self.arithmetic(node, place, source).vector()
        return self.done[source, self.narrow(node, place, source)]

    def arithmetic(self, node: UOp, place: Place, source: UOp) -> Linear | Arithmetic:
        """Index arithmetic at a node's place."""
        lane = self.lane[source]
        pattern = self.pattern(source)
        if pattern is not None:
            constant = pattern.constant
            for r, k in zip(self.registers[node], place, strict=True):
                constant += pattern.steps.get(r, 0) * k
            if lane is None:
                return Linear(pattern.base, constant, 0, 1)
            return Linear(pattern.base, constant, pattern.steps.get(lane, 0), lane.src[0].arg)
        return self.expression(node, place, source)

    def pattern(self, source: UOp) -> Pattern | None:
        """Index arithmetic that is linear in lanes and registers, and over no value that depends on them."""
        if source not in self._patterns:
            linear = source.dtype is dtypes.index and source in self.is_index
            if linear and self.touched.isdisjoint(self.values_below(source)):
                self._patterns[source] = linear_in(source, self.inner)
            else:
                self._patterns[source] = None
        return self._patterns[source]

    def expression(self, node: UOp, place: Place, source: UOp) -> Arithmetic:
        """Index arithmetic at a node's place, however it is made."""
        mapping: dict[UOp, UOp] = {
            r: index.const(k) for r, k in zip(self.registers[node], place, strict=True)
        }
        vectors: dict[UOp, UOp] = {}
        for value in self.values_below(source) if source in self.is_index else (source,):
            made = self.done[value, self.narrow(node, place, value)]
            if made.dtype.count > 1:
                vectors[value] = made
            mapping[value] = value if made.dtype.count > 1 else made
        return Arithmetic(index.substitute((source,), mapping)[source], self.lane[source], vectors)

    def reduce(self, node: UOp, place: Place) -> UOp:
        op, value = node.arg, node.src[0]
        values = [self.done[value, inner] for inner in self.reduced_coordinates(node, place)]
        values = same_lanes(without_neutral(op, values))
        loops = tuple([r for r in node.src[1:] if r.arg.kind not in IN_REGISTERS])
        # one part of each thread is combined with those of others; what rounds is combined without (share)
        shared = tuple([r for r in loops if r.arg.kind is AxisType.GROUP and node.dtype not in NARROW])
        loops = tuple([r for r in loops if r not in shared])
        if loops:
            copies = math.prod(r.src[0].arg for r in self.registers[node]) * self.scalar_instructions(node)
            chains = 1 if value.op is Ops.WMMA else self.chains
            accumulators = min(len(values), max(1, chains // copies))
            fuses = value.op is Ops.MUL and op is Ops.ADD
            bodies = [combined(op, values[i::accumulators], chain=fuses) for i in range(accumulators)]
            values = [UOp(Ops.REDUCE, body.dtype, (body, *loops), op) for body in bodies]
            self.separated += values
        result = combined(op, values)
        own = self.lane[value]
        if own is not None and own in node.src[1:]:
            result = across_lanes(op, broadcast(result, own.src[0].arg))
        if shared:
            result = UOp(Ops.REDUCE, result.dtype, (result, *shared), op)
        open_ranges = ranges_of(value)
        same = [r.src[0].arg for r in node.src[1:] if r.arg.kind in IN_REGISTERS and r not in open_ranges]
        return repeated(op, result, math.prod(same))

    def scalar_instructions(self, node: UOp) -> int:
        """How many instructions a vector of these values takes: where lanes are scalars, one for each."""
        lane = self.lane[node]
        return lane.src[0].arg if lane is not None and self.scalar_lanes else 1

    def scan(self, node: UOp, place: Place) -> UOp:
        """What came before this place: from earlier turns, registers and lanes."""
        op, lane = node.arg, self.lane[node]
        loops = tuple([r for r in scan_ranges(node) if r.arg.kind not in IN_REGISTERS])
        lanes = lane.src[0].arg if lane is not None and lane in scan_ranges(node) else 1
        before: Step | None = None
        total: Step | None = None
        for turn in self.iterations(node, place):
            parts = [self.done[value, self.narrow(node, turn, value)] for value in scan_values(node)]
            step: Step = tuple(parts)
            inside = None
            if lanes > 1:
                step = tuple([broadcast(part, lanes) for part in step])
                inside = before_each_lane(op, step)
            if turn == place:
                before = total if inside is None else one_step(op, total, inside)
            if inside is not None:
                first, then = (tuple([lane_of(part, lanes - 1) for part in s]) for s in (inside, step))
                step = one_step(op, first, then)
            total = one_step(op, total, step)
        if total is None:
            raise RuntimeError(f"{node.op} has no turn")
        carried: Step | None = None
        if loops:
            total = tuple(same_lanes(list(total)))
            carried = (UOp(Ops.SCAN, total[0].dtype, (*total, *loops), op),)
        if before is None:
            return (carried or neutral_step(op, node.dtype))[0]
        return one_step(op, carried, before)[0]

    # *** memory

    def load(self, node: UOp, place: Place) -> UOp:
        access = self.access(node, place)
        scalar = node.dtype
        if access.valid.expression is FALSE:
            return UOp.const(scalar, 0)
        lane = self.lane[node]
        if lane is None:
            return UOp(Ops.LOAD, scalar, (access.at_lane(0),))
        lanes = lane.src[0].arg
        step, valid = access.offset.step, access.valid.vector()
        if step == 1:
            is_masked = self.masks and valid.dtype.count > 1
            at = access.near_buffer(lanes) if is_masked else access.at_lane(0, valid)
            return UOp(Ops.LOAD, scalar.vec(lanes), (at,))
        if valid.dtype.count == 1 and step == 0:
            return UOp(Ops.LOAD, scalar, (access.at_lane(0, valid),))
        if valid.dtype.count == 1 and step == -1:
            return reverse(UOp(Ops.LOAD, scalar.vec(lanes), (access.at_lane(lanes - 1, valid),)))
        if step == 0 and access.is_safe():
            loaded = UOp(Ops.LOAD, scalar, (access.at_lane(0, TRUE),))
            zero = broadcast(UOp.const(scalar, 0), lanes)
            return UOp(Ops.WHERE, zero.dtype, (valid, broadcast(loaded, lanes), zero))
        across = self.neighbours(node, lanes) if step != 0 else None
        if across is not None:
            return self.column(node, place, across)
        together = access.under_one_condition(lanes) if valid.dtype.count == 1 else None
        if together is not None:
            zero = broadcast(UOp.const(scalar, 0), lanes)
            loaded = gathered([UOp(Ops.LOAD, scalar, (place,)) for place in together])
            return UOp(Ops.WHERE, zero.dtype, (broadcast(valid, lanes), loaded, zero))
        places = [access.at_lane(k) for k in range(lanes)]
        # Lanes at constant distances from few places, as a window that wraps around has them, are vectors to
        # the compiler: a gather takes twice as long.
        is_spread = 2 * len({split_index(place.src[1])[0] for place in places}) > lanes
        may_gather = self.gathers and step is None and scalar in _GATHERED and is_spread
        if may_gather and access.node.src[0].op is not Ops.STAGE:
            return UOp(Ops.LOAD, scalar.vec(lanes), (access.of_lanes(lanes),))
        return gathered(
            [
                UOp.const(scalar, 0) if place.src[2:] == (FALSE,) else UOp(Ops.LOAD, scalar, (place,))
                for place in places
            ]
        )

    def neighbours(self, node: UOp, lanes: int) -> UOp | None:
        """A range of as many registers as lanes, along which the elements of a LOAD are neighbours."""
        buffer, position, *valid = node.src[0].src
        pattern = self.pattern(position)
        if (
            pattern is None
            or buffer.op is Ops.STAGE
            or not all(self.is_plain(condition) for condition in valid)
        ):
            return None
        along = (r for r in self.registers[node] if pattern.steps.get(r) == 1 and r.src[0].arg == lanes)
        return next(along, None)

    def is_plain(self, condition: UOp) -> bool:
        """Whether a condition is index arithmetic with no value in it that depends on lanes and registers."""
        return condition in self.is_index and self.touched.isdisjoint(self.values_below(condition))

    def column(self, node: UOp, place: Place, across: UOp) -> UOp:
        """What is far apart in memory from lane to lane: of a square that is loaded by rows, one column."""
        at = self.registers[node].index(across)
        key = (node, (*place[:at], 0, *place[at + 1 :]))
        if key not in self._squares:
            self._squares[key] = transposed(self.rows(node, key[1], across))
        return self._squares[key][place[at]]

    def rows(self, node: UOp, place: Place, across: UOp) -> list[UOp]:
        """For each lane the vector of its elements along `across`."""
        buffer, position, *valid = node.src[0].src
        lane, scalar = self.lane[node], node.dtype
        if lane is None:
            raise RuntimeError(f"{node.op} has no lanes")
        lanes = lane.src[0].arg
        others = {
            r: index.const(k) for r, k in zip(self.registers[node], place, strict=True) if r is not across
        }
        rows = []
        for number in range(lanes):
            here = {**others, lane: index.const(number)}
            first = index.substitute((position,), {**here, across: index.const(0)})[position]
            seen = index.substitute(valid, here)[valid[0]] if valid else TRUE
            if seen is FALSE:
                rows.append(broadcast(UOp.const(scalar, 0), lanes))
                continue
            condition = () if seen is TRUE else (Arithmetic(seen, across, {}).vector(),)
            element = UOp(Ops.INDEX, node.src[0].dtype, (buffer, first, *condition))
            rows.append(UOp(Ops.LOAD, scalar.vec(lanes), (element,)))
        return rows

    def stores(self, node: UOp, place: Place) -> list[UOp]:
        """The STOREs at one place: of a vector where lanes are neighbours, else one per lane, in order."""
        access = self.access(node, place)
        if access.valid.expression is FALSE:
            return []
        values = [self.value(node, place, s) for s in node.src[1:]]
        lane = self.lane[node]
        if lane is None:
            return [UOp(Ops.STORE, node.dtype, (access.at_lane(0), *values), node.arg)]
        lanes = lane.src[0].arg
        step = access.offset.step
        if node.arg is None and len(values) == 1 and step == 1:
            value = broadcast(values[0], lanes)
            return [UOp(Ops.STORE, node.dtype, (access.at_lane(0, access.valid.vector()), value))]
        side = self.side(node, lanes)
        turned = self.turned(node, place, *side, lanes) if side is not None else None
        if turned is not None:
            return turned
        made = []
        for k in range(lanes):
            target = access.at_lane(k)
            if target.src[2:] != (FALSE,):
                own = [lane_of(value, k) for value in values]
                made.append(UOp(Ops.STORE, node.dtype, (target, *own), node.arg))
        return made

    def side(self, node: UOp, lanes: int) -> tuple[UOp, int] | None:
        """For a STORE whose lanes are far apart: a range of registers along which its elements are
        neighbours, and how many of them are stored as one vector.
        """
        if node not in self._sides:
            self._sides[node] = self._side(node, lanes)
        return self._sides[node]

    def _side(self, node: UOp, lanes: int) -> tuple[UOp, int] | None:
        lane, pattern = self.lane[node], self.pattern(node.src[0].src[1])
        if self.scalar_lanes or node.arg is not None or len(node.src) > 2 or pattern is None or lane is None:
            return None
        for across in self.registers[node]:
            count: int = across.src[0].arg
            size = math.gcd(lanes, count & -count)
            if pattern.steps.get(across) == 1 and size > 2 and abs(pattern.steps.get(lane, 0)) >= count:
                return across, size
        return None

    def turned(self, node: UOp, place: Place, across: UOp, size: int, lanes: int) -> list[UOp] | None:
        """The STOREs of squares: `size` vectors of as many lanes, each stored by its columns. They are those
        of several places, which the first of them has. None: where some are not valid.
        """
        at = self.registers[node].index(across)
        first = place[at] - place[at] % size
        rows = [(*place[:at], first + k, *place[at + 1 :]) for k in range(size)]
        accesses = [self.access(node, row) for row in rows]
        if any(access.valid.expression is not TRUE for access in accesses):
            return None
        if place[at] != first:
            return []
        values = [broadcast(self.value(node, row, node.src[1]), lanes) for row in rows]
        made = []
        for lane in range(0, lanes, size):
            part = tuple(range(lane, lane + size))
            square = values
            if size < lanes:
                kind = values[0].dtype.scalar_type.vec(size)
                square = [UOp(Ops.GEP, kind, (value,), part) for value in values]
            for k, column in enumerate(transposed(square)):
                made.append(UOp(Ops.STORE, node.dtype, (accesses[0].at_lane(lane + k), column)))
        return made

    def access(self, node: UOp, place: Place) -> Access:
        _, position, *valid = node.src[0].src
        where = self.arithmetic(node, place, position)
        condition = self.expression(node, place, valid[0]) if valid else Arithmetic(TRUE, None, {})
        index_node = node.src[0]
        if index_node.src[0].op is Ops.STAGE:
            stage = self.done[index_node.src[0], self.narrow(node, place, index_node.src[0])]
            index_node = index_node.replace(src=(stage, *index_node.src[1:]))
        return Access(index_node, where, condition)

"""Scheduled loops (form 4) become vector code (form 5): no UPCAST or UNROLL range is left.

Of the ranges that nest in one another, one is walked by the lanes of vectors: the one along which most
accesses are contiguous. The others become separate values, one per place. So a matmul tile of 8 by 32 is 8
times 2 vector accumulators, and a contiguous row sum keeps vector accumulators and adds their lanes once at
the end.

1. where only the last turn of a loop needs masks, it is cut off, and the others need none (`cut_tails`);
2. lane ranges are chosen, and cut to the width of the target's vectors (`choose_lanes`);
3. every node is written once for each place of the other ranges that it depends on (`_Expander`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import NamedTuple

from ..device import Target
from ..dtype import dtypes
from ..ir import index
from ..ir.args import RangeArg
from ..ir.index import FALSE, TRUE, as_sint
from ..ir.nest import output_ranges, ranges_of
from ..ir.ops import COMPARISONS, OPS, Ops
from ..ir.uop import UOp
from .opt.loops import IN_REGISTERS, at, largest_power_of_two, make_range, stride, substitute_ranges
from .separate_loops import separate_loops

Place = tuple[int, ...]
#: How many independent accumulators hide the latency of an addition (4 cycles, 2 a cycle on current CPUs).
ACCUMULATORS = 8


def vectorize(sink: UOp, target: Target) -> UOp:
    """The kernel with lanes and registers in the place of UPCAST and UNROLL ranges."""
    if not any(node.op is Ops.RANGE and node.arg.kind in IN_REGISTERS for node in sink.toposort()):
        return sink
    if not target.grid:
        sink = cut_tails(sink)
    sink, lanes = choose_lanes(sink, target)
    return separate_loops(_Expander(sink, lanes).expanded())


# *** tails

#: A kernel's tails are cut at most so often: each cut writes the loop's body once more.
MAX_CUTS = 6


def cut_tails(sink: UOp) -> UOp:
    """Where only the last turn of a loop needs masks between lanes or registers, it is done after the loop.

        for i in 0..63:  for u in 0..16:  if 16*i+u < 1000:  ...
    becomes
        for i in 0..62:  for u in 0..16:  ...
        for u in 0..16:  if 992+u < 1000:  ...
    """
    for _ in range(MAX_CUTS):
        loop = _cuttable(sink)
        if loop is None:
            break
        sink = _cut(sink, loop)
    return sink


def _cuttable(sink: UOp) -> UOp | None:
    """A loop whose last turn alone needs conditions that differ between lanes or registers."""
    nodes = sink.toposort()
    masks: dict[UOp, list[UOp]] = {}
    for node in nodes:
        if node.op in COMPARISONS and node.src[0].dtype is dtypes.index:
            ranges = ranges_of(node)
            if any(r.arg.kind in IN_REGISTERS for r in ranges):
                for r in ranges:
                    if r.arg.kind not in IN_REGISTERS and r.src[0].op is Ops.CONST and r.src[0].arg > 1:
                        masks.setdefault(r, []).append(node)
    for r in sorted(masks, key=lambda r: -r.arg.id):
        shorter = _range_or_zero(r.src[0].arg - 1, r.arg)
        done = index.substitute(masks[r], {r: shorter})
        if all(done[mask].op is Ops.CONST for mask in masks[r]):
            return r
    return None


def _range_or_zero(size: int, arg: RangeArg) -> UOp:
    return make_range(size, arg.id, arg.kind) if size > 1 else index.const(0)


def _cut(sink: UOp, loop: UOp) -> UOp:
    """All but the last turn of a loop, and then the last."""
    nodes = sink.toposort()
    fresh = 1 + max(node.arg.id for node in nodes if node.op is Ops.RANGE)
    last = index.const(loop.src[0].arg - 1)
    shorter = _range_or_zero(loop.src[0].arg - 1, loop.arg)

    def copies(others: Iterable[UOp]) -> dict[UOp, UOp]:
        """Loops of their own for the last turn."""
        loops = [r for r in others if r is not loop and r.arg.kind not in IN_REGISTERS]
        return {r: make_range(as_sint(r.src[0]), fresh + i, r.arg.kind) for i, r in enumerate(loops)}

    if not any(node.op is Ops.REDUCE and loop in node.src[1:] for node in nodes):
        inner = [r for r in output_ranges(nodes) if _nesting(r) > _nesting(loop)]
        touched = [store for store in sink.src if loop in ranges_of(store)]
        main = substitute_ranges(sink, {loop: shorter})
        tail = substitute_ranges(sink.replace(src=tuple(touched)), {**copies(inner), loop: last})
        return sink.replace(src=main.src + tail.src)
    done: dict[UOp, UOp] = {}
    for node in nodes:
        src = tuple([done[s] for s in node.src])
        made = node if src == node.src else index.rebuild(node, src)
        if node.op is Ops.REDUCE and loop in node.src[1:]:
            main = substitute_ranges(made, {loop: shorter})
            tail = substitute_ranges(made, {**copies(node.src[1:]), loop: last})
            made = UOp(node.arg, node.dtype, (main, tail))
        done[node] = made
    return done[sink]


def _nesting(r: UOp) -> tuple[int, int]:
    return r.arg.kind.value, r.arg.id


# *** which ranges become lanes


def choose_lanes(sink: UOp, target: Target) -> tuple[UOp, set[UOp]]:
    """The graph with its lane ranges cut to the width of vectors, and these ranges.

    No two lane ranges are open at the same time, so that a vector has one range along its lanes.
    """
    widest = target.vector_bytes or target.load_bytes
    nodes = sink.toposort()
    found = [node for node in nodes if node.op is Ops.RANGE and node.arg.kind in IN_REGISTERS]
    if widest == 0:
        return sink, set()
    scores = {r: _contiguity(nodes, r) for r in found}
    chosen: list[UOp] = []
    for r in sorted(found, key=lambda r: (-scores[r], r.arg.id)):
        if scores[r] > 0 and not any(_meet(nodes, r, other) for other in chosen):
            chosen.append(r)
    lanes: set[UOp] = set()
    mapping: dict[UOp, UOp] = {}
    fresh = 1 + max(r.arg.id for r in nodes if r.op is Ops.RANGE)
    for r in chosen:
        size = r.src[0].arg
        width = largest_power_of_two(size, widest // _element_bytes(nodes, r))
        if width == size:
            lanes.add(r)
        elif width > 1:
            lane = make_range(width, fresh, r.arg.kind)
            register = make_range(size // width, r.arg.id, r.arg.kind)
            fresh += 1
            mapping[r] = register * width + lane
            lanes.add(lane)
    return (substitute_ranges(sink, mapping) if mapping else sink), lanes


def _contiguity(nodes: list[UOp], r: UOp) -> int:
    """How much the accesses gain (unit stride) or lose (gathered lane by lane) if `r` is walked by lanes."""
    score = 0
    for node in nodes:
        if node.op not in (Ops.LOAD, Ops.STORE) or r not in ranges_of(node.src[0]):
            continue
        weight = 2 if node.op is Ops.STORE else 1
        step = stride(node.src[0].src[1], r)
        if step == 1:
            score += 2 * weight
        elif step == -1:
            score += weight
        elif step != 0:
            score -= weight
    return score


def _meet(nodes: list[UOp], a: UOp, b: UOp) -> bool:
    return any(a in ranges_of(node) and b in ranges_of(node) for node in nodes)


def _element_bytes(nodes: list[UOp], r: UOp) -> int:
    """The size of the largest element among the values that differ along `r`."""
    sizes = [
        node.dtype.itemsize
        for node in nodes
        if node.op not in (Ops.INDEX, Ops.STORE, Ops.SINK, Ops.RANGE)
        and node.dtype.scalar_type not in (dtypes.index, dtypes.void)
        and r in ranges_of(node)
    ]
    return max(sizes, default=4)


# *** vectors


def broadcast(value: UOp, lanes: int) -> UOp:
    """A scalar in every lane; a vector is itself."""
    if value.dtype.count == lanes:
        return value
    if value.op is Ops.CONST:
        return UOp(Ops.CONST, value.dtype.vec(lanes), (), (value.arg,) * lanes)
    return UOp(Ops.VECTORIZE, value.dtype.vec(lanes), (value,) * lanes)


def lane_of(value: UOp, number: int) -> UOp:
    """One lane of a vector; a scalar is the same in all lanes."""
    if value.dtype.count == 1:
        return value
    if value.op is Ops.VECTORIZE:
        return value.src[number]
    if value.op is Ops.CONST:
        return UOp.const(value.dtype.scalar_type, value.arg[number])
    return UOp(Ops.GEP, value.dtype.scalar_type, (value,), (number,))


def gathered(values: list[UOp]) -> UOp:
    """A vector of these scalars."""
    if all(value.op is Ops.CONST for value in values):
        return UOp(Ops.CONST, values[0].dtype.vec(len(values)), (), tuple(value.arg for value in values))
    return UOp(Ops.VECTORIZE, values[0].dtype.vec(len(values)), tuple(values))


def reverse(value: UOp) -> UOp:
    """The lanes in the other order."""
    return UOp(Ops.GEP, value.dtype, (value,), tuple(reversed(range(value.dtype.count))))


def repeated(op: Ops, value: UOp, times: int) -> UOp:
    """A value combined with itself."""
    if times == 1 or op in (Ops.MAX, Ops.MIN):
        return value
    if op is Ops.ADD and value.dtype.scalar_type is not dtypes.bool:
        return value * times
    return combined(op, [value] * times)


def without_neutral(op: Ops, values: list[UOp]) -> list[UOp]:
    """The values but for those that change nothing when combined; at least one."""
    identity = OPS[op].identity
    if identity is None:
        raise ValueError(f"{op} does not reduce")
    scalar = values[0].dtype.scalar_type
    neutral = UOp.const(scalar, identity(scalar))
    return [value for value in values if value is not neutral] or values[:1]


def same_lanes(values: list[UOp]) -> list[UOp]:
    """The values as vectors, if any of them is one."""
    lanes = max(value.dtype.count for value in values)
    return [broadcast(value, lanes) for value in values] if lanes > 1 else values


def across_lanes(op: Ops, value: UOp) -> UOp:
    """The lanes of a vector combined, half with half."""
    while value.dtype.count > 1:
        half = value.dtype.count // 2
        scalar = value.dtype.scalar_type
        low, high = (
            UOp(Ops.GEP, scalar.vec(half), (value,), tuple(range(start, start + half))) for start in (0, half)
        )
        value = UOp(op, scalar.vec(half), (low, high))
    return value


def combined(op: Ops, values: list[UOp], chain: bool = False) -> UOp:
    """The values combined: in pairs (short, accurate), or in a chain, in which products fuse with sums."""
    while len(values) > 1:
        if chain:
            values = [UOp(op, values[0].dtype, (values[0], values[1])), *values[2:]]
            continue
        pairs = [UOp(op, a.dtype, (a, b)) for a, b in zip(values[::2], values[1::2], strict=False)]
        values = pairs + (values[-1:] if len(values) % 2 else [])
    return values[0]


# *** writing every node once per place


class _Expander:
    """Form 5 of each node, for each place of the register ranges that it depends on.

    The *place* of a node is a number for each of `registers[node]`, in that order. Index arithmetic, and the
    conditions made of it, are no values here: who uses them says for which place and lane, so that they stay
    canonical and scalar.
    """

    def __init__(self, sink: UOp, lanes: set[UOp]) -> None:
        self.sink = sink
        nodes = sink.toposort()
        ranges_of(sink)
        self.is_index = _index_nodes(nodes)
        self.registers: dict[UOp, tuple[UOp, ...]] = {}
        self.lane: dict[UOp, UOp | None] = {}
        self.touched: set[UOp] = set()
        for node in nodes:
            inner = sorted((r for r in ranges_of(node) if r.arg.kind in IN_REGISTERS), key=lambda r: r.arg.id)
            self.registers[node] = tuple([r for r in inner if r not in lanes])
            self.lane[node] = next((r for r in inner if r in lanes), None)
            if inner or not self.touched.isdisjoint(node.src):
                self.touched.add(node)
        self._values: dict[UOp, tuple[UOp, ...]] = {}
        self.done: dict[tuple[UOp, Place], UOp] = {}

    def expanded(self) -> UOp:
        stores: list[UOp] = []
        for store in self.sink.src:
            for place in itertools.product(*(range(r.src[0].arg) for r in self.registers[store])):
                self.expand(store, place)
                stores.extend(self.stores(store, place))
        return self.sink.replace(src=tuple(stores))

    # *** the walk

    def expand(self, root: UOp, place: Place) -> None:
        """Work out every value that a STORE at one place needs."""
        stack = self.needs(root, place)
        done = self.done
        while stack:
            key = stack[-1]
            if key in done:
                stack.pop()
                continue
            node, place = key
            if node not in self.touched:
                done[key] = node
                stack.pop()
                continue
            waiting = [need for need in self.needs(node, place) if need not in done]
            if waiting:
                stack.extend(reversed(waiting))
                continue
            stack.pop()
            done[key] = self.build(node, place)

    def needs(self, node: UOp, place: Place) -> list[tuple[UOp, Place]]:
        if node.op is Ops.REDUCE:
            return [(node.src[0], inner) for inner in self.reduced_places(node, place)]
        return [(value, self.narrow(node, place, value)) for value in self.values_below(node)]

    def values_below(self, node: UOp) -> tuple[UOp, ...]:
        """The values that a node is made of: its sources, and those inside of their index arithmetic."""
        found = self._values.get(node)
        if found is None:
            values: dict[UOp, None] = {}
            stack = list(reversed(node.src))
            seen: set[UOp] = set()
            while stack:
                source = stack.pop()
                if source in seen:
                    continue
                seen.add(source)
                if source.op is Ops.INDEX or source in self.is_index:
                    stack.extend(reversed(source.src))
                elif source.op is not Ops.DEFINE_GLOBAL:
                    values[source] = None
            found = self._values[node] = tuple(values)
        return found

    def narrow(self, node: UOp, place: Place, below: UOp) -> Place:
        """The place of a node below, from that of the node."""
        own, inner = self.registers[node], self.registers[below]
        if own == inner:
            return place
        number_of = dict(zip(own, place, strict=True))
        return tuple([number_of[r] for r in inner])

    def reduced_places(self, reduce: UOp, place: Place) -> list[Place]:
        """The places of a REDUCE's value: its own, times all those of the ranges that it closes."""
        fixed = dict(zip(self.registers[reduce], place, strict=True))
        inner = self.registers[reduce.src[0]]
        return list(itertools.product(*((fixed[r],) if r in fixed else range(r.src[0].arg) for r in inner)))

    # *** one node

    def build(self, node: UOp, place: Place) -> UOp:
        if node.op is Ops.LOAD:
            return self.load(node, place)
        if node.op is Ops.REDUCE:
            return self.reduce(node, place)
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

    def arithmetic(self, node: UOp, place: Place, source: UOp) -> _Arithmetic:
        """Index arithmetic at a node's place."""
        mapping: dict[UOp, UOp] = {
            r: index.const(k) for r, k in zip(self.registers[node], place, strict=True)
        }
        vectors: dict[UOp, UOp] = {}
        for value in self.values_below(source) if source in self.is_index else (source,):
            made = self.done[value, self.narrow(node, place, value)]
            if made.dtype.count > 1:
                vectors[value] = made
            mapping[value] = value if made.dtype.count > 1 else made
        expression = index.substitute((source,), mapping)[source]
        return _Arithmetic(expression, self.lane[source], vectors)

    def reduce(self, node: UOp, place: Place) -> UOp:
        op, value = node.arg, node.src[0]
        values = [self.done[value, inner] for inner in self.reduced_places(node, place)]
        values = same_lanes(without_neutral(op, values))
        loops = tuple([r for r in node.src[1:] if r.arg.kind not in IN_REGISTERS])
        if loops:
            copies = math.prod(r.src[0].arg for r in self.registers[node])
            accumulators = min(len(values), max(1, ACCUMULATORS // copies))
            fuses = value.op is Ops.MUL and op is Ops.ADD
            bodies = [combined(op, values[i::accumulators], chain=fuses) for i in range(accumulators)]
            values = [UOp(Ops.REDUCE, body.dtype, (body, *loops), op) for body in bodies]
        result = combined(op, values)
        own = self.lane[value]
        if own is not None and own in node.src[1:]:
            result = across_lanes(op, broadcast(result, own.src[0].arg))
        open_ranges = ranges_of(value)
        same = [r.src[0].arg for r in node.src[1:] if r.arg.kind in IN_REGISTERS and r not in open_ranges]
        return repeated(op, result, math.prod(same))

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
        step, valid = access.place.step(), access.valid.vector()
        if step == 1:
            return UOp(Ops.LOAD, scalar.vec(lanes), (access.at_lane(0, valid),))
        if valid.dtype.count == 1 and step == 0:
            return UOp(Ops.LOAD, scalar, (access.at_lane(0, valid),))
        if valid.dtype.count == 1 and step == -1:
            return reverse(UOp(Ops.LOAD, scalar.vec(lanes), (access.at_lane(lanes - 1, valid),)))
        if step == 0 and access.is_safe():
            loaded = UOp(Ops.LOAD, scalar, (access.at_lane(0, TRUE),))
            zero = broadcast(UOp.const(scalar, 0), lanes)
            return UOp(Ops.WHERE, zero.dtype, (valid, broadcast(loaded, lanes), zero))
        places = [access.at_lane(k) for k in range(lanes)]
        return gathered(
            [
                UOp.const(scalar, 0) if place.src[2:] == (FALSE,) else UOp(Ops.LOAD, scalar, (place,))
                for place in places
            ]
        )

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
        step = access.place.step()
        if node.arg is None and len(values) == 1 and step == 1:
            value = broadcast(values[0], lanes)
            return [UOp(Ops.STORE, node.dtype, (access.at_lane(0, access.valid.vector()), value))]
        made = []
        for k in range(lanes):
            target = access.at_lane(k)
            if target.src[2:] != (FALSE,):
                own = [lane_of(value, k) for value in values]
                made.append(UOp(Ops.STORE, node.dtype, (target, *own), node.arg))
        return made

    def access(self, node: UOp, place: Place) -> _Access:
        _, position, *valid = node.src[0].src
        where = self.arithmetic(node, place, position)
        condition = self.arithmetic(node, place, valid[0]) if valid else _Arithmetic(TRUE, None, {})
        return _Access(node.src[0], where, condition)


class _Access(NamedTuple):
    """An INDEX at one place: where it points to, and when."""

    node: UOp
    place: _Arithmetic
    valid: _Arithmetic

    def at_lane(self, number: int, valid: UOp | None = None) -> UOp:
        """The INDEX of one lane; `valid` states another condition, such as that of all lanes."""
        if valid is None:
            valid = self.valid.at_lane(number)
        position = self.place.at_lane(number)
        conditions = () if valid is TRUE else (valid,)
        return UOp(Ops.INDEX, self.node.dtype, (self.node.src[0], position, *conditions))

    def is_safe(self) -> bool:
        """Whether the place is inside of its buffer even where it is not valid."""
        low, high = index.bounds(self.place.at_lane(0))
        size = getattr(self.node.src[0].dtype, "size", -1)
        return low >= 0 and high < size


class _Arithmetic(NamedTuple):
    """Index arithmetic (or a condition made of it) in which at most the lane is still a range.

    vectors    the computed values in it that differ from lane to lane
    """

    expression: UOp
    lane: UOp | None
    vectors: dict[UOp, UOp]

    def at_lane(self, number: int) -> UOp:
        """For one lane: canonical, and a scalar."""
        if self.lane is None:
            return self.expression
        mapping = {value: lane_of(vector, number) for value, vector in self.vectors.items()}
        mapping[self.lane] = index.const(number)
        return index.substitute((self.expression,), mapping)[self.expression]

    def step(self) -> int | None:
        """By how much it moves from lane to lane; None if not by the same everywhere."""
        if self.lane is None:
            return 0
        return None if self.vectors else stride(self.expression, self.lane)

    def vector(self) -> UOp:
        """For all lanes: a scalar if they agree, a constant if known, `base + (0, 1, ...)` if linear."""
        lane = self.lane
        if lane is None or lane not in ranges_of(self.expression):
            return self.expression
        lanes = lane.src[0].arg
        if ranges_of(self.expression) == {lane}:
            values = [self.at_lane(k) for k in range(lanes)]
            if all(v is values[0] for v in values):
                return values[0]
            if all(v.op is Ops.CONST for v in values):
                return gathered(values)
        done: dict[UOp, UOp] = {}
        stack = [self.expression]
        while stack:
            node = stack[-1]
            if node in done:
                stack.pop()
                continue
            made = self._at_once(node, lane, lanes)
            if made is None:
                waiting = [s for s in node.src if s not in done]
                if waiting:
                    stack.extend(waiting)
                    continue
                src = tuple([broadcast(done[s], lanes) for s in node.src])
                made = UOp(node.op, node.dtype.vec(lanes), src, node.arg)
            stack.pop()
            done[node] = made
        return done[self.expression]

    def _at_once(self, node: UOp, lane: UOp, lanes: int) -> UOp | None:
        """The lanes of a part that needs no look at its own parts."""
        if node in self.vectors:
            return self.vectors[node]
        if lane not in ranges_of(node):
            return node
        if node.dtype is not dtypes.index or any(s in self.vectors for s in node.toposort()):
            return None
        step = stride(node, lane)
        if step is None:
            return None
        first = broadcast(at(node, lane, 0), lanes)
        steps = UOp(Ops.CONST, dtypes.index.vec(lanes), (), tuple(step * k for k in range(lanes)))
        return UOp(Ops.ADD, steps.dtype, (first, steps))


def _index_nodes(nodes: list[UOp]) -> set[UOp]:
    """Index arithmetic, and the conditions that are made of nothing else."""
    found: set[UOp] = set()
    for node in nodes:
        if node.dtype is dtypes.index:
            arithmetic = node.op not in (Ops.LOAD, Ops.REDUCE)
        elif node.dtype is not dtypes.bool:
            continue
        elif node.op in COMPARISONS and node.src[0].dtype is dtypes.index:
            arithmetic = True
        else:
            logic = node.op in (Ops.AND, Ops.OR) or node.op in COMPARISONS
            arithmetic = node.op is Ops.CONST or (logic and found.issuperset(node.src))
        if arithmetic:
            found.add(node)
    return found

"""Vectors and their lanes: how they are made, combined, taken apart, and index arithmetic in each lane."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

from ...dtype import DType, dtypes
from ...ir import index
from ...ir.index import TRUE
from ...ir.nest import ranges_of
from ...ir.ops import ALU, Ops, start_value
from ...ir.rewrite import resolve
from ...ir.uop import UOp
from ...target import Core
from .constants import lane_of
from .ranges import at, stride

# *** vectors


def broadcast(value: UOp, lanes: int) -> UOp:
    """A scalar in every lane; a vector is itself."""
    if value.dtype.count == lanes:
        return value
    if value.op is Ops.CONST:
        return UOp(Ops.CONST, value.dtype.vec(lanes), (), (value.arg,) * lanes)
    return UOp(Ops.VECTORIZE, value.dtype.vec(lanes), (value,) * lanes)


def reverse(value: UOp) -> UOp:
    """The lanes in the other order."""
    return UOp(Ops.GEP, value.dtype, (value,), tuple(reversed(range(value.dtype.count))))


def transposed(rows: list[UOp]) -> list[UOp]:
    """The columns of a square of as many vectors as each has lanes, a power of two.

    In each step neighbours of 1, 2, 4, ... rows exchange the lanes in which they are on the wrong side:
    a shuffle and a choice by lanes, which are one instruction where any two vectors can be shuffled.
    """
    lanes, reach = len(rows), 1
    while reach < lanes:
        across = tuple([lane ^ reach for lane in range(lanes)])
        first = UOp(Ops.CONST, dtypes.bool.vec(lanes), (), tuple([not lane & reach for lane in range(lanes)]))
        found = list(rows)
        for i in range(lanes):
            if not i & reach:
                a, b = rows[i], rows[i + reach]
                moved_a, moved_b = (UOp(Ops.GEP, row.dtype, (row,), across) for row in (a, b))
                found[i] = UOp(Ops.WHERE, a.dtype, (first, a, moved_b))
                found[i + reach] = UOp(Ops.WHERE, a.dtype, (first, moved_a, b))
        rows, reach = found, 2 * reach
    return rows


def repeated(op: Ops, value: UOp, times: int) -> UOp:
    """A value combined with itself."""
    if times == 1 or op in (Ops.MAX, Ops.MIN):
        return value
    if op is Ops.ADD and value.dtype.scalar_type is not dtypes.bool:
        return value * times
    return combined(op, [value] * times)


def without_neutral(op: Ops, values: list[UOp]) -> list[UOp]:
    """The values but for those that change nothing when combined; at least one."""
    scalar = values[0].dtype.scalar_type
    neutral = UOp.const(scalar, start_value(op, scalar))
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


#: What a SCAN combines in a turn: a value, and for MULACC the factor of what came before.
Step = tuple[UOp, ...]


def neutral_step(op: Ops, dtype: DType) -> Step:
    """The step that changes nothing."""
    first = UOp.const(dtype, start_value(op, dtype))
    return (first, UOp.const(dtype, 1)) if op is Ops.MULACC else (first,)


def one_step(op: Ops, first: Step | None, then: Step) -> Step:
    """Two steps in one; None does nothing."""
    if first is None:
        return then
    lanes = max(part.dtype.count for part in (*first, *then))
    first, then = (tuple([broadcast(part, lanes) for part in step]) for step in (first, then))
    dtype = first[0].dtype
    if op is not Ops.MULACC:
        return (UOp(op, dtype, (first[0], then[0])),)
    value = UOp(Ops.ADD, dtype, (UOp(Ops.MUL, dtype, (first[0], then[1])), then[0]))
    return (value, *(UOp(Ops.MUL, dtype, (factor, then[1])) for factor in first[1:]))


def before_each_lane(op: Ops, step: Step) -> Step:
    """In each lane the steps of all lanes before it in one: log₂(lanes) times with twice the reach."""
    lanes = step[0].dtype.count
    neutral = neutral_step(op, step[0].dtype.scalar_type)

    def moved(parts: Step, by: int) -> Step:
        there = tuple([(lane - by) % lanes for lane in range(lanes)])
        has = UOp(Ops.CONST, dtypes.bool.vec(lanes), (), tuple(lane >= by for lane in range(lanes)))
        rest = [broadcast(part, lanes) for part in neutral]
        shuffled = [UOp(Ops.GEP, part.dtype, (part,), there) for part in parts]
        return tuple(
            UOp(Ops.WHERE, part.dtype, (has, part, other)) for part, other in zip(shuffled, rest, strict=True)
        )

    before, reach = moved(step, 1), 1
    while reach < lanes:
        before = one_step(op, moved(before, reach), before)
        reach *= 2
    return before


#: So many products are added in a row at most.
CHAIN = 16


def combined(op: Ops, values: list[UOp], chain: bool = False) -> UOp:
    """The values combined: in pairs (accurate), or first in short chains, where products fuse with sums."""
    if chain:
        runs = [values[k : k + CHAIN] for k in range(0, len(values), CHAIN)]
        values = [functools.reduce(lambda a, b: UOp(op, a.dtype, (a, b)), run) for run in runs]
    while len(values) > 1:
        pairs = [UOp(op, a.dtype, (a, b)) for a, b in zip(values[::2], values[1::2], strict=False)]
        values = pairs + (values[-1:] if len(values) % 2 else [])
    return values[0]


# *** what they cost


def exchanged(lanes: int) -> float:
    """An element's part of the instructions that load a square by rows and exchange its columns."""
    return (1 + math.log2(lanes)) / lanes


def element_cost(step: int | None, lanes: int, by_rows: bool, core: Core) -> float:
    """An element's part of the instructions that load or store lanes which lie so far apart.

    by_rows: what lies apart is the columns of a square that can be loaded by rows
    """
    if step in (0, 1, -1):
        return 1 / lanes
    return exchanged(lanes) if by_rows else core.gathered


def step_cost(lanes: int) -> float:
    """A step's part of the instructions that combine the lanes of running values.

    A shuffle and an operation for each doubling of the reach, and some more.
    """
    return (2 * math.log2(max(lanes, 2)) + 4) / lanes


# *** index arithmetic

Ranges = frozenset[UOp]


class Linear(NamedTuple):
    """Index arithmetic that moves by `step` from lane to lane: base + constant + step * lane."""

    base: UOp
    constant: int
    step: int
    lanes: int

    def at_lane(self, number: int) -> UOp:
        """For one lane: canonical, and a scalar."""
        constant = self.constant + self.step * number
        if self.base.op is Ops.CONST:
            return index.const(self.base.arg + constant)
        return UOp(Ops.ADD, dtypes.index, (self.base, index.const(constant))) if constant else self.base

    def vector(self) -> UOp:
        """For all lanes: a scalar if they agree, else `first + (0, 1, ...)`."""
        first = self.at_lane(0)
        if self.step == 0:
            return first
        steps = UOp(
            Ops.CONST, dtypes.index.vec(self.lanes), (), tuple(self.step * k for k in range(self.lanes))
        )
        return UOp(Ops.ADD, steps.dtype, (broadcast(first, self.lanes), steps))


class Pattern(NamedTuple):
    """Index arithmetic that is linear in some ranges: base + constant + the sum of steps[r] * r."""

    base: UOp
    constant: int
    steps: dict[UOp, int]


def linear_in(expression: UOp, ranges: Ranges) -> Pattern | None:
    """The expression as one that is linear in these ranges; None where it is not."""
    terms, constant = index.terms_of(expression)
    steps: dict[UOp, int] = {}
    rest: dict[tuple[UOp, ...], int] = {}
    for monomial, coefficient in terms.items():
        if len(monomial) == 1 and monomial[0] in ranges:
            steps[monomial[0]] = coefficient
        elif any(not ranges_of(atom).isdisjoint(ranges) for atom in monomial):
            return None
        else:
            rest[monomial] = coefficient
    return Pattern(index.build(rest, 0), constant, steps)


class Arithmetic(NamedTuple):
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

    @property
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
        if ranges_of(self.expression) == {lane} and is_known(self.expression):
            values = [index.evaluate(self.expression, {lane: k}) for k in range(lanes)]
            dtype = self.expression.dtype
            if len(set(values)) == 1:
                return UOp.const(dtype, values[0])
            return UOp(Ops.CONST, dtype.vec(lanes), (), tuple(values))
        done: dict[UOp, UOp] = {}

        def operands(node: UOp) -> tuple[UOp, ...]:
            made = self._at_once(node, lane, lanes)
            if made is None:
                return node.src
            done[node] = made
            return ()

        def joined(node: UOp) -> UOp:
            if node in done:
                return done[node]
            src = tuple([broadcast(done[s], lanes) for s in node.src])
            return UOp(node.op, node.dtype.vec(lanes), src, node.arg)

        return resolve(self.expression, operands, joined, done)

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


def is_known(expression: UOp) -> bool:
    """Whether it is a number as soon as its ranges are."""
    return all(node.op in (Ops.RANGE, Ops.CONST) or node.op in ALU for node in expression.toposort())


class Access(NamedTuple):
    """An INDEX at one place: where it points to, and when."""

    node: UOp
    offset: Linear | Arithmetic
    valid: Arithmetic

    def at_lane(self, number: int, valid: UOp | None = None, position: UOp | None = None) -> UOp:
        """The INDEX of one lane; or with another condition, such as that of all lanes; or another place."""
        if valid is None:
            valid = self.valid.at_lane(number)
        if position is None:
            position = self.offset.at_lane(number)
        conditions = () if valid is TRUE else (valid,)
        return UOp(Ops.INDEX, self.node.dtype, (self.node.src[0], position, *conditions))

    def of_lanes(self, lanes: int) -> UOp:
        """The INDEX of all lanes, each at an address of its own."""
        valid = self.valid.vector()
        valid = valid if valid is TRUE else broadcast(valid, lanes)
        return self.at_lane(0, valid, broadcast(self.offset.vector(), lanes))

    def near_buffer(self, lanes: int) -> UOp:
        """The INDEX of neighbours of which some are valid: where none can be, the buffer's start. A masked
        load of no lane still asks for its address, and what lies far away may not be mapped: the processor
        takes hundreds of cycles to find that it does nothing.
        """
        first, size = self.offset.at_lane(0), getattr(self.node.src[0].dtype, "size", -1)
        low, high = index.bounds(first)
        if size >= 0 and not (low > -lanes and high < size):
            near = index.all_of(
                [index.less(index.const(-lanes), first), index.less(first, index.const(size))]
            )
            first = index.select(near, first, index.const(0))
        return self.at_lane(0, self.valid.vector(), first)

    def under_one_condition(self, lanes: int) -> list[UOp] | None:
        """The INDEXes of all lanes, inside of the buffer even where they are not valid.

        For lanes that share a condition and lie evenly apart: they are chosen and blanked together, not one
        by one. None: where the buffer is too short for that, or nothing need be chosen.
        """
        step, size = self.offset.step, getattr(self.node.src[0].dtype, "size", -1)
        if step is None or self.valid.expression is TRUE or (lanes - 1) * abs(step) >= size:
            return None
        begin = index.const(max(0, -step) * (lanes - 1))
        first = UOp(Ops.WHERE, dtypes.index, (self.valid.vector(), self.offset.at_lane(0), begin))
        return [self.at_lane(k, TRUE, first + k * step if k else first) for k in range(lanes)]

    def is_safe(self) -> bool:
        """Whether the place is inside of its buffer even where it is not valid."""
        low, high = index.bounds(self.offset.at_lane(0))
        size = getattr(self.node.src[0].dtype, "size", -1)
        return low >= 0 and high < size

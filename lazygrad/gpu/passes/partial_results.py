"""How the partial results of the threads of a workgroup become one: a part of `assign_grid`.

Threads of one warp exchange what they hold in registers, where the target lets them (`Target.shuffles`):
each combines its own with that of a thread at twice the distance, then again. What warps have meets in local
memory. With groups of 64 threads and warps of 32:

    acc0 = sum over ridx of f(ridx, GROUP)
becomes
    x0 = sum over ridx of f(ridx, lidx0)
    x1 = x0 + shuffle(x0, 1);  x2 = x1 + shuffle(x1, 2);  ...  x5 = x4 + shuffle(x4, 16)
    if lidx0 % 32 == 0:  temp0[lidx0 / 32] = x5              (a STAGE: with a BARRIER after it)
    acc0 = sum over ridx1 of temp0[ridx1]

Both threads of an exchange add the same two numbers, so that all get the same sum. Which steps are taken
follows from the Opts and the target alone: those that take the fewest cycles.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ...codegen.expressions.narrow import NARROW
from ...codegen.expressions.ranges import largest_power_of_two, make_range, only_where
from ...dtype import dtypes
from ...ir import index
from ...ir.args import AxisType
from ...ir.nest import free_numbers
from ...ir.ops import Ops
from ...ir.rewrite import transform
from ...ir.uop import UOp
from ...target import Multiprocessor, Target
from ..moves.workgroup import radices


class Exchange(NamedTuple):
    """Each thread combines the parts of so many neighbours, itself among them, by shuffles."""

    partials: int

    @property
    def times(self) -> int:
        return self.partials.bit_length() - 1


class Meeting(NamedTuple):
    """So many parts are stored in local memory, and each thread combines `radix` of them."""

    partials: int
    radix: int


Step = Exchange | Meeting


def steps_of(count: int, apart: int, threads: int, target: Target) -> tuple[Step, ...]:
    """How `count` threads combine their parts, in order.

    Neighbours of them are `apart` from each other among all `threads` of a workgroup.
    """
    machine, _ = target.launch.machine
    ways = _ways(count, within_warp(count, apart, threads, target))
    return min(ways, key=lambda steps: cycles_of(steps, machine))


def within_warp(count: int, apart: int, threads: int, target: Target) -> int:
    """So many neighbours of the `count` threads, from each multiple on, belong to one warp; 1 = none do.

    Warps are filled in the order of the places along x, y and z. All of them have to be full: CUDA wants to
    be told which threads take part.
    """
    warp = target.shuffles
    if warp == 0 or apart & (apart - 1) or threads % warp:
        return 1
    return largest_power_of_two(count, warp // apart)


def _ways(count: int, most: int) -> Iterator[tuple[Step, ...]]:
    yield _through_memory(count)
    if most > 1:
        left = count // most
        yield Exchange(most), *_through_memory(left)
        if 1 < left <= most and left & (left - 1) == 0:
            yield Exchange(most), Meeting(left, 1), Exchange(left)


def _through_memory(count: int) -> tuple[Step, ...]:
    found = []
    for radix in radices(count) if count > 1 else ():
        found.append(Meeting(count, radix))
        count //= radix
    return tuple(found)


def cycles_of(steps: Sequence[Step], machine: Multiprocessor, lanes: int = 1) -> int:
    """How long they take, with so many results of each thread."""
    return sum(
        step.times * (machine.exchange + machine.part * lanes)
        if isinstance(step, Exchange)
        else machine.meeting + machine.part * step.radix * lanes
        for step in steps
    )


def instructions_of(steps: Sequence[Step]) -> int:
    """Those of a thread, for one result. Of several levels in local memory the first counts: few threads are
    left on later ones.
    """
    meetings = [step for step in steps if isinstance(step, Meeting)]
    exchanged = sum(2 * step.times for step in steps if isinstance(step, Exchange))
    return exchanged + len(meetings) + (meetings[0].radix if meetings else 0)


def partials_in_memory(steps: Sequence[Step]) -> int:
    """How many parts have a place in local memory."""
    return sum(step.partials for step in steps if isinstance(step, Meeting))


# *** what they become


def share(
    sink: UOp,
    threads: Sequence[Sequence[UOp]],
    places: dict[UOp, UOp],
    grouped: frozenset[UOp],
    target: Target,
) -> tuple[UOp, dict[UOp, UOp]]:
    """The loops with every REDUCE along a GROUP range (`grouped`) as a part for each thread, and their sum.

    `threads` are the axes along which a workgroup has threads, that along x first; `places` says of each of
    their ranges where a thread is. Also of each node what it has become. Parts of narrow floats are kept in
    float32, as accumulators are.
    """
    nodes = sink.toposort()
    numbers, memories = map(itertools.count, free_numbers(nodes))
    lengths = [index.bounds(axis[0].src[0])[1] for axis in threads]
    levels: dict[UOp, list[tuple[Step, UOp | None]]] = {}
    for r in sorted(grouped, key=lambda r: r.arg.id):  # the same in every process
        before = next((n for n, axis in enumerate(threads) if r in axis), 0)
        apart = math.prod(lengths[:before])
        steps = steps_of(r.src[0].arg, apart, math.prod(lengths), target)
        levels[r] = [(step, _level(step, numbers)) for step in steps]

    def shared(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
        own = next((r for r in node.src[1:] if r in grouped), None) if node.op is Ops.REDUCE else None
        if own is None:
            return None
        value = src[0]
        rest = tuple([r for r in src[1:] if r is not own])
        if value.dtype.scalar_type in NARROW:
            value = value.cast(dtypes.float32.vec(value.dtype.count))
        part = UOp(Ops.REDUCE, value.dtype, (value, *rest), node.arg) if rest else value
        combined = _Combined(node.arg, own, threads, places)
        for step, level in levels[own]:
            if isinstance(step, Exchange):
                part = combined.exchanged(part, step)
            else:
                part = combined.met(part, step, level, next(memories))
        return part.cast(node.dtype)

    done: dict[UOp, UOp] = {}
    return transform(sink, shared, "assign grid", rebuild=index.rebuild, order=nodes, done=done), done


def _level(step: Step, numbers: Iterator[int]) -> UOp | None:
    """The loop of a thread over the parts that it combines."""
    several = isinstance(step, Meeting) and step.radix > 1
    return make_range(step.radix, next(numbers), AxisType.REDUCE) if several else None  # type: ignore[union-attr]


class _Combined:
    """The parts of the threads along the range `own`, while they become fewer.

    copies  so many neighbours have the same one
    """

    def __init__(self, op: Ops, own: UOp, threads: Sequence[Sequence[UOp]], places: dict[UOp, UOp]) -> None:
        self.op, self.own, self.threads, self.slots = op, own, threads, places
        self.count: int = own.src[0].arg
        self.copies = 1

    def exchanged(self, part: UOp, step: Exchange) -> UOp:
        """Each thread with its neighbours of twice the distance, and so on."""
        distance = 1
        for axis in self.threads:
            if self.own in axis:
                break
            distance *= index.bounds(axis[0].src[0])[1]
        for _ in range(step.times):
            other = UOp(Ops.SHUFFLE, part.dtype, (part,), distance)
            part = UOp(self.op, part.dtype, (part, other))
            distance *= 2
        self.copies *= step.partials
        return part

    def met(self, part: UOp, step: Meeting, level: UOp | None, memory: int) -> UOp:
        """The parts stored in local memory, the first of those that are alike; along `level` combined.

        Each thread combines those of its number modulo as many as are left. Where threads are as many as
        parts, each stores its own; on later levels the first `step.parts` of them do.
        """
        dtype, place = part.dtype, self.slots[self.own]
        lanes = size = dtype.count
        left = step.partials // step.radix
        here, there = index.const(0), index.const(0)
        for axis in reversed(self.threads):  # the first, which is along x, varies fastest
            length, mine = index.bounds(axis[0].src[0])[1], self.slots[axis[0]]
            other = mine
            if self.own in axis:
                length = step.partials
                mine = index.floordiv(place, index.const(self.copies)) if self.copies > 1 else place
                other = index.mod(place, index.const(left))
                other = level * left + other if level is not None else other
            here = here * length + mine
            there = there * length + other
            size *= length
        local = UOp(Ops.DEFINE_LOCAL, dtype.scalar_type.ptr(size, local=True), (), memory)
        store = UOp(Ops.STORE, dtypes.void, (UOp(Ops.INDEX, local.dtype, (local, here * lanes)), part))
        if self.copies > 1:
            store = only_where(store, index.equal(index.mod(place, index.const(self.copies)), index.const(0)))
        elif step.partials < self.count:
            store = only_where(store, index.less(place, index.const(step.partials)))
        self.copies = 1
        stage = UOp(Ops.STAGE, local.dtype, (local, store))
        load = UOp(Ops.LOAD, dtype, (UOp(Ops.INDEX, local.dtype, (stage, there * lanes)),))
        return UOp(Ops.REDUCE, dtype, (load, level), self.op) if level is not None else load

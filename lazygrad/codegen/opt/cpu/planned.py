"""What a kernel does where so many places of its axes are computed at once, in closed form.

What is written down here is about what the walk over the program would find (`codegen/cost/predict.py`),
before there is one: each operation in the innermost loop that it depends on, as often as places are at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from ....ir.ops import Ops
from ....target import Target
from ...cost.cost_model import Loop, guessing
from ...expressions.lanes import element_cost, step_cost
from ...expressions.ranges import largest_power_of_two
from ..facts import Access, Facts
from ..moves.loops import Axis
from .row_blocks import RowBlocks

#: The places of axes, by their numbers, that are computed at once.
AtOnce = dict[int, int]


def planned(facts: Facts, target: Target, at_once: AtOnce, rounds: RowBlocks | None = None) -> list[Loop]:
    """The loops of a kernel that computes so many places of axes at once, its sum perhaps in rounds."""
    nest = _Nest(facts, target, at_once, rounds)
    first, core = nest.loops[0], target.core
    own_lanes = at_once if rounds is None else {rounds.along: at_once[rounds.along]}
    lanes, width = _lanes(facts, target, at_once, own_lanes)
    own = None if lanes is None else lanes.number
    vectors = 1.0 if own is None else at_once[own] / width

    def times(numbers: Iterable[int], together: float) -> float:
        """How often what depends on these axes is done; along the lanes, so often for all of them."""
        total = 1.0
        for number in numbers:
            total *= together if number == own else at_once.get(number, 1)
        return total

    for axes, (price, products, sums) in facts.computed.items():
        loop, count = nest.innermost(axes), times(axes, vectors)
        loop.compute((price - products) * count)
        loop.compute(products * count, True)
        if sums:
            totals = times([n for n in axes if n == own or facts.loops.axes[n].output], vectors)
            if target.has_fma:  # a product and a sum in one, but where several terms are added to a total
                loop.compute(min(products, sums) * (totals * (count > totals) - count))
            loop.accumulators += sums * totals
            loop.waits = core.add
    for access in facts.accesses:
        moved = {number: step for number, step in access.strides.items() if step != 0}
        loop = nest.innermost(moved)
        apart = lanes is not None and own in moved and access.step(lanes) not in (1, -1)
        count = _streams(moved, at_once, own)
        if own is not None and own in moved:
            count *= at_once[own] if apart else vectors
        if apart and lanes is not None and access.node.op is Ops.LOAD and facts.is_window(access, lanes):
            count /= 2
        if access.node.op is Ops.LOAD:
            loop.load(count, apart or own not in moved)
        else:
            loop.store(count)
        loop.issued += core.scalar * count  # where it is
        if apart:
            loop.compute(count)  # they are put into vectors, or taken out of them
        item = access.node.src[0].dtype.base.itemsize
        strides = {loop: (step or 0) * some for n, step in moved.items() for loop, some in nest.moving[n]}
        parts, spread = _lines(access, at_once, target.memory.line)
        nbytes = _streams(moved, at_once, None) * item
        loop.touch(access.node.src[0].src[0], access.nbytes, item, nbytes, strides, parts, spread)
    if rounds is not None:
        _wait_in_memory(nest.of[rounds.along], rounds, at_once, width, facts.element_bytes)
    for axes, count in facts.branches.items():
        if own not in axes:
            first.lost += guessing(count, core)
    if lanes is not None:
        first.compute(sum([ends * core.combined for ends, closed in facts.sums if own in closed]))
    for steps, along in facts.scans:
        beside = [number for number in at_once if number not in along]
        nest.innermost(along).accumulators += facts.carried / len(facts.scans) * times(beside, vectors)
        if own in facts.sequential:
            first.lost = math.inf
        elif own is not None and own in along:
            first.compute(steps * step_cost(width))
            first.lost += core.add * steps / (width * vectors)  # totals wait
        else:
            first.lost += core.add * steps / (1 if own is None else width * vectors)
    return nest.loops


def _wait_in_memory(strips: Loop, rounds: RowBlocks, at_once: AtOnce, width: int, item: int) -> None:
    """The sums of each strip are read and written in each round, to which the strip's rows are added: their
    lines come and go.
    """
    sums = math.prod(at_once.get(n, 1) for n in at_once if n != rounds.summed)
    strips.load(sums / width)
    strips.compute(sums / width)
    strips.store(sums / width)
    moved = 2 * sums * item
    strips.touch("sums", strips.iterations * moved, item, moved, {strips: 2 * sums})


def _streams(steps: dict[int, int | None], at_once: AtOnce, own: int | None) -> float:
    """How many places are looked at together, but for those along the lanes.

    What moves by the same step along two axes meets the same places, as neighbouring windows do.
    """
    total, alike = 1.0, dict[int, int]()
    for number, step in steps.items():
        if number == own:
            continue
        if step is None:
            total *= at_once.get(number, 1)
        else:
            alike[abs(step)] = alike.get(abs(step), 1) + at_once.get(number, 1) - 1
    return total * math.prod(alike.values())


def _lines(access: Access, at_once: AtOnce, line: int) -> tuple[int, int]:
    """In how many lines apart the places are that an access looks at together, and the bytes between two."""
    parts, spread = 1, 0
    for number, step in access.strides.items():
        apart = line if step is None else abs(step) * access.node.src[0].dtype.base.itemsize
        if apart >= line and at_once.get(number, 1) > 1:
            parts *= at_once[number]
            spread = 0 if step is None else math.gcd(spread, apart)
    return parts, spread


class _Nest:
    """A loop for each axis, in the one around it."""

    def __init__(self, facts: Facts, target: Target, at_once: AtOnce, rounds: RowBlocks | None) -> None:
        self.loops, self.of = [Loop()], dict[int, Loop]()
        #: axis → the loops that move along it, and by how many of its places
        self.moving: dict[int, list[tuple[Loop, int]]] = {}
        self.order: dict[int, int] = {}  # an inner loop comes after those around it
        turn = 0.0 if target.grid else target.core.iteration
        for number, outer in facts.nest:
            some = at_once.get(number, 1)
            turns = math.ceil(facts.sizes[number] / some)
            around = self.loops[0] if outer is None else self.of[outer]
            moving = self.moving.setdefault(number, [])
            if rounds is not None and number == rounds.along:
                blocks = Loop(turns * some / rounds.block, around)
                around = Loop(rounds.rows / rounds.at_once, blocks, issued=turn)
                self.loops += [blocks, around]
                self.moving[rounds.summed] = [(around, rounds.at_once)]
                moving.append((blocks, rounds.block))
                turns = rounds.block // some
            if rounds is not None and number == rounds.summed:
                turns = 1
            self.of[number] = Loop(turns, around, issued=turn if turns > 1 else 0.0)
            if rounds is None or number != rounds.summed:
                moving.append((self.of[number], some))
            self.order[number] = len(self.loops)
            self.loops.append(self.of[number])

    def innermost(self, numbers: Iterable[int]) -> Loop:
        """The innermost of the loops of these axes, of which each stands in another."""
        return self.loops[max([self.order[number] for number in numbers], default=0)]


def _lanes(facts: Facts, target: Target, at_once: AtOnce, among: AtOnce) -> tuple[Axis | None, int]:
    """The axis of `among` whose places will be lanes, and of how many, as `choose_lanes.py` will say."""
    best: tuple[float, Axis | None, int] = (0.0, None, 1)
    widest = target.vector_bytes or target.load_bytes
    for number, some in among.items():
        width = largest_power_of_two(some, widest // facts.bytes_along.get(number, 1))
        if width > 1:
            axis = facts.loops.axes[number]
            saved = _saved(facts, target, at_once, axis, width)
            if saved > best[0]:
                best = saved, axis, width
    return best[1:]


def _saved(facts: Facts, target: Target, at_once: AtOnce, axis: Axis, width: int) -> float:
    """How many instructions fewer run where the places of an axis are lanes of vectors."""
    number, core = axis.number, target.core
    saved = -sum([ends * core.combined for ends, closed in facts.sums if number in closed])
    for access in facts.accesses:
        if number in access.strides:
            share = element_cost(access.step(axis), width, _by_rows(access, number, width, at_once), core)
            alike = math.prod([at_once.get(n, 1) for n in access.around if n not in access.strides])
            saved += access.count / alike * (1 - share)
    branches = sum([count for along, count in facts.branches.items() if number in along])
    saved += guessing(branches, core) * core.arithmetic
    for along, (price, _, _) in facts.computed.items():
        if number in along:
            saved += price * math.prod([facts.sizes[n] for n in along]) * (1 - 1 / width)
    return saved


def _by_rows(access: Access, number: int, width: int, at_once: AtOnce) -> bool:
    """Whether what is far apart from lane to lane is the columns of a square that can be loaded by rows."""
    return access.node.op is Ops.LOAD and any(
        n != number and access.strides.get(n) == 1 and some >= width for n, some in at_once.items()
    )

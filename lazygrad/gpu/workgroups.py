"""Which Opts to apply on a target that runs a grid of threads in workgroups, where nobody says.

Contractions are computed in blocks (`blocks.py`). Of anything else, every way to share it out that is listed
here is a candidate, and the one of the least predicted time is taken (`grid_time.py`):

1. A thread computes neighbours along one or two axes, so that it loads and stores them together.
2. Short reductions are written out; of a long one a thread takes neighbours at once.
3. The threads of a workgroup share the longest reduction, or none.
4. Neighbours of the outputs are threads of one workgroup, in a row or in a rectangle.

What stores in order is shared out along the axes whose places never meet (`disjoint_stores.py`), in rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..codegen.expressions.ranges import in_order, largest_power_of_two
from ..codegen.opt.facts import MAX_COST, SHORT, Facts, size_of
from ..codegen.opt.grids import Prediction
from ..codegen.opt.moves.actions import KernelOptError, Opt, OptOps, apply_opt
from ..codegen.opt.moves.loops import Axis, Loops, is_parallel
from ..ir.uop import UOp
from ..target import Target
from .blocks import shared_blocks
from .grid_time import predict_on_grid
from .occupancy import rounded_up
from .passes.assign_grid import is_far
from .shares import shares_of

#: Neighbours that a thread computes along one of two axes, and threads that share a reduction.
SIDES, SHARING = (4, 2), (1024, 512, 256, 128, 64, 32, 16, 8)
#: Threads of a workgroup, and the longest row of them where they lie in a rectangle.
THREADS, ROWS = (256, 128, 64, 32), (1024, 32, 16, 8)
#: Steps of a shared reduction that are written out.
AT_ONCE = 4
#: A reduction is made so many times as long at most, so that threads share it evenly.
PADDED = 5 / 4
#: Workgroups smaller than a warp leave units idle: from this size on an axis that makes such is rounded up.
ODD_FROM = 64
#: Of what is predicted to take the same but for so much, that which fills this part of multiprocessors; of
#: those that of the widest loads and stores; of these that of the fewest instructions, but for so much, whose
#: threads are nearest to a common workgroup's.
ALIKE, FILLED, COMMON = 1.05, 1 / 4, 128
#: So many ways to reduce are tried with all ways to arrange threads, the others with some.
FOLLOWED = 4


class Found(NamedTuple):
    """Opts, and what is predicted of them."""

    opts: list[Opt]
    prediction: Prediction


def choose(kernel: UOp | Loops, target: Target) -> list[Opt]:
    """The Opts for a kernel (form 3) on a target with a grid."""
    loops = Loops.of(kernel) if isinstance(kernel, UOp) else kernel
    if not loops.axes:
        return []
    facts = Facts.of(loops)
    if in_order(loops.sink):
        return _in_a_row(facts, target)
    blocks = shared_blocks(facts, target)
    if blocks:
        return blocks
    found = sorted(_Ways(facts, target).found(), key=lambda each: each.prediction.cycles)
    if not found:
        return []
    alike = [each for each in found if each.prediction.cycles <= ALIKE * found[0].prediction.cycles]
    alike = [each for each in alike if each.prediction.occupancy >= FILLED] or alike
    widest = max(each.prediction.wide for each in alike)
    alike = [each for each in alike if each.prediction.wide == widest]
    least = min(each.prediction.instructions for each in alike)
    few = [each for each in alike if each.prediction.instructions <= ALIKE * least]
    ordered = [*sorted(few, key=_uncommon), *found]
    return next((each.opts for each in ordered if _applies(loops, each.opts, target)), [])


def _in_a_row(facts: Facts, target: Target) -> list[Opt]:
    """Of what stores in order, neighbours along the last axis that is parallel are threads of a workgroup."""
    parallel = [axis for axis in facts.loops.axes if is_parallel(axis) and size_of(axis)]
    found = []
    for threads in THREADS if parallel else ():
        opts = [Opt(OptOps.LOCAL, parallel[-1].number, threads)]
        prediction = predict_on_grid(facts, opts, target)
        if prediction is not None and (size_of(parallel[-1]) or 1) % threads == 0:
            found.append(Found(opts, prediction))
    found.sort(key=lambda each: (each.prediction.cycles, _uncommon(each)))
    return next((each.opts for each in found if _applies(facts.loops, each.opts, target)), [])


def _uncommon(found: Found) -> tuple[float, float, int]:
    """How far the threads of a workgroup are from a common one's."""
    prediction = found.prediction
    return abs(math.log2(prediction.threads / COMMON)), prediction.cycles, len(found.opts)


class _Ways:
    """The ways to share out a kernel."""

    def __init__(self, facts: Facts, target: Target) -> None:
        self.facts, self.target = facts, target
        self.parallel = [axis for axis in facts.loops.axes if is_parallel(axis) and size_of(axis)]
        self.longest = max(facts.loops.reduce_axes, key=lambda axis: facts.sizes[axis.number], default=None)
        if self.longest is not None and size_of(self.longest) is None:
            self.longest = None
        last_first = list(reversed(self.parallel))
        self.nearest = sorted(last_first, key=self._far)
        self.widest = max(target.load_bytes // facts.element_bytes, AT_ONCE)
        self.stored = [
            Opt(OptOps.UNROLL, axis.reduce, 0)
            for axis in facts.loops.reduce_axes
            if not axis.output and axis is not self.longest and 1 < (size_of(axis) or SHORT + 1) <= SHORT
        ]

    def found(self) -> list[Found]:
        """All of them, those that take least time among the last."""
        some: list[tuple[float, list[Opt]]] = []
        found: list[Found] = []
        for begun in itertools.chain.from_iterable(map(self._shared, self._at_once())):
            tried = self._tried(begun, THREADS[:1], ROWS[::3])
            found += tried
            if tried:
                some.append((min(each.prediction.cycles for each in tried), begun))
        for _, begun in sorted(some, key=lambda each: each[0])[:FOLLOWED]:
            found += self._tried(begun, THREADS, ROWS)
        return found

    def _tried(self, begun: list[Opt], threads: Sequence[int], rows: Sequence[int]) -> list[Found]:
        """What is predicted of several arrangements of threads; those that do not fit are left out."""
        at_once = {number: share.at_once for number, share in shares_of(self.facts, begun).items()}
        if max(at_once.values()) > 1 and self.facts.size_of_code(at_once) > MAX_COST:
            return []
        ways = [[*begun, *own] for own in self._arranged(begun, threads, rows)]
        predicted = [(opts, predict_on_grid(self.facts, opts, self.target)) for opts in ways]
        return [Found(opts, prediction) for opts, prediction in predicted if prediction is not None]

    def _far(self, axis: Axis) -> float:
        """How often neighbours along an axis are far from each other in memory."""
        return sum(
            access.count
            for access in self.facts.accesses
            if is_far(access.step(axis) or 0, access.node.src[0].dtype.base.itemsize)
        )

    def _at_once(self) -> Iterator[list[Opt]]:
        """What a thread computes."""
        widths = [1 << n for n in range(1, self.widest.bit_length())]
        yield self.stored
        walked = [axis for axis in self.parallel if any(a.step(axis) == 1 for a in self.facts.accesses)]
        for axis, width in itertools.product(walked, widths):
            if (size_of(axis) or 1) % width == 0:
                yield [Opt(OptOps.UPCAST, axis.number, width), *self.stored]
        pairs = itertools.combinations(self._serving(), 2)
        for (first, second), high, wide in itertools.product(pairs, SIDES, SIDES):
            if (size_of(first) or 1) % high == 0 and (size_of(second) or 1) % wide == 0:
                sides = Opt(OptOps.UPCAST, first.number, high), Opt(OptOps.UPCAST, second.number, wide)
                yield [*sides, *self.stored]
        if self.longest is None:
            return
        size = size_of(self.longest) or 1
        if size <= SHORT:
            whole = [Opt(OptOps.UNROLL, self.longest.reduce, 0), *self.stored]
            yield whole
            for axis in walked:
                if (size_of(axis) or 1) % AT_ONCE == 0:
                    yield [Opt(OptOps.UPCAST, axis.number, AT_ONCE), *whole]
        elif any(access.step(self.longest) == 1 for access in self.facts.accesses):
            for width in widths[1:]:
                yield [Opt(OptOps.UNROLL, self.longest.reduce, width), *self.stored]

    def _serving(self) -> list[Axis]:
        """Axes of outputs, the last few, along which an access stays where it is, or is far from the next."""
        accesses = self.facts.accesses
        several = [
            a for a in self.parallel if any(not x.step(a) or abs(x.step(a) or 0) > 1 for x in accesses)
        ]
        beside = [a for a in self.parallel if a in several or any(x.step(a) == 1 for x in accesses)]
        return beside[-3:] if several else []

    def _shared(self, begun: list[Opt]) -> Iterator[list[Opt]]:
        """With the longest reduction shared by so many threads."""
        yield begun
        axis = self.longest
        if axis is None or not self.target.has_local or self.facts.scans:
            return
        unrolled = next(
            (opt.amount or 0 for opt in begun if opt.op is OptOps.UNROLL and opt.axis == axis.reduce), 1
        )
        size = self.facts.sizes[axis.number]
        if unrolled == 0 or size <= SHORT:
            return
        walked = any(abs(access.step(axis) or 0) == 1 for access in self.facts.accesses)
        kind = OptOps.GROUP if walked else OptOps.GROUPTOP
        for amount in SHARING:
            multiple = amount * unrolled
            padded = rounded_up(size, multiple)
            if amount > self.target.group_threads or padded > PADDED * size:
                continue
            if padded > size and size % unrolled == 0 and unrolled > 1:
                continue  # what is beside the padding is loaded alone
            pad = [Opt(OptOps.PADTO, axis.number, multiple)] if padded > size else []
            rest = largest_power_of_two(padded // multiple, AT_ONCE)
            shared = [*pad, *begun, Opt(kind, axis.reduce, amount)]
            yield shared
            if unrolled == 1 and rest > 1 and not axis.output:
                yield [*shared, Opt(OptOps.UNROLL, axis.reduce, 0 if padded // multiple == rest else rest)]

    def _arranged(self, begun: list[Opt], threads: Sequence[int], rows: Sequence[int]) -> list[list[Opt]]:
        """The threads of a workgroup, beside those that share a reduction already."""
        shares = shares_of(self.facts, begun)
        sharing = math.prod(share.group for share in shares.values())
        warp, found = self.target.launch.warp, []
        for most, row in itertools.product(threads, rows):
            own, left = [], max(1, min(most, self.target.group_threads) // sharing)
            sizes = {axis.number: shares[axis.number].groups for axis in self.nearest}
            first = next(iter(self.nearest), None)
            if first is not None and sharing == 1 and sizes[first.number] >= ODD_FROM:
                if (
                    all(_share(size, left, warp) < warp for size in sizes.values())
                    and shares[first.number].at_once == 1
                ):
                    multiple = warp if sizes[first.number] < 8 * THREADS[1] else THREADS[1]
                    own.append(Opt(OptOps.PADTO, first.number, multiple))
                    sizes[first.number] = rounded_up(sizes[first.number], multiple)
            for place, axis in enumerate(self.nearest):
                amount = _share(sizes[axis.number], min(left, row) if place == 0 else left, warp)
                if amount > 1:
                    own.append(Opt(OptOps.LOCAL, axis.number, amount))
                    left //= amount
            if own not in found:
                found.append(own)
        return found


def _share(size: int, most: int, warp: int) -> int:
    """How many threads take an axis: a power of two where there is a large one, else what divides it."""
    if most < 2:
        return 1
    power = largest_power_of_two(size, most)
    if power >= min(warp, most):
        return power
    return next(n for n in range(min(most, size), 0, -1) if size % n == 0)


def _applies(loops: Loops, opts: list[Opt], target: Target) -> bool:
    try:
        for opt in opts:
            loops = apply_opt(loops, opt, target)
    except KernelOptError:
        return False
    return True

"""How long a kernel takes on a grid with a list of Opts: what every choice for a grid and every report asks.

A roofline for each level of memory, with the occupancy that registers and local memory leave, and what
threads wait for (Volkov, "Better Performance at Lower Occupancy", 2010). Nothing is made of the kernel: what
Opts share out is worked out with numbers, what is loaded and computed is read off the loops without them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from ..codegen.opt.facts import Access, Facts
from ..codegen.opt.grids import Prediction
from ..codegen.opt.moves.actions import Opt, OptOps
from ..ir.nest import ranges_of
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..target import Target, TensorCore
from .occupancy import busy, resident_groups, rounded_up
from .passes.assign_grid import is_far
from .passes.partial_results import Step, cycles_of, instructions_of, partials_in_memory, steps_of
from .shares import shares_of

#: Compilers write out so many turns of a loop, so that their loads wait together; so many of a thread do.
AHEAD, TOGETHER = 4, 8
#: Instructions beside those that are counted: of each access its address, of each turn its counting.
ADDRESS, TURN = 1.0, 3.0
#: Registers of a thread beside accumulators and what is loaded.
OTHERS = 24
#: What is not busiest takes this share of its time still: it is not hidden wholly.
ALONE = 0.1
#: Two elements that nothing says the distance of are so many apart.
ANYWHERE = 1 << 20


def predict_on_grid(facts: Facts, opts: Sequence[Opt], target: Target) -> Prediction | None:
    """What is predicted of a kernel (`facts`: without Opts) with Opts; None where no multiprocessor holds a
    workgroup.
    """
    return _Launched(facts, opts, target).predicted()


class _Threads(NamedTuple):
    """Threads of a workgroup along an axis, neighbours so many places apart.

    `grouped`: they share a reduction.
    """

    axis: int
    threads: int
    distance: int
    grouped: bool


class _Launched:
    """A kernel shared out."""

    def __init__(self, facts: Facts, opts: Sequence[Opt], target: Target) -> None:
        self.facts, self.target = facts, target
        self.machine, self.multiprocessors = target.launch.machine
        self.shares = shares_of(facts, opts)
        self.accesses = [a for a in facts.accesses if a.node.src[0].src[0].op is Ops.DEFINE_GLOBAL]
        self.staged = {opt.amount for opt in opts if opt.op is OptOps.STAGE}
        self.core = next((opt for opt in opts if opt.op is OptOps.TC and target.tensor_cores), None)
        self.instruction = self._instruction(self.core) if self.core is not None else None
        self.copies_in_flight = next((opt.amount or 1 for opt in opts if opt.op is OptOps.AHEAD), 1) - 1
        shares = self.shares.values()
        self.threads = math.prod(share.threads * share.group for share in shares)
        if self.core is not None:
            self._give_to_warps(self.core)
        self.groups = math.prod(share.groups for share in shares)
        self.warps = -(-self.threads // target.launch.warp)
        self.along_x = self._order()

    def _instruction(self, core: Opt) -> TensorCore:
        """The tensor core that does as many steps on numbers as wide as the narrowest that are read."""
        item = min(_item(access) for access in self.accesses)
        found = [each for each in self.target.tensor_cores if each.steps == core.amount]
        return min(found, key=lambda each: abs(each.element.itemsize - item))

    def _give_to_warps(self, core: Opt) -> None:
        """A warp's matrices are 16 x 8 places of the outputs, and steps of the sum; those of a group of warps
        are as many times as high.
        """
        assert self.instruction is not None  # there is one for each TC
        warps = self.instruction.warps
        outputs = [axis for axis in self.facts.loops.axes if axis.output]
        sizes = sorted(outputs, key=lambda axis: self.shares[axis.number].groups)
        for axis, places in zip(
            sorted(sizes[-2:], key=lambda axis: axis.number), (16 * warps, 8), strict=False
        ):
            share = self.shares[axis.number]
            share.groups, share.at_once = max(1, -(-share.groups // places)), share.at_once * places
        for axis in self.facts.loops.reduce_axes:
            if axis.reduce == core.axis:
                share = self.shares[axis.number]
                share.iterations, share.at_once = (
                    max(1, share.iterations // (core.amount or 1)),
                    share.at_once * (core.amount or 1),
                )
        self.threads *= self.target.launch.warp * warps

    def _order(self) -> list[_Threads]:
        """Those along x, y and z, as `assign_grid.py` puts them."""
        found = []
        for axis in reversed(self.facts.loops.axes):
            share = self.shares[axis.number]
            if share.threads > 1:
                found.append(_Threads(axis.number, share.threads, share.near, False))
        for number, share in self.shares.items():
            if share.group > 1:
                found.append(_Threads(number, share.group, share.stride, True))

        def far(entry: _Threads) -> tuple[float, int]:
            steps = [(a, (a.strides.get(entry.axis, 0) or 0) * entry.distance) for a in self.accesses]
            often = sum(self._times(access) for access, step in steps if is_far(step, _item(access)))
            return often, sum(abs(step) for access, step in steps if access.node.op is Ops.STORE)

        return sorted(found, key=far)

    def _moved(self, access: Access) -> list[int]:
        return [number for number, step in access.strides.items() if step != 0]

    def _times(self, access: Access) -> float:
        """How often a thread looks at one of its places."""
        return math.prod(self.shares[number].own for number in self._moved(access))

    def _is_staged(self, access: Access) -> bool:
        return access.node.op is Ops.LOAD and access.node.src[0].src[0].arg in self.staged

    def _width(self, access: Access) -> int:
        """How many elements a load or store takes at once."""
        widest = max(self.target.load_bytes // _item(access), 1)
        if len(access.node.src[0].src) > 2:
            return 1
        for number, step in access.strides.items():
            if step == 1:
                width = math.gcd(self.shares[number].beside, widest)
                rest = [s for n, s in access.strides.items() if n != number]
                while width > 1 and any(s is not None and s % width for s in rest):
                    width //= 2
                return width
        return 1

    def _sectors(self, access: Access, width: int) -> int:
        """How many sectors the threads of a warp touch at once."""
        item, left = _item(access), self.target.launch.warp
        places = [0]
        for number, threads, apart, _ in self.along_x:
            step = access.strides.get(number, 0)
            by = ANYWHERE if step is None else step * apart
            count = min(threads, left)
            places = [place + k * by for k in range(count) for place in places]
            left //= count
            if left <= 1:
                break
        sector = self.machine.sector
        first = {place * item // sector for place in places}
        return len(first.union((place * item + width * item - 1) // sector for place in places))

    def _from_cache(self, access: Access) -> float:
        """Bytes of the sectors that a workgroup touches."""
        places = {n: self.shares[n].inside for n in self._moved(access)}
        return _touched(access, places, self.machine.fetched)

    def _from_memory(self) -> tuple[float, float]:
        """Bytes of all that is read and written: in sectors, and alone."""
        sectors, alone = dict[tuple[UOp, Ops], float](), dict[tuple[UOp, Ops], float]()
        for access in self.accesses:
            key = access.node.src[0].src[0], access.node.op
            sizes = {n: self.facts.sizes[n] for n in self._moved(access)}
            alone[key] = max(alone.get(key, 0), min(access.nbytes, math.prod(sizes.values()) * _item(access)))
            sectors[key] = max(
                sectors.get(key, 0), min(access.nbytes, _touched(access, sizes, self.machine.fetched))
            )
        return sum(sectors.values()), sum(alone.values())

    def _instructions(self) -> tuple[float, float, float]:
        """Of a thread: those that compute; of these products; and turns."""
        computed = products = turns = 0.0
        for axes, (price, multiplied, sums) in self.facts.computed.items():
            times = math.prod(self.shares[number].own for number in axes)
            computed += (price - min(multiplied, sums)) * times
            products += multiplied * times
            turns = max(turns, math.prod(self.shares[number].iterations for number in axes))
        return computed, products, turns

    def _registers(self) -> int:
        """Of a thread."""
        sums = 0.0
        for axes, (_, _, count) in self.facts.computed.items():
            sums += count * math.prod(
                self.shares[number].at_once for number in axes if self._is_cached(number)
            )
        loaded = sum(
            math.prod(self.shares[n].at_once for n in self._moved(access)) * max(_item(access), 4) / 4
            for access in self.accesses
            if access.node.op is Ops.LOAD
        )
        if self.instruction is not None:
            threads = self.target.launch.warp * self.instruction.warps
            sums, loaded = sums / threads, loaded / threads if self.instruction.warps == 1 else 0
        most = self.machine.thread_registers
        return min(rounded_up(int(sums + min(loaded, 64)) + OTHERS, 8), max(most, int(sums) + OTHERS))

    def _is_cached(self, number: int) -> bool:
        return self.facts.loops.axes[number].output or self.shares[number].group > 1

    def _shared_bytes(self) -> int:
        """Local memory of a workgroup: parts of what it reduces together, and copies."""
        total = 0.0
        for number, share in self.shares.items():
            if share.group > 1:
                parts = partials_in_memory(self._steps(number))
                total += 4 * self._shared_sums(number) * parts * self.threads // share.group
        for access in self.accesses:
            if self._is_staged(access):
                total += self._copied(access) * (self.copies_in_flight + 1)
        return int(total)

    def _copied(self, access: Access) -> int:
        """Bytes of the copy of one turn of the longest reduction."""
        inside = {n: self.shares[n].inside for n in self._moved(access)}
        reduced = [n for n in inside if not self.facts.loops.axes[n].output]
        along = max(reduced, key=lambda n: self.shares[n].iterations, default=None)
        if along is not None:
            inside[along] = self.shares[along].at_once
        return math.prod(inside.values()) * _item(access)

    def predicted(self) -> Prediction | None:
        machine, launch, target = self.machine, self.target.launch, self.target
        registers, shared = self._registers(), self._shared_bytes()
        if registers > machine.thread_registers or shared > target.local_bytes:
            return None
        resident = resident_groups(machine, self.threads, registers, shared)
        if resident < 1:
            return None
        computed, products, turns = self._instructions()
        products *= self.warps * launch.warp
        on_cores, together, item, reached = False, 1, 4, 1.0
        if self.instruction is not None:  # what a thread is said to compute, its warps do
            together, item = self.instruction.warps, self.instruction.element.itemsize
            computed, products = 0.0, products / launch.warp / together
            on_cores, reached = machine.matrix_products > 0, self.instruction.share
        own = from_cache = words = wide = accesses = 0.0
        widths = [self._width(access) for access in self.accesses]
        for access, width in zip(self.accesses, widths, strict=True):
            times = self._times(access) / width
            wide = max(wide, width * _item(access))
            from_cache += self._from_cache(access)
            if self._is_staged(access):
                readers = launch.warp if on_cores else 1  # a factor's numbers are read by one thread each
                moved_words = times * width * _item(access) / 4 * launch.warp / readers
                words += moved_words * self.warps / together
                accesses += times / readers if together == 1 else 0.0
            else:
                accesses += times
                own += times * self.warps * self._sectors(access, width)
        instructions = computed + accesses * (1 + ADDRESS) + turns * TURN
        meeting, combined = self._meetings()
        instructions += combined
        units = busy(
            machine,
            instructions * self.warps,
            products=0.0 if on_cores else products,
            matrices=products * item if on_cores else 0.0,
            words=words,
            fetched=from_cache,
            share=reached,
        )
        of_group = max(units, own / machine.sectors)
        rounds, fetched = self._waits(widths)
        # what is fetched ahead comes while a turn computes; that of a group of warps ends with its products
        idle = turns * machine.meeting if together > 1 else 0.0
        waves = -(-self.groups // (resident * self.multiprocessors))
        sectors, alone = self._from_memory()
        parts = [
            -(-self.groups // self.multiprocessors) * of_group,
            sectors / (launch.bandwidth / launch.clock),
            waves
            * (
                machine.start
                + rounds * machine.waits
                + meeting
                + max(of_group + idle, fetched * machine.waits)
            ),
        ]
        cycles = max(parts) + ALONE * (sum(parts) - max(parts))
        seconds = cycles / launch.clock + launch.begun
        operations = sum(
            price * math.prod(self.facts.sizes[n] for n in axes)
            for axes, (price, _, _) in self.facts.computed.items()
        )
        peak = machine.matrix_products * 2 / item if on_cores else machine.products
        arithmetic = operations / (2 * peak * self.multiprocessors * launch.clock)
        moving = alone / launch.bandwidth
        return Prediction(
            self.groups,
            self.threads,
            shared,
            registers,
            min(1.0, min(resident, -(-self.groups // self.multiprocessors)) * self.threads / machine.threads),
            int(wide),
            instructions * self.warps * self.groups,
            cycles,
            seconds,
            max(arithmetic, moving) / seconds,
            "arithmetic" if arithmetic > moving else "bandwidth",
            launch.multiprocessor is not None,
        )

    def _waits(self, widths: Sequence[int]) -> tuple[float, float]:
        """How often a thread waits for memory, and how often for copies that were fetched ahead."""
        waits_of: dict[frozenset[UOp], float] = {}
        loads: dict[frozenset[UOp], float] = {}
        fetched = 0.0
        reduced = frozenset(r for axis in self.facts.loops.reduce_axes for r in axis.ranges)
        for access, width in zip(self.accesses, widths, strict=True):
            if access.node.op is not Ops.LOAD:
                continue
            staged = self._is_staged(access)
            waits = math.prod(self.shares[n].iterations for n in self._moved(access))
            waits = waits if staged else math.ceil(waits / AHEAD)
            waits += None in access.strides.values()
            key = reduced & ranges_of(access.node.src[0])
            if not staged:
                loads[key] = loads.get(key, 0.0) + self._times(access) / width
            if self.copies_in_flight and staged:
                fetched = max(fetched, waits / self.copies_in_flight)
            else:
                waits_of[key] = max(waits_of.get(key, 0.0), waits, math.ceil(loads.get(key, 0.0) / TOGETHER))
        return sum(waits_of.values()), fetched

    def _shared_sums(self, number: int) -> int:
        """How many results a thread has a part of that the threads along an axis share."""
        kept = [axis.number for axis in self.facts.loops.axes if axis.output and axis.number != number]
        return sum(
            count * math.prod(self.shares[n].at_once for n in axes if n in kept)
            for axes, (_, _, count) in self.facts.computed.items()
            if number in axes
        )

    def _steps(self, number: int) -> tuple[Step, ...]:
        """How the threads that share the reductions along an axis combine their parts."""
        before = itertools.takewhile(lambda entry: not entry.grouped, self.along_x)
        apart = math.prod(entry.threads for entry in before)
        return steps_of(self.shares[number].group, apart, self.threads, self.target)

    def _meetings(self) -> tuple[float, float]:
        """Cycles in which threads that share reductions combine their parts, and a thread's instructions."""
        total = combined = 0.0
        for number, share in self.shares.items():
            if share.group > 1:
                ends = sum(number in closed for _, closed in self.facts.sums)
                lanes = self._shared_sums(number) // max(ends, 1)
                steps = self._steps(number)
                total += ends * cycles_of(steps, self.machine, lanes)
                combined += ends * lanes * instructions_of(steps)
        return total, combined


def _item(access: Access) -> int:
    return access.node.src[0].dtype.base.itemsize


def _touched(access: Access, places: dict[int, int], fetched: int) -> float:
    """Bytes that are fetched, so many together, for so many places along each axis."""
    item = _item(access)
    steps = [(abs(step) if (step := access.strides[n]) is not None else ANYWHERE, n) for n in places]
    moving = sorted((step, n) for step, n in steps if places[n] > 1)
    if not moving:
        return fetched
    nearest, number = moving[0]
    run = max(fetched, places[number] * min(nearest * item, fetched))
    return run * math.prod(places[n] for _, n in moving[1:])

"""The choice for contractions on a grid: a workgroup computes a block, from copies that it shares.

    for each block of 128 x 64 of the results, by 256 threads:
      for k in 0..n/8:
        copy 128 x 8 of the rows and 8 x 64 of the columns into memory of the workgroup    (STAGE)
        each thread: 8 x 4 results += 8 x 8 of one copy times 8 x 4 of the other   (UPCAST, UNROLL)

A convolution is one too: the sum over channels goes in steps, and the places of the filter are loops inside.
Every block that fits is a candidate: how long a multiprocessor takes for it is worked out from what one has
(`target/gpus.py`, `occupancy.py`), and the one of the least time is chosen.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ..codegen.linearizing.nest_sums import BLOCK, BLOCKS
from ..codegen.opt.cpu.contraction import is_contraction
from ..codegen.opt.facts import Access, Facts, size_of
from ..codegen.opt.gemm_axes import GemmAxes, all_gemm_axes, number_of
from ..codegen.opt.moves.actions import KernelOptError, Opt, OptOps, apply_opt
from ..codegen.opt.moves.loops import Axis
from ..target import Multiprocessor, Target
from .moves.factors import APART
from .occupancy import (
    Multiples,
    blocks_of,
    busy,
    copied,
    copies_of,
    cycles_of,
    is_padded_little,
    padded,
    resident_groups,
    rounded_up,
)
from .passes.warp_groups import are_alone
from .warp_blocks import warp_blocks

#: Places of an output axis that a thread computes, threads along it, and steps between two copies.
PLACES, THREADS, STEPS = (8, 4, 2), (32, 16, 8), (32, 16, 8)
#: A vector's worth of neighbours: further places of a thread lie behind those of its neighbours.
VECTOR = 4
#: Registers of a thread beside sums and what they are made of: addresses, counters.
OTHERS = 32
#: A workgroup has so many threads, and a thread so many products written out.
LEAST, MOST, WRITTEN = 64, 256, 1024


@dataclass(frozen=True)
class Block:
    """What a workgroup computes at once: so many places of each of so many threads, and steps of the sum."""

    rows: int
    lanes: int
    row_threads: int
    lane_threads: int
    steps: int

    @property
    def threads(self) -> int:
        return self.row_threads * self.lane_threads

    @property
    def height(self) -> int:
        return self.rows * self.row_threads

    @property
    def width(self) -> int:
        return self.lanes * self.lane_threads


class Found(NamedTuple):
    """A block, its Opts, and the cycles that it is predicted to take."""

    cycles: float
    opts: list[Opt]


def shared_blocks(facts: Facts, target: Target) -> list[Opt]:
    """The Opts for a product of matrices whose blocks are worth copying; [] for anything else."""
    found = sorted(_candidates(facts, target), key=lambda each: each.cycles)
    return next((each.opts for each in found if _applies(facts, each.opts, target)), [])


def _candidates(facts: Facts, target: Target) -> Iterator[Found]:
    machine = target.launch.multiprocessor
    if machine is None or not target.has_local or not is_contraction(facts):
        return
    loads = [access for access in facts.accesses if access.reduced]
    if len(loads) != 2:
        return  # each is copied
    inner = [axis for axis in facts.loops.axes if not axis.output]
    along = [axis for axis in inner if all(access.step(axis) for access in loads)]
    if not along or any(number_of(access) < 0 for access in loads):
        return
    summed = max(along, key=lambda axis: size_of(axis) or 0)
    work = _LoopBody(facts, loads, summed, [axis for axis in inner if axis is not summed], target, machine)
    for roles in all_gemm_axes(facts):
        if not any(access.step(roles.lanes) == 1 for access in facts.accesses if not access.reduced):
            continue  # neighbouring threads write neighbours
        if len(inner) == 1:
            yield from (Found(*each) for each in warp_blocks(facts, roles, summed, target, machine))
        for block in _blocks(roles, summed):
            for copies in copies_of(-(-(size_of(summed) or 1) // block.steps), target):
                time = work.cycles(block, roles, copies)
                if time is not None:
                    yield Found(time, _opts(block, roles, summed, copies))


def _blocks(roles: GemmAxes, summed: Axis) -> Iterator[Block]:
    for rows in PLACES:
        for lanes in PLACES:
            for row_threads in THREADS:
                for lane_threads in THREADS:
                    for steps in STEPS:
                        block = Block(rows, lanes, row_threads, lane_threads, steps)
                        if steps >= (size_of(summed) or 1):
                            continue  # the copies are for one turn of a loop
                        if not LEAST <= block.threads <= MOST or rows * lanes * steps > WRITTEN:
                            continue
                        if is_padded_little(_multiples(block, roles, summed)):
                            yield block


def _multiples(block: Block, roles: GemmAxes, summed: Axis) -> Multiples:
    return (roles.rows, block.height), (roles.lanes, block.width), (summed, block.steps)


@dataclass(frozen=True)
class _LoopBody:
    """What is to be done: `summed` goes in steps between copies, `inside` are the other sums' loops."""

    facts: Facts
    loads: list[Access]
    summed: Axis
    inside: list[Axis]
    target: Target
    machine: Multiprocessor

    def copied(self, block: Block, roles: GemmAxes) -> int:
        """Elements of both copies, of windows at most."""
        sizes = {roles.rows.number: block.height, roles.lanes.number: block.width}
        sizes |= {axis.number: size_of(axis) or 1 for axis in self.inside}
        return sum(
            block.steps * math.prod(size for number, size in sizes.items() if load.strides.get(number))
            for load in self.loads
        )

    def cycles(self, block: Block, roles: GemmAxes, number: int) -> float | None:
        """How long the device takes for all blocks, with a number of copies; None where none is held."""
        machine, warp, itemsize = self.machine, self.target.launch.warp, self.facts.element_bytes
        turns = -(-(size_of(self.summed) or 1) // block.steps)
        repeats = math.prod(size_of(axis) or 1 for axis in self.inside)
        products = block.rows * block.lanes
        sums = products * _levels(turns * repeats)
        registers = rounded_up(sums + block.rows + block.lanes + OTHERS, 8)
        elements = self.copied(block, roles)
        gaps = 1 + APART / (4 * machine.banks)  # at most: what keeps their rows apart
        copies = int(number * elements * itemsize * gaps)
        if registers > machine.thread_registers or copies > self.target.local_bytes:
            return None
        steps = block.steps * repeats  # of a sum, between two copies
        warps = block.threads / warp
        vector = max(1, self.target.load_bytes // itemsize)
        read = block.rows / min(block.rows, vector) + block.lanes / min(block.lanes, vector)
        filled = elements / block.threads * (1 / vector + 1)  # loads as vectors, stores one by one
        instructions = warps * (steps * (products * (1 + 1 / block.steps) + read) + filled)
        # threads of a warp that read other columns; the rest read other rows
        along = min(warp, block.lane_threads)
        words = (block.lanes * along + block.rows * (warp // along)) * itemsize / 4
        turn = busy(
            machine,
            instructions,
            products=steps * warps * warp * products,
            words=steps * warps * words,
            fetched=elements * itemsize,
        )
        resident = resident_groups(machine, block.threads, registers, copies)
        blocks = blocks_of(self.facts, roles, block.height, block.width)
        return cycles_of(blocks, resident, turns, turn, self.target.launch, number)


def _levels(turns: int) -> int:
    """How many accumulators a sum of so many turns has: one for each level of `nest_sums`."""
    levels, room = 1, BLOCK
    while turns > room + room // 2:
        levels, room = levels + 1, room * BLOCKS
    return levels


def _opts(block: Block, roles: GemmAxes, summed: Axis, copies: int) -> list[Opt]:
    rows, lanes = roles.rows, roles.lanes
    found = padded(_multiples(block, roles, summed))
    for axis, places, threads in (
        (lanes, block.lanes, block.lane_threads),
        (rows, block.rows, block.row_threads),
    ):
        first = min(places, VECTOR)
        found += [Opt(OptOps.UPCAST, axis.number, first), Opt(OptOps.LOCAL, axis.number, threads)]
        if places > first:
            found.append(Opt(OptOps.UPCAST, axis.number, places // first))
    return [*found, Opt(OptOps.UNROLL, summed.reduce, block.steps), *copied(roles, summed, copies)]


def _applies(facts: Facts, opts: list[Opt], target: Target) -> bool:
    loops = facts.loops
    try:
        for opt in opts:
            loops = apply_opt(loops, opt, target)
    except KernelOptError:
        return False
    return not are_alone(loops.sink)  # for which there are faster ones

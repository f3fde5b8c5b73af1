"""The choice for products of matrices on a grid: a workgroup computes a block, from copies that it shares.

    for each block of 128 x 64 of the results, by 256 threads:
      for k in 0..n/8:
        copy 128 x 8 of the rows and 8 x 64 of the columns into memory of the workgroup    (STAGE)
        each thread: 8 x 4 results += 8 x 8 of one copy times 8 x 4 of the other   (UPCAST, UNROLL)

Every block that fits is a candidate: how long a multiprocessor takes for it is worked out from what one has
(`target/gpus.py`), and the one of the least time is chosen. In the field's words this is a roofline for each
level of memory, with the occupancy that registers and shared memory leave (Volkov, "Better Performance at
Lower Occupancy", 2010).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ...target import Multiprocessor, Target
from ..nest_sums import BLOCK, BLOCKS
from .actions import KernelOptError, Opt, OptOps, apply_opt
from .contraction import is_contraction
from .facts import Facts, size_of
from .loops import Axis
from .roles import Roles, all_roles, number_of

#: Places of an output axis that a thread computes, threads along it, and steps between two copies.
PLACES, THREADS, STEPS = (8, 4, 2), (32, 16, 8), (32, 16, 8)
#: A vector's worth of neighbours: further places of a thread lie behind those of its neighbours.
VECTOR = 4
#: Registers of a thread beside sums and what they are made of: addresses, counters.
OTHERS = 32
#: Bytes of a multiprocessor's local memory that each workgroup takes beside its own ("CUDA C++ Programming
#: Guide", compute capability 8.x and later).
RESERVED = 1024
#: At most so much of the work may be padding.
PADDED = 1.5
#: For this part of the multiprocessors there is a block; where there are fewer, threads share a sum instead.
BUSY = 1 / 2
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
    best = min(_candidates(facts, target), key=lambda found: found.cycles, default=None)
    return best.opts if best is not None and _applies(facts, best.opts, target) else []


def _candidates(facts: Facts, target: Target) -> Iterator[Found]:
    machine = target.launch.multiprocessor
    summed = [axis for axis in facts.loops.axes if not axis.output]
    if machine is None or not target.has_local or len(summed) != 1 or not is_contraction(facts):
        return
    for roles in all_roles(facts):
        loads = [access for access in facts.accesses if access.reduced]
        if len(loads) != 2 or len({number_of(access) for access in loads}) != 2:
            continue  # each is copied from an input of its own
        if any(not access.step(summed[0]) or number_of(access) < 0 for access in loads):
            continue
        if not any(access.step(roles.lanes) == 1 for access in facts.accesses if not access.reduced):
            continue  # neighbouring threads write neighbours
        for block in _blocks(roles, summed[0]):
            time = _cycles(block, facts, roles, summed[0], target, machine)
            if time is not None:
                yield Found(time, _opts(block, roles, summed[0]))


def _blocks(roles: Roles, summed: Axis) -> Iterator[Block]:
    for rows in PLACES:
        for lanes in PLACES:
            for row_threads in THREADS:
                for lane_threads in THREADS:
                    for steps in STEPS:
                        block = Block(rows, lanes, row_threads, lane_threads, steps)
                        if not LEAST <= block.threads <= MOST or rows * lanes * steps > WRITTEN:
                            continue
                        sizes = ((roles.rows, block.height), (roles.lanes, block.width), (summed, steps))
                        padded = [_padded(size_of(axis) or 1, n) / (size_of(axis) or 1) for axis, n in sizes]
                        if math.prod(padded) <= PADDED:
                            yield block


def _padded(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


def _cycles(
    block: Block, facts: Facts, roles: Roles, summed: Axis, target: Target, machine: Multiprocessor
) -> float | None:
    """How long the device takes for all blocks; None where a multiprocessor does not hold one."""
    itemsize, warp = facts.element_bytes, target.launch.warp
    turns = -(-(size_of(summed) or 1) // block.steps)
    sums = block.rows * block.lanes * _levels(turns)
    registers = _padded(sums + block.rows + block.lanes + OTHERS, 8)
    copies = (block.height + block.width) * block.steps * itemsize
    if registers > machine.thread_registers or copies > target.local_bytes:
        return None
    resident = min(
        machine.groups,
        machine.threads // block.threads,
        machine.registers // (registers * block.threads),
        machine.local_bytes // (copies + RESERVED),
    )
    if resident == 0:
        return None
    warps = block.threads / warp
    vector = max(1, target.load_bytes // itemsize)
    products = block.rows * block.lanes
    read = block.rows / min(block.rows, vector) + block.lanes / min(block.lanes, vector)
    copied = (
        (block.height + block.width) / block.threads * (1 / vector + 1)
    )  # loads as vectors, stores one by one
    instructions = warps * (products * (1 + 1 / block.steps) + read + copied)
    along = min(warp, block.lane_threads)  # threads of a warp that read other columns; the rest, other rows
    words = (block.lanes * along + block.rows * (warp // along)) * itemsize / 4
    step = max(
        warps * warp * products / machine.products,
        instructions / machine.warps,
        warps * words / machine.banks,
        (block.height + block.width) * itemsize / machine.cached,
    )
    turn = max(resident * block.steps * step, machine.waits + block.steps * step)
    outputs = 1
    for axis in facts.loops.axes:
        if axis.output:
            size = {roles.rows.number: block.height, roles.lanes.number: block.width}.get(axis.number, 1)
            outputs *= -(-(size_of(axis) or 1) // size)
    if outputs < target.launch.multiprocessors * BUSY:
        return None
    rounds = -(-outputs // (resident * target.launch.multiprocessors))
    return rounds * turns * turn


def _levels(turns: int) -> int:
    """How many accumulators a sum of so many turns has: one for each level of `nest_sums`."""
    levels, room = 1, BLOCK
    while turns > room + room // 2:
        levels, room = levels + 1, room * BLOCKS
    return levels


def _opts(block: Block, roles: Roles, summed: Axis) -> list[Opt]:
    rows, lanes = roles.rows, roles.lanes
    found: list[Opt] = []
    for axis, n in ((rows, block.height), (lanes, block.width), (summed, block.steps)):
        if (size_of(axis) or 1) % n:
            found.append(Opt(OptOps.PADTO, axis.number, n))
    for axis, places, threads in (
        (lanes, block.lanes, block.lane_threads),
        (rows, block.rows, block.row_threads),
    ):
        first = min(places, VECTOR)
        found += [Opt(OptOps.UPCAST, axis.number, first), Opt(OptOps.LOCAL, axis.number, threads)]
        if places > first:
            found.append(Opt(OptOps.UPCAST, axis.number, places // first))
    found.append(Opt(OptOps.UNROLL, summed.reduce, block.steps))
    inputs = sorted({number_of(access) for access in (*roles.panels, *roles.others)})
    return [*found, *(Opt(OptOps.STAGE, summed.number, number) for number in inputs)]


def _applies(facts: Facts, opts: list[Opt], target: Target) -> bool:
    loops = facts.loops
    try:
        for opt in opts:
            loops = apply_opt(loops, opt, target)
    except KernelOptError:
        return False
    return True

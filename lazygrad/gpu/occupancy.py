"""What a multiprocessor holds, and how long its units are busy: what all predictions for a grid ask.

That is a roofline for each unit and each level of memory, with the occupancy that registers and shared memory
leave (Volkov, "Better Performance at Lower Occupancy", 2010). The blocks of a contraction, which `blocks.py`
and `warp_blocks.py` compare by the hundred, take so many turns of that (`cycles_of`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ..codegen.opt.facts import Facts, size_of
from ..codegen.opt.gemm_axes import GemmAxes, number_of
from ..codegen.opt.moves.actions import Opt, OptOps
from ..codegen.opt.moves.loops import Axis
from ..target import Launch, Multiprocessor, Target

#: At most so much of the work may be padding.
PADDED = 1.5
#: For this part of the multiprocessors there is a block; where there are fewer, threads share a sum instead.
BUSY = 1 / 2

#: Copies beside one that are tried.
COPIES = (2, 3)

#: An axis and what it is to be a multiple of.
Multiples = Sequence[tuple[Axis, int]]


def rounded_up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


def is_padded_little(multiples: Multiples) -> bool:
    """Whether rounding these axes up makes little more work."""
    sizes = [(size_of(axis) or 1, n) for axis, n in multiples]
    return math.prod(rounded_up(size, n) / size for size, n in sizes) <= PADDED


def resident_groups(machine: Multiprocessor, threads: int, registers: int, copies: int) -> int:
    """How many workgroups a multiprocessor holds, of so many threads with so many registers each."""
    return min(
        machine.groups,
        machine.threads // threads,
        machine.registers // (registers * threads),
        machine.local_bytes // (copies + machine.reserved),
    )


def busy(
    machine: Multiprocessor,
    instructions: float,
    products: float = 0.0,
    matrices: float = 0.0,
    words: float = 0.0,
    fetched: float = 0.0,
    share: float = 1.0,
) -> float:
    """Cycles of the unit that is busy longest.

    instructions  those of warps
    products      multiply-adds on float32, of single threads
    matrices      bytes of one factor of the multiply-adds on tensor cores; where there are none, nothing
    words         of 4 bytes, read from local memory
    fetched       bytes from the cache that all multiprocessors share
    share         the part of the tensor cores' peak that their instruction reaches
    """
    return max(
        instructions / machine.warps,
        products / machine.products,
        matrices / (2 * machine.matrix_products * share) if machine.matrix_products else 0.0,
        words / machine.banks,
        fetched / machine.cached,
    )


def blocks_of(facts: Facts, roles: GemmAxes, height: int, width: int) -> int:
    """How many blocks of so many rows and lanes there are."""
    sizes = {roles.rows.number: height, roles.lanes.number: width}
    outputs = [axis for axis in facts.loops.axes if axis.output]
    return math.prod(-(-(size_of(axis) or 1) // sizes.get(axis.number, 1)) for axis in outputs)


def copies_of(turns: int, target: Target) -> Iterator[int]:
    """How many copies a block of so many turns may have of what it reads in one (AHEAD)."""
    yield 1
    if target.async_copies:
        yield from (copies for copies in COPIES if copies < turns)


def cycles_of(
    blocks: int, resident: int, turns: int, busy: float, launch: Launch, copies: int = 1, idle: float = 0
) -> float | None:
    """How long all blocks take, of so many turns that keep a multiprocessor busy for so long; None where it
    holds no block, or there are too few. Other workgroups work while one waits for memory; with several
    copies it waits for what it asked for as many turns before. A turn of a workgroup has so many `idle`
    cycles more.
    """
    machine = launch.multiprocessor
    if machine is None or resident == 0 or blocks < launch.multiprocessors * BUSY:
        return None
    resident = min(resident, -(-blocks // launch.multiprocessors))
    waits = machine.waits + busy if copies == 1 else machine.waits / (copies - 1)
    turn = max(resident * busy, busy + idle, waits)
    return -(-blocks // (resident * launch.multiprocessors)) * turns * turn


def padded(multiples: Multiples) -> list[Opt]:
    """The Opts that round axes up."""
    return [Opt(OptOps.PADTO, axis.number, n) for axis, n in multiples if (size_of(axis) or 1) % n]


def copied(roles: GemmAxes, summed: Axis, copies: int) -> list[Opt]:
    """The Opts that copy both inputs, and keep so many copies."""
    inputs = sorted({number_of(access) for access in (*roles.right, *roles.others)})
    found = [Opt(OptOps.STAGE, summed.number, number) for number in inputs]
    return found if copies == 1 else [*found, Opt(OptOps.AHEAD, summed.number, copies)]

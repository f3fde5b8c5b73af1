"""The choice for products of matrices that tensor cores compute (TC on a grid), as `blocks.py` for others.

for each block of 128 x 128 of the results, by 4 warps:
  for k in 0..n/32:
    copy 128 x 32 of the rows and 32 x 128 of the columns, packed as tensor cores take them     (STAGE)
    each warp: 64 x 64 results += 64 x 32 of one copy times 32 x 64 of the other   (UPCAST, UNROLL)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from ...target import Multiprocessor, Target, TensorCore
from .actions import Opt, OptOps
from .facts import Facts, size_of
from .loops import Axis
from .roles import Roles, number_of
from .warp_matrices import COLUMNS, ROWS

#: Matrices of a warp along the rows and the columns, warps along both, instructions between two copies.
MATRICES, WARPS, STEPS = (4, 2, 1), (4, 2, 1), (4, 2, 1)
#: A workgroup has so many warps, a warp so many instructions written out.
MOST_WARPS, WRITTEN = 8, 64
#: Registers of a thread beside sums and words: addresses, counters.
OTHERS = 40
#: Bytes of a multiprocessor's local memory that each workgroup takes beside its own.
RESERVED = 1024
#: At most so much of the work may be padding.
PADDED = 1.5


@dataclass(frozen=True)
class WarpBlock:
    """What a workgroup computes at once: so many matrices of each of so many warps, in steps of a sum."""

    rows: int
    columns: int
    row_warps: int
    column_warps: int
    steps: int

    @property
    def warps(self) -> int:
        return self.row_warps * self.column_warps

    @property
    def height(self) -> int:
        return ROWS * self.rows * self.row_warps

    @property
    def width(self) -> int:
        return COLUMNS * self.columns * self.column_warps


def warp_blocks(
    facts: Facts, roles: Roles, summed: Axis, target: Target, machine: Multiprocessor
) -> Iterator[tuple[float, list[Opt]]]:
    """(cycles, Opts) of every block that fits; `apply_opt` says whether the factors do."""
    for core in target.tensor_cores:
        for block in _blocks(roles, summed, core):
            time = _cycles(block, facts, roles, summed, core, target, machine)
            if time is not None:
                yield time, _opts(block, roles, summed, core)


def _blocks(roles: Roles, summed: Axis, core: TensorCore) -> Iterator[WarpBlock]:
    for rows in MATRICES:
        for columns in (2 * n for n in MATRICES):
            for row_warps in WARPS:
                for column_warps in WARPS:
                    for steps in STEPS:
                        block = WarpBlock(rows, columns, row_warps, column_warps, steps)
                        if block.warps > MOST_WARPS or rows * columns * steps > WRITTEN:
                            continue
                        if steps * core.steps >= (size_of(summed) or 1):
                            continue  # the copies are for one turn of a loop
                        if _padding(block, roles, summed, core) <= PADDED:
                            yield block


def _multiples(block: WarpBlock, roles: Roles, summed: Axis, core: TensorCore) -> list[tuple[Axis, int]]:
    return [(roles.rows, block.height), (roles.lanes, block.width), (summed, block.steps * core.steps)]


def _padding(block: WarpBlock, roles: Roles, summed: Axis, core: TensorCore) -> float:
    sizes = [(size_of(axis) or 1, n) for axis, n in _multiples(block, roles, summed, core)]
    return math.prod(-(-size // n) * n / size for size, n in sizes)


def _cycles(
    block: WarpBlock,
    facts: Facts,
    roles: Roles,
    summed: Axis,
    core: TensorCore,
    target: Target,
    machine: Multiprocessor,
) -> float | None:
    """How long the device takes for all blocks; None where a multiprocessor does not hold one."""
    warp, threads = target.launch.warp, target.launch.warp * block.warps
    turns = -(-(size_of(summed) or 1) // (block.steps * core.steps))
    words = core.halves * (2 * block.rows + block.columns)  # of a thread, of an instruction's steps
    registers = -(-(4 * block.rows * block.columns + words + OTHERS) // 8) * 8
    packed = (block.height + block.width) * block.steps * core.steps // core.packed
    if registers > machine.thread_registers or 4 * packed > target.local_bytes:
        return None
    resident = min(
        machine.groups,
        machine.threads // threads,
        machine.registers // (registers * threads),
        machine.local_bytes // (4 * packed + RESERVED),
    )
    sizes = {roles.rows.number: block.height, roles.lanes.number: block.width}
    outputs = [axis for axis in facts.loops.axes if axis.output]
    blocks = math.prod(-(-(size_of(axis) or 1) // sizes.get(axis.number, 1)) for axis in outputs)
    if resident == 0 or 2 * blocks < target.launch.multiprocessors:
        return None
    matrices = block.warps * block.rows * block.columns * block.steps
    products = matrices * ROWS * COLUMNS * core.steps
    filled = packed / threads * (core.packed + 2)  # each factor loaded, packed, and the word stored
    instructions = matrices + block.warps * (block.steps * words + filled)
    busy = max(
        products / (machine.matrix_products * 2 / core.element.itemsize),
        instructions / machine.warps,
        block.warps * block.steps * words * warp / machine.banks,
        4 * packed / machine.cached,
    )
    turn = max(resident * busy, machine.waits + busy)
    rounds = -(-blocks // (resident * target.launch.multiprocessors))
    return rounds * turns * turn


def _opts(block: WarpBlock, roles: Roles, summed: Axis, core: TensorCore) -> list[Opt]:
    rows, columns = roles.rows.number, roles.lanes.number
    padded = [(axis, n) for axis, n in _multiples(block, roles, summed, core) if (size_of(axis) or 1) % n]
    found = [Opt(OptOps.PADTO, axis.number, n) for axis, n in padded]
    found.append(Opt(OptOps.TC, summed.reduce, core.steps))
    parts = [
        (OptOps.UPCAST, rows, block.rows),
        (OptOps.UPCAST, columns, block.columns),
        (OptOps.LOCAL, rows, block.row_warps),
        (OptOps.LOCAL, columns, block.column_warps),
        (OptOps.UNROLL, summed.reduce, block.steps),
    ]
    found += [Opt(op, axis, amount) for op, axis, amount in parts if amount > 1]
    inputs = sorted({number_of(access) for access in (*roles.panels, *roles.others)})
    return [*found, *(Opt(OptOps.STAGE, summed.number, number) for number in inputs)]

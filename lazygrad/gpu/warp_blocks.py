"""The choice for products of matrices that tensor cores compute (TC on a grid), as `blocks.py` for others.

A workgroup copies 128 x 32 of the rows and 32 x 128 of the columns as they lie in memory (STAGE), and each
of its 4 warps adds 64 x 32 of one copy times 32 x 64 of the other to 64 x 64 results. Where four warps begin
products together, such a group adds 64 x 32 times 32 x 256, read from the copies, to 64 x 256.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from ..codegen.expressions.narrow import product
from ..codegen.opt.facts import Facts, size_of
from ..codegen.opt.gemm_axes import GemmAxes
from ..codegen.opt.moves.actions import Opt, OptOps
from ..codegen.opt.moves.loops import Axis
from ..ir.ops import Ops
from ..target import Multiprocessor, Target, TensorCore
from .moves.factors import APART
from .moves.warp_matrices import COLUMNS, ROWS, allowed
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

#: Matrices of a warp along the rows and the columns, warps along both, instructions between two copies.
MATRICES, WARPS, STEPS = (4, 2, 1), (4, 2, 1), (4, 2, 1)
#: Of a group of warps: products along the rows, matrices of 8 columns in each, groups along both. It begins
#: its products once a turn, and waits for them.
PRODUCTS, WIDTHS, GROUPS = (2, 1), (32, 16, 8), (2, 1)
#: A workgroup has so many warps, a warp so many instructions written out.
MOST_WARPS, WRITTEN = 8, 64
#: Registers of a thread beside sums and words: addresses, counters.
OTHERS = 40
#: Instructions for each word that is copied: 3 for four.
FETCHED = 0.75


@dataclass(frozen=True)
class WarpBlock:
    """What a workgroup computes at once: so many matrices of each of so many warps, in steps of a sum; or of
    groups of so many warps, whose matrices are as many times as high.
    """

    rows: int
    columns: int
    row_warps: int
    column_warps: int
    steps: int
    group: int = 1

    @property
    def groups(self) -> int:
        return self.row_warps * self.column_warps

    @property
    def warps(self) -> int:
        return self.group * self.groups

    @property
    def height(self) -> int:
        return ROWS * self.group * self.rows * self.row_warps

    @property
    def width(self) -> int:
        return COLUMNS * self.columns * self.column_warps


def warp_blocks(
    facts: Facts, roles: GemmAxes, summed: Axis, target: Target, machine: Multiprocessor
) -> Iterator[tuple[float, list[Opt]]]:
    """(cycles, Opts) of every block that fits; `apply_opt` says whether the factors do."""
    reduces = [node for node in facts.loops.sink.toposort() if node.op is Ops.REDUCE]
    for core in allowed(target):
        if any(product(reduce, core.element, core.total) is None for reduce in reduces):
            continue
        if core.warps > 1 and not _lie_in_rows(roles, summed, core):
            continue
        for block in _blocks(roles, summed, core):
            turns = -(-(size_of(summed) or 1) // (block.steps * core.steps))
            # at a border words are stored one by one, for which a thread waits
            whole = not padded(_multiples(block, roles, summed, core))
            if core.warps > 1 and not whole:
                continue  # nor are the copies such as a group of warps reads
            for copies in copies_of(turns, target) if whole else (1,):
                time = _cycles(block, copies, facts, roles, summed, core, target, machine)
                if time is not None:
                    yield time, _opts(block, copies, roles, summed, core)


def _lie_in_rows(roles: GemmAxes, summed: Axis, core: TensorCore) -> bool:
    """Whether copies of both factors may be such as a group of warps reads, or a warp loads together."""
    across = [(access, roles.rows) for access in roles.others] + [
        (access, roles.lanes) for access in roles.right
    ]
    return all(
        access.step(summed) == 1 or (access.step(axis) == 1 and core.element.itemsize == 2)
        for access, axis in across
    )


def _blocks(roles: GemmAxes, summed: Axis, core: TensorCore) -> Iterator[WarpBlock]:
    alone = core.warps == 1
    rows, columns = (MATRICES, [2 * n for n in MATRICES]) if alone else (PRODUCTS, WIDTHS)
    warps, steps = (WARPS, STEPS) if alone else (GROUPS, (1,))
    for sizes in itertools.product(rows, columns, warps, warps, steps):
        block = WarpBlock(*sizes, core.warps)
        if block.warps > MOST_WARPS or block.rows * block.columns * block.steps > WRITTEN:
            continue
        if block.steps * core.steps >= (size_of(summed) or 1):
            continue  # the copies are for one turn of a loop
        if is_padded_little(_multiples(block, roles, summed, core)):
            yield block


def _multiples(block: WarpBlock, roles: GemmAxes, summed: Axis, core: TensorCore) -> Multiples:
    return [(roles.rows, block.height), (roles.lanes, block.width), (summed, block.steps * core.steps)]


def _cycles(
    block: WarpBlock,
    number: int,
    facts: Facts,
    roles: GemmAxes,
    summed: Axis,
    core: TensorCore,
    target: Target,
    machine: Multiprocessor,
) -> float | None:
    """How long the device takes for all blocks, with a number of copies; None where none is held."""
    warp, threads = target.launch.warp, target.launch.warp * block.warps
    turns = -(-(size_of(summed) or 1) // (block.steps * core.steps))
    packed = (block.height + block.width) * block.steps * core.steps // core.packed
    matrices = block.warps * block.rows * block.columns * block.steps
    products = matrices * ROWS * COLUMNS * core.steps
    filled = packed / threads * FETCHED  # 16 bytes at once, with their places
    copies, words, idle = 4 * packed, 0, 0
    if core.warps == 1:
        copies += APART * (block.height + block.steps * core.steps)  # with what keeps rows apart
        words = core.halves * (2 * block.rows + block.columns)  # of a thread, of an instruction's steps
        if (
            core.loads
            and _lie_in_rows(roles, summed, core)
            and not padded(_multiples(block, roles, summed, core))
        ):
            read, looked = block.rows + block.columns, words  # matrices at once
        else:
            # each number of a column's words is read by itself, and packed
            read = looked = words + 2 * (core.packed - 1) * core.halves * block.columns
        instructions = matrices + block.warps * (block.steps * read + filled)
        read_words = block.warps * block.steps * looked * warp
    else:
        # a turn begins when its products have ended
        idle = machine.meeting
        instructions = block.warps * (block.rows * core.steps / core.at_once + filled)
        lines = block.groups * block.rows * (ROWS * core.warps + COLUMNS * block.columns)
        read_words = lines * core.steps // core.packed + packed
    registers = rounded_up(4 * block.rows * block.columns + words + OTHERS, 8)
    copies *= number
    if registers > machine.thread_registers or copies > target.local_bytes:
        return None
    turn = busy(
        machine,
        instructions,
        matrices=products * core.element.itemsize,
        words=read_words,
        fetched=4 * packed,
        share=core.share,
    )
    resident = resident_groups(machine, threads, registers, copies)
    blocks = blocks_of(facts, roles, block.height, block.width)
    return cycles_of(blocks, resident, turns, turn, target.launch, number, idle)


def _opts(block: WarpBlock, copies: int, roles: GemmAxes, summed: Axis, core: TensorCore) -> list[Opt]:
    rows, columns = roles.rows.number, roles.lanes.number
    found = padded(_multiples(block, roles, summed, core))
    found.append(Opt(OptOps.TC, summed.reduce, core.steps))
    parts = [
        (OptOps.UPCAST, rows, block.rows),
        (OptOps.UPCAST, columns, block.columns),
        (OptOps.LOCAL, rows, block.row_warps),
        (OptOps.LOCAL, columns, block.column_warps),
        (OptOps.UNROLL, summed.reduce, block.steps),
    ]
    found += [Opt(op, axis, amount) for op, axis, amount in parts if amount > 1]
    return [*found, *copied(roles, summed, copies)]

"""Which block of rows and keys a workgroup of a grid takes at once, and how long all of them are predicted to
take.

The threads of a workgroup are `across` along the keys and the columns, times `down` along the rows. A thread
has a tile of x in registers, `rows` times `keys`, and of the result its rows times its columns. So a block
is that many rows and keys of all threads. Every block that fits is a candidate, and a roofline for each level
of memory says which takes least (as in `grid_time.py`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import NamedTuple

from ....codegen.opt.grids import Prediction
from ....dtype import DType
from ....gpu.grid_time import ADDRESS, ALONE, OTHERS, TURN
from ....gpu.occupancy import resident_groups, rounded_up
from ....ir.index import terms_of
from ....ir.ops import OPS, Ops
from ....ir.uop import UOp
from ....target import Target, TensorCore
from ..cost import unmasked_share
from ..rule import OnePass
from ..sizes import size_of

#: Numbers of a depth, and keys, that are read together.
TOGETHER = 4
#: Cycles until what is read of shared memory is there: 19 where nobody else reads (Jia et al., "Dissecting
#: the NVIDIA Volta GPU Architecture via Microbenchmarking", 2018).
READING = 24
#: What is tried: threads along the keys and along the rows; rows and keys of a thread.
ACROSS, DOWN, ROWS, KEYS = (4, 8, 16, 32), (4, 8, 16, 32), (1, 2, 4, 8), (1, 2, 4)
#: The same for tensor cores: warps, and keys of a block.
WARPS, WARP_KEYS = (1, 2, 4, 8), (32, 64, 128)
#: Rows, columns and neighbours that a copy of 16 bytes is of, of a tensor core's matrices of halves.
MATRIX_ROWS, MATRIX_COLUMNS, COPIED = 16, 8, 8
#: Products of such an instruction: of 16 rows, 16 numbers of each, and 8 columns.
PRODUCTS = MATRIX_ROWS * 16 * MATRIX_COLUMNS
#: Threads of a workgroup, and products of a tile that are written out.
LEAST, MOST, WRITTEN = 32, 256, 1024


class Block(NamedTuple):
    """How a workgroup computes: its threads, and the rows and keys of each."""

    across: int
    down: int
    rows: int
    keys: int

    @property
    def threads(self) -> int:
        return self.across * self.down

    @property
    def all_rows(self) -> int:
        return self.rows * self.down

    @property
    def all_keys(self) -> int:
        return self.keys * self.across


class Layout(NamedTuple):
    """How memory of a workgroup is laid out, in elements.

    vector   numbers of one load              depths   of each product, up to whole groups of `TOGETHER`
    strides  from a row or key to the next, of each product; so they lie in other banks
    columns  of the values, up to whole vectors of all threads    powers   from a row to the next, of f(x - t)
    """

    vector: int
    depths: tuple[int, ...]
    strides: tuple[int, ...]
    columns: int
    powers: int
    itemsize: int

    def shared(self, block: Block) -> tuple[int, int, int, int]:
        """Elements for the rows' factors; for the keys' factors and after them their values; for f(x - t);
        and for what threads of a row tell each other.
        """
        keys = max(block.all_keys * sum(self.strides), block.all_keys * self.columns)
        return (
            block.all_rows * sum(self.strides), keys, block.all_rows * self.powers,
            block.all_rows * block.across,
        )  # fmt: skip


def layout_of(parts: OnePass, block: Block, target: Target) -> Layout:
    itemsize = parts.total.dtype.itemsize
    vector = min(max(target.load_bytes // itemsize, 1), TOGETHER)
    depths = tuple([rounded_up(size_of(product.depth), TOGETHER) for product in parts.products])
    columns = rounded_up(size_of(parts.column), block.across * vector)
    apart = tuple([_padded_stride(depth, vector) for depth in depths])
    return Layout(vector, depths, apart, columns, _padded_stride(block.all_keys, vector), itemsize)


def _padded_stride(size: int, vector: int) -> int:
    """An odd number of vectors: rows that are read together lie in other banks."""
    return size + vector * (size // vector % 2 == 0)


def rows_of(parts: OnePass) -> int:
    """Rows that share their keys: those of all groups."""
    return math.prod(map(size_of, (*parts.groups, parts.row)))


class Choice(NamedTuple):
    """A block, what is predicted of it, and the tensor core that multiplies its matrices, if one does."""

    block: Block
    prediction: Prediction
    core: TensorCore | None = None


@functools.lru_cache(256)
def block_of(parts: OnePass, target: Target) -> Choice | None:
    """The block that takes least; None where none fits."""
    work = _BlockSetup(parts, target)
    found = [
        Choice(block, each) for block in _blocks(parts, target) if (each := work.predicted(block)) is not None
    ]
    core = core_for(parts, target)
    for warps in WARPS if core is not None else ():
        for keys in WARP_KEYS:
            block = Block(4, 8 * warps, 2, keys // 4)
            each = work.predicted_of_warps(block)
            if each is not None and block.threads <= target.group_threads:
                found.append(Choice(block, each, core))
    return min(found, key=lambda each: each.prediction.cycles, default=None)


def core_for(parts: OnePass, target: Target) -> TensorCore | None:
    """The tensor core for the two products of a kernel: whole matrices, of numbers of 2 bytes in memory.

    f(x - t) is rounded to what they are. It is at most 1, as t is the greatest x.
    """
    if parts.power is None or len(parts.products) != 1 or len(parts.values) != 1 or parts.weights:
        return None
    (product,) = parts.products
    sides = [(product.left, product.depth), (product.right, product.depth), (parts.values[0], parts.column)]
    for core in target.tensor_cores:
        if core.element.itemsize != 2 or core.steps != MATRIX_ROWS or core.warp_bytes:
            continue
        if size_of(product.depth) % core.steps or size_of(parts.column) % MATRIX_COLUMNS:
            continue
        if all(_is_copied(side, along, core.element) for side, along in sides):
            return core
    return None


def _is_copied(side: UOp, along: UOp, element: DType) -> bool:
    """Whether a factor is what memory holds, neighbours along a range, in whole copies."""
    if side.op is not Ops.CAST or side.src[0].op is not Ops.LOAD or side.src[0].dtype is not element:
        return False
    memory, place = side.src[0].src[0].src[:2]
    terms, constant = terms_of(place)
    others = [coefficient for monomial, coefficient in terms.items() if monomial != (along,)]
    whole = all(n % COPIED == 0 for n in (constant, *others))
    return memory.op is Ops.DEFINE_GLOBAL and terms.get((along,)) == 1 and whole


def _blocks(parts: OnePass, target: Target) -> Iterator[Block]:
    rows, keys = rows_of(parts), size_of(parts.key)
    most = min(target.group_threads, MOST)
    for across in ACROSS:
        for down in DOWN:
            if not LEAST <= across * down <= most:
                continue
            for n in ROWS:
                for k in KEYS:
                    block = Block(across, down, n, k)
                    if (n > 1 and block.all_rows >= 2 * rows) or (k > 1 and block.all_keys >= 2 * keys):
                        continue  # half of it would be beyond the last
                    if n * k * TOGETHER <= WRITTEN:
                        yield block


class _BlockStep(NamedTuple):
    """What a workgroup does for one block of keys.

    shared, registers, wide   bytes of its memory; of a thread; bytes of the widest load
    instructions              of a thread
    busy                      cycles that a multiprocessor is busy
    alone                     cycles that it takes where no other workgroup is there, without `waits`
    waits                     cycles until what it needs first is there
    """

    shared: int
    registers: int
    wide: int
    instructions: float
    busy: float
    alone: float
    waits: float


class _BlockSetup:
    """A kernel as it is for every block."""

    def __init__(self, parts: OnePass, target: Target) -> None:
        self.pattern, self.target = parts, target
        self.machine, self.multiprocessors = target.launch.machine
        inside = {node for p in parts.products for node in p.total.src[0].toposort()}
        self.elementwise = _price(parts.x, inside)
        self.elementwise += 0 if parts.power is None else OPS[parts.power.op].cost + 2
        self.elementwise += sum(_price(weight, set()) for weight in parts.weights)
        self.unmasked = unmasked_share(parts)
        self.bytes = _bytes(parts)

    def predicted(self, block: Block) -> Prediction | None:
        """What is predicted of a block whose products are multiply-adds."""
        parts, machine, warp = self.pattern, self.machine, self.target.launch.warp
        layout = layout_of(parts, block, self.target)
        words = layout.itemsize / 4
        shared = sum(layout.shared(block)) * layout.itemsize
        depth, v = sum(layout.depths), layout.vector
        columns = layout.columns // block.across  # of a thread
        tile, sums = block.rows * block.keys, block.rows * columns
        registers = tile * max(len(parts.products), 1) + sums + 2 * block.rows
        registers += TOGETHER * (block.rows + 1) if depth else 0
        if sums * TOGETHER > WRITTEN:
            return None
        products = (tile * depth + sums * block.all_keys) * words
        reads = (depth * (block.rows + block.keys) + block.all_keys * (block.rows + columns)) / v
        filled = block.all_keys * (depth + layout.columns) / block.threads / v
        elements = tile * self.elementwise
        told = block.rows * (block.across * (1 + 1 / v) + OPS[Ops.EXP].cost + 4) if parts.power else 0.0
        loops = (depth + block.all_keys) / TOGETHER * TURN + filled * TURN
        instructions = products + reads + filled * (2 + 2 * ADDRESS) + elements + told + loops
        along = min(warp, block.across)
        others = warp // along
        banks = depth * (block.keys * along + block.rows * others)
        banks += block.all_keys * (columns * along + block.rows * others)
        warps = -(-block.threads // warp)
        fetched = block.all_keys * (depth + size_of(parts.column)) * layout.itemsize
        busy = max(
            instructions * warps / machine.warps,
            (products + elements) * warps * warp / machine.products,
            (banks + filled * v * warp) * words * warps / machine.banks,
            fetched / machine.cached,
        )
        alone = max(busy, instructions * -(-warps // machine.warps))  # a warp starts one in a cycle at most
        alone += READING * (depth + block.all_keys) / TOGETHER + 4 * machine.meeting
        registers = rounded_up(int(registers * words) + OTHERS, 8)
        turn = _BlockStep(
            shared, registers, v * layout.itemsize, instructions, busy, alone, 2 * machine.waits
        )
        return self._launched(block, turn, machine.products, self.elementwise)

    def predicted_of_warps(self, block: Block) -> Prediction | None:
        """The same by tensor cores: a warp has 16 rows, and reads words of two numbers. Copies are on the way
        while it computes, so that it waits for what it asked for a turn before.
        """
        parts, machine, warp = self.pattern, self.machine, self.target.launch.warp
        depth, columns, keys = size_of(parts.products[0].depth), size_of(parts.column), block.all_keys
        shared = 2 * keys * (depth + columns + 2 * COPIED) + 4 * block.all_rows * block.across
        registers = rounded_up(keys // 2 + columns // 2 + depth // 4 + keys // 4 + OTHERS, 8)
        if not machine.matrix_products:
            return None
        warps = block.threads // warp
        scores, sums = (MATRIX_ROWS * size * keys // PRODUCTS for size in (depth, columns))  # of a warp
        filled = keys * (depth + columns) / COPIED / block.threads
        elements = block.rows * block.keys * (self.elementwise + 2)
        elements += block.rows * (2 * block.across + OPS[Ops.EXP].cost + 4)
        # a right factor is two words: of scores loaded as such, of values two numbers each that are packed
        instructions = scores * (1 + 2) + sums * (1 + 4 + 2) + elements + columns / 2 + filled * 6
        busy = max(
            instructions * warps / machine.warps,
            elements * warps * warp / machine.products,
            (scores + sums) * PRODUCTS * warps / machine.matrix_products,
            (scores * 2 + sums * 4) * warp * warps / machine.banks,
            2 * keys * (depth + columns) / machine.cached,
        )
        alone = max(busy, instructions * -(-warps // machine.warps)) + READING * (depth + keys) / MATRIX_ROWS
        alone += 3 * machine.meeting
        turn = _BlockStep(shared, registers, 16, instructions, busy, alone, max(machine.waits - alone, 0.0))
        return self._launched(block, turn, machine.matrix_products, 0.0)

    def _launched(self, block: Block, turn: _BlockStep, peak: int, elementwise: float) -> Prediction | None:
        """What is predicted of all workgroups; None where no multiprocessor holds one.

        peak, elementwise   multiply-adds of a multiprocessor in a cycle, and operations on an x that count
                            beside them
        """
        parts, machine, launch = self.pattern, self.machine, self.target.launch
        if turn.registers > machine.thread_registers or turn.shared > self.target.local_bytes:
            return None
        resident = resident_groups(machine, block.threads, turn.registers, turn.shared)
        if resident < 1:
            return None
        groups = math.prod(map(size_of, parts.batch)) * -(-rows_of(parts) // block.all_rows)
        resident = min(resident, -(-groups // self.multiprocessors))
        turns = max(self.unmasked * -(-size_of(parts.key) // block.all_keys), 1.0)
        turns = (turns + (0.5 if self.unmasked < 1 else 0.0)) * math.prod(map(size_of, parts.outer))
        waves = -(-groups // (resident * self.multiprocessors))
        each = max(resident * turn.busy, turn.alone + turn.waits)
        computing = waves * (machine.start + 2 * machine.waits + turns * each)
        moving = self.bytes / (launch.bandwidth / launch.clock)
        cycles = max(computing, moving) + ALONE * min(computing, moving)
        seconds = cycles / launch.clock + launch.begun
        rate = 2 * peak * self.multiprocessors * launch.clock
        arithmetic = self._operations(elementwise) / rate
        memory = self.bytes / launch.bandwidth
        return Prediction(
            groups, block.threads, turn.shared, turn.registers,
            min(1.0, resident * block.threads / machine.threads), turn.wide,
            turn.instructions * -(-block.threads // launch.warp) * groups * turns, cycles, seconds,
            max(arithmetic, memory) / seconds, "arithmetic" if arithmetic > memory else "bandwidth",
            launch.multiprocessor is not None,
        )  # fmt: skip

    def _operations(self, elementwise: float) -> float:
        """The two of each product, and so many of each x."""
        depth = sum(size_of(product.depth) for product in self.pattern.products)
        each = 2 * (depth + size_of(self.pattern.column)) + elementwise
        batches = math.prod(map(size_of, (*self.pattern.batch, *self.pattern.outer)))
        return batches * rows_of(self.pattern) * size_of(self.pattern.key) * self.unmasked * each


def _price(value: UOp, inside: set[UOp]) -> float:
    """Operations on an element, without those of sums and of places."""
    nodes = [node for node in value.toposort() if node not in inside and node.op in OPS]
    return sum(OPS[node.op].cost for node in nodes if node.op not in (Ops.REDUCE, Ops.LOAD, Ops.INDEX))


def _bytes(parts: OnePass) -> float:
    """Bytes of all that is read and stored, once."""
    nodes = UOp.sink(parts.store, *parts.beside).toposort()
    return sum(n.dtype.size * n.dtype.base.itemsize for n in nodes if n.op is Ops.DEFINE_GLOBAL)  # type: ignore[attr-defined]

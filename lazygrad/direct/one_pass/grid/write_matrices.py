"""The program of `write_grid.py` with both products by tensor cores, from halves.

A warp has 16 rows, and all keys of a block. With g = lane / 4 and t = lane % 4 a thread has the rows g and
g + 8, of them the keys and columns 8n + 2t and its neighbour: what it holds of the sums of an instruction
(`moves/warp_matrices.py` says whose is what). What it then has of f(x - t), rounded to halves, is what
the second product wants of its left factor: it stays in registers. The rows' factors do too.

    copy the first block of keys' factors
    for each block of keys
      wait for the factors                                                              BARRIER
      copy the values
      x of the block; the greatest of each row, to the threads of the row               BARRIER
      copy the next block of keys' factors
      what was summed, times f(t_old - t_new); f(x - t_new)
      wait for the values                                                               BARRIER
      the sum over the block of f(x - t_new)·v

Copies are on the way while a workgroup computes, where the target has such ones.
"""

from __future__ import annotations

from ....dtype import dtypes
from ....ir.index import const
from ....ir.ops import Ops
from ....ir.uop import UOp
from ....renderer import Renderer
from ....target import TensorCore
from ...writing import Int
from ..expressions import SHIFTED
from ..lanes import FIRST_PLACEHOLDER, legal, placeholder
from ..rule import OnePass
from ..sizes import size_of
from ..steps import Steps
from .grid_blocks import COPIED, MATRIX_COLUMNS, MATRIX_ROWS, Block, Layout, rows_of
from .write_grid import Row, Workgroup, plus


def matrix_program(parts: OnePass, renderer: Renderer, block: Block, core: TensorCore) -> list[UOp]:
    """The linear program."""
    return _Warps(parts, renderer, block, core).program()


class _Warps(Workgroup):
    def __init__(self, parts: OnePass, renderer: Renderer, block: Block, core: TensorCore) -> None:
        Steps.__init__(self, parts, renderer)
        p, self.block, self.core = self.p, block, core
        assert self.e.values is not None
        (left, right), values = self.e.sides[0], self.e.values
        self.left_load, self.right_load, self.values_load = (_load(side) for side in (left, right, values))
        element = self.right_load.src[0].dtype.base  # as the target keeps it: perhaps as bits
        self.rounded = _rounded(parts.total, core, renderer)
        self.depth, columns = size_of(parts.products[0].depth), size_of(parts.column)
        self.layout = Layout(2, (self.depth,), (self.depth + COPIED,), columns, columns + COPIED, 2)
        self.keys = p.scratch(block.all_keys * (self.depth + COPIED), shared=True, dtype=element)
        self.copied = p.scratch(block.all_keys * (columns + COPIED), shared=True, dtype=element)
        self.broadcast = p.scratch(block.all_rows * block.across, shared=True)
        self.total_rows = rows_of(parts)

    # *** whose is what

    def _row_slot(self, r: int) -> UOp:
        eight = MATRIX_ROWS // 2
        within = self._mod(self.down, eight)
        return self.p.let(plus(self._div(self.down, eight) * MATRIX_ROWS + within, r * eight))

    def _key_slot(self, k: int) -> UOp:
        return self.p.let(plus(self.across * 2, k // 2 * MATRIX_COLUMNS + k % 2))

    def _columns(self) -> list[tuple[UOp, int]]:
        count = self.layout.columns // MATRIX_COLUMNS
        return [(self.p.let(plus(self.across * 2, n * MATRIX_COLUMNS)), 2) for n in range(count)]

    # *** copies

    def _begin(self) -> None:
        """The words of a thread's rows, for each step of the depth: in the order of the instruction."""
        p, along = self.p, self.pattern.products[0].depth.arg.id
        memory, place = self.left_load.src[0].src[:2]
        self.words = [
            [
                p.load_word(
                    memory,
                    p.let(
                        self.writer.write(
                            place, {**row.indices, along: p.let(plus(self.across * 2, step + half))}
                        )
                    ),
                )
                for half in (0, 8)
                for row in self.rows
            ]
            for step in range(0, self.depth, MATRIX_ROWS)
        ]

    def _copy(self, load: UOp, memory: UOp, width: int, along: int, key: UOp) -> None:
        """A block of rows of so many halves, from a key on; those that are neighbours by neighbours."""
        p, block = self.p, self.block
        each = width // COPIED
        total, key_of = each * block.all_keys, self._key(key)
        source, place = load.src[0].src[:2]
        with p.loop(0, -(-total // block.threads)) as turn:
            number = p.let(turn * block.threads + self.thread)
            with self._where(p.let(number < total) if total % block.threads else None):
                row = key_of(self._div(number, each))
                column = p.let(self._mod(number, each) * COPIED)
                there = p.let(self.writer.write(place, {**row.indices, along: column}))
                slot = self._div(number, each)
                p.fetch((memory, p.let(slot * (width + COPIED) + column)), (source, there), COPIED, row.valid)
        p.commit()

    def _copy_keys(self, key: UOp) -> None:
        self._copy(self.right_load, self.keys, self.depth, self.pattern.products[0].depth.arg.id, key)

    # *** blocks of keys

    def _key_blocks(self, begin: Int, end: Int) -> None:
        p, block = self.p, self.block
        self._copy_keys(p.let(p.integer(begin) * block.all_keys))
        with p.loop(begin, end) as turn:
            key = p.let(turn * block.all_keys)
            p.wait(0)
            p.barrier()
            columns = self.pattern.column.arg.id
            self._copy(self.values_load, self.copied, self.layout.columns, columns, key)
            xs = self._xs([self._scores()], self._key(key))
            tops, factors = self._tops(xs)
            last = -(-size_of(self.pattern.key) // block.all_keys) - 1
            following = self._least(p.let(turn + 1), p.integer(last))
            self._copy_keys(p.let(following * block.all_keys))  # the last one twice: nobody reads it
            self.fragments: dict[UOp, list[UOp]] = {}
            self._powers(xs, tops, factors, self._key(key))
            p.wait(1)
            p.barrier()
            self._sum(factors)
            for top, value in zip(self.tops, tops, strict=True):
                p.assign(top, value)
        p.wait(0)

    def _scores(self) -> list[list[UOp]]:
        """The products of the warp's rows and the block's keys."""
        p, apart = self.p, self.layout.strides[0]
        count = self.block.all_keys // MATRIX_COLUMNS
        sums = [[p.accumulator(p.number(0.0)) for _ in range(4)] for _ in range(count)]
        within = self._mod(self.down, MATRIX_COLUMNS)
        for step, words in enumerate(self.words):
            for n in range(count):
                place = plus(
                    within * apart + self.across * 2, n * MATRIX_COLUMNS * apart + step * MATRIX_ROWS
                )
                right = [p.load_word(self.keys, p.let(plus(place, half))) for half in (0, 8)]
                p.multiply(sums[n], [*words, *right], self.core)
        return [[sums[k // 2][2 * u + k % 2] for k in range(2 * count)] for u in range(2)]

    def _keep(self, row: Row, slot: UOp, value: UOp) -> None:
        rounded = self.p.let(self.writer.write(self.rounded, {}, {SHIFTED: value}))
        self.fragments.setdefault(row.slot, []).append(rounded)

    def _sum(self, factors: list[UOp]) -> None:
        p, apart = self.p, self.layout.powers
        self._corrected(factors)
        rows = [self.fragments[row.slot] for row in self.rows]
        within = self._mod(self.down, MATRIX_COLUMNS)
        for step in range(self.block.all_keys // MATRIX_ROWS):
            left = [
                _word(p.let(row[4 * step + 2 * half]), p.let(row[4 * step + 2 * half + 1]))
                for half in (0, 1)
                for row in rows
            ]
            for n in range(self.layout.columns // MATRIX_COLUMNS):
                right = []
                for half in (0, 8):
                    place = self.across * (2 * apart) + within
                    place = plus(place, (step * MATRIX_ROWS + half) * apart + n * MATRIX_COLUMNS)
                    two = [p.load(self.copied, p.let(plus(place, k * apart))) for k in (0, 1)]
                    right.append(_word(*two))
                sums = [self.sums[u][2 * n + v] for u in range(2) for v in range(2)]
                p.multiply(sums, [*left, *right], self.core)


def _load(side: UOp) -> UOp:
    """What a factor is loaded by."""
    (load,) = [node for node in side.toposort() if node.op is Ops.LOAD]
    return load


def _rounded(like: UOp, core: TensorCore, renderer: Renderer) -> UOp:
    """A number (a placeholder) as it is stored in the type of the factors."""
    memory = UOp(Ops.DEFINE_GLOBAL, core.element.ptr(1), (), FIRST_PLACEHOLDER)
    access = UOp(Ops.INDEX, memory.dtype, (memory, const(0)))
    store = UOp(Ops.STORE, dtypes.void, (access, placeholder(SHIFTED, like).cast(core.element)))
    (made,) = legal([store], renderer)
    return made.src[1]


def _word(first: UOp, second: UOp) -> UOp:
    """Two narrow numbers in a word, the first in the low bits."""
    bits = [n.bitcast(dtypes.uint16) if dtypes.is_float(n.dtype) else n for n in (first, second)]
    low, high = (each.cast(dtypes.uint32) for each in bits)
    return low.alu(Ops.OR, high.alu(Ops.SHL, UOp.const(dtypes.uint32, 16)))

"""The linear program of a kernel in one pass on a grid: a block of rows for each workgroup.

    for each batch, for each block of rows          a workgroup
      fill shared memory with the rows' factors
      for each block of keys                        those in which some x may be more than -inf
        fill shared memory with the keys' factors                                       BARRIER
        x of the block, a tile in each thread's registers
        the greatest of each thread's tile, row by row, to the threads of the row       BARRIER
        what was summed, times f(t_old - t_new)
        f(x - t_new), to shared memory; the keys' values, in the place of their factors BARRIER
        the sum over the block of f(x - t_new)·v, in each thread's registers            BARRIER
      the results of the rows

The threads of a row know its t alike: each takes the greatest of the same numbers. Each sums the powers of
its own keys, and they are added in the end. Without a power, x of the block is what the values are multiplied
by, and nothing is corrected.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import NamedTuple

from ....codegen.expressions.ranges import substitute_ranges
from ....dtype import dtypes
from ....ir.ops import Ops
from ....ir.uop import UOp
from ....renderer import Renderer
from ....renderer.alignment import multiple_of
from ...writing import Int
from ..expressions import PRODUCTS
from ..lanes import FIRST_PLACEHOLDER, depends, placeholder, step
from ..rule import OnePass
from ..sizes import size_of
from ..steps import Steps
from .grid_blocks import TOGETHER, Block, layout_of, rows_of

#: Placeholders of what is loaded as a vector: behind all others.
LOADED = 1 << 16


class Row(NamedTuple):
    """A row of a thread: where it is in the block, its places, and whether there is such a row."""

    slot: UOp
    indices: dict[int, UOp]
    valid: UOp | None


class Side(NamedTuple):
    """A factor that is copied: its value with placeholders for loads that are vectors, and those loads."""

    value: UOp
    split: UOp
    loads: list[UOp]
    along: int

    def is_near(self) -> bool:
        """Whether neighbours along its range are neighbours in memory."""
        steps = [step(load.src[0].src[1], self.along) for load in self.loads]
        return 1 in steps and all(each in (0, 1) for each in steps)


def _side(value: UOp, along: int) -> Side:
    nodes = [node for node in value.toposort() if node.op is Ops.LOAD]
    loads = [node for node in nodes if node.src[0].src[0].arg < FIRST_PLACEHOLDER]
    known = {load: placeholder(LOADED + n, load) for n, load in enumerate(loads)}
    return Side(value, substitute_ranges(value, known), loads, along)


def grid_program(parts: OnePass, renderer: Renderer, block: Block) -> list[UOp]:
    """The linear program."""
    return Workgroup(parts, renderer, block).program()


class Workgroup(Steps):
    def __init__(self, parts: OnePass, renderer: Renderer, block: Block) -> None:
        super().__init__(parts, renderer)
        p, self.block = self.p, block
        self.layout = layout_of(parts, block, renderer.target)
        left, right, powers, told = self.layout.shared(block)
        self.left = p.scratch(left, shared=True) if left else None
        self.right = p.scratch(right, shared=True)
        self.powers = p.scratch(powers, shared=True)
        self.broadcast = p.scratch(told, shared=True) if parts.power is not None else None
        depths = [product.depth.arg.id for product in parts.products]
        both = zip(self.e.sides, depths, strict=True)
        self.sides = [(_side(left, depth), _side(right, depth)) for (left, right), depth in both]
        assert self.e.values is not None
        self.values = _side(self.e.values, parts.column.arg.id)
        self.total_rows = rows_of(parts)

    def program(self) -> list[UOp]:
        p, block = self.p, self.block
        blocks = -(-self.total_rows // block.all_rows)
        number = self._special("gidx0", blocks * math.prod(map(size_of, self.pattern.batch)))
        self.thread = self._special("lidx0", block.threads)
        self.across, self.down = self._mod(self.thread, block.across), self._div(self.thread, block.across)
        self.indices = self._decoded(self._div(number, blocks), self.pattern.batch)
        self.first = p.let(self._mod(number, blocks) * block.all_rows)
        self.rows = [self._row(self._row_slot(r)) for r in range(block.rows)]
        self._begin()
        lanes = sum(lanes for _, lanes in self._columns())
        self.sums = [[p.accumulator(p.number(0.0)) for _ in range(lanes)] for _ in self.rows]
        if self.pattern.power is not None:
            self.tops = [p.accumulator(p.number(-math.inf)) for _ in self.rows]
            self.totals = [p.accumulator(p.number(0.0)) for _ in self.rows]
        with self._each_outer():
            self._key_blocks(*self._visible_blocks())
        self._end()
        return p.program()

    # *** whose is what

    def _row_slot(self, r: int) -> UOp:
        """Where a thread's row is in the block."""
        return self.p.let(plus(self.down, r * self.block.down))

    def _key_slot(self, k: int) -> UOp:
        """Where a thread's key is in the block."""
        return self.p.let(plus(self.across, k * self.block.across))

    def _columns(self) -> list[tuple[UOp, int]]:
        """A thread's columns: the first of some neighbours, and how many they are."""
        v, each = self.layout.vector, self.layout.columns // self.block.across
        first = self.across * v
        return [(self.p.let(plus(first, c * self.block.across)), v) for c in range(0, each, v)]

    # *** a block of rows begins

    def _begin(self) -> None:
        """The rows' factors go to shared memory."""
        block = self.block
        for n, (side, _) in enumerate(self.sides):
            assert self.left is not None
            where = block.all_rows * sum(self.layout.strides[:n])
            depth = size_of(self.pattern.products[n].depth)
            self._fill(
                side, self.left, where, self.layout.strides[n], self.layout.depths[n], depth, block.all_rows,
                self._row, self.pattern.row.arg.id,
            )  # fmt: skip

    def _key_blocks(self, begin: Int, end: Int) -> None:
        """The blocks of keys."""
        with self.p.loop(begin, end) as turn:
            self._block(self.p.let(turn * self.block.all_keys))

    def _special(self, name: str, size: int) -> UOp:
        """A place in the launch."""
        if size == 1 and name.startswith("l"):
            return self.p.integer(0)
        return self.p.let(UOp(Ops.SPECIAL, dtypes.int32, (), (name, size)).cast(self.p.index_dtype))

    def _row(self, slot: UOp) -> Row:
        """A row of the block; beyond the last one, that again."""
        p, number, valid = self.p, self.first + slot, None
        if self.total_rows % self.block.all_rows:
            number = p.let(number)
            valid = p.let(number < self.total_rows)
            number = valid.where(number, p.integer(self.total_rows - 1))
        number = p.let(number)
        places = {**self.indices, **self._decoded(self._mod(number, self.groups), self.pattern.groups)}
        places[self.pattern.row.arg.id] = self._div(number, self.groups)
        return Row(slot, places, valid)

    def _key(self, first: UOp) -> Callable[[UOp], Row]:
        """A key of the block from one on, by its number in it."""
        size, p = size_of(self.pattern.key), self.p

        def key(slot: UOp) -> Row:
            number, valid = p.let(first + slot), None
            if size % self.block.all_keys:
                valid = p.let(number < size)
                number = p.let(valid.where(number, p.integer(size - 1)))
            return Row(slot, {**self.indices, self.pattern.key.arg.id: number}, valid)

        return key

    def _visible_blocks(self) -> tuple[Int, Int]:
        """Which blocks of keys hold some x that may be more than -inf: from one up to another."""
        p, count = self.p, -(-size_of(self.pattern.key) // self.block.all_keys)
        if not self.pattern.limits:
            return 0, count
        last = self._least(p.let(self.first + self.block.all_rows - 1), p.integer(self.total_rows - 1))
        low, high = self._limits(self._div(self.first, self.groups), self._div(last, self.groups), None)
        shift = self.block.all_keys.bit_length() - 1
        end = self._least(p.let((high + self.block.all_keys) >> shift), p.integer(count))
        return 0 if low.op is Ops.CONST else p.let(low >> shift), end

    # *** memory of the workgroup

    def _read(self, memory: UOp, place: UOp, count: int) -> list[UOp]:
        """So many neighbours, as vectors where there are some."""
        p, found = self.p, list[UOp]()
        wide = min(self.layout.vector, count)
        for first in range(0, count, wide):
            loaded = p.load(memory, plus(place, first), wide)
            found += [p.lane(loaded, lane) for lane in range(wide)]
        return found

    def _write(self, memory: UOp, place: UOp, values: list[UOp]) -> None:
        self.p.store(memory, place, _joined(values))

    def _fill(
        self, side: Side, memory: UOp, where: int, apart: int, width: int, size: int, count: int,
        row_of: Callable[[UOp], Row], near: int,
    ) -> None:  # fmt: skip
        """Copy so many rows (or keys), each of a width of which `size` is there; threads that are neighbours
        read neighbours.

        near  the range that walks rows: what is contiguous along it is read along it
        """
        p, v, threads = self.p, self.layout.vector, self.block.threads
        each = width // v
        total = each * count
        down = not side.is_near() and any(step(load.src[0].src[1], near) == 1 for load in side.loads)

        def one(number: UOp) -> None:
            if down:
                slot, vector = self._mod(number, count), self._div(number, count)
            else:
                slot, vector = self._div(number, each), self._mod(number, each)
            row, column = row_of(slot), p.let(vector * v)
            values = self._values(side, row.indices, column, width, size)
            if row.valid is not None:
                values = [p.let(row.valid.where(value, p.number(0.0))) for value in values]
            self._write(memory, plus(slot * apart + column, where), values)

        with p.loop(0, -(-total // threads)) if total > threads else nullcontext(None) as turn:
            number = self.thread if turn is None else p.let(turn * threads + self.thread)
            with p.when(p.let(number < total)) if total % threads else nullcontext():
                one(number)

    def _values(self, side: Side, places: dict[int, UOp], first: UOp, width: int, size: int) -> list[UOp]:
        """The value at a vector's worth of neighbours along its range, 0 from its size up to the width.

        They are loaded as vectors where memory has them so.
        """
        p, write, lanes = self.p, self.writer.write, self.layout.vector
        zero = p.number(0.0)
        inside = p.let(first < size) if width > size else None
        if size % lanes == 0 and lanes > 1 and side.is_near():
            begin = first if inside is None else p.let(inside.where(first, p.integer(size - lanes)))
            at = {**places, side.along: begin}
            wide = [load for load in side.loads if depends(load.src[0].src[1], side.along)]
            where = {load: write(load.src[0].src[1], at) for load in wide}
            if all(
                multiple_of(place) % lanes == 0 and self._has_vectors(load.src[0].src[0], lanes)
                for load, place in where.items()
            ):
                vectors = {load: p.load(load.src[0].src[0], p.let(where[load]), lanes) for load in wide}
                alike = {load: p.let(write(load, at)) for load in side.loads if load not in vectors}
                found = []
                for lane in range(lanes):
                    given = {
                        LOADED + n: p.lane(vectors[load], lane) if load in vectors else alike[load]
                        for n, load in enumerate(side.loads)
                    }
                    value = write(side.split, {**at, side.along: plus(begin, lane)}, given)
                    found.append(p.let(value if inside is None else inside.where(value, zero)))
                return found
        found = []
        for lane in range(lanes):
            place, inside = plus(first, lane), None
            if width > size:
                place = p.let(place)
                inside = p.let(place < size)
                place = p.let(inside.where(place, p.integer(size - 1)))
            value = p.let(write(side.value, {**places, side.along: place}))
            found.append(value if inside is None else p.let(inside.where(value, zero)))
        return found

    def _has_vectors(self, memory: UOp, lanes: int) -> bool:
        """Whether so many numbers of a memory are loaded and stored at once."""
        return self.p.renderer.supports(Ops.LOAD, memory.dtype.base.vec(lanes))

    # *** a block of keys

    def _block(self, key: UOp) -> None:
        p, block, layout = self.p, self.block, self.layout
        key_of, near = self._key(key), self.pattern.key.arg.id
        starts = [block.all_keys * sum(layout.strides[:n]) for n in range(len(self.sides))]
        for n, (_, side) in enumerate(self.sides):
            depth = size_of(self.pattern.products[n].depth)
            self._fill(
                side, self.right, starts[n], layout.strides[n], layout.depths[n], depth, block.all_keys,
                key_of, near,
            )  # fmt: skip
        if self.sides:
            p.barrier()
        products = [self._products(n, start) for n, start in enumerate(starts)]
        xs = self._xs(products, key_of)
        tops, factors = self._tops(xs) if self.broadcast is not None else ([], [])
        if self.broadcast is None and self.sides:
            p.barrier()
        columns = size_of(self.pattern.column)
        self._fill(
            self.values, self.right, 0, layout.columns, layout.columns, columns, block.all_keys, key_of, near
        )
        self._powers(xs, tops, factors, key_of)
        p.barrier()
        self._sum(factors)
        p.barrier()
        for top, value in zip(self.tops, tops, strict=True) if tops else ():
            p.assign(top, value)

    def _products(self, n: int, start: int) -> list[list[UOp]]:
        """The tile of a sum of products."""
        p, block, apart = self.p, self.block, self.layout.strides[n]
        assert self.left is not None
        sums = [[p.accumulator(p.number(0.0)) for _ in range(block.keys)] for _ in self.rows]
        begin = block.all_rows * sum(self.layout.strides[:n])
        rows = [p.let(row.slot * apart) for row in self.rows]
        keys = [p.let(plus(self.across, k * block.across) * apart) for k in range(block.keys)]
        with p.loop(0, self.layout.depths[n] // TOGETHER) as group:
            deep = p.let(group * TOGETHER)
            left = [self._read(self.left, plus(row + deep, begin), TOGETHER) for row in rows]
            for k, key in enumerate(keys):
                right = self._read(self.right, plus(key + deep, start), TOGETHER)
                for lane in range(TOGETHER):
                    for r in range(len(rows)):
                        p.assign(sums[r][k], p.fma(left[r][lane], right[lane], sums[r][k]))
        return sums

    def _xs(self, products: list[list[list[UOp]]], key_of: Callable[[UOp], Row]) -> list[list[UOp]]:
        """x of the tile; beyond the last key what adds nothing."""
        p, block = self.p, self.block
        beyond = p.number(0.0 if self.pattern.power is None else -math.inf)
        found: list[list[UOp]] = [[] for _ in self.rows]
        for k in range(block.keys):
            key = key_of(self._key_slot(k))
            for r, row in enumerate(self.rows):
                given = {PRODUCTS + n: sums[r][k] for n, sums in enumerate(products)}
                x = self.writer.write(self.e.x, {**row.indices, **key.indices}, given)
                found[r].append(p.let(x if key.valid is None else key.valid.where(x, beyond)))
        return found

    def _tops(self, xs: list[list[UOp]]) -> tuple[list[UOp], list[UOp]]:
        """The greatest x of each row so far, and what its sums so far are multiplied by."""
        p, block = self.p, self.block
        assert self.broadcast is not None
        for row, own in zip(self.rows, xs, strict=True):
            top = own[0]
            for x in own[1:]:
                top = p.let(self._greater(top, x))
            p.store(self.broadcast, row.slot * block.across + self.across, top)
        p.barrier()
        tops, factors = [], []
        for row, before in zip(self.rows, self.tops, strict=True):
            top = before
            for value in self._read(self.broadcast, row.slot * block.across, block.across):
                top = p.let(self._greater(top, value))
            tops.append(top)
            factors.append(self._power(p.let(before - self._finite(top))))
        return tops, factors

    def _powers(
        self, xs: list[list[UOp]], tops: list[UOp], factors: list[UOp], key_of: Callable[[UOp], Row]
    ) -> None:
        """f(x - t) of the tile, or x, to where the threads of the row read it; to the sums of powers."""
        p = self.p
        for r, row in enumerate(self.rows):
            total = None
            shift = self._finite(tops[r]) if tops else None
            for k, x in enumerate(xs[r]):
                value, slot = x, self._key_slot(k)
                if shift is not None:
                    value = self._power(p.let(x - shift))
                    total = value if total is None else p.let(total + value)
                if self.e.weights is not None:
                    places = {**row.indices, **key_of(slot).indices}
                    value = p.let(value * self.writer.write(self.e.weights, places))
                self._keep(row, slot, value)
            if total is not None:
                p.assign(self.totals[r], p.fma(self.totals[r], factors[r], total))

    def _keep(self, row: Row, slot: UOp, value: UOp) -> None:
        """Where the threads of the row read what the values are multiplied by."""
        self.p.store(self.powers, row.slot * self.layout.powers + slot, value)

    def _corrected(self, factors: list[UOp]) -> None:
        """What was summed, times its factor, if it has one."""
        for sums, factor in zip(self.sums, factors, strict=True) if factors else ():
            for each in sums:
                self.p.assign(each, each * factor)

    def _sum(self, factors: list[UOp]) -> None:
        """The sums over the block of f(x - t)·v, to what was summed times its factor, if it has one."""
        p, block, v = self.p, self.block, self.layout.vector
        self._corrected(factors)
        rows = [p.let(row.slot * self.layout.powers) for row in self.rows]
        column = p.let(self.across * v)
        with p.loop(0, block.all_keys // TOGETHER) as group:
            key = p.let(group * TOGETHER)
            powers = [self._read(self.powers, row + key, TOGETHER) for row in rows]
            begin = p.let(group * (TOGETHER * self.layout.columns) + column)
            for n in range(TOGETHER):
                for c in range(0, len(self.sums[0]), v):
                    place = plus(begin, n * self.layout.columns + c * block.across)
                    for lane, value in enumerate(self._read(self.right, place, v)):
                        for r in range(len(rows)):
                            p.assign(
                                self.sums[r][c + lane], p.fma(powers[r][n], value, self.sums[r][c + lane])
                            )

    # *** a block of rows ends

    def _end(self) -> None:
        p, block = self.p, self.block
        if self.broadcast is not None:
            for row, total in zip(self.rows, self.totals, strict=True):
                p.store(self.broadcast, row.slot * block.across + self.across, total)
            p.barrier()
        for r, row in enumerate(self.rows):
            with self._where(row.valid):
                self._result(r, row)

    def _result(self, r: int, row: Row) -> None:
        p, block = self.p, self.block
        given: dict[int, UOp] = {}
        scale = None
        if self.broadcast is not None:
            first, *others = self._read(self.broadcast, row.slot * block.across, block.across)
            for other in others:
                first = p.let(first + other)
            scale = self._statistics(self.tops[r], first, row.indices, given)
            if self.e.beside:
                with p.when(p.let(self.across.alu(Ops.CMPEQ, p.integer(0)))):
                    self._store_beside(row.indices, given)
        size, begin = size_of(self.pattern.column), 0
        for column, lanes in self._columns():
            inside = p.let(column < size) if self.layout.columns > size else None
            with self._where(inside):
                sums = self.sums[r][begin : begin + lanes]
                self._store(column, lanes, sums, scale, row.indices, given, size)
            begin += lanes

    def _store(
        self, column: UOp, lanes: int, sums: list[UOp], scale: UOp | None, places: dict[int, UOp],
        given: dict[int, UOp], size: int,
    ) -> None:  # fmt: skip
        """Some neighbours of a row's results, as a vector where they lie so."""
        p, along = self.p, self.pattern.column.arg.id
        ats = [{**places, along: plus(column, lane)} for lane in range(lanes)]
        place = self.writer.write(self.index, ats[0])
        near = step(self.index, along) == 1 and multiple_of(place) % lanes == 0
        if near and size % lanes == 0 and self._has_vectors(self.out, lanes):
            values = [self._finished(sums[lane], scale, ats[lane], given) for lane in range(lanes)]
            p.store(self.out, p.let(place), _joined(values))
            return
        for lane in range(lanes):
            with self._where(p.let(ats[lane][along] < size) if size % lanes else None):
                value = self._finished(sums[lane], scale, ats[lane], given)
                p.store(self.out, p.let(self.writer.write(self.index, ats[lane])), value)

    @contextmanager
    def _where(self, condition: UOp | None) -> Iterator[None]:
        """The steps inside, where this holds; everywhere if there is no condition."""
        with self.p.when(condition) if condition is not None else nullcontext():
            yield


def plus(place: UOp, number: int) -> UOp:
    return place + number if number else place


def _joined(values: list[UOp]) -> UOp:
    if len(values) == 1:
        return values[0]
    return UOp(Ops.VECTORIZE, values[0].dtype.vec(len(values)), tuple(values))

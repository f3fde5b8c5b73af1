"""The linear program of a kernel in one pass: blocks of rows, and for each of these blocks of keys.

    for each batch, for each block of rows          shared among the cores
      copy the rows' factors, in order
      for each block of keys                        those in which some x may be more than -inf
        copy the keys' factors as panels, as wide as a tile, and the values likewise
        for each tile of rows
          x of the tile, by tiles of registers; the greatest of each row
          f(t_old - t_new), the rows in lanes; then f(x - t_new) row by row, and the sum of these
          what was summed, times f(t_old - t_new)
          the sum over the block of f(x - t_new)·v, by tiles of registers, to what was summed
      the results of the rows

Without a power, x of the tile is what the values are multiplied by, and nothing is corrected.

What is copied serves all rows of a block, also those of several groups. Each row's sums are made alike in
whichever block of rows it is, and by whichever core.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import NamedTuple

from ...dtype import dtypes
from ...ir.args import AxisType
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...renderer import Renderer
from ..writing import Int
from .blocks import Blocks, Terms
from .expressions import PRODUCTS
from .lanes import Along, step
from .rule import OnePass
from .sizes import BESIDE, shape_of_cost, size_of, sizes_of
from .steps import Steps


class VisibleKeys(NamedTuple):
    """The keys of a block that a tile sees: from the first one of a panel on, up to one."""

    tile: Int
    begin: Int
    end: Int


def program(parts: OnePass, renderer: Renderer, pieces: int) -> list[UOp]:
    """The linear program."""
    return _Kernel(parts, renderer).program(pieces)


class _Kernel(Blocks, Steps):
    def __init__(self, parts: OnePass, renderer: Renderer) -> None:
        super().__init__(parts, renderer)
        self.sizes = s = sizes_of(parts, renderer.target)
        self.cost = shape_of_cost(parts, renderer.target)
        p, groups = self.p, self.groups
        width = -(-s.keys // s.width) * s.width
        self.left = [p.scratch(groups * s.rows * size_of(each.depth)) for each in parts.products]
        self.right = [p.scratch(width * size_of(each.depth)) for each in parts.products]
        self.sides = list(zip(self.left, self.right, strict=True))
        self.values = p.scratch(s.keys * s.columns)
        self.xs = p.scratch(s.tile * width)
        self.width = width
        self.totals = p.scratch(groups * s.rows * s.columns)
        if parts.power is not None:
            self.sums = p.scratch(groups * s.rows * s.lanes)
            self.tops = p.scratch(groups * s.rows + s.lanes)
            self.greatest = p.scratch(s.tile * s.lanes)
            whole = -(-s.tile // s.lanes) * s.lanes
            self.found, self.shifts, self.factors = (p.scratch(whole) for _ in range(3))

    def program(self, pieces: int) -> list[UOp]:
        p, s = self.p, self.sizes
        kind = AxisType.THREAD if pieces > 1 else AxisType.LOOP
        with p.loop(0, self.cost.units, kind) as unit:
            block = self._mod(unit, self.cost.blocks)
            self.indices = self._decoded(self._div(unit, self.cost.blocks), self.pattern.batch)
            self.first = p.let(block * s.rows)
            rows = size_of(self.pattern.row)
            self.count: Int = s.rows
            if rows % s.rows:
                left = p.let(rows - self.first)
                self.count = p.let((left < s.rows).where(left, p.integer(s.rows)))
            self._begin()
            with self._each_outer():
                self._blocks()
            self._end()
        return p.program()

    @contextmanager
    def _each_row(self) -> Iterator[tuple[UOp, dict[int, UOp]]]:
        """(the number of a row in its block, its places), for all rows of the block."""
        p = self.p
        with p.loop(0, self.groups) as group, p.loop(0, self.count) as row:
            places = {**self.indices, **self._decoded(group, self.pattern.groups)}
            places[self.pattern.row.arg.id] = p.let(self.first + row)
            yield p.let(group * self.sizes.rows + row), places

    # *** a block of rows begins

    def _begin(self) -> None:
        p, s = self.p, self.sizes
        with self._each_row() as (row, places):
            for product, (left, _), memory in zip(
                self.pattern.products, self.e.sides, self.left, strict=True
            ):
                depth = size_of(product.depth)

                def copied(at: UOp, lanes: int) -> None:
                    value = self.writer.write(left, places, along=Along(product.depth.arg.id, at, lanes))  # noqa: B023
                    p.store(memory, row * depth + at, value)  # noqa: B023

                self._vectors(depth, copied)
            with p.loop(0, s.columns // s.lanes) as vector:
                p.store(self.totals, row * s.columns + vector * s.lanes, p.number(0.0, s.lanes))
            if self.e.power is not None:
                p.store(self.sums, row * s.lanes, p.number(0.0, s.lanes))
                p.store(self.tops, row, p.number(-math.inf))

    # *** blocks of keys

    def _blocks(self) -> None:
        p, s, size = self.p, self.sizes, size_of(self.pattern.key)
        whole, left = divmod(size, s.keys)
        begin: Int = 0
        end: Int = whole
        some = None
        if self.pattern.limits:
            first, last = self._limits(self.first, self.first + self.count - 1, None)
            begin = p.let(first >> (s.keys.bit_length() - 1))
            beyond = p.let((last + s.keys) >> (s.keys.bit_length() - 1))
            end = self._least(beyond, p.integer(whole))
            some = p.let(p.integer(whole) < beyond)
        if whole:
            with p.loop(begin, end) as number:
                self._block(p.let(number * s.keys), s.keys)
        if left:
            with p.when(some) if some is not None else nullcontext():
                self._block(p.integer(size - left), left)

    def _block(self, key: UOp, count: int) -> None:
        """So many keys from one on."""
        p, s, parts = self.p, self.sizes, self.pattern
        for product, (_, right), memory in zip(parts.products, self.e.sides, self.right, strict=True):
            self._packed_tiles((product.depth, right), memory, key, count)
        if self.e.values is not None:
            self._copy_values(self.e.values, self.values, (parts.key, key), count, parts.column)
        with p.loop(0, self.groups) as group:
            places = {**self.indices, **self._decoded(group, parts.groups)}
            for row, size in self._tiles(self.count, size_of(parts.row)):
                with self._where_visible(row, size, places, key, count) as seen:
                    self._tile(p.let(group * s.rows + row), row, size, places, key, count, seen)

    @contextmanager
    def _where_visible(
        self, row: UOp, size: int, places: dict[int, UOp], key: UOp, count: int
    ) -> Iterator[VisibleKeys]:
        """The steps inside, for a tile some of whose x may be more than -inf, and which of the keys."""
        p = self.p
        if not self.pattern.limits:
            yield VisibleKeys(0, 0, count)
            return
        low = p.let(self.first + row)
        first, last = self._limits(low, p.let(low + (size - 1)), places)
        with p.when(p.let((first < key + count) & (key <= last))):
            end = self._least(p.let(last - key + 1), p.integer(count))
            if all(limit.slope < 0 for limit in self.pattern.limits):
                yield VisibleKeys(0, 0, end)
                return
            shift = self.sizes.width.bit_length() - 1
            panel = p.let(self._most(p.let(first - key), p.integer(0)) >> shift)
            yield VisibleKeys(panel, p.let(panel << shift), end)

    # *** a tile of rows

    def _tile(
        self, slot: UOp, row: UOp, size: int, places: dict[int, UOp], key: UOp, count: int, seen: VisibleKeys
    ) -> None:
        p = self.p
        each = [{**places, self.pattern.row.arg.id: p.let(self.first + row + r)} for r in range(size)]
        panels = self._packed_tiles_of(seen)
        self._scores(slot, each, key, count, panels)
        if self.e.power is None:
            self._sum(slot, size, None, count, seen)
            return
        self._correct(slot, size)
        with p.loop(0, size) as r:
            places = {**places, self.pattern.row.arg.id: p.let(self.first + row + r)}
            self._powers(p.let(slot + r), r, places, key, count, panels)
        self._sum(slot, size, self.factors, count, seen)

    def _along_keys(self, key: UOp, at: UOp, count: int) -> Along:
        """A vector of the keys of a block, some of which may be beyond its last one."""
        last = self.p.let(key + (count - 1)) if count % self.sizes.width else None
        return Along(self.pattern.key.arg.id, self.p.let(key + at), self.sizes.lanes, last)

    def _packed_tiles_of(self, seen: VisibleKeys) -> tuple[Int, UOp]:
        """The first panel that holds such keys, and the one behind the last."""
        shift = self.sizes.width.bit_length() - 1
        return seen.tile, self.p.let((self.p.integer(seen.end) + (self.sizes.width - 1)) >> shift)

    def _across(self, value: UOp) -> UOp:
        """The greatest of the lanes."""
        while (lanes := value.dtype.count) > 1:
            half, dtype = lanes // 2, value.dtype.scalar_type.vec(lanes // 2)
            low = UOp(Ops.GEP, dtype, (value,), tuple(range(half)))
            value = self._greater(low, UOp(Ops.GEP, dtype, (value,), tuple(range(half, lanes))))
        return value

    def _scores(
        self, slot: UOp, each: list[dict[int, UOp]], key: UOp, count: int, panels: tuple[Int, UOp]
    ) -> None:
        """x of a tile, stored; where it has a power the greatest of each row too, lane by lane."""
        p, s, size = self.p, self.sizes, len(each)
        greatest = []
        if self.e.power is not None:
            greatest = [p.accumulator(p.number(-math.inf, s.lanes)) for _ in range(size)]
        with p.loop(*panels) as panel:
            made = [
                self._sums_of_product(size_of(product.depth), sides, size, slot, panel)
                for product, sides in zip(self.pattern.products, self.sides, strict=True)
            ]
            for r in range(size):
                for c in range(BESIDE):
                    at = p.let(panel * s.width + c * s.lanes)
                    along = self._along_keys(key, at, count)
                    given = {PRODUCTS + n: sums[r][c] for n, sums in enumerate(made)}
                    x = p.let(self.writer.write(self.e.x, each[r], given, along))
                    if count % s.width and self.e.power is not None:
                        steps = UOp.const(p.index_dtype.vec(s.lanes), tuple(range(s.lanes)))
                        end = UOp.const(p.index_dtype.vec(s.lanes), (count,) * s.lanes)
                        x = p.let((p.splat(at, s.lanes) + steps < end).where(x, p.number(-math.inf, s.lanes)))
                    p.store(self.xs, p.let(panel * s.width + (r * self.width + c * s.lanes)), x)
                    if self.e.power is not None:
                        p.assign(greatest[r], self._greater(greatest[r], x))
        for r, value in enumerate(greatest):
            p.store(self.greatest, r * s.lanes, value)

    def _correct(self, slot: UOp, size: int) -> None:
        """The greatest x so far of each row of a tile, and the factor for what was summed. Rows are lanes:
        those behind the tile stay as they are.
        """
        p, lanes = self.p, self.sizes.lanes
        with p.loop(0, size) as r:
            p.store(self.found, r, p.let(self._across(p.load(self.greatest, p.let(r * lanes), lanes))))
        for begin in range(0, size, lanes):
            own = UOp.const(dtypes.bool.vec(lanes), tuple(begin + lane < size for lane in range(lanes)))
            none = p.number(-math.inf, lanes)
            before = p.load(self.tops, p.let(slot + begin), lanes)
            found = p.let(own.where(p.load(self.found, begin, lanes), none))
            top = p.let(self._greater(before, found))
            p.store(self.tops, slot + begin, top)
            shift = self._finite(top)
            p.store(self.shifts, begin, shift)
            p.store(self.factors, begin, self._power(p.let(own.where(before, none) - shift)))

    def _powers(
        self, slot: UOp, r: UOp, places: dict[int, UOp], key: UOp, count: int, panels: tuple[Int, UOp]
    ) -> None:
        """f(x - t) of a row of a tile, in the place of x; to its sums, times their factor.

        A row by itself: a power is many instructions, of which those of one vector keep a core busy. With
        those of all rows side by side in the code, LLVM took most of its time for them.
        """
        p, s = self.p, self.sizes
        shift, factor = (p.splat(p.load(memory, r), s.lanes) for memory in (self.shifts, self.factors))
        total = p.accumulator(p.number(0.0, s.lanes))
        first, last = panels
        begin = first if isinstance(first, int) else p.let(first * BESIDE)
        own = p.let(r * self.width)
        with p.loop(begin, p.let(last * BESIDE)) as vector:
            at = p.let(vector * s.lanes)
            x = p.load(self.xs, p.let(own + at), s.lanes)
            value = self._power(p.let(x - shift))
            p.assign(total, total + value)
            if self.e.weights is not None:
                along = self._along_keys(key, at, count)
                value = p.let(value * self.writer.write(self.e.weights, places, None, along))
            p.store(self.xs, own + at, value)
        place = p.let(slot * s.lanes)
        sums = p.load(self.sums, place, s.lanes)
        p.store(self.sums, place, p.fma(sums, factor, total))

    def _sum(self, slot: UOp, size: int, factors: UOp | None, count: int, seen: VisibleKeys) -> None:
        """The sums over the block of f(x - t)·v, to what was summed times its factor, if it has one."""
        if self.e.values is None:
            return
        terms = Terms(self.xs, lambda at, r: at + r * self.width)
        self._add_products(
            terms,
            self.values,
            count,
            (seen.begin, seen.end),
            (self.totals, slot),
            size,
            self.sizes.columns,
            factors,
        )

    # *** a block of rows ends

    def _end(self) -> None:
        p, s = self.p, self.sizes
        with self._each_row() as (row, places):
            given: dict[int, UOp] = {}
            scale = None
            if self.e.power is not None:
                total = p.let(p.sum_of_lanes(p.load(self.sums, row * s.lanes, s.lanes)))
                scale = self._statistics(p.load(self.tops, row), total, places, given)
                self._store_beside(places, given)
            if self.e.values is None:
                value = p.let(self.writer.write(self.e.value, places, given))
                p.store(self.out, p.let(self.writer.write(self.index, places)), value)
                return

            def finished(column: UOp, lanes: int) -> None:
                along = Along(self.pattern.column.arg.id, column, lanes)
                value = p.load(self.totals, row * s.columns + column, lanes)
                result = self._finished(value, scale, places, given, along)
                at = {**places, along.number: column}
                if lanes == 1 or step(self.index, along.number) == 1:
                    p.store(self.out, p.let(self.writer.write(self.index, at)), result)
                    return
                for lane in range(lanes):
                    at[along.number] = p.let(column + lane)
                    p.store(self.out, p.let(self.writer.write(self.index, at)), p.lane(result, lane))

            self._vectors(size_of(self.pattern.column), finished)

"""The linear program of a kernel in one pass: blocks of rows, and for each of these blocks of keys.

    for each batch, for each block of rows          shared among the cores
      copy the rows' factors, in order
      for each block of keys                        those in which some x may be more than -inf
        copy the keys' factors as panels, as wide as a tile, and the values likewise
        for each tile of rows
          x of the tile, by tiles of registers; the greatest of each row
          what was summed, times f(t_old - t_new)
          f(x - t_new), and their sum
          the sum over the block of f(x - t_new)·v, by tiles of registers, to what was summed
      the results of the rows

Without a power, x of the tile is what the values are multiplied by, and nothing is corrected.

What is copied serves all rows of a block, also those of several groups. Each row's sums are made alike in
whichever block of rows it is, and by whichever core.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import NamedTuple

from ...ir.args import AxisType
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...renderer import Renderer
from ..routines.writing import Int
from .expressions import PRODUCTS
from .lanes import Along, step
from .rule import OnePass, Product
from .sizes import BESIDE, shape_of_work, size_of, sizes_of
from .steps import Steps


class Seen(NamedTuple):
    """The keys of a block that a tile sees: from the first one of a panel on, up to one."""

    panel: Int
    begin: Int
    end: Int


def written(parts: OnePass, renderer: Renderer, pieces: int) -> list[UOp]:
    """The linear program."""
    return _Kernel(parts, renderer).written(pieces)


class _Kernel(Steps):
    def __init__(self, parts: OnePass, renderer: Renderer) -> None:
        super().__init__(parts, renderer)
        self.sizes = s = sizes_of(parts, renderer.target)
        self.work = shape_of_work(parts, renderer.target)
        p, groups = self.p, self.groups
        width = -(-s.keys // s.width) * s.width
        self.left = [p.scratch(groups * s.rows * size_of(each.depth)) for each in parts.products]
        self.right = [p.scratch(width * size_of(each.depth)) for each in parts.products]
        self.values = p.scratch(s.keys * s.columns)
        self.xs = p.scratch(s.tile * width)
        self.width = width
        self.totals = p.scratch(groups * s.rows * s.columns)
        if parts.power is not None:
            self.sums = p.scratch(groups * s.rows * s.lanes)
            self.tops = p.scratch(groups * s.rows)

    def written(self, pieces: int) -> list[UOp]:
        p, s = self.p, self.sizes
        kind = AxisType.THREAD if pieces > 1 else AxisType.LOOP
        with p.loop(0, self.work.units, kind) as unit:
            block = self._mod(unit, self.work.blocks)
            self.places = self._decoded(self._div(unit, self.work.blocks), self.parts.batch)
            self.first = p.let(block * s.rows)
            rows = size_of(self.parts.row)
            self.count: Int = s.rows
            if rows % s.rows:
                left = p.let(rows - self.first)
                self.count = p.let((left < s.rows).where(left, p.integer(s.rows)))
            self._begin()
            with self._each_outer():
                self._blocks()
            self._end()
        return p.written()

    @contextmanager
    def _each_row(self) -> Iterator[tuple[UOp, dict[int, UOp]]]:
        """(the number of a row in its block, its places), for all rows of the block."""
        p = self.p
        with p.loop(0, self.groups) as group, p.loop(0, self.count) as row:
            places = {**self.places, **self._decoded(group, self.parts.groups)}
            places[self.parts.row.arg.id] = p.let(self.first + row)
            yield p.let(group * self.sizes.rows + row), places

    def _vectors(self, count: int, body: Callable[[UOp, int], None]) -> None:
        """`body(place, lanes)`: vectors, and single places for what is left."""
        p, lanes = self.p, self.sizes.lanes
        if count >= lanes:
            with p.loop(0, count // lanes) as vector:
                body(p.let(vector * lanes), lanes)
        if count % lanes:
            with p.loop(count - count % lanes, count) as place:
                body(place, 1)

    # *** a block of rows begins

    def _begin(self) -> None:
        p, s = self.p, self.sizes
        with self._each_row() as (row, places):
            for product, (left, _), memory in zip(self.parts.products, self.e.sides, self.left, strict=True):
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
        p, s, size = self.p, self.sizes, size_of(self.parts.key)
        whole, left = divmod(size, s.keys)
        begin: Int = 0
        end: Int = whole
        some = None
        if self.parts.limits:
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
        p, s, parts = self.p, self.sizes, self.parts
        for product, (_, right), memory in zip(parts.products, self.e.sides, self.right, strict=True):
            self._panels(product, right, memory, key, count)
        self._copy_values(key, count)
        rows = size_of(parts.row)
        with p.loop(0, self.groups) as group:
            places = {**self.places, **self._decoded(group, parts.groups)}
            begin = p.integer(0)
            for size, sure in ((s.tile, True), (2, rows % s.tile > 1), (1, rows % s.tile % 2 == 1)):
                if not sure or size > s.tile or (size < s.tile and s.tile == 1):
                    continue
                number = self._div(p.let(self.count - begin), size)
                with p.loop(0, number) as tile:
                    row = p.let(begin + tile * size)
                    with self._where_seen(row, size, places, key, count) as seen:
                        self._tile(p.let(group * s.rows + row), row, size, places, key, count, seen)
                if isinstance(self.count, int):
                    break
                begin = p.let(begin + number * size)

    @contextmanager
    def _where_seen(
        self, row: UOp, size: int, places: dict[int, UOp], key: UOp, count: int
    ) -> Iterator[Seen]:
        """The steps inside, for a tile some of whose x may be more than -inf, and which of the keys."""
        p = self.p
        if not self.parts.limits:
            yield Seen(0, 0, count)
            return
        low = p.let(self.first + row)
        first, last = self._limits(low, p.let(low + (size - 1)), places)
        with p.when(p.let((first < key + count) & (key <= last))):
            end = self._least(p.let(last - key + 1), p.integer(count))
            if all(limit.slope < 0 for limit in self.parts.limits):
                yield Seen(0, 0, end)
                return
            shift = self.sizes.width.bit_length() - 1
            panel = p.let(self._most(p.let(first - key), p.integer(0)) >> shift)
            yield Seen(panel, p.let(panel << shift), end)

    def _panels(self, product: Product, right: UOp, memory: UOp, key: UOp, count: int) -> None:
        """The right factors of a block: for each panel of keys the depths one after another."""
        p, s, depth = self.p, self.sizes, size_of(product.depth)
        along_depth, along_key = product.depth.arg.id, self.parts.key.arg.id

        def place(at: UOp, deep: Int) -> UOp:
            """Where the number of key + at lies, at a depth."""
            panel = self._div(at, s.width)
            return p.let(panel * (depth * s.width) + self._mod(at, s.width) + deep * s.width)

        def by_keys(at: UOp, lanes: int) -> None:
            with p.loop(0, depth) as deep:
                places = {**self.places, along_depth: deep}
                value = self.writer.write(right, places, along=Along(along_key, p.let(key + at), lanes))
                p.store(memory, place(at, deep), value)

        def turned(at: UOp, lanes: int) -> None:
            if lanes == 1:
                by_keys(at, 1)
                return
            with p.loop(0, depth // lanes) as group:
                deep = p.let(group * lanes)
                rows = []
                for lane in range(lanes):
                    places = {**self.places, along_key: p.let(key + at + lane)}
                    rows.append(
                        p.let(self.writer.write(right, places, along=Along(along_depth, deep, lanes)))
                    )
                for lane in range(lanes):
                    column = UOp(Ops.VECTORIZE, rows[0].dtype, tuple([p.lane(row, lane) for row in rows]))
                    p.store(memory, place(at, deep + lane), column)

        loads = [n.src[0].src[1] for n in right.toposort() if n.op is Ops.LOAD]
        neighbours = all(step(load, along_depth) == 1 for load in loads)
        self._vectors(count, turned if neighbours and depth % s.lanes == 0 else by_keys)

    def _copy_values(self, key: UOp, count: int) -> None:
        """The values of a block: for each panel of columns the keys one after another."""
        p, s = self.p, self.sizes
        summed = self.e.values
        if summed is None:
            return
        with p.loop(0, count) as at:
            places = {**self.places, self.parts.key.arg.id: p.let(key + at)}

            def copied(column: UOp, lanes: int) -> None:
                value = self.writer.write(
                    summed, places, along=Along(self.parts.column.arg.id, column, lanes)
                )
                panel, inside = self._div(column, s.width), self._mod(column, s.width)
                last = s.columns // s.width * s.width  # the last panel may be a single vector
                wide = p.let((column < last).where(p.integer(s.width), p.integer(s.lanes)))
                p.store(self.values, panel * (s.width * count) + at * wide + inside, value)

            self._vectors(size_of(self.parts.column), copied)

    # *** a tile of rows

    def _tile(
        self, slot: UOp, row: UOp, size: int, places: dict[int, UOp], key: UOp, count: int, seen: Seen
    ) -> None:
        p = self.p
        each = [{**places, self.parts.row.arg.id: p.let(self.first + row + r)} for r in range(size)]
        panels = self._panels_of(seen)
        greatest = self._scores(slot, each, key, count, panels)
        if self.e.power is None:
            self._sum(slot, size, None, count, seen)
            return
        tops, factors = [], []
        for r in range(size):
            before = p.load(self.tops, slot + r)
            top = p.let(self._greater(before, self._across(greatest[r])))
            p.store(self.tops, slot + r, top)
            shift = self._finite(top)
            tops.append(shift)
            factors.append(self._power(p.let(before - shift)))
        self._powers(slot, each, tops, factors, key, count, panels)
        self._sum(slot, size, factors, count, seen)

    def _along_keys(self, key: UOp, at: UOp, count: int) -> Along:
        """A vector of the keys of a block, some of which may be beyond its last one."""
        last = self.p.let(key + (count - 1)) if count % self.sizes.width else None
        return Along(self.parts.key.arg.id, self.p.let(key + at), self.sizes.lanes, last)

    def _panels_of(self, seen: Seen) -> tuple[Int, UOp]:
        """The first panel that holds such keys, and the one behind the last."""
        shift = self.sizes.width.bit_length() - 1
        return seen.panel, self.p.let((self.p.integer(seen.end) + (self.sizes.width - 1)) >> shift)

    def _across(self, value: UOp) -> UOp:
        """The greatest of the lanes."""
        while (lanes := value.dtype.count) > 1:
            half, dtype = lanes // 2, value.dtype.scalar_type.vec(lanes // 2)
            low = UOp(Ops.GEP, dtype, (value,), tuple(range(half)))
            value = self._greater(low, UOp(Ops.GEP, dtype, (value,), tuple(range(half, lanes))))
        return value

    def _scores(
        self, slot: UOp, each: list[dict[int, UOp]], key: UOp, count: int, panels: tuple[Int, UOp]
    ) -> list[UOp]:
        """x of a tile, stored; the greatest of each row, lane by lane."""
        p, s, size = self.p, self.sizes, len(each)
        greatest = []
        if self.e.power is not None:
            greatest = [p.accumulator(p.number(-math.inf, s.lanes)) for _ in range(size)]
        with p.loop(*panels) as panel:
            given: list[list[dict[int, UOp]]] = [[{} for _ in range(BESIDE)] for _ in range(size)]
            for n, product in enumerate(self.parts.products):
                depth, left, right = size_of(product.depth), self.left[n], self.right[n]
                begin, rows = p.let(panel * (s.width * depth)), p.let(slot * depth)
                sums = [[p.accumulator(p.number(0.0, s.lanes)) for _ in range(BESIDE)] for _ in range(size)]
                with p.loop(0, depth) as deep:
                    place = p.let(begin + deep * s.width)
                    beside = [p.load(right, place + c * s.lanes, s.lanes) for c in range(BESIDE)]
                    at = p.let(rows + deep)
                    for r in range(size):
                        factor = p.splat(p.load(left, at + r * depth), s.lanes)
                        for c in range(BESIDE):
                            p.assign(sums[r][c], p.fma(factor, beside[c], sums[r][c]))
                for r in range(size):
                    for c in range(BESIDE):
                        given[r][c][PRODUCTS + n] = sums[r][c]
            for r in range(size):
                for c in range(BESIDE):
                    at = p.let(panel * s.width + c * s.lanes)
                    along = self._along_keys(key, at, count)
                    x = p.let(self.writer.write(self.e.x, each[r], given[r][c], along))
                    if count % s.width and self.e.power is not None:
                        steps = UOp.const(p.place.vec(s.lanes), tuple(range(s.lanes)))
                        end = UOp.const(p.place.vec(s.lanes), (count,) * s.lanes)
                        x = p.let((p.splat(at, s.lanes) + steps < end).where(x, p.number(-math.inf, s.lanes)))
                    p.store(self.xs, p.let(panel * s.width + (r * self.width + c * s.lanes)), x)
                    if self.e.power is not None:
                        p.assign(greatest[r], self._greater(greatest[r], x))
        return greatest

    def _powers(
        self,
        slot: UOp,
        each: list[dict[int, UOp]],
        tops: list[UOp],
        factors: list[UOp],
        key: UOp,
        count: int,
        panels: tuple[Int, UOp],
    ) -> None:
        """f(x - t) of a tile, in the place of x; to the sums."""
        p, s, size = self.p, self.sizes, len(each)
        sums = [p.accumulator(p.number(0.0, s.lanes)) for _ in range(size)]
        first, last = panels
        begin = first if isinstance(first, int) else p.let(first * BESIDE)
        with p.loop(begin, p.let(last * BESIDE)) as vector:
            at = p.let(vector * s.lanes)
            for r in range(size):
                x = p.load(self.xs, at + r * self.width, s.lanes)
                value = self._power(p.let(x - p.splat(tops[r], s.lanes)))
                p.assign(sums[r], sums[r] + value)
                if self.e.weights is not None:
                    along = self._along_keys(key, at, count)
                    value = p.let(value * self.writer.write(self.e.weights, each[r], None, along))
                p.store(self.xs, at + r * self.width, value)
        for r in range(size):
            place = p.let((slot + r) * s.lanes)
            before = p.load(self.sums, place, s.lanes)
            p.store(self.sums, place, p.fma(before, p.splat(factors[r], s.lanes), sums[r]))

    def _sum(self, slot: UOp, size: int, factors: list[UOp] | None, count: int, seen: Seen) -> None:
        """The sums over the block of f(x - t)·v, to what was summed times its factor, if it has one."""
        p, s = self.p, self.sizes
        whole, left = divmod(s.columns // s.lanes, BESIDE)

        def panel(begin: UOp, column: UOp, beside: int) -> None:
            sums = [[p.accumulator(p.number(0.0, s.lanes)) for _ in range(beside)] for _ in range(size)]
            with p.loop(seen.begin, seen.end) as at:
                place = p.let(begin + at * (beside * s.lanes))
                values = [p.load(self.values, place + c * s.lanes, s.lanes) for c in range(beside)]
                for r in range(size):
                    factor = p.splat(p.load(self.xs, at + r * self.width), s.lanes)
                    for c in range(beside):
                        p.assign(sums[r][c], p.fma(factor, values[c], sums[r][c]))
            for r in range(size):
                for c in range(beside):
                    place = p.let((slot + r) * s.columns + column + c * s.lanes)
                    before = p.load(self.totals, place, s.lanes)
                    made = before + sums[r][c]
                    if factors is not None:
                        made = p.fma(before, p.splat(factors[r], s.lanes), sums[r][c])
                    p.store(self.totals, place, made)

        if whole:
            with p.loop(0, whole) as number:
                panel(p.let(number * (s.width * count)), p.let(number * s.width), BESIDE)
        if left:
            panel(p.integer(whole * s.width * count), p.integer(whole * s.width), left)

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

            def finished(column: UOp, lanes: int) -> None:
                along = Along(self.parts.column.arg.id, column, lanes)
                value = p.load(self.totals, row * s.columns + column, lanes)
                result = self._finished(value, scale, places, given, along)
                at = {**places, along.number: column}
                if lanes == 1 or step(self.place, along.number) == 1:
                    p.store(self.out, p.let(self.writer.write(self.place, at)), result)
                    return
                for lane in range(lanes):
                    at[along.number] = p.let(column + lane)
                    p.store(self.out, p.let(self.writer.write(self.place, at)), p.lane(result, lane))

            self._vectors(size_of(self.parts.column), finished)

"""The linear program of a kernel of several sums of the same terms (`joined.py`).

    for each batch; for each block of keys, where only those have sums     shared among the cores
      for each block of keys
        copy the keys' factors as panels, and what is summed over keys
        for each block of rows, in which some term is not 0
          copy the rows' factors in order, and what is summed over rows
          for each tile of rows
            the terms of the tile, by tiles of registers, into memory
            the sums over the block of keys, to those of the rows
          for each tile of keys: the sums over the block of rows, to those of the keys
        the results of the keys
      the results of the rows

A block of rows is a few tiles: its terms stay in the second cache until they are added up along rows. Each
sum is made alike by whichever core.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from ...codegen.expressions.lanes import transposed
from ...codegen.expressions.ranges import substitute_ranges
from ...dtype import dtypes
from ...ir.args import AxisType
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...renderer import Renderer
from ..writing import Int, Program
from .blocks import Blocks, Terms
from .expressions import PRODUCTS, TOTAL, product_of
from .joined import Joined, Sum, chunks_of, is_of_rows, joined_sizes
from .lanes import Along, arguments_in, legal, placeholder, step
from .sizes import BESIDE, size_of


class _EmittedSum(NamedTuple):
    """A sum, written: its values, what is stored and where; memory of the values and of what was summed."""

    sum: Sum
    values: UOp
    value: UOp
    access: UOp
    copied: UOp
    totals: UOp


#: Which placeholder stands for the first value of a row.
FIRST_OF_ROW = 1 << 16


def _without_rows(terms: Sequence[UOp], key: int) -> tuple[list[UOp], list[UOp]]:
    """Terms with placeholders for what of them depends on the row alone, and these values: computed once for
    a row of a tile."""
    found: dict[UOp, UOp] = {}
    stack, seen = list(terms), set(terms)
    while stack:
        node = stack.pop()
        reads = any(below.op is Ops.LOAD for below in node.toposort())
        if reads and dtypes.is_float(node.dtype) and is_of_rows(node, key):
            found[node] = placeholder(FIRST_OF_ROW + len(found), node)
        elif node.op is not Ops.LOAD:
            stack += [source for source in node.src if source not in seen]
            seen.update(node.src)
    return list(substitute_ranges(UOp.sink(*terms), found).src), list(found)


def joined_program(parts: Joined, renderer: Renderer, pieces: int) -> list[UOp]:
    """The linear program."""
    return _Kernel(parts, renderer).program(pieces)


class _Kernel(Blocks):
    def __init__(self, parts: Joined, renderer: Renderer) -> None:
        self.pattern = parts
        self.sizes = s = joined_sizes(parts, renderer.target)
        self.chunks = chunks_of(parts, s)
        sums = [*parts.of_rows, *parts.of_keys]
        dtype = parts.products[0].total.dtype
        zero = UOp.const(dtype, 0.0)
        wanted = [*parts.terms, *[limit.rest for limit in parts.limits]]
        wanted += [side for product in parts.products for side in (product.left, product.right)]
        wanted += [product_of(each.values, zero) for each in sums]
        wanted += [each.store for each in sums]
        made = iter(legal(wanted, renderer))
        self.terms, self.of_row = _without_rows([next(made) for _ in parts.terms], parts.key.arg.id)
        limits = [(limit, next(made)) for limit in parts.limits]
        self.sides = [(next(made), next(made)) for _ in parts.products]
        values = [next(made) for _ in sums]
        stores = list(made)
        every = [
            *self.terms,
            *self.of_row,
            *[rest for _, rest in limits],
            *[s for both in self.sides for s in both],
        ]
        every += [*values, *[source for store in stores for source in store.src]]
        p = Program(arguments_in(every), dtype, renderer)
        Blocks.__init__(self, p, (parts.row, *parts.groups), parts.key, limits)
        self.width = -(-s.keys // s.width) * s.width
        self.depths = [size_of(product.depth) for product in parts.products]
        self.left = [p.scratch(s.rows * depth) for depth in self.depths]
        self.right = [p.scratch(self.width * depth) for depth in self.depths]
        arrays = max(len(parts.terms), len(parts.products))
        self.made = [p.scratch(s.rows * self.width) for _ in range(arrays)]
        self.rows = size_of(parts.row)
        of_rows, of_keys = list[_EmittedSum](), list[_EmittedSum]()
        for number, (each, value, store) in enumerate(zip(sums, values, stores, strict=True)):
            columns, is_of_rows = self._columns(each.column), number < len(parts.of_rows)
            copied = p.scratch((s.keys if is_of_rows else s.rows) * columns)
            totals = p.scratch((self.groups * self.rows if is_of_rows else s.keys) * columns)
            found = _EmittedSum(each, value, store.src[1], store.src[0], copied, totals)
            (of_rows if is_of_rows else of_keys).append(found)
        self.of_rows, self.of_keys = of_rows, of_keys

    def program(self, pieces: int) -> list[UOp]:
        p, s, parts = self.p, self.sizes, self.pattern
        kind = AxisType.THREAD if pieces > 1 else AxisType.LOOP
        whole, left = divmod(size_of(parts.key), s.keys)
        with p.loop(0, parts.batches() * self.chunks, kind) as unit:
            chunk = self._mod(unit, self.chunks)
            self.indices = self._decoded(self._div(unit, self.chunks), parts.batch)
            for each in self.of_rows:
                self._clear(each, self.groups * self.rows)
            if self.chunks > 1:
                if whole:
                    with p.when(p.let(chunk < whole)):
                        self._keys(p.let(chunk * s.keys), s.keys)
                if left:
                    with p.when(p.let(p.integer(whole) <= chunk)):
                        self._keys(p.integer(whole * s.keys), left)
            else:
                if whole:
                    with p.loop(0, whole) as number:
                        self._keys(p.let(number * s.keys), s.keys)
                if left:
                    self._keys(p.integer(whole * s.keys), left)
            with p.loop(0, self.groups) as group, p.loop(0, self.rows if self.of_rows else 0) as row:
                places = {**self.indices, **self._decoded(group, parts.groups), parts.row.arg.id: row}
                for each in self.of_rows:
                    self._store(each, p.let(group * self.rows + row), places)
        return p.program()

    def _clear(self, each: _EmittedSum, count: int) -> None:
        p, s = self.p, self.sizes
        with p.loop(0, count * self._columns(each.sum.column) // s.lanes) as vector:
            p.store(each.totals, p.let(vector * s.lanes), p.number(0.0, s.lanes))

    # *** a block of keys

    def _keys(self, key: UOp, count: int) -> None:
        p, s, parts = self.p, self.sizes, self.pattern
        for product, (_, right), memory in zip(parts.products, self.sides, self.right, strict=True):
            self._packed_tiles((product.depth, right), memory, key, count)
        for each in self.of_rows:
            self._copy_values(each.values, each.copied, (parts.key, key), count, each.sum.column)
        for each in self.of_keys:
            self._clear(each, count)
        with p.loop(0, self.groups) as group:
            outside = self.indices
            self.indices = {**outside, **self._decoded(group, parts.groups)}
            with p.loop(0, -(-self.rows // s.rows)) as number:
                row = p.let(number * s.rows)
                rows = self._least(p.let(p.integer(self.rows) - row), p.integer(s.rows))
                self._rows(p.let(group * self.rows + row), row, rows, key, count)
            self.indices = outside
        for each in self.of_keys:
            whole = self._store_turned(each, key, count)
            with p.loop(whole, count) as at:
                self._store(each, at, {**self.indices, parts.key.arg.id: p.let(key + at)})

    def _rows(self, slot: UOp, row: UOp, rows: UOp, key: UOp, count: int) -> None:
        """A block of rows: those terms that may not be 0 are computed, and added up."""
        p = self.p
        if not self.limits:
            self._visible_rows(slot, row, rows, key, count, 0, count)
            return
        first, last = self._limits(row, p.let(row + rows - 1), self.indices)
        with p.when(p.let((first < key + count) & (key <= last))):
            end = self._least(p.let(last - key + 1), p.integer(count))
            tile: Int = 0
            if any(limit.slope > 0 for limit, _ in self.limits):
                shift = self.sizes.width.bit_length() - 1
                tile = p.let(self._most(p.let(first - key), p.integer(0)) >> shift)
            self._visible_rows(slot, row, rows, key, count, tile, end)

    def _visible_rows(
        self, slot: UOp, row: UOp, rows: UOp, key: UOp, count: int, panel: Int, end: Int
    ) -> None:
        p, s, parts = self.p, self.sizes, self.pattern
        along = parts.row
        for product, (left, _), memory in zip(parts.products, self.sides, self.left, strict=True):
            depth = size_of(product.depth)
            with p.loop(0, rows) as at:
                places = {**self.indices, along.arg.id: p.let(row + at)}

                def copied(place: UOp, lanes: int) -> None:
                    value = self.writer.write(left, places, along=Along(product.depth.arg.id, place, lanes))  # noqa: B023
                    p.store(memory, p.let(at * depth + place), value)  # noqa: B023

                self._vectors(depth, copied)
        for each in self.of_keys:
            self._copy_values(each.values, each.copied, (along, row), rows, each.sum.column)
        begin: Int = panel if isinstance(panel, int) else p.let(panel * s.width)
        for at, size in self._tiles(rows, self._left_over(size_of(along))):
            self._terms(at, size, row, key, count, (panel, end))
            for each in self.of_rows:
                terms = Terms(self.made[each.sum.term], lambda place, r: place + (at + r) * self.width)  # noqa: B023
                totals = (each.totals, p.let(slot + at))
                self._add_products(
                    terms, each.copied, count, (begin, end), totals, size, self._columns(each.sum.column)
                )
        for at, size in self._tiles(end, self._left_over(count), begin):
            for each in self.of_keys:
                terms = Terms(self.made[each.sum.term], lambda place, r: place * self.width + (at + r))  # noqa: B023
                self._add_products(
                    terms, each.copied, rows, (0, rows), (each.totals, at), size,
                    self._columns(each.sum.column),
                )  # fmt: skip

    def _left_over(self, count: int) -> int:
        """A count that says which sizes of tiles are left: all of them, where limits decide."""
        return 3 if self.limits else count

    def _terms(self, at: UOp, size: int, row: UOp, key: UOp, count: int, seen: tuple[Int, Int]) -> None:
        """The terms of a tile of rows, in memory in which the sums of products are before."""
        p, s = self.p, self.sizes
        each = [{**self.indices, self.pattern.row.arg.id: p.let(row + at + r)} for r in range(size)]
        rows = [
            {FIRST_OF_ROW + n: p.let(self.writer.write(v, places)) for n, v in enumerate(self.of_row)}
            for places in each
        ]
        shift = s.width.bit_length() - 1
        last = p.let(key + (count - 1)) if count % s.width else None
        behind = p.let((p.integer(seen[1]) + (s.width - 1)) >> shift)
        with p.loop(seen[0], behind) as panel:
            factors = zip(self.left, self.right, strict=True)
            for depth, sides, memory in zip(self.depths, factors, self.made, strict=False):
                sums = self._sums_of_product(depth, sides, size, at, panel)
                for r, c in itertools.product(range(size), range(BESIDE)):
                    place = p.let((at + r) * self.width + panel * s.width + c * s.lanes)
                    p.store(memory, place, sums[r][c])
        begin = seen[0] * BESIDE if isinstance(seen[0], int) else p.let(seen[0] * BESIDE)
        with p.loop(begin, p.let(behind * BESIDE)) as vector:
            place = p.let(vector * s.lanes)
            along = Along(self.pattern.key.arg.id, p.let(key + place), s.lanes, last)
            for r in range(size):
                own = p.let((at + r) * self.width + place)
                given = dict(rows[r])
                for n in range(len(self.depths)):
                    given[PRODUCTS + n] = p.load(self.made[n], own, s.lanes)
                values = self.writer.write_all(self.terms, each[r], given, along)
                for memory, value in zip(self.made, [p.let(value) for value in values], strict=False):
                    p.store(memory, own, value)

    # *** results

    def _store_turned(self, each: _EmittedSum, key: UOp, count: int) -> int:
        """The results of keys that are neighbours in memory, by squares of vectors; of how many keys."""
        p, lanes, (memory, at) = self.p, self.sizes.lanes, each.access.src[:2]
        walked, number = self.pattern.key.arg.id, each.sum.column.arg.id
        size, columns = size_of(each.sum.column), self._columns(each.sum.column)
        if lanes == 1 or step(at, number) == 1 or step(at, walked) != 1 or size % lanes:
            return 0
        with p.loop(0, count // lanes) as group, p.loop(0, size // lanes) as part:
            first, column = p.let(group * lanes), p.let(part * lanes)
            along = Along(walked, p.let(key + first), lanes)
            totals = [p.load(each.totals, p.let((first + n) * columns + column), lanes) for n in range(lanes)]
            for lane, turned in enumerate(transposed(totals)):
                places = {**self.indices, number: p.let(column + lane)}
                given = {TOTAL: turned}
                result = p.let(self.writer.write(each.value, places, given, along))
                p.store(memory, p.let(self.writer.write(at, {**places, walked: along.first})), result)
        return count // lanes * lanes

    def _store(self, each: _EmittedSum, slot: UOp, places: dict[int, UOp]) -> None:
        p, (memory, at) = self.p, each.access.src[:2]
        columns, number = self._columns(each.sum.column), each.sum.column.arg.id

        def finished(column: UOp, lanes: int) -> None:
            along = Along(number, column, lanes)
            total = p.load(each.totals, p.let(slot * columns + column), lanes)
            result = p.let(self.writer.write(each.value, places, {TOTAL: total}, along))
            where = {**places, number: column}
            if lanes == 1 or step(at, number) == 1:
                p.store(memory, p.let(self.writer.write(at, where)), result)
                return
            for lane in range(lanes):
                where[number] = p.let(column + lane)
                p.store(memory, p.let(self.writer.write(at, where)), p.lane(result, lane))

        self._vectors(size_of(each.sum.column), finished)

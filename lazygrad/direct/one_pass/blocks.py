"""Steps of programs that walk blocks of keys on a processor: copies as panels, products by tiles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ...codegen.expressions.lanes import transposed
from ...ir.ops import Ops
from ...ir.uop import UOp
from ..writing import Int
from .lanes import Along, step
from .sizes import BESIDE, Sizes, size_of
from .steps import Ground


class Terms(NamedTuple):
    """The left factors of products, in memory: where that of a row r of a tile is, at a place of the sum."""

    memory: UOp
    index_at: Callable[[UOp, int], UOp]


class Blocks(Ground):
    """Blocks of such sizes."""

    sizes: Sizes

    def _vectors(self, count: Int, body: Callable[[UOp, int], None]) -> None:
        """`body(place, lanes)`: vectors, and single places for what is left."""
        p, lanes = self.p, self.sizes.lanes
        if not isinstance(count, int):
            whole = self._div(count, lanes)
            with p.loop(0, whole) as vector:
                body(p.let(vector * lanes), lanes)
            with p.loop(p.let(whole * lanes), count) as place:
                body(place, 1)
            return
        if count >= lanes:
            with p.loop(0, count // lanes) as vector:
                body(p.let(vector * lanes), lanes)
        if count % lanes:
            with p.loop(count - count % lanes, count) as place:
                body(place, 1)

    def _tiles(self, count: Int, whole: int, begin: Int = 0) -> Iterator[tuple[UOp, int]]:
        """(first row, how many) of the tiles from a row on to `count`: those steps are written for each.

        whole  of how many rows blocks are made: which sizes are left in the end
        """
        p, tile = self.p, self.sizes.tile
        start = p.integer(begin)
        for size, sure in ((tile, True), (2, whole % tile > 1), (1, whole % tile % 2 == 1)):
            if not sure or size > tile or (size < tile and tile == 1):
                continue
            number = self._div(p.let(count - start), size)
            with p.loop(0, number) as turn:
                yield p.let(start + turn * size), size
            if isinstance(count, int) and whole % tile == 0:
                break
            start = p.let(start + number * size)

    def _packed_tiles(self, side: tuple[UOp, UOp], memory: UOp, key: UOp, count: int) -> None:
        """The right factors of a block: for each panel of keys the depths one after another."""
        p, s, (along, right) = self.p, self.sizes, side
        depth = size_of(along)
        along_depth, along_key = along.arg.id, self.key.arg.id

        def index(at: UOp, deep: Int) -> UOp:
            """Where the number of key + at lies, at a depth."""
            panel = self._div(at, s.width)
            return p.let(panel * (depth * s.width) + self._mod(at, s.width) + deep * s.width)

        def by_keys(at: UOp, lanes: int) -> None:
            with p.loop(0, depth) as deep:
                places = {**self.indices, along_depth: deep}
                value = self.writer.write(right, places, along=Along(along_key, p.let(key + at), lanes))
                p.store(memory, index(at, deep), value)

        def turned(at: UOp, lanes: int) -> None:
            if lanes == 1:
                by_keys(at, 1)
                return
            with p.loop(0, depth // lanes) as group:
                deep = p.let(group * lanes)
                rows = []
                for lane in range(lanes):
                    places = {**self.indices, along_key: p.let(key + at + lane)}
                    rows.append(
                        p.let(self.writer.write(right, places, along=Along(along_depth, deep, lanes)))
                    )
                for lane, column in enumerate(transposed(rows)):
                    p.store(memory, index(at, deep + lane), p.let(column))

        loads = [n.src[0].src[1] for n in right.toposort() if n.op is Ops.LOAD]
        neighbours = all(step(load, along_depth) == 1 for load in loads)
        self._vectors(count, turned if neighbours and depth % s.lanes == 0 else by_keys)
        if count % s.width:  # a number that is left there from before may be one that takes a core very long
            whole, end = -(-count // s.lanes) * s.lanes, -(-count // s.width) * s.width
            with p.loop(0, depth) as deep:
                with p.loop(count, whole) as at:
                    p.store(memory, index(at, deep), p.number(0.0))
                for first in range(whole, end, s.lanes):
                    p.store(memory, index(p.integer(first), deep), p.number(0.0, s.lanes))

    def _copy_values(self, values: UOp, memory: UOp, along: tuple[UOp, UOp], count: Int, column: UOp) -> None:
        """The values of so many keys, or rows, from a place on: for each panel of columns one after another.

        along  the range that they are of, and its first place
        """
        p, s, (walked, first) = self.p, self.sizes, along
        last = self._columns(column) // s.width * s.width  # the last panel may be a single vector
        with p.loop(0, count) as at:
            places = {**self.indices, walked.arg.id: p.let(first + at)}

            def copied(place: UOp, lanes: int) -> None:
                value = self.writer.write(values, places, along=Along(column.arg.id, place, lanes))
                panel, inside = self._div(place, s.width), self._mod(place, s.width)
                wide = p.let((place < last).where(p.integer(s.width), p.integer(s.lanes)))
                p.store(memory, p.let(panel * p.let(p.integer(count) * s.width)) + at * wide + inside, value)

            self._vectors(size_of(column), copied)

    def _columns(self, column: UOp) -> int:
        """Columns up to whole vectors."""
        lanes = self.sizes.lanes
        return -(-size_of(column) // lanes) * lanes

    def _add_products(
        self,
        terms: Terms,
        values: UOp,
        packed: Int,
        seen: tuple[Int, Int],
        totals: tuple[UOp, UOp],
        size: int,
        columns: int,
        factors: UOp | None = None,
    ) -> None:
        """Sums of terms times values, from one place to another, to what was summed times its factor.

        packed  how many places `values` has, as _copy_values made it
        totals  memory, and the first row of the tile in it
        factors  memory of a factor for each row of the tile
        """
        p, s, (memory, slot) = self.p, self.sizes, totals
        whole, left = divmod(columns // s.lanes, BESIDE)

        def packed_tile(begin: UOp, column: UOp, beside: int) -> None:
            sums = [[p.accumulator(p.number(0.0, s.lanes)) for _ in range(beside)] for _ in range(size)]
            with p.loop(*seen) as at:
                place = p.let(begin + at * (beside * s.lanes))
                each = [p.load(values, place + c * s.lanes, s.lanes) for c in range(beside)]
                for r in range(size):
                    factor = p.splat(p.load(terms.memory, terms.index_at(at, r)), s.lanes)
                    for c in range(beside):
                        p.assign(sums[r][c], p.fma(factor, each[c], sums[r][c]))
            for r in range(size):
                scale = None if factors is None else p.splat(p.load(factors, r), s.lanes)
                for c in range(beside):
                    place = p.let((slot + r) * columns + column + c * s.lanes)
                    before = p.load(memory, place, s.lanes)
                    made = before + sums[r][c] if scale is None else p.fma(before, scale, sums[r][c])
                    p.store(memory, place, made)

        step_of = p.let(p.integer(packed) * s.width)
        if whole:
            with p.loop(0, whole) as number:
                packed_tile(p.let(number * step_of), p.let(number * s.width), BESIDE)
        if left:
            packed_tile(p.let(step_of * whole), p.integer(whole * s.width), left)

    # *** a tile of x

    def _sums_of_product(
        self, depth: int, sides: tuple[UOp, UOp], size: int, slot: UOp, panel: UOp
    ) -> list[list[UOp]]:
        """The sums of a product for each row of a tile and each vector of a panel.

        sides  memory of the left factors by rows, and of the right ones by panels
        """
        p, s, (left, right) = self.p, self.sizes, sides
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
        return sums

"""Products of rows that are sorted by groups, with a matrix for each group (the experts of a mixture).

Where a group ends is read from memory: `ends` has, for each group, the number of the first row behind it.
Groups may be empty. Rows behind the last group belong to none: their results are 0.

A tile of sums is in registers. A tile of rows at the end of a group reads its last row again for those that
lack, and stores those that are there. Weights are read in pieces that stay in the second cache while all rows
of their group are multiplied with them. Long sums are blocks, which are added up in memory: so chains of
roundings are short too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import NamedTuple

from ...dtype import dtypes
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...target import Target
from ..writing import Int, Program

#: Bytes of weights that the rows of a group are multiplied with, one tile of rows after the other.
KEPT = 1 << 17
#: Weights that a part of the work reads, at least; the columns of weights, where they are a part of a line.
PART, COLUMNS = 1 << 15, 512
#: Steps of a sum in registers: of vectors that are added up at its end; of rows of a group.
STEPS, ROWS = 64, 128


class Part(NamedTuple):
    """The part of the work that one core does: number `number` of `shards`."""

    number: UOp
    shards: int

    def of(self, p: Program, tiles: int) -> tuple[UOp, UOp]:
        """(the first tile of this part, the one behind it)."""
        if self.shards == 1:
            return p.integer(0), p.integer(tiles)
        (number,) = _far(p, self.number)
        return p.let(number * tiles // self.shards), p.let((number + 1) * tiles // self.shards)


def _lanes(target: Target, itemsize: int, size: int) -> int:
    """Of a vector that a line of `size` numbers fills."""
    lanes = max(1, target.vector_bytes // itemsize)
    while lanes > max(1, size):
        lanes //= 2
    return lanes


def _far(p: Program, *places: UOp) -> list[UOp]:
    """Places as integers of 64 bits, as all are from here on: so addresses need no conversions in loops."""
    p.index_dtype = dtypes.int64
    return [p.let(place.cast(p.index_dtype)) for place in places]


def _least(p: Program, a: UOp, b: Int) -> UOp:
    return p.let((a < b).where(a, b))


def _block(p: Program, number: UOp | None, steps: int, size: int) -> tuple[Int, Int]:
    """(the first step of a block, the one behind it); of all steps, where they are no blocks."""
    if number is None:
        return 0, size
    begin = p.let(number * steps)
    return begin, _least(p, p.let(begin + steps), size)


def _groups(
    p: Program, ends: UOp, at: UOp, count: int, rows: int, body: Callable[[UOp, UOp, UOp], None]
) -> UOp:
    """`body(group, its first row, the row behind it)` for each group; gives the row behind all of them.

    A group ends where it begins, if it would end before; and with the rows, if it would end behind them.
    """
    low = p.accumulator(p.integer(0))
    with p.loop(0, count) as group:
        end = _least(p, p.index_of(p.load(ends, p.let(at + group))), rows)
        high = p.let((low < end).where(end, low))
        body(group, low, high)
        p.assign(low, high)
    return low


def _row_tiles(p: Program, low: UOp, high: UOp, rows: int, body: Callable[[UOp, UOp], None]) -> None:
    """`body(first row, number)` for tiles of rows, of which the last may reach beyond `high`."""
    with p.loop(0, p.let((high - low + (rows - 1)) // rows)) as tile:
        body(p.let(low + tile * rows), tile)


def _column_tiles(
    p: Program, first: UOp, last: UOp, lanes: int, columns: int, body: Callable[[UOp, int, int], None]
) -> None:
    """`body(column, lanes, vectors)`: tiles of three vectors, and behind the last of them single vectors, and
    numbers."""
    wide = 3 * lanes
    with p.loop(first, last) as tile:
        body(p.let(tile * wide), lanes, 3)
    begin = columns // wide * wide
    if begin == columns:
        return
    with nullcontext() if columns < wide else p.when(p.let(last.eq(columns // wide))):
        p.tiles(begin, columns, lanes, lambda column, many: body(column, many, 1))


def _add(p: Program, sums: list[list[UOp]], values: Iterable[UOp], factors: list[UOp]) -> None:
    """Each value times each factor, to the sums of a tile. A value is loaded when its row's turn comes: so
    few registers hold values."""
    for totals, value in zip(sums, values, strict=True):
        for total, factor in zip(totals, factors, strict=True):
            p.assign(total, p.fma(value, factor, total))


def _here(p: Program, row: UOp, rows: int, high: Int, store: Callable[[int], None]) -> None:
    """`store(r)` for the rows of a tile that are there."""
    store(0)
    for r in range(1, rows):
        with p.when(p.let(row + r < high)):
            store(r)


def _zeros(p: Program, out: UOp, to: UOp, low: Int, high: Int, first: Int, last: Int, stride: int) -> None:
    """Zeros in the columns from `first` to before `last` of some rows."""
    lanes = _lanes(p.target, p.dtype.itemsize, stride)
    with p.loop(low, high) as row:
        place = p.let(to + row * stride)
        p.tiles(first, last, lanes, lambda at, many: p.store(out, place + at, p.number(0.0, many)))


# *** products of rows and lines


def shards_of_dots(rows: int, groups: int, size: int, lines: int) -> int:
    return max(1, min(lines // 16, size * lines // PART))


def dots(
    p: Program, out: UOp, to: UOp, x: UOp, read: UOp, weight: UOp, at: UOp, ends: UOp, ends_at: UOp,
    part: Part, rows: int, groups: int, size: int, lines: int,
) -> None:  # fmt: skip
    """out[i, j] = Σ over k of x[i, k]·weight[group of i, j, k].

    Lanes run along the sum, so that both are read as they lie, and are added up at its end.
    """
    to, read, at, ends_at = _far(p, to, read, at, ends_at)
    lanes = _lanes(p.target, p.dtype.itemsize, size)
    high_tile, wide = (6 if p.target.vector_registers >= 32 else 2), 4
    vectors = size // lanes
    blocks = max(1, -(-vectors // STEPS))
    steps = -(-vectors // blocks)
    tiles = -(-lines // wide)
    kept = max(1, _resident_bytes(p) // (steps * lanes * p.dtype.itemsize * wide))

    def tile(row: UOp, number: UOp, high: UOp, base: UOp, column: UOp, block: UOp | None, later: UOp) -> None:
        """Sums of some rows and columns. Meanwhile a line of the tile `later` places behind is asked for."""
        above = [p.let(read + _least(p, p.let(row + r), high - 1) * size) for r in range(high_tile)]
        beside = [p.let(base + _least(p, p.let(column + c), lines - 1) * size) for c in range(wide)]
        next_line = p.let(base + later + (column + (number & (wide - 1))) * size)
        sums = [[p.accumulator(p.number(0.0, lanes)) for _ in beside] for _ in above]
        with p.loop(*_block(p, block, steps, vectors)) as step:
            k = p.let(step * lanes)
            p.prefetch(weight, next_line + k)
            factors = [p.load(weight, place + k, lanes) for place in beside]
            _add(p, sums, (p.load(x, place + k, lanes) for place in above), factors)
        totals = [_sums_of_lanes(p, line) for line in sums]
        if size % lanes:
            totals = [[p.accumulator(each) for each in line] for line in totals]
            behind: Int = vectors * lanes
            if block is not None:
                behind = p.let(block.eq(blocks - 1).where(p.integer(behind), size))
            with p.loop(behind, size) as k:
                factors = [p.load(weight, place + k) for place in beside]
                _add(p, totals, (p.load(x, place + k) for place in above), factors)

        def store(r: int) -> None:
            place = p.let(to + (row + r) * lines + column)
            if lines % wide == 0:
                total = UOp(Ops.VECTORIZE, p.dtype.vec(wide), tuple(totals[r]))
                p.store(out, place, total if block is None else p.load(out, place, wide) + total)
                return
            for c, total in enumerate(totals[r]):
                with p.when(p.let(column + c < lines)) if c else nullcontext():
                    p.store(out, place + c, total if block is None else p.load(out, place + c) + total)

        _here(p, row, high_tile, high, store)

    first, last = part.of(p, tiles)

    def group(number: UOp, low: UOp, high: UOp) -> None:
        base = p.let(at + number * (lines * size))

        def columns(begin: UOp, end: UOp, block: UOp | None, later: UOp) -> None:
            def row_tile(row: UOp, number: UOp) -> None:
                with p.loop(begin, end) as column:
                    tile(row, number, high, base, p.let(column * wide), block, later)

            _row_tiles(p, low, high, high_tile, row_tile)

        if blocks > 1:
            _zeros(p, out, to, low, high, p.let(first * wide), _least(p, p.let(last * wide), lines), lines)
        with p.loop(0, p.let((last - first + (kept - 1)) // kept)) as piece:
            begin = p.let(first + piece * kept)
            end = _least(p, p.let(begin + kept), last)
            following = p.let(
                (end < last).where(kept * wide * size, (first - begin) * (wide * size) + lines * size)
            )
            if blocks == 1:
                columns(begin, end, None, following)
                return
            back = (blocks - 1) * steps * lanes
            with p.loop(0, blocks) as block:
                later = p.let(block.eq(blocks - 1).where(following - back, steps * lanes))
                columns(begin, end, block, later)

    behind = _groups(p, ends, ends_at, groups, rows, group)
    _zeros(p, out, to, behind, rows, p.let(first * wide), _least(p, p.let(last * wide), lines), lines)


def _sums_of_lanes(p: Program, values: list[UOp]) -> list[UOp]:
    """The sum of the lanes of each vector. As many lanes as there are vectors are added up side by side."""
    count = len(values)
    while values[0].dtype.count > count:
        values = [p.let(p.halves(value)) for value in values]
    if values[0].dtype.count < count:
        return [p.let(p.sum_of_lanes(value)) for value in values]
    turned = [
        UOp(Ops.VECTORIZE, p.dtype.vec(count), tuple([p.lane(value, lane) for value in values]))
        for lane in range(count)
    ]
    while len(turned) > 1:
        turned = [a + b for a, b in zip(turned[::2], turned[1::2], strict=True)]
    total = p.let(turned[0])
    return [p.let(p.lane(total, lane)) for lane in range(count)]


# *** sums of lines, with factors


def shards_of_mixes(rows: int, groups: int, size: int, columns: int) -> int:
    return max(1, columns // COLUMNS)


def mixes(
    p: Program, out: UOp, to: UOp, x: UOp, read: UOp, weight: UOp, at: UOp, ends: UOp, ends_at: UOp,
    part: Part, rows: int, groups: int, size: int, columns: int,
) -> None:  # fmt: skip
    """out[i, j] = Σ over k of x[i, k]·weight[group of i, k, j], with lanes along j."""
    to, read, at, ends_at = _far(p, to, read, at, ends_at)
    lanes = _lanes(p.target, p.dtype.itemsize, columns)
    high_tile = _rows_beside_three(p)
    line = -(-columns // part.shards) * p.dtype.itemsize
    blocks = max(1, -(-size // max(16, _resident_bytes(p) // line)))
    steps = -(-size // blocks)
    first, last = part.of(p, columns // (3 * lanes))

    def group(number: UOp, low: UOp, high: UOp) -> None:
        base = p.let(at + number * (size * columns))

        def run(block: UOp | None) -> None:
            begin, end = _block(p, block, steps, size)
            prefetch_distance: Int = size * columns
            if block is not None:
                back = size - (blocks - 1) * steps
                prefetch_distance = p.let(block.eq(blocks - 1).where(p.integer(back), steps) * columns)

            def row_tile(row: UOp, number: UOp) -> None:
                above = [p.let(read + _least(p, p.let(row + r), high - 1) * size) for r in range(high_tile)]
                which = _least(p, p.let(number & 3), 2)

                def tile(column: UOp, wide: int, count: int) -> None:
                    later = p.let(base + prefetch_distance + column + which * wide)
                    sums = [[p.accumulator(p.number(0.0, wide)) for _ in range(count)] for _ in above]
                    with p.loop(begin, end) as k:
                        below = p.let(k * columns)
                        if count > 1:
                            p.prefetch(weight, later + below)
                        place = p.let(base + column + below)
                        factors = [p.load(weight, place + c * wide, wide) for c in range(count)]
                        _add(p, sums, (p.splat(p.load(x, row_at + k), wide) for row_at in above), factors)

                    def store(r: int) -> None:
                        place = p.let(to + (row + r) * columns + column)
                        _store_sums(p, out, place, sums[r], wide, block is not None)

                    _here(p, row, high_tile, high, store)

                _column_tiles(p, first, last, lanes, columns, tile)

            _row_tiles(p, low, high, high_tile, row_tile)

        if blocks == 1:
            run(None)
            return
        zeros(low, high)
        with p.loop(0, blocks) as block:
            run(block)

    def zeros(low: Int, high: Int) -> None:
        end = p.let(last.eq(columns // (3 * lanes)).where(p.integer(columns), last * (3 * lanes)))
        _zeros(p, out, to, low, high, p.let(first * (3 * lanes)), end, columns)

    behind = _groups(p, ends, ends_at, groups, rows, group)
    zeros(behind, rows)


def _store_sums(p: Program, out: UOp, place: UOp, sums: list[UOp], wide: int, adds: bool) -> None:
    """The sums of a row, vectors side by side; `adds`: to what is there."""
    for c, total in enumerate(sums):
        there = place + c * wide
        p.store(out, there, p.load(out, there, wide) + total if adds else total)


def _resident_bytes(p: Program) -> int:
    """Bytes of weights that the rows of a group are multiplied with, one tile of rows after the other."""
    caches = p.target.memory.caches
    return caches[1] // 8 if len(caches) > 1 else KEPT


def _rows_beside_three(p: Program) -> int:
    """Rows of a tile of sums that is three vectors wide: registers hold it, three factors and a number."""
    return 8 if p.target.vector_registers >= 32 else 4


# *** sums over the rows of a group


def shards_of_outer(rows: int, groups: int, height: int, columns: int) -> int:
    return -(-height // 8)


def outer(
    p: Program, out: UOp, to: UOp, x: UOp, read: UOp, y: UOp, at: UOp, ends: UOp, ends_at: UOp,
    part: Part, rows: int, groups: int, height: int, columns: int,
) -> None:  # fmt: skip
    """out[g, a, b] = Σ over the rows i of group g of x[i, a]·y[i, b], with lanes along b; 0 of no rows."""
    to, read, at, ends_at = _far(p, to, read, at, ends_at)
    lanes = _lanes(p.target, p.dtype.itemsize, columns)
    high_tile = min(_rows_beside_three(p), height)
    first, last = part.of(p, -(-height // high_tile))
    whole = height % high_tile == 0
    turns = 1 << (high_tile.bit_length() - 1)

    def group(number: UOp, low: UOp, high: UOp) -> None:
        base = p.let(to + number * (height * columns))

        def run(begin: UOp, end: UOp, adds: bool) -> None:
            with p.loop(first, last) as row:
                a = p.let(row * high_tile)
                above = [a + r if whole else _least(p, p.let(a + r), height - 1) for r in range(high_tile)]
                above = [p.let(read + each) for each in above]

                def tile(column: UOp, wide: int, count: int) -> None:
                    sums = [[p.accumulator(p.number(0.0, wide)) for _ in range(count)] for _ in above]
                    following = p.let(base + a * columns + column + count * wide)
                    with p.loop(begin, end) as i:
                        if count > 1:
                            line = p.let((i - begin) & (turns - 1))
                            beside = p.let(((i - begin) >> (turns.bit_length() - 1)) * wide)
                            p.prefetch(out, following + line * columns + beside, writes=True)
                        place, left = p.let(at + i * columns + column), p.let(i * height)
                        factors = [p.load(y, place + c * wide, wide) for c in range(count)]
                        _add(p, sums, (p.splat(p.load(x, a_at + left), wide) for a_at in above), factors)

                    def store(r: int) -> None:
                        place = p.let(base + (a + r) * columns + column)
                        _store_sums(p, out, place, sums[r], wide, adds)

                    if whole:
                        for r in range(high_tile):
                            store(r)
                    else:
                        _here(p, a, high_tile, height, store)

                _column_tiles(p, p.integer(0), p.integer(columns // (3 * lanes)), lanes, columns, tile)

        middle = _least(p, p.let(low + ROWS), high)
        run(low, middle, False)
        with p.loop(1, p.let((high - low + (ROWS - 1)) // ROWS)) as block:
            begin = p.let(low + block * ROWS)
            run(begin, _least(p, p.let(begin + ROWS), high), True)

    _groups(p, ends, ends_at, groups, rows, group)

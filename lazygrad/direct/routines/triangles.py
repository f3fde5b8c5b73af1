"""Cholesky and LU factors, and the solution of triangular systems.

Rows are worked on in tiles that registers hold: a tile is loaded, the multiples of all rows that are done are
taken from it, what is left is solved among its own rows, and it is stored. (Golub and Van Loan, Matrix
Computations, 4.2 and 3.2: left-looking for Cholesky and solutions, right-looking in panels for LU.)
"""

from __future__ import annotations

from collections.abc import Callable

from ...dtype import dtypes
from ...ir.args import Rows
from ...ir.ops import Ops
from ...ir.uop import UOp
from ..writing import Program
from .layout import Lanes
from .tiles import column_tiles, copy_in, copy_row, fill, load_tile, minus, store_tile, without

#: The most columns of a panel, and so the factors among the rows of a tile.
PANEL = 8


# *** Cholesky


def cholesky_size(size: int) -> int:
    """Rows of U, which column failed, the factors of a tile and the reciprocals of its diagonal."""
    return size * Rows.of(size).stride + 1 + PANEL * PANEL + PANEL


def cholesky(p: Program, out: UOp, base: UOp, source: UOp, read: UOp, size: int) -> None:
    """The upper triangle U with Uᵀ U = A, from the upper triangle of A. Below it are numbers without meaning.

    Behind them is 0, or the number (from 1 on) of the first column whose root is of no positive number.
    """
    rows = Rows.of(size)
    lanes = Lanes.of(p.target, p.dtype.itemsize, rows.group)
    stride, failed = rows.stride, p.let(base + size * rows.stride)
    scratch = p.let(failed + 1)
    copy_in(p, source, read, out, base, size, rows)

    def row_tile(i: UOp, height: int) -> None:
        begin = p.let(base + i * stride)

        def factor(k: UOp, r: int) -> UOp:
            return p.load(out, base + k * stride + i + r)

        # the factors among the rows themselves
        square = without(
            p,
            load_tile(p, out, begin + i, stride, height, height, 1),
            0,
            i,
            factor,
            lambda k: [p.load(out, base + k * stride + i, height)],
        )
        values = [row[0] for row in square]
        for r in range(height):
            inverse = p.let(1.0 / p.sqrt(p.lane(values[r], r)))
            p.store(out, scratch + (PANEL * PANEL + r), inverse)
            values[r] = p.let(values[r] * p.splat(inverse, height))
            p.store(out, scratch + r * height, values[r])
            for later in range(r + 1, height):
                values[later] = p.let(minus(p, values[later], p.lane(values[r], later), values[r]))

        def column_tile(j: UOp) -> None:
            place = begin + j
            tile = without(
                p,
                load_tile(p, out, place, stride, height, lanes.lanes, lanes.beside),
                0,
                i,
                factor,
                lambda k: load_tile(p, out, base + k * stride + j, 0, 1, lanes.lanes, lanes.beside)[0],
            )
            for r in range(height):
                for before in range(r):
                    scale = p.load(out, scratch + (before * height + r))
                    tile[r] = [
                        p.let(minus(p, a, scale, b)) for a, b in zip(tile[r], tile[before], strict=True)
                    ]
                scale = p.load(out, scratch + (PANEL * PANEL + r))
                tile[r] = [p.let(value * p.splat(scale, lanes.lanes)) for value in tile[r]]
            store_tile(p, out, place, stride, tile)

        column_tiles(p, rows, lanes, i, column_tile)

    p.tiles(0, size, min(lanes.rows, lanes.lanes), row_tile)
    _first(p, out, failed, base, stride + 1, size, lambda root: root > 0.0)


def _first(
    p: Program, out: UOp, result: UOp, place: UOp, step: int, count: int, good: Callable[[UOp], UOp]
) -> None:
    """Leave the number (from 1 on) of the first element on a diagonal that is not good; 0 where all are."""
    found = p.accumulator(p.number(0.0))
    with p.loop(0, count) as n:
        k = p.let(count - 1 - n)
        fine = p.let(good(p.load(out, place + k * step)))
        p.assign(found, fine.where(found, p.float_of(k + 1)))
    p.store(out, result, found)


# *** LU


def lu_size(rows: int, columns: int) -> int:
    """Rows of both factors, the row of A that each is, the row that each step took, the sign of their order,
    and which pivot is 0."""
    return rows * Rows.of(columns).stride + rows + min(rows, columns) + 2


def lu(p: Program, out: UOp, base: UOp, source: UOp, read: UOp, height: int, width: int) -> None:
    """L below the diagonal, where it is 1, and U from there on, with L U = the rows of A in another order."""
    rows = Rows.of(width)
    lanes = Lanes.of(p.target, p.dtype.itemsize, rows.group)
    stride, panel = rows.stride, min(PANEL, lanes.lanes)
    order = p.let(base + height * stride)
    sign = p.let(order + height + min(height, width))
    copy_in(p, source, read, out, base, height, rows)
    with p.loop(0, height) as row:
        p.store(out, order + row, p.float_of(row))
    p.store(out, sign, p.number(1.0))
    size = min(height, width)
    shift = panel.bit_length() - 1
    with p.loop(0, size >> shift) as number:
        _block_column(p, out, base, order, sign, p.let(number << shift), panel, panel, height, rows, lanes)
    if left := size % panel:
        _block_column(p, out, base, order, sign, p.integer(size - left), left, panel, height, rows, lanes)
    _first(p, out, p.let(sign + 1), base, stride + 1, size, lambda pivot: pivot.alu(Ops.CMPNE, p.number(0.0)))


def _block_column(
    p: Program,
    out: UOp,
    base: UOp,
    order: UOp,
    sign: UOp,
    first: UOp,
    steps: int,
    panel: int,
    height: int,
    rows: Rows,
    lanes: Lanes,
) -> None:
    """So many columns from `first` on, of a panel whose rows are one vector; and what follows from them."""
    stride = rows.stride
    for step in range(steps):
        k = p.let(first + step)
        pivot = _pivot(p, out, base + k, stride, k, height)
        p.store(out, order + height + k, p.float_of(pivot))
        _swap(p, out, base, order, sign, k, pivot, rows, lanes)
        row = p.let(base + k * stride)
        top = p.load(out, row + k)
        inverse = p.let((top.alu(Ops.CMPEQ, p.number(0.0))).where(0.0, 1.0 / top))
        later = UOp.const(dtypes.bool.vec(panel), tuple(n > step for n in range(panel)))
        here = UOp.const(dtypes.bool.vec(panel), tuple(n == step for n in range(panel)))
        taken = p.load(out, row + first, panel)
        if panel > 1:
            taken = p.let(later.where(taken, p.number(0.0, panel)))
        with p.loop(k + 1, p.integer(height)) as r:
            place = p.let(base + r * stride + first)
            values = p.load(out, place, panel)
            factor = p.let(p.lane(values, step) * inverse)
            changed = minus(p, values, factor, taken) if panel > 1 else factor
            if panel > 1:
                changed = here.where(p.splat(factor, panel), changed)
            p.store(out, place, changed)

    behind = p.let(first + panel)

    def columns(body: Callable[[UOp, int, int], None]) -> None:
        """The columns behind the panel: tiles, and what is left in vectors as wide as a panel."""
        shift, narrow = lanes.width.bit_length() - 1, panel.bit_length() - 1
        count = p.let((rows.columns - behind) >> shift)
        with p.loop(0, count) as tile:
            body(p.let(behind + (tile << shift)), lanes.lanes, lanes.beside)
        if lanes.width > panel:
            rest = p.let(behind + (count << shift))
            with p.loop(0, (rows.columns - rest) >> narrow) as tile:
                body(p.let(rest + (tile << narrow)), panel, 1)

    def finish(j: UOp, wide: int, count: int) -> None:
        place = p.let(base + first * stride + j)
        tile = load_tile(p, out, place, stride, steps, wide, count)
        for r in range(steps):
            for before in range(r):
                scale = p.load(out, base + (first + r) * stride + first + before)
                tile[r] = [p.let(minus(p, a, scale, b)) for a, b in zip(tile[r], tile[before], strict=True)]
        store_tile(p, out, place, stride, tile)

    columns(finish)

    def row_tile(i: UOp, many: int) -> None:
        def update(j: UOp, wide: int, count: int) -> None:
            place = p.let(base + i * stride + j)
            tile = without(
                p,
                load_tile(p, out, place, stride, many, wide, count),
                first,
                first + steps,
                lambda k, r: p.load(out, base + (i + r) * stride + k),
                lambda k: load_tile(p, out, base + k * stride + j, 0, 1, wide, count)[0],
            )
            store_tile(p, out, place, stride, tile)

        columns(update)

    p.tiles(first + steps, height, lanes.rows, row_tile)


def _pivot(p: Program, out: UOp, column: UOp, stride: int, k: UOp, height: int) -> UOp:
    """The row from k on that has the greatest number in a column."""
    best, at = p.accumulator(p.number(-1.0)), p.accumulator(k)
    with p.loop(k, height) as r:
        value = p.let(p.abs(p.load(out, column + r * stride)))
        better = p.let(best < value)
        p.assign_all({at: better.where(r, at), best: better.where(value, best)})
    return at


def _swap(
    p: Program, out: UOp, base: UOp, order: UOp, sign: UOp, k: UOp, pivot: UOp, rows: Rows, lanes: Lanes
) -> None:
    """Two rows change places."""
    with p.when(pivot.alu(Ops.CMPNE, k)):
        one, other = p.let(base + k * rows.stride), p.let(base + pivot * rows.stride)
        shift = lanes.lanes.bit_length() - 1
        with p.loop(0, rows.columns >> shift) as c:
            j = p.let(c << shift)
            a, b = p.load(out, one + j, lanes.lanes), p.load(out, other + j, lanes.lanes)
            p.store(out, one + j, b)
            p.store(out, other + j, a)
        a, b = p.load(out, order + k), p.load(out, order + pivot)
        p.store(out, order + k, b)
        p.store(out, order + pivot, a)
        p.store(out, sign, -p.load(out, sign))


def order(p: Program, out: UOp, base: UOp, source: UOp, read: UOp, steps: int, size: int) -> None:
    """Which of so many rows each is after rows have changed places, the first with row `pivot` (from 0 on),
    then the second, ..."""
    with p.loop(0, size) as row:
        p.store(out, base + row, p.float_of(row))
    with p.loop(0, steps) as k:
        other = p.let(p.index_of(p.load(source, read + k)))
        with p.when((other >= 0) & (other < size)):
            a, b = p.load(out, base + k), p.load(out, base + other)
            p.store(out, base + k, b)
            p.store(out, base + other, a)


# *** solutions


def solution_size(size: int, count: int) -> int:
    return size * Rows.of(count).stride


def triangular(
    p: Program, out: UOp, base: UOp, given: UOp, read: UOp, right: UOp, columns: UOp, size: int, count: int,
    upper: int, unit: int,
) -> None:  # fmt: skip
    """The X with T X = B, for the triangle T of a matrix."""
    copy_in(p, right, columns, out, base, size, Rows.of(count))
    _solved(p, out, base, given, read, size, size, count, bool(upper), bool(unit))


def lu_solve(
    p: Program, out: UOp, base: UOp, factors: UOp, read: UOp, right: UOp, columns: UOp, size: int, count: int
) -> None:
    """The X with A X = B, from the factors of A."""
    rows, stride = Rows.of(count), Rows.of(size).stride
    lanes = Lanes.of(p.target, p.dtype.itemsize, rows.group).lanes
    with p.loop(0, size) as r:
        which = p.let(p.index_of(p.load(factors, read + size * stride + r)))
        copy_row(p, right, p.let(columns + which * count), out, p.let(base + r * rows.stride), rows, lanes)
    _both(p, out, base, factors, read, size, count)


def lu_inverse(p: Program, out: UOp, base: UOp, factors: UOp, read: UOp, size: int) -> None:
    """The inverse of A, from its factors."""
    rows, stride = Rows.of(size), Rows.of(size).stride
    fill(p, out, base, size * stride)
    with p.loop(0, size) as r:
        which = p.let(p.index_of(p.load(factors, read + size * stride + r)))
        p.store(out, base + r * rows.stride + which, p.number(1.0))
    _both(p, out, base, factors, read, size, size)


def _both(p: Program, out: UOp, base: UOp, factors: UOp, read: UOp, size: int, count: int) -> None:
    stride = Rows.of(size).stride
    _solved(p, out, base, factors, read, stride, size, count, False, True)
    _solved(p, out, base, factors, read, stride, size, count, True, False)


def _solved(
    p: Program, out: UOp, base: UOp, given: UOp, read: UOp, stride: int, size: int, count: int, upper: bool,
    unit: bool,
) -> None:  # fmt: skip
    """Rows of X, which hold those of B, become solved from the first to the last, or the other way."""
    rows = Rows.of(count)
    lanes = Lanes.of(p.target, p.dtype.itemsize, rows.group)

    def row_tile(i: UOp, many: int) -> None:
        def factor(k: UOp, r: int) -> UOp:
            return p.load(given, read + (i + r) * stride + k)

        inside = {
            (r, k): p.load(given, read + (i + r) * stride + (i + k))
            for r in range(many)
            for k in (range(r + 1, many) if upper else range(r))
        }
        scales = []
        if not unit:
            scales = [p.let(1.0 / p.load(given, read + (i + r) * stride + (i + r))) for r in range(many)]

        def column_tile(j: UOp) -> None:
            place = p.let(base + i * rows.stride + j)
            tile = without(
                p,
                load_tile(p, out, place, rows.stride, many, lanes.lanes, lanes.beside),
                i + many if upper else 0,
                size if upper else i,
                factor,
                lambda k: load_tile(p, out, base + k * rows.stride + j, 0, 1, lanes.lanes, lanes.beside)[0],
            )
            for r in reversed(range(many)) if upper else range(many):
                for k in range(r + 1, many) if upper else range(r):
                    tile[r] = [
                        p.let(minus(p, a, inside[r, k], b)) for a, b in zip(tile[r], tile[k], strict=True)
                    ]
                if not unit:
                    tile[r] = [p.let(value * p.splat(scales[r], lanes.lanes)) for value in tile[r]]
            store_tile(p, out, place, rows.stride, tile)

        column_tiles(p, rows, lanes, p.integer(0), column_tile)

    height = lanes.rows
    if not upper:
        p.tiles(0, size, height, row_tile)
        return
    with p.loop(0, size % height) as n:
        row_tile(p.let(size - 1 - n), 1)
    with p.loop(0, size // height) as n:
        row_tile(p.let((size // height - 1 - n) * height), height)

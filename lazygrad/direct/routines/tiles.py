"""What the routines have in common: tiles of rows in registers, multiples of other rows taken from them."""

from __future__ import annotations

from collections.abc import Callable

from ...dtype import dtypes
from ...ir.args import Rows
from ...ir.uop import UOp
from ..writing import Int, Program
from .layout import Lanes

#: The numbers of a tile: of each row its vectors, side by side.
Tile = list[list[UOp]]


def load_tile(p: Program, memory: UOp, place: UOp, stride: int, rows: int, lanes: int, count: int) -> Tile:
    return [
        [p.load(memory, place + (r * stride + c * lanes), lanes) for c in range(count)] for r in range(rows)
    ]


def store_tile(p: Program, memory: UOp, place: UOp, stride: int, tile: Tile) -> None:
    for r, row in enumerate(tile):
        for c, value in enumerate(row):
            p.store(memory, place + (r * stride + c * value.dtype.count), value)


def least_square(p: Program) -> float:
    """Up to here squares have lost digits; their roots count as 0 beside a matrix whose greatest number is
    about 1, as those of spectra and of QR are made."""
    info = dtypes.finfo(p.dtype)
    return float(info.tiny) / float(info.eps)


def minus(p: Program, value: UOp, factor: UOp, row: UOp) -> UOp:
    """value - factor·row, where the factor is one number."""
    return p.fma(-p.splat(factor, row.dtype.count), row, value)


def without(
    p: Program,
    tile: Tile,
    first: Int,
    last: Int,
    factor: Callable[[UOp, int], UOp],
    row: Callable[[UOp], list[UOp]],
) -> Tile:
    """A tile, of row r the sum over k of factor(k, r)·row(k) taken from it."""
    totals = [[p.accumulator(value) for value in values] for values in tile]
    with p.loop(first, last) as k:
        taken = row(k)
        for r, values in enumerate(totals):
            scale = factor(k, r)
            for total, value in zip(values, taken, strict=True):
                p.assign(total, minus(p, total, scale, value))
    return totals


def column_tiles(p: Program, rows: Rows, lanes: Lanes, first: Int, body: Callable[[UOp], None]) -> None:
    """`body(place)` for the tiles of columns from the one that holds column `first` on."""
    shift = lanes.width.bit_length() - 1
    begin = first >> shift
    with p.loop(begin, rows.columns // lanes.width) as tile:
        body(p.let(tile << shift))


def copy_row(p: Program, source: UOp, read: UOp, target: UOp, write: UOp, rows: Rows, lanes: int) -> None:
    """The numbers of a row that has no gaps; 0 behind them."""

    def copied(place: UOp, count: int) -> None:
        p.store(target, write + place, p.load(source, read + place, count))

    p.tiles(0, rows.size, lanes, copied)
    with p.loop(rows.size, rows.columns) as place:
        p.store(target, write + place, p.number(0.0))


def copy_in(p: Program, source: UOp, read: UOp, target: UOp, write: UOp, count: int, rows: Rows) -> None:
    """So many rows without gaps into the rows of a routine."""
    lanes = Lanes.of(p.target, p.dtype.itemsize, rows.group).lanes
    with p.loop(0, count) as r:
        copy_row(p, source, p.let(read + r * rows.size), target, p.let(write + r * rows.stride), rows, lanes)


def fill(p: Program, memory: UOp, place: UOp, count: Int, value: float = 0.0) -> None:
    """So many equal numbers."""
    lanes = max(1, p.target.vector_bytes // p.dtype.itemsize)

    def filled(at: UOp, many: int) -> None:
        p.store(memory, place + at, p.number(value, many))

    p.tiles(0, count, lanes, filled)

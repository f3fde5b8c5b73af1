"""Rotations of neighbouring rows, and what the two spectral decompositions share beside them."""

from __future__ import annotations

from collections.abc import Callable

from ...ir.args import Rows
from ...ir.ops import Ops
from ...ir.uop import UOp
from ..writing import Int, Program
from .tiles import least_square

#: So often one eigenvalue or singular value is iterated on; two or three times are usual.
TURNS = 60


def hypotenuse(p: Program, a: UOp, b: UOp) -> tuple[UOp, UOp, UOp]:
    """(√(a² + b²), a by it, b by it); of numbers that count as 0 it is (0, 1, 0)."""
    square = p.let(p.fma(a, a, b * b))
    zero = p.let(square <= least_square(p))
    length = p.let(zero.where(0.0, p.sqrt(square)))
    inverse = p.let(1.0 / length)
    return length, p.let(zero.where(1.0, a * inverse)), p.let(zero.where(0.0, b * inverse))


def chunks(p: Program, rows: Rows, lanes: int, body: Callable[[UOp, int], None]) -> None:
    """`body(column, how many vectors)` for pieces of a row that registers hold."""
    most = 8 if p.target.vector_registers >= 32 else 4
    shift = lanes.bit_length() - 1

    def piece(first: UOp, many: int) -> None:
        body(p.let(first << shift), many)

    p.tiles(0, rows.columns // lanes, most, piece)


def rotate(
    p: Program,
    out: UOp,
    place: UOp,
    first: UOp,
    last: UOp,
    cos: UOp,
    sin: UOp,
    rows: Rows,
    lanes: int,
    down: bool,
) -> None:
    """Rotate rows i and i + 1, for i from `first` to below `last`, or (`down`) from last - 1 to first.

    Upwards (x, y) becomes (c·x + s·y, c·y - s·x), downwards (c·x - s·y, s·x + c·y); `cos` and `sin` are where
    those of row 0 are.
    """
    stride = rows.stride

    def piece(column: UOp, many: int) -> None:
        start = p.let(place + (last if down else first) * stride + column)
        carried = [p.accumulator(p.load(out, start + n * lanes, lanes)) for n in range(many)]
        with p.loop(first, last) as t:
            i = p.let(first + last - 1 - t) if down else t
            c, s = (p.let(p.splat(p.load(out, at + i), lanes)) for at in (cos, sin))
            row = p.let(place + i * stride + column)
            read, write = (row, p.let(row + stride)) if down else (p.let(row + stride), row)
            for n, held in enumerate(carried):
                value = p.load(out, read + n * lanes, lanes)
                if down:
                    p.store(out, write + n * lanes, p.fma(s, value, c * held))
                    p.assign(held, p.fma(c, value, -(s * held)))
                else:
                    p.store(out, write + n * lanes, p.fma(c, held, s * value))
                    p.assign(held, p.fma(c, value, -(s * held)))
        end = p.let(place + (first if down else last) * stride + column)
        for n, held in enumerate(carried):
            p.store(out, end + n * lanes, held)

    chunks(p, rows, lanes, piece)


def swap_rows(p: Program, out: UOp, one: UOp, other: UOp, rows: Rows, lanes: int) -> None:
    shift = lanes.bit_length() - 1
    with p.loop(0, rows.columns >> shift) as c:
        j = p.let(c << shift)
        a, b = p.load(out, one + j, lanes), p.load(out, other + j, lanes)
        p.store(out, one + j, b)
        p.store(out, other + j, a)


def put_in_order(
    p: Program, out: UOp, values: UOp, count: int, rising: bool, tables: list[tuple[UOp, Rows, int]]
) -> None:
    """Numbers from the least (or the greatest) on, and with each its row of every table."""
    with p.loop(0, count) as i:
        at, best = p.accumulator(i), p.accumulator(p.load(out, values + i))
        with p.loop(i + 1, p.integer(count)) as j:
            value = p.load(out, values + j)
            better = p.let(value < best if rising else best < value)
            p.assign_all({at: better.where(j, at), best: better.where(value, best)})
        with p.when(at.alu(Ops.CMPNE, i)):
            p.store(out, values + at, p.load(out, values + i))
            p.store(out, values + i, best)
            for place, rows, lanes in tables:
                swap_rows(
                    p, out, p.let(place + i * rows.stride), p.let(place + at * rows.stride), rows, lanes
                )


def greatest(p: Program, out: UOp, diagonal: UOp, beside: UOp, count: Int) -> UOp:
    """The greatest sum of the sizes of two numbers at the same place; NaN or infinite if any is."""
    best, total = p.accumulator(p.number(0.0)), p.accumulator(p.number(0.0))
    with p.loop(0, count) as i:
        size = p.let(p.abs(p.load(out, diagonal + i)) + p.abs(p.load(out, beside + i)))
        p.assign(best, (best < size).where(size, best))
        p.assign(total, p.fma(size, p.number(0.0), total))  # 0, or NaN
    return p.let(best + p.let(total + 0.0))


def sweeps(p: Program, norm: UOp) -> UOp:
    """How often to iterate: never with numbers that are not finite."""
    return p.let((norm < float("inf")).where(p.integer(TURNS), p.integer(0)))

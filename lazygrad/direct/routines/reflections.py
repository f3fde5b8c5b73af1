"""Householder reflections, and QR by them. (Golub and Van Loan, Matrix Computations, 5.1 and 5.2.)

A matrix is worked on by its columns, each a row in memory. A reflection H = I - τ v vᵀ makes numbers 0: v is
a row of its own, 0 before the place where it begins, 1 there.
"""

from __future__ import annotations

from ...ir.args import Rows
from ...ir.ops import Ops
from ...ir.uop import UOp
from ..writing import Int, Program
from .layout import Lanes
from .tiles import copy_in, fill, least_square

#: Rows that a reflection changes together: what it reads of v serves all of them.
TOGETHER = 4


def vectors_from(rows: Rows, lanes: int, first: UOp) -> tuple[UOp, int]:
    """The first and the last (exclusive) of the vectors of a row that hold something from a column on."""
    return first >> (lanes.bit_length() - 1), rows.columns // lanes


def reflector(
    p: Program, out: UOp, source: UOp, v: UOp, first: UOp, rows: Rows, lanes: int
) -> tuple[UOp, UOp]:
    """Write v, of which the memory is 0, such that H makes 0 of what a row has behind column `first`:
    (what H makes of the number there, τ)."""
    begin, end = vectors_from(rows, lanes, first)
    shift = lanes.bit_length() - 1
    with p.loop(begin, end) as c:
        p.store(out, v + (c << shift), p.load(out, source + (c << shift), lanes))
    with p.loop(begin << shift, first + 1) as j:  # what the first vector has before it
        p.store(out, v + j, p.number(0.0))
    head = p.load(out, source + first)
    total = p.accumulator(p.number(0.0, lanes))
    with p.loop(begin, end) as c:
        values = p.load(out, v + (c << shift), lanes)
        p.assign(total, p.fma(values, values, total))
    rest = p.let(p.sum_of_lanes(total))
    none = p.let(rest <= least_square(p))
    norm = p.let(p.sqrt(p.fma(head, head, rest)))
    made = p.let(none.where(head, (head < 0.0).where(norm, -norm)))
    scale = p.let(none.where(0.0, 1.0 / (head - made)))
    tau = p.let(none.where(0.0, (made - head) / made))
    factor = p.let(p.splat(scale, lanes))
    with p.loop(begin, end) as c:
        p.store(out, v + (c << shift), p.load(out, v + (c << shift), lanes) * factor)
    p.store(out, v + first, p.number(1.0))
    return made, tau


def reflect(
    p: Program,
    out: UOp,
    place: UOp,
    count: tuple[Int, Int],
    v: UOp,
    tau: UOp,
    first: UOp,
    rows: Rows,
    lanes: int,
) -> None:
    """H of the rows with these numbers, of which `place` is where number 0 begins; v begins at `first`."""
    begin, end = vectors_from(rows, lanes, first)
    shift = lanes.bit_length() - 1

    def some(number: UOp, many: int) -> None:
        row = p.let(place + number * rows.stride)
        totals = [p.accumulator(p.number(0.0, lanes)) for _ in range(many)]
        with p.loop(begin, end) as c:
            at = p.let(c << shift)
            along = p.load(out, v + at, lanes)
            for r, total in enumerate(totals):
                p.assign(total, p.fma(p.load(out, row + at + r * rows.stride, lanes), along, total))
        factors = [p.let(p.splat(-tau * p.sum_of_lanes(total), lanes)) for total in totals]
        with p.loop(begin, end) as c:
            at = p.let(c << shift)
            along = p.load(out, v + at, lanes)
            for r, factor in enumerate(factors):
                place_of = p.let(row + at + r * rows.stride)
                p.store(out, place_of, p.fma(along, factor, p.load(out, place_of, lanes)))

    p.tiles(*count, TOGETHER, some)


def product(
    p: Program,
    out: UOp,
    place: UOp,
    height: int,
    v: UOp,
    taus: UOp,
    steps: int,
    shift: int,
    rows: Rows,
    lanes: int,
) -> None:
    """Rows that are the columns of H₀ H₁ ⋯, so many of them; reflection k begins at column k + shift."""
    fill(p, out, place, height * rows.stride)
    with p.loop(0, height) as r:
        p.store(out, place + r * rows.stride + r, p.number(1.0))
    with p.loop(0, steps) as n:
        k = p.let(steps - 1 - n)
        first = p.let(k + shift)
        tau = p.load(out, taus + k)
        with p.when(tau.alu(Ops.CMPNE, p.number(0.0))):
            reflect(
                p, out, place, (first, p.integer(height)), p.let(v + k * rows.stride), tau, first, rows, lanes
            )


def qr_size(height: int, width: int, columns: int) -> int:
    """The columns of R, those of Q, the reflections and their τ."""
    steps = min(height, width)
    return (width + columns + steps) * Rows.of(height).stride + steps


def qr(
    p: Program, out: UOp, base: UOp, source: UOp, read: UOp, height: int, width: int, columns: int
) -> None:
    """Of Aᵀ: Rᵀ, whose rows have numbers without meaning behind the diagonal, and so many columns of Q."""
    rows, steps = Rows.of(height), min(height, width)
    lanes = Lanes.of(p.target, p.dtype.itemsize, rows.group).lanes
    stride = rows.stride
    q = p.let(base + width * stride)
    vectors = p.let(q + columns * stride)
    taus = p.let(vectors + steps * stride)
    copy_in(p, source, read, out, base, width, rows)
    fill(p, out, vectors, steps * stride)
    with p.loop(0, steps) as k:
        v = p.let(vectors + k * stride)
        made, tau = reflector(p, out, p.let(base + k * stride), v, k, rows, lanes)
        p.store(out, base + k * stride + k, made)
        p.store(out, taus + k, tau)
        reflect(p, out, base, (k + 1, p.integer(width)), v, tau, k, rows, lanes)
    product(p, out, q, columns, vectors, taus, steps, 0, rows, lanes)

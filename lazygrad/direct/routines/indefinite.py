"""LDLᵀ of symmetric matrices that need not be definite, and solutions by it, laid out as LAPACK's `sytrf`.

The pivoting of Bunch and Kaufman: a block of D is one number of the diagonal, or two by two where no single
one is large enough beside its column. (Bunch and Kaufman, Some stable methods for calculating inertia and
solving symmetric linear systems, 1977; Golub and Van Loan, Matrix Computations, 4.4.)
"""

from __future__ import annotations

import math

from ...ir.args import Rows
from ...ir.ops import Ops
from ...ir.uop import UOp
from ..writing import Int, Program
from .layout import Lanes
from .rotations import swap_rows
from .tiles import copy_in, fill, minus

#: A pivot is one number if it is so large beside the greatest of its column: the bound by which one step with
#: two columns lets numbers grow as two steps with one do.
LARGE = (1 + math.sqrt(17)) / 8
#: Rows that a step changes together: what it reads of its own row serves all of them.
TOGETHER = 4


def ldl_size(size: int) -> int:
    """The columns of L and D, the exchanges, which pivot is 0; then two columns, what a step skips."""
    return (size + 2) * Rows.of(size).stride + size + 2


def ldl(p: Program, out: UOp, base: UOp, source: UOp, read: UOp, size: int) -> None:
    """Row k holds column k of L behind its diagonal, which holds D, as does the place behind it in the first
    of two columns of a block. Before the diagonal are numbers without meaning.

    Then the row (from 1 on) that each step took, negative for both of a block's; 0, or the number of the
    first pivot that is 0 or NaN. The upper triangle of the source is read: column k of the matrix in row k.
    """
    rows = Rows.of(size)
    lanes = Lanes.of(p.target, p.dtype.itemsize, rows.group).lanes
    stride = rows.stride
    pivots = p.let(base + size * stride)
    failed = p.let(pivots + size)
    skip = p.let(failed + 1)
    columns = (p.let(skip + 1), p.let(skip + 1 + stride))
    copy_in(p, source, read, out, base, size, rows)
    fill(p, out, columns[0], 2 * stride)
    p.store(out, failed, p.number(0.0))
    p.store(out, skip, p.number(0.0))
    with p.loop(0, size) as k:
        skipped = p.load(out, skip)
        p.store(out, skip, p.number(0.0))
        with p.when(skipped.eq(p.number(0.0))):
            at, two = _pivot(p, out, base, stride, k, size)
            _exchange(p, out, base, stride, k, p.let(two.where(k + 1, k)), at, size)
            with p.when(two):
                p.store(out, skip, p.number(1.0))
                _store_pivots(p, out, pivots, k, p.float_of(-1 - at), 2)
                _two_columns(p, out, base, k, columns, size, rows, lanes)
            with p.when(two.alu(Ops.CMPNE, UOp.const(two.dtype, True))):
                _store_pivots(p, out, pivots, k, p.float_of(at + 1), 1)
                _one_column(p, out, base, k, columns, failed, size, rows, lanes)


def _store_pivots(p: Program, out: UOp, pivots: UOp, k: UOp, value: UOp, count: int) -> None:
    for n in range(count):
        p.store(out, pivots + k + n, value)


def _greatest(
    p: Program, out: UOp, place: UOp, step: int, first: Int, last: Int, start: UOp | None = None
) -> tuple[UOp, UOp]:
    """(the size of the greatest number from `first` to below `last`, where it is)."""
    best = p.accumulator(p.number(0.0) if start is None else start)
    at = p.accumulator(p.integer(first))
    with p.loop(first, last) as i:
        value = p.let(p.abs(p.load(out, place + i * step)))
        better = p.let(best < value)
        p.assign_all({at: better.where(i, at), best: better.where(value, best)})
    return p.let(best + 0.0), p.let(at + 0)


def _pivot(p: Program, out: UOp, base: UOp, stride: int, k: UOp, size: int) -> tuple[UOp, UOp]:
    """(the row that changes places with row k, or with row k + 1 where the block is two by two; whether it
    is). A column of zeros or NaN is taken as it stands."""
    row = p.let(base + k * stride)
    own = p.let(p.abs(p.load(out, row + k)))
    column, found = _greatest(p, out, row, 1, p.let(k + 1), p.integer(size))
    other = p.let((found < size).where(found, k))  # there is no column behind the last
    theirs = p.let(base + other * stride)
    along, _ = _greatest(p, out, p.let(base + other), stride, k, other)
    along, _ = _greatest(p, out, theirs, 1, p.let(other + 1), p.integer(size), along)
    small = p.let((own < column * LARGE) & (own * along < column * column * LARGE))
    diagonal = p.let(p.abs(p.load(out, theirs + other)))
    two = p.let(small & (diagonal < along * LARGE))
    return p.let(small.where(other, k)), two


def _exchange(
    p: Program, out: UOp, base: UOp, stride: int, k: UOp, first: UOp, second: UOp, size: int
) -> None:
    """Rows and columns `first` and `second` of what is left change places; k is the row of the step."""

    def swap(one: UOp, other: UOp) -> None:
        a, b = p.load(out, one), p.load(out, other)
        p.store(out, one, b)
        p.store(out, other, a)

    with p.when(first.alu(Ops.CMPNE, second)):
        row, other = p.let(base + first * stride), p.let(base + second * stride)
        with p.loop(p.let(second + 1), size) as i:
            swap(row + i, other + i)
        with p.loop(p.let(first + 1), second) as i:
            swap(row + i, base + i * stride + second)
        swap(row + first, other + second)
        with p.when(first.alu(Ops.CMPNE, k)):
            swap(base + k * stride + first, base + k * stride + second)


def _one_column(
    p: Program, out: UOp, base: UOp, k: UOp, columns: tuple[UOp, UOp], failed: UOp, size: int, rows: Rows,
    lanes: int,
) -> None:  # fmt: skip
    row = p.let(base + k * rows.stride)
    top = p.load(out, row + k)
    usable = p.let(p.number(0.0) < p.abs(top))
    inverse = p.let(top.eq(p.number(0.0)).where(0.0, 1.0 / top))
    before = p.load(out, failed)
    p.store(out, failed, (usable | (p.number(0.0) < before)).where(before, p.float_of(k + 1)))
    shift = lanes.bit_length() - 1
    begin = p.let((k + 1) >> shift)
    with p.loop(begin, rows.columns // lanes) as c:
        at = p.let(c << shift)
        p.store(out, columns[0] + at, p.load(out, row + at, lanes) * p.splat(inverse, lanes))
    _eliminate(p, out, base, k, [row], columns, p.let(k + 1), size, rows, lanes)
    p.store(out, row + k, top)


def _two_columns(
    p: Program, out: UOp, base: UOp, k: UOp, columns: tuple[UOp, UOp], size: int, rows: Rows, lanes: int
) -> None:
    """Both of L, by the inverse of a block whose number beside the diagonal is its greatest."""
    row = p.let(base + k * rows.stride)
    under = p.let(row + rows.stride)
    top, beside, low = p.load(out, row + k), p.load(out, row + k + 1), p.load(out, under + k + 1)
    d1, d2 = p.let(low / beside), p.let(top / beside)
    scale = p.let(1.0 / (d1 * d2 - 1.0) / beside)
    by_first, by_second, by_both = (p.let(p.splat(x, lanes)) for x in (scale * d1, scale * d2, -scale))
    shift = lanes.bit_length() - 1
    with p.loop(p.let((k + 2) >> shift), rows.columns // lanes) as c:
        at = p.let(c << shift)
        a, b = p.load(out, row + at, lanes), p.load(out, under + at, lanes)
        p.store(out, columns[0] + at, p.fma(by_first, a, by_both * b))
        p.store(out, columns[1] + at, p.fma(by_second, b, by_both * a))
    _eliminate(p, out, base, k, [row, under], columns, p.let(k + 2), size, rows, lanes)
    for place, value in ((row + k, top), (row + k + 1, beside), (under + k + 1, low)):
        p.store(out, place, value)


def _eliminate(
    p: Program, out: UOp, base: UOp, k: UOp, given: list[UOp], columns: tuple[UOp, UOp], first: UOp,
    size: int, rows: Rows, lanes: int,
) -> None:  # fmt: skip
    """What the step's columns of L times D Lᵀ are is taken from the rows behind; then they replace D Lᵀ."""
    stride, shift = rows.stride, lanes.bit_length() - 1
    end = rows.columns // lanes

    def some(i: UOp, many: int) -> None:
        place = p.let(base + i * stride)
        factors = [
            [p.load(out, column + i + r) for column, _ in zip(columns, given, strict=False)]
            for r in range(many)
        ]
        with p.loop(p.let(i >> shift), end) as c:
            at = p.let(c << shift)
            taken = [p.load(out, row + at, lanes) for row in given]
            for r in range(many):
                there = p.let(place + at + r * stride)
                value = p.load(out, there, lanes)
                for factor, line in zip(factors[r], taken, strict=True):
                    value = minus(p, value, factor, line)
                p.store(out, there, value)

    p.tiles(first, size, TOGETHER, some)
    with p.loop(p.let(first >> shift), end) as c:
        at = p.let(c << shift)
        for row, column in zip(given, columns, strict=False):
            p.store(out, row + at, p.load(out, column + at, lanes))


# *** solutions


def ldl_solve_size(size: int, count: int) -> int:
    """Rows of X, and what a step skips."""
    return size * Rows.of(count).stride + 1


def ldl_solve(
    p: Program, out: UOp, base: UOp, factors: UOp, read: UOp, pivots: UOp, steps: UOp, right: UOp,
    columns: UOp, size: int, count: int,
) -> None:  # fmt: skip
    """The X with A X = B, from the columns of L and D in rows, and the exchanges, from 1 on."""
    rows = Rows.of(count)
    lanes = Lanes.of(p.target, p.dtype.itemsize, rows.group).lanes
    skip = p.let(base + size * rows.stride)
    copy_in(p, right, columns, out, base, size, rows)

    def each(forward: bool) -> None:
        p.store(out, skip, p.number(0.0))
        with p.loop(0, size) as n:
            k = n if forward else p.let(size - 1 - n)
            skipped, pivot = p.load(out, skip), p.load(pivots, steps + k)
            p.store(out, skip, p.number(0.0))
            pair = p.let((pivot < 0.0) & ((k < size - 1) if forward else (p.integer(0) < k)))
            wanted = p.let(p.index_of(p.abs(pivot)) - 1)
            other = p.let(((wanted >= 0) & (wanted < size)).where(wanted, k))
            with p.when(skipped.eq(p.number(0.0))):
                with p.when(pair):
                    p.store(out, skip, p.number(1.0))
                    first = k if forward else p.let(k - 1)
                    _step(p, out, base, factors, read, first, 2, other, size, rows, lanes, forward)
                with p.when(pair.alu(Ops.CMPNE, UOp.const(pair.dtype, True))):
                    _step(p, out, base, factors, read, k, 1, other, size, rows, lanes, forward)

    each(True)
    each(False)


def _step(
    p: Program, out: UOp, base: UOp, factors: UOp, read: UOp, k: UOp, width: int, other: UOp, size: int,
    rows: Rows, lanes: int, forward: bool,
) -> None:  # fmt: skip
    """A block of `width` columns from k on: L⁻¹ and D⁻¹, or (backwards) L⁻ᵀ, of the rows of X."""
    stride, shift = rows.stride, lanes.bit_length() - 1
    last = p.let(k + width - 1)
    lines = [p.let(base + (k + n) * stride) for n in range(width)]
    given = [p.let(read + (k + n) * size) for n in range(width)]
    behind = p.let(k + width)
    exchanged = p.let(base + other * stride)

    def swap() -> None:
        with p.when(other.alu(Ops.CMPNE, last)):
            swap_rows(p, out, lines[-1], exchanged, rows, lanes)

    if not forward:
        with p.loop(0, rows.columns >> shift) as c:
            at = p.let(c << shift)
            totals = [p.accumulator(p.load(out, line + at, lanes)) for line in lines]
            with p.loop(behind, p.integer(size)) as i:
                value = p.load(out, base + i * stride + at, lanes)
                for total, row in zip(totals, given, strict=True):
                    p.assign(total, minus(p, total, p.load(factors, row + i), value))
            for total, line in zip(totals, lines, strict=True):
                p.store(out, line + at, total)
        swap()
        return
    swap()
    with p.loop(behind, p.integer(size)) as i:
        scales = [p.load(factors, row + i) for row in given]
        with p.loop(0, rows.columns >> shift) as c:
            at = p.let(c << shift)
            value = p.load(out, base + i * stride + at, lanes)
            for scale, line in zip(scales, lines, strict=True):
                value = minus(p, value, scale, p.load(out, line + at, lanes))
            p.store(out, base + i * stride + at, value)
    top = p.load(factors, given[0] + k)
    if width == 1:
        rates = [[p.let(p.splat(1.0 / top, lanes))]]
    else:
        beside, low = p.load(factors, given[0] + k + 1), p.load(factors, given[1] + k + 1)
        d1, d2 = p.let(low / beside), p.let(top / beside)
        scale = p.let(1.0 / (d1 * d2 - 1.0) / beside)
        one, both, two = (p.let(p.splat(x, lanes)) for x in (scale * d1, -scale, scale * d2))
        rates = [[one, both], [both, two]]
    with p.loop(0, rows.columns >> shift) as c:
        at = p.let(c << shift)
        values = [p.load(out, line + at, lanes) for line in lines]
        for line, by in zip(lines, rates, strict=True):
            total = by[0] * values[0]
            if width == 2:
                total = p.fma(by[1], values[1], total)
            p.store(out, line + at, total)

"""Singular values.

Reflections leave two diagonals, and rotations make the second one 0: the implicit QR method, with the shifts
of Golub and Reinsch (Singular value decomposition and least squares solutions, 1970; Golub and Van Loan,
Matrix Computations, 8.6). As in `spectra`, a whole sweep of rotations is found before vectors are rotated.
"""

from __future__ import annotations

from typing import NamedTuple

from ...dtype import dtypes
from ...ir.args import Rows
from ...ir.uop import UOp
from ..writing import Program
from .reflections import TOGETHER, product, reflector, vectors_from
from .rotations import greatest, hypotenuse, put_in_order, rotate, sweeps
from .spectra import lanes_of
from .tiles import copy_in, fill


def svd_size(height: int, width: int, columns: int) -> int:
    """Vectors on both sides, singular values, whether it failed; then what `svd` works in."""
    tall, wide = Rows.of(height).stride, Rows.of(width).stride
    results = columns * tall + (width * wide if columns else 0) + width + 1
    return results + height * wide + width * tall + width * wide + wide + tall + 7 * width + 1


class _Bidiagonal(NamedTuple):
    """Where `svd` keeps what it reduces to two diagonals: A, and the reflections of both sides."""

    height: int
    width: int
    tall: Rows
    wide: Rows
    by_tall: int  #: lanes along a column of A
    by_wide: int  #: and along a row
    a: UOp
    lefts: UOp
    rights: UOp
    y: UOp  #: what a reflection from the left takes from the rows
    column: UOp
    values: UOp
    beside: UOp
    taus: UOp
    other_taus: UOp


def svd(
    p: Program, out: UOp, base: UOp, source: UOp, read: UOp, height: int, width: int, columns: int
) -> None:
    """Of a matrix that is not wide: so many columns of U and those of V in rows, the singular values from the
    greatest on, and how many there are not; 0 if all are.

    columns  `width` at least, or 0: then V is left out too
    """
    tall, wide = Rows.of(height), Rows.of(width)
    by_tall, by_wide = lanes_of(p, tall), lanes_of(p, wide)
    right = p.let(base + columns * tall.stride)
    values = p.let(right + (width * wide.stride if columns else 0))
    failed = p.let(values + width)
    a = p.let(failed + 1)
    lefts = p.let(a + height * wide.stride)
    rights = p.let(lefts + width * tall.stride)
    y = p.let(rights + width * wide.stride)
    column = p.let(y + wide.stride)
    taus = p.let(column + tall.stride)
    other_taus = p.let(taus + width)
    beside = p.let(taus + 2 * width + 1)  # before it is one that nobody reads
    angles = [p.let(beside + n * width) for n in range(1, 5)]
    m = _Bidiagonal(
        height, width, tall, wide, by_tall, by_wide, a, lefts, rights, y, column, values, beside, taus,
        other_taus,
    )  # fmt: skip
    copy_in(p, source, read, out, a, height, wide)
    fill(p, out, lefts, width * tall.stride + width * wide.stride + wide.stride + tall.stride)
    with p.loop(0, width - 1) as k:
        v = _left_reflection(p, out, m, k)
        row = _taken_from_row(p, out, m, k, v)
        _right_reflection(p, out, m, k, v, row)
    _left_reflection(p, out, m, p.integer(width - 1))
    p.store(out, beside + (width - 1), p.number(0.0))
    tables = [(base, tall, by_tall), (right, wide, by_wide)] if columns else []
    if columns:
        product(p, out, base, columns, lefts, taus, width, 0, tall, by_tall)
        product(p, out, right, width, rights, other_taus, width - 1, 1, wide, by_wide)
    p.store(out, failed, p.number(0.0))
    norm = greatest(p, out, values, beside, width)
    _qr(p, out, tables, values, beside, angles, failed, norm, width)
    put_in_order(p, out, values, width, False, tables)


def _left_reflection(p: Program, out: UOp, m: _Bidiagonal, k: UOp) -> UOp:
    """Where the vector v of the reflection is that makes column k 0 below the diagonal."""
    with p.loop(k, m.height) as i:
        p.store(out, m.column + i, p.load(out, m.a + i * m.wide.stride + k))
    v = p.let(m.lefts + k * m.tall.stride)
    made, tau = reflector(p, out, m.column, v, k, m.tall, m.by_tall)
    p.store(out, m.values + k, made)
    p.store(out, m.taus + k, tau)
    return v


def _taken_from_row(p: Program, out: UOp, m: _Bidiagonal, k: UOp, v: UOp) -> UOp:
    """y = τ vᵀ A, of which that reflection takes v yᵀ from A; taken from row k, whose place is the result."""
    lanes, stride = m.by_wide, m.wide.stride
    shift = lanes.bit_length() - 1
    tau = p.load(out, m.taus + k)
    begin, end = vectors_from(m.wide, lanes, k)

    def some(c: UOp, many: int) -> None:
        at = p.let(c << shift)
        totals = [p.accumulator(p.number(0.0, lanes)) for _ in range(many)]
        with p.loop(k, m.height) as i:
            scale = p.let(p.splat(p.load(out, v + i), lanes))
            for n, total in enumerate(totals):
                value = p.load(out, m.a + i * stride + at + n * lanes, lanes)
                p.assign(total, p.fma(scale, value, total))
        for n, total in enumerate(totals):
            p.store(out, m.y + at + n * lanes, total * p.splat(tau, lanes))

    p.tiles(begin, end, 8 if p.target.vector_registers >= 32 else 4, some)
    row = p.let(m.a + k * stride)
    with p.loop(begin, end) as c:
        at = p.let(c << shift)
        p.store(out, row + at, p.load(out, row + at, lanes) - p.load(out, m.y + at, lanes))
    return row


def _right_reflection(p: Program, out: UOp, m: _Bidiagonal, k: UOp, v: UOp, row: UOp) -> None:
    """The reflection that makes row k 0 behind the number beside the diagonal. It goes over the rows below in
    the walk that takes v yᵀ from them."""
    lanes, stride = m.by_wide, m.wide.stride
    shift = lanes.bit_length() - 1
    first = p.let(k + 1)
    other = p.let(m.rights + k * stride)
    made, other_tau = reflector(p, out, row, other, first, m.wide, lanes)
    p.store(out, m.beside + k, made)
    p.store(out, m.other_taus + k, other_tau)
    begin, end = vectors_from(m.wide, lanes, first)

    def some(i: UOp, many: int) -> None:
        place = p.let(m.a + i * stride)
        ours = [p.let(p.splat(-p.load(out, v + i + r), lanes)) for r in range(many)]
        totals = [p.accumulator(p.number(0.0, lanes)) for _ in range(many)]
        with p.loop(begin, end) as c:
            at = p.let(c << shift)
            gone, now = p.load(out, m.y + at, lanes), p.load(out, other + at, lanes)
            for r, total in enumerate(totals):
                there = p.let(place + at + r * stride)
                value = p.let(p.fma(ours[r], gone, p.load(out, there, lanes)))
                p.store(out, there, value)
                p.assign(total, p.fma(value, now, total))
        scales = [p.let(p.splat(-other_tau * p.sum_of_lanes(total), lanes)) for total in totals]
        with p.loop(begin, end) as c:
            at = p.let(c << shift)
            now = p.load(out, other + at, lanes)
            for r, scale in enumerate(scales):
                there = p.let(place + at + r * stride)
                p.store(out, there, p.fma(now, scale, p.load(out, there, lanes)))

    p.tiles(first, m.height, TOGETHER, some)


def _qr(
    p: Program, out: UOp, tables: list[tuple[UOp, Rows, int]], diagonal: UOp, beside: UOp, angles: list[UOp],
    failed: UOp, norm: UOp, size: int,
) -> None:  # fmt: skip
    """The numbers beside the diagonal become 0, one after another from the last on."""
    eps = float(dtypes.finfo(p.dtype).eps)
    limit = p.let(norm * eps)
    count = sweeps(p, norm)
    with p.loop(0, size) as t:
        high = p.let(size - 1 - t)
        p.store(out, failed, p.load(out, failed) + 1.0)  # taken back when it is found
        goes_on = p.let(p.load(out, failed))
        with p.loop(0, count), p.when(p.load(out, failed).eq(goes_on)):
            found, cancels = p.accumulator(p.integer(0)), p.accumulator(p.integer(0))
            with p.loop(1, high + 1) as j:
                before = p.let(p.abs(p.load(out, diagonal + j - 1)))
                around = p.let((before + p.abs(p.load(out, diagonal + j))) * eps)
                apart = p.let(p.abs(p.load(out, beside + j - 1)) <= around)
                here = p.let(apart | (before <= limit))
                p.assign(found, here.where(j, found))
                p.assign(cancels, here.where(apart.where(p.integer(0), p.integer(1)), cancels))
            low = p.let(found + 0)
            with p.when(p.let(cancels + 0).eq(1)):
                _cancel(p, out, diagonal, beside, low, high, tables[:1])
            with p.when(low.eq(high)):
                p.store(out, failed, goes_on - 1.0)
            with p.when(low < high):
                _qr_sweep(p, out, diagonal, beside, angles, low, high)
                pairs = ((angles[2], angles[3]), (angles[0], angles[1]))
                for (place, rows, lanes), (cos, sin) in zip(tables, pairs, strict=False):
                    rotate(p, out, place, low, high, cos, sin, rows, lanes, False)
        value = p.load(out, diagonal + high)
        with p.when(value < 0.0):
            p.store(out, diagonal + high, -value)
            for place, rows, lanes in tables[1:]:
                row, shift = p.let(place + high * rows.stride), lanes.bit_length() - 1
                with p.loop(0, rows.columns >> shift) as c:
                    at = p.let(row + (c << shift))
                    p.store(out, at, -p.load(out, at, lanes))


def _cancel(
    p: Program, out: UOp, diagonal: UOp, beside: UOp, low: UOp, high: UOp,
    tables: list[tuple[UOp, Rows, int]],
) -> None:  # fmt: skip
    """Number low - 1 on the diagonal counts as 0: rotations with later rows take away what is beside it."""
    above = p.let(low - 1)
    extra = p.accumulator(p.load(out, beside + above))
    p.store(out, beside + above, p.number(0.0))
    p.store(out, diagonal + above, p.number(0.0))
    with p.loop(low, high + 1) as i:
        length, c, s = hypotenuse(p, p.load(out, diagonal + i), extra)
        p.store(out, diagonal + i, length)
        value = p.load(out, beside + i)
        p.store(out, beside + i, c * value)
        for place, rows, lanes in tables:
            one, other = p.let(place + above * rows.stride), p.let(place + i * rows.stride)
            cos, sin = p.let(p.splat(c, lanes)), p.let(p.splat(s, lanes))
            shift = lanes.bit_length() - 1
            with p.loop(0, rows.columns >> shift) as n:
                at = p.let(n << shift)
                x, y = p.load(out, one + at, lanes), p.load(out, other + at, lanes)
                p.store(out, one + at, p.fma(cos, x, -(sin * y)))
                p.store(out, other + at, p.fma(cos, y, sin * x))
        p.assign(extra, p.let(-(s * value)))


def _qr_sweep(
    p: Program, out: UOp, diagonal: UOp, beside: UOp, angles: list[UOp], low: UOp, high: UOp
) -> None:
    """Rotations from above, from the right and from the left in turns, with a shift from the last rows."""
    right_cos, right_sin, left_cos, left_sin = angles
    first, y = p.load(out, diagonal + low), p.load(out, diagonal + high - 1)
    z, h = p.load(out, diagonal + high), p.load(out, beside + high - 1)
    before = p.load(out, beside + p.let((high - 2 < 0).where(p.integer(0), high - 2)))
    g = p.let((low < high - 1).where(before, p.number(0.0)))
    half = p.let(((y - z) * (y + z) + (g - h) * (g + h)) / (h * y * 2.0))
    length = p.let(p.sqrt(p.fma(half, half, p.number(1.0))))
    rest = y / (half + (half < 0.0).where(-length, length)) - h
    f = p.accumulator(((first - z) * (first + z) + h * rest) / first)
    x, c, s = p.accumulator(first), p.accumulator(p.number(1.0)), p.accumulator(p.number(1.0))
    with p.loop(low, high) as j:
        value, following = p.load(out, beside + j), p.load(out, diagonal + j + 1)
        h, g = p.let(s * value), p.let(c * value)
        length, by_f, by_h = hypotenuse(p, f, h)
        p.store(out, beside + j - 1, length)
        p.store(out, right_cos + j, by_f)
        p.store(out, right_sin + j, by_h)
        f_now, g = p.let(p.fma(x, by_f, g * by_h)), p.let(g * by_f - x * by_h)
        h, y = p.let(following * by_h), p.let(following * by_f)
        length, by_f, by_h = hypotenuse(p, f_now, h)
        p.store(out, diagonal + j, length)
        p.store(out, left_cos + j, by_f)
        p.store(out, left_sin + j, by_h)
        f_next, x_next = p.let(p.fma(by_f, g, by_h * y)), p.let(by_f * y - by_h * g)
        p.assign_all({f: f_next, x: x_next, c: by_f, s: by_h})
    p.store(out, beside + low - 1, p.number(0.0))
    p.store(out, beside + high - 1, f)
    p.store(out, diagonal + high, x)

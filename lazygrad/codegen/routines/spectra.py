"""Eigenvalues of symmetric matrices, and singular values.

Reflections leave two diagonals, and rotations make the second one 0: the implicit QL and QR methods, with the
shifts of Wilkinson, and of Golub and Reinsch (Singular value decomposition and least squares solutions, 1970;
Golub and Van Loan, Matrix Computations, 8.3 and 8.6). A whole sweep of rotations is found before the rows of
vectors are rotated: these then pass through registers once.
"""

from __future__ import annotations

from ...dtype import dtypes
from ...ir.ops import Ops
from ...ir.uop import UOp
from .layout import Lanes, Rows
from .reflections import TOGETHER, product, reflector, vectors_from
from .rotations import greatest, hypotenuse, put_in_order, rotate, turns
from .tiles import copy_in, fill, minus
from .writing import Program


def _lanes(p: Program, rows: Rows) -> int:
    return Lanes.of(p.target, p.dtype.itemsize, rows.group).lanes


# *** symmetric matrices


def eigh_size(size: int, vectors: int) -> int:
    """Eigenvectors, eigenvalues, whether it failed; then the matrix, the reflections, what goes with them."""
    return (2 * size + vectors + 2) * Rows.of(size).stride + 5 * size + 2


def eigh(p: Program, out: UOp, base: UOp, source: UOp, read: UOp, size: int, found: int) -> None:
    """Eigenvectors in rows, then eigenvalues from the least on, then how many there are not; 0 if all are.

    found  how many eigenvectors: all or none

    The whole of the matrix is read.
    """
    rows = Rows.of(size)
    lanes, stride = _lanes(p, rows), rows.stride
    values = p.let(base + found * stride)
    failed = p.let(values + size)
    a = p.let(failed + 1)
    vectors = p.let(a + size * stride)
    w = p.let(vectors + size * stride)
    q = p.let(w + stride)
    beside, taus, cos = (p.let(q + stride + n * size) for n in range(3))
    sin = p.let(cos + size)
    copy_in(p, source, read, out, a, size, rows)
    fill(p, out, vectors, (size + 2) * stride)
    with p.loop(0, size - 1) as k:
        _tridiagonal_step(p, out, a, vectors, w, q, values, beside, taus, k, size, rows, lanes)
    last = size - 1
    p.store(out, values + last, p.load(out, a + (last * stride + last)))
    p.store(out, beside + last, p.number(0.0))
    tables = [(base, rows, lanes)] if found else []
    if found:
        product(p, out, base, size, p.let(vectors + stride), taus, size - 1, 1, rows, lanes)
    p.store(out, failed, p.number(0.0))
    norm = greatest(p, out, values, beside, size)
    _ql(p, out, tables, values, beside, cos, sin, failed, norm, size)
    put_in_order(p, out, values, size, True, tables)


def _tridiagonal_step(
    p: Program, out: UOp, a: UOp, vectors: UOp, w: UOp, q: UOp, diagonal: UOp, beside: UOp, taus: UOp, k: UOp,
    size: int, rows: Rows, lanes: int,
) -> None:  # fmt: skip
    """Row k gets its two numbers, and a reflection H that the rows after it wait for.

    H A H = A - v wᵀ - w vᵀ. That of the step before is done here, in the walk that multiplies with this v.
    """
    stride, shift = rows.stride, lanes.bit_length() - 1
    old, new, row = (
        p.let(vectors + k * stride), p.let(vectors + (k + 1) * stride), p.let(a + k * stride)
    )  # fmt: skip
    begin, end = vectors_from(rows, lanes, k)
    along, across = p.load(out, old + k), p.load(out, w + k)
    with p.loop(begin, end) as c:
        at = p.let(c << shift)
        value = minus(p, p.load(out, row + at, lanes), along, p.load(out, w + at, lanes))
        p.store(out, row + at, minus(p, value, across, p.load(out, old + at, lanes)))
    p.store(out, diagonal + k, p.load(out, row + k))
    first = p.let(k + 1)
    made, tau = reflector(p, out, row, new, first, rows, lanes)
    p.store(out, beside + k, made)
    p.store(out, taus + k, tau)
    begin, end = vectors_from(rows, lanes, first)

    def some(i: UOp, many: int) -> None:
        place = p.let(a + i * stride)
        ours = [p.let(p.splat(-p.load(out, old + i + r), lanes)) for r in range(many)]
        theirs = [p.let(p.splat(-p.load(out, w + i + r), lanes)) for r in range(many)]
        totals = [p.accumulator(p.number(0.0, lanes)) for _ in range(many)]
        with p.loop(begin, end) as c:
            at = p.let(c << shift)
            now, before, beyond = (p.load(out, line + at, lanes) for line in (new, old, w))
            for r in range(many):
                there = p.let(place + at + r * stride)
                value = p.fma(ours[r], beyond, p.load(out, there, lanes))
                value = p.let(p.fma(theirs[r], before, value))
                p.store(out, there, value)
                p.assign(totals[r], p.fma(value, now, totals[r]))
        for r, total in enumerate(totals):
            p.store(out, q + i + r, tau * p.sum_of_lanes(total))

    p.tiles(first, size, TOGETHER, some)
    total = p.accumulator(p.number(0.0, lanes))
    with p.loop(begin, end) as c:
        at = p.let(c << shift)
        p.assign(total, p.fma(p.load(out, q + at, lanes), p.load(out, new + at, lanes), total))
    half = p.let(p.sum_of_lanes(total) * tau * 0.5)
    with p.loop(begin, end) as c:
        at = p.let(c << shift)
        p.store(out, w + at, minus(p, p.load(out, q + at, lanes), half, p.load(out, new + at, lanes)))


def _ql(
    p: Program, out: UOp, tables: list[tuple[UOp, Rows, int]], diagonal: UOp, beside: UOp, cos: UOp, sin: UOp,
    failed: UOp, norm: UOp, size: int,
) -> None:  # fmt: skip
    """The numbers beside the diagonal become 0, one after another from the first on."""
    eps = float(dtypes.finfo(p.dtype).eps)
    tiny = p.let(norm * (eps * eps))
    count = turns(p, norm)
    with p.loop(0, size) as low:
        p.store(out, failed, p.load(out, failed) + 1.0)  # taken back when it is found
        goes_on = p.let(p.load(out, failed))
        with p.loop(0, count), p.when(p.load(out, failed).eq(goes_on)):
            high = p.accumulator(p.integer(size - 1))
            with p.loop(low, size - 1) as t:
                i = p.let(low + (size - 2) - t)
                around = p.abs(p.load(out, diagonal + i)) + p.abs(p.load(out, diagonal + i + 1))
                small = p.let(p.abs(p.load(out, beside + i)) <= p.fma(around, p.number(eps), tiny))
                p.assign(high, small.where(i, high))
            last = p.let(high + 0)
            with p.when(last.eq(low)):
                p.store(out, failed, goes_on - 1.0)
            with p.when(last.alu(Ops.CMPNE, low)):
                _ql_sweep(p, out, diagonal, beside, cos, sin, low, last)
                for place, rows, lanes in tables:
                    rotate(p, out, place, low, last, cos, sin, rows, lanes, True)


def _ql_sweep(
    p: Program, out: UOp, diagonal: UOp, beside: UOp, cos: UOp, sin: UOp, low: UOp, high: UOp
) -> None:
    """Rotations from below, with the eigenvalue of the first two rows that is nearer as a shift."""
    here, next_to = p.load(out, diagonal + low), p.load(out, beside + low)
    half = p.let((p.load(out, diagonal + low + 1) - here) / (next_to * 2.0))
    length = p.let(p.sqrt(p.fma(half, half, p.number(1.0))))
    shift = p.let(next_to / (half + (half < 0.0).where(-length, length)))
    g = p.accumulator(p.load(out, diagonal + high) - here + shift)
    s, c = p.accumulator(p.number(1.0)), p.accumulator(p.number(1.0))
    moved = p.accumulator(p.number(0.0))
    with p.loop(low, high) as t:
        i = p.let(low + high - 1 - t)
        value = p.load(out, beside + i)
        f, b = p.let(s * value), p.let(c * value)
        length, by_g, by_f = hypotenuse(p, g, f)
        p.store(out, beside + i + 1, length)
        rest = p.let(p.load(out, diagonal + i + 1) - moved)
        r = p.let(p.fma(p.load(out, diagonal + i) - rest, by_f, by_g * b * 2.0))
        added = p.let(by_f * r)
        p.store(out, diagonal + i + 1, rest + added)
        following = p.let(p.fma(by_g, r, -b))
        p.store(out, cos + i, by_g)
        p.store(out, sin + i, by_f)
        p.assign_all({s: by_f, c: by_g, moved: added, g: following})
    p.store(out, diagonal + low, p.load(out, diagonal + low) - moved)
    p.store(out, beside + low, g)
    p.store(out, beside + high, p.number(0.0))


# *** singular values


def svd_size(height: int, width: int, columns: int) -> int:
    """Vectors on both sides, singular values, whether it failed; then what `svd` works in."""
    tall, wide = Rows.of(height).stride, Rows.of(width).stride
    results = columns * tall + (width * wide if columns else 0) + width + 1
    return results + height * wide + width * tall + width * wide + wide + tall + 7 * width + 1


def svd(
    p: Program, out: UOp, base: UOp, source: UOp, read: UOp, height: int, width: int, columns: int
) -> None:
    """Of a matrix that is not wide: so many columns of U and those of V in rows, the singular values from the
    greatest on, and how many there are not; 0 if all are.

    columns  `width` at least, or 0: then V is left out too
    """
    tall, wide = Rows.of(height), Rows.of(width)
    by_tall, by_wide = _lanes(p, tall), _lanes(p, wide)
    right = p.let(base + columns * tall.stride)
    values = p.let(right + (width * wide.stride if columns else 0))
    failed = p.let(values + width)
    a = p.let(failed + 1)
    lefts = p.let(a + height * wide.stride)
    rights = p.let(lefts + width * tall.stride)
    y = p.let(rights + width * wide.stride)
    column = p.let(y + wide.stride)
    taus = p.let(column + tall.stride)
    other_taus, beside = (
        p.let(taus + width),
        p.let(taus + 2 * width + 1),
    )  # before it is one that nobody reads
    angles = [p.let(beside + n * width) for n in range(1, 5)]
    copy_in(p, source, read, out, a, height, wide)
    fill(p, out, lefts, width * tall.stride + width * wide.stride + wide.stride + tall.stride)

    def left_step(k: UOp) -> UOp:
        """The reflection that makes column k 0 below the diagonal, and in `y` what it takes from the rows."""
        with p.loop(k, height) as i:
            p.store(out, column + i, p.load(out, a + i * wide.stride + k))
        v = p.let(lefts + k * tall.stride)
        made, tau = reflector(p, out, column, v, k, tall, by_tall)
        p.store(out, values + k, made)
        p.store(out, taus + k, tau)
        return v

    shift = by_wide.bit_length() - 1
    with p.loop(0, width - 1) as k:
        v = left_step(k)
        tau = p.load(out, taus + k)
        begin, end = vectors_from(wide, by_wide, k)

        def taken(c: UOp, many: int) -> None:
            at = p.let(c << shift)
            totals = [p.accumulator(p.number(0.0, by_wide)) for _ in range(many)]
            with p.loop(k, height) as i:
                scale = p.let(p.splat(p.load(out, v + i), by_wide))
                for n, total in enumerate(totals):
                    value = p.load(out, a + i * wide.stride + at + n * by_wide, by_wide)
                    p.assign(total, p.fma(scale, value, total))
            for n, total in enumerate(totals):
                p.store(out, y + at + n * by_wide, total * p.splat(tau, by_wide))

        p.tiles(begin, end, 8 if p.target.vector_registers >= 32 else 4, taken)
        row = p.let(a + k * wide.stride)
        with p.loop(begin, end) as c:
            at = p.let(c << shift)
            p.store(out, row + at, p.load(out, row + at, by_wide) - p.load(out, y + at, by_wide))
        first = p.let(k + 1)
        other = p.let(rights + k * wide.stride)
        made, other_tau = reflector(p, out, row, other, first, wide, by_wide)
        p.store(out, beside + k, made)
        p.store(out, other_taus + k, other_tau)
        begin, end = vectors_from(wide, by_wide, first)

        def some(i: UOp, many: int) -> None:
            place = p.let(a + i * wide.stride)
            ours = [p.let(p.splat(-p.load(out, v + i + r), by_wide)) for r in range(many)]
            totals = [p.accumulator(p.number(0.0, by_wide)) for _ in range(many)]
            with p.loop(begin, end) as c:
                at = p.let(c << shift)
                gone, now = p.load(out, y + at, by_wide), p.load(out, other + at, by_wide)
                for r, total in enumerate(totals):
                    there = p.let(place + at + r * wide.stride)
                    value = p.let(p.fma(ours[r], gone, p.load(out, there, by_wide)))
                    p.store(out, there, value)
                    p.assign(total, p.fma(value, now, total))
            scales = [p.let(p.splat(-other_tau * p.sum_of_lanes(total), by_wide)) for total in totals]
            with p.loop(begin, end) as c:
                at = p.let(c << shift)
                now = p.load(out, other + at, by_wide)
                for r, scale in enumerate(scales):
                    there = p.let(place + at + r * wide.stride)
                    p.store(out, there, p.fma(now, scale, p.load(out, there, by_wide)))

        p.tiles(first, height, TOGETHER, some)
    left_step(p.integer(width - 1))
    p.store(out, beside + (width - 1), p.number(0.0))
    tables = [(base, tall, by_tall), (right, wide, by_wide)] if columns else []
    if columns:
        product(p, out, base, columns, lefts, taus, width, 0, tall, by_tall)
        product(p, out, right, width, rights, other_taus, width - 1, 1, wide, by_wide)
    p.store(out, failed, p.number(0.0))
    norm = greatest(p, out, values, beside, width)
    _qr(p, out, tables, values, beside, angles, failed, norm, width)
    put_in_order(p, out, values, width, False, tables)


def _qr(
    p: Program, out: UOp, tables: list[tuple[UOp, Rows, int]], diagonal: UOp, beside: UOp, angles: list[UOp],
    failed: UOp, norm: UOp, size: int,
) -> None:  # fmt: skip
    """The numbers beside the diagonal become 0, one after another from the last on."""
    eps = float(dtypes.finfo(p.dtype).eps)
    limit = p.let(norm * eps)
    count = turns(p, norm)
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

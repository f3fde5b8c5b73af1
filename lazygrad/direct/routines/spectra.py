"""Eigenvalues of symmetric matrices.

Reflections leave two diagonals, and rotations make the second one 0: the implicit QL method, with the shifts
of Wilkinson (Golub and Van Loan, Matrix Computations, 8.3). A whole sweep of rotations is found before the
rows of vectors are rotated: these then pass through registers once.
"""

from __future__ import annotations

from ...dtype import dtypes
from ...ir.args import Rows
from ...ir.ops import Ops
from ...ir.uop import UOp
from ..writing import Program
from .layout import Lanes
from .reflections import TOGETHER, product, reflector, vectors_from
from .rotations import greatest, hypotenuse, put_in_order, rotate, sweeps
from .tiles import copy_in, fill, minus


def lanes_of(p: Program, rows: Rows) -> int:
    """How many numbers of a row are a vector."""
    return Lanes.of(p.target, p.dtype.itemsize, rows.group).lanes


def eigh_size(size: int, vectors: int) -> int:
    """Eigenvectors, eigenvalues, whether it failed; then the matrix, the reflections, what goes with them."""
    return (2 * size + vectors + 2) * Rows.of(size).stride + 5 * size + 2


def eigh(p: Program, out: UOp, base: UOp, source: UOp, read: UOp, size: int, found: int) -> None:
    """Eigenvectors in rows, then eigenvalues from the least on, then how many there are not; 0 if all are.

    found  how many eigenvectors: all or none

    The whole of the matrix is read.
    """
    rows = Rows.of(size)
    lanes, stride = lanes_of(p, rows), rows.stride
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
    count = sweeps(p, norm)
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

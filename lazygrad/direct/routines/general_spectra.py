"""Eigenvalues of any square matrix, and its eigenvectors.

Reflections make the matrix upper Hessenberg; steps with two shifts at once make it quasi-triangular, with
blocks of one or two on its diagonal, by real numbers alone (Francis' method: Golub and Van Loan, Matrix
Computations, 7.4 and 7.5). Eigenvectors are solutions with that matrix, from the last row up (7.6.4).
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dtype import dtypes
from ...ir.args import Rows
from ...ir.uop import UOp
from ..writing import Program
from .reflections import product, reflect, reflector, vectors_from
from .rotations import TURNS
from .spectra import lanes_of
from .tiles import copy_in, fill

#: Now and then, a step takes shifts of its own: those of the matrix may lead round in circles. The numbers
#: are the customary ones (Martin, Peters, Wilkinson, The QR algorithm for real Hessenberg matrices, 1970).
EVERY, SHIFT, TURN = 10, 0.75, -0.4375


def eig_size(size: int, found: int) -> int:
    """Eigenvectors' real parts, their imaginary parts, the same of eigenvalues, how many of these there are
    not; then the matrix, the columns of Q, the reflections, four rows, what goes with them."""
    return (2 * found + 3 * size + 4) * Rows.of(size).stride + 3 * size + 8


class _Workspace:
    """Where everything is."""

    def __init__(self, p: Program, out: UOp, base: UOp, size: int, found: int) -> None:
        self.p, self.out, self.size, self.found = p, out, size, found
        self.rows = Rows.of(size)
        self.lanes = lanes_of(p, self.rows)
        self.stride = self.rows.stride
        self.shift = self.lanes.bit_length() - 1
        self.real = base
        self.imag = p.let(base + found * self.stride)
        self.values = p.let(self.imag + found * self.stride)
        self.phases = p.let(self.values + size)
        self.failed = p.let(self.phases + size)
        self.h = p.let(self.failed + 1)
        self.q = p.let(self.h + size * self.stride)
        self.vectors = p.let(self.q + size * self.stride)
        self.lines = [p.let(self.vectors + (size + n) * self.stride) for n in range(4)]
        self.taus = p.let(self.lines[-1] + self.stride)
        self.last = p.let(self.taus + size)  # the row that is worked on
        self.count = p.let(self.last + 1)  # so many steps were made for it
        self.bulge = p.let(self.count + 1)  # three numbers that a reflection is made of

    def at(self, row: UOp, column: UOp) -> UOp:
        return self.p.let(self.h + row * self.stride + column)

    def get(self, row: UOp, column: UOp) -> UOp:
        return self.p.load(self.out, self.at(row, column))

    def put(self, row: UOp, column: UOp, value: UOp) -> None:
        self.p.store(self.out, self.at(row, column), value)


def eig(p: Program, out: UOp, base: UOp, source: UOp, read: UOp, size: int, found: int) -> None:
    """Eigenvectors of length 1 in rows, whose greatest number is real, and eigenvalues, of two that are
    conjugate the one above the axis first; then how many there are not: 0 if all are.

    found  how many eigenvectors: all or none
    """
    w = _Workspace(p, out, base, size, found)
    copy_in(p, source, read, out, w.h, size, w.rows)
    fill(p, out, w.vectors, (size + 4) * w.stride)
    fill(p, out, w.taus, size)
    if size > 2:
        with p.loop(0, size - 2) as k:
            _hessenberg_step(w, k)
    if found:
        product(p, out, w.q, size, p.let(w.vectors + w.stride), w.taus, max(size - 1, 0), 1, w.rows, w.lanes)
    norm = _norm(w)
    _schur(w, norm)
    p.store(out, w.failed, p.load(out, w.last) + 1.0)
    if found:
        with p.loop(0, size) as k, p.when(p.let(p.load(out, w.phases + k) >= 0.0)):
            _eigenvector(w, k, norm)


# *** Hessenberg form


def _hessenberg_step(w: _Workspace, k: UOp) -> None:
    """Zeros in column k from row k + 2 on, by a reflection on both sides."""
    p, out, column = w.p, w.out, w.lines[0]
    first = p.let(k + 1)
    with p.loop(first, w.size) as i:
        p.store(out, column + i, w.get(i, k))
    with p.loop(w.size, w.rows.columns) as i:
        p.store(out, column + i, p.number(0.0))
    v = p.let(w.vectors + first * w.stride)
    made, tau = reflector(p, out, column, v, first, w.rows, w.lanes)
    p.store(out, w.taus + k, tau)
    begin, end = vectors_from(w.rows, w.lanes, k)
    line = w.lines[1]
    with p.loop(begin, end) as c:
        p.store(out, line + (c << w.shift), p.number(0.0, w.lanes))
    with p.loop(first, w.size) as i:
        scale = p.let(p.splat(p.load(out, v + i), w.lanes))
        with p.loop(begin, end) as c:
            at = p.let(c << w.shift)
            total = p.fma(scale, p.load(out, w.at(i, at), w.lanes), p.load(out, line + at, w.lanes))
            p.store(out, line + at, total)
    with p.loop(first, w.size) as i:
        scale = p.let(p.splat(-tau * p.load(out, v + i), w.lanes))
        with p.loop(begin, end) as c:
            at = p.let(c << w.shift)
            place = w.at(i, at)
            p.store(out, place, p.fma(scale, p.load(out, line + at, w.lanes), p.load(out, place, w.lanes)))
    w.put(first, k, made)
    with p.loop(p.let(k + 2), w.size) as i:
        w.put(i, k, p.number(0.0))
    reflect(p, out, w.h, (p.integer(0), p.integer(w.size)), v, tau, first, w.rows, w.lanes)


def _norm(w: _Workspace) -> UOp:
    """The greatest sum of the sizes of a row; NaN or infinite if any number is."""
    p = w.p
    best, nothing = p.accumulator(p.number(0.0)), p.accumulator(p.number(0.0))
    with p.loop(0, w.size) as i:
        total = p.accumulator(p.number(0.0))
        with p.loop(0, w.size) as j:
            p.assign(total, total + p.abs(w.get(i, j)))
        p.assign(best, (best < total).where(total, best))
        p.assign(nothing, p.fma(total, p.number(0.0), nothing))  # 0, or NaN
    return p.let(best + p.let(nothing + 0.0))


# *** quasi-triangular form


def _schur(w: _Workspace, norm: UOp) -> None:
    """One or two eigenvalues after another, from the last row up."""
    p, out = w.p, w.out
    eps = float(dtypes.finfo(p.dtype).eps)
    p.store(out, w.last, p.number(w.size - 1.0))
    p.store(out, w.count, p.number(0.0))
    turns = p.let((norm < float("inf")).where(p.integer(TURNS * w.size), p.integer(0)))
    with p.loop(0, turns):
        high = p.let(p.index_of(p.load(out, w.last)))
        with p.when(high >= 0):
            found = p.accumulator(p.integer(0))
            with p.loop(1, p.let(high + 1)) as i:
                around = p.let(p.abs(w.get(i - 1, i - 1)) + p.abs(w.get(i, i)))
                around = p.let(around.eq(0.0).where(norm, around))
                small = p.let(p.abs(w.get(i, i - 1)) <= around * eps)
                p.assign(found, small.where(i, found))
            low = p.let(found + 0)
            with p.when(p.let(low > 0)):
                w.put(low, low - 1, p.number(0.0))
            with p.when(low.eq(high)):
                p.store(out, w.values + high, w.get(high, high))
                p.store(out, w.phases + high, p.number(0.0))
                _next(w, high, 1)
            with p.when(low.eq(high - 1)):
                _pair(w, low, high)
                _next(w, high, 2)
            with p.when(p.let(low < high - 1)):
                p.store(out, w.count, p.load(out, w.count) + 1.0)
                _francis(w, low, high)


def _next(w: _Workspace, high: UOp, done: int) -> None:
    w.p.store(w.out, w.last, w.p.float_of(high - done))
    w.p.store(w.out, w.count, w.p.number(0.0))


def _window(w: _Workspace, low: UOp, high: UOp) -> tuple[UOp, UOp]:
    """(the first row, the last vector of columns, exclusive) that matter: all, if eigenvectors are wanted."""
    p = w.p
    if w.found:
        return p.integer(0), p.integer(w.rows.columns // w.lanes)
    return low, p.let((high >> w.shift) + 1)


def _francis(w: _Workspace, low: UOp, high: UOp) -> None:
    """A step with two shifts, the eigenvalues of the last two rows: a bulge is chased down the diagonal."""
    p, out = w.p, w.out
    before = p.let(high - 1)
    x, y = w.get(high, high), w.get(before, before)
    turn = p.let(w.get(high, before) * w.get(before, high))
    count = p.load(out, w.count)
    size = p.let(p.abs(w.get(high, before)) + p.abs(w.get(before, high - 2)))
    whole = p.let(p.index_of(count))
    own = p.let((whole % EVERY).eq(0))
    moved = p.let(p.fma(size, p.number(SHIFT), x))
    x, y = p.let(own.where(moved, x)), p.let(own.where(moved, y))
    turn = p.let(own.where(size * size * TURN, turn))
    top, side = w.get(low, low), w.get(low + 1, low)
    r, s = p.let(x - top), p.let(y - top)
    p.store(out, w.bulge, (r * s - turn) / side + w.get(low, low + 1))
    p.store(out, w.bulge + 1, w.get(low + 1, low + 1) - top - r - s)
    p.store(out, w.bulge + 2, w.get(low + 2, low + 1))
    with p.loop(low, before) as k:
        _chase(w, low, high, k, 3)
    p.store(out, w.bulge + 2, p.number(0.0))
    _chase(w, low, high, before, 2)


def _chase(w: _Workspace, low: UOp, high: UOp, k: UOp, width: int) -> None:
    """A reflection of `width` rows and columns from k on."""
    p, out = w.p, w.out
    given = [p.load(out, w.bulge + n) for n in range(width)]
    size = p.let(sum((p.abs(value) for value in given[1:]), p.abs(given[0])))
    nothing = p.let(size.eq(0.0))
    scale = p.let(nothing.where(0.0, 1.0 / size))
    given = [p.let(value * scale) for value in given]
    square = p.let(sum((value * value for value in given[1:]), given[0] * given[0]))
    norm = p.let(p.sqrt(square))
    made = p.let((given[0] < 0.0).where(norm, -norm))
    head = p.let(given[0] - made)
    tau = p.let(nothing.where(0.0, -head / made))
    v = [p.let(nothing.where(0.0, value / head)) for value in given[1:]]
    first, end = _window(w, low, high)
    _mix(w, [p.let(w.h + (k + n) * w.stride) for n in range(width)], tau, v, p.let(k >> w.shift), end)
    with p.when(p.let(k > low)):
        w.put(k, k - 1, made * size)
        for n in range(1, width):
            w.put(k + n, k - 1, p.number(0.0))
    stop = p.let(k + (width + 1))
    stop = p.let((stop <= high).where(stop, high + 1))
    with p.loop(first, stop) as i:
        places = [w.at(i, k + n) for n in range(width)]
        values = [p.load(out, place) for place in places]
        total = p.let(tau * sum((a * b for a, b in zip(v, values[1:], strict=True)), values[0]))
        p.store(out, places[0], values[0] - total)
        for place, value, factor in zip(places[1:], values[1:], v, strict=True):
            p.store(out, place, value - factor * total)
    if w.found:
        lines = [p.let(w.q + (k + n) * w.stride) for n in range(width)]
        _mix(w, lines, tau, v, p.integer(0), p.integer(w.rows.columns // w.lanes))
    if width == 3:
        p.store(out, w.bulge, w.get(k + 1, k))
        p.store(out, w.bulge + 1, w.get(k + 2, k))
        with p.when(p.let(k < high - 2)):
            p.store(out, w.bulge + 2, w.get(k + 3, k))


def _mix(w: _Workspace, lines: Sequence[UOp], tau: UOp, v: Sequence[UOp], begin: UOp, end: UOp) -> None:
    """The reflection I - τ (1, v) (1, v)ᵀ of so many rows."""
    p, out = w.p, w.out
    factors = [p.let(p.splat(value, w.lanes)) for value in v]
    rate = p.let(p.splat(tau, w.lanes))
    with p.loop(begin, end) as c:
        places = [p.let(line + (c << w.shift)) for line in lines]
        values = [p.load(out, place, w.lanes) for place in places]
        total = values[0]
        for factor, value in zip(factors, values[1:], strict=True):
            total = p.fma(factor, value, total)
        total = p.let(rate * total)
        p.store(out, places[0], values[0] - total)
        for place, value, factor in zip(places[1:], values[1:], factors, strict=True):
            p.store(out, place, value - factor * total)


def _pair(w: _Workspace, low: UOp, high: UOp) -> None:
    """The eigenvalues of a block of two; where they are real, a rotation makes it triangular."""
    p, out = w.p, w.out
    a, b, c, d = w.get(low, low), w.get(low, high), w.get(high, low), w.get(high, high)
    half = p.let((a - d) * 0.5)
    inside = p.let(p.fma(half, half, b * c))
    root = p.let(p.sqrt(p.abs(inside)))
    real = p.let(inside >= 0.0)
    middle = p.let(d + half)
    z = p.let(half + (half < 0.0).where(-root, root))
    first = p.let(d + z)
    second = p.let(z.eq(0.0).where(first, d - b * c / z))
    for place, one, other in ((low, first, root), (high, second, -root)):
        p.store(out, w.values + place, real.where(one, middle))
        p.store(out, w.phases + place, real.where(0.0, other))
    with p.when(real):
        size = p.let(p.abs(c) + p.abs(z))
        nothing = p.let(size.eq(0.0))
        x, y = p.let(nothing.where(0.0, c / size)), p.let(nothing.where(1.0, z / size))
        length = p.let(p.sqrt(p.fma(x, x, y * y)))
        sin, cos = p.let(x / length), p.let(y / length)
        begin, end = _window(w, low, high)
        _rotate(w, [p.let(w.h + row * w.stride) for row in (low, high)], cos, sin, p.let(low >> w.shift), end)
        with p.loop(begin, p.let(high + 1)) as i:
            left, right = w.get(i, low), w.get(i, high)
            w.put(i, low, cos * left + sin * right)
            w.put(i, high, cos * right - sin * left)
        if w.found:
            lines = [p.let(w.q + row * w.stride) for row in (low, high)]
            _rotate(w, lines, cos, sin, p.integer(0), p.integer(w.rows.columns // w.lanes))
        w.put(high, low, p.number(0.0))
        w.put(low, low, first)
        w.put(high, high, second)


def _rotate(w: _Workspace, lines: Sequence[UOp], cos: UOp, sin: UOp, begin: UOp, end: UOp) -> None:
    p, out = w.p, w.out
    c, s = p.let(p.splat(cos, w.lanes)), p.let(p.splat(sin, w.lanes))
    with p.loop(begin, end) as column:
        one, other = (p.let(line + (column << w.shift)) for line in lines)
        a, b = p.load(out, one, w.lanes), p.load(out, other, w.lanes)
        p.store(out, one, p.fma(c, a, s * b))
        p.store(out, other, p.fma(c, b, -(s * a)))


# *** eigenvectors

Complex = tuple[UOp, UOp]


def _times(p: Program, a: Complex, b: Complex) -> Complex:
    return p.let(a[0] * b[0] - a[1] * b[1]), p.let(a[0] * b[1] + a[1] * b[0])


def _minus(p: Program, a: Complex, b: Complex) -> Complex:
    return p.let(a[0] - b[0]), p.let(a[1] - b[1])


def _over(p: Program, a: Complex, b: Complex, least: UOp) -> Complex:
    """a / b, of which a b that is too small is `least`: then a is an eigenvalue nearly twice."""
    small = p.let((p.abs(b[0]) < least) & (p.abs(b[1]) < least))
    re, im = p.let(small.where(least, b[0])), p.let(small.where(0.0, b[1]))
    size = p.let(p.abs(re) + p.abs(im))
    re, im = p.let(re / size), p.let(im / size)
    rate = p.let(1.0 / (re * re + im * im) / size)
    return p.let((a[0] * re + a[1] * im) * rate), p.let((a[1] * re - a[0] * im) * rate)


def _eigenvector(w: _Workspace, k: UOp, norm: UOp) -> None:
    """The solution x of (T - λ) x = 0 whose last number is 1, then Q x; of two that are conjugate both."""
    p, out = w.p, w.out
    xr, xi = w.lines[2], w.lines[3]
    own = (p.load(out, w.values + k), p.load(out, w.phases + k))
    double = p.let(own[1] > 0.0)
    last = p.let(double.where(k + 1, k))
    least = p.let(norm * float(dtypes.finfo(p.dtype).eps))
    least = p.let(least.eq(0.0).where(1.0, least))
    fill(p, out, xr, 2 * w.stride)
    p.store(out, xr + last, p.number(1.0))
    with p.when(double):
        side = w.get(last, k)
        p.store(out, xr + k, (own[0] - w.get(last, last)) / side)
        p.store(out, xi + k, own[1] / side)
    with p.loop(0, k) as n:
        i = p.let(k - 1 - n)
        kind = p.load(out, w.phases + i)
        with p.when(kind.eq(0.0)):
            given = _sum(w, i, last)
            made = _over(p, given, (p.let(own[0] - w.get(i, i)), own[1]), least)
            _found(w, [i], [made], last)
        with p.when(kind < 0.0):
            j = p.let(i - 1)
            upper, lower = _sum(w, j, last), _sum(w, i, last)
            a = (p.let(own[0] - w.get(j, j)), own[1])
            d = (p.let(own[0] - w.get(i, i)), own[1])
            b, c = w.get(j, i), w.get(i, j)
            both = _times(p, a, d)
            whole = (p.let(both[0] - b * c), both[1])
            zero = p.number(0.0)
            one = _minus(p, _times(p, d, upper), _times(p, (p.let(-b), zero), lower))
            other = _minus(p, _times(p, a, lower), _times(p, (p.let(-c), zero), upper))
            small = p.let(least * least)
            _found(w, [j, i], [_over(p, one, whole, small), _over(p, other, whole, small)], last)
    _by_q(w, k, last, double)


def _sum(w: _Workspace, i: UOp, last: UOp) -> Complex:
    """Row i of T times x, which is 0 up to i."""
    p, out = w.p, w.out
    totals = [p.accumulator(p.number(0.0, w.lanes)) for _ in range(2)]
    with p.loop(p.let(i >> w.shift), p.let((last >> w.shift) + 1)) as c:
        at = p.let(c << w.shift)
        row = p.load(out, w.at(i, at), w.lanes)
        for total, line in zip(totals, w.lines[2:], strict=True):
            p.assign(total, p.fma(row, p.load(out, line + at, w.lanes), total))
    real, imag = (p.let(p.sum_of_lanes(total)) for total in totals)
    return real, imag


def _found(w: _Workspace, places: Sequence[UOp], values: Sequence[Complex], last: UOp) -> None:
    """Numbers of x; where they are great, all of x becomes smaller."""
    p, out = w.p, w.out
    size = p.number(0.0)
    for place, value in zip(places, values, strict=True):
        for line, part in zip(w.lines[2:], value, strict=True):
            p.store(out, line + place, part)
            size = p.let((size < p.abs(part)).where(p.abs(part), size))
    with p.when(p.let(size > 1.0 / float(dtypes.finfo(p.dtype).eps))):
        _scaled(w, w.lines[2:], p.let(1.0 / size), p.let((last >> w.shift) + 1))


def _scaled(w: _Workspace, lines: Sequence[UOp], by: UOp, end: UOp) -> None:
    p, out = w.p, w.out
    rate = p.let(p.splat(by, w.lanes))
    with p.loop(0, end) as c:
        for line in lines:
            at = p.let(line + (c << w.shift))
            p.store(out, at, p.load(out, at, w.lanes) * rate)


def _by_q(w: _Workspace, k: UOp, last: UOp, double: UOp) -> None:
    """Q x of length 1, turned such that its greatest number is real."""
    p, out, columns = w.p, w.out, w.rows.columns // w.lanes
    real, imag = p.let(w.real + k * w.stride), p.let(w.imag + k * w.stride)
    with p.loop(0, columns) as c:
        at = p.let(c << w.shift)
        totals = [p.accumulator(p.number(0.0, w.lanes)) for _ in range(2)]
        with p.loop(0, p.let(last + 1)) as j:
            row = p.load(out, w.q + j * w.stride + at, w.lanes)
            for total, line in zip(totals, w.lines[2:], strict=True):
                p.assign(total, p.fma(p.splat(p.load(out, line + j), w.lanes), row, total))
        for total, target in zip(totals, (real, imag), strict=True):
            p.store(out, target + at, total)
    greatest, at = p.accumulator(p.number(0.0)), p.accumulator(p.integer(0))
    with p.loop(0, w.size) as i:
        a, b = p.abs(p.load(out, real + i)), p.abs(p.load(out, imag + i))
        size = p.let(a + b)
        better = p.let(greatest < size)
        p.assign_all({at: better.where(i, at), greatest: better.where(size, greatest)})
    place = p.let(at + 0)
    _scaled(w, (real, imag), p.let(1.0 / p.let(greatest + 0.0)), p.integer(columns))
    total = p.accumulator(p.number(0.0))
    best = p.accumulator(p.number(-1.0))
    which = p.accumulator(place)
    with p.loop(0, w.size) as i:
        a, b = p.load(out, real + i), p.load(out, imag + i)
        square = p.let(a * a + b * b)
        better = p.let(best < square)
        p.assign(total, total + square)
        p.assign_all({which: better.where(i, which), best: better.where(square, best)})
    length = p.let(p.sqrt(total))
    top = p.let(which + 0)
    _scaled(w, (real, imag), p.let(1.0 / length), p.integer(columns))
    with p.when(double):
        a, b = p.load(out, real + top), p.load(out, imag + top)
        size = p.let(p.sqrt(a * a + b * b))
        cos, sin = p.let(p.splat(a / size, w.lanes)), p.let(p.splat(b / size, w.lanes))
        with p.loop(0, columns) as c:
            one, other = (p.let(line + (c << w.shift)) for line in (real, imag))
            x, y = p.load(out, one, w.lanes), p.load(out, other, w.lanes)
            made, turned = p.let(x * cos + y * sin), p.let(y * cos - x * sin)
            p.store(out, one, made)
            p.store(out, other, turned)
            p.store(out, one + w.stride, made)
            p.store(out, other + w.stride, -turned)
        p.store(out, imag + top, p.number(0.0))
        p.store(out, imag + w.stride + top, p.number(0.0))

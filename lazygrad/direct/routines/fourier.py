"""Fourier transforms of complex numbers, by stages of butterflies that leave their results in order.

A stage does the transforms of a small size r among numbers that are far apart, and rotates them. In the order
of Stockham (W. T. Cochran et al., "What is the fast Fourier transform?", 1967) what belongs together moves
next to each other stage by stage, and nothing is left to be reordered: with l = r·m numbers to transform, s
times interleaved (s = 1 at first),

    y[q + s·(r·p + k)] = w^(p·k) · Σ over j of x[q + s·(p + m·j)] · e^(-2πi·j·k / r),  w = e^(-2πi / l)

for p < m, q < s; then l = m and s = r·s. Lanes are neighbours along q, and along p in the first stage. Real
and imaginary parts are apart in between, and beside each other in what is read and written.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...dtype import dtypes
from ...ir.ops import Ops
from ...ir.uop import UOp
from ..writing import Program

if TYPE_CHECKING:
    import numpy as np

#: Transforms of up to so many numbers work in memory near a core.
MOST = 1 << 22
#: The largest prime factor.
PRIME = 13
#: So many numbers are a line of memory, or two.
LINE = 16

Complex = tuple[UOp, UOp]


@functools.lru_cache(256)
def stages(n: int) -> tuple[int, ...]:
    """The sizes of the small transforms, the first a power of 2 that fills lanes, if n has one; empty where n
    has a large prime factor."""
    found, left = [], n
    for radix in (16 if n >= 128 else 8, 8, 4, 2, 3, 5, 7, 11, PRIME):
        while left % radix == 0:
            found.append(radix)
            left //= radix
    # the last one rotates nothing, so that it may be large
    return (*found[:1], *sorted(found[1:])) if left == 1 else ()


def takes(n: int) -> bool:
    """Whether so many complex numbers are transformed."""
    return n <= MOST and bool(stages(n))


def fourier_size(n: int, inverse: int, scaled: int) -> int:
    return 2 * n


def rotations(n: int, inverse: bool, factor: float = 1.0) -> np.ndarray[Any, Any]:
    """The rotations w^(p·k), k from 1, of all stages but the last, in the order that they are read in.

    With a factor of the transform: those of the first stage have it, and what is not rotated finds it at the
    end.
    """
    import numpy as np

    parts = []
    size, s = n, 1
    for radix in stages(n)[:-1]:
        m = size // radix
        both = _twiddles(np.outer(np.arange(m), np.arange(1, radix)) % size, size, inverse)
        parts.append((both.transpose(1, 2, 0) * factor if s == 1 else both).ravel())
        size, s = m, s * radix
    return np.concatenate([*parts, [factor]])


def real_rotations(n: int, inverse: bool, factor: float = 1.0) -> np.ndarray[Any, Any]:
    """Those of n / 2 complex numbers; before them what `_real_outputs` and `_ends_together` read."""
    import numpy as np

    turns = np.zeros((2, _ends(n)))
    turns[:, : n // 4 + 1] = _twiddles(np.arange(n // 4 + 1), n, False).T * (1.0 if inverse else 0.5)
    return np.concatenate([turns.ravel(), rotations(n // 2, inverse, factor)])


def _ends(n: int) -> int:
    """How many real parts, and imaginary ones, `real_rotations` has for both ends: whole lines of memory."""
    return -(-(n // 4 + 1) // LINE) * LINE


def _twiddles(steps: Any, size: int, inverse: bool) -> np.ndarray[Any, Any]:
    """(real, imaginary) of e^(∓2πi·steps / size)."""
    import numpy as np

    angles = 2.0 * math.pi / size * steps
    return np.stack([np.cos(angles), np.sin(angles) if inverse else -np.sin(angles)], axis=-1)


def fourier(
    p: Program,
    out: UOp,
    base: UOp,
    source: UOp,
    read: UOp,
    table: UOp,
    begin: UOp,
    n: int,
    inverse: int,
    scaled: int,
) -> None:
    """The transform of n complex numbers; without a factor, unless it is scaled."""
    run = _Stages(p, n, table, begin, 1.0 if inverse else -1.0, scaled)
    run.first(_from_pairs(p, source, read))
    run.between()
    run.last(_to_pairs(p, out, base))


def real_fourier(
    p: Program, out: UOp, base: UOp, source: UOp, read: UOp, table: UOp, begin: UOp, n: int, scaled: int
) -> None:
    """The first n / 2 + 1 complex numbers of the transform of n real ones, n even.

    Two neighbours are taken for one complex number; the transforms of those at even and at odd places then
    come from the numbers at both ends. (W. H. Press et al., Numerical Recipes, 12.3)
    """
    half = n // 2
    run = _Stages(p, half, table, p.let(begin + 2 * _ends(n)), -1.0, scaled)
    run.first(_from_pairs(p, source, read))
    run.between()
    done = run.memory()
    run.last(_to_planes(p, done))
    _real_outputs(p, done, half, out, base, table, begin)


def real_inverse(
    p: Program, out: UOp, base: UOp, source: UOp, read: UOp, table: UOp, begin: UOp, n: int, scaled: int
) -> None:
    """The inverse of `real_fourier`, times n, but for the imaginary parts of the first and last number."""
    half = n // 2
    run = _Stages(p, half, table, p.let(begin + 2 * _ends(n)), 1.0, scaled)
    joined = run.memory()
    _ends_together(p, source, read, half, joined, table, begin)
    run.first(_from_planes(p, joined))
    run.between()
    run.last(_to_pairs(p, out, base))


# *** both ends


def _real_outputs(p: Program, held: Complex, half: int, out: UOp, base: UOp, table: UOp, at: UOp) -> None:
    """With Z the transform of the pairs, E that of what is at even places, O at odd ones:

    E[k] = (Z[k] + Z*[h - k]) / 2, O[k] = (Z[k] - Z*[h - k]) / 2i,
    X[k] = E[k] + w^k·O[k], X[h - k] = (E[k] - w^k·O[k])*.
    """
    for memory in held:
        p.store(memory, half, p.load(memory, 0))

    def ends(k: UOp, count: int) -> None:
        other = half - k - (count - 1)
        a, b = (p.load(memory, k, count) for memory in held)
        c, d = (_reversed(p, p.load(memory, other, count)) for memory in held)
        turn = _end_twiddle(p, table, at, half, k, count)
        x, y = _product(p, (p.let(b + d), p.let(c - a)), turn)
        u, v = p.let((a + c) * 0.5), p.let((b - d) * 0.5)
        _write_pairs(p, out, base + 2 * k, (p.let(u + x), p.let(v + y)))
        far = _reversed(p, p.let(u - x)), _reversed(p, p.let(y - v))
        _write_pairs(p, out, base + 2 * other, far)

    _tiles(p, half // 2 + 1, ends)


def _ends_together(p: Program, source: UOp, read: UOp, half: int, made: Complex, table: UOp, at: UOp) -> None:
    """Twice what `_real_outputs` read: Z[k] = E[k] + i·O[k], Z[h - k] = E*[k] + i·O*[k]."""

    def ends(k: UOp, count: int) -> None:
        other = half - k - (count - 1)
        a, b = _deinterleaved(p, p.load(source, read + 2 * k, 2 * count))
        c, d = (_reversed(p, part) for part in _deinterleaved(p, p.load(source, read + 2 * other, 2 * count)))
        re, im = _end_twiddle(p, table, at, half, k, count)
        x, y = _product(p, (p.let(a - c), p.let(b + d)), (re, p.let(-im)))
        u, v = p.let(a + c), p.let(b - d)
        far = p.let(u + y), p.let(x - v)
        for memory, near, reverse in zip(made, (p.let(u - y), p.let(v + x)), far, strict=True):
            p.store(memory, k, near)
            p.store(memory, other, _reversed(p, reverse))

    _tiles(p, half // 2 + 1, ends)
    first, last = p.load(source, read), p.load(source, read + 2 * half)
    for memory, value in zip(made, (p.let(first + last), p.let(first - last)), strict=True):
        p.store(memory, 0, value)


def _end_twiddle(p: Program, table: UOp, at: UOp, half: int, k: UOp, count: int) -> Complex:
    return p.load(table, at + k, count), p.load(table, at + _ends(2 * half) + k, count)


# *** stages

Read = Callable[[UOp, int], Complex]
Write = Callable[[UOp, Complex], None]


class _Stages:
    """The stages of one transform: from anywhere into memory near the core, within it, and out of it."""

    def __init__(self, p: Program, n: int, table: UOp, at: UOp, sign: float, scaled: int) -> None:
        self.p, self.n, self.table, self.at, self.sign = p, n, table, at, sign
        self.factor = p.load(table, at + (rotations(n, False).size - 1)) if scaled else None
        self.radices = stages(n)
        self.m, self.s = n, 1
        self.memories = [(p.scratch(n + 1), p.scratch(n + 1)) for _ in range(2)]
        self.buffer = self.memories[0]

    def memory(self) -> Complex:
        """The memory that the next stage may write."""
        return self.memories[1] if self.buffer is self.memories[0] else self.memories[0]

    def first(self, read: Read) -> None:
        """s = 1."""
        p, radix = self.p, self.radices[0]
        m = self.m // radix
        made = self.memories[0]

        def butterfly(place: UOp, count: int) -> None:
            results = _small(p, [read(place + m * j, count) for j in range(radix)], self.sign)
            if self.factor is not None:
                a, b = (p.let(part * p.splat(self.factor, count)) for part in results[0])
                results[0] = a, b
            for k in range(1, radix):
                row = self.at + 2 * (k - 1) * m + place
                turn = p.load(self.table, row, count), p.load(self.table, row + m, count)
                results[k] = _product(p, results[k], turn)
            for memory, part in zip(made, zip(*results, strict=True), strict=True):
                for number, value in enumerate(_woven(p, list(part))):
                    p.store(memory, place * radix + number * count, value)

        _tiles(p, m, butterfly, radix & (radix - 1) == 0)
        self._done(radix, m, made)

    def _done(self, radix: int, m: int, made: Complex) -> None:
        self.at = self.p.let(self.at + 2 * (radix - 1) * m)
        self.buffer, self.m, self.s = made, m, self.s * radix

    def between(self) -> None:
        for radix in self.radices[1:-1]:
            self._stage(radix)

    def _stage(self, radix: int) -> None:
        p, s, m, held, made = self.p, self.s, self.m // radix, self.buffer, self.memory()
        with p.loop(0, m) as group:
            begin = p.let(self.at + group * (2 * (radix - 1)))
            turns = [
                (p.load(self.table, begin + 2 * k), p.load(self.table, begin + (2 * k + 1)))
                for k in range(radix - 1)
            ]
            write = _to_planes(p, made, p.let(group * (s * radix)))
            read = _from_planes(p, held, p.let(group * s))

            def butterfly(place: UOp, count: int) -> None:
                results = _small(p, [read(place + s * m * j, count) for j in range(radix)], self.sign)
                for k, result in enumerate(results):
                    if k:
                        turn = p.splat(turns[k - 1][0], count), p.splat(turns[k - 1][1], count)
                        result = _product(p, result, turn)
                    write(place + s * k, result)

            _tiles(p, s, butterfly)
        self._done(radix, m, made)

    def last(self, write: Write) -> None:
        """m = 1."""
        p, s, radix = self.p, self.s, self.radices[-1]
        read = _from_planes(p, self.buffer)

        def butterfly(place: UOp, count: int) -> None:
            results = _small(p, [read(place + s * j, count) for j in range(radix)], self.sign)
            for k, result in enumerate(results):
                write(place + s * k, result)

        _tiles(p, s, butterfly)


def _from_planes(p: Program, memory: Complex, begin: UOp | int = 0) -> Read:
    return lambda place, count: (
        p.load(memory[0], place + begin, count),
        p.load(memory[1], place + begin, count),
    )


def _from_pairs(p: Program, memory: UOp, begin: UOp) -> Read:
    return lambda place, count: _deinterleaved(p, p.load(memory, begin + 2 * place, 2 * count))


def _to_planes(p: Program, memory: Complex, begin: UOp | int = 0) -> Write:
    def write(place: UOp, value: Complex) -> None:
        for each, part in zip(memory, value, strict=True):
            p.store(each, place + begin, part)

    return write


def _to_pairs(p: Program, memory: UOp, begin: UOp) -> Write:
    return lambda place, value: _write_pairs(p, memory, begin + 2 * place, value)


def _write_pairs(p: Program, memory: UOp, place: UOp, value: Complex) -> None:
    """Real and imaginary parts beside each other."""
    for number, part in enumerate(_interleaved(p, [value[0]], [value[1]])):
        p.store(memory, place + number * part.dtype.count, part)


def _tiles(p: Program, count: int, body: Callable[[UOp, int], None], lanes: bool = True) -> None:
    """`body(place, width)` for tiles of all places from 0 on; lanes: whether more than one at once.

    The last tile may begin within the one before it: what is read is not written, so that the same is made of
    it again.
    """
    widest = min(count, p.target.vector_bytes // p.dtype.itemsize) if lanes else 1
    width = 1 << (max(1, widest).bit_length() - 1)
    p.tiles(0, count - count % width, width, body)
    if count % width:
        body(p.integer(count - width), width)


# *** order


def _pick(value: UOp, lanes: tuple[int, ...]) -> UOp:
    return UOp(Ops.GEP, value.dtype.scalar_type.vec(len(lanes)), (value,), lanes)


def _deinterleaved(p: Program, pairs: UOp) -> Complex:
    """The lanes at even and at odd places."""
    count = pairs.dtype.count
    return p.let(_pick(pairs, tuple(range(0, count, 2)))), p.let(_pick(pairs, tuple(range(1, count, 2))))


def _reversed(p: Program, value: UOp) -> UOp:
    count = value.dtype.count
    return p.let(_pick(value, tuple(reversed(range(count))))) if count > 1 else value


def _interleaved(p: Program, first: list[UOp], second: list[UOp]) -> list[UOp]:
    """The numbers of two rows of vectors in turn."""
    made = []
    for a, b in zip(first, second, strict=True):
        count = a.dtype.count
        if count == 1:
            made += [a, b]
            continue
        odd = UOp(Ops.CONST, dtypes.bool.vec(count), (), tuple([bool(i % 2) for i in range(count)]))
        for begin in (0, count // 2):
            lanes = tuple([begin + i // 2 for i in range(count)])
            made.append(p.let(odd.where(_pick(b, lanes), _pick(a, lanes))))
    return made


def _woven(p: Program, values: list[UOp]) -> list[UOp]:
    """The first lanes of all values, then the second lanes, and so on."""
    if len(values) == 1 or values[0].dtype.count == 1:
        return values
    return _interleaved(p, _woven(p, values[0::2]), _woven(p, values[1::2]))


# *** small transforms


def _product(p: Program, x: Complex, y: Complex) -> Complex:
    (a, b), (c, d) = x, y
    return p.let(p.fma(a, c, -p.let(b * d))), p.let(p.fma(a, d, p.let(b * c)))


def _rotated(p: Program, x: Complex, turn: float, sign: float) -> Complex:
    """x·e^(sign·2πi·turn)."""
    turn %= 1.0
    a, b = x
    if turn == 0.0:
        return x
    if turn == 0.5:
        return p.let(-a), p.let(-b)
    if turn in (0.25, 0.75):
        return (p.let(-b), a) if (turn == 0.25) == (sign > 0) else (b, p.let(-a))
    c, d = math.cos(2.0 * math.pi * turn), sign * math.sin(2.0 * math.pi * turn)
    count = a.dtype.count
    if turn % 0.25 == 0.125:  # both parts are as long
        root = p.number(math.sqrt(0.5), count)
        u = p.let(a * root), p.let(b * root)
        first = p.let(u[0] - u[1]) if c * d > 0 else p.let(u[0] + u[1])
        second = p.let(u[0] + u[1]) if c * d > 0 else p.let(u[1] - u[0])
        return (first, second) if c > 0 else (p.let(-first), p.let(-second))
    return _product(p, x, (p.number(c, count), p.number(d, count)))


def _sum(p: Program, x: Complex, y: Complex) -> Complex:
    return p.let(x[0] + y[0]), p.let(x[1] + y[1])


def _difference(p: Program, x: Complex, y: Complex) -> Complex:
    return p.let(x[0] - y[0]), p.let(x[1] - y[1])


def _small(p: Program, x: list[Complex], sign: float) -> list[Complex]:
    """The transform of a few numbers in registers."""
    n = len(x)
    if n == 1:
        return x
    if n == 2:
        return [_sum(p, *x), _difference(p, *x)]
    if n == 4:
        even, odd = _sum(p, x[0], x[2]), _sum(p, x[1], x[3])
        left, right = _difference(p, x[0], x[2]), _rotated(p, _difference(p, x[1], x[3]), 0.25, sign)
        return [
            _sum(p, even, odd),
            _sum(p, left, right),
            _difference(p, even, odd),
            _difference(p, left, right),
        ]
    if n % 2 == 0:
        a = 4 if n % 4 == 0 else 2
        b = n // a
        inner = [_small(p, x[j::b], sign) for j in range(b)]
        made: list[Complex] = list(x)
        for k in range(a):
            line = [_rotated(p, inner[j][k], j * k / n, sign) for j in range(b)]
            made[k::a] = _small(p, line, sign)
        return made
    return _odd(p, x, sign)


def _odd(p: Program, x: list[Complex], sign: float) -> list[Complex]:
    """An odd size: x[j] and x[n - j] have equal cosines and opposite sines."""
    n, count = len(x), x[0][0].dtype.count
    half = range(1, n // 2 + 1)
    sums = [_sum(p, x[j], x[n - j]) for j in half]
    differences = [_difference(p, x[j], x[n - j]) for j in half]
    total = x[0]
    for each in sums:
        total = _sum(p, total, each)
    made = [total] * n
    for k in half:
        (re, im), (u, v) = x[0], (p.number(0.0, count), p.number(0.0, count))
        for j, (a, b), (c, d) in zip(half, sums, differences, strict=True):
            angle = 2.0 * math.pi * (j * k % n) / n
            cos, sin = p.number(math.cos(angle), count), p.number(sign * math.sin(angle), count)
            re, im = p.let(p.fma(a, cos, re)), p.let(p.fma(b, cos, im))
            u, v = p.let(p.fma(d, sin, u)), p.let(p.fma(c, sin, v))
        made[k] = p.let(re - u), p.let(im + v)
        made[n - k] = p.let(re + u), p.let(im - v)
    return made

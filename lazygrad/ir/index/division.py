"""Quotients and remainders, and the sums in which they join: `c*(x//c) + x%c` is `x`, so that addition stands
here too."""

from __future__ import annotations

import math

from ...dtype import dtypes
from ..ops import Ops
from ..uop import UOp
from .bounds import bounds
from .polynomials import Monomial, Terms, accumulate, build, const, mul, terms_of

# *** sums


def add(*summands: UOp) -> UOp:
    """The sum; `c*(x//c) + x%c` joins to `x`."""
    if len(summands) == 2:
        a, b = summands
        if b.op is Ops.CONST:
            if b.arg == 0:
                return a
            if a.op is Ops.CONST:
                return const(a.arg + b.arg)
        elif a.op is Ops.CONST and a.arg == 0:
            return b
    terms: Terms = {}
    constant = 0
    for node in summands:
        more, offset = terms_of(node)
        accumulate(terms, more)
        constant += offset
    return build(*_join_quotients(terms, constant))


def _join_quotients(terms: Terms, constant: int) -> tuple[Terms, int]:
    """`k*(x % c) + k*c*(x // c)` is `k*x`."""
    changed = True
    while changed:
        changed = False
        for monomial in [m for m in terms if len(m) == 1 and m[0].op is Ops.MOD and terms[m]]:
            k, (x, c) = terms[monomial], monomial[0].src
            if c.op is not Ops.CONST:
                continue
            quotient = terms_of(floordiv(x, c))
            if quotient[1] or len(quotient[0]) != 1:
                continue
            ((other, factor),) = quotient[0].items()
            if factor == 1 and terms.get(other, 0) == k * c.arg:
                del terms[monomial], terms[other]
                more, offset = terms_of(x)
                accumulate(terms, more, k)
                constant += k * offset
                changed = True
                break
    return terms, constant


def sub(a: UOp, b: UOp) -> UOp:
    return add(a, mul(b, const(-1)))


# *** by a number


def _split(terms: Terms, constant: int, divisor: int) -> tuple[Terms, int, Terms, int]:
    """What the divisor divides, as a quotient, and the rest: quotient * divisor + rest = the whole.

    A coefficient that is no multiple stays whole: `x // c` and `x % c` are about the same rest and can join.
    """
    quotient = {m: c // divisor for m, c in terms.items() if c % divisor == 0}
    rest = {m: c for m, c in terms.items() if c % divisor != 0}
    q, r = divmod(constant, divisor)
    return quotient, q, rest, r


def _remainder_of_terms(rest: Terms, remainder: int, divisor: int) -> UOp | None:
    """The remainder, if that of each coefficient gives it: `(11*x + y) % 10 = x + y` where it is below 10."""
    node = build({m: c % divisor for m, c in rest.items()}, remainder)
    low, high = bounds(node)
    return node if low >= 0 and high < divisor else None


def floordiv(a: UOp, b: UOp) -> UOp:
    """`a // b` rounded down; b must be positive wherever it is evaluated."""
    if b.op is not Ops.CONST:
        return _symbolic_division(a, b)[0]
    divisor = b.arg
    if a.op is Ops.CONST:
        return const(0 if divisor == 0 else a.arg // divisor)
    if divisor == 1:
        return a
    if divisor <= 0:
        return UOp(Ops.IDIV, dtypes.index, (a, b))
    quotient, whole, rest, remainder = _split(*terms_of(a), divisor)
    if _remainder_of_terms(rest, remainder, divisor) is not None:
        accumulate(quotient, {m: c // divisor for m, c in rest.items()})
        return build(quotient, whole)
    kept = _floordiv_rest(rest, remainder, divisor)
    return add(build(quotient, whole), kept) if quotient or whole else kept


def _floordiv_rest(rest: Terms, remainder: int, divisor: int) -> UOp:
    """`(rest + remainder) // divisor` where no coefficient is a multiple of the divisor."""
    node = build(rest, remainder)
    low, high = bounds(node)
    if low // divisor == high // divisor:
        return const(low // divisor)
    common = math.gcd(divisor, *rest.values())
    if common > 1:
        # floor((g*x + r) / (g*d)) = floor((x + floor(r/g)) / d)
        scaled = build({m: c // common for m, c in rest.items()}, remainder // common)
        return floordiv(scaled, const(divisor // common))
    if len(rest) == 1 and remainder == 0:
        ((monomial, coefficient),) = rest.items()
        atom = monomial[0]
        if coefficient == 1 and len(monomial) == 1:
            if atom.op is Ops.IDIV and atom.src[1].op is Ops.CONST:  # (x // a) // b = x // (a*b)
                return floordiv(atom.src[0], const(atom.src[1].arg * divisor))
            if atom.op is Ops.MOD and atom.src[1].op is Ops.CONST and atom.src[1].arg % divisor == 0:
                # (x % (a*b)) // b = (x // b) % a
                return mod(floordiv(atom.src[0], const(divisor)), const(atom.src[1].arg // divisor))
    parts = _large_and_small(rest, remainder, divisor)
    if parts is not None:  # floor((g*x + small) / (g*d)) = floor(x / d)
        large, _, g = parts
        return floordiv(large, const(divisor // g))
    return UOp(Ops.IDIV, dtypes.index, (node, const(divisor)))


def _large_and_small(rest: Terms, remainder: int, divisor: int) -> tuple[UOp, UOp, int] | None:
    """x, small and a divisor g of the divisor, where the sum is g*x + small and small is in [0, g)."""
    for g in sorted({math.gcd(c, divisor) for c in rest.values()}, reverse=True):
        if g <= 1:
            continue
        large = {m: c // g for m, c in rest.items() if c % g == 0}
        if len(large) == len(rest):
            continue
        small = build({m: c for m, c in rest.items() if c % g != 0}, remainder % g)
        low, high = bounds(small)
        if low >= 0 and high < g:
            return build(large, remainder // g), small, g
    return None


def mod(a: UOp, b: UOp) -> UOp:
    """`a % b`, never negative; b must be positive wherever it is evaluated."""
    if b.op is not Ops.CONST:
        return _symbolic_division(a, b)[1]
    divisor = b.arg
    if a.op is Ops.CONST:
        return const(0 if divisor == 0 else a.arg % divisor)
    if divisor == 1:
        return const(0)
    if divisor <= 0:
        return UOp(Ops.MOD, dtypes.index, (a, b))
    _, _, rest, remainder = _split(*terms_of(a), divisor)
    known = _remainder_of_terms(rest, remainder, divisor)
    if known is not None:
        return known
    node = build(rest, remainder)
    low, high = bounds(node)
    if low // divisor == high // divisor:
        return add(node, const(-(low // divisor) * divisor))
    common = math.gcd(divisor, *rest.values())
    if common > 1:
        # (g*x + r) % (g*d) = g * ((x + r//g) % d) + r % g
        inner = build({m: c // common for m, c in rest.items()}, remainder // common)
        return add(mul(mod(inner, const(divisor // common)), const(common)), const(remainder % common))
    if len(rest) == 1 and remainder == 0:
        ((monomial, coefficient),) = rest.items()
        atom = monomial[0]
        if coefficient == 1 and len(monomial) == 1 and atom.op is Ops.MOD and atom.src[1].op is Ops.CONST:
            if atom.src[1].arg % divisor == 0:  # (x % (a*b)) % b = x % b
                return mod(atom.src[0], b)
    parts = _large_and_small(rest, remainder, divisor)
    if parts is not None:  # (g*x + small) % (g*d) = g*(x % d) + small
        large, small, g = parts
        return add(mul(mod(large, const(divisor // g)), const(g)), small)
    return UOp(Ops.MOD, dtypes.index, (node, b))


# *** by a symbolic size


def _symbolic_division(a: UOp, b: UOp) -> tuple[UOp, UOp]:
    """Quotient and remainder by a symbolic size: the terms that contain it divide out."""
    if a is b:
        return const(1), const(0)
    divisor, divisor_constant = terms_of(b)
    if a.op is Ops.CONST and 0 <= a.arg < bounds(b)[0]:
        return const(0), a
    if len(divisor) == 1 and divisor_constant == 0:
        ((monomial, factor),) = divisor.items()
        terms, constant = terms_of(a)
        quotient: Terms = {}
        rest: Terms = {}
        for m, c in terms.items():
            left = _without(m, monomial) if c % factor == 0 else None
            if left is None:
                rest[m] = c
            elif left:
                quotient[left] = quotient.get(left, 0) + c // factor
            else:
                constant_quotient = build({}, c // factor)
                whole, remainder = _symbolic_division(build({**rest, **_after(terms, m)}, constant), b)
                return add(constant_quotient, whole), remainder
        kept = build(rest, constant)
        if quotient:
            whole, remainder = _symbolic_division(kept, b)
            return add(build(quotient, 0), whole), remainder
        if _is_below(kept, b):
            return const(0), kept
    elif _is_below(a, b):
        return const(0), a
    return UOp(Ops.IDIV, dtypes.index, (a, b)), UOp(Ops.MOD, dtypes.index, (a, b))


def _after(terms: Terms, monomial: Monomial) -> Terms:
    """The terms other than this one."""
    return {m: c for m, c in terms.items() if m != monomial}


def _without(product: Monomial, factors: Monomial) -> Monomial | None:
    """The product divided by the factors; None where one is missing."""
    left = list(product)
    for factor in factors:
        if factor not in left:
            return None
        left.remove(factor)
    return tuple(left)


def _is_below(a: UOp, b: UOp) -> bool:
    """Whether 0 <= a < b is certain, also where b is symbolic: a range is below its size."""
    low, high = bounds(a)
    if low < 0:
        return False
    if high < bounds(b)[0]:
        return True
    terms, constant = terms_of(sub(a, b))
    greatest = symbolic_bound(terms, constant, up=True)
    return greatest is not None and bounds(greatest)[1] < 0


def symbolic_bound(terms: Terms, constant: int, up: bool) -> UOp | None:
    """No less (`up`) or no more than the sum: each range at its end, size - 1 or 0, sizes left alone."""
    addends: list[UOp] = [const(constant)]
    for monomial, coefficient in terms.items():
        product = const(coefficient)
        at_end = (coefficient > 0) == up
        for atom in monomial:
            if len(monomial) > 1 and bounds(atom)[0] < 0:
                return None  # what multiplies a range may be negative
            if atom.op is Ops.RANGE:
                atom = sub(atom.src[0], const(1)) if at_end else const(0)
            product = mul(product, atom)
        addends.append(product)
    return add(*addends)

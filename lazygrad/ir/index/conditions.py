"""Comparisons, what is made of them, and the choices between numbers that they decide."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ...dtype import dtypes
from ..ops import Ops
from ..uop import UOp
from .bounds import bounds
from .division import add, sub, symbolic_bound
from .polynomials import FALSE, TRUE, Terms, build, conjuncts, const, order_key, terms_of


def less(a: UOp, b: UOp) -> UOp:
    """`a < b`, as sum < constant, divided by the common factor."""
    terms, constant = terms_of(sub(a, b))
    low, high = bounds(build(terms, constant))
    if high < 0:
        return TRUE
    if low >= 0:
        return FALSE
    if any(atom.op is Ops.RANGE and atom.src[0].op is not Ops.CONST for m in terms for atom in m):
        greatest, least = (symbolic_bound(terms, constant, up) for up in (True, False))
        if greatest is not None and bounds(greatest)[1] < 0:
            return TRUE
        if least is not None and bounds(least)[0] >= 0:
            return FALSE
    common = math.gcd(*terms.values())
    limit = -(constant // common)  # g*x + c < 0  <=>  x < ceil(-c / g)
    if len(terms) == 1:
        ((monomial, sign),) = terms.items()
        atom = monomial[0]
        if len(monomial) == 1 and atom.op is Ops.IDIV and atom.src[1].op is Ops.CONST and atom.src[1].arg > 0:
            x, divisor = atom.src
            if sign > 0:  # x // d < k  <=>  x < k*d
                return less(x, const(limit * divisor.arg))
            return less(const((1 - limit) * divisor.arg - 1), x)  # x // d >= k  <=>  x >= k*d
    scaled = {m: c // common for m, c in terms.items()} if common > 1 else terms
    if len(scaled) > 1:
        large, limit = _without_small(scaled, limit)
        if large is not scaled:
            return less(build(large, 0), const(limit))
    return UOp(Ops.CMPLT, dtypes.bool, (build(scaled, 0), const(limit)))


def _without_small(terms: Terms, limit: int) -> tuple[Terms, int]:
    """`g*x + small < k` is `x < j` where small can not decide it: 4*x + y < 8 is x < 2 for y in [0, 4)."""
    for g in sorted({abs(c) for c in terms.values()}, reverse=True):
        if g <= 1:
            break
        small = {m: c for m, c in terms.items() if c % g != 0}
        if not small:
            continue
        low, high = bounds(build(small, 0))
        reach = (limit - 1 - high) // g
        if reach == (limit - 1 - low) // g:
            return {m: c for m, c in terms.items() if c % g == 0}, reach * g + 1
    return terms, limit


def less_equal(a: UOp, b: UOp) -> UOp:
    return less(a, add(b, const(1)))


def equal(a: UOp, b: UOp) -> UOp:
    terms, constant = terms_of(sub(a, b))
    low, high = bounds(build(terms, constant))
    if low == high == 0:
        return TRUE
    if low > 0 or high < 0:
        return FALSE
    return UOp(Ops.CMPEQ, dtypes.bool, (build(terms, 0), const(-constant)))


def not_equal(a: UOp, b: UOp) -> UOp:
    return logical_not(equal(a, b))


def logical_not(condition: UOp) -> UOp:
    if condition is TRUE or condition is FALSE:
        return FALSE if condition is TRUE else TRUE
    return UOp(Ops.CMPNE, dtypes.bool, (condition, TRUE))


def all_of(conditions: Iterable[UOp]) -> UOp:
    """The conjunction, without repeats, in a fixed order; TRUE where it is empty."""
    unique = conjuncts(*conditions)
    if any(condition is FALSE for condition in unique):
        return FALSE
    ordered = sorted(unique, key=order_key) if len(unique) > 1 else unique
    result = TRUE
    for condition in ordered:
        result = condition if result is TRUE else UOp(Ops.AND, dtypes.bool, (result, condition))
    return result


def maximum(a: UOp, b: UOp) -> UOp:
    (a_low, a_high), (b_low, b_high) = bounds(a), bounds(b)
    if a_low >= b_high:
        return a
    if b_low >= a_high:
        return b
    return UOp(Ops.MAX, dtypes.index, tuple(sorted((a, b), key=order_key)))


def minimum(a: UOp, b: UOp) -> UOp:
    (a_low, a_high), (b_low, b_high) = bounds(a), bounds(b)
    if a_high <= b_low:
        return a
    if b_high <= a_low:
        return b
    return UOp(Ops.MIN, dtypes.index, tuple(sorted((a, b), key=order_key)))


def select(condition: UOp, yes: UOp, no: UOp) -> UOp:
    if condition is TRUE or yes is no:
        return yes
    if condition is FALSE:
        return no
    return UOp(Ops.WHERE, yes.dtype, (condition, yes, no))

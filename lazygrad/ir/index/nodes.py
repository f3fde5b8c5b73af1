"""Index expressions as nodes: comparisons, and the choices that they decide; what operators on the index
dtype make; replacing what is below, and evaluating.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from ...dtype import dtypes
from ..ops import Ops, execute
from ..uop import UOp, index_constructors, toposort
from .bounds import bounds
from .division import add, floordiv, mod, sub, symbolic_bound
from .polynomials import FALSE, TRUE, Terms, build, conjuncts, const, mul, neg, order_key, terms_of


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


index_constructors.update(
    {
        Ops.ADD: add,
        Ops.MUL: mul,
        Ops.SUB: sub,
        Ops.NEG: neg,
        Ops.IDIV: floordiv,
        Ops.MOD: mod,
        Ops.CMPLT: less,
        Ops.CMPLE: less_equal,
        Ops.CMPEQ: equal,
        Ops.CMPNE: not_equal,
        Ops.MAX: maximum,
        Ops.MIN: minimum,
        Ops.WHERE: select,
    }
)


def rebuild(node: UOp, src: tuple[UOp, ...]) -> UOp:
    """The node with new sources: canonical again where it is index arithmetic."""
    if src and node.op in index_constructors and src[-1].dtype is dtypes.index:
        result: UOp = index_constructors[node.op](*src)
        return result
    if node.op is Ops.AND and node.dtype is dtypes.bool:
        return all_of(src)
    if node.op is Ops.CMPNE and src[1] is TRUE:
        return logical_not(src[0])
    if node.op is Ops.WHERE and src[0] in (TRUE, FALSE):
        return src[1] if src[0] is TRUE else src[2]
    return UOp(node.op, node.dtype, src, node.arg)


def substitute(roots: Iterable[UOp], mapping: dict[UOp, UOp]) -> dict[UOp, UOp]:
    """Every node below the roots → the node with `mapping` applied below it (not inside replacements)."""
    done = dict(mapping)
    for node in toposort(roots):
        if node in done:
            continue
        src = tuple(done[s] for s in node.src)
        done[node] = node if src == node.src else rebuild(node, src)
    return done


def evaluate(node: UOp, values: dict[UOp, int]) -> int:
    """The number an index (or validity) expression takes when its atoms take these values."""
    done: dict[UOp, int] = dict(values)
    for below in node.toposort():
        if below in done:
            continue
        if below.op is Ops.CONST:
            done[below] = below.arg
        elif below.op in (Ops.RANGE, Ops.DEFINE_VAR, Ops.SPECIAL):
            raise KeyError(f"no value for {below.op} {below.arg}")
        elif below.op is Ops.BIND:
            done[below] = below.src[1].arg
        else:
            sources = tuple(done[s] for s in below.src)
            done[below] = execute(below.op, below.dtype, sources, below.src[-1].dtype)  # type: ignore[assignment]
    return done[node]

"""Where the values of a row may be more than -inf, by conditions on places: other blocks are left out."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from ...dtype import dtypes
from ...ir.index import const, terms_of
from ...ir.index.division import add, sub
from ...ir.index.polynomials import conjuncts, mul
from ...ir.nest import ranges_of
from ...ir.ops import COMPARISONS, SUMS_TO_PRODUCTS, Ops
from ...ir.uop import UOp


class Limit(NamedTuple):
    """A condition without which x is -inf: slope·key + rest >= 0. `rest`: an index without the key."""

    slope: int
    rest: UOp


def limits_of(x: UOp, key: UOp) -> Iterator[Limit]:
    return _limits(_needed(x), key)


def limits_of_zero(x: UOp, key: UOp) -> Iterator[Limit]:
    """The limits beyond which x is 0, so that a product with it adds nothing."""
    return _limits(_needed_by_zero(x), key)


def _limits(conditions: list[UOp], key: UOp) -> Iterator[Limit]:
    for condition in conditions:
        for each in conjuncts(condition):
            found = _limit(each, key)
            if found is not None:
                yield found


def _needed(x: UOp) -> list[UOp]:
    """Conditions without which x is -inf."""
    if x.op is Ops.WHERE and _is_lowest(x.src[2]):
        return [x.src[0], *_needed(x.src[1])]
    if x.op is Ops.CAST and dtypes.is_float(x.src[0].dtype):
        return _needed(x.src[0])
    if x.op is Ops.ADD:
        return _needed(x.src[0]) + _needed(x.src[1])
    if x.op is Ops.MUL and x.src[1].op is Ops.CONST and x.src[1].arg > 0:
        return _needed(x.src[0])
    return []


def _needed_by_zero(x: UOp) -> list[UOp]:
    """Conditions without which x is 0, where what it is made of is finite."""
    if x.op is Ops.WHERE and x.src[2].op is Ops.CONST and x.src[2].arg == 0:
        return [x.src[0], *_needed_by_zero(x.src[1])]
    if x.op is Ops.MUL:
        return [each for factor in x.src for each in _needed_by_zero(factor)]
    if x.op in (Ops.FDIV, Ops.NEG) or (x.op is Ops.CAST and dtypes.is_float(x.src[0].dtype)):
        return _needed_by_zero(x.src[0])
    if x.op in SUMS_TO_PRODUCTS:
        shifted = x.src[0]
        return _needed(shifted.src[0] if shifted.op is Ops.SUB else shifted)
    return []


def _limit(condition: UOp, key: UOp) -> Limit | None:
    """A comparison of integers as slope·key + rest >= 0."""
    if condition.op not in COMPARISONS or condition.op not in (Ops.CMPLT, Ops.CMPLE):
        return None
    low, high = map(_as_index, condition.src)
    if low is None or high is None:
        return None
    terms, constant = terms_of(sub(high, low))
    slope, rest = 0, const(constant - (condition.op is Ops.CMPLT))
    for monomial, coefficient in terms.items():
        if monomial == (key,):
            slope = coefficient
        elif any(key in ranges_of(atom) for atom in monomial):
            return None
        else:
            term = const(coefficient)
            for atom in monomial:
                term = mul(term, atom)
            rest = add(rest, term)
    return Limit(slope, rest) if slope in (1, -1) else None


def _as_index(node: UOp) -> UOp | None:
    """A number made of places alone, as a place."""
    if node.dtype is dtypes.index:
        return node
    if node.op is Ops.CONST and dtypes.is_int(node.dtype):
        return const(node.arg)
    if not dtypes.is_int(node.dtype):
        return None
    if node.op is Ops.CAST and node.src[0].dtype is dtypes.index:
        return node.src[0]
    if node.op in (Ops.ADD, Ops.SUB):
        a, b = map(_as_index, node.src)
        if a is None or b is None:
            return None
        return add(a, b) if node.op is Ops.ADD else sub(a, b)
    return None


def _is_lowest(node: UOp) -> bool:
    return node.op is Ops.CONST and node.arg == -math.inf

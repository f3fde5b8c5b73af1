"""Index expressions as polynomials, the canonical node of each, and what they are made of: constants, the two
truths, and atoms, whose order is alike in every process.
"""

from __future__ import annotations

import functools
import hashlib

from ...dtype import dtypes
from ..ops import Ops
from ..uop import UOp
from ..walks import noted

#: So many constants are found without asking the table of all nodes.
CACHED = 4096
TRUE, FALSE = UOp.const(dtypes.bool, True), UOp.const(dtypes.bool, False)
sint = int | UOp


@functools.lru_cache(CACHED)
def const(value: int) -> UOp:
    """A constant index."""
    return UOp(Ops.CONST, dtypes.index, (), value)


def as_index(value: sint) -> UOp:
    """An int or a UOp as an index expression."""
    if isinstance(value, UOp):
        return value if value.dtype is dtypes.index else UOp(Ops.CAST, dtypes.index, (value,))
    return const(value)


def as_sint(value: UOp) -> sint:
    """An index expression as a plain int, where it is constant."""
    return value.arg if value.op is Ops.CONST else value


def conjuncts(*conditions: UOp) -> list[UOp]:
    """The conditions that ANDs of ANDs join, in order, each once, without TRUE."""
    if len(conditions) == 1 and conditions[0].op is not Ops.AND:
        return [] if conditions[0] is TRUE else [*conditions]
    found: dict[UOp, None] = {}
    visited: set[UOp] = set()  # an AND of one AND with itself, again and again, has few nodes and many paths
    stack = list(conditions)[::-1]
    while stack:  # as `reached` does, in half the time
        condition = stack.pop()
        if condition.op is not Ops.AND:
            found[condition] = None
        elif condition not in visited:
            visited.add(condition)
            stack.extend(reversed(condition.src))
    found.pop(TRUE, None)
    return list(found)


def order_key(node: UOp) -> str:
    """A text that orders atoms the same way everywhere: names first, a digest for anything deeper."""
    key = node.facts.get("order_key")
    return noted(node, "order_key", _order_key) if key is None else key


def _order_key(node: UOp) -> str:
    if node.op is Ops.RANGE:
        return f"0{node.arg!r}"
    if node.op in (Ops.DEFINE_VAR, Ops.SPECIAL):
        return f"1{node.arg!r}"
    content = f"{node.op.name}{node.dtype!r}{node.arg!r}" + ",".join(s.facts["order_key"] for s in node.src)
    return "2" + hashlib.blake2b(content.encode(), digest_size=8).hexdigest()


# *** polynomials

Monomial = tuple[UOp, ...]
Terms = dict[Monomial, int]
#: Sums with more pairs of terms than this are not multiplied out.
MAX_PRODUCT = 64


def terms_of(node: UOp) -> tuple[Terms, int]:
    """The polynomial of a node: {product of atoms: coefficient}, constant. Do not change the dict.

    That of an atom is not kept: a node that holds itself is never freed.
    """
    found = node.facts.get("terms")
    if found is not None:
        return found
    terms: Terms = {}
    constant, rest = 0, node
    while True:  # a canonical sum leans left: ((a + b) + c) + const
        right = rest
        if rest.op is Ops.ADD:
            rest, right = rest.src
        if right.op is Ops.CONST:
            constant += right.arg
        else:
            monomial, coefficient = _monomial_of(right)
            terms[monomial] = terms.get(monomial, 0) + coefficient
        if right is rest:
            break
    if (node,) not in terms:
        node.facts["terms"] = terms, constant
    return terms, constant


def _monomial_of(node: UOp) -> tuple[Monomial, int]:
    coefficient = 1
    if node.op is Ops.MUL and node.src[1].op is Ops.CONST:
        coefficient, node = node.src[1].arg, node.src[0]
    factors = []
    while node.op is Ops.MUL:  # a canonical product leans left too
        factors.append(node.src[1])
        node = node.src[0]
    factors.append(node)
    return tuple(reversed(factors)), coefficient


def _term_order(item: tuple[Monomial, int]) -> tuple[int, int, list[str]]:
    monomial, coefficient = item
    return -len(monomial), -abs(coefficient), [order_key(atom) for atom in monomial]


def build(terms: Terms, constant: int) -> UOp:
    """The canonical node of a polynomial."""
    items = [item for item in terms.items() if item[1] != 0]
    if not items:
        return const(constant)
    if len(items) > 1:
        items.sort(key=_term_order)
    total: UOp | None = None
    for monomial, coefficient in items:
        product = monomial[0]
        for atom in monomial[1:]:
            product = UOp(Ops.MUL, dtypes.index, (product, atom))
        if coefficient != 1:
            product = UOp(Ops.MUL, dtypes.index, (product, const(coefficient)))
        total = product if total is None else UOp(Ops.ADD, dtypes.index, (total, product))
    if total is None:
        raise RuntimeError("a sum without terms")
    if constant:
        total = UOp(Ops.ADD, dtypes.index, (total, const(constant)))
    if "terms" not in total.facts and (total,) not in terms:
        total.facts["terms"] = dict(items), constant
    return total


def accumulate(terms: Terms, more: Terms, factor: int = 1) -> None:
    """Add `factor` times the second sum to the first, in place."""
    for monomial, coefficient in more.items():
        terms[monomial] = terms.get(monomial, 0) + coefficient * factor


def mul(a: UOp, b: UOp) -> UOp:
    """The product, multiplied out."""
    if a.op is Ops.CONST:
        a, b = b, a
    if b.op is Ops.CONST:
        if b.arg == 1:
            return a
        if b.arg == 0:
            return b
    left, left_constant = terms_of(a)
    right, right_constant = terms_of(b)
    if len(left) * len(right) > MAX_PRODUCT:
        return build({tuple(sorted((a, b), key=order_key)): 1}, 0)
    terms: Terms = {}
    for m1, c1 in left.items():
        for m2, c2 in right.items():
            monomial = tuple(sorted(m1 + m2, key=order_key))
            terms[monomial] = terms.get(monomial, 0) + c1 * c2
    accumulate(terms, left, right_constant)
    accumulate(terms, right, left_constant)
    return build(terms, left_constant * right_constant)


def neg(a: UOp) -> UOp:
    return mul(a, const(-1))

"""CHECKs in loops: an index that is checked, and what need not be asked of it again.

CHECK(value, good, place) is its value; where `good` fails the kernel reports the place, and nobody will use
what else it computes. So a load whose only condition is checked has none: it reads where it can be read.

A kernel makes a CHECK whether or not somebody uses its value. So what `good` is says by itself where an index
is asked for: whoever adds lanes or iterations that do not count says so (`implied_where`), and nothing
that is known where a value is used may change `good`.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable

from ...dtype import DType, dtypes
from ...ir import index
from ...ir.index import TRUE, conjuncts
from ...ir.ops import ELEMENTWISE, Ops
from ...ir.pattern import PatternMatcher, UPat
from ...ir.rewrite import graph_rewrite, same_value, transform
from ...ir.uop import UOp, toposort
from ...ir.walks import has_op
from .lanes import broadcast


def implied_where(condition: UOp, good: UOp) -> UOp:
    """What a CHECK asserts whose index is asked for only where a condition on its turn holds."""
    if condition is TRUE:
        return good
    lanes = good.dtype.count
    always = broadcast(UOp.const(dtypes.bool, True), lanes)
    return UOp(Ops.WHERE, good.dtype, (broadcast(condition, lanes), good, always))


def checked_where(value: UOp, conditions: Callable[[UOp], UOp]) -> UOp:
    """The value, whose CHECKs each ask for an index only where `conditions` says of it."""

    def conditional(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
        if node.op is not Ops.CHECK:
            return None
        return node.replace(src=(src[0], implied_where(conditions(node), src[1]), *src[2:]))

    if not has_op(value.toposort(), Ops.CHECK):
        return value
    return transform(value, conditional, "checked where", rebuild=index.rebuild)


def only_checked(condition: UOp, position: UOp) -> bool:
    """Whether all that a condition asks for is checked on the way to a position."""
    checks, others = _split_checks(conjuncts(condition))
    return bool(checks) and not others and set(position.toposort()).issuperset(checks)


def _split_checks(conditions: list[UOp]) -> tuple[list[UOp], list[UOp]]:
    """(the CHECKs among conditions, those of the others that they do not imply)."""
    checks = [c for c in conditions if c.op is Ops.CHECK]
    implied = {below for check in checks for below in conjuncts(check.src[0])}
    return checks, [c for c in conditions if c.op is not Ops.CHECK and c not in implied]


def short_conditions(sink: UOp) -> UOp:
    """The same (form 6): no condition asks again for what one of its CHECKs says, one comparison says whether
    a number is in range, and a place that counts only if its condition holds does not ask for it.
    """
    # in this order: a comparison that is merged with another is not found by what implies it
    for rules in (implied, ranges, places):
        sink = graph_rewrite(sink, rules, name="short conditions", rebuild=same_value)
    return sink


def without_checks(sink: UOp) -> UOp:
    """The same loops (form 3), each CHECK its value."""
    return graph_rewrite(sink, unchecked, name="without checks")


def checks_first(n: UOp) -> UOp | None:
    """All of the CHECKs, then of what none of them implies."""
    checks, others = _split_checks(conjuncts(n))
    return functools.reduce(operator.and_, (*checks, *others)) if checks else None


_UNSIGNED: dict[DType, DType] = {dtypes.int32: dtypes.uint32, dtypes.int64: dtypes.uint64}


def in_range(number: UOp, size: UOp) -> UOp | None:
    """`0 <= p and p < n` is p < n of unsigned numbers. (Vectors have no such comparison on many machines.)"""
    unsigned = _UNSIGNED.get(number.dtype)
    if unsigned is None or size.arg < 0:
        return None
    return number.cast(unsigned) < UOp.const(unsigned, size.arg)


def where_it_counts(access: UOp) -> UOp | None:
    """`data[c ? p : 0] if c` is `data[p] if c`."""
    if len(access.src) < 3:
        return None
    buffer, place, valid = access.src
    done: dict[UOp, UOp] = {}
    for node in toposort((place,), _arithmetic_of):
        if node.op is Ops.WHERE and node.src[0] is valid:
            done[node] = done.get(node.src[1], node.src[1])
            continue
        src = tuple([done.get(s, s) for s in node.src])
        if src != node.src:
            done[node] = node.replace(src=src)
    return access.replace(src=(buffer, done[place], valid)) if place in done else None


def _arithmetic_of(node: UOp) -> tuple[UOp, ...]:
    """What a value is computed of. What is loaded or checked is so whether or not the value counts."""
    return node.src if node.op in ELEMENTWISE and node.op is not Ops.CHECK else ()


number, size = UPat.var("number"), UPat.cvar("size")

implied = PatternMatcher([(UPat(Ops.AND, dtypes.bool, name="n"), checks_first)])
ranges = PatternMatcher([((UPat.const(0) <= number) & (number < size), in_range)])
places = PatternMatcher([(UPat(Ops.INDEX, name="access"), where_it_counts)])
unchecked = PatternMatcher([(UPat(Ops.CHECK, src=(UPat.var("value"), ...)), UPat.var("value"))])

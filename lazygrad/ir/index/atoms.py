"""The ends of index arithmetic: constants, the two truths, and an order of atoms, alike in every process."""

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

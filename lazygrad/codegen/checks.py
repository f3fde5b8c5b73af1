"""CHECKs in loops: an index that is checked, and what need not be asked of it again.

CHECK(value, good, place) is its value; where `good` fails the kernel reports the place, and nobody will use
what else it computes. So a load whose only condition is checked has none: it reads where it can be read.
"""

from __future__ import annotations

from ..dtype import DType, dtypes
from ..ir import index
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..simplify.validity import conjuncts


def only_checked(condition: UOp, position: UOp) -> bool:
    """Whether all that a condition asks for is checked on the way to a position."""
    checks, others = _told_apart(conjuncts(condition))
    return bool(checks) and not others and set(position.toposort()).issuperset(checks)


def _told_apart(conditions: list[UOp]) -> tuple[list[UOp], list[UOp]]:
    """(the CHECKs among conditions, those of the others that they do not imply)."""
    checks = [c for c in conditions if c.op is Ops.CHECK]
    implied = {below for check in checks for below in conjuncts(check.src[0])}
    return checks, [c for c in conditions if c.op is not Ops.CHECK and c not in implied]


def short_conditions(sink: UOp) -> UOp:
    """The same (form 6): no condition asks again for what one of its CHECKs says, and one comparison says
    whether a number is in range.
    """
    nodes = sink.toposort()
    if not any(node.op is Ops.CHECK for node in nodes):
        return sink
    made: dict[UOp, UOp] = {}
    for node in nodes:
        src = tuple([made[s] for s in node.src])
        kept = node if src == node.src else UOp(node.op, node.dtype, src, node.arg)
        if kept is not node and "bounds" in node.facts:
            kept.facts.setdefault("bounds", node.facts["bounds"])
        if node.op is Ops.AND:
            checks, others = _told_apart(conjuncts(node))
            kept = _all_of([made[c] for c in (*checks, *others)]) if checks else _in_range(kept)
        made[node] = kept
    return made[sink]


_UNSIGNED: dict[DType, DType] = {dtypes.int32: dtypes.uint32, dtypes.int64: dtypes.uint64}


def _in_range(both: UOp) -> UOp:
    """`0 <= p and p < n` is p < n of unsigned numbers. (Vectors have no such comparison on many machines.)"""
    for least, below in (both.src, both.src[::-1]):
        if least.op is not Ops.CMPLE or below.op is not Ops.CMPLT or least.src[1] is not below.src[0]:
            continue
        (zero, number), size = least.src, below.src[1]
        unsigned = _UNSIGNED.get(number.dtype)
        if unsigned and zero.op is size.op is Ops.CONST and zero.arg == 0 and size.arg >= 0:
            return UOp(Ops.CMPLT, dtypes.bool, (number.cast(unsigned), UOp.const(unsigned, size.arg)))
    return both


def _all_of(conditions: list[UOp]) -> UOp:
    result = conditions[0]
    for condition in conditions[1:]:
        result = UOp(Ops.AND, result.dtype, (result, condition))
    return result


def without_checks(sink: UOp) -> UOp:
    """The same loops (form 3), each CHECK its value: as they are where nothing is checked."""
    nodes = sink.toposort()
    if not any(node.op is Ops.CHECK for node in nodes):
        return sink
    made: dict[UOp, UOp] = {}
    for node in nodes:
        src = tuple([made[s] for s in node.src])
        if node.op is Ops.CHECK:
            made[node] = src[0]
        else:
            made[node] = node if src == node.src else index.rebuild(node, src)
    return made[sink]

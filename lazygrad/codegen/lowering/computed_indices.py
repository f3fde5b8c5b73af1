"""Computed places as index arithmetic: what is loaded in them is an atom, the rest moves by strides.

`table[rows]` reads `0 <= r & r < n ? r*256 + j : -1` with r loaded. Where the condition holds nothing of it
wraps around, so it is the number 256*r + j: neighbours along j are neighbours in memory. r stands in it as
`condition ? r : 0`, which is inside of the table always.
"""

from __future__ import annotations

from ...dtype import DType, dtypes
from ...ir import index
from ...ir.index import FALSE, TRUE, conjuncts, sint
from ...ir.ops import Ops
from ...ir.rewrite import resolve
from ...ir.uop import UOp

_INTEGER_OPS = frozenset((Ops.ADD, Ops.SUB, Ops.MUL))
ZERO = index.const(0)


def computed_index(value: UOp, size: sint) -> tuple[UOp, UOp]:
    """A computed value as an index, and whether it is inside of [0, size)."""
    known = TRUE
    while value.op is Ops.WHERE and value.src[2].op is Ops.CONST and value.src[2].arg < 0:
        known = index.all_of((known, value.src[0]))
        value = value.src[1]
    position = _as_arithmetic(value, known)
    not_negative = index.logical_not(index.less(position, ZERO))
    inside = index.all_of((known, not_negative, index.less(position, index.as_index(size))))
    checks = [c for c in conjuncts(known) if c.op is Ops.CHECK]
    never = inside is FALSE or any(c.src[0].op is Ops.CONST for c in checks)
    if checks and never:  # a kernel has to find that out, and say so
        return ZERO, index.all_of(checks)
    return position, inside


def _as_arithmetic(root: UOp, known: UOp) -> UOp:
    """Index arithmetic that is equal to a data integer wherever `known` holds."""
    done: dict[UOp, UOp] = {}
    return resolve(
        root, _below, lambda node: _number(node, tuple([done[s] for s in _below(node)]), known), done
    )


def _below(node: UOp) -> tuple[UOp, ...]:
    """The data integers that a sum, product or conversion is made of."""
    if node.op in _INTEGER_OPS:
        return node.src
    if node.op is Ops.CAST and dtypes.is_int(node.src[0].dtype) and node.src[0].dtype is not dtypes.index:
        return node.src
    return ()


def _number(node: UOp, src: tuple[UOp, ...], known: UOp) -> UOp:
    if node.op is Ops.CONST:
        return index.const(int(node.arg))
    if node.op is Ops.CAST:
        number = src[0] if src else node.src[0] if node.src[0].dtype is dtypes.index else None
    else:
        number = index.rebuild(UOp(node.op, dtypes.index, src), src) if src else None
    if number is not None and _fits(number, node.dtype):
        return number
    return index.as_index(_guarded(node, known))


def _fits(number: UOp, dtype: DType) -> bool:
    low, high = index.bounds(number)
    return int(dtypes.min(dtype)) <= low and high <= int(dtypes.max(dtype))


def _guarded(value: UOp, known: UOp) -> UOp:
    """A value that is another number where `known` fails, if its bounds are narrower so."""
    low, high = index.bounds_where(known, value)
    if (low, high) == index.bounds(value):
        return value
    other = UOp.const(value.dtype, 0 if low <= 0 <= high else low)
    return UOp(Ops.WHERE, value.dtype, (known, value, other))

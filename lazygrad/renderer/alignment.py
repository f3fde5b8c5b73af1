"""What a place in memory is known to be a multiple of, and what it has to be one of."""

from __future__ import annotations

from collections.abc import Iterable

from ..dtype import PtrDType, dtypes
from ..ir.ops import Ops
from ..ir.uop import UOp

#: Of 0, which every number divides.
_ANY = 1 << 30


def multiple_of(node: UOp) -> int:
    """The greatest power of two that is known to divide an integer."""
    found = node.facts.get("multiple_of")
    if found is None:
        found = node.facts["multiple_of"] = _multiple_of(node)
    return found


def _multiple_of(node: UOp) -> int:
    op = node.op
    if dtypes.is_float(node.dtype):  # which an index may be made of
        return 1
    if op is Ops.CONST:
        return int(node.arg & -node.arg) or _ANY
    if op in (Ops.CAST, Ops.NEG):
        return multiple_of(node.src[0])
    if op is Ops.SHL and node.src[1].op is Ops.CONST:
        return min(multiple_of(node.src[0]) << int(node.src[1].arg), _ANY)
    if op is Ops.MUL:
        return min(multiple_of(node.src[0]) * multiple_of(node.src[1]), _ANY)
    if op is Ops.AND:
        return max(map(multiple_of, node.src))
    if op in (Ops.ADD, Ops.SUB, Ops.OR, Ops.XOR, Ops.MOD):
        return min(map(multiple_of, node.src))
    if op is Ops.WHERE:
        return min(map(multiple_of, node.src[1:]))
    return 1


def reads_packed(node: UOp) -> bool:
    """Whether a step of a linear program multiplies matrices that an instruction reads from panels."""
    return node.op is Ops.WMMA and node.arg.columns > 0 and node.arg.turned is None


def alignment_for_packed(memory: UOp, uops: Iterable[UOp]) -> int:
    """Bytes that a workgroup's memory begins at a multiple of for who reads panels of it; 0 = nobody does."""
    assert isinstance(memory.dtype, PtrDType)
    for node in filter(reads_packed, uops):
        for factor, panel in zip(node.src[node.arg.sums :], node.arg.tiles, strict=True):
            if factor.src[0] is memory:
                return int(panel.alignment * panel.itemsize)
    return 0

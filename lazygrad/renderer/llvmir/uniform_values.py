"""What is known of values before they are written: which places are 0 where they are not valid, which
conditions are of places alone, which vectors have lanes of zero.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dtype import dtypes
from ...ir.ops import Ops
from ...ir.uop import UOp


def is_start_elsewhere(position: UOp, valid: UOp) -> bool:
    """Whether a place is 0 wherever it is not valid."""
    return (
        position.op is Ops.WHERE
        and position.src[0] is valid
        and position.src[2].op is Ops.CONST
        and position.src[2].arg == 0
    )


#: Operations of which a condition on places is made: no data has part in it.
_OF_PLACES = {Ops.CONST, Ops.RANGE, Ops.ADD, Ops.SUB, Ops.MUL, Ops.SHL, Ops.CMPLT, Ops.CMPNE, Ops.AND, Ops.OR}
#: One of so many of them, each counted where it is used, is no simple condition.
_MANY = 40


def uniform_costs(uops: Sequence[UOp]) -> dict[UOp, int]:
    """What only the places in loops decide, and of how many operations it is made: a few."""
    size: dict[UOp, int] = {}
    for node in uops:
        if node.op in _OF_PLACES and all(s in size for s in node.src):
            total = 1 + sum([size[s] for s in node.src])
            if total < _MANY:
                size[node] = total
    return size


def zero_lanes(uops: Sequence[UOp]) -> set[UOp]:
    """The values some of whose lanes LLVM may know to be zero: those that a mask or padding left out."""
    found: set[UOp] = set()
    for node in uops:
        if node.op is Ops.CONST:
            zero = isinstance(node.arg, tuple) and dtypes.is_float(node.dtype) and not all(node.arg)
        elif node.op is Ops.VECTORIZE:
            zero = any(lane.op is Ops.CONST and not lane.arg for lane in node.src)
        elif node.op is Ops.LOAD:
            zero = node.dtype.count > 1 and (len(node.src) > 1 or len(node.src[0].src) > 2)
        else:
            zero = any(s in found and s.dtype.count > 1 for s in node.src)
        if zero:
            found.add(node)
    return found

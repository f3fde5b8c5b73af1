"""What is known of values before they are written: which places do not wrap, or count from another, which
conditions are of places alone, which vectors have lanes of zero.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dtype import dtypes
from ...ir.index import bounds
from ...ir.ops import Ops
from ...ir.uop import UOp


def wraps(node: UOp) -> str:
    """` nsw` where bounds prove that nothing wraps: LLVM then widens loop counters to addresses."""
    dtype = node.dtype
    if dtype not in (dtypes.int32, dtypes.int64):
        return ""
    (a, b), (c, d) = (bounds(s) for s in node.src)
    if node.op is Ops.ADD:
        reached = (a + c, b + d)
    elif node.op is Ops.SUB:
        reached = (a - d, b - c)
    elif node.op is Ops.MUL:
        reached = (a * c, a * d, b * c, b * d)  # type: ignore[assignment]
    elif node.op is Ops.SHL and node.src[1].op is Ops.CONST:
        reached = (a << c, b << c)
    else:
        return ""
    return " nsw" if dtypes.min(dtype) <= min(reached) and max(reached) <= dtypes.max(dtype) else ""


def is_offset(position: UOp) -> bool:
    """Whether a place is a constant away from another, in numbers that do not wrap."""
    constant = position.op is Ops.ADD and position.src[1].op is Ops.CONST
    return constant and position.dtype.count == 1 and wraps(position) != ""


def is_start_elsewhere(position: UOp, valid: UOp) -> bool:
    """Whether a place is 0 wherever it is not valid."""
    return (
        position.op is Ops.WHERE
        and position.src[0] is valid
        and position.src[2].op is Ops.CONST
        and position.src[2].arg == 0
    )


def only_in_addresses(uops: Sequence[UOp]) -> set[UOp]:
    """The sums that nothing asks for but `address`, which writes their parts."""
    found, others = set[UOp](), set[UOp]()
    for node in uops:
        masked_whole = node.op is Ops.INDEX and len(node.src) > 2 and node.src[2].dtype.count == 1
        for place, source in enumerate(node.src):
            if node.op is Ops.INDEX and place == 1 and not masked_whole and is_offset(source):
                found.add(source)
            else:
                others.add(source)
    return found - others


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

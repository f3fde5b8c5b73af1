"""Index tuples: at which place of a value somebody needs it, one index expression for each axis."""

from __future__ import annotations

from ..ir.index import as_index, const, sint
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..shape.tracker import ShapeTracker

Indices = tuple[UOp, ...]

#: Instead of index tuples: read at places that only the data knows; and not read, but written further.
ANYWHERE: Indices = (UOp(Ops.NOOP, const(0).dtype, (), "anywhere"),)
CONTINUES: Indices = (UOp(Ops.NOOP, const(0).dtype, (), "continues"),)


def size_of(r: UOp) -> sint:
    """The size of a RANGE."""
    size = r.src[0]
    return size.arg if size.op is Ops.CONST else size


def free_ranges(indices: Indices) -> frozenset[UOp]:
    """The ranges that the place depends on."""
    found: set[UOp] = set()
    for at in indices:
        if at.op is Ops.RANGE:
            found.add(at)
        elif at.op is not Ops.CONST:
            found |= _ranges_below(at)
    return frozenset(found)


def _ranges_below(node: UOp) -> frozenset[UOp]:
    """The ranges that an index expression depends on, cached on it."""
    known = node.facts.get("ranges_below")
    if known is None:
        known = frozenset(n for n in node.toposort() if n.op is Ops.RANGE)
        node.facts["ranges_below"] = known
    return known


def through(tracker: ShapeTracker, indices: Indices, shape: tuple[sint, ...]) -> Indices:
    """The indices of the base at which a view is read."""
    flat, _ = tracker.indexed(indices)
    result: list[UOp] = []
    rest = flat
    for size in reversed(shape):
        if size == 1:
            result.append(const(0))
            continue
        whole = as_index(size)
        result.append(rest % whole)
        rest = rest // whole
    if result and shape[0] != 1:
        # the first axis needs no remainder: what is left is its index
        outermost = flat
        for size in reversed(shape[1:]):
            outermost = outermost // as_index(size)
        result[-1] = outermost
    return tuple(reversed(result))

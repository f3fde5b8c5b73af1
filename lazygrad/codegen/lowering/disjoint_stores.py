"""On a grid, the axes of a store in order whose places never meet are threads.

What is added to places that are read from memory has to be added in order: `out[index[i], j] += x[i, j]`. But
only along i. Of an address that is a sum of terms, a range r with n turns and the stride s moves within a
block of n * s places, if every other term moves by whole blocks, or is a range that moves within s. Then two
places of r are never those of one address, whatever the others are:

    a = n * s * (whole) + s * r + (less than s)      determines r

A processor keeps such an axis a loop: there it is the one whose places follow each other in memory.
"""

from __future__ import annotations

from ...ir import index
from ...ir.args import AxisType, RangeArg
from ...ir.nest import loops_around, ranges_of
from ...ir.ops import Ops
from ...ir.rewrite import transform
from ...ir.uop import UOp
from ...ir.walks import of_op
from ...target import Target
from ..expressions.ranges import is_computed, substitute_ranges


def disjoint_threads(sink: UOp, target: Target) -> UOp:
    """The kernel with threads instead of loops where that is so for all that it stores."""
    if not target.grid or not any(is_computed(_address(store)) for store in sink.src):
        return sink
    order = sink.toposort()
    loops = [node for node in of_op(order, Ops.RANGE) if node.arg.kind is AxisType.LOOP]
    apart = [r for r in loops if _is_disjoint(r, sink, order)]
    return _in_threads(sink, frozenset(apart)) if apart else sink


def _is_disjoint(r: UOp, sink: UOp, order: list[UOp]) -> bool:
    if any(node.op in (Ops.REDUCE, Ops.SCAN, Ops.STAGE) and r not in ranges_of(node) for node in order):
        return False  # threads side by side would all compute it
    return all(_never_meet(r, store) and _reads_its_own(store, order) for store in sink.src)


def _address(store: UOp) -> UOp:
    return store.src[0].src[1]


def _never_meet(r: UOp, store: UOp) -> bool:
    if r not in ranges_of(store):
        return False
    turns = index.bounds(r.src[0])
    terms, _ = index.terms_of(_address(store))
    stride = terms.get((r,), 0)
    if turns[0] != turns[1] or stride <= 0:
        return False
    block, within = turns[0] * stride, 0
    for monomial, coefficient in terms.items():
        if monomial == (r,) or coefficient % block == 0:
            continue
        least, most = index.bounds(monomial[0]) if len(monomial) == 1 else (-1, 0)
        if monomial[0].op is not Ops.RANGE or least < 0 or coefficient < 0:
            return False
        within += coefficient * most
    return within < stride


def _reads_its_own(store: UOp, order: list[UOp]) -> bool:
    """Whether what is stored reads the memory that it is stored in at the same place only."""
    memory, place = store.src[0].src[0], store.src[0].src[1]
    reads = [n for n in of_op(order, Ops.INDEX) if n.src[0] is memory and n is not store.src[0]]
    return all(read.src[1] is place for read in reads)


def _in_threads(sink: UOp, apart: frozenset[UOp]) -> UOp:
    """The kernel with threads in the place of loops: what one of them loads no other has written."""

    def loaded(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
        if node.op is not Ops.LOAD or apart.isdisjoint(loops_around(node)):
            return None
        return node.replace(src=(src[0], *[r for r in loops_around(node) if r not in apart]))

    sink = transform(sink, loaded, None, rebuild=index.rebuild)
    threads = {r: r.replace(arg=RangeArg(r.arg.id, AxisType.GLOBAL)) for r in apart}
    return substitute_ranges(sink, threads)

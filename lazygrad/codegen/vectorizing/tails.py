"""Tails of loops in form 4: where only the last turn needs masks, it is done after the loop.

    for i in 0..63:  for u in 0..16:  if 16*i+u < 1000:  ...
becomes
    for i in 0..62:  for u in 0..16:  ...
    for u in 0..16:  if 992+u < 1000:  ...
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...dtype import dtypes
from ...ir import index
from ...ir.args import AxisType, RangeArg
from ...ir.index import as_sint
from ...ir.nest import closed_ranges, free_numbers, output_ranges, ranges_of
from ...ir.ops import COMPARISONS, Ops
from ...ir.rewrite import transform
from ...ir.uop import UOp, toposort
from ...ir.walks import of_op
from ..expressions.ranges import IN_REGISTERS, make_range, only_where, scanned_ranges, substitute_ranges

#: A kernel's tails are cut at most so often: each cut writes the loop's body once more.
MAX_CUTS = 6


def cut_tails(sink: UOp) -> UOp:
    """The kernel without masks between lanes or registers in loops whose last turn alone needs them."""
    for _ in range(MAX_CUTS):
        loop = _cuttable(sink)
        if loop is None:
            break
        sink = _cut(sink, loop)
    return sink


def _cuttable(sink: UOp) -> UOp | None:
    """A loop whose last turn alone needs conditions that differ between lanes or registers.

    Where each turn has a reduction without masks, those around it cost too little to write it once more.
    The turns of a SCAN stay together, since the last one goes on with what the others carry; so do those that
    fill a STAGE.
    """
    nodes = sink.toposort()
    whole = scanned_ranges(nodes).union(*(closed_ranges(node) for node in of_op(nodes, Ops.STAGE)))
    masks: dict[UOp, list[UOp]] = {}
    for node in nodes:
        if node.op in COMPARISONS and node.src[0].dtype is dtypes.index:
            ranges = ranges_of(node)
            if any(r.arg.kind in IN_REGISTERS for r in ranges):
                for r in ranges:
                    cuttable = r.arg.kind not in IN_REGISTERS and r not in whole
                    if cuttable and r.src[0].op is Ops.CONST and r.src[0].arg > 1:
                        masks.setdefault(r, []).append(node)
    reduced = inside_reductions(nodes)
    for r in sorted(masks, key=lambda r: -r.arg.id):
        if reduced.isdisjoint(masks[r]) and any(r in ranges_of(node) for node in of_op(nodes, Ops.REDUCE)):
            continue
        shorter = _range_or_zero(r.src[0].arg - 1, r.arg)
        done = index.substitute(masks[r], {r: shorter})
        if all(done[mask].op is Ops.CONST for mask in masks[r]):
            return r
    return None


def inside_reductions(nodes: Sequence[UOp]) -> set[UOp]:
    """All that is done in each step of some REDUCE: what is below it, but for what a STAGE there holds."""
    stages = set(of_op(nodes, Ops.STAGE))
    return set(toposort([node.src[0] for node in of_op(nodes, Ops.REDUCE)], done=stages))


def _range_or_zero(size: int, arg: RangeArg) -> UOp:
    return make_range(size, arg.id, arg.kind) if size > 1 else index.const(0)


def _cut(sink: UOp, loop: UOp) -> UOp:
    """All but the last turn of a loop, and then the last."""
    nodes = sink.toposort()
    fresh = free_numbers(nodes)[0]
    last = index.const(loop.src[0].arg - 1)
    shorter = _range_or_zero(loop.src[0].arg - 1, loop.arg)

    def copies(others: Iterable[UOp]) -> dict[UOp, UOp]:
        """Loops of their own for the last turn."""
        loops = [r for r in others if r is not loop and r.arg.kind not in IN_REGISTERS]
        return {r: make_range(as_sint(r.src[0]), fresh + i, r.arg.kind) for i, r in enumerate(loops)}

    if not any(node.op is Ops.REDUCE and loop in node.src[1:] for node in nodes):
        outputs = output_ranges(nodes)
        inner = outputs[outputs.index(loop) + 1 :]
        touched = [store for store in sink.src if loop in ranges_of(store)]
        main = substitute_ranges(sink, {loop: shorter})
        tail = substitute_ranges(sink.replace(src=tuple(touched)), {**copies(inner), loop: last})
        stores = tail.src
        if loop.arg.kind is AxisType.THREAD:
            once = make_range(2, fresh + len(nodes), AxisType.THREAD)
            stores = tuple([only_where(store, index.equal(once, index.const(0))) for store in stores])
        return sink.replace(src=main.src + stores)

    def in_segments(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
        if node.op is not Ops.REDUCE or loop not in node.src[1:]:
            return None
        made = node.replace(src=src)
        main = substitute_ranges(made, {loop: shorter})
        tail = substitute_ranges(made, {**copies(node.src[1:]), loop: last})
        return UOp(node.arg, node.dtype, (main, tail))

    return transform(sink, in_segments, "cut tails", rebuild=index.rebuild, order=nodes)

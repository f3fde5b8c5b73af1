"""INLINE: a row that the kernel was to keep is computed anew by each loop that reads it.

What is kept is said by the kernel (a STAGE of form 2); this is the way back, where the loops of a row are
written out in registers and nothing is computed twice, or where other axes are to be computed at once.
"""

from __future__ import annotations

from dataclasses import replace

from ....ir import index
from ....ir.nest import closed_ranges, stage_stores
from ....ir.ops import Ops
from ....ir.rewrite import transform
from ....ir.uop import UOp
from ....ir.walks import of_op
from ....target import Target
from .actions import Opt, OptOps, opt, require
from .loops import Axis, Loops


@opt(OptOps.INLINE)
class Inline:
    """Compute the values of which a row is kept along an axis where they are read.

        for k in 0..m:  temp0[k] = exp(x[k])
        for r in 0..m:  total += temp0[r]
        for j in 0..m:  out[j] = temp0[j] / total
    becomes
        for r in 0..m:  total += exp(x[r])
        for j in 0..m:  out[j] = exp(x[j]) / total
    """

    counts = "all"

    def check(self, loops: Loops, axis: Axis, amount: int, target: Target) -> None:
        require(bool(rows_along(loops, axis)), f"no row is kept along axis {axis.number}")
        require(not axis.factors and not axis.blocks, "the axis was split: INLINE comes first")

    def apply(self, loops: Loops, axis: Axis, amount: int, target: Target) -> Loops:
        return without_rows(loops, axis)


def rows_along(loops: Loops, axis: Axis) -> list[UOp]:
    """The STAGEs that a loop along an axis fills."""
    stages = of_op(loops.sink.toposort(), Ops.STAGE)
    return [stage for stage in stages if not set(closed_ranges(stage)).isdisjoint(axis.ranges)]


def without_rows(loops: Loops, axis: Axis) -> Loops:
    """The loops with the rows along an axis computed where they are read."""
    rows = set(rows_along(loops, axis))

    def computed(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
        if node.op is not Ops.LOAD or node.src[0].src[0] not in rows:
            return None
        stage, place = src[0].src[:2]
        ((store,), (filling,)) = stage_stores(stage), closed_ranges(stage)
        return index.substitute((store.src[1],), {filling: place})[store.src[1]]

    sink = transform(loops.sink, computed, None, rebuild=index.rebuild)
    fillings = {r for stage in rows for r in closed_ranges(stage)}
    walked = replace(axis, ranges=tuple([r for r in axis.ranges if r not in fillings]))
    axes = tuple([walked if axis.number == each.number else each for each in loops.axes])
    return replace(loops, sink=sink, axes=axes)


def all_inline(loops: Loops) -> tuple[Loops, list[Opt]]:
    """The loops without any row that is kept, and the Opts that make them so."""
    opts = []
    for axis in loops.axes:
        if rows_along(loops, axis):
            opts.append(Opt(OptOps.INLINE, axis.number))
            loops = without_rows(loops, axis)
    return loops, opts

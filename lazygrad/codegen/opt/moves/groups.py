"""GROUP and GROUPTOP: a reduction is divided among the threads of a workgroup, or among the lanes of vectors.

Two of the legal moves; `actions` tells how they are applied, `gpu/passes/assign_grid.py` what becomes of
them.
"""

from __future__ import annotations

from ....ir.args import AxisType
from ....target import Target
from ...expressions.ranges import scanned_ranges
from .actions import (
    MAX_UNROLL,
    OptOps,
    opt,
    require,
    require_any_order,
    require_shared_stages,
    require_whole_steps,
)
from .inline import rows_along
from .loops import Axis, Loops


class _Grouped:
    """What both have in common; they count among the reduce axes."""

    counts = "reduces"
    #: Whether each thread takes consecutive steps.
    consecutive = False

    def check(self, loops: Loops, axis: Axis, amount: int, target: Target) -> None:
        require_whole_steps(axis, amount)
        require(bool(axis.ranges), "no loop is left along the axis")
        if axis.output:
            require_any_order(loops, axis)
        require_shared_stages(loops, axis)
        if not target.grid:
            require(amount <= MAX_UNROLL, f"at most {MAX_UNROLL} partial results are kept at once")
            return
        require(target.has_local, f"the workgroups of {target.name} share no memory")
        require(not loops.no_locals, "NOLOCALS was applied")
        require(not rows_along(loops, axis), "each thread would keep a part of the row: INLINE comes first")
        kinds = {r.arg.kind for each in loops.axes for r in each.ranges}
        kinds |= {kind for each in loops.axes for kind, _ in each.factors}
        require(AxisType.GROUP not in kinds, "the threads of a workgroup share one axis already")
        require(AxisType.WARP not in kinds, "the threads of a warp compute matrices together")
        scanned = scanned_ranges(loops.sink.toposort())
        require(scanned.isdisjoint(axis.ranges), "a running value takes one step after the other")

    def apply(self, loops: Loops, axis: Axis, amount: int, target: Target) -> Loops:
        if target.grid:
            kind = AxisType.GROUP
        else:
            kind = AxisType.UPCAST if axis.output else AxisType.UNROLL
        return loops.split(axis, amount, kind, consecutive=self.consecutive)


@opt(OptOps.GROUP)
class Group(_Grouped):
    """Divide a reduction among `amount` threads of a workgroup: every thread takes each `amount`-th step.

        for r in 0..n:  acc += f(r)
    becomes
        for each thread l in 0..4:  for r in 0..n/4:  part[l] += f(4r+l)
        for l in 0..4:  acc += part[l]

    The parts meet in local memory. Along an axis of outputs too, each thread stores its share of them. On a
    processor the threads are lanes: as many partial results in registers, combined once.
    """


@opt(OptOps.GROUPTOP)
class GroupTop(_Grouped):
    """Divide a reduction among `amount` threads of a workgroup: every thread takes consecutive steps.

        for r in 0..n:  acc += f(r)
    becomes
        for each thread l in 0..4:  for r in 0..n/4:  part[l] += f(l*n/4+r)
        for l in 0..4:  acc += part[l]

    Otherwise as GROUP.
    """

    consecutive = True

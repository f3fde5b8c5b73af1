"""AHEAD: what a workgroup copies in the turns of a loop is on the way some turns before it is read.

One of the legal moves; `actions` tells how they are applied.
"""

from __future__ import annotations

from ...codegen.expressions.ranges import substitute_ranges
from ...codegen.opt.moves.actions import OptOps, opt, require
from ...codegen.opt.moves.loops import Axis, Loops
from ...dtype import PtrDType, dtypes
from ...ir import index
from ...ir.args import AxisType
from ...ir.nest import is_shared, ranges_of
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...target import Target
from .factors import APART

#: The most copies of one STAGE.
MOST_AHEAD = 4


@opt(OptOps.AHEAD)
class MultiBuffer:
    """Keep `amount` copies of what each STAGE holds, in turns of the axis' loop: one is filled while another
    is read (`gpu/passes/staging.py`).

        for k in 0..n:  temp0 = data1[k];  ... temp0[i] ...
    becomes
        for k in 0..n:  temp0[m*(k%2):] = data1[k];  ... temp0[m*(k%2) + i] ...
    and, once the threads are known,
        temp0[0:] = data1[0]
        for k in 0..n:  temp0[m*((k+1)%2):] = data1[k+1] if k+1 < n;  ... temp0[m*(k%2) + i] ...
    """

    counts = "all"

    def check(self, loops: Loops, axis: Axis, amount: int, target: Target) -> None:
        require(target.async_copies, f"{target.name} has no copies that threads need not wait for")
        require(2 <= amount <= MOST_AHEAD, f"there are 2 to {MOST_AHEAD} copies")
        require(len(axis.outermost) == 1, "one loop is to be left along the axis")
        (turns,) = axis.outermost
        launched = turns.arg.kind in (AxisType.GLOBAL, AxisType.LOCAL, AxisType.WARP, AxisType.GROUP)
        require(not launched, "its turns are threads and workgroups, which run at once")
        stages = _stages(loops, turns)
        require(bool(stages), "nothing is copied in each turn of the axis' loop: apply STAGE before")
        require(all(stage.arg is None for stage in stages), "AHEAD was applied")
        fixed = turns.src[0].op is Ops.CONST and turns.src[0].arg > amount
        require(fixed, f"the loop is to have more than {amount} turns")
        require(_starts_once(loops, turns), "another loop starts its loop again and again")
        apart = any(r is not turns and r in axis_loops(loops) for s in stages for r in ranges_of(s))
        require(not apart, "what is copied depends on another loop of the kernel too")

    def apply(self, loops: Loops, axis: Axis, amount: int, target: Target) -> Loops:
        (turns,) = axis.outermost
        mapping: dict[UOp, UOp] = {}
        for stage in _stages(loops, turns):
            mapping |= _several(loops.sink, stage, turns, amount)
        return loops.with_sink(substitute_ranges(loops.sink, mapping))


def axis_loops(loops: Loops) -> set[UOp]:
    """The loops that a thread walks: those that are no output's."""
    return {r for axis in loops.axes if not axis.output for r in axis.ranges}


def _starts_once(loops: Loops, turns: UOp) -> bool:
    """Whether no loop that a thread walks stands around this one: its first copies are filled once."""
    walked = {r for r in axis_loops(loops) if r.arg.kind in (AxisType.REDUCE, AxisType.LOOP)}
    return all(
        next(r for r in node.src[1:] if r in walked) is turns and walked.isdisjoint(ranges_of(node))
        for node in loops.sink.toposort()
        if node.op is Ops.REDUCE and turns in node.src[1:]
    )


def _stages(loops: Loops, turns: UOp) -> list[UOp]:
    """The copies of a workgroup that are filled in each turn of a loop."""
    return [node for node in loops.sink.toposort() if is_shared(node) and turns in ranges_of(node)]


def _several(sink: UOp, stage: UOp, turns: UOp, amount: int) -> dict[UOp, UOp]:
    """Each INDEX into a STAGE as one into the copy of this turn, of a STAGE that has so many."""
    memory = stage.src[0]
    assert isinstance(memory.dtype, PtrDType)
    base = memory.dtype.base
    whole = max(APART // base.itemsize, 1)
    size = -(-memory.dtype.size // whole) * whole
    larger = memory.replace(dtype=base.ptr(size * amount, local=True))
    here = index.mod(turns, index.const(amount)) * size

    def moved(access: UOp, into: UOp) -> UOp:
        return UOp(Ops.INDEX, larger.dtype, (into, access.src[1] + here, *access.src[2:]), access.arg)

    stores = [
        UOp(Ops.STORE, dtypes.void, (moved(s.src[0], larger), *s.src[1:]), s.arg) if s.op is Ops.STORE else s
        for s in stage.src[1:]
    ]
    made = UOp(Ops.STAGE, larger.dtype, (larger, *stores), amount)
    accesses = [n for n in sink.toposort() if n.op is Ops.INDEX and n.src[0] is stage]
    return {access: moved(access, made) for access in accesses}

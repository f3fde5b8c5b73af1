"""ROUNDS: a sum is added up a few steps at a time, for all results of a block in each round.

One of the legal moves; `actions` tells how they are applied.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ....dtype import dtypes
from ....ir import index
from ....ir.args import AxisType
from ....ir.nest import free_numbers, ranges_of
from ....ir.ops import Ops
from ....ir.uop import UOp
from ....ir.walks import of_op
from ....target import Target
from ...expressions.narrow import NARROW
from ...expressions.ranges import IN_REGISTERS, make_range, neutral, substitute_ranges
from .actions import OptOps, opt, require, require_whole_steps
from .loops import Axis, Loops
from .stage import replaced

#: A sum is of at most so many rounds, by those who choose them, so that its error stays small.
IN_A_ROW = 72


@opt(OptOps.ROUNDS)
class KBlocks:
    """Do `amount` steps of the kernel's sum for all its results, then as many more; the sums wait in memory.

        for i in 0..n: for j in 0..m:
          acc = 0
          for k in 0..64:  acc += f(i, j, k)
          out[i, j] = acc
    becomes
        for round in 0..4: for j in 0..m: for i in 0..n:
          acc = 0
          for k in 0..16:  acc += f(i, j, 16*round+k)
          temp0[j, i] = acc + (temp0[j, i] if 0 < round else 0)
        for i in 0..n: for j in 0..m:  out[i, j] = temp0[j, i]

    A round reads what follows what the one before it read, if steps are rows of a matrix. All results are
    those of one turn of the loops that TILE moved outward. Of the loops over them the last one is the
    outermost: what differs along it is most often what is read in order.
    """

    counts = "reduces"

    def check(self, loops: Loops, axis: Axis, amount: int, target: Target) -> None:
        require(not target.grid, f"{target.name} runs its threads in any order")
        require_whole_steps(axis, amount)
        require(isinstance(axis.size, int), "how many rounds there are has to be known")
        require(amount != axis.size, "one round is the whole sum")
        reason = why_not_k_blocked(loops, axis)
        require(not reason, reason)
        (sum_,) = _sums(loops)
        before = _k_blocks_around(loops.sink, sum_)
        stages = of_op(loops.sink.toposort(), Ops.STAGE, Ops.SCAN, Ops.WMMA)
        require(stages == before, "apply it before STAGE")
        closed = _closed(sum_, before)
        require(any(r.arg.kind not in IN_REGISTERS for r in closed), "no loop is left over the results")
        require(all(r.src[0].op is Ops.CONST for r in closed), "the sums would have a size that is not known")
        size = math.prod(r.src[0].arg for r in closed) * sum_.dtype.itemsize
        limit = max(target.memory.sizes)
        require(size <= limit, f"the sums have {size} bytes; at most {limit} are kept")

    def apply(self, loops: Loops, axis: Axis, amount: int, target: Target) -> Loops:
        (sum_,) = _sums(loops)
        (steps,) = axis.ranges
        fresh, number = free_numbers(loops.sink.toposort())
        rounds = make_range(steps.src[0].arg // amount, fresh, AxisType.LOOP)
        shorter = make_range(amount, steps.arg.id, steps.arg.kind)
        closed = _closed(sum_, _k_blocks_around(loops.sink, sum_))
        own = {
            r: make_range(
                r.src[0].arg,
                fresh + 1 + place,
                r.arg.kind if r.arg.kind in IN_REGISTERS else AxisType.LOOP,
            )
            for place, r in enumerate(closed)
        }
        size = math.prod(r.src[0].arg for r in closed)
        memory = UOp(Ops.DEFINE_LOCAL, sum_.dtype.ptr(size), (), number)
        mapping = {**own, steps: rounds * amount + shorter}
        value = substitute_ranges(sum_.src[0], mapping)
        added = UOp(Ops.REDUCE, sum_.dtype, (value, shorter), sum_.arg)
        there, here = (_dense(closed, at) for at in (own, {r: r for r in closed}))
        again = index.less(index.const(0), rounds)
        before = UOp(Ops.LOAD, sum_.dtype, (UOp(Ops.INDEX, memory.dtype, (memory, there, again)),))
        if sum_.arg is not Ops.ADD:  # what is not loaded is 0
            before = UOp(Ops.WHERE, sum_.dtype, (again, before, neutral(sum_)))
        total = UOp(sum_.arg, sum_.dtype, (added, before))
        store = UOp(Ops.STORE, dtypes.void, (UOp(Ops.INDEX, memory.dtype, (memory, there)), total))
        stage = UOp(Ops.STAGE, memory.dtype, (memory, store, rounds, *own.values()))
        found = UOp(Ops.LOAD, sum_.dtype, (UOp(Ops.INDEX, memory.dtype, (stage, here)),))
        left = replace(axis, size=amount, ranges=(shorter,))
        sink = replaced(loops.sink, sum_, found)
        axes = tuple(left if each.number == axis.number else each for each in loops.axes)
        return replace(loops, sink=sink, axes=axes)


def why_not_k_blocked(loops: Loops, axis: Axis) -> str:
    """Why the sum along an axis cannot wait in memory; "" where it can."""
    if axis.output or len(axis.ranges) != 1:
        return "ROUNDS is for axes along which one sum is made"
    sums = _sums(loops)
    if len(sums) != 1 or sums[0].src[1:] != axis.ranges:
        return "ROUNDS is for kernels of one sum along one axis"
    if sums[0].src[0].op is Ops.DOT:
        return "what is packed is added up at once"
    rounded = sums[0].arg is not Ops.MAX and sums[0].dtype in NARROW
    return f"memory of {sums[0].dtype} would round sums" if rounded else ""


def _sums(loops: Loops) -> list[UOp]:
    return of_op(loops.sink.toposort(), Ops.REDUCE)


def _k_blocks_around(sink: UOp, sum_: UOp) -> list[UOp]:
    """The STAGEs of rounds in which a sum is done already, the innermost first."""
    return [n for n in of_op(sink.toposort(), Ops.STAGE) if sum_ in n.src[1].toposort()]


def _closed(sum_: UOp, around: list[UOp]) -> list[UOp]:
    """The loops over the results of a sum that stand in each round: those that are looped over from the last
    on, then what is computed at once. In rounds these are known already.
    """
    if around:
        return list(around[0].src[3:])
    found = [r for r in ranges_of(sum_) if r.arg.kind not in (AxisType.TILE, AxisType.THREAD)]
    return sorted(
        found,
        key=lambda r: (r.arg.kind in IN_REGISTERS, r.arg.id if r.arg.kind in IN_REGISTERS else -r.arg.id),
    )


def _dense(ranges: list[UOp], at: dict[UOp, UOp]) -> UOp:
    place = index.const(0)
    for r in ranges:
        place = place * r.src[0] + at[r]
    return place

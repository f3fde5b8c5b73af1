"""What a workgroup may take, its threads and the local memory in which their partial results meet; and LOCAL,
which gives outputs to its threads.
"""

from __future__ import annotations

import math

from ...codegen.expressions.ranges import IN_REGISTERS, largest_power_of_two
from ...codegen.opt.moves.actions import (
    LIMITS,
    OptOps,
    opt,
    require,
    require_shared_stages,
    require_whole_steps,
)
from ...codegen.opt.moves.loops import Axis, Loops, is_parallel
from ...dtype import PtrDType
from ...ir.args import AxisType
from ...ir.nest import ranges_of
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...target import Target

#: Up to so many parts are combined by a thread at once.
MOST_PARTS = 16
_THREADS = (AxisType.LOCAL, AxisType.WARP, AxisType.GROUP)


def radices(count: int) -> list[int]:
    """How many parts each thread combines, level by level, until there is one: their product is `count`.

    Few levels, since threads wait for each other at each, of few steps each: 256 in 16 and 16.
    """
    found: list[int] = []
    while count > MOST_PARTS:
        levels = math.ceil(math.log(count, MOST_PARTS))
        radix = largest_power_of_two(count, 1 << math.ceil(math.log2(count) / levels))
        if radix == 1:
            break
        found.append(radix)
        count //= radix
    return [*found, count] if count > 1 or not found else found


def threads_of(loops: Loops) -> int:
    """The threads of a workgroup."""
    return math.prod(amount for axis in loops.axes for kind, amount in axis.factors if kind in _THREADS)


def shared_bytes(loops: Loops) -> int:
    """The local memory for partial results: one for each thread, and each value that it computes at once.

    Where they are combined level by level, those of each level have memory of their own. What shuffles save
    is not counted: which threads are of one warp, later Opts decide.
    """
    total = 0
    for node in loops.sink.toposort():
        closed = node.src[1:] if node.op is Ops.REDUCE else ()
        for group in (r for r in closed if r.arg.kind is AxisType.GROUP):
            at_once = math.prod(r.src[0].arg for r in ranges_of(node) if r.arg.kind in IN_REGISTERS)
            parts = count = group.src[0].arg
            for radix in radices(count)[:-1]:
                count //= radix
                parts += count
            total += at_once * max(node.dtype.itemsize, 4) * parts * threads_of(loops) // group.src[0].arg
    return total


def shared_copies(sink: UOp) -> int:
    """The bytes of a workgroup's memory that hold copies."""
    memories = [node.src[0].dtype for node in sink.toposort() if node.op is Ops.STAGE]
    return sum(m.size * m.base.itemsize for m in memories if isinstance(m, PtrDType) and m.local)


def exchanged_bytes(loops: Loops, warps: int) -> int:
    """The local memory through which warps give and get their matrices."""
    cores = [node.arg for node in loops.sink.toposort() if node.op is Ops.WMMA]
    return max((core.warp_bytes for core in cores), default=0) * warps


def _exceeded(loops: Loops, target: Target) -> str:
    """Why a workgroup of the target cannot run these loops; "" where it can."""
    threads = threads_of(loops)
    most = min(target.group_threads, target.group_sizes[0])
    if threads > most:
        return f"a workgroup would have {threads} threads; {target.name} has at most {most}"
    taken = {
        "partial results": shared_bytes(loops),
        "copies": shared_copies(loops.sink),
        "matrices": exchanged_bytes(loops, threads // target.launch.warp),
    }
    total, room = sum(taken.values()), target.local_bytes
    if total > room:
        what = " and ".join(name for name, nbytes in taken.items() if nbytes)
        return f"{what} would take {total} bytes of local memory; {target.name} has {room}"
    return ""


LIMITS.append(_exceeded)


# *** which outputs its threads compute


@opt(OptOps.LOCAL)
class Local:
    """Give `amount` neighbours along an output axis to the threads of a workgroup.

        for i in 0..n:  out[i] = f(i)
    becomes
        for each group i in 0..n/4, for each thread l in 0..4:  out[4i+l] = f(4i+l)
    """

    counts = "all"

    def check(self, loops: Loops, axis: Axis, amount: int, target: Target) -> None:
        require(target.grid, f"{target.name} has no workgroups")
        require(not loops.no_locals, "NOLOCALS was applied")
        require(axis.output, "LOCAL is for axes of outputs; GROUP is for those that are reduced")
        require(is_parallel(axis), "every thread would repeat what the axis shares")
        require_shared_stages(loops, axis)
        require_whole_steps(axis, amount)

    def apply(self, loops: Loops, axis: Axis, amount: int, target: Target) -> Loops:
        return loops.split(axis, amount, AxisType.LOCAL)


@opt(OptOps.NOLOCALS)
class NoLocals:
    """Forbid LOCAL from here on."""

    counts = "none"

    def check(self, loops: Loops, axis: Axis, amount: int, target: Target) -> None:
        require(not loops.no_locals, "NOLOCALS was applied already")
        has = any(kind is AxisType.LOCAL for each in loops.axes for kind, _ in each.factors)
        require(not has, "LOCAL was applied already")

    def apply(self, loops: Loops, axis: Axis, amount: int, target: Target) -> Loops:
        return loops.without_locals()

"""What a workgroup may take: its threads, and the local memory in which their partial results meet."""

from __future__ import annotations

import math

from ....ir.args import AxisType
from ....ir.nest import ranges_of
from ....ir.ops import Ops
from ....target import Target
from ...expressions.ranges import IN_REGISTERS, largest_power_of_two
from .loops import Loops
from .shared import shared_copies

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


def exchanged_bytes(loops: Loops, warps: int) -> int:
    """The local memory through which warps give and get their matrices."""
    cores = [node.arg for node in loops.sink.toposort() if node.op is Ops.WMMA]
    return max((core.warp_bytes for core in cores), default=0) * warps


def exceeded(loops: Loops, target: Target) -> str:
    """Why a workgroup of the target cannot run these loops; "" where it can."""
    if not target.grid:
        return ""
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

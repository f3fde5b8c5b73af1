"""Which Opts to apply on a target that runs a grid of threads in workgroups, where nobody says.

1. Where nothing is reduced, wide loads and stores: a thread computes a vector's worth of neighbours.
2. Short reductions are written out.
3. Neighbours of the outputs are threads of one workgroup.
"""

from __future__ import annotations

from ...device import Target
from ...ir.uop import UOp
from .actions import Opt, OptOps
from .facts import MAX_COST, SHORT, WORTHWHILE, Facts
from .heuristic import in_order
from .loops import Loops, is_parallel, largest_power_of_two

#: Threads of a workgroup.
THREADS = 128


def choose(kernel: UOp | Loops, target: Target) -> list[Opt]:
    """The Opts for a kernel (form 3) on a target with a grid."""
    loops = Loops.of(kernel) if isinstance(kernel, UOp) else kernel
    if not loops.axes or in_order(loops):
        return []
    facts = Facts.of(loops)
    found: list[Opt] = []
    sizes = {axis.number: axis.size if isinstance(axis.size, int) else None for axis in loops.axes}
    width = max(target.load_bytes, 1) // facts.element_bytes
    parallel = [axis for axis in loops.axes if is_parallel(axis)]
    best = min(parallel, key=lambda axis: facts.time(axis, width), default=None)
    worth = best is not None and facts.time(best, width) <= WORTHWHILE * facts.time(None, 1.0)
    if best is not None and width > 1 and worth and not facts.sums:
        wide = sizes[best.number] or 1
        if wide % width == 0:
            found.append(Opt(OptOps.UPCAST, best.number, width))
            sizes[best.number] = wide // width
    for axis in loops.axes:
        size = sizes[axis.number]
        if axis.output or size is None or size > SHORT:
            continue
        if facts.size_of_code({axis.number: size}) <= MAX_COST:
            found.append(Opt(OptOps.UNROLL, axis.reduce, 0))
    threads = 1
    for axis in reversed(parallel):
        local = largest_power_of_two(sizes[axis.number] or 1, THREADS // threads)
        if local > 1:
            found.append(Opt(OptOps.LOCAL, axis.number, local))
            threads *= local
    return found

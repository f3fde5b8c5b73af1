"""Which Opts to apply on a target that runs a grid of threads in workgroups, where nobody says.

Contractions are computed in blocks (`blocks.py`). Anything else by rules:

1. Where nothing is reduced, wide loads and stores: a thread computes a vector's worth of neighbours.
2. If loaded values serve several places of two output axes, a thread computes a small tile of them.
3. Where outputs are few, or memory is contiguous along a long reduction, a workgroup shares it.
4. Short reductions, or what a thread's share of one leaves, are written out.
5. Neighbours of the outputs are threads of one workgroup; an odd number of them is rounded up.
"""

from __future__ import annotations

from ...ir.args import AxisType
from ...ir.index import as_index
from ...ir.uop import UOp
from ...target import Target
from ..ranges import in_order, largest_power_of_two, typical
from ..work import issued
from .actions import KernelOptError, Opt, OptOps, apply_opt
from .blocks import shared_blocks
from .facts import MAX_COST, SHORT, Facts
from .limits import threads_of
from .loops import Axis, Loops, is_parallel
from .planned import planned

#: Wide loads are for kernels that take at most this share of the instructions then.
WORTHWHILE = 0.8
#: Threads of a workgroup that share nothing, and of one that shares a reduction.
THREADS, SHARING = 128, 256
#: The side of a thread's tile, where there are outputs for this part of the threads that can run at once.
SIDE, TILED = 4, 1 / 8
#: A reduction is shared from so many steps on, where that makes no more threads than can run at once.
LONG = 64
#: Steps of a long reduction that are written out.
AT_ONCE = 4
#: Workgroups smaller than a warp leave units idle: from this size on an axis that makes such is rounded up.
ODD_FROM = 64


def choose(kernel: UOp | Loops, target: Target) -> list[Opt]:
    """The Opts for a kernel (form 3) on a target with a grid."""
    loops = Loops.of(kernel) if isinstance(kernel, UOp) else kernel
    if not loops.axes or in_order(loops.sink):
        return []
    plan = _Plan(loops, target)
    blocks = shared_blocks(plan.facts, target)
    if blocks:
        return blocks
    if not plan.facts.sums:
        plan.load_wide()
    elif plan.outputs() >= TILED * target.launch.resident:
        plan.tile()
    if target.has_local and not plan.facts.scans:
        plan.share()
    plan.write_out_reductions()
    plan.gather_threads()
    return plan.opts


class _Plan:
    """The Opts so far, and the loops after them. `facts` are those of the kernel without any."""

    def __init__(self, loops: Loops, target: Target) -> None:
        self.loops, self.target = loops, target
        self.facts = Facts.of(loops)
        self.opts: list[Opt] = []
        self.shared = False

    def take(self, op: OptOps, axis: int | None, amount: int) -> bool:
        """Apply one more Opt, if it fits."""
        opt = Opt(op, axis, amount)
        try:
            self.loops = apply_opt(self.loops, opt, self.target)
        except KernelOptError:
            return False
        self.opts.append(opt)
        return True

    def parallel(self) -> list[Axis]:
        return [axis for axis in self.loops.axes if is_parallel(axis)]

    def outputs(self) -> int:
        """How many threads there would be, one for each output."""
        total = 1
        for axis in self.parallel():
            total *= _size(axis)
        return total

    def load_wide(self) -> None:
        width = self.target.load_bytes // self.facts.element_bytes
        if width < 2:
            return

        def time(axis: Axis | None) -> float:
            at_once = {axis.number: width} if axis is not None else {}
            return issued(planned(self.facts, self.target, at_once), self.target)

        best = min(self.parallel(), key=time, default=None)
        if best is None or time(best) > WORTHWHILE * time(None):
            return
        if isinstance(best.size, int) and best.size % width == 0:
            self.take(OptOps.UPCAST, best.number, width)

    def served(self) -> list[Axis]:
        """The axes of outputs several of which use the same loaded values."""
        loads = [access for access in self.facts.accesses if access.reduced]
        return [axis for axis in self.parallel() if any(load.step(axis) == 0 for load in loads)]

    def tile(self) -> None:
        """Places of two output axes at once."""
        for axis in self.served()[-2:]:
            side = next((s for s in (SIDE, SIDE // 2) if _size(axis) % s == 0), 0)
            if side and isinstance(axis.size, int):
                self.take(OptOps.UPCAST, axis.number, side)

    def share(self) -> None:
        """Give the longest reduction to the threads of a workgroup."""
        axis = max(self.loops.reduce_axes, key=_size, default=None)
        if axis is None or _size(axis) < LONG or not isinstance(axis.size, int):
            return
        walked = any(abs(access.step(axis) or 0) == 1 for access in self.facts.accesses)
        outputs, warp = self.outputs(), self.target.launch.warp
        enough = self.target.launch.resident
        if (self.served() or not walked) and outputs * warp > enough:
            return
        # Threads that do not walk memory themselves stand behind a row of others that do.
        most = max(warp, min(SHARING, enough // outputs)) if walked else SHARING // warp
        amount = largest_power_of_two(axis.size, most)
        if amount < min(most, warp):
            amount = min(most, 1 << ((axis.size - 1).bit_length() - 1))
            if -axis.size % amount > axis.size // 4 or not self.take(OptOps.PADTO, axis.number, amount):
                return
        kind = OptOps.GROUP if walked else OptOps.GROUPTOP
        while amount > 1 and not self.take(kind, axis.reduce, amount):
            amount //= 2
        self.shared = amount > 1

    def write_out_reductions(self) -> None:
        for axis in self.loops.axes:
            size = axis.size
            if axis.output or axis.reduce is None or not isinstance(size, int) or not axis.ranges:
                continue
            if size <= SHORT:
                amount = size
            elif self.shared and AxisType.GROUP in [kind for kind, _ in axis.parts]:
                amount = largest_power_of_two(size, AT_ONCE)
            else:
                continue
            copies = {a.number: _at_once(a) for a in self.loops.axes}
            copies[axis.number] *= amount
            if amount > 1 and self.facts.size_of_code(copies) <= MAX_COST:
                self.take(OptOps.UNROLL, axis.reduce, 0 if amount == size else amount)

    def gather_threads(self) -> None:
        """Fill workgroups with neighbours, along the last axes first."""
        most, warp = SHARING if self.shared else THREADS, self.target.launch.warp
        axes = list(reversed(self.parallel()))
        if not self.shared and axes and _size(axes[0]) >= ODD_FROM:
            if all(_share(axis, most, warp) < warp for axis in axes):
                self.take(OptOps.PADTO, axes[0].number, warp if _size(axes[0]) < 8 * THREADS else THREADS)
        for axis in reversed(self.parallel()):
            amount = _share(axis, most // threads_of(self.loops), warp)
            if amount > 1:
                self.take(OptOps.LOCAL, axis.number, amount)


def _size(axis: Axis) -> int:
    return typical(as_index(axis.size))


def _share(axis: Axis, most: int, warp: int) -> int:
    """How many threads take an axis: a power of two where there is a large one, else what divides it."""
    if not isinstance(axis.size, int) or most < 2:
        return 1
    power = largest_power_of_two(axis.size, most)
    if power >= warp:
        return power
    return next(n for n in range(min(most, axis.size), 0, -1) if axis.size % n == 0)


def _at_once(axis: Axis) -> int:
    """How many places of an axis one thread computes at once."""
    total = 1
    for kind, amount in axis.parts:
        if kind in (AxisType.UPCAST, AxisType.UNROLL):
            total *= amount
    return total

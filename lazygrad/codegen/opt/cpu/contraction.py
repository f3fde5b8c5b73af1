"""The choice for contractions: a tile of accumulators in registers, fed from packed panels.

A contraction sums products over axes along which nothing is output: matmuls, convolutions, attention's two,
each with its gradients. Along an output axis J some of what it loads moves, the *panels*, and along another
one, I, the rest, the *rows*. So a loaded panel serves all of I and a row all of J:

    for each block of J that fits vectors:
      copy the panel, all of the reduction long, in the order in which it is read           (TILE J, STAGE)
      for each few places of I:                                                             (UPCAST I)
        for each step of the reduction:   a tile of vectors += row elements * panel vectors (UPCAST J)

Where the second cache does not hold what a kernel touches, a tile that goes on in another row of memory
waits for it (`Memory.row`). Then several tiles stand side by side, for which one wide panel is packed; or
panels are read where they lie, and each few places of I walk all of J: results are written row by row. Or
the sum is done in rounds of a few steps each (ROUNDS), for all of I and J: what a round reads of the panels
follows what the one before it read, and the sums stay in a cache.

Rows are read one element at a time. They are packed too (in blocks of I that fit a cache) where they would be
read from a new page in each step, behind a condition, or converted.

Where the target has an instruction for sums of products of such numbers (TC), a step is one of it, and all
of this holds for words of packed numbers: panels are packed so, and rows that lie in memory as words are read
as they are.

Every pair of axes as I and J (`gemm_axes.py`), and every tile that the registers hold (`tiles.py`), is a
candidate: what it would do is written down as work, and the one that takes least time is chosen.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from ....ir.nest import ranges_of
from ....ir.ops import Ops
from ....target import Target
from ...cost.cost_model import cycles
from ...expressions.ranges import is_computed
from ..facts import Facts, size_of
from ..gemm_axes import all_gemm_axes, along_sum, k_blocks, number_of, whole_rows
from ..moves.actions import KernelOptError, Opt, OptOps, apply_opt
from ..moves.loops import is_parallel
from ..moves.windows import by_stride, windows
from .sums_along import SumTiling
from .tiles import Tiling

#: Fewer multiplications are not worth a copy.
LEAST_WORK = 1 << 17
#: The number of a loop that no kernel has.
NEW = 1 << 20


def packed_tiles(facts: Facts, target: Target) -> tuple[list[Opt], float]:
    """The Opts for a contraction that is worth packing, and the cycles it takes; [] for anything else."""
    best, least = list[Opt](), (math.inf, math.inf)
    for before, tiling in _tilings(facts, target):
        time, opts = tiling.best_opts(least[0])
        rows = tiling.axes.rows
        far = min((abs(access.step(rows) or math.inf) for access in tiling.axes.others), default=math.inf)
        if opts and (time, far) < least:  # of two that take the same, where rows are nearer
            best, least = before + opts, (time, far)
    return best, least[0]


def candidates(facts: Facts, target: Target) -> list[list[Opt]]:
    """Every list of Opts that the choice is made of, that which is predicted to take least first."""
    found = [
        (cycles(work, target), before + opts)
        for before, tiling in _tilings(facts, target)
        for work, opts in tiling.listed()
    ]
    return [opts for _, opts in sorted(found, key=lambda each: each[0])]


def _tilings(facts: Facts, target: Target) -> Iterator[tuple[list[Opt], Tiling | SumTiling]]:
    """Opts that come first, and a way to tile what is then there; nothing for what is no contraction."""
    if not is_contraction(facts) or facts.streamed(target.vector_bytes // facts.element_bytes):
        return
    if len(target.memory.caches) > 1 and facts.is_mostly_stored(target.memory.second):
        return
    dots = _dots(facts, target)
    for opts, per_step in ((_windows(facts, target), 1), (dots, int(dots[-1].amount or 1) if dots else 0)):
        if per_step:
            loops = facts.loops
            for opt in opts:
                loops = apply_opt(loops, opt, target)
            after = Facts.of(loops) if opts else facts
            for roles in all_gemm_axes(after):
                tiling = Tiling(after, target, roles, per_step)
                yield opts, tiling
                if tiling.separate and per_step == 1:
                    for other in (whole_rows(after, roles), k_blocks(after, roles)):
                        if other is not None:
                            yield opts, Tiling(after, target, other, per_step)
                    if along_sum(after, roles, tiling.width):
                        yield opts, SumTiling(after, target, roles, tiling.separate)


def _dots(facts: Facts, target: Target) -> list[Opt]:
    """The Opts after which the target's instruction for sums of products does it; [] where it has none.

    Along the longest reduction of whole steps; if there is none, the longest is padded.
    """
    axes = [axis for axis in facts.loops.reduce_axes if axis.ranges]
    loads = [access.node for access in facts.accesses if access.node.op is Ops.LOAD and access.reduced]
    if not target.dots or any(len(node.src[0].src) > 2 for node in loads):
        return []
    for count in sorted({dot.count for dot in target.dots}, reverse=True):
        for axis in sorted(axes, key=lambda axis: ((size_of(axis) or 0) % count > 0, -(size_of(axis) or 0))):
            whole = (size_of(axis) or 0) % count == 0
            opts = [] if whole else [Opt(OptOps.PADTO, axis.number, count)]
            opts.append(Opt(OptOps.TC, axis.reduce, count))
            loops = facts.loops
            try:
                for opt in opts:
                    loops = apply_opt(loops, opt, target)
            except KernelOptError:
                continue
            return opts
    return []


def is_contraction(facts: Facts) -> bool:
    """One reduction nest over parallel outputs, of known sizes, with work enough."""
    axes = facts.loops.axes
    sizes = [size_of(axis) for axis in axes]
    if facts.scans or len({closed for _, closed in facts.sums}) != 1 or None in sizes:
        return False
    if any(axis.output and not (is_parallel(axis) and axis.reduce is None) for axis in axes):
        return False
    if any(is_computed(access.node.src[0].src[1]) for access in facts.accesses):
        return False
    return math.prod(size or 1 for size in sizes) >= LEAST_WORK


def _windows(facts: Facts, target: Target) -> list[Opt]:
    """The Opts that copy windows behind conditions, as a padded convolution's, for each place of its batch.

    The copy holds each element once, and zeros around: what reads it needs no conditions.
    """
    for access in facts.accesses:
        if access.node.op is not Ops.LOAD or not access.reduced or len(access.node.src[0].src) == 2:
            continue
        number = number_of(access)
        if sum(number_of(other) == number for other in facts.accesses if other.node.op is Ops.LOAD) > 1:
            continue
        axis_of = {r: axis for axis in facts.loops.axes for r in axis.ranges}
        loops = [r for r in ranges_of(access.node) if r in axis_of and access.step(axis_of[r]) != 0]
        groups = by_stride(access.node.src[0].src[1], loops, True)
        together = {r for group in groups for r in group}
        around = [axis_of[r] for r in loops if r not in together and axis_of[r].output]
        found = windows(access.node, (r for r in loops if axis_of[r] not in around), NEW)
        if found is None or not around:
            continue
        nbytes = math.prod(r.src[0].arg for r in found.index) * access.node.dtype.itemsize
        if nbytes > target.memory.second:
            continue
        around.sort(key=lambda axis: axis.number)
        tiles = [Opt(OptOps.TILE, axis.number, 1) for axis in around]
        return [*tiles, Opt(OptOps.STAGE, around[-1].number, number)]
    return []

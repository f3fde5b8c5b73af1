"""Which Opts to apply on a processor where nobody says: those of the plan that is predicted to be fastest,
cut into pieces for its cores by what it takes on one of them.

The candidates are the tiles of a contraction (`cpu/contraction.py`), or else the plans of `cpu/plans.py`. How
many cores there are, if there are several, has no say in it, so that a kernel is the same code for every
THREADS.
"""

from __future__ import annotations

import math
import random
from typing import NamedTuple

from ...decisions import decide
from ...ir.index import bounds
from ...ir.nest import closed_ranges, output_ranges, ranges_of
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...ir.walks import has_op, of_op
from ...structure import structure_of
from ...target import Target
from ..cost.cost_model import cycles, issued
from ..expressions.checks import without_checks
from ..expressions.ranges import in_order
from .cpu.contraction import packed_tiles
from .cpu.planned import planned
from .cpu.plans import Plan, plans
from .facts import Facts
from .grids import grids
from .moves.actions import MAX_PIECES, KernelOptError, Opt, OptOps, apply_opt
from .moves.inline import all_inline
from .moves.loops import Axis, Loops

#: Of plans that take the same but for so much, that of the fewest instructions is chosen; of those that issue
#: the same but for so much, that of the least code, which takes as long to compile; of those with little, the
#: first. Little are so many operations: LLVM takes 10 ms for them, and lowering as much.
ALIKE, LITTLE_CODE = 1.05, 256
#: A piece takes at least so many times what it costs to wake other cores and wait for them.
PIECE = 1
#: A kernel of fewer pieces stays whole.
FEWEST = 4
#: What all pieces copy alike may take this share of the time; an element is worth so many products.
COPIES, COPIED = 1 / 8, 96


class Choice(NamedTuple):
    """What was chosen, and how many cycles of one core it is predicted to take."""

    opts: list[Opt]
    cycles: float


def choose(kernel: UOp | Loops, target: Target) -> list[Opt]:
    """The Opts for a kernel (form 3) nobody gave Opts for."""
    loops = Loops.of(kernel) if isinstance(kernel, UOp) else kernel
    if target.grid:
        plain, inline = all_inline(loops)
        return [*inline, *grids().choose(plain, target)]
    return choose_on_cores(loops, target).opts


def choose_on_cores(loops: Loops, target: Target) -> Choice:
    """The Opts for a kernel on a processor, and how many cycles of one core it is predicted to take."""
    opts, time = on_one_core(loops, target)
    pieces = _worth(time, target)
    if pieces == 1:
        return Choice(opts, time)
    for each in opts:
        loops = apply_opt(loops, each, target)
    axes = [axis for axis in loops.axes if axis.output and axis.outermost]
    staged = has_op(loops.sink.toposort(), Ops.STAGE)
    for axis in sorted(axes, key=lambda axis: _preference(axis, pieces, staged)):
        most = min(pieces, _steps(axis), _chunks_for_copies(loops, axis))
        opt = Opt(OptOps.THREAD, axis.number, most)
        try:
            apply_opt(loops, opt, target)
        except KernelOptError:
            continue
        return Choice([*opts, opt], time)
    return Choice(opts, time)


# *** on one core


def on_one_core(loops: Loops, target: Target) -> Choice:
    """The Opts for a kernel that is not cut."""
    if has_op(loops.sink.toposort(), Ops.CHECK):
        others = Loops.of(without_checks(loops.sink))
        loops = others if others.axes == loops.axes else loops
    if not loops.axes:
        return Choice([], 0.0)
    stages = has_op(loops.sink.toposort(), Ops.STAGE)
    plain, inline = all_inline(loops) if stages else (loops, [])
    facts = Facts.of(plain)
    if target.vector_bytes == 0 or in_order(loops.sink):
        return Choice([], cycles(planned(facts, target, {}), target))
    panels, time = packed_tiles(facts, target) if loops.reduce_axes else ([], 0.0)
    if panels:
        return Choice([*inline, *panels], time)
    plan, time = _shortest(facts, target, loops)
    return Choice(plan.opts(), time)


def _shortest(facts: Facts, target: Target, loops: Loops) -> tuple[Plan, float]:
    """The plan that takes least, and how long that is."""
    first, *others = plans(facts, target, loops)
    without = cycles(first.loop_costs(), target)
    found = []
    for plan in others:
        work = plan.loop_costs()
        found.append((cycles(work, target), issued(work, target), plan))
    time = min([time for time, _, _ in found], default=math.inf)
    if not found or time > without:
        return first, without
    found = [each for each in found if each[0] <= ALIKE * time]
    least = min(instructions for _, instructions, _ in found)
    alike = [(plan, time) for time, instructions, plan in found if instructions <= ALIKE * least]
    return min(alike, key=lambda each: max(LITTLE_CODE, each[0].size_of_code()))


# *** pieces for cores

#: Numbers of pieces that OPTS may ask for.
OTHERS = (1, 2, 3, 4, 7, 8, 16)


def _worth(cycles: float, target: Target) -> int:
    """In how many pieces it pays to cut what takes one core so many cycles; 1 = in none."""
    pieces = min(int(cycles / (PIECE * target.launch.fork)), MAX_PIECES)
    return pieces if target.threads > 1 and pieces >= FEWEST else 1


def requested_chunks(ast: UOp, cycles: float, most: int, target: Target) -> int:
    """In how many pieces, at most so many, a kernel is cut that is written directly (`direct_kernels.py`,
    `one_pass/`), and is predicted to take one core so many cycles.
    """
    predicted = min(_worth(cycles, target), most)

    def others(rng: random.Random) -> list[int]:
        return [n for n in OTHERS if n <= most and n != predicted] if target.threads > 1 else []

    return decide("thread_chunks", lambda: structure_of((ast,)), predicted, others)


def _chunks_for_copies(loops: Loops, axis: Axis) -> int:
    """The most pieces along an axis: each fills again the STAGEs that stand outside of its loop."""
    nodes = loops.sink.toposort()
    nest = {r: depth for depth, r in enumerate(output_ranges(nodes))}
    own = nest[axis.outermost[0]]
    copied = 0.0
    for stage in nodes:
        if stage.op is Ops.STAGE and all(nest.get(r, own) < own for r in ranges_of(stage)):
            copied += _iterations(ranges_of(stage).union(closed_ranges(stage)))
    if not copied:
        return MAX_PIECES
    work = sum(_iterations(ranges_of(node) | set(node.src[1:])) for node in of_op(nodes, Ops.REDUCE))
    return max(FEWEST, int(COPIES * work / (copied * COPIED)))


def _iterations(ranges: set[UOp] | frozenset[UOp]) -> float:
    return math.prod(float(bounds(r.src[0])[1]) for r in ranges)


def _steps(axis: Axis) -> int:
    return bounds(axis.outermost[0].src[0])[1]


def _preference(axis: Axis, pieces: int, staged: bool) -> tuple[bool, int, bool]:
    """The outermost blocks, if they are some: what is kept for one serves the loops inside, and would be
    filled anew in each turn of any other. Then the first axis that has steps enough, or any."""
    blocks = bool(axis.blocks) and _steps(axis) >= (2 if staged else FEWEST)
    return not blocks, axis.blocks[0].arg.id if blocks else 0, _steps(axis) < pieces

"""Which kernels are cut into pieces for the cores of a CPU, and into how many: by what they take on one core.

How many cores there are, if there are several, has no say in it, so that a kernel is the same code for every
THREADS.
"""

from __future__ import annotations

import math
import random

from ...decisions import decide
from ...ir.index import bounds
from ...ir.nest import closed_ranges, output_ranges, ranges_of
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...ir.walks import has_op, of_op
from ...structure import structure_of
from ...target import Target
from .grids import grids
from .heuristic import Choice
from .heuristic import choose as choose_order
from .moves.actions import MAX_PIECES, KernelOptError, Opt, OptOps, apply_opt
from .moves.inline import all_inline
from .moves.loops import Axis, Loops

#: A piece takes at least so many times what it costs to wake other cores and wait for them.
PIECE = 1
#: A kernel of fewer pieces stays whole.
FEWEST = 4
#: What all pieces copy alike may take this share of the time; an element is worth so many products.
COPIES, COPIED = 1 / 8, 96


def choose(kernel: UOp | Loops, target: Target) -> list[Opt]:
    """The Opts for a kernel (form 3) nobody gave Opts for."""
    loops = Loops.of(kernel) if isinstance(kernel, UOp) else kernel
    if target.grid:
        plain, inline = all_inline(loops)
        return [*inline, *grids().choose(plain, target)]
    return choose_on_cores(loops, target).opts


def choose_on_cores(loops: Loops, target: Target) -> Choice:
    """The Opts for a kernel on a processor, and how many cycles of one core it is predicted to take."""
    opts, cycles = choose_order(loops, target)
    pieces = _worth(cycles, target)
    if pieces == 1:
        return Choice(opts, cycles)
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
        return Choice([*opts, opt], cycles)
    return Choice(opts, cycles)


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

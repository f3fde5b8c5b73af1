"""Which Opts to apply on a processor where nobody says: those of the plan that is predicted to be fastest.

The candidates are the tiles of a contraction (`contraction.py`), or else the plans of `plans.py`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ...ir.ops import Ops
from ...ir.uop import UOp
from ...ir.walks import has_op
from ...target import Target
from ..cost.cost_model import cycles, issued
from ..expressions.checks import without_checks
from ..expressions.ranges import in_order
from .cpu.contraction import packed_tiles
from .cpu.planned import planned
from .cpu.plans import Plan, plans
from .facts import Facts
from .moves.actions import Opt
from .moves.inline import all_inline
from .moves.loops import Loops

#: Of plans that take the same but for so much, that of the fewest instructions is chosen; of those that issue
#: the same but for so much, that of the least code, which takes as long to compile; of those with little, the
#: first. Little are so many operations: LLVM takes 10 ms for them, and lowering as much.
ALIKE, LITTLE_CODE = 1.05, 256


class Choice(NamedTuple):
    """What was chosen, and how many cycles of one core it is predicted to take."""

    opts: list[Opt]
    cycles: float


def choose(kernel: UOp | Loops, target: Target) -> Choice:
    """The Opts for a kernel (form 3) on a target."""
    loops = Loops.of(kernel) if isinstance(kernel, UOp) else kernel
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

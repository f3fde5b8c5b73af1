"""Which Opts to apply on a processor where nobody says: those of the plan that is predicted to be fastest.

The candidates are the tiles of a contraction (`contraction.py`), or else the plans of `plans.py`.
"""

from __future__ import annotations

from ...ir.uop import UOp
from ...target import Target
from ..checks import without_checks
from ..ranges import in_order
from ..work import cycles, issued
from .actions import Opt
from .contraction import packed_panels
from .facts import Facts
from .inline import all_inline
from .loops import Loops
from .plans import Plan, plans

#: Of plans that take the same but for so much, that of the fewest instructions is chosen; of those that issue
#: the same but for so much, the first.
ALIKE = 1.05


def choose(kernel: UOp | Loops, target: Target) -> list[Opt]:
    """The Opts for a kernel (form 3) on a target."""
    loops = Loops.of(kernel) if isinstance(kernel, UOp) else kernel
    unchecked = without_checks(loops.sink)
    if unchecked is not loops.sink:
        others = Loops.of(unchecked)
        loops = others if others.axes == loops.axes else loops
    if not loops.axes or target.vector_bytes == 0 or in_order(loops.sink):
        return []
    plain, inline = all_inline(loops)
    facts = Facts.of(plain)
    panels = packed_panels(facts, target)
    return [*inline, *panels] if panels else _shortest(facts, target, loops).opts()


def _shortest(facts: Facts, target: Target, loops: Loops) -> Plan:
    """The plan that takes least; one without lanes where these save few instructions."""
    plain, *others = plans(facts, target, loops)
    if not others:
        return plain
    found = []
    for plan in others:
        work = plan.work()
        found.append((cycles(work, target), issued(work, target), plan))
    time = min(time for time, _, _ in found)
    if time > cycles(plain.work(), target):
        return plain
    found = [each for each in found if each[0] <= ALIKE * time]
    least = min(instructions for _, instructions, _ in found)
    return next(plan for _, instructions, plan in found if instructions <= ALIKE * least)

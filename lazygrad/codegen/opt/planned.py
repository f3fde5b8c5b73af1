"""What a kernel does where so many places of its axes are computed at once, in closed form.

What is written down here is about what the walk over the program would find (`codegen/predict.py`), before
there is one: each operation in the innermost loop that it depends on, as often as places are at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from ...ir.index import as_index
from ...ir.ops import Ops
from ...target import Target
from ..ranges import typical
from ..work import GUESSED_WRONG, Loop
from .facts import Facts
from .loops import Axis


def planned(
    facts: Facts, target: Target, at_once: dict[int, int], lanes: Axis | None, width: int
) -> list[Loop]:
    """The loops of a kernel that computes so many places of axes at once, `width` of `lanes` as a vector."""
    core, axes = target.core, facts.loops.axes
    nest = [*(axis for axis in axes if axis.output), *(axis for axis in axes if not axis.output)]
    loops = [Loop()]
    loop_of: dict[int, Loop] = {}
    for axis in nest:
        turns = math.ceil(typical(as_index(axis.size)) / at_once.get(axis.number, 1))
        loop = loop_of[axis.number] = Loop(
            turns, loops[-1], issued=core.turn if turns > 1 and not target.grid else 0.0
        )
        loops.append(loop)
    depth = {axis.number: place for place, axis in enumerate(nest, 1)}
    own = None if lanes is None else lanes.number

    def innermost(numbers: Iterable[int]) -> Loop:
        return loops[max([depth[number] for number in numbers], default=0)]

    def times(numbers: Iterable[int], vector: float) -> float:
        """How often what depends on these axes is done; along the lanes, so often for all of them."""
        total = 1.0
        for number in numbers:
            total *= vector if number == own else at_once.get(number, 1)
        return total

    vectors = 1.0 if own is None else max(1.0, at_once.get(own, 1) / width)
    for axes_of, (price, products, sums) in facts.computed.items():
        loop, count = innermost(axes_of), times(axes_of, vectors)
        loop.compute((price - products) * count)
        loop.compute(products * count, True)
        if sums:
            loop.accumulators += sums * count
            loop.waits = core.add
    for access in facts.accesses:
        moved = {number: step for number, step in access.strides.items() if step != 0}
        loop, some = innermost(moved), 1 if own is None else at_once.get(own, 1)
        together = 1.0
        if lanes is not None and own in moved:
            together = (
                vectors if access.step(lanes) in (1, -1) else some * facts.gathered(access, lanes, core)
            )
        (loop.load if access.node.op is Ops.LOAD else loop.store)(times(moved, together))
        elements = times(moved, some)
        item = access.node.src[0].dtype.base.itemsize
        strides = {loop_of[n]: (s or 0) * at_once.get(n, 1) for n, s in moved.items()}
        loop.touch(access.node.src[0].src[0], access.nbytes, item, elements * item, strides)
    if lanes is None:
        loops[0].lost += facts.branches * GUESSED_WRONG * core.missed
    else:
        loops[0].compute(sum([ends * core.combined for ends, closed in facts.sums if own in closed]))
    for steps, along in facts.scans:
        if own in facts.in_turn:
            loops[0].lost = math.inf
        elif own is not None and own in along:
            # a shuffle and an operation for each doubling of the reach, and some more; totals wait
            loops[0].compute(steps * (2 * math.log2(max(width, 2)) + 4) / width)
            loops[0].lost += core.add * steps / (width * vectors)
        else:
            loops[0].lost += core.add * steps / (1 if own is None else width * vectors)
    return loops

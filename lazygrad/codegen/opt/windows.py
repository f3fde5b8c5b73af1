"""Windows: loops that move the same place alike, as a filter's row and an image's do, walk each element once.

    for y in 0..26: for ky in 0..3:  data1[26*y + 26*ky - 26]  if 1 <= y + ky < 27
is
    for u in 0..28:  data1[26*u - 26]  if 1 <= u < 27          with u = y + ky

A copy of the windows holds each element once, and zeros around them; who reads it needs no conditions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ...ir import index
from ...ir.args import AxisType
from ...ir.ops import Ops
from ...ir.uop import UOp, toposort
from .loops import IN_REGISTERS, make_range, stride, substitute_ranges

#: The last axis of a copy of windows has a multiple of so many places, so that vectors fill it.
WHOLE = 16


@dataclass(frozen=True)
class Windows:
    """A value over fewer loops: `place` says where on each of them it is for the loops before."""

    value: UOp
    place: dict[UOp, UOp]


def place_of(value: UOp) -> UOp:
    """The INDEX that a value is loaded from."""
    return next(node for node in toposort((value,)) if node.op is Ops.INDEX)


def alike(place: UOp, loops: Iterable[UOp]) -> list[list[UOp]]:
    """The loops of known sizes by how far a step moves a place, forth or back; several in one group."""
    groups: dict[int, list[UOp]] = {}
    for r in loops:
        step = stride(place, r)
        if step and r.src[0].op is Ops.CONST:
            groups.setdefault(abs(step), []).append(r)
    return [group for group in groups.values() if len(group) > 1]


def windows(value: UOp, loops: Iterable[UOp], fresh: int) -> Windows | None:
    """The value over one loop for each group of loops that move it alike; None where there is none.

    fresh  the first free number of a range
    """
    loops = list(loops)
    place = place_of(value).src[1]
    groups = alike(place, loops)
    if not groups or any(r.arg.kind in IN_REGISTERS for group in groups for r in group):
        return None
    forth: dict[UOp, UOp] = {}
    back: dict[UOp, UOp] = {}
    at = {r: r for r in loops}
    conditions = []
    for group in groups:
        size = span(group)
        whole = -(-size // WHOLE) * WHOLE if stride(place, group[0]) == 1 else size
        joint = make_range(whole, fresh, AxisType.LOOP)
        if whole > size:
            conditions.append(index.less(joint, index.const(size)))
        fresh += 1
        total = index.const(0)
        for r in group:
            forward = stride(place, r) == stride(place, group[0])
            total = total + r if forward else index.sub(total + (r.src[0].arg - 1), r)
            forth[r] = index.const(0 if forward else r.src[0].arg - 1)
            del at[r]
        forth[group[0]] = joint
        back[joint] = at[joint] = total
    once = substitute_ranges(value, forth)
    if substitute_ranges(once, back) is not value:
        return None  # it depends on the loops apart
    return Windows(_only_where(once, conditions), at)


def span(group: Iterable[UOp]) -> int:
    """How many places a group of loops walks together."""
    return 1 + sum(int(r.src[0].arg) - 1 for r in group)


def _only_where(value: UOp, conditions: list[UOp]) -> UOp:
    """The value, loaded only where conditions on its place hold."""
    if not conditions:
        return value
    access = place_of(value)
    guarded = access.replace(src=(*access.src[:2], index.all_of((*access.src[2:], *conditions))))
    return index.substitute((value,), {access: guarded})[value]

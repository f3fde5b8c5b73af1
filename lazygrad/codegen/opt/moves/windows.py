"""Windows: loops that move the same place alike, as a filter's row and an image's do, walk each element once.

    for y in 0..26: for ky in 0..3:  data1[26*y + 26*ky - 26]  if 1 <= y + ky < 27
is
    for u in 0..28:  data1[26*u - 26]  if 1 <= u < 27          with u = y + ky

Where one of them moves the place some times as far, as y does in a convolution with a stride, u = 2*y + ky.
A copy of the windows holds each element once, and zeros around them; who reads it needs no conditions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ....ir import index
from ....ir.args import AxisType
from ....ir.nest import ranges_of
from ....ir.ops import Ops
from ....ir.uop import UOp, toposort
from ...expressions.checks import checked_where
from ...expressions.ranges import IN_REGISTERS, make_range, stride, substitute_ranges

#: The last axis of a copy of windows has a multiple of so many places, so that vectors fill it.
WHOLE = 16
#: Windows are fewer steps apart.
MOST = 8


@dataclass(frozen=True)
class Windows:
    """A value over fewer loops: `index` says where on each of them it is for the loops before."""

    value: UOp
    index: dict[UOp, UOp]


def index_of(value: UOp) -> UOp:
    """The INDEX that a value is loaded from."""
    return next(node for node in toposort((value,)) if node.op is Ops.INDEX)


def by_stride(place: UOp, loops: Iterable[UOp], strided: bool = False) -> list[list[UOp]]:
    """The loops of known sizes by how far a step moves a place, forth or back; several in one group.

    strided  those that move it some times as far too: by less than the loop of the least steps reaches, so
             that windows overlap. That loop is the first of its group
    """
    steps = {r: stride(place, r) or 0 for r in loops if r.src[0].op is Ops.CONST}
    groups: dict[int, list[UOp]] = {}
    for r in sorted(steps, key=lambda r: (abs(steps[r]), steps[r] < 0, r.arg.id)):  # forth comes first
        step = abs(steps[r])
        if step:
            least = next((n for n, group in groups.items() if _overlap(step, n, group[0], strided)), step)
            groups.setdefault(least, []).append(r)
    return [group for group in groups.values() if len(group) > 1]


def _overlap(step: int, least: int, first: UOp, strided: bool) -> bool:
    if not strided:
        return step == least
    return step % least == 0 and step // least < min(int(first.src[0].arg), MOST)


def windows(value: UOp, loops: Iterable[UOp], fresh: int) -> Windows | None:
    """The value over one loop for each group of loops that move it alike; None where there is none.

    fresh  the first free number of a range
    """
    loops = list(loops)
    if sum(node.op is Ops.INDEX for node in toposort((value,))) > 1:
        return None
    place = index_of(value).src[1]
    strided, plain = by_stride(place, loops, True), by_stride(place, loops)
    found = _joined(value, loops, strided, fresh) if strided else None
    if found is None and plain and plain != strided:
        found = _joined(value, loops, plain, fresh)
    return found


def once(value: UOp, inside: frozenset[UOp], fresh: int) -> Windows:
    """What is copied in each turn of the loops `inside`: windows once, or the value as it is."""
    closed = ranges_of(value) - inside
    return windows(value, closed, fresh) or Windows(value, {r: r for r in closed})


def _joined(value: UOp, loops: list[UOp], groups: list[list[UOp]], fresh: int) -> Windows | None:
    place = index_of(value).src[1]
    if any(r.arg.kind in IN_REGISTERS for group in groups for r in group):
        return None
    forth: dict[UOp, UOp] = {}
    back: dict[UOp, UOp] = {}
    at = {r: r for r in loops}
    conditions = []
    for group in groups:
        first = stride(place, group[0]) or 1
        times = {r: (stride(place, r) or 0) // first for r in group}
        size = 1 + sum(abs(times[r]) * (int(r.src[0].arg) - 1) for r in group)
        whole = -(-size // WHOLE) * WHOLE if first == 1 else size
        joint = make_range(whole, fresh, AxisType.LOOP)
        if whole > size:
            conditions.append(index.less(joint, index.const(size)))
        fresh += 1
        total = index.const(0)
        for r in group:
            last = r.src[0].arg - 1
            total = total + (r * times[r] if times[r] > 0 else index.sub(index.const(last), r) * -times[r])
            forth[r] = index.const(0 if times[r] > 0 else last)
            del at[r]
        forth[group[0]] = joint
        back[joint] = at[joint] = total
    once = substitute_ranges(value, forth)
    if substitute_ranges(once, back) is not value:
        return None  # it depends on the loops apart
    return Windows(_only_where(once, conditions), at)


def _only_where(value: UOp, conditions: list[UOp]) -> UOp:
    """The value, loaded and checked only where conditions on its place hold."""
    if not conditions:
        return value
    value = checked_where(value, lambda check: index.all_of(conditions))
    access = index_of(value)
    guarded = access.replace(src=(*access.src[:2], index.all_of((*access.src[2:], *conditions))))
    return index.substitute((value,), {access: guarded})[value]

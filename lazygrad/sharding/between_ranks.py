"""What ranks send each other of a value of which each has a part: a COLLECTIVE of its own part on each.

What a rank sends and receives is known from the layouts alone (`layouts.py`). All ranks plan the same
collectives in one order: each names the one before it.
"""

from __future__ import annotations

import bisect
import contextlib
import itertools
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..device.world import world
from ..ir.args import CollectiveArg, MultiArg
from ..ir.mesh import mesh_axes, span_at
from ..ir.ops import Ops
from ..ir.uop import UOp, keep_origin, unintern
from ..schedule.extensions import at_hand
from ..schedule.graph.layouts import Ends, layout, spans_of, spans_to, with_ends, without_axis
from ..schedule.graph.versions import effective, multi
from ..shape.movement import below_movement, forward_to, permute, reshape
from ..shape.rules import shape_of
from ..shape.sizes import vmax
from .rank_groups import Group, Spans, gathered, groups_here
from .shards import of_greatest_sizes, of_sizes, part_of, stored


class _Walk(threading.local):
    """A walk of this thread.

    last  its last COLLECTIVE: the next one goes behind it
    plan  the number of the plan that is being made, 0 outside of one
    """

    def __init__(self) -> None:
        self.last: UOp | None = None
        self.plan = 0


_walk = _Walk()
_plans = itertools.count(1)


@contextlib.contextmanager
def in_order(first: UOp | None = None) -> Iterator[Callable[[], UOp | None]]:
    """In the block each COLLECTIVE names the one before it, so that all ranks run them in one order, and run
    all of them. What it gives is a function for the last one.

    first  the one that comes before those of the block
    """
    before = _walk.last, _walk.plan
    _walk.last = first
    _walk.plan = next(_plans) if first is None else first.facts["in_plan"]
    try:
        yield lambda: _walk.last
    finally:
        _walk.last, _walk.plan = before


def not_found_again(node: UOp) -> None:
    """Where there are ranks, who makes a node anew shall compute it anew.

    Whether a computed value is still there to be found may depend on when a rank's garbage is collected, and
    all ranks must plan the same.
    """
    if world().size > 1:
        unintern(node)


def behind_the_last(node: UOp) -> UOp:
    """A COLLECTIVE that names the one before it in the walk."""
    known = effective(node)
    if known is not node or not _walk.plan or len(node.src) > 1:
        return known  # for another reader of the same plan
    if node.facts.get("in_plan") == _walk.plan:
        return node
    if _walk.last is not None:
        made = node.replace(src=(node.src[0], _walk.last))
        keep_origin(made, node)
        at_hand.alone += (node,)
        forward_to(node, made)
        node = made
    node.facts["in_plan"] = _walk.plan
    _walk.last = node
    return node


def _node(
    kind: str,
    part: UOp,
    op: Ops | None,
    group: tuple[str, ...],
    place: int,
    sends: Sequence[tuple[int, int]],
    receives: Sequence[int],
    shape: Sequence[int],
    spans: Sequence[Sequence[tuple[int, int]]] = (),
) -> UOp:
    told = tuple(map(tuple, spans))
    arg = CollectiveArg(kind, op, group, place, tuple(sends), tuple(receives), tuple(shape), told)
    made = UOp(Ops.COLLECTIVE, part.dtype, (part,), arg)
    keep_origin(made, below_movement(part))
    return behind_the_last(made)


def _static(node: UOp) -> tuple[int, ...]:
    """The shape of what is sent; along symbolic axes it was padded."""
    return tuple(map(vmax, shape_of(node)))


def sum_on_each(value: UOp, number: int, target: MultiArg) -> UOp:
    op: Any = value.arg.placements[number]
    found: dict[int, UOp] = {}
    for group in groups_here(value.arg, (number,)):
        total = group.combined(value, op)
        if len(group.ranks) > 1:
            sizes, total = shape_of(total), of_greatest_sizes(total)
            shape = _static(total)
            count = math.prod(shape)
            total = _node("all_reduce", total, op, group.devices, group.own, [(0, count)], [count], shape)
            total = of_sizes(total, sizes)
        found |= group.copies(total, value.arg.mesh)
    return gathered(found, target)


def reduce_scatter(value: UOp, number: int, axis: int, target: MultiArg) -> UOp:
    op: Any = value.arg.placements[number]
    wanted = spans_to(dict(target.ends)[axis])
    found: dict[int, UOp] = {}
    for group in groups_here(value.arg, (number,)):
        total, back = _axis_first(group.combined(value, op), axis)
        first = 0
        if len(group.ranks) > 1:
            sizes, total = shape_of(total), of_greatest_sizes(total)
            shape = _static(total)
            rest = math.prod(shape[1:])
            spans = group.spans(wanted)
            first, end = spans[group.own]
            sends = [(low * rest, high * rest) for low, high in spans]
            result = (end - first, *shape[1:])
            receives = [math.prod(result)]
            total = _node(
                "reduce_scatter", total, op, group.devices, group.own, sends, receives, result, [spans]
            )
            total = of_sizes(total, (end - first, *sizes[1:]))
        found |= group.divided(total, 0, first, wanted, value.arg.mesh)
    return gathered(found, target, back)


def _axis_first(node: UOp, axis: int) -> tuple[UOp, tuple[int, ...]]:
    """A node with an axis in front of all others, and the order that brings it back."""
    rank = len(shape_of(node))
    order = (axis, *(i for i in range(rank) if i != axis))
    return permute(node, order), tuple(sorted(range(rank), key=order.__getitem__))


def exchanged_along(value: UOp, axis: int, wanted: Sequence[tuple[int, int]], target: MultiArg) -> UOp:
    """Each member of a group gets the elements of an axis that it wants from those that have them."""
    found: dict[int, UOp] = {}
    for group in groups_here(value.arg, mesh_axes(value.arg, axis)):
        part, back = _axis_first(group.joined(value, axis), axis)
        spans, wants = group.spans(spans_of(value, axis)), group.spans(wanted)
        sizes = shape_of(part)[1:]
        made, first = _exchanged(of_greatest_sizes(part), group, spans, wants)
        made = of_sizes(made, (_static(made)[0], *sizes))
        found |= group.divided(made, 0, first, wanted, value.arg.mesh)
    return gathered(found, target, back)


def _exchanged(part: UOp, group: Group, spans: Spans, wanted: Spans) -> tuple[UOp, int]:
    """What a rank wants of the first axis, of which it has a part, and the first element of it that it gets.

    spans, wanted  what each rank of the group has and wants
    """
    own, devices = group.own, group.devices
    shape = _static(part)
    rest = math.prod(shape[1:])
    size = spans[-1][1]
    first = spans[own][0]
    low, high = wanted[own]
    messages = messages_between(spans, wanted)
    if not messages:  # all have what they want
        begin = low - first if low < high else 0
        return part_of(part, 0, begin, begin + high - low), low
    root = _has_all(spans, wanted)
    if root is not None:
        return _from_one(part, root, devices, own, (low, high), first, rest, [spans, wanted]), low
    receives = [_common(span, (low, high)) for span in spans]
    counts = [(end - begin) * rest for begin, end in receives]
    result: Any = (high - low, *shape[1:])
    if all(span == (0, size) for span in wanted):
        made = _node("all_gather", part, None, devices, own, [(0, math.prod(shape))], counts, result, [spans])
    else:
        common = [_common(spans[own], want) for want in wanted]
        sends = [((begin - first) * rest, (end - first) * rest) for begin, end in common]
        kind = "send" if _in_pairs(messages) else "all_to_all"
        made = _node(kind, part, None, devices, own, sends, counts, result, [spans, wanted])
    return made, low


def _from_one(
    part: UOp,
    root: int,
    group: tuple[str, ...],
    own: int,
    wanted: tuple[int, int],
    first: int,
    rest: int,
    told: Sequence[Sequence[tuple[int, int]]],
) -> UOp:
    """What one member of a group has and all want. That one has no use for what comes back: nothing does."""
    low, high = wanted
    shape = _static(part)
    others = (group[root], *group[:root], *group[root + 1 :])
    place = others.index(group[own])
    if place:
        count = (high - low) * rest
        return _node("broadcast", part, None, others, place, (), [count], (high - low, *shape[1:]), told)
    span = (low - first) * rest, (high - first) * rest
    _node("broadcast", part, None, others, 0, [span], (), (0, *shape[1:]), told)
    return part_of(part, 0, low - first, high - first)


def _has_all(spans: Sequence[tuple[int, int]], wanted: Sequence[tuple[int, int]]) -> int | None:
    """Which member has what all want, if all want the same and one has it."""
    low, high = wanted[0]
    if any(want != (low, high) for want in wanted):
        return None
    return next((n for n, (begin, end) in enumerate(spans) if begin <= low and high <= end), None)


def messages_between(
    spans: Sequence[tuple[int, int]], wanted: Sequence[tuple[int, int]]
) -> list[tuple[int, int, int]]:
    """Which member sends to which other one, and how many elements of the axis.

    spans, wanted  what each of the group has, one after another, and what each wants
    """
    ends = [end for _, end in spans]
    found = []
    for receiver, (low, high) in enumerate(wanted):
        sender = bisect.bisect_right(ends, low)
        while low < high and sender < len(spans) and spans[sender][0] < high:
            begin, end = _common(spans[sender], (low, high))
            if begin < end and sender != receiver:
                found.append((sender, receiver, end - begin))
            sender += 1
    return found


def _in_pairs(messages: Sequence[tuple[int, int, int]]) -> bool:
    """Whether each member sends to one other at most, and receives from one at most."""
    senders, receivers = {m[0] for m in messages}, {m[1] for m in messages}
    return len(senders) == len(receivers) == len(messages)


def _common(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    """What is in both spans; an empty one within the first where there is nothing."""
    low, high = max(a[0], b[0]), min(a[1], b[1])
    return (low, high) if low < high else (a[0], a[0])


def exchanged_across(value: UOp, axis: int, other: int, ends: Ends) -> UOp:
    """Parts along one axis become parts along another, over the same axes of the mesh."""
    arg: MultiArg = value.arg
    along = mesh_axes(arg, axis)
    found: dict[int, UOp] = {}
    for group in groups_here(arg, along):
        part = group.joined(value, axis)
        wanted, spans = group.spans(spans_to(ends)), group.spans(spans_of(value, axis))
        low, high = wanted[group.own]
        if len(group.ranks) == 1:
            low, made = 0, part
        else:
            sizes, part = list(shape_of(part)), of_greatest_sizes(part)
            shape = list(_static(part))
            rank = len(shape)
            order = (axis, *(i for i in range(rank) if i != axis))
            flat = _chunks_in_order(part, other, wanted, order, group.device)
            each = math.prod(shape) // shape[other] if shape[other] else 0
            sends = [(begin * each, end * each) for begin, end in wanted]
            shape[axis], shape[other] = spans[-1][1], high - low
            rest = math.prod(shape) // shape[axis] if shape[axis] else 0
            counts = [(last - first) * rest for first, last in spans]
            result = [shape[i] for i in order]
            told = [spans, wanted]
            made = _node("all_to_all", flat, None, group.devices, group.own, sends, counts, result, told)
            sizes[axis], sizes[other] = shape[axis], shape[other]
            made = of_sizes(permute(made, tuple(sorted(range(rank), key=order.__getitem__))), sizes)
        found |= group.divided(made, other, low, spans_to(ends), arg.mesh)
    places = [other if n in along else before for n, before in enumerate(arg.placements)]
    kept = {a: e for a, e in arg.ends if a != axis}
    return gathered(found, layout(arg.mesh, places, {**kept, other: ends}))


def _chunks_in_order(
    part: UOp, axis: int, spans: Sequence[tuple[int, int]], order: Sequence[int], device: str
) -> UOp:
    """The pieces of a part along an axis, one after another in memory, each with its axes in an order."""
    shape = _static(part)
    length = spans[0][1]
    if all(high - low == length for low, high in spans):  # one kernel brings all in order
        apart = reshape(part, (*shape[:axis], len(spans), length, *shape[axis + 1 :]))
        return permute(apart, (axis, *(other + (other >= axis) for other in order)))
    pieces = []
    for low, high in spans:
        piece = permute(part_of(part, axis, low, high), order)
        count = math.prod(_static(piece))
        if count:
            pieces.append(stored(reshape(piece, (count,))))
    if len(pieces) == 1:
        return pieces[0]
    return UOp(Ops.COPY, part.dtype, (*pieces, UOp(Ops.DEVICE, arg=device)))


def sent(value: UOp, target: MultiArg) -> UOp:
    """A value that lies in another way, of which each rank has a part."""
    for axis in value.arg.axes:
        arg: MultiArg = value.arg
        along, ends = mesh_axes(arg, axis), dict(arg.ends)[axis]
        goal = dict(target.ends).get(axis)
        if mesh_axes(target, axis) == along:
            if goal is not None and goal != ends:
                value = exchanged_along(value, axis, spans_to(goal), with_ends(arg, axis, goal))
            continue
        other = next((o for o in target.axes if mesh_axes(target, o) == along and o not in arg.axes), None)
        if other is not None:
            value = exchanged_across(value, axis, other, dict(target.ends)[other])
        else:
            size = ends[-1]
            wanted = [(0, size)] * len(ends)
            value = exchanged_along(value, axis, wanted, without_axis(arg, axis))
    parts = []
    for part, place in zip(value.src, value.arg.here, strict=True):
        for axis in target.axes:
            if axis not in value.arg.axes:
                part = part_of(part, axis, *span_at(target, axis, place))
        parts.append(part)
    return multi(parts, target)

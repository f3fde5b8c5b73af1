"""What devices that hold one value together send each other: other parts, all of it on each, a sum of what
each has.

A value is a MULTI, whose argument says how it lies (`layouts.py`). What comes back are values of plain nodes.
Where all devices of a mesh are in this process, what crosses from one to another is a COPY, and a sum is an
ADD: plain nodes, which are planned with what reads them. Where they are not, ranks send each other what they
have (`between_ranks.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..gradient import filled
from ..ir.args import MeshArg, MultiArg
from ..ir.mesh import (
    Span,
    box_at,
    coordinates,
    group_of,
    mesh_axes,
    number_along,
    position_at,
    set_along,
    span_at,
)
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..schedule.graph.layouts import (
    Ends,
    all_here,
    copied,
    layout,
    pending_axes,
    settled,
    spans_of,
    with_ends,
)
from ..schedule.graph.versions import multi
from ..shape.movement import shrink
from ..shape.rules import shape_of
from .between_ranks import exchanged_along, reduce_scatter, sent, sum_on_each
from .shards import combined_on, is_multi, on_device, one_after_another, part_at, part_of

# *** one part for one device


def fetch(value: UOp, spans: Sequence[Span], device: str) -> UOp:
    """The part of a value that `shrink` by these spans would give, on one device."""
    arg: MultiArg = value.arg
    if arg.is_pending:
        value = laid(value, settled(arg))
        arg = value.arg
    for axis in arg.axes:
        if not all(isinstance(end, int) for end in spans[axis]):
            raise NotImplementedError(
                f"a part with symbolic ends of a tensor that is sharded along axis {axis}"
            )
    if not all_here(arg.mesh):
        return _from_ranks(value, spans, device)
    place = arg.devices.index(device) if device in arg.devices else 0
    return _chunks(value, tuple(spans), device, list(coordinates(arg.mesh, place)), arg.axes)


def _from_ranks(value: UOp, spans: Sequence[Span], device: str) -> UOp:
    """What `fetch` gives on each rank: along the axes that are split, no more is sent than the part."""
    inner = list(spans)
    for axis in value.arg.axes:
        begin, end = spans[axis]
        count = len(spans_of(value, axis))
        value = moved_along(value, axis, [(begin, end)] * count)
        inner[axis] = (0, end - begin)
    local = value.arg.local
    return on_device(shrink(value.src[local.index(device) if device in local else 0], inner), device)


def _chunks(value: UOp, spans: tuple[Span, ...], device: str, at: list[int], axes: tuple[int, ...]) -> UOp:
    """What `fetch` gives: along `axes` from the devices that have a part of it, along all others from those
    that are there.
    """
    arg: MultiArg = value.arg
    if not axes:
        place = position_at(arg.mesh, at)
        inner = list(spans)
        for axis in arg.axes:
            first = span_at(arg, axis, place)[0]
            inner[axis] = (spans[axis][0] - first, spans[axis][1] - first)
        return on_device(shrink(value.src[place], inner), device)
    axis = axes[0]
    along = mesh_axes(arg, axis)
    begin, end = spans[axis]
    pieces = []
    for number, (first, last) in enumerate(spans_of(value, axis)):
        low, high = max(begin, first), min(end, last)  # type: ignore[type-var]
        if low < high:
            there = list(at)
            set_along(there, arg.mesh, along, number)
            inner_spans = (*spans[:axis], (low, high), *spans[axis + 1 :])
            pieces.append((inner_spans, there))
    if not pieces:
        return filled(tuple(b - a for a, b in spans), value.dtype, 0)
    if len(pieces) == 1:
        return _chunks(value, pieces[0][0], device, pieces[0][1], axes[1:])
    if len(axes) == 1:  # the parts are joined as they are, on the device that they go to
        found = [_there(value, inner_spans, position_at(arg.mesh, there)) for inner_spans, there in pieces]
    else:
        found = [_chunks(value, inner_spans, device, there, axes[1:]) for inner_spans, there in pieces]
    return one_after_another(found, axis, device)


def _there(value: UOp, spans: Sequence[Span], place: int) -> UOp:
    """The part of a device's part that has these elements of the whole."""
    inner = list(spans)
    for axis in value.arg.axes:
        first = span_at(value.arg, axis, place)[0]
        inner[axis] = (spans[axis][0] - first, spans[axis][1] - first)
    return shrink(value.src[place], inner)


# *** the parts of all devices


def copies(value: UOp, arg: MultiArg) -> Sequence[UOp]:
    """All of a value for each device that is here: of one that is plain, the value itself."""
    return on_each(value).src if is_multi(value) else [value] * len(arg.here)


def on_each(value: UOp) -> UOp:
    """The whole of a value on each of its devices."""
    return laid(value, copied(value.arg.mesh))


def check_same_devices(first: MultiArg, other: MultiArg) -> None:
    """ValueError where two values are on different devices."""
    if first.devices != other.devices:
        names = [", ".join(arg.devices) for arg in (first, other)]
        raise ValueError(
            f"tensors on {names[0]} and on {names[1]} cannot be combined; shard both over the same devices"
        )


def laid(value: UOp, target: MultiArg) -> UOp:
    """A value that lies as `target` says. What is pending is combined, unless it is pending there too."""
    arg: MultiArg = value.arg
    if arg == target:
        return value
    check_same_devices(arg, target)
    if target.is_pending:  # a sum on each device is no term of it
        assert settled(target, but=arg) == target, (arg, target)
    if arg.mesh != target.mesh:
        value = on_each(value)
        if arg.mesh.devices == target.mesh.devices:
            value = multi(value.src, copied(target.mesh))
        return laid(value, target)
    for number in pending_axes(arg):
        goal = target.placements[number]
        if isinstance(goal, Ops):
            continue
        if goal is None or mesh_axes(target, goal) != (number,) or goal in value.arg.axes:
            value = _sum_on_each(value, number)
        else:
            value = _reduce_scatter(value, number, goal, dict(target.ends)[goal])
    arg = value.arg
    if arg == target:
        return value
    if not all_here(arg.mesh):
        return sent(value, target)
    if not arg.axes:  # each device has all that it needs
        return multi(
            [part_at(p, target, place) for p, place in zip(value.src, arg.here, strict=True)], target
        )
    shape = shape_of(value)
    parts = []
    for place in arg.here:
        at, box = list(coordinates(arg.mesh, place)), box_at(target, shape, place)
        parts.append(_chunks(value, box, arg.devices[place], at, arg.axes))
    return multi(parts, target)


def moved_along(value: UOp, axis: int, wanted: Sequence[tuple[int, int]]) -> UOp:
    """For each device other elements of an axis that is split: those that `wanted` says for its number along
    it. How the result lies along the axis is not said: its ends are where such parts would end.
    """
    arg: MultiArg = value.arg
    if list(wanted) == spans_of(value, axis):
        return value
    target = with_ends(arg, axis, _ends(wanted))
    along = mesh_axes(arg, axis)
    if not all_here(arg.mesh):
        return exchanged_along(value, axis, wanted, target)
    shape = shape_of(value)
    parts = []
    for place in arg.here:
        at, box = list(coordinates(arg.mesh, place)), list(box_at(arg, shape, place))
        box[axis] = wanted[number_along(arg.mesh, place, along)]
        parts.append(_chunks(value, tuple(box), arg.devices[place], at, (axis,)))
    return multi(parts, target)


def _ends(spans: Iterable[tuple[int, int]]) -> Ends:
    total, found = 0, []
    for begin, end in spans:
        total += end - begin
        found.append(total)
    return tuple(found)


# *** sums


def _sum_on_each(value: UOp, number: int) -> UOp:
    """An all-reduce of what is pending along an axis of the mesh.

    In one process the terms meet on the first device of a group, which combines them in their order, and the
    result goes out from there: the copies are equal to the bit.
    """
    arg: MultiArg = value.arg
    op = arg.placements[number]
    target = _at(arg, number, None)
    if not all_here(arg.mesh):
        return sum_on_each(value, number, target)
    shards: dict[int, UOp] = {}
    for place in arg.here:
        group = group_of(arg.mesh, place, (number,))
        if place != group[0]:
            continue
        total = combined_on([value.src[other] for other in group], op, arg.devices[place])  # type: ignore[arg-type]
        total = UOp(Ops.CONTIGUOUS, total.dtype, (total,))
        for other in group:
            shards[other] = on_device(total, arg.devices[other])
    return multi([shards[place] for place in arg.here], target)


def combined(parts: Sequence[UOp], op: Ops, devices: tuple[str, ...]) -> UOp:
    """An all-reduce of values of one shape, one on each device that is here; the result on each."""
    return _sum_on_each(multi(parts, layout(MeshArg.of(devices), (op,), {})), 0)


def _reduce_scatter(value: UOp, number: int, axis: int, ends: Ends) -> UOp:
    """A reduce-scatter of what is pending along an axis of the mesh: each device has a part of the result."""
    arg: MultiArg = value.arg
    op = arg.placements[number]
    places = [axis if n == number else place for n, place in enumerate(arg.placements)]
    target = layout(arg.mesh, places, {**dict(arg.ends), axis: ends})
    if not all_here(arg.mesh):
        return reduce_scatter(value, number, axis, target)
    parts = []
    for place in arg.here:
        span = span_at(target, axis, place)
        group = group_of(arg.mesh, place, (number,))
        terms = [part_of(value.src[other], axis, *span) for other in group]
        parts.append(combined_on(terms, op, arg.devices[place]))  # type: ignore[arg-type]
    return multi(parts, target)


def _at(arg: MultiArg, number: int, place: int | None) -> MultiArg:
    """The layout in which an axis of the mesh does something else."""
    places = [place if n == number else before for n, before in enumerate(arg.placements)]
    return layout(arg.mesh, places, dict(arg.ends))

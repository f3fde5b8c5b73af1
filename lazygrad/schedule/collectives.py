"""What devices that hold one value together send each other: other parts, all of it on each, a sum of what
each has.

A value is a MULTI, whose argument says how it lies (`layouts.py`). What comes back are values of plain nodes.
Where all devices of a mesh are in this process, what crosses from one to another is a COPY, and a sum is an
ADD. Where they are not, each device has a COLLECTIVE of its own part, and what it sends and receives is known
from the layouts alone.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence

from ..gradient import filled
from ..ir.args import CollectiveArg, MeshArg, MultiArg
from ..ir.device import device_of
from ..ir.mesh import (
    Span,
    box_at,
    coordinates,
    group_of,
    mesh_axes,
    number_along,
    place_at,
    set_along,
    span_at,
)
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..shape.movement import expand, permute, reshape, shrink
from ..shape.rules import shape_of
from ..shape.sizes import prod
from .in_memory import is_copied_as_it_is
from .layouts import (
    Ends,
    all_here,
    copied,
    layout,
    pending_axes,
    settled,
    spans_of,
    spans_to,
    with_ends,
    without_axis,
)
from .versions import effective, placed, set_becomes


def multi(parts: Iterable[UOp], arg: MultiArg) -> UOp:
    """The value of which each device that is here has one of these parts."""
    found = tuple([placed(part, device) for part, device in zip(parts, arg.local, strict=True)])
    return UOp(Ops.MULTI, found[0].dtype, found, arg)


def is_multi(node: UOp) -> bool:
    return node.op is Ops.MULTI


def by_rows(node: UOp, columns: Iterable[Sequence[UOp]], arg: MultiArg) -> UOp:
    """A node for each device, of that device's part of each source."""
    return multi([node.replace(src=row) for row in zip(*columns, strict=True)], arg)


def each(value: UOp, function: Callable[[UOp], UOp], arg: MultiArg) -> UOp:
    """A function of each part; `arg` says how the results lie."""
    return multi([function(part) for part in value.src], arg)


def part_of(node: UOp, axis: int, begin: int, end: int) -> UOp:
    """The elements [begin, end) of an axis; a repeated one is repeated less often."""
    shape = shape_of(node)
    if (begin, end) == (0, shape[axis]):
        return node
    if node.op is Ops.EXPAND and shape_of(node.src[0])[axis] == 1:
        return expand(node.src[0], (*shape[:axis], end - begin, *shape[axis + 1 :]))
    spans: list[Span] = [(0, size) for size in shape]
    spans[axis] = (begin, end)
    return shrink(node, spans)


def part_at(node: UOp, arg: MultiArg, place: int) -> UOp:
    """The elements of a plain node that a device has of a value that lies so."""
    for axis in arg.axes:
        node = part_of(node, axis, *span_at(arg, axis, place))
    return node


def on_device(node: UOp, device: str) -> UOp:
    """A plain value, on a device: itself where it is there, or made of numbers alone; else a copy."""
    if device_of(node) in (None, device):
        return node
    return UOp(Ops.COPY, node.dtype, (node, UOp(Ops.DEVICE, arg=device)))


def in_memory_of_its_own(node: UOp, device: str) -> UOp:
    """A copy of a plain value in memory of a device."""
    if device_of(node) == device:
        return UOp(Ops.CONTIGUOUS, node.dtype, (node,), "clone")
    return UOp(Ops.COPY, node.dtype, (node, UOp(Ops.DEVICE, arg=device)))


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
        return on_device(shrink(on_each(value).src[0], spans), device)
    place = arg.devices.index(device) if device in arg.devices else 0
    return _pieces(value, tuple(spans), device, list(coordinates(arg.mesh, place)), arg.axes)


def _pieces(value: UOp, spans: tuple[Span, ...], device: str, at: list[int], axes: tuple[int, ...]) -> UOp:
    """What `fetch` gives: along `axes` from the devices that have a part of it, along all others from those
    that are there.
    """
    arg: MultiArg = value.arg
    if not axes:
        place = place_at(arg.mesh, at)
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
        if low < high:  # type: ignore[operator]
            there = list(at)
            set_along(there, arg.mesh, along, number)
            inner_spans = (*spans[:axis], (low, high), *spans[axis + 1 :])
            pieces.append((inner_spans, there))
    if not pieces:
        return filled(tuple(b - a for a, b in spans), value.dtype, 0)
    if len(pieces) == 1:
        return _pieces(value, pieces[0][0], device, pieces[0][1], axes[1:])
    if len(axes) == 1:  # the parts are joined as they are, on the device that they go to
        found = [_there(value, inner_spans, place_at(arg.mesh, there)) for inner_spans, there in pieces]
    else:
        found = [_pieces(value, inner_spans, device, there, axes[1:]) for inner_spans, there in pieces]
    return _one_after_another(found, axis, device)


def _there(value: UOp, spans: Sequence[Span], place: int) -> UOp:
    """The part of a device's part that has these elements of the whole."""
    inner = list(spans)
    for axis in value.arg.axes:
        first = span_at(value.arg, axis, place)[0]
        inner[axis] = (spans[axis][0] - first, spans[axis][1] - first)
    return shrink(value.src[place], inner)


def _one_after_another(pieces: Sequence[UOp], axis: int, device: str) -> UOp:
    """Pieces from several devices joined along an axis, in memory of one: each is copied to its place."""
    rank = len(shape_of(pieces[0]))
    order = (axis, *(i for i in range(rank) if i != axis))
    sources = [_stored(permute(piece, order)) for piece in pieces]
    joined = UOp(Ops.COPY, sources[0].dtype, (*sources, UOp(Ops.DEVICE, arg=device)))
    return permute(joined, tuple(sorted(range(rank), key=order.__getitem__)))


def _stored(node: UOp) -> UOp:
    """What a COPY of several takes without a kernel on the device that it goes to."""
    return node if is_copied_as_it_is(node) else UOp(Ops.CONTIGUOUS, node.dtype, (node,))


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
    if arg.mesh != target.mesh:
        value = on_each(value)
        if arg.mesh.devices == target.mesh.devices:
            value = multi(value.src, copied(target.mesh))
        return laid(value, target)
    for number in pending_axes(arg):
        goal = target.places[number]
        if isinstance(goal, Ops):
            continue
        alone = goal is not None and mesh_axes(target, goal) == (number,) and goal not in value.arg.axes
        if alone:
            value = _sum_in_parts(value, number, goal, dict(target.ends)[goal])  # type: ignore[arg-type]
        else:
            value = _sum_on_each(value, number)
    arg = value.arg
    if arg == target:
        return value
    if not all_here(arg.mesh):
        return _sent(value, target)
    if not arg.axes:  # each device has all that it needs
        return multi(
            [part_at(p, target, place) for p, place in zip(value.src, arg.here, strict=True)], target
        )
    shape = shape_of(value)
    parts = []
    for place in arg.here:
        at, box = list(coordinates(arg.mesh, place)), box_at(target, shape, place)
        parts.append(_pieces(value, box, arg.devices[place], at, arg.axes))
    return multi(parts, target)


def moved_along(value: UOp, axis: int, wanted: Sequence[tuple[int, int]]) -> UOp:
    """For each device other elements of an axis that is split: those that `wanted` says for its number along
    it. How the result lies along the axis is not said: its ends are where such parts would end.
    """
    arg: MultiArg = value.arg
    target = with_ends(arg, axis, _ends(wanted))
    along = mesh_axes(arg, axis)
    if not all_here(arg.mesh):
        return _exchanged_along(value, axis, wanted, target)
    shape = shape_of(value)
    parts = []
    for place in arg.here:
        box = list(box_at(arg, shape, place))
        box[axis] = wanted[number_along(arg.mesh, place, along)]
        parts.append(fetch(value, box, arg.devices[place]))
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
    op = arg.places[number]
    target = _at(arg, number, None)
    if not all_here(arg.mesh):
        return _combined(value, number, target)
    parts: dict[int, UOp] = {}
    for place in arg.here:
        group = group_of(arg.mesh, place, (number,))
        if place != group[0]:
            continue
        total = combined_on([value.src[other] for other in group], op, arg.devices[place])  # type: ignore[arg-type]
        total = UOp(Ops.CONTIGUOUS, total.dtype, (total,))
        for other in group:
            parts[other] = on_device(total, arg.devices[other])
    return multi([parts[place] for place in arg.here], target)


def combined_on(terms: Sequence[UOp], op: Ops, device: str) -> UOp:
    """Values of one shape from several devices, combined by an op on one, in their order."""
    total, *others = [on_device(term, device) for term in terms]
    for other in others:
        total = total.alu(op, other)
    return total


def combined(parts: Sequence[UOp], op: Ops, devices: tuple[str, ...]) -> UOp:
    """An all-reduce of values of one shape, one on each device that is here; the result on each."""
    return _sum_on_each(multi(parts, layout(MeshArg.of(devices), (op,), {})), 0)


def _sum_in_parts(value: UOp, number: int, axis: int, ends: Ends) -> UOp:
    """A reduce-scatter of what is pending along an axis of the mesh: each device has a part of the result."""
    arg: MultiArg = value.arg
    op = arg.places[number]
    places = [axis if n == number else place for n, place in enumerate(arg.places)]
    target = layout(arg.mesh, places, {**dict(arg.ends), axis: ends})
    if not all_here(arg.mesh):
        return _combined_in_parts(value, number, axis, target)
    parts = []
    for place in arg.here:
        span = span_at(target, axis, place)
        group = group_of(arg.mesh, place, (number,))
        terms = [part_of(value.src[other], axis, *span) for other in group]
        parts.append(combined_on(terms, op, arg.devices[place]))  # type: ignore[arg-type]
    return multi(parts, target)


def _at(arg: MultiArg, number: int, place: int | None) -> MultiArg:
    """The layout in which an axis of the mesh does something else."""
    places = [place if n == number else before for n, before in enumerate(arg.places)]
    return layout(arg.mesh, places, dict(arg.ends))


# *** between processes


class _Walk(threading.local):
    """The last COLLECTIVE of the walk of this thread: the next one goes behind it; and the number of the plan
    that is being made, 0 outside of one.
    """

    last: UOp | None = None
    plan = 0


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


def behind_the_last(node: UOp) -> UOp:
    """A COLLECTIVE that names the one before it in the walk."""
    known = effective(node)
    if known is not node or not _walk.plan or len(node.src) > 1:
        return known  # for another reader of the same plan
    if node.facts.get("in_plan") == _walk.plan:
        return node
    if _walk.last is not None:
        made = node.replace(src=(node.src[0], _walk.last))
        made.facts["alone"] = node
        set_becomes(node, made)
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
) -> UOp:
    arg = CollectiveArg(kind, op, group, place, tuple(sends), tuple(receives), tuple(shape))
    return behind_the_last(UOp(Ops.COLLECTIVE, part.dtype, (part,), arg))


def _static(node: UOp) -> tuple[int, ...]:
    shape = shape_of(node)
    if not all(isinstance(size, int) for size in shape):
        raise NotImplementedError("what ranks send each other of a tensor of symbolic shape")
    return shape  # type: ignore[return-value]


def _own(value: UOp) -> tuple[UOp, int]:
    """The part of this rank, and the place of its device."""
    if len(value.src) != 1:
        raise NotImplementedError("a rank with several devices of a mesh that reaches to other ranks")
    return value.src[0], value.arg.here[0]


def _members(arg: MultiArg, place: int, axes: tuple[int, ...]) -> tuple[tuple[str, ...], int]:
    group = group_of(arg.mesh, place, axes)
    return tuple([arg.devices[member] for member in group]), group.index(place)


def _combined(value: UOp, number: int, target: MultiArg) -> UOp:
    part, place = _own(value)
    shape = _static(part)
    count = prod(shape)
    op = value.arg.places[number]
    group, own = _members(value.arg, place, (number,))
    made = _node("all_reduce", part, op, group, own, [(0, count)], [count], shape)  # type: ignore[arg-type,list-item]
    return multi([made], target)


def _combined_in_parts(value: UOp, number: int, axis: int, target: MultiArg) -> UOp:
    part, place = _own(value)
    part, back = _axis_first(part, axis)
    shape = _static(part)
    rest = prod(shape[1:])
    group, own = _members(value.arg, place, (number,))
    spans = spans_to(dict(target.ends)[axis])
    begin, end = spans[own]
    sends = [(low * rest, high * rest) for low, high in spans]
    op = value.arg.places[number]
    made = _node(
        "reduce_scatter",
        part,
        op,
        group,
        own,
        sends,
        [(end - begin) * rest],
        (end - begin, *shape[1:]),  # type: ignore[arg-type,list-item]
    )
    return multi([permute(made, back)], target)


def _axis_first(node: UOp, axis: int) -> tuple[UOp, tuple[int, ...]]:
    """A node with an axis in front of all others, and the order that brings it back."""
    rank = len(shape_of(node))
    order = (axis, *(i for i in range(rank) if i != axis))
    return permute(node, order), tuple(sorted(range(rank), key=order.__getitem__))


def _exchanged_along(value: UOp, axis: int, wanted: Sequence[tuple[int, int]], target: MultiArg) -> UOp:
    """Each member of a group gets the elements of an axis that it wants from those that have them."""
    part, place = _own(value)
    part, back = _axis_first(part, axis)
    shape = _static(part)
    rest = prod(shape[1:])
    group, own = _members(value.arg, place, mesh_axes(value.arg, axis))
    spans = spans_of(value, axis)
    size = spans[-1][1]
    first = spans[own][0]
    low, high = wanted[own]
    receives = [_common(span, (low, high)) for span in spans]
    counts = [(end - begin) * rest for begin, end in receives]
    length = high - low
    if all(span == (0, size) for span in wanted):
        made = _node("all_gather", part, None, group, own, [(0, prod(shape))], counts, (length, *shape[1:]))  # type: ignore[arg-type,list-item]
    else:
        common = [_common(spans[own], want) for want in wanted]
        sends = [((begin - first) * rest, (end - first) * rest) for begin, end in common]
        made = _node("all_to_all", part, None, group, own, sends, counts, (length, *shape[1:]))  # type: ignore[arg-type]
    return multi([permute(made, back)], target)


def _common(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    """What is in both spans; an empty one within the first where there is nothing."""
    low, high = max(a[0], b[0]), min(a[1], b[1])
    return (low, high) if low < high else (a[0], a[0])


def _exchanged_across(value: UOp, axis: int, other: int, ends: Ends) -> UOp:
    """Parts along one axis become parts along another, over the same axes of the mesh."""
    part, place = _own(value)
    arg: MultiArg = value.arg
    along = mesh_axes(arg, axis)
    group, own = _members(arg, place, along)
    wanted, spans = spans_to(ends), spans_of(value, axis)
    shape = list(_static(part))
    rank = len(shape)
    order = (axis, *(i for i in range(rank) if i != axis))
    pieces, sends, begin = [], [], 0
    for low, high in wanted:
        piece = permute(part_of(part, other, low, high), order)
        count: int = prod(shape_of(piece))  # type: ignore[assignment]
        sends.append((begin, begin + count))
        begin += count
        if count:
            pieces.append(_stored(reshape(piece, (count,))))
    device = UOp(Ops.DEVICE, arg=group[own])
    flat = pieces[0] if len(pieces) == 1 else UOp(Ops.COPY, part.dtype, (*pieces, device))
    low, high = wanted[own]
    shape[axis], shape[other] = spans[-1][1], high - low
    rest = prod(shape) // shape[axis] if shape[axis] else 0
    counts = [(last - first) * rest for first, last in spans]  # type: ignore[operator]
    result = [shape[i] for i in order]
    made = _node("all_to_all", flat, None, group, own, sends, counts, result)  # type: ignore[arg-type]
    places = [other if n in along else before for n, before in enumerate(arg.places)]
    kept = {a: e for a, e in arg.ends if a != axis}
    back = tuple(sorted(range(rank), key=order.__getitem__))
    return multi([permute(made, back)], layout(arg.mesh, places, {**kept, other: ends}))


def _sent(value: UOp, target: MultiArg) -> UOp:
    """A value that lies in another way, of which each rank has a part."""
    for axis in value.arg.axes:
        arg: MultiArg = value.arg
        along, ends = mesh_axes(arg, axis), dict(arg.ends)[axis]
        goal = dict(target.ends).get(axis)
        if mesh_axes(target, axis) == along:
            if goal is not None and goal != ends:
                value = _exchanged_along(value, axis, spans_to(goal), with_ends(arg, axis, goal))
            continue
        other = next((o for o in target.axes if mesh_axes(target, o) == along and o not in arg.axes), None)
        if other is not None:
            value = _exchanged_across(value, axis, other, dict(target.ends)[other])
        else:
            size = ends[-1]
            wanted = [(0, size)] * len(ends)
            value = _exchanged_along(value, axis, wanted, without_axis(arg, axis))
    part, place = _own(value)
    for axis in target.axes:
        if axis not in value.arg.axes:
            part = part_of(part, axis, *span_at(target, axis, place))
    return multi([part], target)

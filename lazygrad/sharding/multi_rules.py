"""How the result of each op lies when its sources are parts on several devices, and what these send.

A rule takes the walk, a node and the values of its sources, of which one is a MULTI, and gives the node's
value. Along the sharded axis most ops compute their part from their part. What else they need is brought:
- a reduction over the axis is combined over the devices, and each has the result;
- operands that lie in different ways are laid like the first one that is sharded;
- what mixes elements along the axis (a scan, a sort, a reshape across it) is computed on each device from a
  copy of all.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from ..config import DEBUG
from ..device import Device
from ..dtype import dtypes
from ..gradient import filled, reduce_axes, scatter
from ..ir.args import MeshArg, MultiArg, Place
from ..ir.index import sint
from ..ir.mesh import Span, mesh_axes, number_along, span_at
from ..ir.ops import ELEMENTWISE, Ops
from ..ir.uop import UOp
from ..schedule.graph.layouts import (
    Ends,
    copied,
    ends_of_sizes,
    even_ends,
    layout,
    pending_axes,
    renumbered,
    settled,
    spans_of,
    spans_to,
    split,
    whole_spans,
    with_ends,
    without_axis,
)
from ..schedule.graph.requested import is_whole
from ..schedule.graph.versions import effective, multi, rebased
from ..shape import movement
from ..shape.movement import base_and_tracker, below_movement, expand, pad, permute, reshape, shrink
from ..shape.rules import shape_of
from ..shape.sizes import add, prod, sub
from .collectives import check_same_devices, copies, fetch, laid, moved_along, on_each
from .exchange_costs import cheapest
from .separation import Rule, Separation, own
from .shards import by_rows, each, in_memory_of_its_own, is_multi, part_at


def _lead(sources: Iterable[UOp]) -> UOp:
    """The source that the others are laid like: the first that is sharded, else one of which all have all."""
    several = [source for source in sources if is_multi(source)]
    for source in several:
        check_same_devices(several[0].arg, source.arg)
    return next((source for source in several if source.arg.axes), several[0])


def _elementwise(walk: Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    """Operands that lie differently are laid in the way that sends least; terms stay terms in what is linear
    in them.
    """
    lead = _lead(sources)
    terms = _stay_terms(node, sources)
    if terms:
        return _on_terms(walk, node, sources, terms)
    target = _meet(walk, node, sources, lead)
    return by_rows(node, [walk.shards_as(source, target) for source in node.src], target)


def _stay_terms(node: UOp, sources: Sequence[UOp]) -> list[int]:
    """The axes of the mesh along which a result is a sum of the results of the terms."""
    several = [source for source in sources if is_multi(source)]
    if node.op not in (Ops.ADD, Ops.SUB, Ops.NEG, Ops.MUL, Ops.FDIV) or node.dtype is dtypes.bool:
        return []
    if any(source.arg.mesh != several[0].arg.mesh for source in several):
        return []
    found = []
    for number in pending_axes(next((s.arg for s in several if s.arg.is_pending), several[0].arg)):
        places = [source.arg.placements[number] if is_multi(source) else None for source in sources]
        if node.op in (Ops.MUL, Ops.FDIV):
            stays = places[0] is Ops.ADD and places[1] is None
            stays = stays or (node.op is Ops.MUL and places[1] is Ops.ADD and places[0] is None)
        else:
            stays = all(place is Ops.ADD for place in places)
        if stays:
            found.append(number)
    return found


def _on_terms(walk: Separation, node: UOp, sources: Sequence[UOp], terms: Sequence[int]) -> UOp:
    lead = _lead(sources)
    target = settled(lead.arg)

    def on_terms(source: UOp) -> MultiArg:
        places = list(target.placements)
        for number in terms:
            places[number] = source.arg.placements[number] if is_multi(source) else None
        return layout(target.mesh, places, dict(target.ends))

    columns = [walk.shards_as(given, on_terms(value)) for given, value in zip(node.src, sources, strict=True)]
    places = [Ops.ADD if number in terms else place for number, place in enumerate(target.placements)]
    return by_rows(node, columns, layout(target.mesh, places, dict(target.ends)))


def _meet(walk: Separation, node: UOp, sources: Sequence[UOp], lead: UOp) -> MultiArg:
    """The layout that operands of an elementwise op are brought to: each axis of the mesh does what it does
    to one of them.
    """
    shape = shape_of(node)
    several = [source for source in sources if is_multi(source) and source.arg.mesh == lead.arg.mesh]
    lies = [settled(source.arg) for source in (lead, *several)]
    if not lead.arg.axes:
        wish = walk.wishes.get(node)
        if wish is not None and any(source.arg.is_pending for source in several):
            if wish.mesh == lead.arg.mesh and _fits(wish, shape):
                return wish
        return lies[0]
    if all(other == lies[0] or not other.axes for other in lies):
        return lies[0]
    options = [
        dict.fromkeys(p for p in places if p is not None)
        for places in zip(*[a.placements for a in lies], strict=True)
    ]
    choices = []
    for places in itertools.product(*[list(option) or [None] for option in options]):
        choices.append(_with_placements(lead.arg.mesh, places, lies, shape))
    found, reason = cheapest(choices, lambda to: sum(walk.bytes_for(source, to) for source in node.src))
    if DEBUG >= 3 and len(choices) > 1:
        print(f"{node.op.name.lower()} on {len(lead.arg.devices)} devices: {reason}")
    return found


def _with_placements(
    mesh: MeshArg, places: Sequence[Place], lies: Sequence[MultiArg], shape: Sequence[sint]
) -> MultiArg:
    """The layout with these places, whose parts end where those of an operand do, if one is split alike."""
    found = split(mesh, places, shape)
    for axis in found.axes:
        along = mesh_axes(found, axis)
        ends = next((dict(arg.ends)[axis] for arg in lies if mesh_axes(arg, axis) == along), None)
        found = found if ends is None else with_ends(found, axis, ends)
    return found


def _fits(arg: MultiArg, shape: Sequence[sint]) -> bool:
    return all(axis < len(shape) and shape[axis] == ends[-1] for axis, ends in arg.ends)


def _laid_like(walk: Separation, node: UOp, lead: UOp) -> UOp:
    """A node of parts that lie as those of the lead."""
    return by_rows(node, [walk.shards_like(source, lead) for source in node.src], lead.arg)


def _contiguous(walk: Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    """What is stored stays as it lies, or lies as the node says. What is copied for that is only the part."""
    (value,) = sources
    if not isinstance(node.arg, MultiArg):
        return each(value, lambda part: node.replace(src=(part,)), value.arg)
    if value.arg.axes or any(part.op is not Ops.COPY or len(part.src) != 2 for part in value.src):
        return laid(value, node.arg)
    placed = zip(value.src, node.arg.here, strict=True)
    return multi([p.replace(src=(part_at(p.src[0], node.arg, n), p.src[1])) for p, n in placed], node.arg)


def _detach(walk: Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    return sources[0]


def _reduce(walk: Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    """Along an axis that is split each device makes a term, and their sum is pending."""
    (value,) = sources
    op, axes = node.arg
    if any(value.arg.placements[number] is not op for number in pending_axes(value.arg)):
        value = walk.settled(node.src[0])
    arg = value.arg
    for axis in axes:
        arg = without_axis(arg, axis, op)
    return each(value, lambda part: reduce_axes(part, op, axes), arg)


def _along_one_axis(walk: Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    """SCAN runs along an axis: if it is the sharded one, each device runs along all of it."""
    lead = _lead(sources)
    target = lead.arg
    for axis in node.arg.axes:
        target = without_axis(target, axis)
    return by_rows(node, [walk.shards_as(source, target) for source in node.src], target)


def _sort(walk: Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    (value,) = sources
    value = laid(value, without_axis(value.arg, len(shape_of(node)) - 1))
    return each(value, lambda part: node.replace(src=(part,)), value.arg)


def _custom(walk: Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    """A kernel that its user wrote runs on each device, for all of its arrays."""
    target = copied(_lead(sources).arg.mesh)
    return by_rows(node, [copies(source, target) for source in sources], target)


def _routine(walk: Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    """Each device does the examples that it has; of an example that is shared, all devices do the whole.

    A source without a batch belongs to all examples.
    """
    batch = len(shape_of(node)) - len(node.arg.kernel.shape)
    several = [s for s in sources if is_multi(s)]
    shared = [
        is_multi(s) and not s.arg.axes and len(shape_of(s)) == core
        for s, core in zip(sources, node.arg.kernel.core, strict=True)
    ]
    lies = {s.arg for s, free in zip(sources, shared, strict=True) if is_multi(s) and not free}
    inside = all(set(arg.axes).issubset(range(batch)) for arg in lies)
    if len(lies) > 1 or len(several) < len(sources) or not inside:
        sources = tuple([on_each(s) if is_multi(s) else s for s in sources])
        several = [s for s in sources if is_multi(s)]
    first = _lead(several)
    columns = [s.src if is_multi(s) else [s] * len(first.src) for s in sources]
    return by_rows(node, columns, first.arg)


def _reshape(walk: Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    """Parts stay parts where the elements before the sharded axis, and those of a part, stay together."""
    (value,) = sources
    old, new = shape_of(value), node.arg
    target, names, ends = value.arg, {}, {}
    for axis in value.arg.axes:
        found = _split_axis_after(old, new, axis, spans_of(value, axis))
        if found is None or found[0] in ends:
            target = without_axis(target, axis)
        else:
            names[axis] = found[0]
            ends[found[0]] = found[1]
    value = laid(value, target)
    arg = renumbered(value.arg, names)
    for axis, found_ends in ends.items():
        arg = with_ends(arg, axis, found_ends)
    parts = []
    for part, place in zip(value.src, arg.here, strict=True):
        parts.append(reshape(part, _shape_at(new, arg, place)))
    return multi(parts, arg)


def _split_axis_after(
    old: Sequence[sint], new: Sequence[sint], axis: int, spans: Sequence[tuple[int, int]]
) -> tuple[int, Ends] | None:
    """The axis that a split one becomes where parts stay parts, and where these end."""
    for place in range(len(new)):
        before, first = _without_common(old[:axis], new[:place])
        behind, inner = _without_common(old[axis + 1 :], new[place + 1 :])
        if before != first or not (isinstance(behind, int) and isinstance(inner, int)):
            continue
        sizes = [(end - begin) * behind for begin, end in spans]
        if inner and all(size % inner == 0 for size in sizes):
            return place, ends_of_sizes([size // inner for size in sizes])
    return None


def _without_common(some: Sequence[sint], others: Sequence[sint]) -> tuple[sint, sint]:
    """Two products of sizes, without the symbolic ones that both have."""
    left, right = list(some), list(others)
    for size in some:
        if not isinstance(size, int) and size in right:
            left.remove(size)
            right.remove(size)
    return prod(left), prod(right)


def _shape_at(shape: Sequence[sint], arg: MultiArg, place: int) -> tuple[sint, ...]:
    """The shape of a device's part of a value of a shape."""
    found = list(shape)
    for axis in arg.axes:
        begin, end = span_at(arg, axis, place)
        found[axis] = end - begin
    return tuple(found)


def _expand(walk: Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    (value,) = sources
    new, target = node.arg, value.arg
    for axis in value.arg.axes:
        if shape_of(value)[axis] != new[axis]:
            target = without_axis(target, axis)
    value = laid(value, target)
    placed = zip(value.src, target.here, strict=True)
    return multi([expand(part, _shape_at(new, target, place)) for part, place in placed], target)


def _permute(walk: Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    (value,) = sources
    arg = renumbered(value.arg, {axis: node.arg.index(axis) for axis in value.arg.axes})
    return each(value, lambda part: permute(part, node.arg), arg)


def _flip(walk: Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    """Each device gets the elements that its own part of the result is made of."""
    (value,) = sources
    arg = value.arg
    for axis in arg.axes:
        if axis in node.arg:
            size = spans_of(value, axis)[-1][1]
            mirrored = [(size - end, size - begin) for begin, end in spans_of(value, axis)]
            value = moved_along(value, axis, mirrored)
    return each(value, lambda part: movement.flip(part, node.arg), arg)


def _shrink(walk: Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    (value,) = sources
    others = list(node.arg)
    for axis in value.arg.axes:
        begin, end = node.arg[axis]
        size = shape_of(value)[axis]
        if (begin, end) != (0, size):
            value = _spread_anew(walk, value, axis, sub(0, begin), sub(end, begin), node)
    for axis in range(len(others)):
        if axis in value.arg.axes or axis in sources[0].arg.axes:
            others[axis] = None

    def shrunk(part: UOp) -> UOp:
        shape = shape_of(part)
        return shrink(part, [(0, n) if span is None else span for span, n in zip(others, shape, strict=True)])

    return each(value, shrunk, value.arg)


def _pad(walk: Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    (value,) = sources
    others = list(node.arg)
    for axis in value.arg.axes:
        before, after = node.arg[axis]
        others[axis] = (0, 0)
        if (before, after) != (0, 0):
            size = add(add(before, shape_of(value)[axis]), after)
            value = _spread_anew(walk, value, axis, before, size, node)
    return each(value, lambda part: pad(part, others), value.arg)


def _spread_anew(walk: Separation, value: UOp, axis: int, before: sint, size: sint, node: UOp) -> UOp:
    """A shrink or a pad along a sharded axis: the result lies as its reader wants it. If that wants nothing
    it is spread evenly over the devices again, or is on each of them if it has fewer elements than there are
    devices.

    before  how many zeros come before the first element (negative: elements that are left out)
    size    of the axis of the result
    """
    arg, length = value.arg, shape_of(value)[axis]
    if not (isinstance(before, int) and isinstance(size, int) and isinstance(length, int)):
        raise NotImplementedError(
            f"{node.op.name.lower()} with symbolic sizes along axis {axis}, along which a tensor is sharded"
        )
    count, along = len(spans_of(value, axis)), mesh_axes(arg, axis)
    wish = walk.wishes.get(node)
    wanted_ends = None
    if wish is not None and wish.mesh == arg.mesh and mesh_axes(wish, axis) == along:
        wanted_ends = dict(wish.ends)[axis]
    ends = even_ends(size, count) if wanted_ends is None else wanted_ends
    copied = size < count and wanted_ends is None
    spans = [(0, size)] * count if copied else spans_to(ends)
    wanted = []
    for begin, end in spans:
        low = min(max(begin - before, 0), length)
        wanted.append((low, max(min(end - before, length), low)))
    moved = moved_along(value, axis, wanted)
    parts = []
    for part, place in zip(moved.src, arg.here, strict=True):
        number = number_along(arg.mesh, place, along)
        (begin, end), (low, high) = spans[number], wanted[number]
        gaps: list[Span] = [(0, 0)] * len(shape_of(part))
        # zeros alone remain what they were made of: on another rank the same node has elements
        gaps[axis] = (0, end - begin) if low == high else (low - (begin - before), (end - before) - high)
        parts.append(pad(part, gaps))
    target = without_axis(arg, axis) if copied else with_ends(arg, axis, ends)
    return multi(parts, target)


def _gather(walk: Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    """Each device reads from all of the memory at its part of the places."""
    memory, index = sources
    target = index.arg if is_multi(index) else copied(memory.arg.mesh)
    places = index.src if is_multi(index) else [index] * len(target.here)
    return by_rows(node, [copies(memory, target), places], target)


def _scatter(walk: Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    """Sums are scattered by each device from its part of the values: terms of a sum, to which the base is
    added unless it is zeros; all else on each device from all values.
    """
    base, index, values = sources
    whole = copied(_lead(sources).arg.mesh)
    within = [source for source in (index, values) if is_multi(source) and source.arg.axes]
    if node.arg is not Ops.ADD or not within:
        return by_rows(node, [copies(source, whole) for source in sources], whole)
    lies = within[0].arg
    places, amounts = (walk.shards_as(source, lies) for source in node.src[1:])
    zeros = filled(shape_of(node), node.dtype, 0)
    parts = [scatter(zeros, place, amount, Ops.ADD) for place, amount in zip(places, amounts, strict=True)]
    terms = lies
    for axis in lies.axes:
        terms = without_axis(terms, axis, Ops.ADD)
    if _is_zero(base):
        return multi(parts, terms)
    total = laid(multi(parts, terms), whole)
    begun = copies(base, whole)
    return multi([a.alu(Ops.ADD, b) for a, b in zip(begun, total.src, strict=True)], whole)


def _is_zero(value: UOp) -> bool:
    parts = value.src if is_multi(value) else (value,)
    lowest = [below_movement(part) for part in parts]
    return all(node.op is Ops.CONST and node.arg == 0 for node in lowest)


def _copy(walk: Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    *values, target = sources
    if len(values) > 1:
        return _join(walk, node, values, target)
    (value,) = values
    if isinstance(target.arg, tuple):
        arg = copied(MeshArg.of(target.arg))
        if is_multi(value):
            if value.arg.devices == target.arg:
                whole = on_each(value)
                return multi([own(part) for part in whole.src], whole.arg)
            return multi([_fetched(walk, node, name) for name in arg.local], arg)
        first = in_memory_of_its_own(value, arg.local[0])
        others = [in_memory_of_its_own(first, name) for name in arg.local[1:]]
        return multi([first, *others], arg)
    return _fetched(walk, node, target.arg)


def _fetched(walk: Separation, node: UOp, device: str) -> UOp:
    """All of a value, or the part of it that a shrink wants, in memory of its own on a device."""
    source = effective(node.src[0])
    spans = None
    if source.op is Ops.SHRINK and is_multi(walk.of(source.src[0])):
        spans, source = source.arg, source.src[0]
    value = walk.settled(source)
    spans = spans or whole_spans(value)
    if not Device.runs_kernels(device):  # nothing can be brought into order there
        return in_memory_of_its_own(fetch(value, spans, value.arg.local[0]), device)
    part = fetch(value, spans, device)
    return part if part.op is Ops.COPY else UOp(Ops.CONTIGUOUS, part.dtype, (part,), "clone")


def _join(walk: Separation, node: UOp, values: Sequence[UOp], target: UOp) -> UOp:
    """Several values one after another along their first axis, on the devices that hold them."""
    lead = _lead(values)
    if target.arg != lead.arg.devices:
        raise NotImplementedError(
            f"values of {', '.join(lead.arg.devices)} joined in memory of {target.arg}: gather each first"
        )
    lies = without_axis(lead.arg, 0)
    columns = [walk.shards_as(source, lies) for source in node.src[:-1]]
    targets = [UOp(Ops.DEVICE, arg=name) for name in lies.local]
    return by_rows(node, [*columns, targets], lies)


def _assign(walk: Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    """Each device writes its part; a value that lies in another way is laid as the memory is."""
    memory = sources[0]
    if not is_multi(memory) or node.arg is not None:
        raise NotImplementedError("a write to a part of memory that several devices hold is not supported")
    written = []
    for part, value in zip(memory.src, walk.shards_like(node.src[1], memory), strict=True):
        base, tracker = base_and_tracker(part)
        if is_whole(base, tracker):
            made = UOp(Ops.ASSIGN, node.dtype, (base, reshape(value, shape_of(base))))
        else:
            made = UOp(Ops.ASSIGN, node.dtype, (base, value), tracker)
        written.append(rebased(part, made))
    return multi(written, memory.arg)


#: Op, or kind of a PROGRAM → its rule.
RULES: dict[Ops | str, Rule] = {
    **dict.fromkeys(ELEMENTWISE, _elementwise),
    Ops.CONTIGUOUS: _contiguous,
    Ops.DETACH: _detach,
    Ops.REDUCE_AXIS: _reduce,
    Ops.SCAN: _along_one_axis,
    "sort": _sort,
    "custom": _custom,
    "routine": _routine,
    Ops.RESHAPE: _reshape,
    Ops.EXPAND: _expand,
    Ops.PERMUTE: _permute,
    Ops.FLIP: _flip,
    Ops.SHRINK: _shrink,
    Ops.PAD: _pad,
    Ops.GATHER: _gather,
    Ops.SCATTER: _scatter,
    Ops.COPY: _copy,
    Ops.ASSIGN: _assign,
}

#: Those of a tensor graph that have no rule, and why.
NO_RULE: dict[Ops | str, str] = {
    "loop": "scan over tensors on several devices is not implemented yet",
    Ops.BUFFER_VIEW: "a part of memory is a part of one device's memory",
    **dict.fromkeys(
        (Ops.BUFFER, Ops.UNIQUE, Ops.DEVICE, Ops.KERNEL, Ops.BIND, Ops.DEFINE_VAR),
        "it has no value of several devices below it",
    ),
    **dict.fromkeys((Ops.MULTI, Ops.CONST, Ops.IOTA, Ops.COLLECTIVE), "the walk itself says how it lies"),
    **dict.fromkeys((Ops.SINK, Ops.NOOP), "it has no value"),
    Ops.DEFERRED: "a call whose node is not made is in no graph",
}

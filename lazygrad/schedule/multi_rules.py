"""How the result of each op lies when its sources are parts on several devices, and what these send.

A rule takes the walk, a node and the values of its sources, of which one is a MULTI, and gives the node's
value. Along the sharded axis most ops compute their part from their part. What else they need is brought:
- a reduction over the axis is combined over the devices, and each has the result;
- operands that lie in different ways are laid like the first one that is sharded;
- what mixes elements along the axis (a scan, a sort, a reshape across it) is computed on each device from a
  copy of all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ..device import Device
from ..gradient import filled, reduce_axes, scatter
from ..ir.index import sint
from ..ir.ops import ELEMENTWISE, Ops
from ..ir.uop import UOp
from ..shape import movement
from ..shape.movement import base_and_tracker, expand, pad, permute, reshape, shrink
from ..shape.rules import shape_of
from ..shape.sizes import add, prod, sub
from .collectives import (
    Span,
    by_rows,
    combined,
    copies,
    each,
    even_spans,
    fetch,
    in_memory_of_its_own,
    is_multi,
    multi,
    on_each,
    spans_of,
    whole_spans,
)
from .in_memory import is_whole
from .separation import Rule, Separation
from .versions import effective, rebased


def _lead(sources: Iterable[UOp]) -> UOp:
    """The source that the others are laid like: the first that is sharded, else one of which all have all."""
    several = [source for source in sources if is_multi(source)]
    for source in several:
        if source.arg.devices != several[0].arg.devices:
            first, second = (", ".join(found.arg.devices) for found in (several[0], source))
            raise ValueError(
                f"tensors on {first} and on {second} cannot be combined; shard both over the same devices"
            )
    return next((source for source in several if source.arg.axis is not None), several[0])


def _elementwise(walk: Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    return _laid_like(walk, node, _lead(sources))


def _laid_like(walk: Separation, node: UOp, lead: UOp) -> UOp:
    """A node of parts that lie as those of the lead."""
    return by_rows(node, [walk.parts_like(source, lead) for source in node.src], *lead.arg)


def _unary(walk: Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    (value,) = sources
    return each(value, lambda part: node.replace(src=(part,)), value.arg.axis)


def _detach(walk: Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    return sources[0]


def _reduce(walk: Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    (value,) = sources
    op, axes = node.arg
    parts = [reduce_axes(part, op, axes) for part in value.src]
    axis, devices = value.arg
    return combined(parts, op, devices) if axis in axes else multi(parts, axis, devices)


def _along_one_axis(walk: Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    """SCAN runs along an axis: if it is the sharded one, each device runs along all of it."""
    lead = _lead(sources)
    if lead.arg.axis in node.arg.axes:
        lead = on_each(lead)
    return _laid_like(walk, node, lead)


def _sort(walk: Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    (value,) = sources
    if value.arg.axis == len(shape_of(node)) - 1:
        value = on_each(value)
    return each(value, lambda part: node.replace(src=(part,)), value.arg.axis)


def _custom(walk: Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    """A kernel that its user wrote runs on each device, for all of its arrays."""
    devices = next(source.arg.devices for source in sources if is_multi(source))
    laid = [copies(source, devices) for source in sources]
    parts = [node.replace(src=tuple(each)) for each in zip(*laid, strict=True)]
    return multi(parts, None, devices)


def _loop(walk: Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    raise NotImplementedError("scan over tensors on several devices is not implemented yet")


def _routine(walk: Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    """Each device does the examples that it has; of an example that is shared, all devices do the whole.

    A source without a batch belongs to all examples.
    """
    batch = len(shape_of(node)) - len(node.arg.shape)
    shared = [
        s.op is Ops.MULTI and s.arg.axis is None and len(shape_of(s)) == core
        for s, core in zip(sources, node.arg.core, strict=True)
    ]
    axes = {s.arg.axis for s, free in zip(sources, shared, strict=True) if s.op is Ops.MULTI and not free}
    if len(axes) > 1 or not all(s.op is Ops.MULTI for s in sources) or not axes.issubset(range(batch)):
        sources = tuple([on_each(s) if s.op is Ops.MULTI else s for s in sources])
    split = [s for s in sources if s.op is Ops.MULTI]
    first = next((s for s in split if s.arg.axis is not None), split[0])
    parts = [
        node.replace(src=tuple([s.src[i] if s.op is Ops.MULTI else s for s in sources]))
        for i in range(len(first.src))
    ]
    return multi(parts, first.arg.axis, first.arg.devices)


def _reshape(walk: Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    """Parts stay parts where the elements before the sharded axis, and those of a part, stay together."""
    (value,) = sources
    axis, new = value.arg.axis, node.arg
    if axis is None:
        return each(value, lambda part: reshape(part, new))
    old = shape_of(value)
    before, behind = prod(old[:axis]), prod(old[axis + 1 :])
    for place in range(len(new)):
        inner = prod(new[place + 1 :])
        if prod(new[:place]) != before or not (isinstance(behind, int) and isinstance(inner, int)):
            continue
        sizes = [(end - begin) * behind for begin, end in spans_of(value)]
        if inner and all(size % inner == 0 for size in sizes):
            shapes = [(*new[:place], size // inner, *new[place + 1 :]) for size in sizes]
            parts = [reshape(part, shape) for part, shape in zip(value.src, shapes, strict=True)]
            return multi(parts, place, value.arg.devices)
    return each(on_each(value), lambda part: reshape(part, new))


def _expand(walk: Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    (value,) = sources
    axis, new = value.arg.axis, node.arg
    if axis is not None and shape_of(value)[axis] != new[axis]:
        value, axis = on_each(value), None

    def expanded(part: UOp) -> UOp:
        shape = new if axis is None else (*new[:axis], shape_of(part)[axis], *new[axis + 1 :])
        return expand(part, shape)

    return each(value, expanded, axis)


def _permute(walk: Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    (value,) = sources
    axis = value.arg.axis
    return each(value, lambda part: permute(part, node.arg), None if axis is None else node.arg.index(axis))


def _flip(walk: Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    (value,) = sources
    axis, devices = value.arg
    if axis is None or axis not in node.arg:
        return each(value, lambda part: movement.flip(part, node.arg), axis)
    size = shape_of(value)[axis]
    parts = []
    for (begin, end), device in zip(spans_of(value), devices, strict=True):
        spans = whole_spans(value)
        mirrored = (sub(size, end), sub(size, begin))
        part = fetch(value, (*spans[:axis], mirrored, *spans[axis + 1 :]), device)
        parts.append(movement.flip(part, node.arg))
    return multi(parts, axis, devices)


def _shrink(walk: Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    (value,) = sources
    axis = value.arg.axis
    if axis is None:
        return each(value, lambda part: shrink(part, node.arg))
    begin, end = node.arg[axis]
    if (begin, end) == (0, shape_of(value)[axis]):
        return each(value, lambda part: shrink(part, _with(node.arg, axis, (0, shape_of(part)[axis]))), axis)
    return _spread_anew(value, axis, sub(0, begin), sub(end, begin), shrink, node)


def _pad(walk: Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    (value,) = sources
    axis = value.arg.axis
    if axis is None or node.arg[axis] == (0, 0):
        return each(value, lambda part: pad(part, node.arg), axis)
    before, after = node.arg[axis]
    size = add(add(before, shape_of(value)[axis]), after)
    return _spread_anew(value, axis, before, size, pad, node)


def _with(pairs: Sequence[Span], axis: int, pair: Span) -> tuple[Span, ...]:
    return (*pairs[:axis], pair, *pairs[axis + 1 :])


def _spread_anew(
    value: UOp,
    axis: int,
    before: sint,
    size: sint,
    others: Callable[[UOp, tuple[Span, ...]], UOp],
    node: UOp,
) -> UOp:
    """A shrink or a pad along the sharded axis: the result is spread evenly over the devices again, or is on
    each of them where it has fewer elements than there are devices.

    before  how many zeros come before the first element (negative: elements that are left out)
    size    of the axis of the result
    others  the movement along the other axes
    """
    devices, length = value.arg.devices, shape_of(value)[axis]
    if not (isinstance(before, int) and isinstance(size, int) and isinstance(length, int)):
        raise NotImplementedError(
            f"{node.op.name.lower()} with symbolic sizes along axis {axis}, along which a tensor is sharded"
        )
    copied = size < len(devices)
    spans = [(0, size)] * len(devices) if copied else even_spans(size, len(devices))
    parts = []
    for (begin, end), device in zip(spans, devices, strict=True):
        low, high = max(begin - before, 0), min(end - before, length)
        if low < high:
            part = fetch(value, _with(whole_spans(value), axis, (low, high)), device)
            gaps: Span = (low - (begin - before), (end - before) - high)
            part = pad(part, _with(((0, 0),) * len(shape_of(value)), axis, gaps))
        else:
            shape = shape_of(value)
            part = filled((*shape[:axis], end - begin, *shape[axis + 1 :]), value.dtype, 0)
        unchanged: Span = (0, end - begin) if node.op is Ops.SHRINK else (0, 0)
        parts.append(others(part, _with(node.arg, axis, unchanged)))
    return multi(parts, None if copied else axis, devices)


def _gather(walk: Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    """Each device reads from all of the memory at its part of the places."""
    memory, index = sources
    devices = _lead(sources).arg.devices
    places, axis = (index.src, index.arg.axis) if is_multi(index) else ([index] * len(devices), None)
    return by_rows(node, [copies(memory, devices), places], axis, devices)


def _scatter(walk: Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    """Sums are scattered by each device from its part of the values, and combined; all else on each device
    from all values.
    """
    base, index, values = sources
    lead = _lead(sources)
    devices = lead.arg.devices
    within = [source for source in (index, values) if is_multi(source) and source.arg.axis is not None]
    if node.arg is not Ops.ADD or not within:
        return by_rows(node, [copies(source, devices) for source in sources], None, devices)
    places, amounts = (walk.parts_like(source, within[0]) for source in node.src[1:])
    zeros = filled(shape_of(node), node.dtype, 0)
    parts = [scatter(zeros, place, amount, Ops.ADD) for place, amount in zip(places, amounts, strict=True)]
    total = combined(parts, Ops.ADD, devices)
    begun = copies(base, devices)
    return multi([a.alu(Ops.ADD, b) for a, b in zip(begun, total.src, strict=True)], None, devices)


def _copy(walk: Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    *values, target = sources
    if len(values) > 1:
        return _join(walk, node, values, target)
    (value,) = values
    if isinstance(target.arg, tuple):
        if is_multi(value):
            return multi([_fetched(walk, node, name) for name in target.arg], None, target.arg)
        first = in_memory_of_its_own(value, target.arg[0])
        others = [in_memory_of_its_own(first, name) for name in target.arg[1:]]
        return multi([first, *others], None, target.arg)
    return _fetched(walk, node, target.arg)


def _fetched(walk: Separation, node: UOp, device: str) -> UOp:
    """All of a value, or the part of it that a shrink wants, in memory of its own on a device."""
    source = effective(node.src[0])
    spans = None
    if source.op is Ops.SHRINK and is_multi(walk.of(source.src[0])):
        spans, source = source.arg, source.src[0]
    value = walk.of(source)
    spans = spans or whole_spans(value)
    if not Device.runs_kernels(device):  # nothing can be brought into order there
        return in_memory_of_its_own(fetch(value, spans, value.arg.devices[0]), device)
    part = fetch(value, spans, device)
    return part if part.op is Ops.COPY else UOp(Ops.CONTIGUOUS, part.dtype, (part,), "clone")


def _join(walk: Separation, node: UOp, values: Sequence[UOp], target: UOp) -> UOp:
    """Several values one after another along their first axis, on the devices that hold them."""
    lead = _lead(values)
    if lead.arg.axis == 0:
        lead = on_each(lead)
    if target.arg != lead.arg.devices:
        raise NotImplementedError(
            f"values of {', '.join(lead.arg.devices)} joined in memory of {target.arg}: gather each first"
        )
    columns = [walk.parts_like(source, lead) for source in node.src[:-1]]
    targets = [UOp(Ops.DEVICE, arg=name) for name in lead.arg.devices]
    return by_rows(node, [*columns, targets], *lead.arg)


def _assign(walk: Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    """Each device writes its part; a value that lies in another way is laid as the memory is."""
    memory = sources[0]
    if not is_multi(memory) or node.arg is not None:
        raise NotImplementedError("a write to a part of memory that several devices hold is not supported")
    written = []
    for part, value in zip(memory.src, walk.parts_like(node.src[1], memory), strict=True):
        base, tracker = base_and_tracker(part)
        if is_whole(base, tracker):
            made = UOp(Ops.ASSIGN, node.dtype, (base, reshape(value, shape_of(base))))
        else:
            made = UOp(Ops.ASSIGN, node.dtype, (base, value), tracker)
        written.append(rebased(part, made))
    return multi(written, *memory.arg)


RULES: dict[Ops, Rule] = {
    **dict.fromkeys(ELEMENTWISE, _elementwise),
    Ops.CONTIGUOUS: _unary,
    Ops.DETACH: _detach,
    Ops.REDUCE_AXIS: _reduce,
    Ops.SCAN: _along_one_axis,
    Ops.SORT: _sort,
    Ops.CUSTOM: _custom,
    Ops.LOOP: _loop,
    Ops.ROUTINE: _routine,
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

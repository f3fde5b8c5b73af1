"""Tensors that several devices hold together: a graph over them becomes a graph for each device.

MULTI says how a value lies: a part on each device along an axis, or a copy on each. A graph above one is
written as if there were one device. Before it is planned, MULTI is pushed up through it, from the leaves to
the results: a rule for each op says how the result of parts lies, and what the devices must send each other
first (`collectives.py`). What is left below the results are plain graphs, which are planned as any others.

Along the sharded axis most ops compute their part from their part. Where an op needs more, it is brought:
- a reduction over the axis is combined over the devices, and each has the result;
- operands that lie in different ways are laid like the first one that is sharded;
- what mixes elements along the axis (a scan, a sort, a reshape across it) is computed on each device from a
  copy of all.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence

from ..device import Device
from ..dtype import DType
from ..gradient import filled, reduce_axes, scatter
from ..ir.device import device_of
from ..ir.index import sint
from ..ir.ops import ELEMENTWISE, MOVEMENT, Ops
from ..ir.uop import UOp, keep_origin
from ..shape import movement
from ..shape.movement import base_and_tracker, expand, pad, permute, reshape, shrink
from ..shape.rules import shape_of
from ..shape.sizes import add, prod, sub
from .collectives import (
    Span,
    combined,
    even_spans,
    fetch,
    in_memory_of_its_own,
    multi,
    on_each,
    spans_of,
    whole_spans,
)
from .graph import Asked, below_movement, toposort_effective
from .held import is_held, is_whole
from .versions import (
    effective,
    empty_buffer,
    in_shape,
    latest,
    new_buffer,
    rebased,
    set_becomes,
)


def is_multi(node: UOp) -> bool:
    return node.op is Ops.MULTI


def in_place(value: UOp) -> bool:
    """Whether all parts of a MULTI are memory that is there, or planned."""
    return all(is_held(below_movement(part)) for part in value.src)


def separated(roots: Sequence[UOp]) -> list[UOp]:
    """Plain graphs that compute the roots: each root that several devices hold becomes a MULTI of its parts.

    roots  no movements; the result has none either
    """
    roots = [effective(root) for root in roots]
    separation = _Separation(toposort_effective(roots))
    found: dict[UOp, None] = {}
    for root in roots:
        value = separation.keep(root)
        for part in value.src if is_multi(value) else (value,):
            base = below_movement(latest(part))
            if not is_held(base) and base.op is not Ops.CONST:
                found[base] = None
    return list(found)


def separate_devices(asked: Asked) -> Asked:
    """Plain graphs for each device where several hold a value together."""
    return Asked.of(separated(asked.roots)) if on_several(asked.order) else asked


def value_of(node: UOp) -> UOp:
    """How a value that several devices hold lies: a MULTI of plain parts."""
    node = latest(node)
    if is_multi(node):
        return node
    separation = _Separation(toposort_effective([node]))
    return separation.of(node)


def laid_like(node: UOp, memory: UOp) -> UOp:
    """A value that several devices hold as one that lies as a MULTI does; itself if it does."""
    value = value_of(node)
    same_axis = value.arg.axis == memory.arg.axis
    if same_axis and (value.arg.axis is None or spans_of(value) == spans_of(memory)):
        return node
    separation = _Separation([])
    return multi(map(_own, separation.parts_like(value, memory)), *memory.arg)


def sharded(node: UOp, axis: int | None, devices: tuple[str, ...]) -> UOp:
    """A value on several devices: even parts along an axis, or a copy on each, in memory of their own."""
    if axis is None:
        return multi([in_memory_of_its_own(node, device) for device in devices], None, devices)
    shape = shape_of(node)
    size = shape[axis]
    if not isinstance(size, int):
        raise NotImplementedError(f"parts along axis {axis}, whose size is symbolic")
    parts = [_cut(node, axis, *span) for span in even_spans(size, len(devices))]
    return multi([in_memory_of_its_own(p, d) for p, d in zip(parts, devices, strict=True)], axis, devices)


def new_memory(value: UOp) -> UOp:
    """Memory to be written, that lies as a value does: a MULTI of new buffers."""
    return _memory_for(value, value.dtype, new_buffer)


def empty_memory(value: UOp, dtype: DType) -> UOp:
    """Memory that reads zeros, and lies as a value does."""
    return _memory_for(value, dtype, empty_buffer)


def _memory_for(value: UOp, dtype: DType, make: Callable[[str, int, DType], UOp]) -> UOp:
    shapes = [shape_of(part) for part in value.src]
    placed = zip(shapes, value.arg.devices, strict=True)
    parts = [in_shape(make(device, _most(shape), dtype), shape) for shape, device in placed]
    return multi(parts, *value.arg)


def _most(shape: Iterable[sint]) -> int:
    size = prod(shape)
    if isinstance(size, UOp):
        raise NotImplementedError("memory on several devices for a symbolic shape")
    return size


def on_several(order: Iterable[UOp]) -> bool:
    """Whether a walk met a value that several devices hold."""
    for node in order:
        op = node.op
        place = node.src[0] if op is Ops.CONST and node.src else node
        if op is Ops.MULTI or (place.op is Ops.DEVICE and type(place.arg) is tuple):
            return True
    return False


class _Separation:
    """What each node of one walk is: a MULTI of plain parts, or a plain node of one device or none."""

    def __init__(self, order: Iterable[UOp]) -> None:
        self.value: dict[UOp, UOp] = {}
        for node in order:
            self.value[node] = made = self._value(node)
            if made is not node and node.op in (Ops.ASSIGN, Ops.COPY, Ops.CONTIGUOUS):
                self.keep(node)  # what is stored is stored once, for everybody

    def keep(self, node: UOp) -> UOp:
        """Record what a node becomes; what is kept in memory has memory of its own."""
        value = self.value[node]
        if value is node:
            return node
        if node.op is Ops.ASSIGN:
            pass  # it is in the memory that it says
        elif is_multi(value):
            value = multi(map(_own, value.src), *value.arg)
        else:
            value = _own(value)
        self.value[node] = value
        for part in value.src if is_multi(value) else (value,):
            keep_origin(below_movement(part), node)
        set_becomes(node, value)
        return value

    def _value(self, node: UOp) -> UOp:
        if node.op is Ops.MULTI:
            parts = [self.of(part) for part in node.src]
            return node if tuple(parts) == node.src else node.replace(src=tuple(parts))
        if node.op in (Ops.CONST, Ops.IOTA) and isinstance(device_of(node), tuple):
            return _made_on_each(node)
        sources = tuple([self.of(source) for source in node.src])
        several = node.op is Ops.COPY and isinstance(node.src[-1].arg, tuple)
        if not several and not any(map(is_multi, sources)):
            # what sources have become, their readers follow: a plain node stays the one that others know
            known = sources == tuple([effective(source) for source in node.src])
            return node if known or is_held(node) else node.replace(src=sources)
        rule = RULES.get(node.op)
        if rule is None:
            raise NotImplementedError(f"{node.op} of a tensor that several devices hold")
        made = rule(self, node, sources)
        if is_multi(made):
            for part in made.src:
                keep_origin(part, node)
        return made

    def of(self, source: UOp) -> UOp:
        """The value of a source of a node in the walk."""
        found = self.value.get(source)
        if found is None:
            source = effective(source)
            found = self.value.get(source, source)
        return found

    # *** how operands are laid

    def parts_like(self, source: UOp, lead: UOp) -> list[UOp]:
        """The parts of a source of some node, laid as those of a MULTI."""
        axis, devices = lead.arg
        value = self.of(source)
        if axis is None:
            return list(on_each(value).src) if is_multi(value) else [value] * len(devices)
        spans = spans_of(lead)
        if is_multi(value) and value.arg.axis is not None:
            if value.arg.axis == axis and spans_of(value) == spans:
                return list(value.src)
            spread = self._spread(source)
            if spread is None:
                whole = whole_spans(value)
                return [
                    fetch(value, (*whole[:axis], span, *whole[axis + 1 :]), device)
                    for span, device in zip(spans, devices, strict=True)
                ]
            value = spread
        copies = value.src if is_multi(value) else [value] * len(devices)
        return [_cut(copy, axis, *span) for copy, span in zip(copies, spans, strict=True)]

    def _spread(self, source: UOp) -> UOp | None:
        """A value that was expanded, on each device: what was expanded is sent, and not what came of it."""
        chain = []
        base = effective(source)
        while base.op in MOVEMENT:
            chain.append(base)
            base = effective(base.src[0])
        expanded = [place for place, move in enumerate(chain) if move.op is Ops.EXPAND]
        if not expanded:
            return None
        lowest = chain[: expanded[-1] + 1]
        below = self.of(lowest[-1].src[0])
        value = on_each(below) if is_multi(below) else below
        return _each(value, functools.partial(_moved, moves=lowest)) if is_multi(value) else None


def _each(value: UOp, function: Callable[[UOp], UOp], axis: int | None = None) -> UOp:
    """A function of each part; `axis` is the one that the results are parts along."""
    return multi([function(part) for part in value.src], axis, value.arg.devices)


def _moved(part: UOp, moves: Sequence[UOp]) -> UOp:
    """Movements of a graph, the last one first, made on another node of the same shape."""
    for move in reversed(moves):
        part = move.replace(src=(part,))
    return part


def _cut(node: UOp, axis: int, begin: int, end: int) -> UOp:
    """The elements [begin, end) of an axis; a repeated one is repeated less often."""
    shape = shape_of(node)
    if (begin, end) == (0, shape[axis]):
        return node
    if node.op is Ops.EXPAND and shape_of(node.src[0])[axis] == 1:
        return expand(node.src[0], (*shape[:axis], end - begin, *shape[axis + 1 :]))
    spans: list[Span] = [(0, size) for size in shape]
    spans[axis] = (begin, end)
    return shrink(node, spans)


def _made_on_each(node: UOp) -> UOp:
    """Numbers that need no memory, on each device."""
    devices = node.src[0].arg
    return multi([node.replace(src=(UOp(Ops.DEVICE, arg=name),)) for name in devices], None, devices)


def _is_own(node: UOp) -> bool:
    """Whether computing a plain node gives it memory that no other value looks at."""
    while node.op in (Ops.RESHAPE, Ops.PERMUTE):
        node = node.src[0]
    return node.op not in MOVEMENT and node.op not in (Ops.CONST, Ops.IOTA) and not is_held(node)


def _own(node: UOp) -> UOp:
    return node if _is_own(node) else UOp(Ops.CONTIGUOUS, node.dtype, (node,))


# *** the rules: (the walk, a node, the values of its sources, of which one is a MULTI) → the node's value

Rule = Callable[[_Separation, UOp, tuple[UOp, ...]], UOp]


def _lead(sources: Iterable[UOp]) -> UOp:
    """The source that the others are laid like: the first that is sharded, else one of which all have all."""
    several = [source for source in sources if is_multi(source)]
    for source in several:
        if source.arg.devices != several[0].arg.devices:
            first, second = (", ".join(found.arg.devices) for found in (several[0], source))
            raise ValueError(
                f"tensors on {first} and on {second} do not meet; shard both over the same devices"
            )
    return next((source for source in several if source.arg.axis is not None), several[0])


def _elementwise(walk: _Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    lead = _lead(sources)
    columns = [walk.parts_like(source, lead) for source in node.src]
    return multi([node.replace(src=row) for row in zip(*columns, strict=True)], *lead.arg)


def _unary(walk: _Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    (value,) = sources
    return _each(value, lambda part: node.replace(src=(part,)), value.arg.axis)


def _detach(walk: _Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    return sources[0]


def _reduce(walk: _Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    (value,) = sources
    op, axes = node.arg
    parts = [reduce_axes(part, op, axes) for part in value.src]
    axis, devices = value.arg
    return combined(parts, op, devices) if axis in axes else multi(parts, axis, devices)


def _along_one_axis(walk: _Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    """SCAN runs along an axis: if it is the sharded one, each device runs along all of it."""
    lead = _lead(sources)
    if lead.arg.axis in node.arg.axes:
        lead = on_each(lead)
    columns = [walk.parts_like(source, lead) for source in node.src]
    return multi([node.replace(src=row) for row in zip(*columns, strict=True)], *lead.arg)


def _sort(walk: _Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    (value,) = sources
    if value.arg.axis == len(shape_of(node)) - 1:
        value = on_each(value)
    return _each(value, lambda part: node.replace(src=(part,)), value.arg.axis)


def _reshape(walk: _Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    """Parts stay parts where the elements before the sharded axis, and those of a part, stay together."""
    (value,) = sources
    axis, new = value.arg.axis, node.arg
    if axis is None:
        return _each(value, lambda part: reshape(part, new))
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
    return _each(on_each(value), lambda part: reshape(part, new))


def _expand(walk: _Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    (value,) = sources
    axis, new = value.arg.axis, node.arg
    if axis is not None and shape_of(value)[axis] != new[axis]:
        value, axis = on_each(value), None

    def expanded(part: UOp) -> UOp:
        shape = new if axis is None else (*new[:axis], shape_of(part)[axis], *new[axis + 1 :])
        return expand(part, shape)

    return _each(value, expanded, axis)


def _permute(walk: _Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    (value,) = sources
    axis = value.arg.axis
    return _each(value, lambda part: permute(part, node.arg), None if axis is None else node.arg.index(axis))


def _flip(walk: _Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    (value,) = sources
    axis, devices = value.arg
    if axis is None or axis not in node.arg:
        return _each(value, lambda part: movement.flip(part, node.arg), axis)
    size = shape_of(value)[axis]
    parts = []
    for (begin, end), device in zip(spans_of(value), devices, strict=True):
        spans = whole_spans(value)
        mirrored = (sub(size, end), sub(size, begin))
        part = fetch(value, (*spans[:axis], mirrored, *spans[axis + 1 :]), device)
        parts.append(movement.flip(part, node.arg))
    return multi(parts, axis, devices)


def _shrink(walk: _Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    (value,) = sources
    axis = value.arg.axis
    if axis is None:
        return _each(value, lambda part: shrink(part, node.arg))
    begin, end = node.arg[axis]
    if (begin, end) == (0, shape_of(value)[axis]):
        return _each(value, lambda part: shrink(part, _with(node.arg, axis, (0, shape_of(part)[axis]))), axis)
    return _spread_anew(value, axis, sub(0, begin), sub(end, begin), shrink, node)


def _pad(walk: _Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    (value,) = sources
    axis = value.arg.axis
    if axis is None or node.arg[axis] == (0, 0):
        return _each(value, lambda part: pad(part, node.arg), axis)
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


def _gather(walk: _Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    """Each device reads from all of the memory at its part of the places."""
    memory, index = sources
    devices = _lead(sources).arg.devices
    copies = on_each(memory).src if is_multi(memory) else [memory] * len(devices)
    places = index.src if is_multi(index) else [index] * len(devices)
    parts = [node.replace(src=pair) for pair in zip(copies, places, strict=True)]
    return multi(parts, index.arg.axis if is_multi(index) else None, devices)


def _scatter(walk: _Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    """Sums are scattered by each device from its part of the values, and combined; all else on each device
    from all values.
    """
    base, index, values = sources
    lead = _lead(sources)
    devices = lead.arg.devices
    within = [source for source in (index, values) if is_multi(source) and source.arg.axis is not None]
    if node.arg is not Ops.ADD or not within:
        whole = [list(on_each(s).src) if is_multi(s) else [s] * len(devices) for s in sources]
        return multi([node.replace(src=row) for row in zip(*whole, strict=True)], None, devices)
    places, amounts = (walk.parts_like(source, within[0]) for source in node.src[1:])
    zeros = filled(shape_of(node), node.dtype, 0)
    parts = [scatter(zeros, place, amount, Ops.ADD) for place, amount in zip(places, amounts, strict=True)]
    total = combined(parts, Ops.ADD, devices)
    begun = on_each(base).src if is_multi(base) else [base] * len(devices)
    return multi([a.alu(Ops.ADD, b) for a, b in zip(begun, total.src, strict=True)], None, devices)


def _copy(walk: _Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    *values, target = sources
    if len(values) > 1:
        return _join(walk, node, values, target)
    (value,) = values
    if isinstance(target.arg, tuple):
        if is_multi(value):
            return multi([_fetched(walk, node, name) for name in target.arg], None, target.arg)
        first = in_memory_of_its_own(value, target.arg[0])
        copies = [first, *(in_memory_of_its_own(first, name) for name in target.arg[1:])]
        return multi(copies, None, target.arg)
    return _fetched(walk, node, target.arg)


def _fetched(walk: _Separation, node: UOp, device: str) -> UOp:
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


def _join(walk: _Separation, node: UOp, values: Sequence[UOp], target: UOp) -> UOp:
    """Several values one after another along their first axis, on the devices that hold them."""
    lead = _lead(values)
    if lead.arg.axis == 0:
        lead = on_each(lead)
    if target.arg != lead.arg.devices:
        raise NotImplementedError(
            f"values of {', '.join(lead.arg.devices)} joined in memory of {target.arg}: gather each first"
        )
    columns = [walk.parts_like(source, lead) for source in node.src[:-1]]
    rows = zip(zip(*columns, strict=True), lead.arg.devices, strict=True)
    parts = [node.replace(src=(*row, UOp(Ops.DEVICE, arg=name))) for row, name in rows]
    return multi(parts, *lead.arg)


def _assign(walk: _Separation, node: UOp, sources: tuple[UOp, ...]) -> UOp:
    """Each device writes its part; a value that lies in another way is laid as the memory is."""
    memory = sources[0]
    if not is_multi(memory) or node.arg is not None:
        raise NotImplementedError("a write to a part of memory that several devices hold")
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

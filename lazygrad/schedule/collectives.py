"""What devices that hold one value together send each other: a part brought to one device, all of it on
each, a sum of what each has.

A value is a MULTI: parts along an axis, or a copy on each device. What comes back are plain nodes; all that
crosses from one device to another is a COPY.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, pairwise

from ..gradient import filled
from ..ir.args import MultiArg
from ..ir.device import device_of
from ..ir.index import sint
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..shape.movement import expand, permute, shrink
from ..shape.rules import shape_of
from .in_memory import is_copied_as_it_is
from .versions import placed

Span = tuple[sint, sint]


def multi(parts: Iterable[UOp], axis: int | None, devices: tuple[str, ...]) -> UOp:
    """The value of which each device has a part along `axis`, or a copy where it is None."""
    found = tuple([placed(part, device) for part, device in zip(parts, devices, strict=True)])
    return UOp(Ops.MULTI, found[0].dtype, found, MultiArg(axis, devices))


def is_multi(node: UOp) -> bool:
    return node.op is Ops.MULTI


def by_rows(node: UOp, columns: Iterable[Sequence[UOp]], axis: int | None, devices: tuple[str, ...]) -> UOp:
    """A node for each device, of that device's part of each source."""
    return multi([node.replace(src=row) for row in zip(*columns, strict=True)], axis, devices)


def each(value: UOp, function: Callable[[UOp], UOp], axis: int | None = None) -> UOp:
    """A function of each part; `axis` is the one that the results are parts along."""
    return multi([function(part) for part in value.src], axis, value.arg.devices)


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


def even_spans(size: int, count: int) -> list[tuple[int, int]]:
    """`size` elements in `count` parts, one after another: the first ones are larger by one at most."""
    ends = [(size * number + count - 1) // count for number in range(count + 1)]
    return list(pairwise(ends))


def spans_of(value: UOp) -> list[tuple[int, int]]:
    """Where along its axis each part of a sharded value begins and ends."""
    axis = value.arg.axis
    sizes = [shape_of(part)[axis] for part in value.src]
    if not all(isinstance(size, int) for size in sizes):
        raise NotImplementedError(f"a tensor that is sharded along axis {axis}, whose size is symbolic")
    ends = list(accumulate(sizes, initial=0))
    return list(pairwise(ends))


def whole_spans(value: UOp) -> tuple[Span, ...]:
    """The spans of a shrink that keeps everything."""
    return tuple((0, size) for size in shape_of(value))


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


def fetch(value: UOp, spans: Sequence[Span], device: str) -> UOp:
    """The part of a sharded or copied value that `shrink` by these spans would give, on one device."""
    axis, devices = value.arg
    if axis is None:
        number = devices.index(device) if device in devices else 0
        return on_device(shrink(value.src[number], spans), device)
    begin, end = spans[axis]
    if not (isinstance(begin, int) and isinstance(end, int)):
        raise NotImplementedError(f"a part with symbolic ends of a tensor that is sharded along axis {axis}")
    pieces = []
    for part, (first, last) in zip(value.src, spans_of(value), strict=True):
        low, high = max(begin, first), min(end, last)
        if low < high:
            inner = (*spans[:axis], (low - first, high - first), *spans[axis + 1 :])
            pieces.append(shrink(part, inner))
    if not pieces:
        return filled(tuple(b - a for a, b in spans), value.dtype, 0)
    return _one_after_another(pieces, axis, device)


def _one_after_another(pieces: Sequence[UOp], axis: int, device: str) -> UOp:
    """Pieces from several devices joined along an axis, in memory of one: each is copied to its place."""
    if len(pieces) == 1:
        return on_device(pieces[0], device)
    rank = len(shape_of(pieces[0]))
    order = (axis, *(i for i in range(rank) if i != axis))
    sources = [_stored(permute(piece, order)) for piece in pieces]
    joined = UOp(Ops.COPY, sources[0].dtype, (*sources, UOp(Ops.DEVICE, arg=device)))
    return permute(joined, tuple(sorted(range(rank), key=order.__getitem__)))


def _stored(node: UOp) -> UOp:
    """What a COPY of several takes without a kernel on the device that it goes to."""
    return node if is_copied_as_it_is(node) else UOp(Ops.CONTIGUOUS, node.dtype, (node,))


def copies(value: UOp, devices: Sequence[str]) -> Sequence[UOp]:
    """All of a value for each device: of one that is plain, the value itself."""
    return on_each(value).src if is_multi(value) else [value] * len(devices)


def on_each(value: UOp) -> UOp:
    """The whole of a value on each of its devices."""
    axis, devices = value.arg
    if axis is None:
        return value
    spans = whole_spans(value)
    return multi([fetch(value, spans, device) for device in devices], None, devices)


def combined(parts: Sequence[UOp], op: Ops, devices: tuple[str, ...]) -> UOp:
    """An all-reduce: values of one shape, one on each device, combined by an op; the result on each.

    They meet on the first device, which combines them in their order, and go out from there: the copies are
    equal to the bit.
    """
    total, *others = parts
    for other in others:
        total = total.alu(op, on_device(other, devices[0]))
    total = UOp(Ops.CONTIGUOUS, total.dtype, (total,))
    return multi([on_device(total, device) for device in devices], None, devices)

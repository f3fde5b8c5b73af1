"""A value that several devices hold, as a MULTI of plain parts: making it, and parts of plain values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ..ir.args import MultiArg
from ..ir.index import sint
from ..ir.mesh import Span, span_at
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..ir.walks import device_of
from ..schedule.graph.requested import is_copied_as_it_is
from ..schedule.graph.versions import multi
from ..shape.movement import expand, pad, permute, shrink
from ..shape.rules import shape_of
from ..shape.sizes import sub, vmax


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


def stored(node: UOp) -> UOp:
    """What a COPY of several takes without a kernel on the device that it goes to."""
    return node if is_copied_as_it_is(node) else UOp(Ops.CONTIGUOUS, node.dtype, (node,))


def one_after_another(pieces: Sequence[UOp], axis: int, device: str) -> UOp:
    """Pieces from several devices joined along an axis, in memory of one: each is copied to its place."""
    shape = shape_of(pieces[0])
    rank = len(shape)
    order = (axis, *(i for i in range(rank) if i != axis))
    sources = [stored(permute(of_greatest_sizes(piece), order)) for piece in pieces]
    joined = UOp(Ops.COPY, sources[0].dtype, (*sources, UOp(Ops.DEVICE, arg=device)))
    joined = permute(joined, tuple(sorted(range(rank), key=order.__getitem__)))
    return of_sizes(joined, (*shape[:axis], shape_of(joined)[axis], *shape[axis + 1 :]))


def of_greatest_sizes(node: UOp) -> UOp:
    """A plain value, padded along symbolic axes to what these can be at most: what is sent has one size."""
    return pad(node, [(0, sub(vmax(size), size)) for size in shape_of(node)])


def of_sizes(node: UOp, shape: Sequence[sint]) -> UOp:
    """The first elements along each axis."""
    return shrink(node, [(0, size) for size in shape])


def combined_on(terms: Sequence[UOp], op: Ops, device: str) -> UOp:
    """Values of one shape from several devices, combined by an op on one, in their order."""
    total, *others = [on_device(term, device) for term in terms]
    for other in others:
        total = total.alu(op, other)
    return total

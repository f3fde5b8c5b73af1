"""Tensors as memory and movements on it: arguments become memory, results stand on new memory."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from ..device import Buffer
from ..engine.realize import allocate_empty
from ..engine.realize import realize as realize_nodes
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..schedule.graph.versions import buffer_of, in_shape, peel, version_on
from ..shape.movement import base_and_tracker
from ..shape.rules import shape_of
from ..shape.sizes import prod, vmax
from ..tensor import Tensor
from ..tensor.computing import pending_nodes
from ..tensor.storage import Storage, base_of, is_in_memory, is_padded
from .layout import Moves, buffers_of, moves_of

#: Up to this many elements a constant argument is filled by the host; a larger one by a kernel.
FILLED_BY_HOST = 4096


def version_in(buffer: Buffer) -> UOp:
    """A new version, in memory that is there."""
    return version_on(UOp(Ops.DEVICE, arg=buffer.device), buffer)


def tensor_on(kind: type[Tensor], storage: Storage, node: UOp) -> Tensor:
    """A tensor that looks at a storage's memory."""
    return tensors_on(storage, ((kind, node),))[0]


def tensors_on(storage: Storage, parts: Sequence[tuple[type[Tensor], UOp]]) -> list[Tensor]:
    """Tensors that look at a storage's memory, each by a node."""
    found = []
    for kind, node in parts:
        made = object.__new__(kind)
        made._setup(node, False, leaf=True)
        made._storage = storage
        storage.add(made)
        found.append(made)
    return found


# *** where a tensor is


def storage_of(tensor: Tensor) -> Storage | None:
    """What joins the tensors that are views of the same memory; None for values not in memory."""
    return tensor._memory() or tensor._claim_memory()  # a value that was read is in memory, too


def storage_in_memory(tensor: Tensor) -> Storage:
    """The storage of a tensor that is in memory."""
    storage = storage_of(tensor)
    if storage is None:
        raise RuntimeError("a tensor that should be in memory is not")
    return storage


def memory_and_moves(tensor: Tensor) -> tuple[tuple[Buffer, ...], Moves] | None:
    """The Buffers that a computed tensor looks at, one on each device, and how; None: it needs no memory."""
    value = peel(tensor._value())
    base = base_of(value)
    if base.op is Ops.MULTI:
        parts = [base_of(part) for part in base.src]
        if any(part.op not in _MEMORY for part in parts):
            return None
        return tuple(map(buffer_of, parts)), moves_of(value)
    if base.op not in _MEMORY:
        return None
    return (buffer_of(base),), moves_of(value)


_MEMORY = (Ops.BUFFER, Ops.BUFFER_VIEW)


def is_in_place(base: UOp) -> bool:
    """Whether a node that is no movement needs no kernel: it is memory, or one number."""
    if base.op is Ops.MULTI:
        return all(is_in_place(base_of(part)) for part in base.src)
    return base.op in _MEMORY or base.op is Ops.CONST


def whole_memory(tensor: Tensor) -> list[Buffer] | None:
    """The Buffers of a tensor that is all of their memory, row by row; None where it is not.

    On several devices it is one for each, of that device's part. Memory is for the greatest size of a shape.
    """
    value = peel(tensor._value())
    found = []
    for part in value.src if value.op is Ops.MULTI else (value,):
        base, shape = base_of(part), shape_of(part)
        if base.op is not Ops.BUFFER or vmax(prod(shape)) > base.arg or in_shape(base, shape) is not part:
            return None
        found.append(buffer_of(base).ensure_allocated())
    return found


def memory_of(tensor: Tensor) -> tuple[UOp, Buffer]:
    """The version and the Buffer of a tensor that is in memory."""
    node = base_of(tensor._value())
    return node, buffer_of(node).ensure_allocated()


def part_in_memory(tensor: Tensor) -> Buffer | None:
    """The memory of a tensor whose elements lie there one after the other, perhaps within other memory."""
    base, tracker = base_and_tracker(peel(tensor._value()))
    if base.op is not Ops.BUFFER or len(tracker.views) != 1:
        return None
    view = tracker.views[0]
    if not isinstance(view.offset, int) or view != type(view).create(view.shape, offset=view.offset):
        return None
    whole = buffer_of(base).ensure_allocated()
    size, dtype = tracker.size, tensor.dtype
    if not isinstance(size, int):
        return None
    offset = view.offset * dtype.itemsize
    return Buffer(whole.device, size, dtype, base=whole, offset=offset).ensure_allocated()


def settled(storage: Storage) -> UOp:
    """The newest version of a storage, after the writes that wait have run."""
    storage.refresh()
    if not is_in_memory(storage.version):
        realize_nodes([storage.version], pending_nodes)
        storage.refresh()
    return storage.version


# *** computing


def put_into_memory(tensor: Tensor) -> None:
    """Compute a tensor; constants are written by the host, so that another number compiles nothing."""
    value = tensor._value()
    node, device = base_of(value), tensor.device
    if is_in_memory(node) and not tensor._has_twice(value):
        for buffer in buffers_of(node):
            if not buffer.is_allocated:
                allocate_empty(buffer)
        tensor._claim_memory()  # a value that was read is no memory to be written yet
        return
    if isinstance(device, tuple):
        tensor.realize()
        return
    count = tensor._static_numel()
    kept_for_gradients = tensor._requires_grad and not tensor._leaf
    if node.op is not Ops.CONST or count > FILLED_BY_HOST or is_padded(value) or kept_for_gradients:
        tensor.realize()
        return
    fmt = node.dtype.fmt
    if fmt is None:
        tensor.realize()
        return
    buffer = Buffer(device, count, node.dtype).allocate_uncleared()
    buffer.copyin(struct.pack(f"{count}{fmt}", *[node.arg] * count))
    tensor._set(in_shape(version_in(buffer), tensor.shape))
    tensor._claim_memory()


def copied_whole(tensor: Tensor) -> Tensor:
    """A tensor's values in memory of their own, row by row; no gradient flows to it."""
    node = UOp(Ops.CONTIGUOUS, tensor.dtype, (peel(tensor._value()),), "clone")
    return type(tensor)._make(node).realize()


def computed(results: Sequence[Tensor]) -> list[Tensor]:
    """The results of a call that is not captured, in memory and without the graphs they came from."""
    if results:
        results[0].realize(*results[1:])
    return [t.detach() if t._requires_grad and not t._leaf else t for t in results]

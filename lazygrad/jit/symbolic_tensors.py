"""Arguments of a jit whose sizes are Variables, and results whose sizes are numbers again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..device import Buffer
from ..dtype import dtypes
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..oracle.differences import differing
from ..schedule.graph.versions import in_shape, peel, version_on
from ..shape import shape_of
from ..shape.sizes import prod
from ..tensor import Tensor
from ..tensor.storage import Storage, base_of
from .layout import moved, moves_of
from .outputs import KNOWN_SIZES, View, numbered
from .tensor_memory import (
    copied_whole,
    memory_of,
    part_in_memory,
    put_into_memory,
    storage_in_memory,
    tensor_on,
    version_in,
)

#: Roundings that two orders of a sum may differ by, and what these are at most of a value.
ROUNDINGS, AT_MOST = 4096, 0.02


def with_variable_size(
    tensor: Tensor, axes: Sequence[int], bind: UOp, most: int, known: dict[Any, View]
) -> Tensor:
    """A copy of a tensor with a bound Variable, of at most `most`, as the size of these axes.

    Its memory is for the greatest size, as that of every symbolic shape.

    known  keeps the movements for the next call
    """
    put_into_memory(tensor)
    source = part_in_memory(tensor) or memory_of(copied_whole(tensor))[1]
    key = (tensor.shape, source.dtype, source.device, *axes)
    view = known.get(key)
    if view is None:
        view = _sized_view(tensor, source, axes, bind, most)
        if len(known) >= KNOWN_SIZES:
            known.clear()
        known[key] = view
    room: Any = view.shape[0]
    memory = Buffer(source.device, room, source.dtype).allocate_uncleared()
    memory.view(source.size, source.dtype, 0).ensure_allocated().copyin(source.as_buffer())
    node = version_in(memory)
    return tensor_on(type(tensor), Storage(node), view.of(node))


def _sized_view(tensor: Tensor, source: Buffer, axes: Sequence[int], bind: UOp, most: int) -> View:
    """How memory for the greatest size is seen in the shape with the Variable."""
    shape = tensor.shape
    room = prod(most if axis in axes else size for axis, size in enumerate(shape))
    assert isinstance(room, int)  # the other sizes are numbers
    version = version_on(UOp(Ops.DEVICE, arg=source.device), Buffer(source.device, room, source.dtype))
    symbolic = tuple(bind if axis in axes else size for axis, size in enumerate(shape))
    return View(version, type(tensor), moves_of(in_shape(version, symbolic)))


def with_number_size(tensor: Tensor, name: str, size: int) -> Tensor:
    """A computed tensor with a number for the Variable of that name."""
    value = peel(tensor._value())
    node, moves = base_of(value), moves_of(value)
    numbers = numbered(moves, shape_of(node), name, size)
    if numbers == moves:
        return tensor
    return tensor_on(type(tensor), storage_in_memory(tensor), moved(node, numbers))


def stand_for(tensor: Tensor, other: Tensor) -> None:
    """From here on, the first tensor is the second once more."""
    tensor._uop, tensor._storage = other._value(), other._memory()
    if tensor._storage is not None:
        tensor._storage.add(tensor)


def agree(got: Tensor, expected: Tensor) -> bool:
    """Whether two tensors are the same, but for the roundings of sums in another order."""
    if got.shape != expected.shape or got.dtype is not expected.dtype or got.device != expected.device:
        return False
    import numpy as np

    with np.errstate(all="ignore"):
        floats = got.dtype.fmt is None  # that numpy has not
        mine, its = [(t.cast(dtypes.float32) if floats else t).numpy() for t in (got, expected)]
        if not dtypes.is_float(got.dtype):
            return bool((mine == its).all())
        mine, its = mine.astype(np.float64), its.astype(np.float64)
    allowed = min(ROUNDINGS, AT_MOST / dtypes.finfo(got.dtype).eps)
    return not differing(mine, its, got.dtype, allowed).any()

"""Arguments of a jit whose sizes are Variables, and results whose sizes are numbers again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...device import Buffer
from ...dtype import dtypes
from ...engine.compare import differing
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...schedule.versions import buffer_of, in_shape, peel, version_on
from ...shape import shape_of
from ...shape.movement import base_and_tracker
from ...shape.sizes import prod
from ..face import Tensor
from ..storage import Storage, base_of
from .results import KNOWN_SIZES, View, moved, moves_of, numbered, tensor_on

#: Roundings that two orders of a sum may differ by, and what these are at most of a value.
ROUNDINGS, AT_MOST = 4096, 0.02


def sized(
    tensor: Tensor, source: Buffer, axes: Sequence[int], bind: UOp, most: int, known: dict[Any, Any]
) -> Tensor:
    """A copy of a tensor, whose elements `source` has, with the Variable as the size of `axes`.

    Its memory is for the greatest size, as that of every symbolic shape. `known` keeps the movements.
    """
    key = (tensor.shape, source.dtype, source.device, *axes)
    view: View | None = known.get(key)
    if view is None:
        view = _sized_view(tensor, source, axes, bind, most)
        if len(known) >= KNOWN_SIZES:
            known.clear()
        known[key] = view
    room: Any = view.shape[0]
    memory = Buffer(source.device, room, source.dtype).allocate_uncleared()
    memory.view(source.size, source.dtype, 0).ensure_allocated().copyin(source.as_buffer())
    node = version_on(UOp(Ops.DEVICE, arg=memory.device), memory)
    made: Tensor = tensor_on(type(tensor), Storage(node), view.of(node))
    return made


def _sized_view(tensor: Tensor, source: Buffer, axes: Sequence[int], bind: UOp, most: int) -> View:
    """How memory for the greatest size is seen in the shape with the Variable."""
    shape = tensor.shape
    room = prod(most if axis in axes else size for axis, size in enumerate(shape))
    assert isinstance(room, int)  # the other sizes are numbers
    version = version_on(UOp(Ops.DEVICE, arg=source.device), Buffer(source.device, room, source.dtype))
    symbolic = tuple(bind if axis in axes else size for axis, size in enumerate(shape))
    return View(version, type(tensor), moves_of(in_shape(version, symbolic)))


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


def unsized(tensor: Tensor, name: str, size: int) -> Tensor:
    """A computed tensor with a number for the Variable of that name."""
    value = peel(tensor._value())
    node, moves = base_of(value), moves_of(value)
    numbers = numbered(moves, shape_of(node), name, size)
    if numbers == moves:
        return tensor
    storage = tensor._memory() or tensor._claim_memory()
    if storage is None:
        raise RuntimeError("a result that is not in memory")
    made: Tensor = tensor_on(type(tensor), storage, moved(node, numbers))
    return made


def agree(got: Tensor, expected: Tensor) -> bool:
    """Whether two tensors are the same, but for the roundings of sums in another order."""
    if got.shape != expected.shape or got.dtype is not expected.dtype or got.device != expected.device:
        return False
    import numpy as np

    with np.errstate(all="ignore"):
        if got.dtype.fmt is None:  # numpy has no such floats
            mine, its = _array(got.cast(dtypes.float32)), _array(expected.cast(dtypes.float32))
        else:
            mine, its = _array(got), _array(expected)
        if not dtypes.is_float(got.dtype):
            return bool((mine == its).all())
        mine, its = mine.astype(np.float64), its.astype(np.float64)
    allowed = min(ROUNDINGS, AT_MOST / dtypes.finfo(got.dtype).eps)
    return not differing(mine, its, got.dtype, allowed).any()


def _array(tensor: Any) -> Any:
    return tensor.numpy()

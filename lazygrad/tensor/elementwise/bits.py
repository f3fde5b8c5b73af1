"""The bits of elements read as elements of another size: four bytes as one float, one float as four bytes."""

from __future__ import annotations

from typing import Any

from ...device import Device
from ...dtype import DType, dtypes
from ...ir.ops import Ops
from ...ir.uop import UOp
from ..face import Tensor
from ..sources import contiguous_offset

_UNSIGNED = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}


def resized(tensor: Any, wanted: DType) -> Tensor:
    """The bits of the last axis as `wanted`, whose elements are larger or smaller (in a file also of the same
    size). The first bytes are the lowest, as on every machine that lazygrad runs on.
    """
    size, other = tensor.dtype.itemsize, wanted.itemsize
    shape = tensor.shape
    if size != other:
        last = shape[-1] if shape else None
        if not isinstance(last, int) or last * size % other:
            raise ValueError(
                f"bitcast from {tensor.dtype} to {wanted}, of {other} bytes, needs a last axis whose bytes "
                f"are a multiple of that, not shape {shape}"
            )
        shape = (*shape[:-1], last * size // other)
    if not Device.runs_kernels(tensor.device):
        return _view_of_file(tensor, wanted, shape)
    bits = tensor.bitcast(_UNSIGNED[size])
    step = min(size, other) * 8
    if other < size:
        pieces = [(bits >> place).cast(_UNSIGNED[other]) for place in range(0, size * 8, step)]
        whole = pieces[0].stack(*pieces[1:], dim=-1)
    else:
        lanes = bits.reshape(*shape, other // size)
        whole = lanes[..., 0].cast(_UNSIGNED[other])
        for place in range(1, other // size):
            whole = whole | (lanes[..., place].cast(_UNSIGNED[other]) << (place * step))
    return whole.bitcast(wanted).reshape(shape)  # type: ignore[no-any-return]


def _view_of_file(tensor: Any, wanted: DType, shape: tuple[int, ...]) -> Tensor:
    """The same bytes of a file, under another dtype; nothing is read."""
    count = 1
    for size in shape:
        count *= size
    place = contiguous_offset(tensor.uop)
    if place is None:
        raise ValueError(
            f"bitcast of a view of {tensor.device} whose elements are not in order; move it with .to()"
        )
    memory, first = place
    node = UOp(Ops.BUFFER_VIEW, wanted, (memory,), (count, first * tensor.dtype.itemsize))
    return tensor._unary(node).reshape(shape)  # type: ignore[no-any-return]

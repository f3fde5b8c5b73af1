"""Sorting: order along an axis, and what follows from it.

Every dtype has unsigned *keys* in the order of its values: NaN is the greatest, -0.0 equals 0.0. A sort
kernel makes their order, equal ones as they come; values are then read in that order, and their gradients go
back where they came from.
"""

from __future__ import annotations

import math
from typing import Any

from ...dtype import default_int, dtypes
from ...gradient import filled, gather
from ...ir.args import SORT
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...shape import broadcast_to, movement, prod, shape_of, shape_text, vmax
from ..creation import index_dtype
from ..face import Tensor
from ..transforms.function import Function
from .addresses import addresses_in, part

#: The unsigned type of each size in bytes.
_UNSIGNED = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}

#: Blocks smaller than this save nothing: finding them costs as much as sorting all of their elements.
FEW = 16


def sort_keys(x: UOp, descending: bool) -> UOp:
    """Unsigned integers in the order of the values, or in the opposite one."""
    dtype, shape = x.dtype, shape_of(x)
    if dtype in (dtypes.fp8e4m3, dtypes.fp8e5m2):
        x = x.cast(dtypes.float16)  # which has all their values
    if dtype is dtypes.bool:
        x = x.cast(dtypes.uint8)
    unsigned = _UNSIGNED[x.dtype.itemsize]
    greatest = filled(shape, unsigned, dtypes.max(unsigned))
    sign = filled(shape, unsigned, 1 << (unsigned.itemsize * 8 - 1))
    keys = x if x.dtype is unsigned else x.bitcast(unsigned)
    if dtypes.is_float(x.dtype):
        keys = x.eq(filled(shape, x.dtype, 0.0)).where(filled(shape, unsigned, 0), keys)
        keys = (keys & sign).ne(filled(shape, unsigned, 0)).where(keys ^ greatest, keys ^ sign)
        keys = x.ne(x).where(greatest, keys)
    elif not dtypes.is_unsigned(x.dtype):
        keys = keys ^ sign
    return keys ^ greatest if descending else keys


class Sorting(Tensor):
    """Methods that order elements along an axis."""

    def _order(self, dim: int, descending: bool) -> tuple[UOp, int]:
        """The places along an axis in the order of the values, that axis last; and which axis it is."""
        keys, axis = self._keys(dim, descending)
        return _order(keys), axis

    def _first(self, dim: int, descending: bool, k: int) -> tuple[UOp, int]:
        """The first k places of `_order`, by sorting few elements where they are few of many.

        The first k are in the k blocks whose least keys come first, since each of these has a key that comes
        before all of any other block.
        """
        keys, axis = self._keys(dim, descending)
        *rows, size = shape_of(keys)
        block = math.isqrt(vmax(size) // max(k, 1))  # as many least keys as elements of k blocks
        if block < FEW or isinstance(self.device, tuple):
            return part(_order(keys), self.ndim - 1, 0, k), axis
        last, count = len(rows), -(-vmax(size) // block)
        missing = tuple((0, count * block - vmax(size) if i == last else 0) for i in range(last + 1))
        greatest = dtypes.max(keys.dtype)
        blocks = self._make(keys)._pad_constant(missing, greatest).reshape((*rows, count, block))
        least = blocks.min(-1).contiguous()
        chosen = self._make(part(_order(least.uop), last, 0, k)).sort(-1)[0]  # equal ones stay in order
        inside = Tensor.arange(block, device=self.device)
        places = (chosen.unsqueeze(-1) * block + inside).flatten(-2).cast(dtypes.int32)
        values, _ = self._in_order(places.minimum(vmax(size) - 1).uop, axis)
        theirs = self._make(values._keys(axis, descending)[0])
        candidates = (places < vmax(size)).where(theirs, greatest).contiguous()
        found = part(_order(candidates.uop), last, 0, k)
        return places.contiguous()._in_order(found, last)[0].uop, axis

    def _keys(self, dim: int, descending: bool) -> tuple[UOp, int]:
        """The keys of the elements, an axis last; and which axis it is."""
        axis = self._axis(dim)
        size = self.shape[axis]
        if not all(isinstance(s, int) for s in self.shape):
            raise NotImplementedError(
                f"sorting of symbolic shape {shape_text(self.shape)} is not implemented yet"
            )
        if vmax(size) > dtypes.max(dtypes.int32):
            raise NotImplementedError(f"sorting of more than 2**31 - 1 elements: {size}")
        rows = movement.permute(self.detach().uop, _last(self.ndim, axis))
        return sort_keys(rows, descending), axis

    def _in_order(self, order: UOp, axis: int) -> tuple[Tensor, Tensor]:
        """The elements at places along an axis (which is last in `order`), and the places."""
        shape = self.shape
        whole = addresses_in(shape, self.device)
        back = tuple(sorted(range(self.ndim), key=_last(self.ndim, axis).__getitem__))
        rows = movement.permute(whole, _last(self.ndim, axis))
        first = part(rows, self.ndim - 1, 0, 1) if shape[axis] != 0 else rows
        begin = broadcast_to(first, shape_of(order))
        along, step = order.cast(whole.dtype), prod(shape[axis + 1 :])
        if isinstance(step, int) and step != 1:
            along = along * filled(shape_of(order), along.dtype, step)
        places = begin + along
        values = movement.permute(gather(movement.reshape(self.uop, (self.numel(),)), places), back)
        found = self._make(movement.permute(order, back)).cast(index_dtype(shape[axis]))
        return self._make(values, self), found

    def sort(self, dim: int = -1, descending: bool = False, *, stable: bool = True) -> tuple[Tensor, Tensor]:
        """The values along an axis in order, and their indices.

        NaN counts as the largest; equal values keep their order, whether `stable` is asked for or not.

        >>> [t.tolist() for t in Tensor([3, 1, 2]).sort()]
        [[1, 2, 3], [1, 2, 0]]
        """
        if self.ndim == 0:
            self._axes(dim)
            return self.cast(self.dtype), self._filled(0, default_int())
        return self._in_order(*self._order(dim, descending))

    def argsort(self, dim: int = -1, descending: bool = False, *, stable: bool = True) -> Tensor:
        """The indices that sort an axis: `sort` without the values.

        >>> Tensor([3, 1, 2]).argsort().tolist()
        [1, 2, 0]
        """
        return self.sort(dim, descending)[1]

    def topk(
        self, k: int, dim: int = -1, largest: bool = True, sorted_: bool = True, *, sorted: bool | None = None
    ) -> tuple[Tensor, Tensor]:
        """The k largest values along an axis (or the smallest ones) in order, and their indices.

        Of equal values, those that come first. `sorted=False` changes nothing.

        >>> [t.tolist() for t in Tensor([3, 1, 2]).topk(2)]
        [[3, 2], [0, 2]]
        """
        size = 1 if self.ndim == 0 else self.shape[self._axis(dim)]
        if not isinstance(k, int) or isinstance(k, bool) or not 0 <= k <= vmax(size):
            raise ValueError(f"topk takes from 0 to {size} values along axis {dim}, not {k}")
        if self.ndim == 0:
            return self.reshape(1).topk(k, 0, largest) if k == 0 else self.sort(0)
        return self._in_order(*self._first(dim, largest, k))

    def kthvalue(self, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
        """The k-th smallest value along an axis, counted from 1, and its index.

        >>> [t.item() for t in Tensor([3, 1, 2]).kthvalue(2)]
        [2, 2]
        """
        size = 1 if self.ndim == 0 else self.shape[self._axis(dim)]
        if not 1 <= k <= vmax(size):
            raise ValueError(f"kthvalue counts from 1 to {size} along axis {dim}, not {k}")
        if self.ndim == 0:
            return self.sort(0)
        order, axis = self._first(dim, False, k)
        found = self._in_order(part(order, self.ndim - 1, k - 1, k), axis)
        return found if keepdim else (found[0].squeeze(axis), found[1].squeeze(axis))

    def median(self, dim: int | None = None, keepdim: bool = False) -> Any:
        """The value in the middle along an axis (the lower one of two), and its index.

        NaN if there is one. Without an axis the middle of all elements, alone; equal elements share its
        gradient, and of no elements it is NaN.

        >>> Tensor([3, 1, 2]).median().item()
        2
        """
        if dim is None:
            values: Tensor = Middle.apply(self, False)
            return values.reshape((1,) * self.ndim) if keepdim else values
        if self.ndim == 0:
            return self.sort(dim)
        axis = self._axis(dim)
        size = vmax(self.shape[axis])
        if size == 0:
            raise ValueError(
                f"median over no elements: axis {axis} of shape {shape_text(self.shape)} has size 0"
            )
        order, _ = self._order(axis, False)
        middle, greatest = (part(order, self.ndim - 1, k, k + 1) for k in ((size - 1) // 2, size - 1))
        values, places = self._in_order(middle, axis)
        if dtypes.is_float(self.dtype):
            last, _ = self._in_order(greatest, axis)
            nan = last.isnan()
            first = self._index_of(Ops.MAX, axis, True)  # which NaN wins, the first
            values, places = nan.where(last, values), nan.where(first, places)
        return (values, places) if keepdim else (values.squeeze(axis), places.squeeze(axis))

    def msort(self) -> Tensor:
        """The values along the first axis in order.

        >>> Tensor([3, 1, 2]).msort().tolist()
        [1, 2, 3]
        """
        return self.sort(0)[0]


def _order(keys: UOp) -> UOp:
    """The places of keys in ascending order, along the last axis."""
    shape = shape_of(keys)
    if shape[-1] in (0, 1) or 0 in shape:
        return filled(shape, dtypes.int32, 0)
    return UOp(Ops.PROGRAM, dtypes.int32, (keys,), SORT)


def _last(rank: int, axis: int) -> tuple[int, ...]:
    """The axes with one of them moved to the end."""
    return (*(i for i in range(rank) if i != axis), axis)


class Middle(Function):
    """The median of all elements (of the numbers among them); those that are equal share its gradient."""

    def forward(self, x: Tensor, numbers: bool = False) -> Tensor:
        flat = x.flatten()
        if flat.shape == (0,) and dtypes.is_float(x.dtype):
            return x.full((), math.nan, dtype=x.dtype, device=x.device)
        result: Tensor = (flat.nanmedian(0) if numbers else flat.median(0))[0]
        self.save_for_backward(x, result)
        return result

    def backward(self, grad: Tensor) -> tuple[Tensor | None, None]:
        if not self.saved_tensors:
            return None, None
        x, result = (t.detach() for t in self.saved_tensors)
        hit = (x == result) | (x.isnan() & result.isnan())
        return hit.where(grad / hit.cast(grad.dtype).sum(), 0.0), None

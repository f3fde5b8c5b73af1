"""Running values: along an axis, each element combined with all before it."""

from __future__ import annotations

import math

from ...dtype import default_int, dtypes, sum_acc_dtype, to_dtype
from ...gradient import scan, scan_winner
from ...ir.ops import Ops
from ...shape import prod, resolve_equal
from ..creation import counting_dtype, index_dtype, iota
from ..face import Tensor
from ..signatures import DTypeLike


class Running(Tensor):
    """Methods that combine each element with all before it."""

    def _running(self, op: Ops, axis: int) -> Tensor:
        """Along an axis, each element combined with all before it: one pass."""
        place = self._axes(axis)
        node = scan(self.uop, op, place[0]) if place else self.uop
        return self._make(node, self, view=False)

    def _accumulated_along(self, op: Ops, axis: int, dtype: DTypeLike) -> Tensor:
        if dtype is not None:
            return self.cast(to_dtype(dtype))._running(op, axis)
        wide = sum_acc_dtype(self.dtype)
        if dtypes.is_bool(self.dtype):
            wide = counting_dtype(prod(self.shape[i] for i in self._axes(axis)))
        result = self.cast(wide)._running(op, axis)
        return result.cast(self.dtype) if dtypes.is_float(self.dtype) else result

    def cumsum(self, axis: int = 0, dtype: DTypeLike = None) -> Tensor:
        """The running sum along an axis.

        >>> Tensor([1, 2, 3]).cumsum().tolist()
        [1, 3, 6]
        """
        return self._accumulated_along(Ops.ADD, axis, dtype)

    def cumprod(self, axis: int = 0, dtype: DTypeLike = None) -> Tensor:
        """The running product along an axis.

        >>> Tensor([1, 2, 3]).cumprod().tolist()
        [1, 2, 6]
        """
        return self._accumulated_along(Ops.MUL, axis, dtype)

    def cummax(self, axis: int = 0) -> Tensor:
        """The running maximum along an axis: NaN wins, the last of equals takes the gradient.

        `cummax_indices` says where each was.

        >>> Tensor([1, 3, 2]).cummax().tolist()
        [1, 3, 3]
        """
        return self._running(Ops.MAX, axis)

    def cummin(self, axis: int = 0) -> Tensor:
        """The running minimum along an axis: NaN wins, the last of equals takes the gradient.

        `cummin_indices` says where each was.

        >>> Tensor([3, 1, 2]).cummin().tolist()
        [3, 1, 1]
        """
        return self._running(Ops.MIN, axis)

    def cummax_indices(self, axis: int = 0) -> Tensor:
        """The index of the running maximum along an axis: the last of equals, the last NaN.

        >>> Tensor([1, 3, 2]).cummax_indices().tolist()
        [0, 1, 1]
        """
        return self._winner(Ops.MAX, axis)

    def cummin_indices(self, axis: int = 0) -> Tensor:
        """The index of the running minimum along an axis: the last of equals, the last NaN.

        >>> Tensor([3, 1, 2]).cummin_indices().tolist()
        [0, 1, 1]
        """
        return self._winner(Ops.MIN, axis)

    def _winner(self, op: Ops, axis: int) -> Tensor:
        place = self._axes(axis)
        if not place or resolve_equal(self.shape[place[0]], 1):
            return self._filled(0, default_int())
        size = self.shape[place[0]]
        counter: Tensor = self._make(iota(size, index_dtype(size), self.device))
        counter = counter.reshape((-1,) + (1,) * (self.ndim - place[0] - 1)).expand(self.shape)
        return self._make(scan_winner(scan(self.detach().uop, op, place[0]), counter.uop))

    def logcumsumexp(self, axis: int = 0) -> Tensor:
        """log of the running sum of e^x along an axis, without overflow.

        What was summed shrinks by e^(old maximum - new maximum) where the running maximum grows.

        >>> Tensor([0.0, -math.inf]).logcumsumexp().tolist()
        [0.0, 0.0]
        """
        axes = self._axes(axis)
        x = self._float()
        if not axes or resolve_equal(self.shape[axes[0]], 0):
            return x
        (place,) = axes
        wide = x.cast(sum_acc_dtype(x.dtype))
        greatest = wide.detach().cummax(place)
        start = tuple((1, 0) if i == place else (0, 0) for i in range(self.ndim))
        before = greatest._window(place, 0, self.shape[place] - 1)._pad_constant(start, -math.inf)
        finite = greatest.isfinite().where(greatest, 0.0)  # -inf - -inf would be NaN
        finite_before = before.isfinite().where(before, 0.0)
        kept = (before == -math.inf).where(0.0, (finite_before - finite).exp())
        total = self._make(scan((wide - finite).exp().uop, Ops.MULACC, place, kept.uop), wide)
        return (total.log() + finite).cast(x.dtype)

"""Copying and casting."""

from __future__ import annotations

import copy
from typing import Any

from ..device import Device
from ..dtype import (
    DTypeSaid,
    dtype_of_bits,
    to_dtype,
)
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..schedule.graph.versions import latest, peel
from ..shape.movement import base_and_tracker
from ..shape.rules import shape_of
from .elementwise.bits import resized
from .face import Tensor
from .storage import is_view


class Copying(Tensor):
    """Copies and casts."""

    def contiguous(self) -> Tensor:
        """The same values in row-major order in memory of their own (the tensor itself if it is already).

        >>> Tensor([[1, 2], [3, 4]]).T.contiguous().tolist()
        [[1, 3], [2, 4]]
        """
        node = self.uop
        if node.op is Ops.CONTIGUOUS:
            return self
        if is_view(node):
            base, tracker = base_and_tracker(peel(latest(node)))
            if tracker.contiguous and tracker.size == shape_of(base)[0]:
                return self
        return self._unary(UOp(Ops.CONTIGUOUS, self.dtype, (node,)))

    def clone(self) -> Tensor:
        """A copy in memory of its own; of a tensor on disk, in that of the default device.

        >>> Tensor([1]).clone().tolist()
        [1]
        """
        if not Device.runs_kernels(self.device):
            return self.to(Device.DEFAULT).clone()
        return self._unary(UOp(Ops.CONTIGUOUS, self.dtype, (self.uop,), "clone"))

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        """A copy in memory of its own, that is trained where this one is."""
        if self._requires_grad and not self._leaf:
            raise RuntimeError("a tensor that was computed with gradients is not copied deeply; detach() it")
        made = self.detach().clone().realize()
        made._requires_grad, made._leaf = self._requires_grad, True
        made.grad = copy.deepcopy(self.grad, memo)
        return made

    def detach(self) -> Tensor:
        """The same value, through which no gradient flows.

        >>> Tensor([1.0], requires_grad=True).detach().requires_grad
        False
        """
        made = self._unary(UOp(Ops.DETACH, self.dtype, (self.uop,)))
        made._requires_grad = False
        return made

    def cast(self, dtype: DTypeSaid) -> Tensor:
        """The values in another dtype: float → int truncates and saturates, NaN → 0; integers wrap.

        >>> Tensor([1.7, -1.7]).cast("int32").tolist()
        [1, -1]
        """
        wanted = to_dtype(dtype)
        if wanted is self.dtype:
            return self
        return self._unary(self.uop.cast(wanted))

    def bitcast(self, dtype: DTypeSaid) -> Tensor:
        """The same bits read as another dtype; where that has another size, the last axis becomes longer or
        shorter.

        >>> Tensor([1.0]).bitcast("int32").tolist()
        [1065353216]
        >>> Tensor([1.0]).bitcast("uint8").tolist()
        [0, 0, 128, 63]
        """
        wanted = dtype_of_bits(dtype)
        if wanted is self.dtype:
            return self
        if wanted.itemsize != self.dtype.itemsize or not Device.runs_kernels(self.device):
            return resized(self, wanted)
        return self._unary(self.uop.bitcast(wanted))

"""Copying: copies, casts, and numbers beside a tensor."""

from __future__ import annotations

import copy
from typing import Any

from ..device import Device
from ..dtype import (
    ConstType,
    DType,
    DTypeSaid,
    default_float,
    default_int,
    dtype_of_bits,
    dtypes,
    least_upper_dtype,
    to_dtype,
)
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..schedule.graph.versions import latest, peel
from ..shape.movement import base_and_tracker
from ..shape.rules import shape_of
from .elementwise.bits import resized
from .face import Tensor
from .sources import constant, plain_number
from .storage import is_view


class Copying(Tensor):
    """Copies, casts, and what stands beside a tensor."""

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

    def _lift(self, other: Any) -> Tensor:
        """`other` as a tensor on this device; a number in the weakest dtype that fits this tensor's."""
        if isinstance(other, Tensor):
            return other
        other = plain_number(other)
        if isinstance(other, (bool, int, float)):
            return type(self)._make(constant(other, self._scalar_dtype(other), self.device))
        if other is None:
            raise TypeError("an operand must be a number, a tensor, an array or a list, not None")
        made: Tensor = type(self)(other, device=self.device)
        return made

    def _scalar_dtype(self, value: ConstType) -> DType:
        """The dtype a bare Python number takes beside this tensor (weak promotion, as in JAX and PyTorch)."""
        mine = self.dtype
        if isinstance(value, bool) or dtypes.is_float(mine):
            return mine if dtypes.is_float(mine) else least_upper_dtype(mine, dtypes.bool)
        if isinstance(value, float):
            return default_float()
        return mine if dtypes.is_int(mine) else default_int()

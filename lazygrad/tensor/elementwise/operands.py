"""What operators on two tensors have in common: operands become tensors, meet in one shape and one dtype.

They broadcast, and their dtypes are promoted (`least_upper_dtype`). A bare number, of Python or numpy, is
weak: it takes the tensor's dtype unless its kind is higher (a float beside an integer tensor gives the
default float). So is an array without axes, which numpy hands over in place of a number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from ...dtype import (
    ConstType,
    DType,
    default_float,
    default_int,
    dtypes,
    least_upper_dtype,
    wide_float,
)
from ...gradient import filled
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...shape import broadcast_shapes, broadcast_to, expanded
from ..face import Tensor
from ..modes import mode
from ..same_device import devices_text, meeting
from ..sources import check_fits, constant, plain_number
from ..transforms.constant import Flat

_CAST_FIRST = ", the dtype of the tensor; cast the tensor first"


class Operands(Tensor):
    """How a tensor meets an operand of any kind."""

    def _operand(self, other: Any) -> Tensor:
        """Any operand as a tensor that this one meets: on its device.

        A number, numpy's too, is a weak constant, a size or Variable a scalar, an array is copied in.
        """
        if isinstance(other, Tensor):
            self._check_device(other)
            return other
        if isinstance(other, (bool, int, float)):
            return self._weak(other)
        if isinstance(other, UOp):
            dtype = self.dtype if not dtypes.is_bool(self.dtype) else default_int()
            return self._make(UOp(Ops.CAST, dtype, (other,)))
        number = plain_number(other)
        return self._weak(number) if isinstance(number, (bool, int, float)) else self._lift(other)

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

    def _weak(self, value: ConstType) -> Tensor:
        """A constant of the dtype that a bare number takes beside this tensor."""
        dtype = self._scalar_dtype(value)
        if isinstance(value, int):
            check_fits(value, dtype, _CAST_FIRST)
        return self._make(UOp.const(dtype, value))

    def _binary(self, op: Ops, other: Any, reverse: bool = False, dtype: DType | None = None) -> Tensor:
        """`op` of this tensor and another operand, broadcast, in their common dtype (or the one given)."""
        if type(other) is float or type(other) is int:  # `_operand`, without a Tensor of the number
            held, a = self._scalar_dtype(other), self.uop
            if type(other) is int:
                check_fits(other, held, _CAST_FIRST)
            b, common = UOp.const(held, other), dtype or least_upper_dtype(a.dtype, held)
            a, b = a.cast(common), expanded(b.cast(common), self.shape)
            return self._make(b.alu(op, a) if reverse else a.alu(op, b), self)
        right = other if isinstance(other, Tensor) else self._operand(other)
        a, b = self.uop, right.uop
        if dtype is not None or a.dtype is not b.dtype:
            common = dtype or least_upper_dtype(a.dtype, b.dtype)
            a, b = a.cast(common), b.cast(common)
        left_shape, right_shape = self.shape, right.shape
        if left_shape != right_shape:
            shape = broadcast_shapes(left_shape, right_shape)
            a, b = broadcast_to(a, shape), broadcast_to(b, shape)
        self._check_device(right)
        return self._make(b.alu(op, a) if reverse else a.alu(op, b), self, right)

    def _check_device(self, right: Tensor) -> None:
        if self._devices_differ(right):
            first, second = devices_text(self.device), devices_text(right.device)
            raise ValueError(
                f"tensors on {first} and {second} cannot be combined; {meeting(self.device, right.device)}"
            )

    def _ordered(self, other: Any, reverse: bool) -> tuple[Tensor, Tensor]:
        """(dividend, divisor) in their common dtype."""
        right = self._operand(other)
        common = least_upper_dtype(self.dtype, right.dtype)
        a, b = self.cast(common), right.cast(common)
        return (b, a) if reverse else (a, b)

    def _float(self) -> Tensor:
        """This tensor in a float dtype: integers and bools become the default float."""
        return self.cast(self.dtype if dtypes.is_float(self.dtype) else default_float())

    def _in_common_float(self, other: Any) -> tuple[Tensor, Tensor]:
        """Both in their common dtype, or the default float where that is none."""
        right = self._operand(other)
        common = least_upper_dtype(self.dtype, right.dtype)
        common = common if dtypes.is_float(common) else default_float()
        return self.cast(common), right.cast(common)

    def _wide(self) -> Tensor:
        """This tensor in a float dtype of 32 bits at least: for formulas of several steps."""
        x = self._float()
        return x.cast(wide_float(x.dtype))

    def _sloped(self, function: Callable[..., Tensor], *more: Any) -> Tensor:
        """A function of one variable whose slope is written down."""
        made = function(self._wide(), *more)
        return made.cast(self._float().dtype)

    def _sloped_pair(self, function: Callable[..., Tensor], other: Any, *more: Any) -> Tensor:
        """A function of two variables whose slopes are written down, met in one float dtype and shape."""
        a, b = self._in_common_float(other)
        shape = broadcast_shapes(a.shape, b.shape)
        made = function(a._wide().expand(shape), b._wide().expand(shape), *more)
        return made.cast(a.dtype)

    def _function(self, op: Ops) -> Tensor:
        """A function of one variable, on floats."""
        x = self._float()
        return x._unary(x.uop.alu(op))

    def _filled(self, value: ConstType, dtype: DType | None = None) -> Tensor:
        """A constant of this tensor's shape."""
        return self._make(filled(self.shape, dtype or self.dtype, value))

    def _overwrite(self, value: Any) -> Self:
        """Assign; what a result was computed from before has a gradient of zeros from now on."""
        if self._requires_grad and not self._leaf and mode.grad:
            value = Flat.apply(self, value.expand(self.shape))
        return self.assign(value)

    def _write_back(self, result: Tensor) -> Self:
        """Assign a result to this tensor; its dtype may not be of a higher kind than the tensor's."""
        mine, theirs = self.dtype, result.dtype
        if theirs is not mine:
            higher = dtypes.is_float(theirs) > dtypes.is_float(mine) or (
                dtypes.is_bool(mine) and not dtypes.is_bool(theirs)
            )
            if higher:
                raise TypeError(
                    f"a result of {theirs} cannot be written into a tensor of {mine}; cast one of them"
                )
        return self._assign(result.cast(mine))

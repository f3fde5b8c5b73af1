"""Choices between elements: where, maximum and minimum, limits, interpolation."""

from __future__ import annotations

from typing import Any, overload

from ...dtype import dtypes, least_upper_dtype
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...shape import broadcast_shapes, broadcast_to
from ..argument_types import is_number
from ..face import Tensor
from ..sources import check_fits, constant, plain_number, real_number


class Choosing(Tensor):
    """Methods that choose between the elements of tensors."""

    @overload
    def where(self, yes: Any, no: Any) -> Tensor: ...

    @overload
    def where(self) -> tuple[Tensor, ...]: ...

    def where(self, yes: Any = None, no: Any = None) -> Any:
        """`yes` where this bool tensor is True, else `no`; broadcast, in the common dtype of the two.

        Without values: the indices of the True elements, a tensor for each axis, as `nonzero(as_tuple=True)`.

        Called on another tensor in PyTorch's order, `x.where(condition, other)`, it is `condition.where(x,
        other)`.

        >>> Tensor([True, False]).where(Tensor([1, 2]), 0).tolist()
        [1, 0]
        """
        if yes is None and no is None:
            return self._bool().nonzero(as_tuple=True)
        if not dtypes.is_bool(self.dtype):
            if isinstance(yes, Tensor) and dtypes.is_bool(yes.dtype):
                return yes.where(self, no)
            return (self != 0).where(yes, no)
        a, b = _weak_pair(self, yes, no)
        common = least_upper_dtype(a.dtype, b.dtype)
        shape = broadcast_shapes(self.shape, a.shape, b.shape)
        self._check_device(a)
        self._check_device(b)
        node = broadcast_to(self.uop, shape).where(
            broadcast_to(a.uop.cast(common), shape), broadcast_to(b.uop.cast(common), shape)
        )
        return self._make(node, self, a, b)

    def masked_fill(self, mask: Tensor, value: Any) -> Tensor:
        """`value` where the mask is True, this tensor elsewhere; the dtype is kept.

        >>> Tensor([1, 2]).masked_fill(Tensor([True, False]), 9).tolist()
        [9, 2]
        """
        if not isinstance(mask, Tensor) or not dtypes.is_bool(mask.dtype):
            raise TypeError(f"masked_fill needs a bool mask, not {getattr(mask, 'dtype', mask)}")
        if not is_number(value):
            raise TypeError(f"masked_fill needs a number or a tensor to fill with, not {value!r}")
        filling = (
            value.cast(self.dtype)
            if isinstance(value, Tensor)
            else self._make(constant(real_number(value), self.dtype, self.device))
        )
        return mask.where(filling, self)

    def maximum(self, other: Any) -> Tensor:
        """The larger of two; NaN if one is; equal elements share the gradient.

        >>> Tensor([1, 5]).maximum(3).tolist()
        [3, 5]
        """
        return self._binary(Ops.MAX, other)

    def minimum(self, other: Any) -> Tensor:
        """The smaller of two; NaN if one is; equal elements share the gradient.

        >>> Tensor([1, 5]).minimum(3).tolist()
        [1, 3]
        """
        return self._binary(Ops.MIN, other)

    def clamp(self, min: Any = None, max: Any = None) -> Tensor:
        """Limited to [min, max]; either of which may be a tensor or missing; NaN if any of them is.

        The gradient of an element at a limit is 0; a limit that is a tensor shares it, as in `maximum`.

        >>> Tensor([-3, 1, 9]).clamp(0, 5).tolist()
        [0, 1, 5]
        """
        if min is None and max is None:
            raise ValueError("clamp needs min or max")
        result = self.cast(self.dtype)
        if isinstance(min, Tensor):
            result = result.maximum(min)
        elif min is not None:
            lowest = result.detach().maximum(min) if _is_signed_zero(result, min) else min
            result = _or_nan(result <= min, min).where(lowest, result)
        if isinstance(max, Tensor):
            result = result.minimum(max)
        elif max is not None:
            highest = result.detach().minimum(max) if _is_signed_zero(result, max) else max
            result = _or_nan(result >= max, max).where(highest, result)
        return result

    def lerp(self, end: Tensor, weight: Any) -> Tensor:
        """self + (end - self) * weight, computed from the nearer end: a weight of 1 gives `end` exactly.

        >>> Tensor([0.0]).lerp(Tensor([4.0]), 0.25).tolist()
        [1.0]
        """
        other: Any = self._operand(end)
        whole = other - self
        if isinstance(weight, (int, float)):
            near = abs(weight) < 0.5
            return self._binary(Ops.ADD, whole * weight) if near else other - whole * (1 - weight)
        part = self._operand(weight)
        return (part.abs() < 0.5).where(self + whole * part, other - whole * (1 - part))


def _is_signed_zero(value: Tensor, limit: Any) -> bool:
    """Whether a value that is equal to the limit may have another sign: a zero of floats keeps its own."""
    return bool(limit == 0) and dtypes.is_float(value.dtype)


def _or_nan(condition: Tensor, limit: Any) -> Tensor:
    """Where a condition holds, and everywhere if a limit is NaN."""
    return condition | True if limit != limit else condition


def _weak_pair(condition: Tensor, yes: Any, no: Any) -> tuple[Tensor, Tensor]:
    """The two values of a choice as tensors: a number is weak beside a tensor, else it has its own dtype."""
    yes, no = plain_number(yes), plain_number(no)
    if isinstance(yes, Tensor):
        return yes, yes._operand(no)
    if isinstance(no, Tensor):
        return no._operand(yes), no
    if isinstance(yes, (bool, int, float)) and isinstance(no, (bool, int, float)):
        dtype = least_upper_dtype(dtypes.from_py(yes), dtypes.from_py(no))
        check_fits(yes, dtype)
        check_fits(no, dtype)
        return condition._make(UOp.const(dtype, yes)), condition._make(UOp.const(dtype, no))
    return condition._operand(yes), condition._operand(no)

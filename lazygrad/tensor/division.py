"""Quotients, true, rounded down and rounded towards zero, and the remainders that belong to them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

from ..dtype import default_float, default_int, dtypes, least_upper_dtype
from ..ir.ops import Ops
from .arithmetic import ArithmeticMixin

if TYPE_CHECKING:
    from .. import Tensor


class DivisionMixin(ArithmeticMixin):
    """Division, as methods and operators."""

    __slots__ = ()

    def div(self, other: Any, reverse: bool = False, *, rounding_mode: str | None = None) -> Tensor:
        """Elementwise quotient in floats.

        `rounding_mode` "floor" or "trunc" rounds it (and keeps integers integers).

        >>> Tensor([7]).div(2, rounding_mode="floor").tolist()
        [3]
        """
        if rounding_mode is None:
            return self._true_division(other, reverse)
        if rounding_mode == "floor":
            return self.floor_divide(other, reverse)
        if rounding_mode == "trunc":
            return self._truncated_division(other, reverse)
        raise ValueError(f"rounding_mode is None, 'floor' or 'trunc', not {rounding_mode!r}")

    def _true_division(self, other: Any, reverse: bool) -> Tensor:
        right = self._operand(other)
        common = least_upper_dtype(self.dtype, right.dtype)
        return self._binary(Ops.FDIV, right, reverse, None if dtypes.is_float(common) else default_float())

    def _truncated_division(self, other: Any, reverse: bool) -> Tensor:
        a, b = self._ordered(other, reverse)
        if dtypes.is_float(a.dtype):
            return (a / b).trunc()
        quotient = a // b
        if dtypes.is_unsigned(quotient.dtype):
            return quotient
        exact = (quotient * b == a) | (b == 0)
        return (exact | (quotient >= 0)).where(quotient, quotient + 1)

    def floor_divide(self, other: Any, reverse: bool = False) -> Tensor:
        """Elementwise quotient rounded down; integers divided by 0 give 0, an infinity by a number NaN.

        >>> Tensor([7, -7]).floor_divide(2).tolist()
        [3, -4]
        """
        a, b = self._ordered(other, reverse)
        if dtypes.is_float(a.dtype):
            quotient = a / b
            # a quotient that is rounded to -0 lies below 0; an infinity has no multiple that is nearest
            below = (quotient == 0) & (a != 0) & ((a < 0) != (b < 0))
            rounded = below.where(-1.0, quotient.floor())
            return ((a.abs() == math.inf) & (b != 0)).where(math.nan, rounded)
        return a._binary(Ops.IDIV, b, dtype=default_int() if dtypes.is_bool(a.dtype) else None)

    def idiv(self, other: Any) -> Tensor:
        """Integer quotient rounded towards zero.

        >>> Tensor([7, -7]).idiv(2).tolist()
        [3, -3]
        """
        return self._truncated_division(other, False)

    def remainder(self, other: Any, reverse: bool = False) -> Tensor:
        """Elementwise remainder with the sign of the divisor; integers by 0 give 0.

        >>> Tensor([-7]).remainder(3).tolist()
        [2]
        """
        a, b = self._ordered(other, reverse)
        if not dtypes.is_float(a.dtype):
            return a._binary(Ops.MOD, b, dtype=default_int() if dtypes.is_bool(a.dtype) else None)
        rest = a._rest(b)
        return (((rest < 0) != (b < 0)) & (rest != 0)).where(rest + b, rest)

    def mod(self, other: Any) -> Tensor:
        """`remainder` by its other name.

        >>> Tensor([-7]).mod(3).tolist()
        [2]
        """
        return self.remainder(other)

    def fmod(self, other: Any) -> Tensor:
        """Elementwise remainder with the sign of the dividend.

        >>> Tensor([7, -7]).fmod(3).tolist()
        [1, -1]
        """
        a, b = self._ordered(other, False)
        return a._rest(b) if dtypes.is_float(a.dtype) else a - a._truncated_division(b, False) * b

    def _rest(self, divisor: Tensor) -> Tensor:
        """What is left of floats when whole multiples of a divisor are taken off, with the sign of self.

        The quotient is rounded: what is left after one step is divided once more, and a last step that went
        one too far is taken back. Exact where products are fused with sums, up to quotients of 2^46 in
        float32; elsewhere as far as the quotient is exact.
        """
        finite = divisor.abs() < math.inf
        b = finite.where(divisor, 1.0)
        size, negative = b.abs(), self < 0
        rest: Tensor = self  # type: ignore[assignment]
        for _ in range(2):
            rest = rest - (rest / b).trunc() * b
        too_far = (rest != 0) & ((rest < 0) != negative)
        rest = too_far.where(negative.where(rest - size, rest + size), rest)
        too_near = rest.abs() >= size
        rest = too_near.where(negative.where(rest + size, rest - size), rest)
        return (finite | (self.abs() == math.inf)).where(rest, self)

    # *** operators

    def __truediv__(self, other: Any) -> Tensor:
        return self._true_division(other, False)

    def __rtruediv__(self, other: Any) -> Tensor:
        return self._true_division(other, True)

    def __floordiv__(self, other: Any) -> Tensor:
        return self.floor_divide(other)

    def __rfloordiv__(self, other: Any) -> Tensor:
        return self.floor_divide(other, reverse=True)

    def __mod__(self, other: Any) -> Tensor:
        return self.remainder(other)

    def __rmod__(self, other: Any) -> Tensor:
        return self.remainder(other, reverse=True)

    def __divmod__(self, other: Any) -> tuple[Tensor, Tensor]:
        return self.floor_divide(other), self.remainder(other)

    def __itruediv__(self, other: Any) -> Self:
        return self._write_back(self / other)

    def __ifloordiv__(self, other: Any) -> Self:
        return self._write_back(self // other)

    def __imod__(self, other: Any) -> Self:
        return self._write_back(self % other)

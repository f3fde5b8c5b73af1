"""Quotients, true, rounded down and rounded towards zero, and the remainders that belong to them."""

from __future__ import annotations

from typing import Any

from ...dtype import default_float, default_int, dtypes, least_upper_dtype
from ...ir.ops import Ops
from ..face import Tensor
from ..formulas import operator
from ..transforms.function import Function


class Division(Tensor):
    """Division, as methods and operators."""

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
        raise ValueError(f"rounding_mode must be None, 'floor' or 'trunc', not {rounding_mode!r}")

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
        """Elementwise quotient rounded down; integers divided by 0 give 0.

        Of floats it is the whole number that belongs to `remainder`, as Python's, rounded to the dtype:
        1.0 // 0.1 is 9, because 0.1 is a little more than a tenth, and an infinity has none (NaN). Its slope
        is 0.

        >>> Tensor([7, -7]).floor_divide(2).tolist()
        [3, -4]
        """
        a, b = self._ordered(other, reverse)
        if dtypes.is_float(a.dtype):
            return a._sloped_pair(_FloorQuotient.apply, b)
        return a._binary(Ops.IDIV, b, dtype=default_int() if dtypes.is_bool(a.dtype) else None)

    def idiv(self, other: Any) -> Tensor:
        """Integer quotient rounded towards zero.

        >>> Tensor([7, -7]).idiv(2).tolist()
        [3, -3]
        """
        return self._truncated_division(other, False)

    def remainder(self, other: Any, reverse: bool = False) -> Tensor:
        """Elementwise remainder with the sign of the divisor; integers by 0 give 0, floats NaN.

        Of floats it is `fmod`, plus the divisor where that has another sign: exact but for this one sum. A
        multiple of the divisor gives a zero with the sign of x (as in PyTorch).

        >>> Tensor([-7]).remainder(3).tolist()
        [2]
        """
        a, b = self._ordered(other, reverse)
        if not dtypes.is_float(a.dtype):
            return a._binary(Ops.MOD, b, dtype=default_int() if dtypes.is_bool(a.dtype) else None)
        rest = a._binary(Ops.FMOD, b)
        return _beyond(rest, b).where(rest + b, rest)

    def fmod(self, other: Any) -> Tensor:
        """Elementwise remainder with the sign of the dividend, also for zeros, as in C.

        Floats by 0 give NaN. Of floats it is exact for all numbers, however large the quotient is. Its slope
        in the divisor is the quotient, rounded towards zero, times -1.

        >>> Tensor([7, -7]).fmod(3).tolist()
        [1, -1]
        """
        a, b = self._ordered(other, False)
        if dtypes.is_float(a.dtype):
            return a._binary(Ops.FMOD, b)
        return a - a._truncated_division(b, False) * b

    # *** operators

    __truediv__ = operator(lambda x, other: x._true_division(other, False))
    __rtruediv__ = operator(lambda x, other: x._true_division(other, True))
    __floordiv__ = operator(lambda x, other: x.floor_divide(other))
    __rfloordiv__ = operator(lambda x, other: x.floor_divide(other, reverse=True))
    __mod__ = operator(lambda x, other: x.remainder(other))
    __rmod__ = operator(lambda x, other: x.remainder(other, reverse=True))

    def __divmod__(self, other: Any) -> tuple[Tensor, Tensor]:
        return self.floor_divide(other), self.remainder(other)

    def __rdivmod__(self, other: Any) -> tuple[Tensor, Tensor]:
        return self.floor_divide(other, reverse=True), self.remainder(other, reverse=True)


def _beyond(rest: Tensor, b: Tensor) -> Tensor:
    """Where a remainder with the sign of the dividend is on the other side of 0 than the divisor."""
    return ((rest < 0) != (b < 0)) & (rest != 0)


class _FloorQuotient(Function):
    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """The nearest whole number to (a - remainder) / b, as Python's, NumPy's and PyTorch's."""
        rest = a._binary(Ops.FMOD, b)
        quotient = (a - rest) / b
        quotient = _beyond(rest, b).where(quotient - 1.0, quotient)
        whole = quotient.floor()
        whole = (quotient - whole > 0.5).where(whole + 1.0, whole)
        ratio = a / b
        return (b == 0).where(ratio, (quotient == 0).where(ratio * 0.0, whole))

    def backward(self, grad: Tensor) -> tuple[Tensor, Tensor]:
        return grad._filled(0.0), grad._filled(0.0)

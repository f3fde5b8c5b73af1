"""Rounding to whole numbers, or to a number of decimals."""

from __future__ import annotations

import math

from ...dtype import dtypes
from ...ir.ops import Ops
from ..face import Tensor


class Rounding(Tensor):
    """Methods that round; integers stay."""

    def trunc(self) -> Tensor:
        """Rounded towards zero; integers are unchanged.

        >>> Tensor([1.8, -1.8]).trunc().tolist()
        [1.0, -1.0]
        """
        return self._unary(self.uop.alu(Ops.TRUNC)) if dtypes.is_float(self.dtype) else self.cast(self.dtype)

    def floor(self) -> Tensor:
        """Rounded down; integers are unchanged.

        >>> Tensor([1.8, -1.2]).floor().tolist()
        [1.0, -2.0]
        """
        whole = self.trunc()
        return (self < whole).where(whole - 1, whole) if dtypes.is_float(self.dtype) else whole

    def ceil(self) -> Tensor:
        """Rounded up; integers are unchanged.

        >>> Tensor([1.2, -1.2]).ceil().tolist()
        [2.0, -1.0]
        """
        whole = self.trunc()
        return (whole < self).where(whole + 1, whole) if dtypes.is_float(self.dtype) else whole

    def round(self, decimals: int = 0) -> Tensor:
        """Rounded to the nearest integer (or number of `decimals`), ties to even; integers are unchanged.

        >>> Tensor([0.5, 1.5, 1.6]).round().tolist()
        [0.0, 2.0, 2.0]
        """
        if not dtypes.is_float(self.dtype):
            return self.cast(self.dtype)
        if decimals:
            scale = 10.0 ** abs(decimals)
            return (self * scale).round() / scale if decimals > 0 else (self / scale).round() * scale
        whole = self.trunc()
        rest = (self - whole).abs()  # exact
        odd = (whole * 0.5).trunc() * 2 != whole
        away = (rest > 0.5) | ((rest == 0.5) & odd)
        return away.where(whole + (self < 0).where(self._filled(-1.0), 1.0), whole)

    def __round__(self, digits: int | None = None) -> Tensor:
        """`round(x)` and `round(x, 2)`: as the method, a tensor."""
        return self.round(digits or 0)

    # `math.floor` and the others are for one number, and give an int, as of numpy's numbers.

    def __floor__(self) -> int:
        return math.floor(self.item())

    def __ceil__(self) -> int:
        return math.ceil(self.item())

    def __trunc__(self) -> int:
        return math.trunc(self.item())

    def frac(self) -> Tensor:
        """The fractional part: x - trunc(x).

        >>> Tensor([1.5, -1.5]).frac().tolist()
        [0.5, -0.5]
        """
        return self - self.trunc()

"""Sums, differences, products and powers, element by element; sizes and signs."""

from __future__ import annotations

from typing import Any

from ...dtype import ConstType, default_int, dtypes
from ...ir.ops import Ops
from ..face import Tensor
from ..formulas import formula, operator
from ..sources import plain_number
from ..transforms.constant import Flat

#: Powers up to this are products; above, POW.
MAX_PRODUCT_POWER = 16


class Arithmetic(Tensor):
    """Arithmetic, as methods and operators."""

    def add(self, other: Any, *, alpha: ConstType = 1) -> Tensor:
        """Elementwise sum `self + alpha * other`; `or` on bools.

        >>> Tensor([1, 2]).add(3).tolist()
        [4, 5]
        """
        return self._binary(Ops.ADD, other if alpha == 1 else self._operand(other) * alpha)

    def sub(self, other: Any, reverse: bool = False, *, alpha: ConstType = 1) -> Tensor:
        """Elementwise difference `self - alpha * other`; TypeError on two bools.

        >>> Tensor([5]).sub(3).tolist()
        [2]
        """
        right = other if alpha == 1 else self._operand(other) * alpha
        if dtypes.is_bool(self.dtype) and dtypes.is_bool(self._operand(right).dtype):
            raise TypeError("bools cannot be subtracted; use ^ or logical_xor")
        return self._binary(Ops.SUB, right, reverse)

    mul = formula(
        "Elementwise product; `and` on bools.", lambda x, other: x._binary(Ops.MUL, other), [1, 2], [3, 6], 3
    )

    def pow(self, exponent: Any, reverse: bool = False) -> Tensor:
        """Elementwise power.

        A small whole Python exponent multiplies exactly, ±0.5 is a (reciprocal) root. An integer tensor to
        a negative Python power raises ValueError; integer tensors to tensors of negative powers give the
        truncated reciprocal.

        >>> Tensor([2, 3]).pow(2).tolist()
        [4, 9]
        """
        exponent = plain_number(exponent)
        if not reverse and isinstance(exponent, (int, float)) and not isinstance(exponent, bool):
            known = self._known_power(exponent)
            if known is not None:
                return known
        if reverse and isinstance(exponent, (int, float)) and exponent == 2 and dtypes.is_float(self.dtype):
            return self._function(Ops.EXP2)
        a, b = self._ordered(exponent, reverse)
        return a._binary(Ops.POW, b, dtype=default_int() if dtypes.is_bool(a.dtype) else None)

    def _known_power(self, exponent: ConstType) -> Tensor | None:
        is_float = dtypes.is_float(self.dtype)
        if isinstance(exponent, float) and not is_float:
            return self._float().pow(exponent)
        if exponent < 0 and not is_float:
            raise ValueError(
                f"an integer tensor to the power {exponent} is not an integer; cast it to a float first"
            )
        if exponent in (0.5, -0.5):
            return self._float().sqrt() if exponent > 0 else self._float().rsqrt()
        if exponent != int(exponent) or abs(exponent) > MAX_PRODUCT_POWER:
            return None
        count = abs(int(exponent))
        base = self.cast(default_int()) if dtypes.is_bool(self.dtype) else self.cast(self.dtype)
        if count == 0:
            one = base._filled(1)  # for every x, NaN included
            return Flat.apply(base, one) if is_float else one
        result: Tensor | None = None
        square: Tensor = base
        while count:
            if count & 1:
                result = square if result is None else result * square
            count >>= 1
            if count:
                square = square * square
        if result is None:
            raise RuntimeError("a positive power has a factor")
        return result.reciprocal() if exponent < 0 else result

    square = formula("x·x.", lambda x: x.pow(2), [3], [9])

    def neg(self) -> Tensor:
        """-x; TypeError on bools.

        >>> Tensor([1, -2]).neg().tolist()
        [-1, 2]
        """
        if dtypes.is_bool(self.dtype):
            raise TypeError("a bool tensor has no negative; use ~ or logical_not")
        return self._unary(self.uop.alu(Ops.NEG))

    def reciprocal(self) -> Tensor:
        """1 / x, in floats.

        >>> Tensor([4.0]).reciprocal().tolist()
        [0.25]
        """
        return self._function(Ops.RECIP)

    def abs(self) -> Tensor:
        """|x|; |-0.0| is 0.0, and the slope at 0 is 0.

        >>> Tensor([-2, 3]).abs().tolist()
        [2, 3]
        """
        if dtypes.is_unsigned(self.dtype) or dtypes.is_bool(self.dtype):
            return self.cast(self.dtype)
        if not dtypes.is_float(self.dtype):
            return (self < 0).where(-self, self)
        return (self < 0).where(-self, (self == 0).where(self._filled(0.0), self))

    def sign(self) -> Tensor:
        """-1, 0 or 1; 0 of NaN, as in PyTorch. The slope is 0 everywhere.

        >>> Tensor([-2.0, 0.0, 5.0]).sign().tolist()
        [-1.0, 0.0, 1.0]
        """
        if dtypes.is_unsigned(self.dtype) or dtypes.is_bool(self.dtype):
            return (self != 0).cast(self.dtype)
        # +0.0 also of -0.0 and of NaN, through which a gradient of 0 flows
        nothing = (self == 0).where(self * self * 0, 0.0) if dtypes.is_float(self.dtype) else self * 0
        return (self < 0).where(self._filled(-1), (self > 0).where(self._filled(1), nothing))

    def _below_zero(self) -> Tensor:
        """Where the sign is minus, that of -0.0 included, but not that of NaN."""
        # 1/(-0.0) is -inf: the one comparison that sees the sign of a zero
        return (self < 0) | ((self == 0) & (self.reciprocal() < 0))

    # *** operators

    __add__ = operator(lambda x, other: x._binary(Ops.ADD, other))
    __radd__ = operator(lambda x, other: x._binary(Ops.ADD, other, reverse=True))
    __sub__ = operator(lambda x, other: x.sub(other))
    __rsub__ = operator(lambda x, other: x.sub(other, reverse=True))
    __mul__ = operator(lambda x, other: x._binary(Ops.MUL, other))
    __rmul__ = operator(lambda x, other: x._binary(Ops.MUL, other, reverse=True))
    __pow__ = operator(lambda x, other: x.pow(other))
    __rpow__ = operator(lambda x, other: x.pow(other, reverse=True))
    __neg__ = operator(lambda x: x.neg())
    __pos__ = operator(lambda x: x.cast(x.dtype))
    __abs__ = operator(lambda x: x.abs())

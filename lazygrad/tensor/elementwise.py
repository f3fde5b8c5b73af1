"""Elementwise arithmetic: operators, comparisons, bits, rounding, choices.

Operands broadcast, and their dtypes are promoted (`least_upper_dtype`); a bare Python number is weak: it
takes the tensor's dtype unless its kind is higher (a float beside an integer tensor gives the default
float).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self, overload

from ..dtype import ConstType, DType, cast_value, default_float, default_int, dtypes, least_upper_dtype
from ..gradient import filled
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..shape import broadcast_shapes, broadcast_to
from .base import TensorBase
from .padding import PaddingMixin

if TYPE_CHECKING:
    from .. import Tensor

#: Powers up to this are products; above, POW.
MAX_PRODUCT_POWER = 16


class CastMixin(PaddingMixin):
    """Casts by the name of the dtype. (A class of its own, because here `int` is a method and no type.)"""

    __slots__ = ()

    def float(self) -> Tensor:
        """Cast to float32.

        >>> Tensor([1]).float().tolist()
        [1.0]
        """
        return self.cast(dtypes.float32)

    def half(self) -> Tensor:
        """Cast to float16.

        >>> Tensor([1]).half().dtype
        dtypes.half
        """
        return self.cast(dtypes.float16)

    def bfloat16(self) -> Tensor:
        """Cast to bfloat16.

        >>> Tensor([1]).bfloat16().dtype
        dtypes.bfloat16
        """
        return self.cast(dtypes.bfloat16)

    def double(self) -> Tensor:
        """Cast to float64.

        >>> Tensor([1]).double().dtype
        dtypes.double
        """
        return self.cast(dtypes.float64)

    def int(self) -> Tensor:
        """Cast to int32.

        >>> Tensor([1.5]).int().tolist()
        [1]
        """
        return self.cast(dtypes.int32)

    def long(self) -> Tensor:
        """Cast to int64.

        >>> Tensor([1]).long().dtype
        dtypes.long
        """
        return self.cast(dtypes.int64)

    def short(self) -> Tensor:
        """Cast to int16.

        >>> Tensor([1]).short().dtype
        dtypes.short
        """
        return self.cast(dtypes.int16)

    def bool(self) -> Tensor:
        """Whether elements are other than 0.

        >>> Tensor([0, 2]).bool().tolist()
        [False, True]
        """
        return self.cast(dtypes.bool)

    def type(self, dtype: DType | str) -> Tensor:
        """Cast to a dtype.

        >>> Tensor([1]).type("float32").tolist()
        [1.0]
        """
        return self.cast(dtype)


class ElementwiseMixin(CastMixin):
    """Methods that compute each element from the elements at the same place."""

    __slots__ = ()

    # *** operands

    def _operand(self, other: Any) -> Tensor:
        """Any operand as a tensor.

        A number is a weak constant, a size or Variable a scalar, an array is copied in.
        """
        if isinstance(other, TensorBase):
            return other  # type: ignore[return-value]
        if isinstance(other, (bool, int, float)):
            return self._weak(other)
        if isinstance(other, UOp):
            dtype = self.dtype if not dtypes.is_bool(self.dtype) else default_int()
            return self._make(UOp(Ops.CAST, dtype, (other,)))
        return self._lift(other)

    def _weak(self, value: ConstType) -> Tensor:
        """A constant of the dtype that a bare number takes beside this tensor."""
        dtype = self._scalar_dtype(value)
        if isinstance(value, int) and dtypes.is_int(dtype) and cast_value(value, dtype) != value:
            raise OverflowError(
                f"{value} does not fit into {dtype}, the dtype of the tensor; cast the tensor first"
            )
        return self._make(UOp.const(dtype, value))

    def _binary(self, op: Ops, other: Any, reverse: bool = False, dtype: DType | None = None) -> Tensor:
        """`op` of this tensor and another operand, broadcast, in their common dtype (or the one given)."""
        right = other if isinstance(other, TensorBase) else self._operand(other)
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

    def _check_device(self, right: TensorBase) -> None:
        if self.device != right.device and self._device_known() and right._device_known():
            raise ValueError(f"tensors on {self.device} and {right.device} do not meet; move one with .to()")

    def _ordered(self, other: Any, reverse: bool) -> tuple[Tensor, Tensor]:
        """(dividend, divisor) in their common dtype."""
        right = self._operand(other)
        common = least_upper_dtype(self.dtype, right.dtype)
        a, b = self.cast(common), right.cast(common)
        return (b, a) if reverse else (a, b)

    def _float(self) -> Tensor:
        """This tensor in a float dtype: integers and bools become the default float."""
        return self.cast(self.dtype if dtypes.is_float(self.dtype) else default_float())

    def _function(self, op: Ops) -> Tensor:
        """A function of one variable, on floats."""
        x = self._float()
        return x._unary(x.uop.alu(op))

    def _filled(self, value: ConstType, dtype: DType | None = None) -> Tensor:
        """A constant of this tensor's shape."""
        return self._make(filled(self.shape, dtype or self.dtype, value))

    # *** arithmetic

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
            raise TypeError("bools are not subtracted; use ^ or logical_xor")
        return self._binary(Ops.SUB, right, reverse)

    def mul(self, other: Any) -> Tensor:
        """Elementwise product; `and` on bools.

        >>> Tensor([1, 2]).mul(3).tolist()
        [3, 6]
        """
        return self._binary(Ops.MUL, other)

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

    def pow(self, exponent: Any, reverse: bool = False) -> Tensor:
        """Elementwise power.

        A small whole Python exponent multiplies exactly, ±0.5 is a (reciprocal) root. An integer tensor to
        a negative Python power raises ValueError; integer tensors to tensors of negative powers give the
        truncated reciprocal.

        >>> Tensor([2, 3]).pow(2).tolist()
        [4, 9]
        """
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
                f"an integer tensor to the power {exponent} is no integer; cast it to a float first"
            )
        if exponent in (0.5, -0.5):
            return self._float().sqrt() if exponent > 0 else self._float().rsqrt()
        if exponent != int(exponent) or abs(exponent) > MAX_PRODUCT_POWER:
            return None
        count = abs(int(exponent))
        base = self.cast(default_int()) if dtypes.is_bool(self.dtype) else self.cast(self.dtype)
        if count == 0:
            return base._filled(1)  # for every x, NaN included
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

    def square(self) -> Tensor:
        """x·x.

        >>> Tensor([3]).square().tolist()
        [9]
        """
        return self * self

    def neg(self) -> Tensor:
        """-x; TypeError on bools.

        >>> Tensor([1, -2]).neg().tolist()
        [-1, 2]
        """
        if dtypes.is_bool(self.dtype):
            raise TypeError("a bool tensor has no negative; use ~ or logical_not")
        return self._unary(self.uop.alu(Ops.NEG))

    def negative(self) -> Tensor:
        """-x.

        >>> Tensor([1, -2]).negative().tolist()
        [-1, 2]
        """
        return self.neg()

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

    # *** rounding

    def trunc(self) -> Tensor:
        """Rounded towards zero; integers stay.

        >>> Tensor([1.8, -1.8]).trunc().tolist()
        [1.0, -1.0]
        """
        return self._unary(self.uop.alu(Ops.TRUNC)) if dtypes.is_float(self.dtype) else self.cast(self.dtype)

    def floor(self) -> Tensor:
        """Rounded down; integers stay.

        >>> Tensor([1.8, -1.2]).floor().tolist()
        [1.0, -2.0]
        """
        whole = self.trunc()
        return (self < whole).where(whole - 1, whole) if dtypes.is_float(self.dtype) else whole

    def ceil(self) -> Tensor:
        """Rounded up; integers stay.

        >>> Tensor([1.2, -1.2]).ceil().tolist()
        [2.0, -1.0]
        """
        whole = self.trunc()
        return (whole < self).where(whole + 1, whole) if dtypes.is_float(self.dtype) else whole

    def round(self, decimals: int = 0) -> Tensor:
        """Rounded to the nearest whole number (or number of `decimals`), ties to even; integers stay.

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
        return away.where(whole + (self < 0).where(-1.0, 1.0), whole)

    def frac(self) -> Tensor:
        """What truncation drops.

        >>> Tensor([1.5, -1.5]).frac().tolist()
        [0.5, -0.5]
        """
        return self - self.trunc()

    # *** comparisons: bool results

    def _compare(self, op: Ops, other: Any, reverse: bool = False) -> Tensor:
        if isinstance(other, int) and not isinstance(other, bool) and dtypes.is_int(self.dtype):
            if cast_value(other, self.dtype) != other:  # beyond the dtype's range: compare in a wider one
                wide = dtypes.int64 if cast_value(other, dtypes.int64) == other else dtypes.float64
                return self.cast(wide)._binary(op, other, reverse)
        return self._binary(op, other, reverse)

    def eq(self, other: Any) -> Tensor:
        """self == other.

        >>> Tensor([1, 2]).eq(2).tolist()
        [False, True]
        """
        return self._compare(Ops.CMPEQ, other)

    def ne(self, other: Any) -> Tensor:
        """self != other.

        >>> Tensor([1, 2]).ne(2).tolist()
        [True, False]
        """
        return self._compare(Ops.CMPNE, other)

    def lt(self, other: Any) -> Tensor:
        """self < other.

        >>> Tensor([1, 2]).lt(2).tolist()
        [True, False]
        """
        return self._compare(Ops.CMPLT, other)

    def le(self, other: Any) -> Tensor:
        """self <= other.

        >>> Tensor([1, 2]).le(1).tolist()
        [True, False]
        """
        return self._compare(Ops.CMPLE, other)

    def gt(self, other: Any) -> Tensor:
        """self > other.

        >>> Tensor([1, 2]).gt(1).tolist()
        [False, True]
        """
        return self._compare(Ops.CMPLT, other, reverse=True)

    def ge(self, other: Any) -> Tensor:
        """self >= other.

        >>> Tensor([1, 2]).ge(2).tolist()
        [False, True]
        """
        return self._compare(Ops.CMPLE, other, reverse=True)

    def isnan(self) -> Tensor:
        """Whether an element is NaN.

        >>> Tensor([1.0, math.nan]).isnan().tolist()
        [False, True]
        """
        return self != self

    def isinf(self, detect_positive: bool = True, detect_negative: bool = True) -> Tensor:
        """Whether an element is infinite.

        >>> Tensor([1.0, math.inf]).isinf().tolist()
        [False, True]
        """
        if not dtypes.is_float(self.dtype):
            return self._filled(False, dtypes.bool)
        positive, negative = self == math.inf, self == -math.inf
        if detect_positive and detect_negative:
            return positive | negative
        return (
            positive if detect_positive else negative if detect_negative else self._filled(False, dtypes.bool)
        )

    def isfinite(self) -> Tensor:
        """Whether an element is neither infinite nor NaN.

        >>> Tensor([1.0, math.inf]).isfinite().tolist()
        [True, False]
        """
        if not dtypes.is_float(self.dtype):
            return self._filled(True, dtypes.bool)
        return (self > -math.inf) & (self < math.inf)

    def isclose(self, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
        """|self - other| <= atol + rtol·|other|, elementwise.

        >>> Tensor([1.0, 2.0]).isclose(Tensor([1.0, 2.1])).tolist()
        [True, False]
        """
        right = self._operand(other)
        near = (self - right).abs() <= right.abs() * rtol + atol
        close = (self == right) | (near & self.isfinite() & right.isfinite())
        return close | (self.isnan() & right.isnan()) if equal_nan else close

    # *** logic and bits

    def _bool(self) -> Tensor:
        return self.cast(dtypes.bool) if dtypes.is_bool(self.dtype) else self != 0

    def logical_not(self) -> Tensor:
        """Whether an element is 0.

        >>> Tensor([0, 2]).logical_not().tolist()
        [True, False]
        """
        return self == 0 if not dtypes.is_bool(self.dtype) else self != True  # noqa: E712

    def logical_and(self, other: Any) -> Tensor:
        """Whether both are other than 0.

        >>> Tensor([0, 2]).logical_and(True).tolist()
        [False, True]
        """
        return self._bool() & _as_bool(self, other)

    def logical_or(self, other: Any) -> Tensor:
        """Whether one is other than 0.

        >>> Tensor([0, 2]).logical_or(False).tolist()
        [False, True]
        """
        return self._bool() | _as_bool(self, other)

    def logical_xor(self, other: Any) -> Tensor:
        """Whether exactly one is other than 0.

        >>> Tensor([0, 2]).logical_xor(True).tolist()
        [True, False]
        """
        return self._bool() ^ _as_bool(self, other)

    def _bits(self, op: Ops, other: Any, reverse: bool = False) -> Tensor:
        right = self._operand(other)
        if dtypes.is_float(self.dtype) or dtypes.is_float(right.dtype):
            raise TypeError(f"bits of {self.dtype} and {right.dtype} are not combined; cast to integers")
        return self._binary(op, right, reverse)

    def bitwise_and(self, other: Any) -> Tensor:
        """Bits that both have; logic on bools.

        >>> Tensor([6]).bitwise_and(3).tolist()
        [2]
        """
        return self._bits(Ops.AND, other)

    def bitwise_or(self, other: Any) -> Tensor:
        """Bits that one has; logic on bools.

        >>> Tensor([6]).bitwise_or(3).tolist()
        [7]
        """
        return self._bits(Ops.OR, other)

    def bitwise_xor(self, other: Any) -> Tensor:
        """Bits that exactly one has; logic on bools.

        >>> Tensor([6]).bitwise_xor(3).tolist()
        [5]
        """
        return self._bits(Ops.XOR, other)

    def xor(self, other: Any) -> Tensor:
        """`bitwise_xor` by its other name.

        >>> Tensor([6]).xor(3).tolist()
        [5]
        """
        return self.bitwise_xor(other)

    def bitwise_not(self) -> Tensor:
        """All bits inverted; `not` on bools.

        >>> Tensor([0]).bitwise_not().tolist()
        [-1]
        """
        if dtypes.is_bool(self.dtype):
            return self.logical_not()
        if dtypes.is_float(self.dtype):
            raise TypeError(f"bits of {self.dtype} are not inverted; cast to integers")
        return self._unary(self.uop.alu(Ops.XOR, filled(self.shape, self.dtype, -1)))

    def lshift(self, other: Any, reverse: bool = False) -> Tensor:
        """Bits moved up; by the width or more gives 0.

        >>> Tensor([1]).lshift(3).tolist()
        [8]
        """
        return self._bits(Ops.SHL, other, reverse)

    def rshift(self, other: Any, reverse: bool = False) -> Tensor:
        """Bits moved down, the sign kept; by the width or more gives 0, or -1 for negative numbers.

        >>> Tensor([9]).rshift(1).tolist()
        [4]
        """
        return self._bits(Ops.SHR, other, reverse)

    # *** choices

    @overload
    def where(self, yes: Any, no: Any) -> Tensor: ...

    @overload
    def where(self) -> tuple[Tensor, ...]: ...

    def where(self, yes: Any = None, no: Any = None) -> Any:
        """`yes` where this bool tensor holds, else `no`; broadcast, in the common dtype of the two.

        Without values: the indices of what holds, a tensor for each axis, as `nonzero(as_tuple=True)`.

        Called on another tensor in PyTorch's order, `x.where(condition, other)`, it is `condition.where(x,
        other)`.

        >>> Tensor([True, False]).where(Tensor([1, 2]), 0).tolist()
        [1, 0]
        """
        if yes is None and no is None:
            return self._bool().nonzero(as_tuple=True)
        if not dtypes.is_bool(self.dtype):
            if isinstance(yes, ElementwiseMixin) and dtypes.is_bool(yes.dtype):
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

    def masked_fill(self, mask: TensorBase, value: Any) -> Tensor:
        """`value` where the mask holds, this tensor elsewhere; the tensor's dtype stays.

        >>> Tensor([1, 2]).masked_fill(Tensor([True, False]), 9).tolist()
        [9, 2]
        """
        if not isinstance(mask, ElementwiseMixin) or not dtypes.is_bool(mask.dtype):
            raise TypeError(f"masked_fill needs a bool mask, not {getattr(mask, 'dtype', mask)}")
        filling = (
            value.cast(self.dtype)
            if isinstance(value, TensorBase)
            else self._make(UOp.const(self.dtype, value))
        )
        return mask.where(filling, self)

    def maximum(self, other: Any) -> Tensor:
        """The greater of two; NaN wins; equals share the gradient.

        >>> Tensor([1, 5]).maximum(3).tolist()
        [3, 5]
        """
        return self._binary(Ops.MAX, other)

    def minimum(self, other: Any) -> Tensor:
        """The smaller of two; NaN wins; equals share the gradient.

        >>> Tensor([1, 5]).minimum(3).tolist()
        [1, 3]
        """
        return self._binary(Ops.MIN, other)

    def clamp(self, min: Any = None, max: Any = None) -> Tensor:
        """Limited to [min, max], either of which may be a tensor or missing; NaN stays.

        >>> Tensor([-3, 1, 9]).clamp(0, 5).tolist()
        [0, 1, 5]
        """
        if min is None and max is None:
            raise ValueError("clamp needs min or max")
        result = self.cast(self.dtype)
        if min is not None:
            result = (result < min).where(min, result)
        if max is not None:
            result = (result > max).where(max, result)
        return result

    def clip(self, min: Any = None, max: Any = None) -> Tensor:
        """`clamp` by numpy's name.

        >>> Tensor([-3, 1, 9]).clip(0, 5).tolist()
        [0, 1, 5]
        """
        return self.clamp(min, max)

    def lerp(self, end: TensorBase, weight: Any) -> Tensor:
        """self + (end - self) * weight.

        >>> Tensor([0.0]).lerp(Tensor([4.0]), 0.25).tolist()
        [1.0]
        """
        step = (self._operand(end) - self) * weight
        return self._binary(Ops.ADD, step)

    # *** operators

    __hash__ = TensorBase.__hash__

    def __add__(self, other: Any) -> Tensor:
        return self._binary(Ops.ADD, other)

    def __radd__(self, other: Any) -> Tensor:
        return self._binary(Ops.ADD, other, reverse=True)

    def __sub__(self, other: Any) -> Tensor:
        return self.sub(other)

    def __rsub__(self, other: Any) -> Tensor:
        return self.sub(other, reverse=True)

    def __mul__(self, other: Any) -> Tensor:
        return self._binary(Ops.MUL, other)

    def __rmul__(self, other: Any) -> Tensor:
        return self._binary(Ops.MUL, other, reverse=True)

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

    def __pow__(self, other: Any) -> Tensor:
        return self.pow(other)

    def __rpow__(self, other: Any) -> Tensor:
        return self.pow(other, reverse=True)

    def __and__(self, other: Any) -> Tensor:
        return self.bitwise_and(other)

    def __rand__(self, other: Any) -> Tensor:
        return self._bits(Ops.AND, other, reverse=True)

    def __or__(self, other: Any) -> Tensor:
        return self.bitwise_or(other)

    def __ror__(self, other: Any) -> Tensor:
        return self._bits(Ops.OR, other, reverse=True)

    def __xor__(self, other: Any) -> Tensor:
        return self.bitwise_xor(other)

    def __rxor__(self, other: Any) -> Tensor:
        return self._bits(Ops.XOR, other, reverse=True)

    def __lshift__(self, other: Any) -> Tensor:
        return self.lshift(other)

    def __rlshift__(self, other: Any) -> Tensor:
        return self.lshift(other, reverse=True)

    def __rshift__(self, other: Any) -> Tensor:
        return self.rshift(other)

    def __rrshift__(self, other: Any) -> Tensor:
        return self.rshift(other, reverse=True)

    def __neg__(self) -> Tensor:
        return self.neg()

    def __pos__(self) -> Tensor:
        return self.cast(self.dtype)

    def __abs__(self) -> Tensor:
        return self.abs()

    def __invert__(self) -> Tensor:
        return self.bitwise_not()

    def __eq__(self, other: Any) -> Tensor:  # type: ignore[override]
        return NotImplemented if _is_no_operand(other) else self.eq(other)

    def __ne__(self, other: Any) -> Tensor:  # type: ignore[override]
        return NotImplemented if _is_no_operand(other) else self.ne(other)

    def __lt__(self, other: Any) -> Tensor:
        return self.lt(other)

    def __le__(self, other: Any) -> Tensor:
        return self.le(other)

    def __gt__(self, other: Any) -> Tensor:
        return self.gt(other)

    def __ge__(self, other: Any) -> Tensor:
        return self.ge(other)

    # *** operators that write in place

    def _write_back(self, result: TensorBase) -> Self:
        """Assign a result to this tensor; its dtype may not be of a higher kind than the tensor's."""
        mine, theirs = self.dtype, result.dtype
        if theirs is not mine:
            higher = dtypes.is_float(theirs) > dtypes.is_float(mine) or (
                dtypes.is_bool(mine) and not dtypes.is_bool(theirs)
            )
            if higher:
                raise TypeError(
                    f"a result of {theirs} is not written into a tensor of {mine}; cast one of them"
                )
        return self.assign(result.cast(mine))

    def __iadd__(self, other: Any) -> Self:
        return self._write_back(self + other)

    def __isub__(self, other: Any) -> Self:
        return self._write_back(self - other)

    def __imul__(self, other: Any) -> Self:
        return self._write_back(self * other)

    def __itruediv__(self, other: Any) -> Self:
        return self._write_back(self / other)

    def __ifloordiv__(self, other: Any) -> Self:
        return self._write_back(self // other)

    def __imod__(self, other: Any) -> Self:
        return self._write_back(self % other)

    def __ipow__(self, other: Any) -> Self:
        return self._write_back(self**other)

    def __iand__(self, other: Any) -> Self:
        return self._write_back(self & other)

    def __ior__(self, other: Any) -> Self:
        return self._write_back(self | other)

    def __ixor__(self, other: Any) -> Self:
        return self._write_back(self ^ other)

    def __ilshift__(self, other: Any) -> Self:
        return self._write_back(self << other)

    def __irshift__(self, other: Any) -> Self:
        return self._write_back(self >> other)


def _as_bool(near: ElementwiseMixin, value: Any) -> Tensor:
    return near._operand(value)._bool()


def _weak_pair(condition: ElementwiseMixin, yes: Any, no: Any) -> tuple[TensorBase, TensorBase]:
    """The two values of a choice as tensors: a number is weak beside a tensor, else it has its own dtype."""
    if isinstance(yes, ElementwiseMixin):
        return yes, yes._operand(no)
    if isinstance(no, ElementwiseMixin):
        return no._operand(yes), no
    if isinstance(yes, (bool, int, float)) and isinstance(no, (bool, int, float)):
        dtype = least_upper_dtype(dtypes.from_py(yes), dtypes.from_py(no))
        return condition._make(UOp.const(dtype, yes)), condition._make(UOp.const(dtype, no))
    return condition._operand(yes), condition._operand(no)


def _is_no_operand(value: Any) -> bool:
    """No tensor equals None or a string: Python then answers False, as it does for numbers."""
    return value is None or isinstance(value, str)

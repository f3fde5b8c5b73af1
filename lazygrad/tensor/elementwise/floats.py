"""What depends on how floats are made: signs, neighbours, exponents, NaN and infinities; whole divisors."""

from __future__ import annotations

import math
from typing import Any

from ...dtype import DType, dtypes, least_upper_dtype
from ..argument_types import is_number
from ..face import Tensor
from ..transforms.function import Function

#: The signed integer of each size in bytes.
_SIGNED = {1: dtypes.int8, 2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}
#: The steps that Euclid's algorithm takes at most, by the bits of the numbers: Lamé's bound.
_EUCLID_STEPS = {8: 12, 16: 24, 32: 47, 64: 93}


class Floats(Tensor):
    """Signs, neighbours and exponents of floats, element by element."""

    def signbit(self) -> Tensor:
        """Whether the sign bit is set, also for -0.0 and NaN.

        >>> Tensor([-1.0, -0.0, 0.0]).signbit().tolist()
        [True, True, False]
        """
        if not dtypes.is_float(self.dtype):
            return self < 0
        return self.bitcast(_SIGNED[self.dtype.itemsize]) < 0

    def copysign(self, other: Any) -> Tensor:
        """|self| with the sign of `other`, also of zeros; the gradient of `other` is 0.

        >>> Tensor([1.0, 2.0]).copysign(Tensor([-0.0, 1.0])).tolist()
        [-1.0, 2.0]
        """
        return self._sloped_pair(_Copysign.apply, other)

    def isposinf(self) -> Tensor:
        """Whether an element is +inf.

        >>> Tensor([math.inf, -math.inf, 1.0]).isposinf().tolist()
        [True, False, False]
        """
        return self.isinf(True, False)

    def isneginf(self) -> Tensor:
        """Whether an element is -inf.

        >>> Tensor([math.inf, -math.inf, 1.0]).isneginf().tolist()
        [False, True, False]
        """
        return self.isinf(False, True)

    def is_floating_point(self) -> bool:
        """Whether the dtype is a float.

        >>> Tensor([1]).is_floating_point()
        False
        """
        return dtypes.is_float(self.dtype)

    def is_signed(self) -> bool:
        """Whether the dtype has negative numbers.

        >>> Tensor([1], dtype="uint8").is_signed()
        False
        """
        return not dtypes.is_unsigned(self.dtype) and not dtypes.is_bool(self.dtype)

    def isreal(self) -> Tensor:
        """True everywhere: there are no complex dtypes.

        >>> Tensor([1.0]).isreal().tolist()
        [True]
        """
        return self._filled(True, dtypes.bool)

    def nan_to_num(
        self, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
    ) -> Tensor:
        """NaN and infinities replaced; infinities by the largest and smallest finite number if not given.

        >>> Tensor([math.nan, 1.0, math.inf]).nan_to_num(posinf=9.0).tolist()
        [0.0, 1.0, 9.0]
        """
        if not dtypes.is_float(self.dtype):
            return self.cast(self.dtype)
        limits = dtypes.finfo(self.dtype)
        above = limits.max if posinf is None else posinf
        below = limits.min if neginf is None else neginf
        finite = (self == math.inf).where(above, (self == -math.inf).where(below, self))
        return self.isnan().where(nan, finite)

    def nextafter(self, other: Any) -> Tensor:
        """The next float from here towards `other`; the slope is 1, in `other` 0.

        >>> Tensor([1.0, 0.0], dtype="float64").nextafter(2.0).tolist()
        [1.0000000000000002, 5e-324]
        """
        a, b = self._in_common_float(other)
        x, y = a.detach(), b.detach()
        common = x.dtype
        whole = _SIGNED[common.itemsize]
        bits = x.bitcast(whole)
        away = (y > x) == (x > 0)  # the size grows: the bits of a float count up with it
        stepped = bits + away.where(1, -1).cast(whole)
        least = x._filled(1 - (1 << (common.itemsize * 8 - 1)), whole)  # the bits of -0.0, and one more
        first = (y > x).where(x._filled(1, whole), least)
        moved = (x == 0).where(first, stepped).bitcast(common)
        found = (x.isnan() | y.isnan()).where(math.nan, (x == y).where(y, moved))
        made: Tensor = _Step.apply(a.expand(found.shape), b.expand(found.shape), found)
        return made

    def frexp(self) -> tuple[Tensor, Tensor]:
        """(mantissa of size in [1/2, 1), exponent as int32) with x = mantissa·2^exponent; 0, NaN and
        infinities are their own mantissa, with exponent 0.

        >>> [t.tolist() for t in Tensor([8.0, 0.75]).frexp()]
        [[0.5, 0.75], [4, 0]]
        """
        wide = self._wide()
        limits, whole = dtypes.finfo(wide.dtype), _SIGNED[wide.dtype.itemsize]
        tiny = wide.abs() < limits.tiny
        lifted = wide * tiny.where(2.0 ** (limits.mantissa_bits + 2), 1.0).cast(wide.dtype)
        field = (1 << limits.exponent_bits) - 1
        exponent = ((lifted.detach().bitcast(whole) >> limits.mantissa_bits) & field) - (limits.bias - 1)
        plain = (wide == 0) | ~wide.isfinite()
        exponent = plain.where(0, exponent - tiny.where(limits.mantissa_bits + 2, 0)).cast(dtypes.int32)
        return self._scaled(wide, -exponent).cast(self._float().dtype), exponent

    @staticmethod
    def _scaled(x: Tensor, exponent: Tensor) -> Tensor:
        """x·2^exponent in two steps, so that the factor overflows only where the result does."""
        half = exponent.idiv(2) if not dtypes.is_float(exponent.dtype) else (exponent * 0.5).trunc()
        return x * half.cast(x.dtype).exp2() * (exponent - half).cast(x.dtype).exp2()

    def ldexp(self, other: Any) -> Tensor:
        """x·2^other.

        >>> Tensor([0.5, 3.0]).ldexp(Tensor([4, -1])).tolist()
        [8.0, 1.5]
        """
        exponent = self._operand(other)
        x, _ = self._in_common_float(exponent)
        if dtypes.is_float(exponent.dtype):  # far beyond any float's range, an infinity has halves
            exponent = exponent.clamp(-9999.0, 9999.0)
        return self._scaled(x, exponent)

    def heaviside(self, values: Any) -> Tensor:
        """0 below 0, 1 above, `values` at 0; NaN gives 0, as in PyTorch.

        >>> Tensor([-2.0, 0.0, 3.0]).heaviside(0.5).tolist()
        [0.0, 0.5, 1.0]
        """
        at_zero = self._operand(values)
        return (self == 0).where(at_zero, (self > 0).cast(least_upper_dtype(self.dtype, at_zero.dtype)))

    def fmax(self, other: Any) -> Tensor:
        """The larger of two, NaN only where both are; of equal elements this tensor takes the gradient.

        >>> Tensor([math.nan, 1.0]).fmax(Tensor([2.0, math.nan])).tolist()
        [2.0, 1.0]
        """
        right = self._operand(other)
        return ((self >= right) | right.isnan()).where(self, right)

    def fmin(self, other: Any) -> Tensor:
        """The smaller of two, NaN only where both are; of equal elements this tensor takes the gradient.

        >>> Tensor([math.nan, 1.0]).fmin(Tensor([2.0, math.nan])).tolist()
        [2.0, 1.0]
        """
        right = self._operand(other)
        return ((self <= right) | right.isnan()).where(self, right)

    def deg2rad(self) -> Tensor:
        """Degrees as radians.

        >>> round(Tensor([180.0]).deg2rad().item(), 5)
        3.14159
        """
        return self._float() * (math.pi / 180.0)

    def rad2deg(self) -> Tensor:
        """Radians as degrees.

        >>> round(Tensor([math.pi]).rad2deg().item(), 4)
        180.0
        """
        return self._float() * (180.0 / math.pi)

    def positive(self) -> Tensor:
        """+x: the tensor itself; TypeError on bools.

        >>> Tensor([-1]).positive().tolist()
        [-1]
        """
        if dtypes.is_bool(self.dtype):
            raise TypeError("a bool tensor has no +x")
        return self.cast(self.dtype)

    def float_power(self, exponent: Any) -> Tensor:
        """The power in float64.

        >>> Tensor([2.0]).float_power(-1).tolist()
        [0.5]
        """
        if not is_number(exponent):
            raise TypeError(f"float_power takes a number or a Tensor, not {exponent!r}")
        right = exponent.cast(dtypes.float64) if hasattr(exponent, "cast") else float(exponent)
        return self.cast(dtypes.float64).pow(right)

    def clamp_min(self, min: Any) -> Tensor:
        """Limited to at least `min`.

        >>> Tensor([1, 5]).clamp_min(3).tolist()
        [3, 5]
        """
        return self.clamp(min=min)

    def clamp_max(self, max: Any) -> Tensor:
        """Limited to at most `max`.

        >>> Tensor([1, 5]).clamp_max(3).tolist()
        [1, 3]
        """
        return self.clamp(max=max)

    def addcmul(self, tensor1: Any, tensor2: Any, *, value: float = 1) -> Tensor:
        """self + value·tensor1·tensor2.

        >>> Tensor([1.0]).addcmul(Tensor([2.0]), Tensor([3.0]), value=0.5).tolist()
        [4.0]
        """
        product = self._operand(tensor1) * tensor2
        return self + (product if value == 1 else product * value)  # type: ignore[no-any-return]

    def addcdiv(self, tensor1: Any, tensor2: Any, *, value: float = 1) -> Tensor:
        """self + value·tensor1 / tensor2.

        >>> Tensor([1.0]).addcdiv(Tensor([3.0]), Tensor([2.0]), value=2).tolist()
        [4.0]
        """
        quotient = self._operand(tensor1) / tensor2
        return self + (quotient if value == 1 else quotient * value)  # type: ignore[no-any-return]

    def rsub(self, other: Any, *, alpha: float = 1) -> Tensor:
        """other - alpha·self.

        >>> Tensor([1.0]).rsub(5.0, alpha=2).tolist()
        [3.0]
        """
        return (self if alpha == 1 else self * alpha).sub(other, reverse=True)

    def contiguous_backward(self) -> Tensor:
        """The tensor itself, whose gradient is stored before it flows on.

        >>> Tensor([1.0]).contiguous_backward().tolist()
        [1.0]
        """
        return _StoredGradient.apply(self)  # type: ignore[no-any-return]

    # *** whole numbers

    def _whole_pair(self, other: Any, name: str) -> tuple[Tensor, Tensor, DType]:
        right = self._operand(other)
        common = least_upper_dtype(self.dtype, right.dtype)
        if not dtypes.is_int(common):
            raise TypeError(f"{name} is for integers, not {self.dtype} and {right.dtype}")
        return self.cast(common).abs(), right.cast(common).abs(), common

    def gcd(self, other: Any) -> Tensor:
        """The greatest common divisor of integers, at least 0; gcd(0, 0) is 0.

        >>> Tensor([12, 0]).gcd(Tensor([-18, 5])).tolist()
        [6, 5]
        """
        a, b, common = self._whole_pair(other, "gcd")
        for _ in range(_EUCLID_STEPS[common.itemsize * 8]):
            done = b == 0
            a, b = done.where(a, b), done.where(b, a % done.where(1, b))
        return a

    def lcm(self, other: Any) -> Tensor:
        """The least common multiple of integers, at least 0.

        >>> Tensor([4, 0]).lcm(Tensor([6, 5])).tolist()
        [12, 0]
        """
        a, b, _ = self._whole_pair(other, "lcm")
        divisor = a.gcd(b)
        return a // (divisor == 0).where(1, divisor) * b


class _Copysign(Function):
    def forward(self, x: Tensor, other: Tensor) -> Tensor:
        self.save_for_backward(x, other)
        magnitude = x.abs()
        return other._below_zero().where(-magnitude, magnitude)

    def backward(self, grad: Tensor) -> tuple[Tensor, Tensor]:
        x, other = self.saved_tensors
        slope = other._below_zero().where(-x.sign(), x.sign())
        return grad * slope, other._filled(0.0)


class _Step(Function):
    """The next float `found` from x towards y: x's slope is 1 where that is another one (as in PyTorch)."""

    def forward(self, x: Tensor, y: Tensor, found: Tensor) -> Tensor:
        self.save_for_backward(x, y)
        return found

    def backward(self, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        x, y = self.saved_tensors
        return (x != y).where(grad, 0.0), grad._filled(0.0), None


class _StoredGradient(Function):
    def forward(self, x: Tensor) -> Tensor:
        return x

    def backward(self, grad: Tensor) -> Tensor:
        return grad.contiguous()

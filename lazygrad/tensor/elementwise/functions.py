"""Functions of one variable: roots, exponentials, angles. Integers become the default float."""

from __future__ import annotations

import math
from typing import Any

from ...dtype import dtypes
from ...ir.ops import Ops
from ..face import Tensor
from ..formulas import formula, sloped
from ..transforms.function import Function


class Functions(Tensor):
    """Mathematical functions, element by element."""

    sqrt = formula("Square root; NaN below 0.", lambda x: x._function(Ops.SQRT), [4.0], [2.0])
    rsqrt = formula("1 / sqrt(x).", lambda x: x._function(Ops.SQRT).reciprocal(), [4.0], [0.5])
    exp = formula("e to the x.", lambda x: x._function(Ops.EXP), [0.0], [1.0])
    exp2 = formula("2 to the x.", lambda x: x._function(Ops.EXP2), [3.0], [8.0])
    log = formula(
        "Natural logarithm; -inf at 0, NaN below.", lambda x: x._function(Ops.LOG), [1.0, 0.0], "[0.0, -inf]"
    )
    log2 = formula("Logarithm to base 2.", lambda x: x._function(Ops.LOG2), [8.0], [3.0])

    def log10(self) -> Tensor:
        """Logarithm to base 10.

        >>> Tensor([1.0]).log10().tolist()
        [0.0]
        """
        return (self._wide().log() * (1.0 / math.log(10.0))).cast(self._float().dtype)

    @sloped(lambda x, y: (x + 1.0).reciprocal())
    def log1p(x: Tensor) -> Tensor:
        """log(1 + x), accurate near 0: the error of 1 + x is divided out.

        >>> Tensor([0.0]).log1p().tolist()
        [0.0]
        """
        u = x + 1.0
        return ((u == 1.0) | (u == math.inf)).where((u == 1.0).where(x, u), u.log() * (x / (u - 1.0)))

    @sloped(lambda x, y: y + 1.0)
    def expm1(x: Tensor) -> Tensor:
        """exp(x) - 1, accurate near 0.

        >>> Tensor([0.0]).expm1().tolist()
        [0.0]
        """
        half = (x * 0.5).tanh()
        # exp(x) - 1 = 2t / (1 - t) with t = tanh(x/2); far out the plain form is accurate
        near = (x > -1.0) & (x < 1.0)
        return near.where(half * 2.0 / (1.0 - half), x.exp() - 1.0)

    sin = formula("Sine of radians.", lambda x: x._function(Ops.SIN), [0.0], [0.0])
    cos = formula("Cosine of radians.", lambda x: x._function(Ops.COS), [0.0], [1.0])

    def tan(self) -> Tensor:
        """Tangent of radians.

        >>> Tensor([0.0]).tan().tolist()
        [0.0]
        """
        x = self._wide()
        return (x.sin() / x.cos()).cast(self._float().dtype)

    @sloped(lambda x, y: x * (y * y * y))
    def _asin_slope(x: Tensor) -> Tensor:
        """1 / sqrt(1 - x²), whose slope at 1 is infinite; the product rule would find inf · 0 in it."""
        return ((1.0 - x) * (1.0 + x)).rsqrt()

    @sloped(lambda x, y: x._asin_slope())
    def asin(x: Tensor) -> Tensor:
        """The angle in [-π/2, π/2] whose sine is x.

        >>> Tensor([0.0]).asin().tolist()
        [0.0]
        """
        # sin φ = x  ⇒  tan φ = x / sqrt((1 - x)(1 + x))
        return (x / ((1.0 - x) * (1.0 + x)).sqrt()).atan()

    @sloped(lambda x, y: -x._asin_slope())
    def acos(x: Tensor) -> Tensor:
        """The angle in [0, π] whose cosine is x.

        >>> Tensor([1.0]).acos().tolist()
        [0.0]
        """
        # tan(φ/2) = sqrt((1 - x) / (1 + x))
        return ((1.0 - x) / (1.0 + x)).sqrt().atan() * 2.0

    @sloped(lambda x, y: (x * x + 1.0).reciprocal())
    def atan(x: Tensor) -> Tensor:
        """The angle in [-π/2, π/2] whose tangent is x: reduced to |x| <= tan(π/12), then a series.

        >>> Tensor([0.0]).atan().tolist()
        [0.0]
        """
        return _arctangent(x)

    def atan2(self, other: Any) -> Tensor:
        """The angle of the point (other, self), in [-π, π], with the sign of self, also where that is -0.0.

        >>> Tensor([0.0]).atan2(Tensor([1.0])).tolist()
        [0.0]
        """
        return self._sloped_pair(_Atan2.apply, other)

    @sloped(lambda x, y: x.cosh())
    def sinh(x: Tensor) -> Tensor:
        """Hyperbolic sine.

        >>> Tensor([0.0]).sinh().tolist()
        [0.0]
        """
        size = x.abs()
        e, root = size.expm1(), (size * 0.5).exp()  # e^|x| overflows before sinh does
        # (e^x - e^-x) / 2 without cancellation: with m = e^x - 1 it is (m + m/(m+1)) / 2
        near = (e + e / (e + 1.0)) * 0.5
        return odd(x, (size < 1.0).where(near, root * 0.5 * root - (-size).exp() * 0.5))

    @sloped(lambda x, y: x.sinh())
    def cosh(x: Tensor) -> Tensor:
        """Hyperbolic cosine.

        >>> Tensor([0.0]).cosh().tolist()
        [1.0]
        """
        size = x.abs()
        root = (size * 0.5).exp()  # e^|x| overflows before cosh does
        return root * 0.5 * root + (-size).exp() * 0.5

    tanh = formula("Hyperbolic tangent.", lambda x: x._function(Ops.TANH), [0.0], [0.0])

    @sloped(lambda x, y: (x * x + 1.0).rsqrt())
    def asinh(x: Tensor) -> Tensor:
        """The number whose hyperbolic sine is x.

        >>> Tensor([0.0]).asinh().tolist()
        [0.0]
        """
        size = (x < 0).where(-x, x)
        root = (size * size + 1.0).sqrt()
        # log(|x| + sqrt(x² + 1)) as log1p, accurate near 0; for huge |x| it is log(2|x|)
        far = size > 1e9
        value = far.where(size.log() + math.log(2.0), (size + size * size / (root + 1.0)).log1p())
        return odd(x, value)

    @sloped(lambda x, y: -x * (y * y * y))
    def _acosh_slope(x: Tensor) -> Tensor:
        """1 / sqrt(x² - 1); see `_asin_slope`."""
        return ((x - 1.0) * (1.0 + x)).rsqrt()

    @sloped(lambda x, y: x._acosh_slope())
    def acosh(x: Tensor) -> Tensor:
        """The number >= 0 whose hyperbolic cosine is x.

        >>> Tensor([1.0]).acosh().tolist()
        [0.0]
        """
        far = x > 1e9
        rest = x - 1.0
        near = (rest + (rest * (x + 1.0)).sqrt()).log1p()
        return (x < 1.0).where(math.nan, far.where(x.log() + math.log(2.0), near))

    @sloped(lambda x, y: ((1.0 - x) * (1.0 + x)).reciprocal())
    def atanh(x: Tensor) -> Tensor:
        """The number whose hyperbolic tangent is x.

        >>> Tensor([0.0]).atanh().tolist()
        [0.0]
        """
        return (x.log1p() - (-x).log1p()) * 0.5

    erf = formula("The error function.", lambda x: x._function(Ops.ERF), [0.0], [0.0])

    def logaddexp(self, other: Any) -> Tensor:
        """log(e^self + e^other), without overflow.

        >>> Tensor([-math.inf]).logaddexp(0.0).tolist()
        [0.0]
        """
        return self._sloped_pair(_LogAddExp.apply, other, 1.0)

    def logaddexp2(self, other: Any) -> Tensor:
        """log2(2^self + 2^other), without overflow.

        >>> Tensor([1000.0]).logaddexp2(1000.0).tolist()
        [1001.0]
        """
        return self._sloped_pair(_LogAddExp.apply, other, math.log(2.0))


def odd(x: Tensor, value: Tensor) -> Tensor:
    """An odd function of x, from its value at |x| (which is 0 at 0): with the sign of x, that of -0.0 too."""
    return (x > 0).where(value, (x < 0).where(-value, x))


def _arctangent(x: Tensor) -> Tensor:
    """Reduced to |x| <= tan(π/12), then a series."""
    terms = 24 if x.dtype is dtypes.float64 else 11
    negative = x < 0
    size = negative.where(-x, x)
    large = size > 1.0
    inner = large.where(1.0 / large.where(size, 1.0), size)
    # atan(x) = π/6 + atan((x·√3 - 1) / (√3 + x)) brings [tan(π/12), 1] to [-tan(π/12), tan(π/12)]
    middle = inner > math.tan(math.pi / 12)
    root = math.sqrt(3.0)
    reduced = middle.where((inner * root - 1.0) / (inner + root), inner)
    square = reduced * reduced
    series = square._filled((-1.0) ** (terms - 1) / (2 * terms - 1))
    for n in range(terms - 2, -1, -1):
        series = series * square + (-1.0) ** n / (2 * n + 1)
    angle = reduced * series
    angle = middle.where(angle + math.pi / 6, angle)
    angle = large.where(math.pi / 2 - angle, angle)
    return negative.where(-angle, angle)


class _Atan2(Function):
    def forward(self, y: Tensor, x: Tensor) -> Tensor:
        self.save_for_backward(y, x)
        # in the first quadrant, then turned by the signs, those of zeros included (as C's atan2)
        rise, run = y.abs(), x.abs()
        diagonal = (rise == math.inf) & (run == math.inf)
        ratio = diagonal.where(1.0, ((rise == 0) & (run == 0)).where(0.0, rise / run))
        angle = _arctangent(ratio)
        angle = x._below_zero().where(math.pi - angle, angle)
        return y._below_zero().where(-angle, angle)

    def backward(self, grad: Tensor) -> tuple[Tensor, Tensor]:
        y, x = self.saved_tensors
        square = y * y + x * x
        origin = square == 0
        share = grad * origin.where(0.0, origin.where(1.0, square).reciprocal())
        return share * x, -share * y


class _LogAddExp(Function):
    """log(b^x + b^y) to the base b, whose natural logarithm is `scale`."""

    def forward(self, x: Tensor, y: Tensor, scale: float) -> Tensor:
        self.save_for_backward(x, y)
        self.scale = scale
        distance = (x == y).where(0.0, (x - y).abs())  # equal infinities have none
        return x.maximum(y) + (distance * -scale).exp().log1p() * (1.0 / scale)

    def backward(self, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        x, y = self.saved_tensors
        return grad * ((x - y) * self.scale).sigmoid(), grad * ((y - x) * self.scale).sigmoid(), None

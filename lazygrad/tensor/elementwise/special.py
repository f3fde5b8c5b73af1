"""Special functions: the gamma family, the tails of the normal distribution, Bessel functions.

Each is a formula of ordinary operations, so it fuses with its neighbours; its gradient is written down where
that is another function of the family. Where a fit is used it is a Chebyshev series: its coefficients are
those of the interpolation at 64 Chebyshev nodes, computed with 50 digits, and float32 takes the first terms
of the list. Narrower floats are computed in float32.

Sources: Abramowitz and Stegun, Handbook of Mathematical Functions (1964), chapters 6 (gamma), 7 (error
function), 9 (Bessel) and 23 (zeta); the variable of the scaled error function is Shepherd and Laframboise's
(Math. Comp. 36, 1981).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...dtype import dtypes
from ..face import Tensor
from ..formulas import sloped
from ..transforms.function import Function
from .chebyshev import ERFCX, ERFINV, terms_of
from .functions import odd

TWO_BY_SQRT_PI = 2.0 / math.sqrt(math.pi)


class Special(Tensor):
    """Special functions, element by element. Integers become the default float."""

    # *** logarithms

    def logit(self, eps: float | None = None) -> Tensor:
        """log(x / (1 - x)), the inverse of sigmoid; NaN outside of [0, 1].

        eps  if given, x is first limited to [eps, 1 - eps]

        >>> Tensor([0.5, 1.0]).logit().tolist()
        [0.0, inf]
        """
        x = self._float()
        if eps is not None:  # whose slope at a limit is that of logit
            x = (x < eps).where(eps, (x > 1.0 - eps).where(1.0 - eps, x))
        # 2x - 1 is exact around 1/2, where x / (1 - x) is not
        middle = (x > 0.25) & (x < 0.75)
        near = ((x * 2.0 - 1.0) / (1.0 - x)).log1p()
        return middle.where(near, x.log() - (-x).log1p())

    def xlogy(self, other: Any) -> Tensor:
        """x·log(other), which is 0 where x is 0 (NaN stays).

        >>> Tensor([0.0, 1.0]).xlogy(Tensor([0.0, 1.0])).tolist()
        [0.0, 0.0]
        """
        x, y = self._in_common_float(other)
        empty = (x == 0) & ((y <= 0) | (y == math.inf))
        return empty.where(0.0, x * empty.where(1.0, y).log())

    def xlog1py(self, other: Any) -> Tensor:
        """x·log(1 + other), which is 0 where x is 0 (NaN stays).

        >>> Tensor([0.0, 2.0]).xlog1py(Tensor([-1.0, 0.0])).tolist()
        [0.0, 0.0]
        """
        x, y = self._in_common_float(other)
        empty = (x == 0) & ((y <= -1) | (y == math.inf))
        return empty.where(0.0, x * empty.where(0.0, y).log1p())

    @sloped(lambda x, y: -1.0 - x.log())
    def entr(x: Tensor) -> Tensor:
        """-x·log(x): 0 at 0, -inf below.

        >>> Tensor([0.0, 1.0, -1.0]).entr().tolist()
        [0.0, -0.0, -inf]
        """
        return (x < 0).where(-math.inf, (x == 0).where(0.0, -(x * (x > 0).where(x, 1.0).log())))

    def hypot(self, other: Any) -> Tensor:
        """sqrt(self² + other²), without overflow; infinite where one is, and its slope at 0 is 0.

        >>> Tensor([3.0, 3e30]).hypot(Tensor([4.0, 4e30])).tolist()[0]
        5.0
        """
        return self._sloped_pair(_Hypot.apply, other)

    # *** the error function

    @sloped(lambda x, y: (-(x * x)).exp() * -TWO_BY_SQRT_PI)
    def erfc(x: Tensor) -> Tensor:
        """1 - erf(x), accurate where it is small (relative error below 8 units in the last place).

        >>> 2.0e-45 < Tensor([10.0], dtype="float64").erfc().item() < 2.1e-45
        True
        """
        size = x.abs()
        # beyond 30 it is 0 in float64: no square overflows
        bounded = size.clamp(max=30.0)
        tail = _exp_minus_square(bounded) * _erfcx_positive(bounded)
        return (size < 0.5).where(1.0 - x.erf(), (x < 0).where(2.0 - tail, tail))

    @sloped(lambda x, y: x * y * 2.0 - TWO_BY_SQRT_PI)
    def erfcx(x: Tensor) -> Tensor:
        """exp(x²)·erfc(x), which neither underflows nor cancels for large x.

        >>> round(Tensor([1000.0]).erfcx().item() * 1000 * math.pi**0.5, 5)
        1.0
        """
        positive = _erfcx_positive(x.abs())
        below = x < 0
        left = below.where(x, 0.0)
        return below.where((left * left).exp() * 2.0 - positive, positive)

    @sloped(lambda x, y: (y * y).exp() / TWO_BY_SQRT_PI)
    def erfinv(x: Tensor) -> Tensor:
        """The number whose error function is x: infinite at ±1, NaN outside.

        >>> Tensor([0.0, 1.0, -1.0]).erfinv().tolist()
        [0.0, inf, -inf]
        """
        size = x.abs()
        inside = size < 1.0
        bounded = inside.where(size, 0.0)
        rest = 1.0 - bounded  # exact from 1/2 on
        # a fit of erfinv(x) / x in sqrt(1 - log(1 - x²)), then a step of Halley's method
        root = (1.0 - (rest * (bounded + 1.0)).log()).sqrt()
        guess = bounded * chebyshev_series((root - 1.0) * (2.0 / 5.15) - 1.0, ERFINV)
        far = bounded > 0.5
        error = far.where(rest - guess.erfc(), guess.erf() - bounded)
        step = error * (guess * guess).exp() / TWO_BY_SQRT_PI
        found = guess - step / (guess * step + 1.0)
        result = odd(x, found)
        edge = (size == 1.0).where(x * math.inf, math.nan)
        return inside.where(result, edge)

    def ndtr(self) -> Tensor:
        """The distribution function of the standard normal distribution.

        >>> Tensor([0.0]).ndtr().tolist()
        [0.5]
        """
        return (self._float() * -math.sqrt(0.5)).erfc() * 0.5

    def log_ndtr(self) -> Tensor:
        """The logarithm of `ndtr`, accurate in both tails.

        >>> round(Tensor([-100.0]).log_ndtr().item(), 2)
        -5005.52
        """
        x = self._float()
        left = x < -1.0
        far = left.where(x, -1.0)
        tail = ((far * -math.sqrt(0.5)).erfcx() * 0.5).log() - far * far * 0.5
        near = left.where(0.0, x)
        return left.where(tail, ((near * math.sqrt(0.5)).erfc() * -0.5).log1p())

    @sloped(lambda x, y: (y * y * 0.5).exp() * math.sqrt(2.0 * math.pi))
    def ndtri(p: Tensor) -> Tensor:
        """The inverse of `ndtr`: the quantiles of the standard normal distribution; NaN outside of [0, 1].

        >>> Tensor([0.5, 0.0]).ndtri().tolist()
        [0.0, -inf]
        """
        # in the middle by `erfinv`; in the tails a rational start (Abramowitz and Stegun 26.2.23, off by less
        # than 4.5e-4 down to 1e-9), then Newton's method on log Φ, whose slope is √(2/π) / erfcx(-x/√2).
        middle = (p - 0.5).abs() <= 0.25
        upper = p > 0.5
        tail = upper.where(1.0 - p, p)  # exact
        inside = (tail > 0) & (tail < 0.5)
        tail = inside.where(tail, 0.25)
        goal = tail.log()
        t = (goal * -2.0).sqrt()
        above = (t * 0.010328 + 0.802853) * t + 2.515517
        below = ((t * 0.001308 + 0.189269) * t + 1.432788) * t + 1.0
        size = t - above / below
        for _ in range(3 if p.dtype is dtypes.float64 else 2):
            scaled = (size * math.sqrt(0.5)).erfcx()
            found = (scaled * 0.5).log() - size * size * 0.5
            size = size + (found - goal) * scaled * math.sqrt(0.5 * math.pi)
        edge = (p == 0).where(-math.inf, (p == 1).where(math.inf, math.nan))
        far = inside.where(upper.where(size, -size), edge)
        return middle.where((middle.where(p, 0.5) * 2.0 - 1.0).erfinv() * math.sqrt(2.0), far)

    def _sin_pi(self) -> Tensor:
        """sin(πx), exactly 0 at whole numbers: the whole part is taken off before π comes in."""
        whole = self.detach().round()
        odd = (whole * 0.5 - (whole * 0.5).trunc()) != 0.0
        sine = ((self - whole) * math.pi).sin()
        return odd.where(-sine, sine)


def chebyshev_series(t: Tensor, coefficients: Sequence[float]) -> Tensor:
    """A Chebyshev series at t in [-1, 1] (Clenshaw)."""
    terms = terms_of(coefficients, t.dtype)
    after, last = t._filled(0.0), t._filled(terms[-1])
    double = t * 2.0
    for coefficient in reversed(terms[1:-1]):
        after, last = last, double * last - after + coefficient
    return t * last - after + terms[0]


class _Hypot(Function):
    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        x, y = a.abs(), b.abs()
        greatest, least = x.maximum(y), x.minimum(y)
        usual = (greatest > 0) & (greatest < math.inf)
        ratio = usual.where(least, 0.0) / usual.where(greatest, 1.0)
        length = greatest * (ratio * ratio + 1.0).sqrt()
        result = ((x == math.inf) | (y == math.inf)).where(math.inf, length)
        self.save_for_backward(a, b, result)
        return result

    def backward(self, grad: Tensor) -> tuple[Tensor, Tensor]:
        a, b, length = self.saved_tensors
        divisor = (length == 0).where(1.0, length)
        return grad * (a / divisor), grad * (b / divisor)


def _erfcx_positive(x: Tensor) -> Tensor:
    """exp(x²)·erfc(x) for x >= 0: a fit of (1 + 2x)·erfcx(x)."""
    t = ((x - 3.75) / (x + 3.75)).where(x < math.inf, 1.0)
    return chebyshev_series(t, ERFCX) * 0.5 / (x + 0.5)


def _exp_minus_square(x: Tensor) -> Tensor:
    """exp(-x²) without the rounding of x²: x = high + low, where the square of high is exact."""
    bits, low_bits = (dtypes.int64, 27) if x.dtype is dtypes.float64 else (dtypes.int32, 12)
    high = (x.bitcast(bits) & -(1 << low_bits)).bitcast(x.dtype)
    low = (x - high) * (x + high)
    return (-(high * high)).exp() * (-low).exp()

"""The gamma family: log Γ, its derivatives, the multivariate one.

Source: Abramowitz and Stegun, Handbook of Mathematical Functions (1964), chapters 6 (gamma) and 23 (zeta).
"""

from __future__ import annotations

import math

from ..face import Tensor
from ..formulas import sloped
from ..transforms.function import Function
from .chebyshev import LGAMMA
from .special import chebyshev_series

#: The greatest order of `polygamma`: its factor 170! is the last factorial that a float64 holds.
MAX_POLYGAMMA = 170
#: Below 0 up to this order: the slopes of the cotangent that mirror it there grow as the factorial does.
MAX_MIRRORED = 20
#: The Bernoulli numbers B2, B4, ...
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798)


class Gamma(Tensor):
    """The gamma family, element by element."""

    @sloped(lambda x, y: x.digamma())
    def lgamma(x: Tensor) -> Tensor:
        """log |Γ(x)|: infinite at 0 and the negative integers.

        On [1, 2] a fit of lgamma(x) / ((x - 1)(x - 2)), whose zeros stay exact; up to 8 by Γ(x + 1) = x·Γ(x);
        above Stirling's series; below 0 by reflection, log π - log|sin πx| - lgamma(1 - x).

        >>> Tensor([1.0, 2.0, 3.0, 0.0]).lgamma().exp().tolist()
        [1.0, 1.0, 2.0, inf]
        """
        below = x < 0.5
        positive = below.where(1.0 - x, x)  # from 1/2 on
        value = _lgamma_positive(positive)
        small = x.abs() < 0.25
        # around 0 the reflection loses digits: there Γ(x) = Γ(x + 1) / x
        above = _lgamma_positive(small.where(x + 1.0, 1.0)) - small.where(x.abs(), 1.0).log()
        sine = x._sin_pi().abs()
        mirrored = (math.pi / sine).log() - value
        whole = (x <= 0) & ((x == x.trunc()) | (x == -math.inf))
        return whole.where(math.inf, small.where(above, below.where(mirrored, value)))

    @sloped(lambda x, y: x.polygamma(1))
    def digamma(x: Tensor) -> Tensor:
        """The slope of `lgamma`: ψ(x); NaN at the negative integers, -inf at 0.

        >>> round(Tensor([1.0]).digamma().item(), 6)
        -0.577216
        """
        below = x < 0
        positive = below.where(1.0 - x, x)
        # ψ(x) = ψ(x + 1) - 1/x, until the asymptotic series holds
        y, total = positive, positive._filled(0.0)
        for _ in range(10):
            small = y < 10.0
            total = total - small.where(small.where(y, 1.0).reciprocal(), 0.0)
            y = small.where(y + 1.0, y)
        inverse = y.reciprocal()
        square = inverse * inverse
        series = square._filled(0.0)
        for k in range(len(BERNOULLI) - 1, -1, -1):
            series = (series + BERNOULLI[k] / (2 * k + 2)) * square
        value = y.log() - inverse * 0.5 - series + total
        fraction = x - x.round()  # the tangent has period 1, and is accurate near its zeros alone
        cotangent = math.pi / (below.where(fraction, 0.25) * math.pi).tan()
        mirrored = (fraction == 0.0).where(math.nan, value - cotangent)
        return (x == 0).where(-(x.reciprocal()), below.where(mirrored, value))

    def polygamma(self, n: int) -> Tensor:
        """The n-th derivative of `digamma`; called as `x.polygamma(n)`.

        For n > 20 and x below 0 it is NaN. NotImplementedError for n > 170, whose factorial no float holds.

        >>> round(Tensor([1.0]).polygamma(1).item(), 6)
        1.644934
        """
        if not isinstance(n, int) or n < 0:
            raise ValueError(f"polygamma's order must be a whole number of at least 0, not {n!r}")
        if n > MAX_POLYGAMMA:
            raise NotImplementedError(
                f"polygamma of order {n}: {MAX_POLYGAMMA}! is the last factorial that a float64 holds"
            )
        return self.digamma() if n == 0 else self._sloped(_Polygamma.apply, n)

    def multigammaln(self, p: int) -> Tensor:
        """The logarithm of the multivariate gamma function of p dimensions, for x > (p - 1) / 2.

        >>> round(Tensor([3.0]).multigammaln(1).item(), 6)
        0.693147
        """
        if not isinstance(p, int) or p < 1:
            raise ValueError(f"multigammaln needs a dimension of at least 1, not {p!r}")
        x = self._float()
        halves = self.arange(p, dtype=x.dtype, device=x.device) * 0.5
        return (x.unsqueeze(-1) - halves).lgamma().sum(-1) + p * (p - 1) / 4 * math.log(math.pi)


def _lgamma_positive(x: Tensor) -> Tensor:
    """lgamma for x >= 1/2."""
    far = x >= 8.0
    near = far.where(1.5, x)
    product = near._filled(1.0)
    y = near
    for _ in range(6):
        large = y >= 2.0
        y = large.where(y - 1.0, y)
        product = large.where(product * y, product)
    low = near < 1.0
    # lgamma(x + 1) = x·(x - 1)·fit for x < 1: near + 1 would be rounded
    first, second = low.where(near, y - 1.0), low.where(near - 1.0, y - 2.0)
    base = first * second * chebyshev_series(first * 2.0 - 1.0, LGAMMA)
    value = base + low.where(-near.log(), product.log())
    large_x = far.where(x, 8.0)
    inverse = large_x.reciprocal()
    square = inverse * inverse
    series = square._filled(0.0)
    for k in range(len(BERNOULLI) - 1, -1, -1):
        series = series * square + BERNOULLI[k] / ((2 * k + 2) * (2 * k + 1))
    stirling = (large_x - 0.5) * (large_x.log() - 1.0) + (0.5 * math.log(2.0 * math.pi) - 0.5)
    stirling = (large_x == math.inf).where(math.inf, stirling + series * inverse)
    return far.where(stirling, value)


class _Polygamma(Function):
    """(-1)^(n+1) n! ζ(n + 1, x), ζ by Euler's and Maclaurin's formula from x + 10 on."""

    def forward(self, x: Tensor, n: int) -> Tensor:
        self.save_for_backward(x)
        self.order = n
        sign = -1.0 if n % 2 == 0 else 1.0
        below = x <= 0
        positive = below.where(1.0 - x, x)
        value = _zeta(positive, n + 1) * (sign * math.factorial(n))
        sine = x._sin_pi()
        if n == 1:
            return below.where((math.pi * math.pi) / (sine * sine) - value, value)
        pole = x == x.trunc()
        if n > MAX_MIRRORED:
            return below.where(pole.where(math.inf * sign, math.nan), value)
        cotangent = (x * math.pi).cos() / pole.where(1.0, sine)
        slope = cotangent._filled(0.0)
        for coefficient in reversed(_cotangent_slope(n)):
            slope = slope * cotangent + coefficient * math.pi ** (n + 1)
        mirrored = (value if n % 2 == 0 else -value) - slope
        return below.where(pole.where(math.inf * sign, mirrored), value)

    def backward(self, grad: Tensor) -> tuple[Tensor, None]:
        (x,) = self.saved_tensors
        return grad * x.polygamma(self.order + 1), None


def _cotangent_slope(n: int) -> list[int]:
    """The n-th derivative of the cotangent as a polynomial of the cotangent, its coefficients from c⁰ on:
    c' = -(1 + c²)."""
    made = [0, 1]
    for _ in range(n):
        slopes = [k * factor for k, factor in enumerate(made)][1:]
        made = [-(a + b) for a, b in zip([*slopes, 0, 0], [0, 0, *slopes], strict=True)]
    return made


def _zeta(x: Tensor, s: int) -> Tensor:
    """Hurwitz' zeta function of a whole s > 1, for x > 0."""
    total = x._filled(0.0)
    for k in range(10):
        total = total + (x + float(k)).pow(-s)
    far = x + 10.0
    power = far.pow(-s)
    total = total + far.pow(1 - s) / float(s - 1) + power * 0.5
    factor, term = float(s), power / far
    square = (far * far).reciprocal()
    for k, bernoulli in enumerate(BERNOULLI):
        total = total + term * (bernoulli / math.factorial(2 * k + 2) * factor)
        factor *= (s + 2 * k + 1) * (s + 2 * k + 2)
        term = term * square
    return total

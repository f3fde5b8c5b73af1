"""The incomplete gamma functions P and Q, regularized.

Four ways, each where it converges fast: the power series of P where x <= a; that of 1 - Q, without its
cancellation, where both are small; the continued fraction of Q where x > a; and Temme's uniform expansion
where a is large and x near it. All are computed with fixed numbers of terms, and one is chosen by element.

Sources: NIST's Digital Library of Mathematical Functions, 8.7.1, 8.7.3, 8.9.2 and 8.12.3 to 8.12.12;
Temme, The asymptotic expansion of the incomplete gamma functions (SIAM J. Math. Anal. 10, 1979).
"""

from __future__ import annotations

import functools
import math
from typing import Any

from ...dtype import dtypes
from ..face import Tensor
from ..transforms.function import Function
from .chebyshev import LGAMMA
from .gamma import BERNOULLI
from .special import chebyshev_series

#: Temme's expansion holds from this a on, for η between -1 and 1.
FAR = 20.0
#: Below this x no continued fraction: its convergence goes with √x.
SMALL = 1.5


class IncompleteGamma(Tensor):
    """The incomplete gamma functions, element by element."""

    def igamma(self, other: Any) -> Tensor:
        """P(a, x) = ∫ t^(a-1)·e^-t dt from 0 to x, divided by Γ(a); a is this tensor, x is `other`.

        NaN where either is negative. Its gradient is that of x; NotImplementedError where a's is asked for.

        >>> round(Tensor([1.0]).igamma(Tensor([2.0])).item(), 6)
        0.864665
        """
        return self._sloped_pair(_Incomplete.apply, other, False)

    def igammac(self, other: Any) -> Tensor:
        """Q(a, x) = 1 - P(a, x), accurate where it is small; see `igamma`.

        >>> round(Tensor([1.0]).igammac(Tensor([2.0])).item(), 6)
        0.135335
        """
        return self._sloped_pair(_Incomplete.apply, other, True)


class _Incomplete(Function):
    def forward(self, a: Tensor, x: Tensor, upper: bool) -> Tensor:
        self.save_for_backward(a, x)
        self.upper = upper
        return _value(a, x, upper)

    def backward(self, grad: Tensor) -> tuple[None, Tensor, None]:
        a, x = self.saved_tensors
        if self.needs_input_grad[0]:
            name = "igammac" if self.upper else "igamma"
            raise NotImplementedError(f"{name} has no gradient with respect to a, only to x")
        slope = ((a - 1.0).xlogy(x) - x - a.lgamma()).exp()
        return None, grad * (-slope if self.upper else slope), None


def _value(a: Tensor, x: Tensor, upper: bool) -> Tensor:
    wide = x.dtype is dtypes.float64
    usual = (a > 0) & (x > 0) & (a < math.inf) & (x < math.inf)
    s, t = usual.where(a, 1.0), usual.where(x, 1.0)
    distance = (t - s) / s
    phi = _phi(distance, wide)
    near = (s > FAR) & (phi <= 0.5)
    below = t <= s
    small = t <= SMALL
    # Q of its own series where 1 - P would lose digits
    alone = small & ((t < 0.5).where(s.log() + (-t.log()).log() < math.log(0.4), s < t * 1.1))
    density = _density(s, t, phi)

    middle = near.where(s, 2 * FAR)
    far = _temme(middle, near.where(distance, 0.0), near.where(phi, 0.0), upper, wide)

    series_holds = (below | small) & near.logical_not()
    series = density * _series(series_holds.where(s, 1.0), series_holds.where(t, 1.0), wide)
    fraction_holds = (series_holds | near).logical_not()
    fraction = density * s * _fraction(fraction_holds.where(s, 1.0), fraction_holds.where(t, 2.0), wide)
    if upper:
        own = _small_upper(alone.where(s, 0.5), alone.where(t, 0.5), wide)
        value = near.where(far, series_holds.where(alone.where(own, 1.0 - series), fraction))
    else:
        value = near.where(far, series_holds.where(series, 1.0 - fraction))
    return usual.where(value, _edges(a, x, upper))


def _edges(a: Tensor, x: Tensor, upper: bool) -> Tensor:
    """P (or Q) where a or x is 0, infinite, negative or NaN."""
    none, all_ = (1.0, 0.0) if upper else (0.0, 1.0)
    endless = (a == math.inf).where(none, all_)
    begin = (x == 0).where(none, endless)
    at_0 = (a == 0).where((x > 0).where(all_, math.nan), begin)
    wrong = (a < 0) | (x < 0) | (a != a) | (x != x) | ((a == math.inf) & (x == math.inf))
    return wrong.where(math.nan, at_0)


def _phi(distance: Tensor, wide: bool) -> Tensor:
    """μ - log(1 + μ): near 0 by r·μ - 2(r³/3 + r⁵/5 + ...), r = μ / (2 + μ)."""
    near = distance.abs() < 0.4
    mu = near.where(distance, 0.0)
    r = mu / (mu + 2.0)
    square = r * r
    total = square._filled(0.0)
    for k in range(15 if wide else 7, 0, -1):
        total = total * square + 2.0 / (2 * k + 1)
    beyond = near.where(1.0, distance)
    return near.where(r * mu - total * square * r, beyond - beyond.log1p())


def _density(a: Tensor, x: Tensor, phi: Tensor) -> Tensor:
    """x^a·e^-x / Γ(a + 1); of a large a by Stirling's series, where the logarithm of each factor is large."""
    large = a > 10.0
    inverse = large.where(a, 10.0).reciprocal()
    square = inverse * inverse
    rest = square._filled(0.0)
    for k in range(len(BERNOULLI) - 1, -1, -1):
        rest = rest * square + BERNOULLI[k] / ((2 * k + 2) * (2 * k + 1))
    far = (-(a * phi) - rest * inverse).exp() * (a * (2.0 * math.pi)).rsqrt()
    low = large.where(1.0, a)
    near = (low * x.log() - x - _lgamma_after(low)).exp()
    return large.where(far, near)


def _lgamma_after(a: Tensor) -> Tensor:
    """log Γ(a + 1), without rounding a + 1 where a is small."""
    small = a < 1.0
    low = small.where(a, 0.5)
    return small.where(low * (low - 1.0) * chebyshev_series(low * 2.0 - 1.0, LGAMMA), (a + 1.0).lgamma())


def _series(a: Tensor, x: Tensor, wide: bool) -> Tensor:
    """Σ x^n / ((a + 1)...(a + n)), backwards (8.7.1)."""
    total = a._filled(1.0)
    for n in range(60 if wide else 36, 0, -1):
        total = total * (x / (a + float(n))) + 1.0
    return total


def _fraction(a: Tensor, x: Tensor, wide: bool) -> Tensor:
    """The continued fraction of Γ(a, x)·e^x / x^a, from its end (8.9.2)."""
    count = 80 if wide else 28
    rest = x - a + (2.0 * count + 1.0)
    for n in range(count, 0, -1):
        rest = x - a + (2.0 * n - 1.0) - (float(n) - a) * float(n) / rest
    return rest.reciprocal()


def _small_upper(a: Tensor, x: Tensor, wide: bool) -> Tensor:
    """Q for small a and x: 1 - x^a / Γ(a + 1), less the rest of the alternating series (8.7.3)."""
    power = a * x.log() - _lgamma_after(a)
    total = a._filled(0.0)
    for n in range(24 if wide else 14, 0, -1):
        total = (total + (a + float(n)).reciprocal()) * (x * (-1.0 / n))
    return -(power.expm1()) - power.exp() * a * total


def _temme(a: Tensor, distance: Tensor, phi: Tensor, upper: bool, wide: bool) -> Tensor:
    """½ erfc(±η√(a/2)) ± e^(-aη²/2) / √(2πa) · Σ c_k(η) / a^k (8.12.3, 8.12.4)."""
    table = _coefficients(13, 30) if wide else _coefficients(4, 14)
    eta = (phi * 2.0).sqrt()
    eta = (distance < 0).where(-eta, eta)
    inverse = a.reciprocal()
    total = a._filled(0.0)
    for row in reversed(table):
        line = a._filled(0.0)
        for coefficient in reversed(row):
            line = line * eta + coefficient
        total = total * inverse + line
    rest = (-(a * phi)).exp() * (a * (2.0 * math.pi)).rsqrt() * total
    side = eta * (a * 0.5).sqrt()
    return side.erfc() * 0.5 + rest if upper else (-side).erfc() * 0.5 - rest


@functools.cache
def _coefficients(rows: int, terms: int) -> tuple[tuple[float, ...], ...]:
    """The power series in η of c_0, c_1, ... (8.12.9 to 8.12.12), computed as fractions.

    μ(η) solves μ·μ' = η·(1 + μ); c_0 = 1/μ - 1/η; c_k = c_(k-1)' / η + (-1)^k·g_k / μ, where g_k are the
    coefficients of Stirling's series of Γ.
    """
    from fractions import Fraction

    count = terms + 2 * rows + 2
    mu = [Fraction(0), Fraction(1)]
    for n in range(2, count + 1):
        products = sum((j * mu[j] * mu[n + 1 - j] for j in range(2, n)), Fraction(0))
        mu.append((mu[n - 1] - products) / (n + 1))
    inverse = [Fraction(1)]  # of μ / η
    for n in range(1, count):
        inverse.append(-sum((mu[j + 1] * inverse[n - j] for j in range(1, n + 1)), Fraction(0)))
    # g from the logarithm of Γ's series, Σ B_2j / (2j(2j - 1)) / a^(2j - 1)
    bernoulli = _bernoulli(rows + 1)
    slopes = {2 * j - 1: b / (2 * j * (2 * j - 1)) for j, b in enumerate(bernoulli, 1)}
    g = [Fraction(1)]
    for n in range(1, rows):
        total = sum((k * slopes[k] * g[n - k] for k in range(1, n + 1, 2)), Fraction(0))
        g.append(total / n)
    made = [inverse[1:]]  # c_0, whose 1/η cancels
    for k in range(1, rows):
        last = made[-1]
        slope = [n * value for n, value in enumerate(last)][1:]  # c', from η⁰ on
        sign = -g[k] if k % 2 else g[k]
        # c' / η + sign / μ = Σ (c'_(n+1) + sign·inverse_(n+1))·η^n, whose 1/η cancels
        made.append([slope[n + 1] + sign * inverse[n + 1] for n in range(len(slope) - 1)])
    return tuple(tuple(float(value) for value in row[:terms]) for row in made)


def _bernoulli(count: int) -> list[Any]:
    """The Bernoulli numbers B2, B4, ... as fractions."""
    from fractions import Fraction

    found = [Fraction(1)]
    for n in range(1, 2 * count + 1):
        total = sum((math.comb(n + 1, k) * found[k] for k in range(n)), Fraction(0))
        found.append(-total / (n + 1))
    return found[2::2]

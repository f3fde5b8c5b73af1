"""Modified Bessel functions of the first kind, and sinc.

Source: Abramowitz and Stegun, Handbook of Mathematical Functions (1964), chapter 9.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..face import Tensor
from ..formulas import sloped
from ..transforms.function import Function
from .chebyshev import I0_FAR, I0_NEAR, I1_FAR, I1_NEAR
from .special import chebyshev_series


class Bessel(Tensor):
    """Bessel functions and sinc, element by element."""

    @sloped(lambda x, y: x.i1())
    def i0(x: Tensor) -> Tensor:
        """The modified Bessel function of the first kind of order 0.

        >>> Tensor([0.0]).i0().tolist()
        [1.0]
        """
        return x.i0e() * x.abs().exp()

    @sloped(lambda x, y: x.i1e() - x.sign() * y)
    def i0e(x: Tensor) -> Tensor:
        """exp(-|x|)·i0(x).

        >>> Tensor([0.0]).i0e().tolist()
        [1.0]
        """
        return _bessel(x, I0_NEAR, I0_FAR)

    @sloped(lambda x, y: _scaled_slope_of_i1(x, x.i1e()) * x.abs().exp())
    def i1(x: Tensor) -> Tensor:
        """The modified Bessel function of the first kind of order 1.

        >>> Tensor([0.0]).i1().tolist()
        [0.0]
        """
        return x.i1e() * x.abs().exp()

    @sloped(lambda x, y: _scaled_slope_of_i1(x, y) - x.sign() * y)
    def i1e(x: Tensor) -> Tensor:
        """exp(-|x|)·i1(x).

        >>> Tensor([0.0]).i1e().tolist()
        [0.0]
        """
        size = x.abs()
        value = (size <= 8.0).where(size, 1.0) * _bessel(x, I1_NEAR, I1_FAR)
        return (x < 0).where(-value, value)

    def sinc(self) -> Tensor:
        """sin(πx) / (πx), 1 at 0.

        >>> Tensor([0.0, 1.0]).sinc().tolist()
        [1.0, 0.0]
        """
        return self._sloped(_Sinc.apply, 0)


def _scaled_slope_of_i1(x: Tensor, scaled: Tensor) -> Tensor:
    """exp(-|x|) times the slope of i1, I0 - I1 / x (9.6.26), from i1e."""
    origin = x == 0
    return origin.where(0.5, x.i0e() - scaled / origin.where(1.0, x))


def _bessel(x: Tensor, near: Sequence[float], far: Sequence[float]) -> Tensor:
    """A scaled Bessel function of |x|: two fits that meet at 8; I1's near one is of I1(x) / x."""
    size = x.abs()
    close = size <= 8.0
    below, above = close.where(size, 0.0), close.where(8.0, size)
    inner = chebyshev_series(below * 0.25 - 1.0, near)
    outer = chebyshev_series(16.0 / above - 1.0, far) * above.rsqrt()
    return close.where(inner, outer)


class _Sinc(Function):
    """The derivative of a certain order of sin(πx) / (πx); near 0 by its power series.

    Elsewhere from those of lower order: x times it is sin(πx) / π, whose n-th derivative is
    x·f⁽ⁿ⁾ + n·f⁽ⁿ⁻¹⁾.
    """

    def forward(self, x: Tensor, order: int) -> Tensor:
        self.save_for_backward(x)
        self.order = order
        small = (x == 0) if order == 0 else x.abs() < 0.3 * order
        y = small.where(1.0, x)
        sine, cosine = y._sin_pi(), (y * math.pi).cos()
        found = sine / (y * math.pi)
        for n in range(1, order + 1):
            turned = (sine, cosine, -sine, -cosine)[n % 4]
            found = (turned * math.pi ** (n - 1) - found * n) / y
        return small.where(_sinc_series(x, order) if order else 1.0, found)

    def backward(self, grad: Tensor) -> tuple[Tensor, None]:
        (x,) = self.saved_tensors
        return grad * x._sloped(_Sinc.apply, self.order + 1), None


def _sinc_series(x: Tensor, order: int) -> Tensor:
    """The derivative of Σ (-1)^k (πx)^(2k) / (2k + 1)!."""
    square = x * x
    total = square._filled(0.0)
    first = (order + 1) // 2
    for k in range(first + order + 8, first - 1, -1):
        falling = math.perm(2 * k, order)
        total = total * square + (-1.0) ** k * math.pi ** (2 * k) / math.factorial(2 * k + 1) * falling
    return total * x if order % 2 else total

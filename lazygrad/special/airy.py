"""Airy's function Ai.

Sources: Abramowitz and Stegun, Handbook of Mathematical Functions (1964), 10.4.59 and 10.4.60; NIST's Digital
Library of Mathematical Functions, 9.2 and 9.7.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..tensor import Tensor
from ..tensor.elementwise.special import chebyshev_series
from ..tensor.transforms.function import Function
from . import fits

#: Minus the first two zeros of Ai, each as a float64 and what is left of it.
ZEROS = ((2.338107410459767, 3.912260409818305e-17), (4.08794944413097, 3.387261694242901e-16))
#: ζ(5), ζ = 2/3·x^(3/2), where the near fit ends and the far one begins.
ZETA_5 = 2.0 / 3.0 * 5.0**1.5
ZETA_2 = 2.0 / 3.0 * 2.0**1.5


def airy_ai(input: Tensor) -> Tensor:
    """Airy's function Ai: the solution of y'' = x·y that goes to 0; 0 at inf, NaN at -inf.

    >>> round(special.airy_ai(Tensor([0.0])).item(), 6)
    0.355028
    """
    made: Tensor = input._sloped(_Airy.apply)
    return made


class _Airy(Function):
    """Ai; its slope is `_AirySlope`, whose slope is x·Ai again."""

    def forward(self, x: Tensor) -> Tensor:
        self.save_for_backward(x)
        return _value(x)

    def backward(self, grad: Tensor) -> Tensor:
        (x,) = self.saved_tensors
        return grad * _AirySlope.apply(x)  # type: ignore[no-any-return]


class _AirySlope(Function):
    def forward(self, x: Tensor) -> Tensor:
        self.save_for_backward(x)
        return _slope(x)

    def backward(self, grad: Tensor) -> Tensor:
        (x,) = self.saved_tensors
        return grad * x * _Airy.apply(x)  # type: ignore[no-any-return]


def _value(x: Tensor) -> Tensor:
    size = x.abs()
    left, near = x < 0, size <= 5.0
    inner = near.where(size, 0.0)
    begin = chebyshev_series(inner * 0.4 - 1.0, fits.AI_NEAR)
    for zero, rest in ZEROS:
        begin = begin * _from_zero(inner, zero, rest)
    below = near.where(begin, _waves(near.where(5.0, size), fits.AI_P, fits.AI_Q, -0.25))
    close = size <= 2.0
    middle = close.where(size, 0.0)
    above = close.where(
        chebyshev_series(middle - 1.0, fits.AI_MIDDLE) * (middle * -1.2).exp(),
        _decay(close.where(2.0, size), fits.AI_FAR, -0.25),
    )
    return left.where(below, above)


def _slope(x: Tensor) -> Tensor:
    size = x.abs()
    left, near = x < 0, size <= 5.0
    inner = near.where(size, 0.0)
    begin = chebyshev_series(inner * 0.4 - 1.0, fits.AI_SLOPE_NEAR)
    below = near.where(begin, _waves(near.where(5.0, size), fits.AI_SLOPE_P, fits.AI_SLOPE_Q, 0.25))
    close = size <= 2.0
    middle = close.where(size, 0.0)
    above = close.where(
        chebyshev_series(middle - 1.0, fits.AI_SLOPE_MIDDLE) * (middle * -1.2).exp(),
        _decay(close.where(2.0, size), fits.AI_SLOPE_FAR, 0.25),
    )
    return left.where(below, above)


def _from_zero(size: Tensor, zero: float, rest: float) -> Tensor:
    """size - zero, with the digits that rounding the zero would take."""
    high = math.ldexp(round(math.ldexp(zero, 20)), -20)
    return (size - high) - (zero - high + rest)


def _zeta(x: Tensor) -> Tensor:
    return x * x.sqrt() * (2.0 / 3.0)


def _decay(x: Tensor, fit: Sequence[float], power: float) -> Tensor:
    """From 2 on: exp(-ζ)·x^power times a fit in 1/ζ."""
    zeta = _zeta(x)
    root = x.sqrt().sqrt()
    scale = root if power > 0 else root.reciprocal()
    decay = (-zeta).exp()
    return (decay == 0).where(0.0, decay * scale) * chebyshev_series(2.0 * ZETA_2 / zeta - 1.0, fit)


def _waves(x: Tensor, first: Sequence[float], second: Sequence[float], power: float) -> Tensor:
    """Of -x, from x = 5 on: x^power/√π times sine and cosine of ζ - π/4."""
    zeta = _zeta(x)
    by_zeta = ZETA_5 / zeta
    p = chebyshev_series(by_zeta * by_zeta * 2.0 - 1.0, first)
    q = chebyshev_series(by_zeta * by_zeta * 2.0 - 1.0, second) / zeta
    sine, cosine = zeta.sin(), zeta.cos()
    of_cosine, of_sine = cosine + sine, sine - cosine  # √2 times those of ζ - π/4
    wave = of_cosine * p + of_sine * q if power < 0 else of_sine * p - of_cosine * q
    root = x.sqrt().sqrt()
    return wave * (root if power > 0 else root.reciprocal()) * math.sqrt(0.5 / math.pi)

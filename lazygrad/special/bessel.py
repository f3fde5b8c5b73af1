"""Bessel functions of orders 0 and 1, modified ones of the second kind, and a spherical one.

Below 8 a series in x² whose first zeros are factors, so that they stay exact; from 8 on the modulus forms
J = √(2/πx)·(P cos χ - Q sin χ), Y = √(2/πx)·(P sin χ + Q cos χ), χ = x - (ν/2 + 1/4)π, where the sine and the
cosine of χ are sums of those of x, which take no digits of a large one.

Source: Abramowitz and Stegun, Handbook of Mathematical Functions (1964), chapters 9 (9.2.5, 9.2.6, 9.4) and
10; NIST's Digital Library of Mathematical Functions, 10.6 and 10.29 (slopes), 10.49 (spherical).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ..tensor import Tensor
from ..tensor.elementwise.special import chebyshev_series
from . import fits
from .slopes import sloped

#: The first two zeros of J0 and of J1, each as a float64 and what is left of it.
J0_ZEROS = ((2.404825557695773, -1.176691651530894e-16), (5.520078110286311, 8.088597146146722e-17))
J1_ZEROS = ((3.8317059702075125, -1.5269184090088067e-16), (7.015586669815619, -9.414165653410389e-17))
TWO_BY_PI = 2.0 / math.pi


@sloped(lambda x, y: -bessel_j1(x))
def bessel_j0(x: Tensor) -> Tensor:
    """The Bessel function of the first kind of order 0.

    >>> special.bessel_j0(Tensor([0.0])).tolist()
    [1.0]
    """
    size = x.abs()
    close = size <= 8.0
    return close.where(_j0_near(close.where(size, 0.0)), _far(close.where(8.0, size), 0, False))


@sloped(lambda x, y: bessel_j0(x) - _by_x(x, y, 0.5))
def bessel_j1(x: Tensor) -> Tensor:
    """The Bessel function of the first kind of order 1.

    >>> special.bessel_j1(Tensor([0.0])).tolist()
    [0.0]
    """
    size = x.abs()
    close = size <= 8.0
    value = close.where(_j1_near(close.where(size, 0.0)), _far(close.where(8.0, size), 1, False))
    return (x < 0).where(-value, value)


@sloped(lambda x, y: -bessel_y1(x))
def bessel_y0(x: Tensor) -> Tensor:
    """The Bessel function of the second kind of order 0: -inf at 0, NaN below.

    >>> special.bessel_y0(Tensor([0.0, 1.0])).tolist()[0]
    -inf
    """
    close = x <= 8.0
    near = ((x > 0) & close).where(x, 1.0)
    inner = chebyshev_series(near * near * (1 / 32) - 1.0, fits.Y0_NEAR)
    inner = inner + near.log() * _j0_near(near) * TWO_BY_PI
    return _ends(x, close.where(inner, _far(close.where(8.0, x), 0, True)), -math.inf)


@sloped(lambda x, y: bessel_y0(x) - y / x)
def bessel_y1(x: Tensor) -> Tensor:
    """The Bessel function of the second kind of order 1: -inf at 0, NaN below.

    >>> special.bessel_y1(Tensor([0.0, 1.0])).tolist()[0]
    -inf
    """
    close = x <= 8.0
    near = ((x > 0) & close).where(x, 1.0)
    inner = near * chebyshev_series(near * near * (1 / 32) - 1.0, fits.Y1_NEAR)
    inner = inner + (near.log() * _j1_near(near) - near.reciprocal()) * TWO_BY_PI
    return _ends(x, close.where(inner, _far(close.where(8.0, x), 1, True)), -math.inf)


@sloped(lambda x, y: -modified_bessel_k1(x))
def modified_bessel_k0(x: Tensor) -> Tensor:
    """The modified Bessel function of the second kind of order 0: infinite at 0, NaN below.

    >>> special.modified_bessel_k0(Tensor([0.0])).tolist()
    [inf]
    """
    return _modified(x, _k0_near, fits.K0_FAR, False)


@sloped(lambda x, y: y - scaled_modified_bessel_k1(x))
def scaled_modified_bessel_k0(x: Tensor) -> Tensor:
    """exp(x)·modified_bessel_k0(x), which does not underflow.

    >>> special.scaled_modified_bessel_k0(Tensor([0.0])).tolist()
    [inf]
    """
    return _modified(x, _k0_near, fits.K0_FAR, True)


@sloped(lambda x, y: -modified_bessel_k0(x) - y / x)
def modified_bessel_k1(x: Tensor) -> Tensor:
    """The modified Bessel function of the second kind of order 1: infinite at 0, NaN below.

    >>> special.modified_bessel_k1(Tensor([0.0])).tolist()
    [inf]
    """
    return _modified(x, _k1_near, fits.K1_FAR, False)


@sloped(lambda x, y: y - scaled_modified_bessel_k0(x) - y / x)
def scaled_modified_bessel_k1(x: Tensor) -> Tensor:
    """exp(x)·modified_bessel_k1(x), which does not underflow.

    >>> special.scaled_modified_bessel_k1(Tensor([0.0])).tolist()
    [inf]
    """
    return _modified(x, _k1_near, fits.K1_FAR, True)


@sloped(lambda x, y: _spherical_slope(x, y))
def spherical_bessel_j0(x: Tensor) -> Tensor:
    """The spherical Bessel function of the first kind of order 0: sin(x) / x, 1 at 0.

    >>> special.spherical_bessel_j0(Tensor([0.0])).tolist()
    [1.0]
    """
    origin, endless = x == 0, x.abs() == math.inf
    usual = origin | endless
    return origin.where(1.0, endless.where(0.0, usual.where(1.0, x).sin() / usual.where(1.0, x)))


def _spherical_slope(x: Tensor, y: Tensor) -> Tensor:
    """(cos(x) - y) / x; near 0 its power series Σ (-1)^k 2k x^(2k - 1) / (2k + 1)!."""
    small = x.abs() < 1.0
    square = small.where(x, 0.0) * small.where(x, 0.0)
    total = square._filled(0.0)
    for k in range(9, 0, -1):
        total = total * square + (-1.0) ** k * 2 * k / math.factorial(2 * k + 1)
    far = small.where(1.0, x)
    return small.where(total * x, (far.cos() - y) / far)


def _by_x(x: Tensor, y: Tensor, at_0: float) -> Tensor:
    origin = x == 0
    return origin.where(at_0, y / origin.where(1.0, x))


def _without_zeros(x: Tensor, zeros: tuple[tuple[float, float], ...]) -> Tensor:
    """Π (x - z)(x + z), where the difference keeps the digits that rounding z would take."""
    product = x._filled(1.0)
    for zero, rest in zeros:
        high = math.ldexp(round(math.ldexp(zero, 20)), -20)
        product = product * ((x - high) - (zero - high + rest)) * (x + zero)
    return product


def _j0_near(x: Tensor) -> Tensor:
    return _without_zeros(x, J0_ZEROS) * chebyshev_series(x * x * (1 / 32) - 1.0, fits.J0_NEAR)


def _j1_near(x: Tensor) -> Tensor:
    return x * _without_zeros(x, J1_ZEROS) * chebyshev_series(x * x * (1 / 32) - 1.0, fits.J1_NEAR)


def _far(x: Tensor, order: int, second: bool) -> Tensor:
    """J (or Y, where `second`) from 8 on."""
    by_x = (8.0 / x) * (8.0 / x)
    p = chebyshev_series(by_x * 2.0 - 1.0, (fits.P0, fits.P1)[order])
    q = chebyshev_series(by_x * 2.0 - 1.0, (fits.Q0, fits.Q1)[order]) / x
    bounded = (x == math.inf).where(8.0, x)
    sine, cosine = bounded.sin(), bounded.cos()
    # √2 cos χ and √2 sin χ
    of_cosine, of_sine = (cosine + sine, sine - cosine) if order == 0 else (sine - cosine, -(cosine + sine))
    wave = p * of_sine + q * of_cosine if second else p * of_cosine - q * of_sine
    return wave * (x * math.pi).rsqrt()


def _ends(x: Tensor, value: Tensor, at_0: float) -> Tensor:
    return (x > 0).where(value, (x == 0).where(at_0, math.nan))


def _k0_near(x: Tensor) -> Tensor:
    return chebyshev_series(x * x * 0.5 - 1.0, fits.K0_NEAR) - (x * 0.5).log() * x.i0()


def _k1_near(x: Tensor) -> Tensor:
    fit = chebyshev_series(x * x * 0.5 - 1.0, fits.K1_NEAR)
    return x * fit + x.reciprocal() + (x * 0.5).log() * x.i1()


def _modified(x: Tensor, near_of: Callable[[Tensor], Tensor], far: Sequence[float], scaled: bool) -> Tensor:
    close = x <= 2.0
    near, beyond = ((x > 0) & close).where(x, 1.0), close.where(2.0, x)
    inner = near_of(near)
    outer = chebyshev_series(4.0 / beyond - 1.0, far) * beyond.rsqrt()
    if scaled:
        inner = inner * near.exp()
    else:
        outer = outer * (-beyond).exp()
    return _ends(x, close.where(inner, outer), math.inf)

"""Special functions: those of lazygrad's namespace have the names that PyTorch's have there."""

from __future__ import annotations

import math
from typing import Any

from ... import special
from ...tensor import Tensor
from ..table import aten

#: Of one argument, or of two, one of which may be a number.
_NAMES = """
airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 erfcx i0e i1 i1e modified_bessel_i0 modified_bessel_i1
modified_bessel_k0 modified_bessel_k1 ndtri scaled_modified_bessel_k0 scaled_modified_bessel_k1
spherical_bessel_j0 zeta
"""
#: Polynomials, whose degree has to be a number: how long the sum is depends on it.
_POLYNOMIALS = """
chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w
hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p
shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v
shifted_chebyshev_polynomial_w
"""

for _each in _NAMES.split():
    aten(f"special_{_each}")(getattr(special, _each))
for _each in _POLYNOMIALS.split():
    aten(f"special_{_each}.n_scalar")(getattr(special, _each))


@aten("polygamma")
def polygamma(n: int, x: Tensor) -> Tensor:
    return special.polygamma(n, x)


@aten("igamma")
def igamma(a: Tensor, x: Tensor) -> Tensor:
    return a.igamma(x)


@aten("igammac")
def igammac(a: Tensor, x: Tensor) -> Tensor:
    return a.igammac(x)


@aten("angle")
def angle(x: Tensor) -> Tensor:
    """Of real numbers: 0, or π where they are negative."""
    return x.isnan().where(x, (x < 0).where(math.pi, 0.0))


@aten("frexp.Tensor")
def frexp(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.frexp()


@aten("ldexp.Tensor")
def ldexp(x: Tensor, power: Any) -> Tensor:
    return x.ldexp(power)

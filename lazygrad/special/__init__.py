"""`torch.special` on lazygrad's Tensors: the same functions, with the same arguments.

Most are methods of Tensor, taken as functions. Those that only this namespace has stand in the files beside
this one.
"""

from ..tensor import Tensor
from ..tensor.as_functions import function_of
from ..tensor.trace import check_functions
from .airy import airy_ai as airy_ai
from .bessel import bessel_j0 as bessel_j0
from .bessel import bessel_j1 as bessel_j1
from .bessel import bessel_y0 as bessel_y0
from .bessel import bessel_y1 as bessel_y1
from .bessel import modified_bessel_k0 as modified_bessel_k0
from .bessel import modified_bessel_k1 as modified_bessel_k1
from .bessel import scaled_modified_bessel_k0 as scaled_modified_bessel_k0
from .bessel import scaled_modified_bessel_k1 as scaled_modified_bessel_k1
from .bessel import spherical_bessel_j0 as spherical_bessel_j0
from .hurwitz import zeta as zeta
from .logarithms import xlog1py as xlog1py
from .logarithms import xlogy as xlogy
from .polynomials import chebyshev_polynomial_t as chebyshev_polynomial_t
from .polynomials import chebyshev_polynomial_u as chebyshev_polynomial_u
from .polynomials import chebyshev_polynomial_v as chebyshev_polynomial_v
from .polynomials import chebyshev_polynomial_w as chebyshev_polynomial_w
from .polynomials import hermite_polynomial_h as hermite_polynomial_h
from .polynomials import hermite_polynomial_he as hermite_polynomial_he
from .polynomials import laguerre_polynomial_l as laguerre_polynomial_l
from .polynomials import legendre_polynomial_p as legendre_polynomial_p
from .polynomials import shifted_chebyshev_polynomial_t as shifted_chebyshev_polynomial_t
from .polynomials import shifted_chebyshev_polynomial_u as shifted_chebyshev_polynomial_u
from .polynomials import shifted_chebyshev_polynomial_v as shifted_chebyshev_polynomial_v
from .polynomials import shifted_chebyshev_polynomial_w as shifted_chebyshev_polynomial_w

# *** exponentials and logarithms

entr = function_of(Tensor.entr)
exp2 = function_of(Tensor.exp2)
expm1 = function_of(Tensor.expm1)
log1p = function_of(Tensor.log1p)
log_softmax = function_of(Tensor.log_softmax)
logit = function_of(Tensor.logit)
logsumexp = function_of(Tensor.logsumexp)
softmax = function_of(Tensor.softmax)

# *** the error function and the normal distribution

erf = function_of(Tensor.erf)
erfc = function_of(Tensor.erfc)
erfcx = function_of(Tensor.erfcx)
erfinv = function_of(Tensor.erfinv)
expit = function_of(Tensor.sigmoid)
log_ndtr = function_of(Tensor.log_ndtr)
ndtr = function_of(Tensor.ndtr)
ndtri = function_of(Tensor.ndtri)

# *** the gamma function

digamma = function_of(Tensor.digamma)
gammainc = function_of(Tensor.igamma)
gammaincc = function_of(Tensor.igammac)
gammaln = function_of(Tensor.lgamma)
multigammaln = function_of(Tensor.multigammaln)
psi = function_of(Tensor.digamma)


def polygamma(n: int, input: Tensor) -> Tensor:
    """The n-th derivative of `digamma`.

    >>> round(special.polygamma(1, Tensor([1.0])).item(), 6)
    1.644934
    """
    return input.polygamma(n)


# *** Bessel functions that Tensor has, and the rest

i0 = function_of(Tensor.i0)
i0e = function_of(Tensor.i0e)
i1 = function_of(Tensor.i1)
i1e = function_of(Tensor.i1e)
modified_bessel_i0 = function_of(Tensor.i0)
modified_bessel_i1 = function_of(Tensor.i1)
round = function_of(Tensor.round)
sinc = function_of(Tensor.sinc)

check_functions(globals())

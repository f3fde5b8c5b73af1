"""Orthogonal polynomials of a degree n, by their recurrences in n.

n is a number, or a tensor of degrees that broadcasts with the variable: then it is read, for the greatest.
A fraction is cut off, as PyTorch does; of a negative degree the polynomial is 0. Chebyshev's of a degree (a
number) above 64 are sines and cosines, whose error grows with n and not with n². What PyTorch has no slopes
of has them here.

Sources: Abramowitz and Stegun, Handbook of Mathematical Functions (1964), chapter 22 (22.7, 22.3.15,
22.3.16); NIST's Digital Library of Mathematical Functions, 18.5 and 18.9 (third and fourth kind).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..dtype import dtypes
from ..shape import broadcast_shapes
from ..tensor import Tensor
from ..tensor.arguments import at_most

Step = Callable[[int, Tensor, Tensor, Tensor], Tensor]
#: Up to this degree Chebyshev's polynomials are recurrences.
MOST_RECURRED = 64
#: The greatest degree of a recurrence: each step is recorded by itself.
MOST_STEPS = 1 << 10


# *** Chebyshev's


def chebyshev_polynomial_t(input: Tensor | float, n: Tensor | float) -> Tensor:
    """Chebyshev's polynomials of the first kind: T_n(cos θ) = cos nθ.

    >>> special.chebyshev_polynomial_t(Tensor([0.5]), 3).tolist()
    [-1.0]
    """
    return _polynomial("chebyshev_polynomial_t", input, n, lambda x: x, _chebyshev, _far_t)


def chebyshev_polynomial_u(input: Tensor | float, n: Tensor | float) -> Tensor:
    """Chebyshev's polynomials of the second kind: U_n(cos θ) = sin (n + 1)θ / sin θ.

    >>> special.chebyshev_polynomial_u(Tensor([0.5]), 2).tolist()
    [0.0]
    """
    return _polynomial("chebyshev_polynomial_u", input, n, lambda x: x * 2.0, _chebyshev, _far_u)


def chebyshev_polynomial_v(input: Tensor | float, n: Tensor | float) -> Tensor:
    """Chebyshev's polynomials of the third kind: V_n(cos θ) = cos (n + 1/2)θ / cos θ/2.

    >>> special.chebyshev_polynomial_v(Tensor([0.5]), 2).tolist()
    [-1.0]
    """
    return _polynomial("chebyshev_polynomial_v", input, n, lambda x: x * 2.0 - 1.0, _chebyshev, _far_v)


def chebyshev_polynomial_w(input: Tensor | float, n: Tensor | float) -> Tensor:
    """Chebyshev's polynomials of the fourth kind: W_n(cos θ) = sin (n + 1/2)θ / sin θ/2.

    >>> special.chebyshev_polynomial_w(Tensor([0.5]), 2).tolist()
    [1.0]
    """
    return _polynomial("chebyshev_polynomial_w", input, n, lambda x: x * 2.0 + 1.0, _chebyshev, _far_w)


def shifted_chebyshev_polynomial_t(input: Tensor | float, n: Tensor | float) -> Tensor:
    """T_n(2x - 1), orthogonal on [0, 1].

    >>> special.shifted_chebyshev_polynomial_t(Tensor([1.0]), 3).tolist()
    [1.0]
    """
    return chebyshev_polynomial_t(_shifted(input, n), n)


def shifted_chebyshev_polynomial_u(input: Tensor | float, n: Tensor | float) -> Tensor:
    """U_n(2x - 1), orthogonal on [0, 1].

    >>> special.shifted_chebyshev_polynomial_u(Tensor([1.0]), 3).tolist()
    [4.0]
    """
    return chebyshev_polynomial_u(_shifted(input, n), n)


def shifted_chebyshev_polynomial_v(input: Tensor | float, n: Tensor | float) -> Tensor:
    """V_n(2x - 1), orthogonal on [0, 1].

    >>> special.shifted_chebyshev_polynomial_v(Tensor([1.0]), 3).tolist()
    [1.0]
    """
    return chebyshev_polynomial_v(_shifted(input, n), n)


def shifted_chebyshev_polynomial_w(input: Tensor | float, n: Tensor | float) -> Tensor:
    """W_n(2x - 1), orthogonal on [0, 1].

    >>> special.shifted_chebyshev_polynomial_w(Tensor([1.0]), 3).tolist()
    [7.0]
    """
    return chebyshev_polynomial_w(_shifted(input, n), n)


# *** others


def hermite_polynomial_h(input: Tensor | float, n: Tensor | float) -> Tensor:
    """The physicists' Hermite polynomials: H_(k+1) = 2x·H_k - 2k·H_(k-1).

    >>> special.hermite_polynomial_h(Tensor([1.0]), 2).tolist()
    [2.0]
    """
    return _polynomial(
        "hermite_polynomial_h", input, n, lambda x: x * 2.0, lambda k, x, p, q: x * p * 2.0 - q * (2.0 * k)
    )


def hermite_polynomial_he(input: Tensor | float, n: Tensor | float) -> Tensor:
    """The probabilists' Hermite polynomials: He_(k+1) = x·He_k - k·He_(k-1).

    >>> special.hermite_polynomial_he(Tensor([2.0]), 2).tolist()
    [3.0]
    """
    return _polynomial(
        "hermite_polynomial_he", input, n, lambda x: x, lambda k, x, p, q: x * p - q * float(k)
    )


def laguerre_polynomial_l(input: Tensor | float, n: Tensor | float) -> Tensor:
    """Laguerre's polynomials: (k + 1)·L_(k+1) = (2k + 1 - x)·L_k - k·L_(k-1).

    >>> special.laguerre_polynomial_l(Tensor([2.0]), 2).tolist()
    [-1.0]
    """
    return _polynomial(
        "laguerre_polynomial_l",
        input,
        n,
        lambda x: 1.0 - x,
        lambda k, x, p, q: ((2.0 * k + 1.0 - x) * p - q * float(k)) / (k + 1.0),
    )


def legendre_polynomial_p(input: Tensor | float, n: Tensor | float) -> Tensor:
    """Legendre's polynomials: (k + 1)·P_(k+1) = (2k + 1)·x·P_k - k·P_(k-1).

    >>> special.legendre_polynomial_p(Tensor([2.0]), 2).tolist()
    [5.5]
    """
    return _polynomial(
        "legendre_polynomial_p",
        input,
        n,
        lambda x: x,
        lambda k, x, p, q: (x * p * (2.0 * k + 1.0) - q * float(k)) / (k + 1.0),
    )


# *** recurrences


def _polynomial(
    name: str,
    input: Any,
    n: Any,
    first: Callable[[Tensor], Tensor],
    step: Step,
    far: Callable[[Tensor, int], Tensor] | None = None,
) -> Tensor:
    """p_n(x) from p_0 = 1, p_1 = first(x) and p_(k+1) = step(k, x, p_k, p_(k-1)).

    far  the same in another way, for great degrees
    """
    variable, degree = _operands(input, n)
    narrow, x = variable.dtype, variable._wide()
    one = not isinstance(degree, Tensor)
    highest = int(degree) if one else int(degree.max().item()) if degree.numel() else -1
    if one and far is not None and highest > MOST_RECURRED:
        return far(x, highest).cast(narrow)
    at_most(name, "degrees", highest, MOST_STEPS)
    before, last = x._filled(0.0), x._filled(1.0)
    found = last if one else (degree == 0).where(last, 0.0)
    for k in range(highest):
        before, last = last, step(k, x, last, before) if k else first(x)
        found = last if one else (degree == k + 1).where(last, found)
    return (x._filled(0.0) if one and highest < 0 else found).cast(narrow)


def _operands(input: Any, n: Any) -> tuple[Tensor, Any]:
    """The variable as a float tensor, and the degree as a number or a tensor of its shape."""
    if not isinstance(n, Tensor):
        return (input if isinstance(input, Tensor) else Tensor(input))._float(), int(n)
    x, degrees = n._in_common_float(input)[::-1]
    shape = broadcast_shapes(x.shape, degrees.shape)
    return x.expand(shape), degrees.trunc().cast(dtypes.int32).expand(shape)


def _shifted(input: Any, n: Any) -> Tensor:
    return _operands(input, n)[0] * 2.0 - 1.0


def _chebyshev(k: int, x: Tensor, last: Tensor, before: Tensor) -> Tensor:
    return x * last * 2.0 - before


# *** of great degrees: sines and cosines of the angle between -1 and 1, hyperbolic ones outside


def _by_angle(x: Tensor, inside: Callable[[Tensor], Tensor], outside: Callable[[Tensor], Tensor]) -> Tensor:
    within = x.abs() <= 1.0
    return within.where(inside(within.where(x, 0.0).acos()), outside(within.where(2.0, x.abs()).acosh()))


def _mirrored(x: Tensor, n: int, value: Tensor) -> Tensor:
    """The value for |x| as that for x, of a polynomial that is even or odd as n is."""
    return ((x < -1.0).where(-value, value)) if n % 2 else value


def _far_t(x: Tensor, n: int) -> Tensor:
    return _mirrored(x, n, _by_angle(x, lambda a: (a * n).cos(), lambda a: (a * n).cosh()))


def _far_u(x: Tensor, n: int) -> Tensor:
    end = x.abs() == 1.0
    inner = end.where(0.0, x)
    value = _by_angle(
        inner, lambda a: (a * (n + 1)).sin() / a.sin(), lambda a: (a * (n + 1)).sinh() / a.sinh()
    )
    sign = -1.0 if n % 2 else 1.0
    ends = ((x < 0).where(sign, 1.0) * float(n + 1)).cast(x.dtype)
    return end.where(ends, _mirrored(x, n, value))


def _far_v(x: Tensor, n: int) -> Tensor:
    return _halves(x, n, False)


def _far_w(x: Tensor, n: int) -> Tensor:
    return _halves(x, n, True)


def _halves(x: Tensor, n: int, fourth: bool) -> Tensor:
    """V_n, or W_n where `fourth`: V_n(-x) = (-1)^n W_n(x), so values from 0 on are enough."""
    sign = -1.0 if n % 2 else 1.0
    size = x.abs()
    angle, apart = (size <= 1.0).where(size, 0.0).acos(), (size > 1.0).where(size, 2.0).acosh()
    of_v = (size <= 1.0).where(
        (angle * (n + 0.5)).cos() / (angle * 0.5).cos(), (apart * (n + 0.5)).cosh() / (apart * 0.5).cosh()
    )
    some = angle == 0.0  # x = 1, where W is 2n + 1
    of_w = (size <= 1.0).where(
        some.where(2.0 * n + 1.0, (angle * (n + 0.5)).sin() / some.where(1.0, (angle * 0.5).sin())),
        (apart * (n + 0.5)).sinh() / (apart * 0.5).sinh(),
    )
    right, left = (of_w, of_v) if fourth else (of_v, of_w)
    return (x < 0).where(left * sign, right)

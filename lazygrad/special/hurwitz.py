"""Hurwitz' zeta function.

Source: Abramowitz and Stegun, Handbook of Mathematical Functions (1964), 23.1.30 (Euler and Maclaurin);
NIST's Digital Library of Mathematical Functions, 25.11.
"""

from __future__ import annotations

import math

from ..tensor import Tensor
from ..tensor.elementwise.gamma import BERNOULLI
from ..tensor.transforms.function import Function

#: So many terms are summed one by one: from there on the remainder holds for every q above -9.
TERMS = 20


def zeta(input: Tensor | float, other: Tensor | float) -> Tensor:
    """ζ(x, q) = Σ 1 / (q + k)^x over k = 0, 1, ...; x is `input`, q is `other`.

    Infinite at x = 1, and where q is 0 or a negative whole number; NaN for x below 1, for a negative q
    where x is no whole number, and for q below -9.

    >>> round(special.zeta(Tensor([2.0]), 1.0).item(), 5)
    1.64493
    """
    if isinstance(input, Tensor):
        return input._sloped_pair(_Zeta.apply, other)
    x = other._operand(input) if isinstance(other, Tensor) else Tensor(input)
    return x._sloped_pair(_Zeta.apply, other)


class _Zeta(Function):
    def forward(self, x: Tensor, q: Tensor) -> Tensor:
        self.save_for_backward(x, q)
        return _value(x, q)

    def backward(self, grad: Tensor) -> tuple[Tensor | None, Tensor]:
        x, q = self.saved_tensors
        if self.needs_input_grad[0]:
            raise NotImplementedError("zeta has no gradient with respect to x, only to q")
        return None, grad * -x * _Zeta.apply(x + 1.0, q)


def _value(x: Tensor, q: Tensor) -> Tensor:
    pole = (q <= 0) & (q == q.floor())
    whole = x == x.floor()
    wrong = (x < 1) | ((q <= 0) & whole.logical_not()) | (q < -9.0) | (x != x) | (q != q)
    at_1 = x == 1
    usual = (wrong | pole | at_1).logical_not()
    s, a = usual.where(x, 2.0), usual.where(q, 1.0)
    odd = (s * 0.5 != (s * 0.5).floor()) & whole
    total = s._filled(0.0)
    for k in range(TERMS):
        base = a + float(k)
        power = base.abs().pow(-s)
        total = total + ((base < 0) & odd).where(-power, power)
    far = a + float(TERMS)
    power = far.pow(-s)
    rest = power * (far / (s - 1.0) + 0.5)
    factor, term, square = s, power / far, (far * far).reciprocal()
    for k, bernoulli in enumerate(BERNOULLI):
        # a factor beyond the range of floats meets a power that is 0 there
        part = term * factor * (bernoulli / math.factorial(2 * k + 2))
        rest = rest + (power == 0).where(0.0, part)
        factor = factor * (s + (2.0 * k + 1.0)) * (s + (2.0 * k + 2.0))
        term = term * square
    value = total + rest
    return (at_1 | (pole & (x > 1))).where(math.inf, wrong.where(math.nan, value))

"""Results that do not change with a tensor they are of: their gradient is zeros, and not missing.

The rule is PyTorch's. A float that an operation makes of a float requires a gradient if that does, also where
the slope is 0 everywhere: `x**0`, `floor`, `sign`, numbers drawn by `x.bernoulli()`, what overwrites x. What
leaves the floats on the way does not, and neither does what is made of it: comparisons, `argmax`, casts to
integers and back. Nor what only takes a tensor's shape, as `zeros_like`.
"""

from __future__ import annotations

from ..face import Tensor
from .function import Function


class Flat(Function):
    """`Flat.apply(x, value)`: the value, which x has no influence on, as a result of both."""

    def forward(self, x: Tensor, value: Tensor) -> Tensor:
        self.of = x
        return value

    def backward(self, grad: Tensor) -> tuple[Tensor, Tensor]:
        return self.of._filled(0.0), grad

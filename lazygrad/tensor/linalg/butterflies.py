"""Fourier transforms that a routine computes, on processors: see `direct/routines/fourier.py`.

A transform is linear, so its gradient is one too: that of the inverse with the same factor, times the factors
of numbers that stand for two.
"""

from __future__ import annotations

from typing import Any

from ...codegen.direct_kernels import ROUTINES, routine_of
from ...config import FFT
from ...dtype import numpy_name
from ...schedule.plan import target_of
from ...shape import vmax
from ..face import Tensor
from ..transforms.function import Function
from .routines import routine

#: Sizes below this one are products with a matrix: there is too little to fill vectors with.
LEAST = 33


def has_butterflies(x: Tensor, n: int, real: bool = False) -> bool:
    """Whether a routine transforms so many numbers: not on a grid, where one thread would.

    Real ones are transformed as half as many complex ones.
    """
    pairs, rest = divmod(n, 2 if real else 1)
    fourier = ROUTINES.get("fourier")
    known = rest == 0 and n >= LEAST and all(isinstance(size, int) for size in x.shape)
    if not (FFT and known and fourier is not None and fourier.takes is not None and fourier.takes(pairs)):
        return False
    names = (x.device,) if isinstance(x.device, str) else x.device
    return not any(target_of(name).grid for name in names)


def _table(name: str, like: Tensor, *asked: Any) -> Tensor:
    """What a routine reads beside its source."""
    table: Any = routine_of(name).table
    made: Tensor = type(like)(table(*asked).astype(numpy_name(like.dtype)), device=like.device)
    return made


class ComplexTransform(Function):
    """Of (…, n, 2), times a factor."""

    def forward(self, x: Tensor, inverse: bool, factor: float) -> Tensor:
        self.inverse, self.factor, n = inverse, factor, vmax(x.shape[-2])
        turns = _table("fourier", x, n, inverse, factor)
        sizes = n, int(inverse), int(factor != 1.0)
        return routine("fourier", sizes, x, turns, core=(2, 1)).reshape(x.shape)

    def backward(self, grad: Tensor) -> tuple[Tensor, None, None]:
        return ComplexTransform.apply(grad, not self.inverse, self.factor), None, None


class RealTransform(Function):
    """(…, n) → (…, n / 2 + 1, 2), n even, times a factor."""

    def forward(self, x: Tensor, factor: float) -> Tensor:
        self.factor, n = factor, vmax(x.shape[-1])
        turns = _table("real_fourier", x, n, False, factor)
        made = routine("real_fourier", (n, int(factor != 1.0)), x, turns, core=(1, 1))
        return made.reshape((*x.shape[:-1], n // 2 + 1, 2))

    def backward(self, grad: Tensor) -> tuple[Tensor, None]:
        return RealInverse.apply(grad * _mirrored(grad, 0.5), self.factor), None


class RealInverse(Function):
    """(…, n / 2 + 1, 2) → (…, n), times a factor: numbers between the first and the last stand for two."""

    def forward(self, x: Tensor, factor: float) -> Tensor:
        self.factor, n = factor, 2 * (vmax(x.shape[-2]) - 1)
        turns = _table("real_inverse", x, n, True, factor)
        return routine("real_inverse", (n, int(factor != 1.0)), x, turns, core=(2, 1))

    def backward(self, grad: Tensor) -> tuple[Tensor, None]:
        made: Tensor = RealTransform.apply(grad, self.factor)
        return made * _mirrored(made, 2.0), None


def _mirrored(x: Tensor, factor: float) -> Tensor:
    """A factor for the numbers that stand for two, 1 for the first and the last."""
    last = vmax(x.shape[-2]) - 1
    place = x.arange(last + 1, device=x.device)
    return ((place == 0) | (place == last)).where(1.0, factor).unsqueeze(-1).cast(x.dtype)

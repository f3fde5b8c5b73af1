"""Fourier transforms that a ROUTINE computes, on processors: see `codegen/routines/fourier.py`.

A transform is linear, so its gradient is one too: that of the inverse, with the factors of numbers that stand
for two. Without a factor in either direction, as all here are.
"""

from __future__ import annotations

from typing import Any

from ...codegen.routines.fourier import MOST, real_rotations, rotations, stages
from ...config import FFT
from ...dtype import numpy_name
from ...schedule.plan import target_of
from ...shape import vmax
from ..face import Tensor
from ..transforms.function import Function
from .routines import routine

#: Sizes below this one are products with a matrix: there is too little to fill vectors with.
LEAST = 33


def has_butterflies(x: Tensor, n: int) -> bool:
    """Whether a routine transforms so many complex numbers: not on a grid, where one thread would."""
    if not (FFT and LEAST <= n <= MOST and stages(n) and all(isinstance(size, int) for size in x.shape)):
        return False
    names = (x.device,) if isinstance(x.device, str) else x.device
    return not any(target_of(name).grid for name in names)


def _table(values: Any, like: Tensor) -> Tensor:
    made: Any = type(like)(values.astype(numpy_name(like.dtype)), device=like.device)
    return made  # type: ignore[no-any-return]


class ComplexTransform(Function):
    """Of (…, n, 2)."""

    def forward(self, x: Tensor, inverse: bool) -> Tensor:
        self.inverse, n = inverse, vmax(x.shape[-2])
        turns = _table(rotations(n, inverse), x)
        return routine("fourier", (n, int(inverse)), x, turns, core=(2, 1)).reshape(x.shape)

    def backward(self, grad: Tensor) -> tuple[Tensor, None]:
        return ComplexTransform.apply(grad, not self.inverse), None


class RealTransform(Function):
    """(…, n) → (…, n / 2 + 1, 2), n even."""

    def forward(self, x: Tensor) -> Tensor:
        n = vmax(x.shape[-1])
        made = routine("real_fourier", (n,), x, _table(real_rotations(n, False), x), core=(1, 1))
        return made.reshape((*x.shape[:-1], n // 2 + 1, 2))

    def backward(self, grad: Tensor) -> Tensor:
        made: Tensor = RealInverse.apply(grad * _mirrored(grad, 0.5))
        return made


class RealInverse(Function):
    """(…, n / 2 + 1, 2) → (…, n): numbers between the first and the last stand for two."""

    def forward(self, x: Tensor) -> Tensor:
        n = 2 * (vmax(x.shape[-2]) - 1)
        return routine("real_inverse", (n,), x, _table(real_rotations(n, True), x), core=(2, 1))

    def backward(self, grad: Tensor) -> Tensor:
        made: Tensor = RealTransform.apply(grad)
        return made * _mirrored(made, 2.0)


def _mirrored(x: Tensor, factor: float) -> Tensor:
    """A factor for the numbers that stand for two, 1 for the first and the last."""
    last = vmax(x.shape[-2]) - 1
    place = x.arange(last + 1, device=x.device)
    return ((place == 0) | (place == last)).where(1.0, factor).unsqueeze(-1).cast(x.dtype)

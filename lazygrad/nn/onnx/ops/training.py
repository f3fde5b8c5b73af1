"""Steps of optimizers (ai.onnx.preview.training)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....tensor import Tensor
from ..table import TRAINING, op


def _groups(tensors: tuple[Tensor, ...], kinds: int) -> list[tuple[Tensor, ...]]:
    """x₁ x₂ ... g₁ g₂ ... v₁ v₂ ... → (x₁, g₁, v₁), ..."""
    count = len(tensors) // kinds
    return [tensors[number::count] for number in range(count)]


def _results(found: Sequence[tuple[Tensor, ...]]) -> Any:
    return tuple(tensor for kind in zip(*found, strict=True) for tensor in kind)


@op("Adagrad", domain=TRAINING)
def adagrad(
    r: Tensor,
    t: Tensor,
    *tensors: Tensor,
    decay_factor: float = 0.0,
    epsilon: float = 0.0,
    norm_coefficient: float = 0.0,
) -> Any:
    rate = r / (1 + t.cast(r.dtype) * decay_factor)
    found = []
    for x, gradient, squares in _groups(tensors, 3):
        slope = gradient + norm_coefficient * x
        total = squares + slope * slope
        found.append((x - rate * slope / (total.sqrt() + epsilon), total))
    return _results(found)


@op("Adam", domain=TRAINING)
def adam(
    r: Tensor,
    t: Tensor,
    *tensors: Tensor,
    alpha: float = 0.9,
    beta: float = 0.999,
    epsilon: float = 0.0,
    norm_coefficient: float = 0.0,
    norm_coefficient_post: float = 0.0,
) -> Any:
    steps = t.cast(r.dtype)
    corrected = r * (1 - beta**steps).sqrt() / (1 - alpha**steps)
    rate = (t > 0).where(corrected, r)
    found = []
    for x, gradient, first, second in _groups(tensors, 4):
        slope = gradient + norm_coefficient * x
        mean = alpha * first + (1 - alpha) * slope
        square = beta * second + (1 - beta) * slope * slope
        moved = x - rate * mean / (square.sqrt() + epsilon)
        found.append(((1 - norm_coefficient_post) * moved, mean, square))
    return _results(found)


@op("Momentum", domain=TRAINING)
def momentum(
    r: Tensor, t: Tensor, *tensors: Tensor, alpha: float, beta: float, mode: str, norm_coefficient: float
) -> Any:
    first = t == 0
    found = []
    for x, gradient, velocity in _groups(tensors, 3):
        slope = gradient + norm_coefficient * x
        velocity = alpha * velocity + first.where(1.0, beta) * slope
        step = slope + alpha * velocity if mode == "nesterov" else velocity
        found.append((x - r * step, velocity))
    return _results(found)

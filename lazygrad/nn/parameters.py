"""What all layers share: the memory of their weights, and the sizes that a user gives.

Weights begin as in PyTorch. They have memory of their own from the start, so that loading weights and
training write in place; nothing is computed before it is needed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..tensor import Tensor

Sizes = int | Sequence[int]


def parameter(value: Tensor) -> Tensor:
    """Memory of its own that begins with `value` and is trained."""
    return buffer(value).requires_grad_()


def buffer(value: Tensor) -> Tensor:
    """Memory of its own that begins with `value`: part of a layer's state, and not trained."""
    return value.empty_like().assign(value).requires_grad_(False)


def uniform(*shape: int, fan_in: int, **more: Any) -> Tensor:
    """Uniform in ±1/sqrt(fan_in): PyTorch's weights (kaiming_uniform with a = sqrt(5)) and biases.

    more  device, dtype, generator
    """
    bound = 1.0 / math.sqrt(fan_in) if fan_in else 0.0
    return parameter(Tensor.uniform(*shape, low=-bound, high=bound, **more))


def count(name: str, value: Any, least: int = 1) -> int:
    """A size that a user gave: a whole number."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number, not {value!r}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, not {value}")
    return value


def counts(name: str, value: Sizes, number: int, least: int = 1) -> tuple[int, ...]:
    """One whole number for each of `number` axes."""
    values = tuple(value) if isinstance(value, Sequence) else (value,) * number
    if len(values) != number:
        raise ValueError(f"{name} must be one number or {number} of them, not {value!r}")
    return tuple(count(name, v, least) for v in values)


def need_tensors(layer: Any, *values: Any) -> None:
    """What a layer is called with are Tensors."""
    for value in values:
        if not isinstance(value, Tensor):
            kind = type(value).__name__
            raise TypeError(f"{type(layer).__name__} takes a Tensor, not {kind}: Tensor(x) makes one")


def probability(name: str, value: float) -> float:
    """A probability that a user gave."""
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must be a probability, in [0, 1], not {value}")
    return value

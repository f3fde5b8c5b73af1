"""Random tensors. A seed that a file gives begins a stream of its own; without one lazygrad's stream goes
on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....tensor import Tensor
from ..table import op
from ..values import DTYPE_OF


def _drawn(draw: Callable[..., Tensor], shape: Any, seed: float | None) -> Tensor:
    """Tensors of a seed are numpy's: the same in every run, and constant, as the file says."""
    if seed is None:
        return draw(*shape)
    generator = np.random.default_rng(int(seed))
    kind = generator.standard_normal if draw is Tensor.randn else generator.random
    return Tensor(kind(tuple(shape)).astype(np.float32))


def _normal(shape: Any, dtype: int, mean: float, scale: float, seed: float | None) -> Tensor:
    return (_drawn(Tensor.randn, shape, seed) * scale + mean).cast(DTYPE_OF[dtype])


def _uniform(shape: Any, dtype: int, low: float, high: float, seed: float | None) -> Tensor:
    return (_drawn(Tensor.rand, shape, seed) * (high - low) + low).cast(DTYPE_OF[dtype])


@op("RandomNormal", random=True)
def random_normal(
    *, shape: Any, dtype: int = 1, mean: float = 0.0, scale: float = 1.0, seed: float | None = None
) -> Tensor:
    return _normal(shape, dtype, mean, scale, seed)


@op("RandomNormalLike", random=True)
def random_normal_like(
    x: Tensor, *, dtype: int | None = None, mean: float = 0.0, scale: float = 1.0, seed: float | None = None
) -> Tensor:
    y = _normal(x.shape, 1, mean, scale, seed)
    return y.cast(x.dtype if dtype is None else DTYPE_OF[dtype])


@op("RandomUniform", random=True)
def random_uniform(
    *, shape: Any, dtype: int = 1, low: float = 0.0, high: float = 1.0, seed: float | None = None
) -> Tensor:
    return _uniform(shape, dtype, low, high, seed)


@op("RandomUniformLike", random=True)
def random_uniform_like(
    x: Tensor, *, dtype: int | None = None, low: float = 0.0, high: float = 1.0, seed: float | None = None
) -> Tensor:
    y = _uniform(x.shape, 1, low, high, seed)
    return y.cast(x.dtype if dtype is None else DTYPE_OF[dtype])


@op("Bernoulli", random=True)
def bernoulli(x: Tensor, *, dtype: int | None = None, seed: float | None = None) -> Tensor:
    drawn = _drawn(Tensor.rand, x.shape, seed) < x
    return drawn.cast(x.dtype if dtype is None else DTYPE_OF[dtype])


@op("Multinomial", random=True)
def multinomial(x: Tensor, *, dtype: int = 6, sample_size: int = 1, seed: float | None = None) -> Tensor:
    """x holds logarithms of weights; a class is where a uniform number falls in their running sum."""
    running = x.softmax(-1).cumsum(-1)
    places = _drawn(Tensor.rand, (x.shape[0], sample_size, 1), seed)
    return (running.unsqueeze(1) <= places).sum(-1).minimum(x.shape[1] - 1).cast(DTYPE_OF[dtype])

"""Random numbers, by lazygrad's counters. PyTorch's generator gives each call its seed (replay.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...tensor import Tensor
from ..dtypes import from_torch_dtype
from ..table import aten
from .creation import dtype_of


@aten("rand", random=True)
def rand(size: Sequence[int], *, dtype: Any = None, **_: Any) -> Tensor:
    return Tensor.rand(*size, dtype=dtype_of(dtype))


@aten("randn", random=True)
def randn(size: Sequence[int], *, dtype: Any = None, **_: Any) -> Tensor:
    return Tensor.randn(*size, dtype=dtype_of(dtype))


@aten("rand_like", random=True)
def rand_like(x: Tensor, *, dtype: Any = None, **_: Any) -> Tensor:
    return Tensor.rand(*x.shape, dtype=x.dtype if dtype is None else from_torch_dtype(dtype))


@aten("randn_like", random=True)
def randn_like(x: Tensor, *, dtype: Any = None, **_: Any) -> Tensor:
    return Tensor.randn(*x.shape, dtype=x.dtype if dtype is None else from_torch_dtype(dtype))


@aten("randint.low", random=True)
def randint(low: int, high: int, size: Sequence[int], *, dtype: Any = None, **_: Any) -> Tensor:
    return Tensor.randint(*size, low=low, high=high, dtype=dtype_of(dtype, 0))


@aten("randint.default", random=True)
def randint_below(high: int, size: Sequence[int], *, dtype: Any = None, **_: Any) -> Tensor:
    return randint(0, high, size, dtype=dtype)


@aten("randperm", random=True)
def randperm(n: int, *, dtype: Any = None, **_: Any) -> Tensor:
    return Tensor.randperm(n, dtype=dtype_of(dtype, 0))


@aten("native_dropout", random=True)
def native_dropout(x: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """What is kept is scaled, and the mask of what is kept."""
    if train is False or p == 0:
        return x, Tensor.ones(x.shape, dtype="bool")
    if p == 1:
        return x * 0, Tensor.zeros(x.shape, dtype="bool")
    kept = Tensor.rand(*x.shape) >= p
    return kept.where(x * (1 / (1 - p)), 0), kept


@aten("bernoulli.p", random=True)
def bernoulli(x: Tensor, p: float = 0.5, **_: Any) -> Tensor:
    return (Tensor.rand(*x.shape) < p).cast(x.dtype)


@aten("bernoulli.default", random=True)
def bernoulli_of(x: Tensor, **_: Any) -> Tensor:
    return (Tensor.rand(*x.shape) < x).cast(x.dtype)


@aten("uniform", random=True)
def uniform(x: Tensor, low: float = 0.0, high: float = 1.0, **_: Any) -> Tensor:
    return Tensor.rand(*x.shape, dtype=x.dtype) * (high - low) + low


@aten("normal_functional", random=True)
def normal(x: Tensor, mean: float = 0.0, std: float = 1.0, **_: Any) -> Tensor:
    return Tensor.randn(*x.shape, dtype=x.dtype) * std + mean


@aten("exponential", random=True)
def exponential(x: Tensor, rate: float = 1.0, **_: Any) -> Tensor:
    return -(1 - Tensor.rand(*x.shape, dtype=x.dtype)).log() / rate

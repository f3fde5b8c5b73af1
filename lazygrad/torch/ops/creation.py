"""Tensors of numbers that come from nowhere, and conversions."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch

from ...dtype import dtypes
from ...tensor import Tensor
from ..dtypes import from_torch_dtype
from ..table import aten


def dtype_of(dtype: torch.dtype | None, value: Any = 0.0) -> Any:
    """lazygrad's dtype: the one that is asked for, or the default of such a value."""
    if dtype is None:
        kind = torch.bool if isinstance(value, bool) else torch.int64 if isinstance(value, int) else None
        dtype = kind or torch.get_default_dtype()
    return from_torch_dtype(dtype)


@aten("full")
def full(size: Sequence[int], value: Any, *, dtype: Any = None, **_: Any) -> Tensor:
    return Tensor.full(tuple(size), value, dtype=dtype_of(dtype, value))


@aten("full_like")
def full_like(x: Tensor, value: Any, *, dtype: Any = None, **_: Any) -> Tensor:
    return Tensor.full(x.shape, value, dtype=x.dtype if dtype is None else dtype_of(dtype))


@aten("empty.memory_format", "zeros", "empty_strided", "empty_permuted")
def zeros(size: Sequence[int], *_: Any, dtype: Any = None, **__: Any) -> Tensor:
    """What is not written is 0: PyTorch promises nothing of it."""
    return Tensor.zeros(tuple(size), dtype=dtype_of(dtype))


@aten("new_empty_strided", "new_empty")
def new_zeros(x: Tensor, size: Sequence[int], *_: Any, dtype: Any = None, **__: Any) -> Tensor:
    return Tensor.zeros(tuple(size), dtype=x.dtype if dtype is None else dtype_of(dtype))


@aten("zeros_like", "empty_like")
def zeros_like(x: Tensor, *, dtype: Any = None, **_: Any) -> Tensor:
    return Tensor.zeros(x.shape, dtype=x.dtype if dtype is None else dtype_of(dtype))


@aten("ones")
def ones(size: Sequence[int], *, dtype: Any = None, **_: Any) -> Tensor:
    return Tensor.ones(tuple(size), dtype=dtype_of(dtype))


@aten("ones_like")
def ones_like(x: Tensor, *, dtype: Any = None, **_: Any) -> Tensor:
    return Tensor.ones(x.shape, dtype=x.dtype if dtype is None else dtype_of(dtype))


@aten("arange.start_step", "arange.start")
def arange(start: Any, end: Any, step: Any = 1, *, dtype: Any = None, **_: Any) -> Tensor:
    whole = all(isinstance(each, int) for each in (start, end, step))
    return Tensor.arange(start, end, step, dtype=dtype_of(dtype, 0 if whole else 0.0))


@aten("arange.default")
def arange_to(end: Any, *, dtype: Any = None, **_: Any) -> Tensor:
    return arange(0, end, dtype=dtype)


@aten("prims.iota.default")
def iota(length: int, *, start: int, step: int, dtype: Any, **_: Any) -> Tensor:
    return Tensor.arange(length, dtype=from_torch_dtype(dtype)) * step + start


@aten("scalar_tensor")
def scalar_tensor(value: Any, *, dtype: Any = None, **_: Any) -> Tensor:
    return Tensor(value, dtype=dtype_of(dtype, 0.0))


@aten("_to_copy")
def to_copy(x: Tensor, *, dtype: Any = None, device: Any = None, **_: Any) -> Tensor:
    if device is not None and torch.device(device).type != "cpu":
        raise NotImplementedError(f"moving a tensor to {device}")
    return x if dtype is None else _converted(x, dtype)


def _converted(x: Tensor, dtype: torch.dtype) -> Tensor:
    """In another dtype; what is too large for float8_e4m3fn is its largest number, if so in this release."""
    if dtype is torch.float8_e4m3fn and dtypes.is_float(x.dtype) and _is_saturated():
        x = x.clamp(-448.0, 448.0)
    return x.cast(from_torch_dtype(dtype))


@functools.cache
def _is_saturated() -> bool:
    return bool(torch.tensor(1e4).to(torch.float8_e4m3fn).float().isfinite())


@aten("prims.convert_element_type.default")
def convert_element_type(x: Tensor, dtype: Any) -> Tensor:
    return _converted(x, dtype)


@aten("eye")
def eye(rows: int, columns: int | None = None, *, dtype: Any = None, **_: Any) -> Tensor:
    return Tensor.eye(rows, columns, dtype=dtype_of(dtype))


@aten("tril_indices")
def tril_indices(rows: int, columns: int, offset: int = 0, **_: Any) -> Tensor:
    return Tensor.tril_indices(rows, columns, offset)


@aten("triu_indices")
def triu_indices(rows: int, columns: int, offset: int = 0, **_: Any) -> Tensor:
    return Tensor.triu_indices(rows, columns, offset)


@aten("_assert_tensor_metadata")
def assert_metadata(*_: Any, **__: Any) -> None:
    """PyTorch says of each tensor what its shape and dtype are, and that is compared (graph.py)."""

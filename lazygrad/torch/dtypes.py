"""PyTorch's dtypes and lazygrad's: the same types under two names."""

from __future__ import annotations

import torch

from ..dtype import DType, dtypes

_PAIRS = (
    (torch.float64, dtypes.float64),
    (torch.float32, dtypes.float32),
    (torch.float16, dtypes.float16),
    (torch.bfloat16, dtypes.bfloat16),
    (torch.float8_e4m3fn, dtypes.fp8e4m3),
    (torch.float8_e5m2, dtypes.fp8e5m2),
    (torch.int64, dtypes.int64),
    (torch.int32, dtypes.int32),
    (torch.int16, dtypes.int16),
    (torch.int8, dtypes.int8),
    (torch.uint64, dtypes.uint64),
    (torch.uint32, dtypes.uint32),
    (torch.uint16, dtypes.uint16),
    (torch.uint8, dtypes.uint8),
    (torch.bool, dtypes.bool),
)
_TO_LAZYGRAD, _TO_TORCH = dict(_PAIRS), {own: theirs for theirs, own in _PAIRS}


def has_dtype(dtype: torch.dtype) -> bool:
    """Whether lazygrad has such a type: it has no complex numbers."""
    return dtype in _TO_LAZYGRAD


def from_torch_dtype(dtype: torch.dtype) -> DType:
    """lazygrad's name of a dtype of PyTorch."""
    found = _TO_LAZYGRAD.get(dtype)
    if found is None:
        raise NotImplementedError(f"lazygrad has no dtype like {dtype}")
    return found


def to_torch_dtype(dtype: DType) -> torch.dtype:
    """PyTorch's name of a dtype."""
    return _TO_TORCH[dtype]

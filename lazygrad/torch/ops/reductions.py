"""Reductions, scans and sorts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import functional, linalg
from ...dtype import dtypes
from ...tensor import Tensor
from ..dtypes import from_torch_dtype
from ..table import aten


def axes(x: Tensor, dim: Any) -> Any:
    """The axes of a reduction: None, and a list of none, are all."""
    if dim is None or (isinstance(dim, (list, tuple)) and not dim):
        return None
    return dim if isinstance(dim, int) else tuple(dim)


def _wide(x: Tensor, dtype: Any) -> Any:
    """The dtype of a sum: whole numbers are added as int64."""
    if dtype is not None:
        return from_torch_dtype(dtype)
    return x.dtype if dtypes.is_float(x.dtype) else dtypes.int64


@aten("sum")
def total(x: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    return x.sum(axes(x, dim), keepdim, dtype=_wide(x, dtype)) if x.ndim else x.cast(_wide(x, dtype))


@aten("prod")
def product(x: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    return x.prod(axes(x, dim), keepdim, dtype=_wide(x, dtype)) if x.ndim else x.cast(_wide(x, dtype))


@aten("mean")
def mean(x: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    made = x if dtype is None else x.cast(from_torch_dtype(dtype))
    return made.mean(axes(x, dim), keepdim) if x.ndim else made


@aten("var.correction")
def variance(x: Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Tensor:
    return x.var(axes(x, dim), keepdim, 1 if correction is None else correction)


@aten("var.dim")
def variance_unbiased(x: Tensor, dim: Any, unbiased: bool = True, keepdim: bool = False) -> Tensor:
    return x.var(axes(x, dim), keepdim, int(unbiased))


@aten("var_mean.correction")
def variance_and_mean(
    x: Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    around = x.mean(axes(x, dim), keepdim)
    return variance(x, dim, correction=correction, keepdim=keepdim), around


@aten("amax")
def amax(x: Tensor, dim: Sequence[int] = (), keepdim: bool = False) -> Tensor:
    return x.max(axes(x, dim), keepdim) if x.ndim else x


@aten("amin")
def amin(x: Tensor, dim: Sequence[int] = (), keepdim: bool = False) -> Tensor:
    return x.min(axes(x, dim), keepdim) if x.ndim else x


@aten("max.default")
def maximum_of_all(x: Tensor) -> Tensor:
    return x.max()


@aten("min.default")
def minimum_of_all(x: Tensor) -> Tensor:
    return x.min()


@aten("max.dim")
def maximum_along(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    return x.max(dim, keepdim), x.argmax(dim, keepdim)


@aten("min.dim")
def minimum_along(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    return x.min(dim, keepdim), x.argmin(dim, keepdim)


@aten("argmax")
def argmax(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    return x.argmax(dim, keepdim)


@aten("argmin")
def argmin(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    return x.argmin(dim, keepdim)


@aten("any")
def any_of(x: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    return x.any(axes(x, dim), keepdim) if x.ndim else x != 0


@aten("all")
def all_of(x: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    return x.all(axes(x, dim), keepdim) if x.ndim else x != 0


@aten("cumsum")
def cumsum(x: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    return x.cast(_wide(x, dtype)).cumsum(dim) if x.ndim else x.cast(_wide(x, dtype))


@aten("cumprod")
def cumprod(x: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    return x.cast(_wide(x, dtype)).cumprod(dim) if x.ndim else x.cast(_wide(x, dtype))


@aten("sort.default")
def sort(x: Tensor, dim: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    return x.sort(dim, descending) if x.ndim else (x, Tensor.zeros(dtype=dtypes.int64))


@aten("sort.stable")
def sort_stably(
    x: Tensor, *, stable: bool | None = None, dim: int = -1, descending: bool = False
) -> tuple[Tensor, Tensor]:
    return sort(x, dim, descending)


@aten("topk")
def topk(
    x: Tensor, k: int, dim: int = -1, largest: bool = True, ordered: bool = True
) -> tuple[Tensor, Tensor]:
    return x.topk(k, dim, largest, ordered)


@aten("_softmax")
def softmax(x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    return x.softmax(dim, dtype=dtypes.float32 if half_to_float else None) if x.ndim else x.ones_like()


@aten("_log_softmax")
def log_softmax(x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    made = x.cast(dtypes.float32) if half_to_float else x
    return made.log_softmax(dim) if x.ndim else made.zeros_like()


@aten("logsumexp")
def logsumexp(x: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    return x.logsumexp(axes(x, dim), keepdim)


@aten("cummax")
def cummax(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    values, places = functional.cummax(x, dim)
    return values, places


@aten("cummin")
def cummin(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    values, places = functional.cummin(x, dim)
    return values, places


@aten("logcumsumexp")
def logcumsumexp(x: Tensor, dim: int) -> Tensor:
    return x.logcumsumexp(dim) if x.ndim else x


@aten("linalg_vector_norm")
def vector_norm(
    x: Tensor, order: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    made = x if dtype is None else x.cast(from_torch_dtype(dtype))
    if dim is None and not keepdim:
        return linalg.vector_norm(made.reshape(-1), order)
    return linalg.vector_norm(made, order, axes(x, dim), keepdim)


@aten("median.default")
def median(x: Tensor) -> Tensor:
    return x.median()


@aten("median.dim")
def median_along(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, ...]:
    return tuple(x.median(dim, keepdim))


@aten("nanmedian.default")
def nanmedian(x: Tensor) -> Tensor:
    return x.nanmedian()


@aten("nanmedian.dim")
def nanmedian_along(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, ...]:
    return tuple(x.nanmedian(dim, keepdim))


@aten("mode")
def mode(x: Tensor, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, ...]:
    return tuple(x.mode(dim, keepdim))


@aten("kthvalue")
def kthvalue(x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, ...]:
    return tuple(x.kthvalue(k, dim, keepdim))

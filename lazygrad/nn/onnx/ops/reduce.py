"""Reductions along axes, and the places of extremes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....dtype import dtypes
from ....tensor import Tensor
from ..table import op
from ..values import ints, shape_of


def _sum_of_logs(x: Tensor, axes: Any, keep: bool) -> Tensor:
    return x.sum(axes, keep, dtype=x.dtype).log().cast(x.dtype)


def _log_sum_exp(x: Tensor, axes: Any, keep: bool) -> Tensor:
    return x.logsumexp(axes, keep).cast(x.dtype)


def _extreme(name: str) -> Callable[[Tensor, Any, bool], Tensor]:
    def of(x: Tensor, axes: Any, keep: bool) -> Tensor:
        return getattr(x, name)(axes, keep) if x.numel() else _of_nothing(x, axes, keep, name)

    return of


def _of_nothing(x: Tensor, axes: Any, keep: bool, name: str) -> Tensor:
    """The extreme of no elements: the other end of the type's numbers."""
    low, high = (0, 1) if x.dtype is dtypes.bool else (dtypes.min(x.dtype), dtypes.max(x.dtype))
    return x.sum(axes, keep).full_like(low if name == "max" else high, dtype=x.dtype)


REDUCTIONS: dict[str, Callable[[Tensor, Any, bool], Tensor]] = {
    "ReduceSum": lambda x, axes, keep: x.sum(axes, keep, dtype=x.dtype),
    "ReduceProd": lambda x, axes, keep: x.prod(axes, keep, dtype=x.dtype),
    "ReduceMean": lambda x, axes, keep: x.mean(axes, keep).cast(x.dtype),
    "ReduceMax": _extreme("max"),
    "ReduceMin": _extreme("min"),
    "ReduceL1": lambda x, axes, keep: x.abs().sum(axes, keep, dtype=x.dtype),
    "ReduceL2": lambda x, axes, keep: (x * x).sum(axes, keep, dtype=x.dtype).sqrt().cast(x.dtype),
    "ReduceSumSquare": lambda x, axes, keep: (x * x).sum(axes, keep, dtype=x.dtype),
    "ReduceLogSum": _sum_of_logs,
    "ReduceLogSumExp": _log_sum_exp,
}


def _reduction(name: str, function: Callable[[Tensor, Any, bool], Tensor]) -> None:
    def reduced(x: Tensor, axes: Any = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Tensor:
        listed = [] if axes is None else ints(axes)
        if not listed and noop_with_empty_axes:
            return function(x.unsqueeze(0), 0, False)  # the elementwise part stays
        return function(x, tuple(listed) if listed else tuple(range(x.ndim)), bool(keepdims))

    op(name, host=("axes",))(reduced)


for _name, _function in REDUCTIONS.items():
    _reduction(_name, _function)


def _index_of(x: Tensor, axis: int, keepdims: int, select_last_index: int, name: str) -> Tensor:
    size = shape_of(x)[axis % x.ndim] if x.ndim else 1
    seen = x.flip(axis) if select_last_index else x
    found = seen.argmax(axis, bool(keepdims)) if name == "argmax" else seen.argmin(axis, bool(keepdims))
    places = found.cast("int64")
    return size - 1 - places if select_last_index else places


@op("ArgMax")
def argmax(x: Tensor, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Tensor:
    return _index_of(x, axis, keepdims, select_last_index, "argmax")


@op("ArgMin")
def argmin(x: Tensor, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Tensor:
    return _index_of(x, axis, keepdims, select_last_index, "argmin")

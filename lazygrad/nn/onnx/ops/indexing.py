"""Gather and scatter, the greatest k, unique values, one-hot."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....dtype import dtypes
from ....tensor import Tensor
from ..execution import Run
from ..table import op
from ..values import Value, ints, scalar, shape_of, tensor_of


def wrapped(indices: Tensor, size: int) -> Tensor:
    """Negative indices count from the end."""
    return (indices < 0).where(indices + size, indices) if not dtypes.is_unsigned(indices.dtype) else indices


@op("Gather", raw=True)
def gather(x: Value, indices: Value, *, axis: int = 0, run: Run) -> Value:
    """Indices that the host knows are slices where they follow each other."""
    if isinstance(x, np.ndarray) and isinstance(indices, np.ndarray):
        return np.take(x, indices.astype(np.int64), axis)
    x = run.weights.tensor(x)
    axis %= x.ndim
    if isinstance(indices, np.ndarray):
        places = indices.astype(np.int64)
        outside = (places < -shape_of(x)[axis]) | (places >= shape_of(x)[axis])
        if outside.any():
            raise IndexError(f"index {places[outside][0]} is outside of axis {axis} of {tuple(shape_of(x))}")
        places %= max(shape_of(x)[axis], 1)
        line = places.reshape(-1)
        if line.size and (np.diff(line) == 1).all():
            first = int(line[0])
            cut = x[(slice(None),) * axis + (slice(first, first + line.size),)]
            return cut.reshape(*shape_of(x)[:axis], *shape_of(indices), *shape_of(x)[axis + 1 :])
        picked = tensor_of(places.astype(np.int32))
    else:
        picked = wrapped(indices, shape_of(x)[axis])
    return x[(slice(None),) * axis + (picked,)]


@op("GatherElements")
def gather_elements(x: Tensor, indices: Tensor, *, axis: int = 0) -> Tensor:
    return x.gather(axis, wrapped(indices, shape_of(x)[axis]))


def _indices(indices: Tensor, shape: Any) -> list[Tensor]:
    """The last axis of indices as a tensor for each axis."""
    return [wrapped(indices[..., number], shape[number]) for number in range(shape_of(indices)[-1])]


@op("GatherND")
def gather_nd(x: Tensor, indices: Tensor, *, batch_dims: int = 0) -> Tensor:
    if not batch_dims:
        return x[tuple(_indices(indices, shape_of(x)))]
    batch = shape_of(x)[:batch_dims]
    count = math.prod(batch)
    rows = x.reshape(count, *shape_of(x)[batch_dims:])
    inner = indices.reshape(count, -1, shape_of(indices)[-1])
    found = _indices(inner, shape_of(x)[batch_dims:])
    first = Tensor.arange(count, dtype="int32").reshape(-1, 1).expand(count, shape_of(inner)[1])
    picked = rows[(first, *found)]
    return picked.reshape(*shape_of(indices)[:-1], *shape_of(x)[batch_dims + shape_of(indices)[-1] :])


_REDUCE = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


@op("ScatterElements", "Scatter")
def scatter_elements(
    x: Tensor, indices: Tensor, updates: Tensor, *, axis: int = 0, reduction: str = "none"
) -> Tensor:
    places = wrapped(indices, shape_of(x)[axis])
    if reduction == "none":
        return x.scatter(axis, places, updates)
    return x.scatter_reduce(axis, places, updates, _REDUCE[reduction])


@op("ScatterND")
def scatter_nd(x: Tensor, indices: Tensor, updates: Tensor, *, reduction: str = "none") -> Tensor:
    depth = shape_of(indices)[-1]
    if reduction == "none":
        return x.index_put(tuple(_indices(indices, shape_of(x))), updates)
    # One number for each place, rows for what lies inside.
    count, inner = math.prod(shape_of(x)[:depth]), math.prod(shape_of(x)[depth:])
    flat: Any = 0
    for number, place in enumerate(_indices(indices, shape_of(x))):
        flat = flat + place * math.prod(shape_of(x)[number + 1 : depth])
    rows = flat.reshape(-1, 1).expand(flat.numel(), inner)
    result = x.reshape(count, inner).scatter_reduce(0, rows, updates.reshape(-1, inner), _REDUCE[reduction])
    return result.reshape(*shape_of(x))


@op("TensorScatter")
def tensor_scatter(
    past_cache: Tensor,
    update: Tensor,
    write_indices: Tensor | None = None,
    *,
    mode: str = "linear",
    axis: int = -2,
) -> Tensor:
    """New rows written into each sequence of a cache, from an index on; round it where `mode` is circular."""
    axis %= past_cache.ndim
    size, count = shape_of(past_cache)[axis], shape_of(update)[axis]
    rest = past_cache.ndim - 1 - axis
    steps = Tensor.arange(count, dtype="int32").reshape(count, *[1] * rest)
    if write_indices is not None:
        steps = steps + write_indices.cast("int32").reshape(-1, *[1] * (past_cache.ndim - 1))
    if mode == "circular":
        steps = steps.remainder(size)
    return past_cache.scatter(axis, steps.expand(*shape_of(update)), update)


@op("TopK", host=("k",))
def topk(x: Tensor, k: Any, *, axis: int = -1, largest: int = 1, sorted: int = 1) -> Any:
    values, places = x.topk(scalar(k), axis, bool(largest))
    return values, places.cast("int64")


@op("OneHot", host=("depth",))
def one_hot(indices: Tensor, depth: Any, values: Tensor, *, axis: int = -1) -> Tensor:
    """Numbers outside of the classes give no 1."""
    count = int(scalar(depth))
    axis %= indices.ndim + 1
    classes = wrapped(indices.cast("int64"), count).unsqueeze(axis)
    places = Tensor.arange(count, dtype="int64").reshape(-1, *[1] * (indices.ndim - axis))
    return (classes == places).where(values[1], values[0])


@op("NonZero", host=("x",))
def nonzero(x: Any) -> Any:
    return np.stack(np.nonzero(np.atleast_1d(x))).astype(np.int64).reshape(x.ndim, -1)


@op("Compress", host=("condition",))
def compress(x: Tensor, condition: Any, *, axis: int | None = None) -> Tensor:
    places = Tensor(np.flatnonzero(condition).astype(np.int32))
    return x.flatten().index_select(0, places) if axis is None else x.index_select(axis, places)


@op("Unique", host=("x",))
def unique(x: Any, *, axis: int | None = None, sorted: int = 1) -> Any:
    values, first, inverse, counts = np.unique(x, True, True, True, axis=axis)
    inverse = inverse.reshape(-1)
    if not sorted:
        order = np.argsort(first, kind="stable")
        values, first, counts = (
            np.take(values, order, 0 if axis is None else axis),
            first[order],
            counts[order],
        )
        inverse = np.argsort(order)[inverse]
    return values, *(part.astype(np.int64) for part in (first, inverse, counts))


@op("ArrayFeatureExtractor", domain="ai.onnx.ml")
def array_feature_extractor(x: Tensor, indices: Tensor) -> Tensor:
    x = x.reshape(1, -1) if x.ndim == 1 else x
    return x[(slice(None),) * (x.ndim - 1) + (indices.reshape(-1),)]


_ = ints

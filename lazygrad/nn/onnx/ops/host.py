"""What steers, on the host: the operations that shapes go through, on numpy arrays.

They take what the rows of the table take. Where all inputs of such an operation are known no kernel runs.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..table import on_host
from ..values import Array, ints
from .shape import SMALL, slices, split_sizes, target_shape

_UFUNCS: dict[str, Callable[..., Any]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "And": np.logical_and,
    "Or": np.logical_or,
    "Xor": np.logical_xor,
    "Equal": np.equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "Abs": np.abs,
    "Neg": np.negative,
    "Not": np.logical_not,
    "Floor": np.floor,
    "Ceil": np.ceil,
    "Sqrt": np.sqrt,
    "Sign": np.sign,
}


def _two(name: str, function: Callable[..., Any]) -> None:
    def on_arrays(a: Array, b: Array, *, axis: int | None = None, broadcast: int = 0) -> Any:
        if axis is not None and b.ndim:
            b = b.reshape(*b.shape, *[1] * (a.ndim - axis % a.ndim - b.ndim))
        return function(a, b)

    on_host(name)(on_arrays)


for _name, _function in _UFUNCS.items():
    _two(_name, _function)
for _name, _one in _FUNCTIONS.items():
    on_host(_name)(lambda x, function=_one: function(x))


def _quotient(a: Array, b: Array) -> Any:
    if a.dtype.kind not in "iu":
        return a / b
    whole = np.where(b == 0, 1, b)
    return (a - np.fmod(a, whole)) // whole


_two("Div", _quotient)


@on_host("Mod")
def mod(a: Array, b: Array, *, fmod: int = 0) -> Any:
    return np.fmod(a, b) if fmod else np.mod(a, b)


@on_host("Max")
def greatest(*arrays: Array) -> Any:
    return functools.reduce(np.maximum, arrays)


@on_host("Min")
def least(*arrays: Array) -> Any:
    return functools.reduce(np.minimum, arrays)


@on_host("Where")
def where(condition: Array, x: Array, y: Array) -> Any:
    return np.where(condition, x, y)


@on_host("Clip")
def clip(x: Array, min: Any = None, max: Any = None) -> Any:
    x = x if min is None else np.maximum(x, np.asarray(min, x.dtype))
    return x if max is None else np.minimum(x, np.asarray(max, x.dtype))


@on_host("Reshape")
def reshape(x: Array, shape: Any, *, allowzero: int = 0) -> Any:
    return x.reshape(target_shape(x.shape, ints(shape), allowzero))


@on_host("Flatten")
def flatten(x: Array, *, axis: int = 1) -> Any:
    axis = axis + x.ndim if axis < 0 else axis
    return x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))


@on_host("Squeeze")
def squeeze(x: Array, axes: Any = None) -> Any:
    return np.squeeze(x, None if axes is None else tuple(ints(axes)))


@on_host("Unsqueeze")
def unsqueeze(x: Array, axes: Any) -> Any:
    return np.expand_dims(x, tuple(ints(axes)))


@on_host("Transpose")
def transpose(x: Array, *, perm: Any = None) -> Any:
    return np.ascontiguousarray(x.transpose(perm))


@on_host("Concat")
def concat(*arrays: Array, axis: int = 1) -> Any:
    return np.concatenate(arrays, axis)


@on_host("Split")
def split(x: Array, split: Any = None, *, axis: int = 0, num_outputs: int | None = None, outputs: int) -> Any:
    sizes = split_sizes(x.shape[axis], split, num_outputs or outputs)
    return tuple(np.split(x, np.cumsum(sizes)[:-1], axis))


@on_host("Slice")
def slice_(x: Array, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> Any:
    return x[tuple(slices(x.shape, starts, ends, axes, steps))]


@on_host("Gather")
def gather(x: Array, indices: Array, *, axis: int = 0) -> Any:
    return np.take(x, indices.astype(np.int64), axis)


@on_host("GatherElements")
def gather_elements(x: Array, indices: Array, *, axis: int = 0) -> Any:
    size = x.shape[axis]
    return np.take_along_axis(x, np.where(indices < 0, indices + size, indices), axis)


@on_host("ScatterND")
def scatter_nd(x: Array, indices: Array, updates: Array, *, reduction: str = "none") -> Any:
    result = x.copy()
    places = tuple(np.moveaxis(indices, -1, 0))
    if reduction == "none":
        result[places] = updates
    else:
        kind = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[reduction]
        kind.at(result, places, updates)
    return result


@on_host("NonZero")
def nonzero(x: Array) -> Any:
    return np.stack(np.nonzero(np.atleast_1d(x))).astype(np.int64).reshape(x.ndim, -1)


@on_host("Compress")
def compress(x: Array, condition: Array, *, axis: int | None = None) -> Any:
    return np.compress(condition, x, axis)


@on_host("CumSum")
def cumsum(x: Array, axis: Array, *, exclusive: int = 0, reverse: int = 0) -> Any:
    number = int(axis.reshape(-1)[0])
    x = np.flip(x, number) if reverse else x
    total = np.cumsum(x, number, dtype=x.dtype)
    total = total - x if exclusive else total
    return np.flip(total, number) if reverse else total


@on_host("Expand")
def expand(x: Array, shape: Any) -> Any:
    sizes = np.broadcast_shapes(x.shape, tuple(ints(shape)))
    return np.broadcast_to(x, sizes).copy() if math.prod(sizes) <= SMALL else NotImplemented


@on_host("Tile")
def tile(x: Array, repeats: Any, axis: Any = None) -> Any:
    times = ints(repeats)
    if axis is not None:
        times = [1] * x.ndim
        times[ints(axis)[0]] = ints(repeats)[0]
    return np.tile(x, times) if x.size * math.prod(times) <= SMALL else NotImplemented


def _reduced(name: str, function: Callable[..., Any]) -> None:
    def on_arrays(x: Array, axes: Any = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Any:
        listed = [] if axes is None else ints(axes)
        if not listed and noop_with_empty_axes:
            return x
        result = function(x, axis=tuple(listed) if listed else None, keepdims=bool(keepdims))
        return np.asarray(result, x.dtype)

    on_host(name)(on_arrays)


_reduced("ReduceSum", np.sum)
_reduced("ReduceProd", np.prod)


@on_host("ArgMax")
def argmax(x: Array, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Any:
    if select_last_index:
        found = x.shape[axis] - 1 - np.argmax(np.flip(x, axis), axis, keepdims=bool(keepdims))
    else:
        found = np.argmax(x, axis, keepdims=bool(keepdims))
    return np.asarray(found, np.int64)

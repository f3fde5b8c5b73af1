"""Resize: each axis by itself, as weighted sums of a few old places for every new one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ....dtype import dtypes
from ....tensor import Tensor
from ..table import op
from ..values import Array, ints, shape_of

#: Of more taps than these a place is a row of a matrix product.
_MAX_TAPS = 8


class _How(NamedTuple):
    """The attributes of a Resize that say where a new place looks and what it sees."""

    mode: str
    coordinates: str
    nearest: str
    a: float
    antialias: bool
    exclude_outside: bool
    extrapolation: float


def _source_positions(how: _How, size: int, new: int, scale: float, roi: tuple[float, float]) -> Array:
    """Where each new place lies on the old axis."""
    place = np.arange(new, dtype=np.float64)
    length = scale * size  # may be no whole number
    match how.coordinates:
        case "half_pixel":
            return (place + 0.5) / scale - 0.5
        case "pytorch_half_pixel":
            return (place + 0.5) / scale - 0.5 if length > 1 else np.zeros(new)
        case "half_pixel_symmetric":
            return size / 2 * (1 - new / length) + (place + 0.5) / scale - 0.5
        case "align_corners":
            return place * (size - 1) / (length - 1) if length > 1 else np.zeros(new)
        case "asymmetric":
            return place / scale
        case "tf_half_pixel_for_nn":
            return (place + 0.5) / scale
        case "tf_crop_and_resize":
            begin, end = roi
            if length > 1:
                return begin * (size - 1) + place * (end - begin) * (size - 1) / (length - 1)
            return np.full(new, 0.5 * (begin + end) * (size - 1))
    raise NotImplementedError(
        f"Resize with coordinate_transformation_mode={how.coordinates!r} is not supported"
    )


_ROUND: dict[str, Callable[[Array], Array]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
    "simple": np.trunc,  # opset 10
}


def _linear(distance: Array) -> Any:
    return np.clip(1 - np.abs(distance), 0, 1)


def _cubic(a: float) -> Callable[[Array], Any]:
    """Keys 1981: two cubic pieces, `a` the slope at 1."""

    def weight(distance: Array) -> Any:
        t = np.abs(distance)
        near = ((a + 2) * t - (a + 3)) * t * t + 1
        far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
        return np.where(t <= 1, near, np.where(t < 2, far, 0))

    return weight


def _taps(how: _How, old: Array, size: int, scale: float) -> tuple[Array, Array]:
    """(new, taps): the old places that each new one sees, and their weights."""
    kernel, reach = (_linear, 1) if how.mode == "linear" else (_cubic(how.a), 2)
    squeeze = min(scale, 1.0) if how.antialias else 1.0
    first = math.floor(-reach / squeeze) + 1
    steps = np.arange(first, 2 - first)
    floor = np.floor(old)
    weights = kernel((steps - (old - floor)[:, None]) * squeeze)
    places = floor[:, None].astype(np.int64) + steps
    if how.exclude_outside:
        weights = np.where((places < 0) | (places >= size), 0, weights)
    if how.exclude_outside or how.antialias:
        weights = weights / weights.sum(1, keepdims=True)
    return np.clip(places, 0, size - 1), weights


def _one_axis(x: Tensor, axis: int, how: _How, new: int, scale: float, roi: tuple[float, float]) -> Tensor:
    size = shape_of(x)[axis]
    old = _source_positions(how, size, new, scale, roi)
    if how.mode == "nearest":
        y = _picked(x, axis, np.clip(_ROUND[how.nearest](old), 0, size - 1).astype(np.int32))
    else:
        y = _weighted(x, axis, *_taps(how, old, size, scale))
    outside = (old < 0) | (old > size - 1)
    if how.coordinates == "tf_crop_and_resize" and outside.any():
        shown = Tensor(outside).reshape(-1, *[1] * (x.ndim - 1 - axis))
        y = shown.where(how.extrapolation, y).cast(x.dtype)
    return y


def _picked(x: Tensor, axis: int, places: Array) -> Tensor:
    """The slices at these places: by movement alone where every old one is repeated, or one of so many
    taken.
    """
    size, new = shape_of(x)[axis], len(places)
    if new % size == 0 and (places == np.arange(new) // (new // size)).all():
        times = new // size
        shape = [*shape_of(x)[: axis + 1], times, *shape_of(x)[axis + 1 :]]
        return (
            x.unsqueeze(axis + 1).expand(*shape).reshape(*shape_of(x)[:axis], new, *shape_of(x)[axis + 1 :])
        )
    step = int(places[1] - places[0]) if new > 1 else 1
    if step > 0 and (np.diff(places) == step).all():
        return x[(slice(None),) * axis + (slice(int(places[0]), int(places[-1]) + 1, step),)]
    return x.index_select(axis, Tensor(places.astype(np.int32)))


def _weighted(x: Tensor, axis: int, places: Array, weights: Array) -> Tensor:
    wide = x if dtypes.is_float(x.dtype) else x.float()
    size, (new, taps) = shape_of(x)[axis], shape_of(places)
    if taps > _MAX_TAPS:
        matrix = np.zeros((new, size))
        np.add.at(matrix, (np.arange(new)[:, None], places), weights)
        moved = wide.transpose(axis, -1)
        y: Any = moved.matmul(Tensor(matrix.T.astype(np.float32)).cast(wide.dtype)).transpose(axis, -1)
    else:
        y = None
        beside = (-1, *[1] * (x.ndim - 1 - axis))
        for tap in range(taps):
            if not weights[:, tap].any():
                continue
            weight = Tensor(weights[:, tap].astype(np.float32)).reshape(*beside).cast(wide.dtype)
            part = _picked(wide, axis, places[:, tap]) * weight
            y = part if y is None else y + part
    result: Tensor = y if y.dtype is x.dtype else y.round().cast(x.dtype)
    return result


def _resized(
    x: Tensor, how: _How, axes: list[int], sizes: list[int], scales: list[float], roi: Any
) -> Tensor:
    count = len(axes)
    for number, axis in enumerate(axes):
        part = (
            (float(roi[number]), float(roi[count + number])) if roi is not None and len(roi) else (0.0, 1.0)
        )
        crops = how.coordinates == "tf_crop_and_resize" and part != (0.0, 1.0)
        if sizes[number] != shape_of(x)[axis] or scales[number] != 1 or crops:
            x = _one_axis(x, axis, how, sizes[number], scales[number], part)
    return x


@op("Resize", since=11, host=("roi", "scales", "sizes"))
def resize(
    x: Tensor,
    roi: Any = None,
    scales: Any = None,
    sizes: Any = None,
    *,
    antialias: int = 0,
    axes: Any = None,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch",
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> Tensor:
    how = _How(
        mode,
        coordinate_transformation_mode,
        nearest_mode,
        cubic_coeff_a,
        bool(antialias),
        bool(exclude_outside),
        extrapolation_value,
    )
    listed = list(range(x.ndim)) if axes is None else [axis % x.ndim for axis in axes]
    old = [shape_of(x)[axis] for axis in listed]
    if sizes is not None and len(sizes):
        wanted = ints(sizes)
        factors = [new / size for new, size in zip(wanted, old, strict=True)]
        if keep_aspect_ratio_policy != "stretch":
            one = min(factors) if keep_aspect_ratio_policy == "not_larger" else max(factors)
            factors = [one] * len(old)
            wanted = [math.floor(one * size + 0.5) for size in old]
    else:
        factors = [float(factor) for factor in np.asarray(scales).reshape(-1)]
        wanted = [math.floor(size * factor) for size, factor in zip(old, factors, strict=True)]
    return _resized(x, how, listed, wanted, factors, roi)


_OLDER = _How("nearest", "asymmetric", "floor", -0.75, False, False, 0.0)


@op("Resize", since=10, host=("scales",))
@op("Upsample", host=("scales",))
def resize_by_scales(
    x: Tensor,
    scales: Any = None,
    *,
    mode: str = "nearest",
    height_scale: float | None = None,
    width_scale: float | None = None,
) -> Tensor:
    """Before opset 11 a new place lay at its number divided by the scale."""
    if scales is None:
        scales = [1, 1, height_scale, width_scale]
    factors = [float(factor) for factor in np.asarray(scales).reshape(-1)]
    wanted = [math.floor(size * factor) for size, factor in zip(shape_of(x), factors, strict=True)]
    how = _OLDER._replace(mode="linear" if mode in ("linear", "bilinear") else mode)
    return _resized(x, how, list(range(x.ndim)), wanted, factors, None)

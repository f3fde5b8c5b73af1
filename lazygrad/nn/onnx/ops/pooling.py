"""Pooling over windows and over everything."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....dtype import dtypes
from ....tensor import Tensor
from ..table import op
from ..values import Array, ints, shape_of
from .convolution import axis_pads


class _Windows:
    """Where the windows of a pooling lie: what is added around each axis, how many there are."""

    def __init__(
        self, x: Tensor, kernel: Any, strides: Any, dilations: Any, pads: Any, auto_pad: str, ceil_mode: int
    ) -> None:
        rank = len(kernel)
        self.kernel = tuple(kernel)
        self.strides = tuple(strides or [1] * rank)
        self.dilations = tuple(dilations or [1] * rank)
        self.pads = axis_pads(shape_of(x)[2:], kernel, self.strides, self.dilations, pads, auto_pad)
        self.counts = []
        for number, size in enumerate(shape_of(x)[2:]):
            before, after = self.pads[number]
            span = self.dilations[number] * (self.kernel[number] - 1) + 1
            step, room = self.strides[number], size + before + after - span
            count = (-(-room // step) if ceil_mode and auto_pad == "NOTSET" else room // step) + 1
            if ceil_mode and (count - 1) * step >= size + before:
                count -= 1  # a window must begin inside, or in the padding before
            self.counts.append(count)

    def padded(self, x: Tensor, value: Any) -> Tensor:
        """With what the windows reach; what `ceil_mode` adds behind the padding has this value too."""
        around = [(0, 0), (0, 0)]
        for number, size in enumerate(shape_of(x)[2:]):
            before, _ = self.pads[number]
            span = self.dilations[number] * (self.kernel[number] - 1) + 1
            reach = (self.counts[number] - 1) * self.strides[number] + span
            around.append((before, reach - size - before))
        return x.pad(around, value=value)

    def counted(self, sizes: tuple[int, ...], with_padding: bool) -> Array:
        """How many places of each window count: those of the axis, or those of the padding too."""
        result: Array = np.ones(())
        for number, size in enumerate(sizes):
            before, after = self.pads[number] if with_padding else (0, 0)
            starts = np.arange(self.counts[number]) * self.strides[number] - self.pads[number][0]
            places = starts[:, None] + np.arange(self.kernel[number]) * self.dilations[number]
            inside = ((places >= -before) & (places < size + after)).sum(1)
            result = np.multiply.outer(result, inside)
        return result


@op("MaxPool")
def max_pool(
    x: Tensor,
    *,
    kernel_shape: Any,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Any = None,
    pads: Any = None,
    storage_order: int = 0,
    strides: Any = None,
    outputs: int,
) -> Any:
    """The places that are also given count in the input without its padding."""
    windows = _Windows(x, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    low = dtypes.min(x.dtype)
    wide = windows.padded(x, low)
    if outputs == 1:
        return wide.max_pool2d(windows.kernel, windows.strides, windows.dilations)
    values, places = wide.max_pool2d(windows.kernel, windows.strides, windows.dilations, return_indices=True)
    return values, _unpadded_indices(x, shape_of(wide)[2:], windows, places.cast("int64"), storage_order)


def _unpadded_indices(x: Tensor, sizes: Any, windows: _Windows, places: Tensor, column_major: int) -> Tensor:
    """From places in each padded image to places in the whole tensor."""
    inner = shape_of(x)[2:]
    coordinates = []
    for size, (before, _) in zip(reversed(sizes), reversed(windows.pads), strict=True):
        coordinates.append(places.remainder(size) - before)
        places = places.div(size, rounding_mode="floor")
    coordinates.reverse()
    flat = places.zeros_like()
    order = range(len(inner))
    if column_major:  # the first of the last axes runs fastest
        for axis in reversed(order):
            flat = flat * inner[axis] + coordinates[axis]
    else:
        for axis in order:
            flat = flat * inner[axis] + coordinates[axis]
    images = Tensor.arange(shape_of(x)[0] * shape_of(x)[1], dtype="int64").reshape(
        *shape_of(x)[:2], *[1] * len(inner)
    )
    return flat + images * math.prod(inner)


@op("AveragePool")
def average_pool(
    x: Tensor,
    *,
    kernel_shape: Any,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: Any = None,
    pads: Any = None,
    strides: Any = None,
) -> Tensor:
    """Padding counts where `count_include_pad` is set; what `ceil_mode` adds behind it never does."""
    windows = _Windows(x, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    average = windows.padded(x, 0).avg_pool2d(windows.kernel, windows.strides, windows.dilations)
    counts = windows.counted(shape_of(x)[2:], bool(count_include_pad))
    share = math.prod(windows.kernel) / counts
    if bool(np.all(share == 1)):
        return average
    return average * Tensor(np.asarray(share, np.float32)).cast(x.dtype)


def _window_sum(x: Tensor, windows: _Windows) -> Tensor:
    return x.avg_pool2d(windows.kernel, windows.strides, windows.dilations) * int(math.prod(windows.kernel))


@op("LpPool")
def lp_pool(
    x: Tensor,
    *,
    kernel_shape: Any,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Any = None,
    p: float = 2,
    pads: Any = None,
    strides: Any = None,
) -> Tensor:
    windows = _Windows(x, kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    total = _window_sum(windows.padded(x.abs().pow(p), 0), windows)
    return total.pow(1 / p).cast(x.dtype)


def _inner(x: Tensor) -> tuple[int, ...]:
    return tuple(range(2, x.ndim))


@op("GlobalAveragePool")
def global_average_pool(x: Tensor) -> Tensor:
    return x.mean(_inner(x), keepdim=True)


@op("GlobalMaxPool")
def global_max_pool(x: Tensor) -> Tensor:
    return x.max(_inner(x), keepdim=True)


@op("GlobalLpPool")
def global_lp_pool(x: Tensor, *, p: float = 2) -> Tensor:
    return x.abs().pow(p).sum(_inner(x), keepdim=True).pow(1 / p).cast(x.dtype)


@op("MaxUnpool", host=("output_shape",))
def max_unpool(
    x: Tensor,
    places: Tensor,
    output_shape: Any = None,
    *,
    kernel_shape: Any,
    pads: Any = None,
    strides: Any = None,
) -> Tensor:
    """Maxima back where they were, in the smallest shape that gives them, at the beginning of a larger
    one.
    """
    rank = len(kernel_shape)
    strides, pads = strides or [1] * rank, pads or [0] * (2 * rank)
    inner = [
        (size - 1) * strides[axis] - pads[axis] - pads[rank + axis] + kernel_shape[axis]
        for axis, size in enumerate(shape_of(x)[2:])
    ]
    shape = [*shape_of(x)[:2], *inner]
    flat = Tensor.zeros(math.prod(shape), dtype=x.dtype)
    result = flat.scatter(0, places.flatten(), x.flatten()).reshape(*shape)
    if output_shape is None:
        return result
    return result.pad([(0, wanted - size) for wanted, size in zip(ints(output_shape), shape, strict=True)])

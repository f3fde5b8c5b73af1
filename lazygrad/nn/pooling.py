"""Pooling as layers: one number for each window of the last axes, and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..tensor import Tensor
from . import functional
from .function_layer import FunctionLayer, FunctionOfOne
from .over_axes import OverAxes
from .parameters import Sizes

Adaptive = int | Sequence[int | None]


class _MaxPool(OverAxes, FunctionLayer):
    """The greatest element of each window of {last}; with `return_indices` also where it was.

    >>> nn.MaxPool{n}d(2)(Tensor.ones(1, 1{fours})).shape
    (1, 1{twos})
    """

    kernel_size: Sizes
    stride: Sizes | None = None
    padding: Sizes = 0
    dilation: Sizes = 1
    return_indices: bool = False
    ceil_mode: bool = False

    def __call__(self, x: Tensor) -> Any:
        return self._called(x)


class MaxPool1d(_MaxPool, axes=1, function=functional.max_pool1d): ...


class MaxPool2d(_MaxPool, axes=2, function=functional.max_pool2d): ...


class MaxPool3d(_MaxPool, axes=3, function=functional.max_pool3d): ...


class _AvgPool(OverAxes, FunctionOfOne):
    """The average of each window of {last}.

    >>> nn.AvgPool{n}d(2)(Tensor.ones(1, 1{fours})).shape
    (1, 1{twos})
    """

    kernel_size: Sizes
    stride: Sizes | None = None
    padding: Sizes = 0
    ceil_mode: bool = False
    count_include_pad: bool = True


class _AvgPoolOfImages(_AvgPool):
    divisor_override: int | None = None


class AvgPool1d(_AvgPool, axes=1, function=functional.avg_pool1d): ...


class AvgPool2d(_AvgPoolOfImages, axes=2, function=functional.avg_pool2d): ...


class AvgPool3d(_AvgPoolOfImages, axes=3, function=functional.avg_pool3d): ...


class _LPPool(OverAxes, FunctionOfOne):
    """The p-norm of each window of {last}.

    >>> nn.LPPool{n}d(2, 2)(Tensor.ones(1, 1{fours})).shape
    (1, 1{twos})
    """

    norm_type: float
    kernel_size: Sizes
    stride: Sizes | None = None
    ceil_mode: bool = False


class LPPool1d(_LPPool, axes=1, function=functional.lp_pool1d): ...


class LPPool2d(_LPPool, axes=2, function=functional.lp_pool2d): ...


class LPPool3d(_LPPool, axes=3, function=functional.lp_pool3d): ...


class _AdaptiveAvgPool(OverAxes, FunctionOfOne):
    """The averages of windows that cover {last}.

    >>> nn.AdaptiveAvgPool{n}d(2)(Tensor.ones(1, 1{fours})).shape
    (1, 1{twos})
    """

    output_size: Adaptive


class AdaptiveAvgPool1d(_AdaptiveAvgPool, axes=1, function=functional.adaptive_avg_pool1d): ...


class AdaptiveAvgPool2d(_AdaptiveAvgPool, axes=2, function=functional.adaptive_avg_pool2d): ...


class AdaptiveAvgPool3d(_AdaptiveAvgPool, axes=3, function=functional.adaptive_avg_pool3d): ...


class _AdaptiveMaxPool(OverAxes, FunctionLayer):
    """The maxima of windows that cover {last}, and where they were if asked.

    >>> nn.AdaptiveMaxPool{n}d(2)(Tensor.ones(1, 1{fours})).shape
    (1, 1{twos})
    """

    output_size: Adaptive
    return_indices: bool = False

    def __call__(self, x: Tensor) -> Any:
        return self._called(x)


class AdaptiveMaxPool1d(_AdaptiveMaxPool, axes=1, function=functional.adaptive_max_pool1d): ...


class AdaptiveMaxPool2d(_AdaptiveMaxPool, axes=2, function=functional.adaptive_max_pool2d): ...


class AdaptiveMaxPool3d(_AdaptiveMaxPool, axes=3, function=functional.adaptive_max_pool3d): ...


class _FractionalMaxPool(OverAxes, FunctionLayer):
    """The maxima of windows of {last} at random places; where they were, with `return_indices`.

    output_size      how many windows there are along each axis; or
    output_ratio     which part of each axis that is, between 0 and 1
    _random_samples  (batch, channels, {n}): in place of random numbers, drawn in each call

    >>> nn.FractionalMaxPool{n}d(2, output_ratio=0.5)(Tensor.ones(1, 1{fours})).shape
    (1, 1{twos})
    """

    kernel_size: Sizes
    output_size: Sizes | None = None
    output_ratio: functional.fractional.Ratios | None = None
    return_indices: bool = False
    _random_samples: Tensor | None = None

    def __post_init__(self) -> None:
        functional.fractional.one_of(type(self).__name__, self.output_size, self.output_ratio, self.axes)

    def __call__(self, x: Tensor) -> Any:
        return self._called(x)


class FractionalMaxPool2d(_FractionalMaxPool, axes=2, function=functional.fractional_max_pool2d): ...


class FractionalMaxPool3d(_FractionalMaxPool, axes=3, function=functional.fractional_max_pool3d): ...


class _MaxUnpool(OverAxes, FunctionLayer):
    """Maxima put back where `MaxPool{n}d` found them, zeros elsewhere.

    >>> nn.MaxUnpool{n}d(2)(*nn.MaxPool{n}d(2, return_indices=True)(Tensor.ones(1, 1{fours}))).shape
    (1, 1{fours})
    """

    kernel_size: Sizes
    stride: Sizes | None = None
    padding: Sizes = 0

    def __call__(self, x: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return type(self).function(x, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(_MaxUnpool, axes=1, function=functional.max_unpool1d): ...


class MaxUnpool2d(_MaxUnpool, axes=2, function=functional.max_unpool2d): ...


class MaxUnpool3d(_MaxUnpool, axes=3, function=functional.max_unpool3d): ...

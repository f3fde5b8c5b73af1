"""Pooling as layers: one number for each window of the last axes, and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..tensor import Tensor
from . import functional
from .function_layer import FunctionLayer, FunctionOfOne
from .parameters import Sizes

Adaptive = int | Sequence[int | None]

# What a kind of pool is given, for any number of axes.


@dataclass(eq=False)
class _MaxPool(FunctionLayer):
    kernel_size: Sizes
    stride: Sizes | None = None
    padding: Sizes = 0
    dilation: Sizes = 1
    return_indices: bool = False
    ceil_mode: bool = False

    def __call__(self, x: Tensor) -> Any:
        return self._called(x)


@dataclass(eq=False)
class _AvgPool(FunctionOfOne):
    kernel_size: Sizes
    stride: Sizes | None = None
    padding: Sizes = 0
    ceil_mode: bool = False
    count_include_pad: bool = True


@dataclass(eq=False)
class _AvgPoolOfImages(_AvgPool):
    divisor_override: int | None = None


@dataclass(eq=False)
class _LPPool(FunctionOfOne):
    norm_type: float
    kernel_size: Sizes
    stride: Sizes | None = None
    ceil_mode: bool = False


@dataclass(eq=False)
class _AdaptiveAvgPool(FunctionOfOne):
    output_size: Adaptive


@dataclass(eq=False)
class _AdaptiveMaxPool(FunctionLayer):
    output_size: Adaptive
    return_indices: bool = False

    def __call__(self, x: Tensor) -> Any:
        return self._called(x)


@dataclass(eq=False)
class _MaxUnpool(FunctionLayer):
    kernel_size: Sizes
    stride: Sizes | None = None
    padding: Sizes = 0

    def __call__(self, x: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return type(self).function(x, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxPool1d(_MaxPool):
    """The greatest element of each window of the last axis; with `return_indices` also where it was.

    >>> nn.MaxPool1d(2)(Tensor.ones(1, 1, 4)).shape
    (1, 1, 2)
    """

    function = functional.max_pool1d


class AvgPool1d(_AvgPool):
    """The average of each window of the last axis.

    >>> nn.AvgPool1d(2)(Tensor.ones(1, 1, 4)).shape
    (1, 1, 2)
    """

    function = functional.avg_pool1d


class LPPool1d(_LPPool):
    """The p-norm of each window of the last axis.

    >>> nn.LPPool1d(2, 2)(Tensor.ones(1, 1, 4)).shape
    (1, 1, 2)
    """

    function = functional.lp_pool1d


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """The averages of windows that cover the last axis.

    >>> nn.AdaptiveAvgPool1d(2)(Tensor.ones(1, 1, 4)).shape
    (1, 1, 2)
    """

    function = functional.adaptive_avg_pool1d


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """The maxima of windows that cover the last axis, and where they were if asked.

    >>> nn.AdaptiveMaxPool1d(2)(Tensor.ones(1, 1, 4)).shape
    (1, 1, 2)
    """

    function = functional.adaptive_max_pool1d


class MaxUnpool1d(_MaxUnpool):
    """Maxima put back where `MaxPool1d` found them, zeros elsewhere.

    >>> nn.MaxUnpool1d(2)(*nn.MaxPool1d(2, return_indices=True)(Tensor.ones(1, 1, 4))).shape
    (1, 1, 4)
    """

    function = functional.max_unpool1d


class MaxPool2d(_MaxPool):
    """The greatest element of each window of the last two axes; with `return_indices` also where it was.

    >>> nn.MaxPool2d(2)(Tensor.ones(1, 1, 4, 4)).shape
    (1, 1, 2, 2)
    """

    function = functional.max_pool2d


class AvgPool2d(_AvgPoolOfImages):
    """The average of each window of the last two axes.

    >>> nn.AvgPool2d(2)(Tensor.ones(1, 1, 4, 4)).shape
    (1, 1, 2, 2)
    """

    function = functional.avg_pool2d


class LPPool2d(_LPPool):
    """The p-norm of each window of the last two axes.

    >>> nn.LPPool2d(2, 2)(Tensor.ones(1, 1, 4, 4)).shape
    (1, 1, 2, 2)
    """

    function = functional.lp_pool2d


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """The averages of windows that cover the last two axes.

    >>> nn.AdaptiveAvgPool2d(2)(Tensor.ones(1, 1, 4, 4)).shape
    (1, 1, 2, 2)
    """

    function = functional.adaptive_avg_pool2d


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """The maxima of windows that cover the last two axes, and where they were if asked.

    >>> nn.AdaptiveMaxPool2d(2)(Tensor.ones(1, 1, 4, 4)).shape
    (1, 1, 2, 2)
    """

    function = functional.adaptive_max_pool2d


class MaxUnpool2d(_MaxUnpool):
    """Maxima put back where `MaxPool2d` found them, zeros elsewhere.

    >>> nn.MaxUnpool2d(2)(*nn.MaxPool2d(2, return_indices=True)(Tensor.ones(1, 1, 4, 4))).shape
    (1, 1, 4, 4)
    """

    function = functional.max_unpool2d


class MaxPool3d(_MaxPool):
    """The greatest element of each window of the last three axes; with `return_indices` also where it was.

    >>> nn.MaxPool3d(2)(Tensor.ones(1, 1, 4, 4, 4)).shape
    (1, 1, 2, 2, 2)
    """

    function = functional.max_pool3d


class AvgPool3d(_AvgPoolOfImages):
    """The average of each window of the last three axes.

    >>> nn.AvgPool3d(2)(Tensor.ones(1, 1, 4, 4, 4)).shape
    (1, 1, 2, 2, 2)
    """

    function = functional.avg_pool3d


class LPPool3d(_LPPool):
    """The p-norm of each window of the last three axes.

    >>> nn.LPPool3d(2, 2)(Tensor.ones(1, 1, 4, 4, 4)).shape
    (1, 1, 2, 2, 2)
    """

    function = functional.lp_pool3d


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """The averages of windows that cover the last three axes.

    >>> nn.AdaptiveAvgPool3d(2)(Tensor.ones(1, 1, 4, 4, 4)).shape
    (1, 1, 2, 2, 2)
    """

    function = functional.adaptive_avg_pool3d


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """The maxima of windows that cover the last three axes, and where they were if asked.

    >>> nn.AdaptiveMaxPool3d(2)(Tensor.ones(1, 1, 4, 4, 4)).shape
    (1, 1, 2, 2, 2)
    """

    function = functional.adaptive_max_pool3d


class MaxUnpool3d(_MaxUnpool):
    """Maxima put back where `MaxPool3d` found them, zeros elsewhere.

    >>> nn.MaxUnpool3d(2)(*nn.MaxPool3d(2, return_indices=True)(Tensor.ones(1, 1, 4, 4, 4))).shape
    (1, 1, 4, 4, 4)
    """

    function = functional.max_unpool3d

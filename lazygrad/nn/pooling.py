"""Pooling and resizing as layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..tensor import Tensor
from . import functional
from .layers import Sizes

Adaptive = int | Sequence[int | None]


@dataclass(eq=False)
class MaxPool1d:
    """The greatest element of each window of 1 axes; with `return_indices` also where it was.

    >>> nn.MaxPool1d(2)(Tensor.ones(1, 1, 4)).shape
    (1, 1, 2)
    """

    kernel_size: Sizes
    stride: Sizes | None = None
    padding: Sizes = 0
    dilation: Sizes = 1
    return_indices: bool = False
    ceil_mode: bool = False

    def __call__(self, x: Tensor) -> Any:
        return functional.max_pool1d(
            x, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )


@dataclass(eq=False)
class AvgPool1d:
    """The average of each window of 1 axes.

    >>> nn.AvgPool1d(2)(Tensor.ones(1, 1, 4)).shape
    (1, 1, 2)
    """

    kernel_size: Sizes
    stride: Sizes | None = None
    padding: Sizes = 0
    ceil_mode: bool = False
    count_include_pad: bool = True

    def __call__(self, x: Tensor) -> Tensor:
        return functional.avg_pool1d(
            x, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        )


@dataclass(eq=False)
class LPPool1d:
    """The p-norm of each window of 1 axes.

    >>> nn.LPPool1d(2, 2)(Tensor.ones(1, 1, 4)).shape
    (1, 1, 2)
    """

    norm_type: float
    kernel_size: Sizes
    stride: Sizes | None = None
    ceil_mode: bool = False

    def __call__(self, x: Tensor) -> Tensor:
        return x.lp_pool1d(self.norm_type, self.kernel_size, self.stride, self.ceil_mode)


@dataclass(eq=False)
class AdaptiveAvgPool1d:
    """The averages of windows that cover 1 axes.

    >>> nn.AdaptiveAvgPool1d(2)(Tensor.ones(1, 1, 4)).shape
    (1, 1, 2)
    """

    output_size: Adaptive

    def __call__(self, x: Tensor) -> Tensor:
        return x.adaptive_avg_pool1d(self.output_size)


@dataclass(eq=False)
class AdaptiveMaxPool1d:
    """The maxima of windows that cover 1 axes, and where they were if asked.

    >>> nn.AdaptiveMaxPool1d(2)(Tensor.ones(1, 1, 4)).shape
    (1, 1, 2)
    """

    output_size: Adaptive
    return_indices: bool = False

    def __call__(self, x: Tensor) -> Any:
        return x.adaptive_max_pool1d(self.output_size, self.return_indices)


@dataclass(eq=False)
class MaxUnpool1d:
    """Maxima put back where `MaxPool1d` found them, zeros elsewhere.

    >>> nn.MaxUnpool1d(2)(*nn.MaxPool1d(2, return_indices=True)(Tensor.ones(1, 1, 4))).shape
    (1, 1, 4)
    """

    kernel_size: Sizes
    stride: Sizes | None = None
    padding: Sizes = 0

    def __call__(self, x: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return x.max_unpool1d(indices, self.kernel_size, self.stride, self.padding, output_size)


@dataclass(eq=False)
class MaxPool2d:
    """The greatest element of each window of 2 axes; with `return_indices` also where it was.

    >>> nn.MaxPool2d(2)(Tensor.ones(1, 1, 4, 4)).shape
    (1, 1, 2, 2)
    """

    kernel_size: Sizes
    stride: Sizes | None = None
    padding: Sizes = 0
    dilation: Sizes = 1
    return_indices: bool = False
    ceil_mode: bool = False

    def __call__(self, x: Tensor) -> Any:
        return functional.max_pool2d(
            x, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )


@dataclass(eq=False)
class AvgPool2d:
    """The average of each window of 2 axes.

    >>> nn.AvgPool2d(2)(Tensor.ones(1, 1, 4, 4)).shape
    (1, 1, 2, 2)
    """

    kernel_size: Sizes
    stride: Sizes | None = None
    padding: Sizes = 0
    ceil_mode: bool = False
    count_include_pad: bool = True
    divisor_override: int | None = None

    def __call__(self, x: Tensor) -> Tensor:
        return functional.avg_pool2d(
            x,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


@dataclass(eq=False)
class LPPool2d:
    """The p-norm of each window of 2 axes.

    >>> nn.LPPool2d(2, 2)(Tensor.ones(1, 1, 4, 4)).shape
    (1, 1, 2, 2)
    """

    norm_type: float
    kernel_size: Sizes
    stride: Sizes | None = None
    ceil_mode: bool = False

    def __call__(self, x: Tensor) -> Tensor:
        return x.lp_pool2d(self.norm_type, self.kernel_size, self.stride, self.ceil_mode)


@dataclass(eq=False)
class AdaptiveAvgPool2d:
    """The averages of windows that cover 2 axes.

    >>> nn.AdaptiveAvgPool2d(2)(Tensor.ones(1, 1, 4, 4)).shape
    (1, 1, 2, 2)
    """

    output_size: Adaptive

    def __call__(self, x: Tensor) -> Tensor:
        return x.adaptive_avg_pool2d(self.output_size)


@dataclass(eq=False)
class AdaptiveMaxPool2d:
    """The maxima of windows that cover 2 axes, and where they were if asked.

    >>> nn.AdaptiveMaxPool2d(2)(Tensor.ones(1, 1, 4, 4)).shape
    (1, 1, 2, 2)
    """

    output_size: Adaptive
    return_indices: bool = False

    def __call__(self, x: Tensor) -> Any:
        return x.adaptive_max_pool2d(self.output_size, self.return_indices)


@dataclass(eq=False)
class MaxUnpool2d:
    """Maxima put back where `MaxPool2d` found them, zeros elsewhere.

    >>> nn.MaxUnpool2d(2)(*nn.MaxPool2d(2, return_indices=True)(Tensor.ones(1, 1, 4, 4))).shape
    (1, 1, 4, 4)
    """

    kernel_size: Sizes
    stride: Sizes | None = None
    padding: Sizes = 0

    def __call__(self, x: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return x.max_unpool2d(indices, self.kernel_size, self.stride, self.padding, output_size)


@dataclass(eq=False)
class MaxPool3d:
    """The greatest element of each window of 3 axes; with `return_indices` also where it was.

    >>> nn.MaxPool3d(2)(Tensor.ones(1, 1, 4, 4, 4)).shape
    (1, 1, 2, 2, 2)
    """

    kernel_size: Sizes
    stride: Sizes | None = None
    padding: Sizes = 0
    dilation: Sizes = 1
    return_indices: bool = False
    ceil_mode: bool = False

    def __call__(self, x: Tensor) -> Any:
        return functional.max_pool3d(
            x, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )


@dataclass(eq=False)
class AvgPool3d:
    """The average of each window of 3 axes.

    >>> nn.AvgPool3d(2)(Tensor.ones(1, 1, 4, 4, 4)).shape
    (1, 1, 2, 2, 2)
    """

    kernel_size: Sizes
    stride: Sizes | None = None
    padding: Sizes = 0
    ceil_mode: bool = False
    count_include_pad: bool = True
    divisor_override: int | None = None

    def __call__(self, x: Tensor) -> Tensor:
        return functional.avg_pool3d(
            x,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


@dataclass(eq=False)
class LPPool3d:
    """The p-norm of each window of 3 axes.

    >>> nn.LPPool3d(2, 2)(Tensor.ones(1, 1, 4, 4, 4)).shape
    (1, 1, 2, 2, 2)
    """

    norm_type: float
    kernel_size: Sizes
    stride: Sizes | None = None
    ceil_mode: bool = False

    def __call__(self, x: Tensor) -> Tensor:
        return x.lp_pool3d(self.norm_type, self.kernel_size, self.stride, self.ceil_mode)


@dataclass(eq=False)
class AdaptiveAvgPool3d:
    """The averages of windows that cover 3 axes.

    >>> nn.AdaptiveAvgPool3d(2)(Tensor.ones(1, 1, 4, 4, 4)).shape
    (1, 1, 2, 2, 2)
    """

    output_size: Adaptive

    def __call__(self, x: Tensor) -> Tensor:
        return x.adaptive_avg_pool3d(self.output_size)


@dataclass(eq=False)
class AdaptiveMaxPool3d:
    """The maxima of windows that cover 3 axes, and where they were if asked.

    >>> nn.AdaptiveMaxPool3d(2)(Tensor.ones(1, 1, 4, 4, 4)).shape
    (1, 1, 2, 2, 2)
    """

    output_size: Adaptive
    return_indices: bool = False

    def __call__(self, x: Tensor) -> Any:
        return x.adaptive_max_pool3d(self.output_size, self.return_indices)


@dataclass(eq=False)
class MaxUnpool3d:
    """Maxima put back where `MaxPool3d` found them, zeros elsewhere.

    >>> nn.MaxUnpool3d(2)(*nn.MaxPool3d(2, return_indices=True)(Tensor.ones(1, 1, 4, 4, 4))).shape
    (1, 1, 4, 4, 4)
    """

    kernel_size: Sizes
    stride: Sizes | None = None
    padding: Sizes = 0

    def __call__(self, x: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return x.max_unpool3d(indices, self.kernel_size, self.stride, self.padding, output_size)


@dataclass(eq=False)
class Unfold:
    """The windows of images as columns; see `Tensor.im2col`.

    >>> nn.Unfold(2)(Tensor.ones(1, 1, 3, 3)).shape
    (1, 4, 4)
    """

    kernel_size: Sizes
    dilation: Sizes = 1
    padding: Sizes = 0
    stride: Sizes = 1

    def __call__(self, x: Tensor) -> Tensor:
        return x.im2col(self.kernel_size, self.dilation, self.padding, self.stride)


@dataclass(eq=False)
class Fold:
    """Columns summed into images; see `Tensor.fold`.

    >>> nn.Fold(3, 2)(Tensor.ones(1, 4, 4)).shape
    (1, 1, 3, 3)
    """

    output_size: Sizes
    kernel_size: Sizes
    dilation: Sizes = 1
    padding: Sizes = 0
    stride: Sizes = 1

    def __call__(self, x: Tensor) -> Tensor:
        return x.fold(self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)


@dataclass(eq=False)
class PixelShuffle:
    """Channels to pixels; see `Tensor.pixel_shuffle`.

    >>> nn.PixelShuffle(2)(Tensor.ones(1, 4, 1, 1)).shape
    (1, 1, 2, 2)
    """

    upscale_factor: int

    def __call__(self, x: Tensor) -> Tensor:
        return x.pixel_shuffle(self.upscale_factor)


@dataclass(eq=False)
class PixelUnshuffle:
    """Pixels to channels; see `Tensor.pixel_unshuffle`.

    >>> nn.PixelUnshuffle(2)(Tensor.ones(1, 1, 2, 2)).shape
    (1, 4, 1, 1)
    """

    downscale_factor: int

    def __call__(self, x: Tensor) -> Tensor:
        return x.pixel_unshuffle(self.downscale_factor)


@dataclass(eq=False)
class ChannelShuffle:
    """Channels dealt out anew; see `Tensor.channel_shuffle`.

    >>> nn.ChannelShuffle(2)(Tensor.ones(1, 4, 1)).shape
    (1, 4, 1)
    """

    groups: int

    def __call__(self, x: Tensor) -> Tensor:
        return x.channel_shuffle(self.groups)


@dataclass(eq=False)
class Upsample:
    """The last axes at another size; see `Tensor.interpolate`.

    >>> nn.Upsample(scale_factor=2)(Tensor.ones(1, 1, 2)).shape
    (1, 1, 4)
    """

    size: Sizes | None = None
    scale_factor: float | Sequence[float] | None = None
    mode: str = "nearest"
    align_corners: bool | None = None

    def __call__(self, x: Tensor) -> Tensor:
        return x.interpolate(self.size, self.scale_factor, self.mode, self.align_corners)

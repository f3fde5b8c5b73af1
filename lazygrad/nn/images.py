"""Images as layers: columns of windows, pixels and channels, other sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from ..shape import shape_text
from ..tensor import Tensor
from .function_layer import FunctionOfOne
from .module import Module
from .parameters import Sizes, need_tensors

Scale = float | Sequence[float]


class Unfold(FunctionOfOne, function=Tensor.im2col):
    """The windows of images as columns; see `Tensor.im2col`.

    >>> nn.Unfold(2)(Tensor.ones(1, 1, 3, 3)).shape
    (1, 4, 4)
    """

    kernel_size: Sizes
    dilation: Sizes = 1
    padding: Sizes = 0
    stride: Sizes = 1


class Fold(FunctionOfOne, function=Tensor.fold):
    """Columns summed into images; see `Tensor.fold`.

    >>> nn.Fold(3, 2)(Tensor.ones(1, 4, 4)).shape
    (1, 1, 3, 3)
    """

    output_size: Sizes
    kernel_size: Sizes
    dilation: Sizes = 1
    padding: Sizes = 0
    stride: Sizes = 1


class PixelShuffle(FunctionOfOne, function=Tensor.pixel_shuffle):
    """Channels to pixels; see `Tensor.pixel_shuffle`.

    >>> nn.PixelShuffle(2)(Tensor.ones(1, 4, 1, 1)).shape
    (1, 1, 2, 2)
    """

    upscale_factor: int


class PixelUnshuffle(FunctionOfOne, function=Tensor.pixel_unshuffle):
    """Pixels to channels; see `Tensor.pixel_unshuffle`.

    >>> nn.PixelUnshuffle(2)(Tensor.ones(1, 1, 2, 2)).shape
    (1, 4, 1, 1)
    """

    downscale_factor: int


class ChannelShuffle(FunctionOfOne, function=Tensor.channel_shuffle):
    """Channels dealt out anew; see `Tensor.channel_shuffle`.

    >>> nn.ChannelShuffle(2)(Tensor.ones(1, 4, 1)).shape
    (1, 4, 1)
    """

    groups: int


class Upsample(FunctionOfOne, function=Tensor.interpolate):
    """The last axes at another size; see `Tensor.interpolate`.

    >>> nn.Upsample(scale_factor=2)(Tensor.ones(1, 1, 2)).shape
    (1, 1, 4)
    """

    size: Sizes | None = None
    scale_factor: Scale | None = None
    mode: str = "nearest"
    align_corners: bool | None = None
    recompute_scale_factor: bool | None = None


#: The docstring of each.
_UPSAMPLING = """A picture at another size, {how}: `nn.Upsample` with mode {mode!r}.

    >>> nn.{name}(scale_factor=2)(Tensor.ones(1, 1, 2, 2)).shape
    (1, 1, 4, 4)
    """


class _Upsampling(Module):
    """`nn.Upsample` with the options of a subclass."""

    options: ClassVar[dict[str, Any]]

    def __init_subclass__(cls, how: str, **options: Any) -> None:
        super().__init_subclass__()
        cls.options = options
        cls.__doc__ = _UPSAMPLING.format(how=how, name=cls.__name__, **options)

    def __init__(self, size: Sizes | None = None, scale_factor: Scale | None = None) -> None:
        self.size, self.scale_factor = size, scale_factor

    def __call__(self, x: Tensor) -> Tensor:
        need_tensors(self, x)
        if x.ndim != 4:
            raise ValueError(
                f"{type(self).__name__} takes (batch, channels, height, width), not {shape_text(x.shape)}"
            )
        return x.interpolate(self.size, self.scale_factor, **self.options)


class UpsamplingNearest2d(_Upsampling, how="each pixel the nearest one", mode="nearest"): ...


class UpsamplingBilinear2d(
    _Upsampling, how="the corners of both in the same place", mode="bilinear", align_corners=True
): ...

"""Convolutions and their transposes, over one to three axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..device import Devices
from ..shape import shape_text
from ..tensor import Tensor
from ..tensor.neural.convolution import named_padding
from ..tensor.signatures import DTypeLike, Numbers
from .module import Module
from .over_axes import SIZES, OverAxes
from .parameters import Sizes, count, counts, need_tensors, uniform

#: What may stand around a sample.
_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _Windows(OverAxes, Module):
    """What a convolution and its transpose have in common: sizes and weights, over `axes` axes."""

    transposed = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes,
        dilation: Sizes,
        groups: int,
        bias: bool,
        **made: Any,
    ) -> None:
        self.in_channels = count("in_channels", in_channels)
        self.out_channels = count("out_channels", out_channels)
        self.groups = count("groups", groups)
        for name, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
            if channels % groups:
                raise ValueError(f"{groups} groups do not divide {name}={channels}")
        self.kernel_size = counts("kernel_size", kernel_size, self.axes)
        self.stride = counts("stride", stride, self.axes)
        self.dilation = counts("dilation", dilation, self.axes)
        first, second = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        # PyTorch's, from the second axis of the weight for both
        fan_in = second // groups * math.prod(self.kernel_size)
        made["fan_in"] = fan_in
        self.weight = uniform(first, second // groups, *self.kernel_size, **made)
        self.bias = uniform(out_channels, **made) if bias else None

    def _need_channels(self, x: Tensor) -> None:
        need_tensors(self, x)
        if x.ndim not in (self.axes + 1, self.axes + 2) or x.shape[-self.axes - 1] != self.in_channels:
            raise ValueError(
                f"{type(self).__name__}({self.in_channels}, {self.out_channels}, ...) needs shape "
                f"(batch, {self.in_channels}, {SIZES[self.axes]}), not {shape_text(x.shape)}"
            )


class _Convolution(_Windows):
    """A convolution over {axes}: (batch, in_channels, {sizes}) → (batch, out_channels, ...).

    weight  (out_channels, in_channels / groups, {sizes})      bias  (out_channels,), or None

    >>> nn.Conv{n}d(2, 4, 3, padding=1)(Tensor.ones(1, 2{fours})).shape
    (1, 4{fours})
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        *,
        device: Devices | None = None,
        dtype: DTypeLike = None,
        generator: Numbers | None = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            dilation,
            groups,
            bias,
            device=device,
            dtype=dtype,
            generator=generator,
        )
        if padding_mode not in _PADDING_MODES:
            raise ValueError(f"padding_mode must be one of {', '.join(_PADDING_MODES)}, not {padding_mode!r}")
        self.padding = padding if isinstance(padding, str) else counts("padding", padding, self.axes, 0)
        self.padding_mode = padding_mode
        self._amounts()  # raises where the padding has no such name, or does not go with the stride

    def __call__(self, x: Tensor) -> Tensor:
        self._need_channels(x)
        padding = self.padding
        if self.padding_mode != "zeros":
            x = x.pad(self._amounts(), self.padding_mode)
            padding = "valid"
        return x.conv2d(self.weight, self.bias, self.groups, self.stride, self.dilation, padding)

    def _amounts(self) -> tuple[int, ...]:
        """What is added before and behind each axis, from the last on."""
        pairs = named_padding(self.padding, self.kernel_size, self.stride, self.dilation)
        return tuple(n for pair in reversed(pairs) for n in pair)


class Conv1d(_Convolution, axes=1): ...


class Conv2d(_Convolution, axes=2): ...


class Conv3d(_Convolution, axes=3): ...


class _Transposed(_Windows):
    """The transpose of a convolution over {axes}: (batch, in_channels, {sizes}).

    weight  (in_channels, out_channels / groups, {sizes})      bias  (out_channels,), or None

    >>> nn.ConvTranspose{n}d(2, 4, 2, stride=2)(Tensor.ones(1, 2{twos})).shape
    (1, 4{fours})
    """

    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Sizes = 1,
        *,
        device: Devices | None = None,
        dtype: DTypeLike = None,
        generator: Numbers | None = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            dilation,
            groups,
            bias,
            device=device,
            dtype=dtype,
            generator=generator,
        )
        self.padding = counts("padding", padding, self.axes, 0)
        self.output_padding = counts("output_padding", output_padding, self.axes, 0)

    def __call__(self, x: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """The result; `output_size` chooses among the sizes that the stride leaves open."""
        self._need_channels(x)
        more = self.output_padding if output_size is None else self._missing(x, tuple(output_size))
        return x.conv_transpose2d(
            self.weight, self.bias, self.groups, self.stride, self.dilation, self.padding, more
        )

    def _missing(self, x: Tensor, output_size: tuple[int, ...]) -> tuple[int, ...]:
        """What is to be added behind each axis to reach a size."""
        more = []
        for i, size in enumerate(output_size[-self.axes :]):
            inner: Any = x.shape[x.ndim - self.axes + i]
            kept = (inner - 1) * self.stride[i] - 2 * self.padding[i]
            least = kept + self.dilation[i] * (self.kernel_size[i] - 1) + 1
            most = least + max(self.stride[i], self.dilation[i]) - 1
            if not least <= size <= most:
                raise ValueError(f"output_size {output_size}: axis {i} has a size from {least} to {most}")
            more.append(size - least)
        return tuple(more)


class ConvTranspose1d(_Transposed, axes=1): ...


class ConvTranspose2d(_Transposed, axes=2): ...


class ConvTranspose3d(_Transposed, axes=3): ...

"""Normalization layers, with weights and running statistics."""

from __future__ import annotations

import math
from typing import Any

from ..dtype import dtypes
from ..shape import shape_text
from ..tensor import Tensor
from . import functional
from .layers import Sizes, buffer, count, parameter


class BatchNorm:
    """Mean 0 and variance 1 of each channel (axis 1), then weight and bias for each channel.

    In training by the batch, whose statistics move the running ones (by `momentum`; None averages all batches
    evenly); otherwise by the running statistics.

    running_mean, running_var  (num_features,)      num_batches_tracked  ()

    >>> nn.BatchNorm(3)(Tensor.ones(2, 3, 4, 4)).shape
    (2, 3, 4, 4)
    """

    counts_batches = True

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
    ) -> None:
        features = self.num_features = count("num_features", num_features)
        self.eps, self.momentum = eps, momentum
        self.weight = parameter(Tensor.ones(features)) if affine else None
        self.bias = parameter(Tensor.zeros(features)) if affine else None
        self.running_mean = buffer(Tensor.zeros(features)) if track_running_stats else None
        self.running_var = buffer(Tensor.ones(features)) if track_running_stats else None
        self.num_batches_tracked = (
            buffer(Tensor.zeros((), dtype=dtypes.int64)) if track_running_stats else None
        )

    def __call__(self, x: Tensor) -> Tensor:
        if x.ndim < 2 or x.shape[1] != self.num_features:
            raise ValueError(
                f"BatchNorm({self.num_features}) needs shape (batch, {self.num_features}, ...), "
                f"not {shape_text(x.shape)}"
            )
        if self.running_mean is not None and self.running_var is not None and not Tensor.training:
            mean, variance = self.running_mean, self.running_var
        else:
            mean, variance = self._statistics(x)
        return x.batchnorm(self.weight, self.bias, mean, (variance + self.eps).rsqrt())

    def _statistics(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance of this batch; in training they move the running ones."""
        axes = (0, *range(2, x.ndim))
        mean = x.mean(axes)
        away = x - mean.reshape(1, -1, *((1,) * (x.ndim - 2)))
        variance = (away * away).mean(axes)
        if Tensor.training and self.running_mean is not None:
            self._track(mean.detach(), variance.detach(), math.prod(x.shape[axis] for axis in axes))
        return mean, variance

    def _track(self, mean: Tensor, variance: Tensor, size: int) -> None:
        """Move the running statistics towards those of a batch of `size` values for each channel."""
        running_mean, running_var, batches = self.running_mean, self.running_var, self.num_batches_tracked
        if running_mean is None or running_var is None or batches is None:
            return
        if size == 1:
            raise ValueError("in training BatchNorm needs more than one value for each channel")
        if not running_mean.is_realized:
            # Nobody asked for the last update. Done now, a long loop makes no endless graph.
            running_mean.realize(running_var, batches)
        if self.counts_batches:
            batches.assign(batches + 1)
        move: Any = 1.0 / batches.cast(mean.dtype) if self.momentum is None else self.momentum
        unbiased = variance * (size / (size - 1))
        running_mean.assign((running_mean + (mean - running_mean) * move).cast(running_mean.dtype))
        running_var.assign((running_var + (unbiased - running_var) * move).cast(running_var.dtype))


#: The same under the names that say how many axes a sample has.
BatchNorm1d = BatchNorm2d = BatchNorm3d = BatchNorm


class LayerNorm:
    """Mean 0 and variance 1 of each sample over the last axes, then weight and bias for each element.

    weight, bias  of shape `normalized_shape`, or None

    >>> nn.LayerNorm(2)(Tensor([[1.0, 3.0]])).round(decimals=2).tolist()
    [[-1.0, 1.0]]
    """

    def __init__(
        self, normalized_shape: Sizes, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True
    ) -> None:
        sizes = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        if not sizes:
            raise ValueError("normalized_shape has at least one axis")
        self.normalized_shape = tuple(count("normalized_shape", size) for size in sizes)
        self.eps = eps
        self.weight = parameter(Tensor.ones(*sizes)) if elementwise_affine else None
        self.bias = parameter(Tensor.zeros(*sizes)) if elementwise_affine and bias else None

    def __call__(self, x: Tensor) -> Tensor:
        sizes = self.normalized_shape
        if x.shape[-len(sizes) :] != sizes:
            raise ValueError(
                f"LayerNorm({shape_text(sizes)}) needs shape (..., {', '.join(map(str, sizes))}), "
                f"not {shape_text(x.shape)}"
            )
        x = x.layernorm(tuple(range(-len(sizes), 0)), self.eps)
        if self.weight is not None:
            x = x * self.weight
        return x if self.bias is None else x + self.bias


class LayerNorm2d(LayerNorm):
    """A LayerNorm over the channels, axis 1, of images (batch, channels, height, width).

    >>> nn.LayerNorm2d(2)(Tensor([[[[1.0]], [[3.0]]]])).round(decimals=2).flatten().tolist()
    [-1.0, 1.0]
    """

    def __call__(self, x: Tensor) -> Tensor:
        """The images normalized, in the shape they came."""
        if x.ndim != 4:
            raise ValueError(f"LayerNorm2d needs (batch, channels, height, width), not {shape_text(x.shape)}")
        return super().__call__(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class RMSNorm:
    """Each sample divided by the root of its mean square over the last axes, then times weight.

    weight  of shape `normalized_shape`, or None
    eps     the dtype's smallest step from 1 if not given

    >>> nn.RMSNorm(2)(Tensor([[1.0, 7.0]])).round(decimals=2).shape
    (1, 2)
    """

    def __init__(
        self, normalized_shape: Sizes, eps: float | None = None, elementwise_affine: bool = True
    ) -> None:
        sizes = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.normalized_shape = tuple(count("normalized_shape", size) for size in sizes)
        self.eps = eps
        self.weight = parameter(Tensor.ones(*sizes)) if elementwise_affine else None

    def __call__(self, x: Tensor) -> Tensor:
        return functional.rms_norm(x, self.normalized_shape, self.weight, self.eps)


class GroupNorm:
    """Mean 0 and variance 1 of each sample's groups of channels (axis 1), then weight and bias for each.

    weight, bias  (num_channels,), or None

    >>> nn.GroupNorm(2, 4)(Tensor.ones(1, 4, 3)).shape
    (1, 4, 3)
    """

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True) -> None:
        self.num_groups, self.num_channels = (
            count("num_groups", num_groups),
            count("num_channels", num_channels),
        )
        if num_channels % num_groups:
            raise ValueError(f"{num_groups} groups do not divide num_channels={num_channels}")
        self.eps = eps
        self.weight = parameter(Tensor.ones(num_channels)) if affine else None
        self.bias = parameter(Tensor.zeros(num_channels)) if affine else None

    def __call__(self, x: Tensor) -> Tensor:
        if x.ndim < 2 or x.shape[1] != self.num_channels:
            raise ValueError(
                f"GroupNorm({self.num_groups}, {self.num_channels}) needs shape "
                f"(batch, {self.num_channels}, ...), not {shape_text(x.shape)}"
            )
        return x.group_norm(self.num_groups, self.weight, self.bias, self.eps)


class InstanceNorm(BatchNorm):
    """Mean 0 and variance 1 of each channel of each sample; weight and bias only with `affine`.

    With `track_running_stats` training moves the running statistics, which count otherwise.

    >>> nn.InstanceNorm(3)(Tensor.ones(2, 3, 4)).shape
    (2, 3, 4)
    """

    counts_batches = False  # as in PyTorch, where the number stays 0

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats)

    def __call__(self, x: Tensor) -> Tensor:
        if x.ndim < 3 or x.shape[1] != self.num_features:
            raise ValueError(
                f"InstanceNorm({self.num_features}) needs shape (batch, {self.num_features}, ...), "
                f"not {shape_text(x.shape)}"
            )
        if self.running_mean is not None and self.running_var is not None:
            if not Tensor.training:
                invstd = (self.running_var + self.eps).rsqrt()
                return x.batchnorm(self.weight, self.bias, self.running_mean, invstd)
            size: Any = math.prod(x.shape[2:])
            axes = tuple(range(2, x.ndim))
            still = x.detach()
            self._track(still.mean(axes).mean(0), still.var(axes, correction=0).mean(0), size)
        return x.instance_norm(self.weight, self.bias, self.eps)


#: The same under the names that say how many axes a sample has.
InstanceNorm1d = InstanceNorm2d = InstanceNorm3d = InstanceNorm


class LocalResponseNorm:
    """x / (k + alpha · mean of x² over `size` neighbouring channels)^beta.

    >>> nn.LocalResponseNorm(2)(Tensor.ones(1, 3, 4)).shape
    (1, 3, 4)
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        self.size, self.alpha, self.beta, self.k = count("size", size), alpha, beta, k

    def __call__(self, x: Tensor) -> Tensor:
        return x.local_response_norm(self.size, self.alpha, self.beta, self.k)

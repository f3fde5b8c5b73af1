"""Normalization layers, with weights and running statistics."""

from __future__ import annotations

from typing import Any

from ..device import Devices
from ..dtype import dtypes
from ..shape import shape_text
from ..tensor import Tensor
from ..tensor.signatures import DTypeLike
from . import functional
from .function_layer import FunctionOfOne
from .module import Module
from .parameters import Sizes, buffer, count, need_tensors, parameter


class BatchNorm(Module):
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
        *,
        device: Devices | None = None,
        dtype: DTypeLike = None,
    ) -> None:
        features = self.num_features = count("num_features", num_features)
        self.eps, self.momentum = eps, momentum
        made: Any = {"device": device, "dtype": dtype}
        self.weight = parameter(Tensor.ones(features, **made)) if affine else None
        self.bias = parameter(Tensor.zeros(features, **made)) if affine else None
        self.running_mean = buffer(Tensor.zeros(features, **made)) if track_running_stats else None
        self.running_var = buffer(Tensor.ones(features, **made)) if track_running_stats else None
        self.num_batches_tracked = (
            buffer(Tensor.zeros((), dtype=dtypes.int64, device=device)) if track_running_stats else None
        )

    def __call__(self, x: Tensor) -> Tensor:
        _need_channels(self, x, self.num_features, 2)
        by_batch = Tensor.training or self.running_mean is None
        return functional.batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, by_batch, self._move(), self.eps
        )

    def _move(self) -> Any:
        """What a batch counts in the running statistics. In training the batch is counted first."""
        batches = self.num_batches_tracked
        if batches is None or not Tensor.training:
            return self.momentum or 0.0
        if self.running_mean is not None and not self.running_mean.is_realized:
            # Nobody asked for the last update. Done now, a long loop makes no endless graph.
            Tensor.realize(*(t for t in (self.running_mean, self.running_var, batches) if t is not None))
        if self.counts_batches:
            batches.assign(batches + 1)
        return 1.0 / batches.cast(dtypes.float32) if self.momentum is None else self.momentum


#: The same under the names that say how many axes a sample has.
BatchNorm1d = BatchNorm2d = BatchNorm3d = BatchNorm


class LayerNorm(Module):
    """Mean 0 and variance 1 of each sample over the last axes, then weight and bias for each element.

    weight, bias  of shape `normalized_shape`, or None

    >>> nn.LayerNorm(2)(Tensor([[1.0, 3.0]])).round(decimals=2).tolist()
    [[-1.0, 1.0]]
    """

    def __init__(
        self,
        normalized_shape: Sizes,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        *,
        device: Devices | None = None,
        dtype: DTypeLike = None,
    ) -> None:
        made: Any = {"device": device, "dtype": dtype}
        sizes = self.normalized_shape = _sizes(normalized_shape)
        self.eps = eps
        self.weight = parameter(Tensor.ones(*sizes, **made)) if elementwise_affine else None
        self.bias = parameter(Tensor.zeros(*sizes, **made)) if elementwise_affine and bias else None

    def __call__(self, x: Tensor) -> Tensor:
        return functional.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)


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


class RMSNorm(Module):
    """Each sample divided by the root of its mean square over the last axes, then times weight.

    weight  of shape `normalized_shape`, or None
    eps     the dtype's smallest step from 1 if not given

    >>> nn.RMSNorm(2)(Tensor([[1.0, 7.0]])).round(decimals=2).shape
    (1, 2)
    """

    def __init__(
        self,
        normalized_shape: Sizes,
        eps: float | None = None,
        elementwise_affine: bool = True,
        *,
        device: Devices | None = None,
        dtype: DTypeLike = None,
    ) -> None:
        made: Any = {"device": device, "dtype": dtype}
        sizes = self.normalized_shape = _sizes(normalized_shape)
        self.eps = eps
        self.weight = parameter(Tensor.ones(*sizes, **made)) if elementwise_affine else None

    def __call__(self, x: Tensor) -> Tensor:
        return functional.rms_norm(x, self.normalized_shape, self.weight, self.eps)


class GroupNorm(Module):
    """Mean 0 and variance 1 of each sample's groups of channels (axis 1), then weight and bias for each.

    weight, bias  (num_channels,), or None

    >>> nn.GroupNorm(2, 4)(Tensor.ones(1, 4, 3)).shape
    (1, 4, 3)
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        *,
        device: Devices | None = None,
        dtype: DTypeLike = None,
    ) -> None:
        made: Any = {"device": device, "dtype": dtype}
        self.num_groups, self.num_channels = (
            count("num_groups", num_groups),
            count("num_channels", num_channels),
        )
        if num_channels % num_groups:
            raise ValueError(f"{num_groups} groups do not divide num_channels={num_channels}")
        self.eps = eps
        self.weight = parameter(Tensor.ones(num_channels, **made)) if affine else None
        self.bias = parameter(Tensor.zeros(num_channels, **made)) if affine else None

    def __call__(self, x: Tensor) -> Tensor:
        _need_channels(self, x, self.num_channels, 2)
        return x.group_norm(self.num_groups, self.weight, self.bias, self.eps)


class InstanceNorm(BatchNorm):
    """Mean 0 and variance 1 of each channel of each sample; weight and bias only with `affine`.

    With `track_running_stats` training updates the running statistics, which are used otherwise.

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
        *,
        device: Devices | None = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device=device, dtype=dtype)

    def __call__(self, x: Tensor) -> Tensor:
        _need_channels(self, x, self.num_features, 3)
        by_input = Tensor.training or self.running_mean is None
        return functional.instance_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, by_input, self._move(), self.eps
        )


#: The same under the names that say how many axes a sample has.
InstanceNorm1d = InstanceNorm2d = InstanceNorm3d = InstanceNorm


class LocalResponseNorm(FunctionOfOne, function=Tensor.local_response_norm):
    """x / (k + alpha · mean of x² over `size` neighbouring channels)^beta.

    >>> nn.LocalResponseNorm(2)(Tensor.ones(1, 3, 4)).shape
    (1, 3, 4)
    """

    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 1.0

    def __post_init__(self) -> None:
        count("size", self.size)


def _need_channels(layer: Any, x: Tensor, channels: int, axes: int) -> None:
    """Channels are axis 1 of at least so many."""
    need_tensors(layer, x)
    if x.ndim < axes or x.shape[1] != channels:
        groups = f"{layer.num_groups}, " if isinstance(layer, GroupNorm) else ""
        raise ValueError(
            f"{type(layer).__name__}({groups}{channels}) needs shape (batch, {channels}, ...), "
            f"not {shape_text(x.shape)}"
        )


def _sizes(normalized_shape: Sizes) -> tuple[int, ...]:
    sizes = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not sizes:
        raise ValueError("normalized_shape has at least one axis")
    return tuple(count("normalized_shape", size) for size in sizes)

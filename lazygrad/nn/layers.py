"""Layers. Each is a plain class: its parameters are Tensors that require gradients, `layer(x)` computes.

Any class is a module: nothing to inherit, nothing to register. Parameters begin as in PyTorch. They have
memory of their own from the start, so that loading weights and training write in place; nothing is computed
before it is needed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..dtype import dtypes
from ..shape import shape_text
from ..tensor import Tensor

Sizes = int | Sequence[int]


def parameter(value: Tensor) -> Tensor:
    """Memory of its own that begins with `value` and is trained."""
    return buffer(value).requires_grad_()


def buffer(value: Tensor) -> Tensor:
    """Memory of its own that begins with `value`: part of a layer's state, and not trained."""
    return Tensor.empty(*value.shape, dtype=value.dtype, device=value.device).assign(value)


def _uniform(*shape: int, fan_in: int) -> Tensor:
    """Uniform in ±1/sqrt(fan_in): PyTorch's weights (kaiming_uniform with a = sqrt(5)) and biases."""
    bound = 1.0 / math.sqrt(fan_in) if fan_in else 0.0
    return parameter(Tensor.uniform(*shape, low=-bound, high=bound))


def _count(name: str, value: Any) -> int:
    """A size that a user gave: a positive whole number."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} is a whole number, not {value!r}")
    if value < 1:
        raise ValueError(f"{name} is at least 1, not {value}")
    return value


def _counts(name: str, value: Sizes, count: int) -> tuple[int, ...]:
    """One positive whole number for each of `count` axes."""
    values = (value,) * count if isinstance(value, int) else tuple(value)
    if len(values) != count:
        raise ValueError(f"{name} is one number or {count} of them, not {value!r}")
    return tuple(_count(name, v) for v in values)


class Linear:
    """x @ weightᵀ + bias over the last axis.

    weight  (out_features, in_features)        bias  (out_features,), or None
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        self.in_features, self.out_features = (
            _count("in_features", in_features),
            _count("out_features", out_features),
        )
        self.weight = _uniform(out_features, in_features, fan_in=in_features)
        self.bias = _uniform(out_features, fan_in=in_features) if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        if x.ndim == 0 or x.shape[-1] != self.in_features:
            raise ValueError(
                f"Linear({self.in_features}, {self.out_features}) needs {self.in_features} elements along "
                f"the last axis, not shape {shape_text(x.shape)}"
            )
        return x.linear(self.weight.transpose(0, 1), self.bias)


class _Convolution:
    """A convolution over as many axes as `axes` says."""

    axes = 0

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
    ) -> None:
        self.in_channels = _count("in_channels", in_channels)
        self.out_channels = _count("out_channels", out_channels)
        self.groups = _count("groups", groups)
        for name, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
            if channels % groups:
                raise ValueError(f"{groups} groups do not divide {name}={channels}")
        self.kernel_size = _counts("kernel_size", kernel_size, self.axes)
        self.stride = _counts("stride", stride, self.axes)
        self.dilation = _counts("dilation", dilation, self.axes)
        if isinstance(padding, str) and padding not in ("same", "valid"):
            raise ValueError(f"padding is a number, one for each axis, 'same' or 'valid', not {padding!r}")
        if padding == "same" and any(step != 1 for step in self.stride):
            raise ValueError(f"padding 'same' is for a stride of 1, not {stride!r}")
        self.padding = padding
        inner = in_channels // groups
        fan_in = inner * math.prod(self.kernel_size)
        self.weight = _uniform(out_channels, inner, *self.kernel_size, fan_in=fan_in)
        self.bias = _uniform(out_channels, fan_in=fan_in) if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        if x.ndim != self.axes + 2 or x.shape[1] != self.in_channels:
            sizes = ", ".join(("length", "height, width")[self.axes - 1 :][:1])
            raise ValueError(
                f"{type(self).__name__}({self.in_channels}, {self.out_channels}, ...) needs shape "
                f"(batch, {self.in_channels}, {sizes}), not {shape_text(x.shape)}"
            )
        return x.conv2d(self.weight, self.bias, self.groups, self.stride, self.dilation, self.padding)


class Conv1d(_Convolution):
    """A convolution over one axis: (batch, in_channels, length) → (batch, out_channels, ...).

    weight  (out_channels, in_channels / groups, size)      bias  (out_channels,), or None
    """

    axes = 1


class Conv2d(_Convolution):
    """A convolution over two axes: (batch, in_channels, height, width) → (batch, out_channels, ..., ...).

    weight  (out_channels, in_channels / groups, height, width)      bias  (out_channels,), or None
    """

    axes = 2


class BatchNorm:
    """Mean 0 and variance 1 of each channel (axis 1), then weight and bias for each channel.

    In training by the batch, whose statistics move the running ones (by `momentum`; None averages all batches
    evenly); otherwise by the running statistics.

    running_mean, running_var  (num_features,)      num_batches_tracked  ()
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
    ) -> None:
        size = self.num_features = _count("num_features", num_features)
        self.eps, self.momentum = eps, momentum
        self.weight = parameter(Tensor.ones(size)) if affine else None
        self.bias = parameter(Tensor.zeros(size)) if affine else None
        self.running_mean = buffer(Tensor.zeros(size)) if track_running_stats else None
        self.running_var = buffer(Tensor.ones(size)) if track_running_stats else None
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

    def _track(self, mean: Tensor, variance: Tensor, count: int) -> None:
        """Move the running statistics towards those of a batch of `count` values for each channel."""
        running_mean, running_var, batches = self.running_mean, self.running_var, self.num_batches_tracked
        if running_mean is None or running_var is None or batches is None:
            return
        if count == 1:
            raise ValueError("in training BatchNorm needs more than one value for each channel")
        if not running_mean.is_realized:
            # Nobody asked for the last update. Done now, a long loop makes no endless graph.
            running_mean.realize(running_var, batches)
        batches.assign(batches + 1)
        move: Any = 1.0 / batches.cast(mean.dtype) if self.momentum is None else self.momentum
        unbiased = variance * (count / (count - 1))
        running_mean.assign((running_mean + (mean - running_mean) * move).cast(running_mean.dtype))
        running_var.assign((running_var + (unbiased - running_var) * move).cast(running_var.dtype))


#: The same under the names that say how many axes a sample has.
BatchNorm1d = BatchNorm2d = BatchNorm3d = BatchNorm


class LayerNorm:
    """Mean 0 and variance 1 of each sample over the last axes, then weight and bias for each element.

    weight, bias  of shape `normalized_shape`, or None
    """

    def __init__(
        self, normalized_shape: Sizes, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True
    ) -> None:
        sizes = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        if not sizes:
            raise ValueError("normalized_shape has at least one axis")
        self.normalized_shape = tuple(_count("normalized_shape", size) for size in sizes)
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


class Embedding:
    """A line of numbers for each of `num_embeddings` symbols: integers (...) → (..., embedding_dim).

    weight  (num_embeddings, embedding_dim)
    """

    def __init__(self, num_embeddings: int, embedding_dim: int) -> None:
        self.num_embeddings = _count("num_embeddings", num_embeddings)
        self.embedding_dim = _count("embedding_dim", embedding_dim)
        self.weight = parameter(Tensor.randn(num_embeddings, embedding_dim))

    def __call__(self, index: Tensor) -> Tensor:
        if not dtypes.is_int(index.dtype):
            raise TypeError(f"Embedding takes integers, the numbers of symbols, not {index.dtype}")
        return self.weight[index]


class Dropout:
    """While training, elements are 0 with probability p and the others divided by 1 - p; else all stay."""

    def __init__(self, p: float = 0.5) -> None:
        if not 0 <= p <= 1:
            raise ValueError(f"p is a probability, in [0, 1], not {p}")
        self.p = p

    def __call__(self, x: Tensor) -> Tensor:
        return x.dropout(self.p)

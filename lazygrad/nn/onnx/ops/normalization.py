"""Normalizations."""

from __future__ import annotations

from typing import Any

from ....dtype import DType, dtypes
from ....tensor import Tensor
from ..table import op
from ..values import DTYPE_OF, shape_of


def _wide(x: Tensor, dtype: DType = dtypes.float32) -> Tensor:
    """In at least float32."""
    return x if x.dtype in (dtypes.float32, dtypes.float64) else x.cast(dtype)


def over_channels(line: Tensor, rank: int) -> Tensor:
    """A number for each channel, beside (batch, channels, ...)."""
    return line.reshape(1, -1, *[1] * (rank - 2))


@op("BatchNormalization")
def batch_normalization(
    x: Tensor,
    scale: Tensor,
    b: Tensor,
    mean: Tensor,
    var: Tensor,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
    spatial: int = 1,
    is_test: int = 0,
    consumed_inputs: Any = None,
    outputs: int,
) -> Any:
    """(x - mean) / √(var + ε) · scale + b for each channel; in training of the batch's own mean and
    variance.
    """
    running: tuple[Tensor, ...] = (mean, var)
    if training_mode:
        axes = (0, *range(2, x.ndim))
        now_mean, now_var = x.mean(axes), x.var(axes, correction=0)
        running = tuple(
            old * momentum + new * (1 - momentum) for old, new in ((mean, now_mean), (var, now_var))
        )
        mean, var = now_mean, now_var
    factor = scale * (var + epsilon).rsqrt()
    shift = b - mean * factor
    if not spatial and x.ndim > 2:
        y = x * factor + shift
    else:
        y = (
            x * over_channels(factor, x.ndim) + over_channels(shift, x.ndim)
            if x.ndim > 1
            else x * factor + shift
        )
    return (y.cast(x.dtype), *(r.cast(m.dtype) for r, m in zip(running, (mean, var), strict=True)))[:outputs]


@op("InstanceNormalization")
def instance_normalization(x: Tensor, scale: Tensor, b: Tensor, *, epsilon: float = 1e-5) -> Tensor:
    return x.instance_norm(scale, b, epsilon).cast(x.dtype)


@op("GroupNormalization")
def group_normalization(
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    *,
    num_groups: int,
    epsilon: float = 1e-5,
    stash_type: int = 1,
    file_opset: int,
) -> Tensor:
    """Before opset 21 scale and bias had a number for each group."""
    if file_opset < 21:
        each = shape_of(x)[1] // num_groups
        scale, bias = scale.repeat_interleave(each), bias.repeat_interleave(each)
    return _wide(x).group_norm(num_groups, _wide(scale), _wide(bias), epsilon).cast(x.dtype)


@op("LayerNormalization")
def layer_normalization(
    x: Tensor,
    scale: Tensor,
    b: Tensor | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
    outputs: int = 1,
) -> Any:
    """Over the axes from `axis` on; also the mean and 1 / standard deviation."""
    axes = tuple(range(axis % x.ndim, x.ndim))
    wide = _wide(x, DTYPE_OF[stash_type])
    mean = wide.mean(axes, keepdim=True)
    spread = ((wide - mean).square().mean(axes, keepdim=True) + epsilon).rsqrt()
    y = ((wide - mean) * spread).cast(x.dtype) * scale
    return (y if b is None else y + b, mean, spread)[:outputs]


def rms(x: Tensor, scale: Tensor | None, axes: tuple[int, ...], epsilon: float, stash: DType) -> Tensor:
    """x / √(mean of x² + ε) · scale"""
    wide = _wide(x, stash)
    y = (wide * (wide.square().mean(axes, keepdim=True) + epsilon).rsqrt()).cast(x.dtype)
    return y if scale is None else y * scale


@op("RMSNormalization")
def rms_normalization(
    x: Tensor, scale: Tensor, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Tensor:
    return rms(x, scale, tuple(range(axis % x.ndim, x.ndim)), epsilon, DTYPE_OF[stash_type]).cast(x.dtype)


@op("LRN")
def lrn(x: Tensor, *, alpha: float = 0.0001, beta: float = 0.75, bias: float = 1.0, size: int) -> Tensor:
    """Divided by (bias + alpha · mean of x² over `size` channels around)^beta."""
    square = x * x
    around = [(0, 0), ((size - 1) // 2, size // 2)] + [(0, 0)] * (x.ndim - 2)
    total = square.pad(around).unfold(1, size, 1).sum(-1)
    return (x / (bias + alpha / size * total).pow(beta)).cast(x.dtype)


@op("LpNormalization")
def lp_normalization(x: Tensor, *, axis: int = -1, p: int = 2) -> Tensor:
    """Divided by the p-norm; zeros where that is 0."""
    size = x.abs().sum(axis, keepdim=True) if p == 1 else (x * x).sum(axis, keepdim=True).sqrt()
    return (size == 0).where(0.0, x / (size == 0).where(1.0, size)).cast(x.dtype)


@op("MeanVarianceNormalization")
def mean_variance_normalization(x: Tensor, *, axes: Any = (0, 2, 3)) -> Tensor:
    listed = tuple(axes)
    mean = x.mean(listed, keepdim=True)
    deviation = ((x * x).mean(listed, keepdim=True) - mean * mean).sqrt()
    return (x - mean) / (deviation + 1e-9)


@op("Dropout", random=True, host=("ratio", "training_mode"))
def dropout(
    x: Tensor,
    ratio: Any = None,
    training_mode: Any = None,
    *,
    seed: int | None = None,
    is_test: int = 0,
    outputs: int,
) -> Any:
    """Nothing is dropped but in training."""
    training = training_mode is not None and bool(training_mode.item())
    share = 0.5 if ratio is None else float(ratio.item() if hasattr(ratio, "item") else ratio)
    keep = Tensor.full(shape_of(x), True, dtype=dtypes.bool)
    if training and share > 0:
        keep = Tensor.rand(*shape_of(x)) >= share
        x = (keep.where(x, 0.0) / (1 - share)).cast(x.dtype)
    return (x, keep)[:outputs]

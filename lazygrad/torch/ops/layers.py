"""Normalization, pooling and resampling, with the gradients that PyTorch has operations for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...dtype import dtypes
from ...tensor import Tensor
from ..table import aten
from .indexing import scatter_add
from .products import gradients

# *** normalization


def _float(x: Tensor) -> Tensor:
    """Statistics of narrow floats are float32."""
    return x.cast(dtypes.float32) if x.dtype in (dtypes.float16, dtypes.bfloat16) else x


def _moments(x: Tensor, axes: Any, eps: float) -> tuple[Tensor, Tensor]:
    """Mean, and one over the standard deviation, along axes that stay."""
    mean = x.mean(axes, True)
    return mean, ((x - mean).square().mean(axes, True) + eps).rsqrt()


@aten("native_layer_norm")
def layer_norm(
    x: Tensor, normalized: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    axes = tuple(range(x.ndim - len(normalized), x.ndim))
    wide = _float(x)
    mean, rstd = _moments(wide, axes, eps)
    made = (wide - mean) * rstd
    made = made if weight is None else made * weight
    return (made if bias is None else made + bias), mean, rstd


@aten("native_layer_norm_backward")
def layer_norm_backward(
    slope: Tensor,
    x: Tensor,
    normalized: Sequence[int],
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    wanted: Sequence[bool],
) -> tuple[Any, Any, Any]:
    """Of input, weight and bias (Ba, Kiros, Hinton: Layer Normalization, 2016)."""
    inner = tuple(range(x.ndim - len(normalized), x.ndim))
    outer = tuple(range(x.ndim - len(normalized)))
    slopes, seen = _float(slope), (_float(x) - mean) * rstd
    of_x = of_weight = of_bias = None
    if wanted[0]:
        scaled = slopes if weight is None else slopes * weight
        of_x = (scaled - scaled.mean(inner, True) - seen * (scaled * seen).mean(inner, True)) * rstd
    if wanted[1] and weight is not None:
        of_weight = (slopes * seen).sum(outer) if outer else slopes * seen
    if wanted[2] and bias is not None:
        of_bias = slopes.sum(outer) if outer else slopes
    return of_x, of_weight, of_bias


def _group_norm(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, groups: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    batch, channels = x.shape[:2]
    wide = _float(x).reshape(batch, groups, -1)
    mean, rstd = _moments(wide, 2, eps)
    made = ((wide - mean) * rstd).reshape(x.shape)
    each = (1, channels, *[1] * (x.ndim - 2))
    made = made if weight is None else made * weight.reshape(each)
    made = made if bias is None else made + bias.reshape(each)
    return made, mean.reshape(batch, groups), rstd.reshape(batch, groups)


@aten("native_group_norm")
def group_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    batch: int,
    channels: int,
    inner: int,
    groups: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    return _group_norm(x, weight, bias, groups, eps)


@aten("native_group_norm_backward")
def group_norm_backward(
    slope: Tensor,
    x: Tensor,
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    batch: int,
    channels: int,
    inner: int,
    groups: int,
    wanted: Sequence[bool],
) -> tuple[Any, Any, Any]:
    """Of input, weight and bias (Wu, He: Group Normalization, 2018)."""
    slopes = _float(slope).reshape(batch, groups, -1)
    seen = (_float(x).reshape(batch, groups, -1) - mean.reshape(batch, groups, 1)) * rstd.reshape(
        batch, groups, 1
    )
    of_x = of_weight = of_bias = None
    if wanted[0]:
        scaled = slopes
        if weight is not None:
            scaled = (slopes.reshape(batch, channels, inner) * weight.reshape(1, channels, 1)).reshape(
                batch, groups, -1
            )
        of_x = (scaled - scaled.mean(2, True) - seen * (scaled * seen).mean(2, True)) * rstd.reshape(
            batch, groups, 1
        )
        of_x = of_x.reshape(x.shape)
    if wanted[1]:
        of_weight = (slopes * seen).reshape(batch, channels, inner).sum((0, 2))
    if wanted[2]:
        of_bias = slopes.reshape(batch, channels, inner).sum((0, 2))
    return of_x, of_weight, of_bias


def _batch_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, rstd: Tensor) -> Tensor:
    each = (1, x.shape[1], *[1] * (x.ndim - 2))
    made = (_float(x) - mean.reshape(each)) * rstd.reshape(each)
    made = made if weight is None else made * weight.reshape(each)
    return made if bias is None else made + bias.reshape(each)


@aten("_native_batch_norm_legit_no_training")
def batch_norm_of_running(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    made = _batch_norm(x, weight, bias, running_mean, (running_var + eps).rsqrt())
    return made, Tensor.zeros(0), Tensor.zeros(0)


@aten("_native_batch_norm_legit_functional")
def batch_norm_of_batch(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, ...]:
    """The result, the statistics that the gradient reads, and the running ones as they are afterwards."""
    if not training:
        made = _batch_norm(x, weight, bias, running_mean, (running_var + eps).rsqrt())
        return made, Tensor.zeros(0), Tensor.zeros(0), running_mean, running_var
    made, mean, rstd, var = _of_batch(x, weight, bias, eps)
    sizes: Any = x.shape
    count = math.prod(sizes) // sizes[1]
    unbiased = var * (count / max(count - 1, 1))
    return (
        made,
        mean,
        rstd,
        running_mean * (1 - momentum) + mean * momentum,
        running_var * (1 - momentum) + unbiased * momentum,
    )


@aten("_batch_norm_with_update_functional")
def batch_norm_with_update(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> tuple[Tensor, ...]:
    """As `batch_norm_of_batch`, with the memory that other implementations keep for the gradient: none."""
    made = batch_norm_of_batch(x, weight, bias, running_mean, running_var, True, momentum, eps)
    return (*made[:3], Tensor.zeros(0, dtype=dtypes.uint8), *made[3:])


@aten("_native_batch_norm_legit.no_stats")
def batch_norm_without_running(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, training: bool, momentum: float, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    return _of_batch(x, weight, bias, eps)[:3]


def _of_batch(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The result, the mean of each channel, one over its deviation, and its variance."""
    axes = tuple(d for d in range(x.ndim) if d != 1)
    wide = _float(x)
    mean, var = wide.mean(axes), wide.var(axes, correction=0)
    rstd = (var + eps).rsqrt()
    return _batch_norm(x, weight, bias, mean, rstd), mean, rstd, var


@aten("_weight_norm_interface_backward")
def weight_norm_backward(
    slope: Tensor, direction: Tensor, length: Tensor, norms: Tensor, dim: int
) -> tuple[Tensor, Tensor]:
    """Of direction and length of each row along `dim` (Salimans, Kingma: Weight Normalization, 2016)."""
    axes = tuple(d for d in range(direction.ndim) if d != dim % direction.ndim)
    along = (slope * direction).sum(axes, True) / norms
    return (slope - direction * (along / norms)) * (length / norms), along


# *** pooling


def _several(values: Any, count: int) -> tuple[int, ...]:
    given = [values] if isinstance(values, int) else list(values)
    return tuple(given * count if len(given) == 1 else given)


def _pooled(x: Tensor, count: int) -> tuple[Tensor, bool]:
    """With a batch in front, and whether there was one."""
    return (x, True) if x.ndim == count + 2 else (x.unsqueeze(0), False)


def _max_pool(
    x: Tensor, count: int, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> tuple[Tensor, Tensor]:
    given, batched = _pooled(x, count)
    made, places = given.max_pool2d(
        _several(kernel, count),
        _several(stride, count) if stride else None,
        _several(dilation, count),
        _several(padding, count),
        ceil_mode,
        return_indices=True,
    )
    return (made, places) if batched else (made.squeeze(0), places.squeeze(0))


@aten("max_pool2d_with_indices")
def max_pool2d(
    x: Tensor, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> tuple[Tensor, Tensor]:
    return _max_pool(x, 2, kernel, stride, padding, dilation, ceil_mode)


@aten("max_pool3d_with_indices")
def max_pool3d(
    x: Tensor, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> tuple[Tensor, Tensor]:
    return _max_pool(x, 3, kernel, stride, padding, dilation, ceil_mode)


@aten("max_pool2d_with_indices_backward")
def max_pool2d_backward(
    slope: Tensor,
    x: Tensor,
    kernel: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    places: Tensor,
) -> Tensor:
    """Each element's gradient goes to where its maximum was."""
    size = math.prod(x.shape[-2:])
    front = x.shape[:-2]
    zeros = Tensor.zeros(*front, size, dtype=slope.dtype)
    return scatter_add(zeros, -1, places.reshape(*front, -1), slope.reshape(*front, -1)).reshape(x.shape)


def _avg_pool(
    x: Tensor,
    count: int,
    kernel: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: int | None,
) -> Tensor:
    given, batched = _pooled(x, count)
    size, padding = _several(kernel, count), _several(padding, count)
    stride = _several(stride, count) if stride else size
    if divisor is None:
        made = given.avg_pool2d(size, stride, 1, padding, ceil_mode, count_include_pad)
    else:
        if ceil_mode:  # every window is divided by the same number
            given, padding = _with_whole_windows(given, size, stride, padding), (0,) * count
        made = given.avg_pool2d(size, stride, 1, padding) * (math.prod(size) / divisor)
    return made if batched else made.squeeze(0)


def _with_whole_windows(
    x: Tensor, size: Sequence[int], stride: Sequence[int], padding: Sequence[int]
) -> Tensor:
    """Padded with zeros until the windows of `ceil_mode` lie in it whole."""
    sizes: Any = x.shape[-len(size) :]
    around: list[int] = []
    for n, k, s, p in zip(sizes, size, stride, padding, strict=True):
        windows = -(-(n + 2 * p - k) // s) + 1
        windows -= (windows - 1) * s >= n + p  # none begins in the padding behind
        around = [p, max(0, (windows - 1) * s + k - n - p), *around]
    return x.pad(tuple(around))


@aten("avg_pool2d")
def avg_pool2d(
    x: Tensor,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor: int | None = None,
) -> Tensor:
    return _avg_pool(x, 2, kernel, stride, padding, ceil_mode, count_include_pad, divisor)


@aten("avg_pool1d")
def avg_pool1d(
    x: Tensor,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    return _avg_pool(x, 1, kernel, stride, padding, ceil_mode, count_include_pad, None)


@aten("avg_pool3d")
def avg_pool3d(
    x: Tensor,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor: int | None = None,
) -> Tensor:
    return _avg_pool(x, 3, kernel, stride, padding, ceil_mode, count_include_pad, divisor)


@aten("avg_pool2d_backward")
def avg_pool2d_backward(slope: Tensor, x: Tensor, *how: Any) -> Tensor:
    return gradients(lambda x: avg_pool2d(x, *how), (x,), slope)[0]


def _adaptive(x: Tensor, size: Sequence[int], count: int) -> Tensor:
    given, batched = _pooled(x, count)
    method = {1: "adaptive_avg_pool1d", 2: "adaptive_avg_pool2d", 3: "adaptive_avg_pool3d"}[count]
    made: Tensor = getattr(given, method)(tuple(size))
    return made if batched else made.squeeze(0)


@aten("_adaptive_avg_pool2d")
def adaptive_avg_pool2d(x: Tensor, size: Sequence[int]) -> Tensor:
    return _adaptive(x, size, 2)


@aten("adaptive_avg_pool1d")
def adaptive_avg_pool1d(x: Tensor, size: Sequence[int]) -> Tensor:
    return _adaptive(x, size, 1)


@aten("_adaptive_avg_pool3d")
def adaptive_avg_pool3d(x: Tensor, size: Sequence[int]) -> Tensor:
    return _adaptive(x, size, 3)


@aten("_adaptive_avg_pool2d_backward")
def adaptive_avg_pool2d_backward(slope: Tensor, x: Tensor) -> Tensor:
    size: Any = slope.shape[-2:]
    return gradients(lambda x: _adaptive(x, size, 2), (x,), slope)[0]


def _adaptive_max(x: Tensor, size: Sequence[int], count: int) -> tuple[Tensor, Tensor]:
    given, batched = _pooled(x, count)
    pool = given.adaptive_max_pool2d if count == 2 else given.adaptive_max_pool3d
    made, places = pool(tuple(size), return_indices=True)
    return (made, places) if batched else (made.squeeze(0), places.squeeze(0))


@aten("adaptive_max_pool2d")
def adaptive_max_pool2d(x: Tensor, size: Sequence[int]) -> tuple[Tensor, Tensor]:
    return _adaptive_max(x, size, 2)


@aten("adaptive_max_pool3d")
def adaptive_max_pool3d(x: Tensor, size: Sequence[int]) -> tuple[Tensor, Tensor]:
    return _adaptive_max(x, size, 3)


@aten("adaptive_max_pool2d_backward")
def adaptive_max_pool2d_backward(slope: Tensor, x: Tensor, places: Tensor) -> Tensor:
    return max_pool2d_backward(slope, x, None, None, None, None, False, places)


# *** windows and pictures


@aten("col2im")
def col2im(x: Tensor, size: Any, kernel: Any, dilation: Any, padding: Any, stride: Any) -> Tensor:
    batched = x.ndim == 3
    given = x if batched else x.unsqueeze(0)
    made = given.fold(tuple(size), tuple(kernel), tuple(dilation), tuple(padding), tuple(stride))
    return made if batched else made.squeeze(0)


@aten("grid_sampler_2d", "grid_sampler_3d")
def grid_sampler(x: Tensor, grid: Tensor, mode: int, padding: int, align_corners: bool) -> Tensor:
    modes, paddings = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
    return x.grid_sample(grid, modes[mode], paddings[padding], align_corners)


@aten("upsample_bilinear2d.vec")
def upsample_bilinear(x: Tensor, size: Any, align_corners: bool, scale: Any) -> Tensor:
    return _resized(x, size, scale, "bilinear", align_corners)


@aten("upsample_bilinear2d.default")
def upsample_bilinear_to(
    x: Tensor, size: Any, align_corners: bool, scale_h: float | None = None, scale_w: float | None = None
) -> Tensor:
    """Scales, if there are some, say where pixels lie; the size follows from them."""
    scale = None if scale_h is None or scale_w is None else (scale_h, scale_w)
    return _resized(x, size if scale is None else None, scale, "bilinear", align_corners)


@aten("upsample_nearest2d.vec")
def upsample_nearest(x: Tensor, size: Any, scale: Any) -> Tensor:
    return _resized(x, size, scale, "nearest", None)


def _resized(x: Tensor, size: Any, scale: Any, mode: str, align_corners: bool | None) -> Tensor:
    factors = None if scale is None else tuple(scale)
    return x.interpolate(None if size is None else tuple(size), factors, mode, align_corners=align_corners)

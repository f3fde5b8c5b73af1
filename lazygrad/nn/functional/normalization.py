"""Normalization, with weights and running statistics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...dtype import dtypes, sum_acc_dtype
from ...shape import prod, shape_text
from ...tensor import Tensor, no_grad


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Mean 0 and variance 1 over the last axes, which have `normalized_shape`; then weight and bias.

    >>> nn.functional.layer_norm(Tensor([1.0, 3.0]), (2,), eps=0.0).tolist()
    [-1.0, 1.0]
    """
    x = input.layernorm(_last_axes(input, normalized_shape, "layer_norm"), eps)
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """Divided by the root of the mean square over the last axes, then times weight.

    eps  the dtype's smallest step from 1 if not given

    >>> print(nn.functional.rms_norm(Tensor([1.0, 7.0]), (2,)).numpy())
    [0.2 1.4]
    """
    axes = _last_axes(input, normalized_shape, "rms_norm")
    x = input.rms_norm(axes, dtypes.finfo(input.dtype).eps if eps is None else eps)
    return x if weight is None else x * weight


def _last_axes(input: Tensor, normalized_shape: Sequence[int], name: str) -> tuple[int, ...]:
    sizes = tuple(normalized_shape)
    if not sizes or input.shape[-len(sizes) :] != sizes:
        raise ValueError(
            f"{name} over {shape_text(sizes)} needs shape (..., {', '.join(map(str, sizes))}), "
            f"not {shape_text(input.shape)}"
        )
    return tuple(range(-len(sizes), 0))


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float | Tensor = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Mean 0 and variance 1 of each channel (axis 1), then weight and bias (Ioffe, Szegedy 2015).

    In training by the batch, which moves the running statistics by `momentum`, in place; else by them.

    >>> zero, one = Tensor([0.0]), Tensor([4.0])
    >>> nn.functional.batch_norm(Tensor([[2.0]]), zero, one, eps=0.0).tolist()
    [[1.0]]
    """
    if input.ndim < 2:
        raise ValueError(f"batch_norm takes (batch, channels, ...), not shape {shape_text(input.shape)}")
    if not training:
        if running_mean is None or running_var is None:
            raise ValueError("batch_norm needs running_mean and running_var where training is off")
        return input.batchnorm(weight, bias, running_mean, (running_var + eps).rsqrt())
    axes = (0, *range(2, input.ndim))
    size = _several(input, axes, "batch_norm by the batch needs more than one value for each channel")
    mean = input.mean(axes)
    away = input - mean.reshape(1, -1, *((1,) * (input.ndim - 2)))
    wide = away.cast(sum_acc_dtype(away.dtype))  # squares leave the numbers of float16 from 256 on
    variance = (wide * wide).mean(axes)
    _move(running_mean, mean.detach(), momentum)
    _move(running_var, variance.detach() * (size / (size - 1)), momentum)
    return input.batchnorm(weight, bias, mean, (variance + eps).rsqrt().cast(away.dtype))


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float | Tensor = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Mean 0 and variance 1 of each channel of each sample, then weight and bias.

    With `use_input_stats` off by the running statistics; else these move by `momentum`, in place.

    >>> nn.functional.instance_norm(Tensor([[[1.0, 3.0]]]), eps=0.0).tolist()
    [[[-1.0, 1.0]]]
    """
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    axes = tuple(range(2, input.ndim))
    _several(input, axes, "instance_norm needs more than one value for each channel of a sample")
    if running_mean is not None or running_var is not None:
        still = input.detach()
        _move(running_mean, still.mean(axes).mean(0), momentum)
        _move(running_var, still.var(axes).mean(0), momentum)
    return input.instance_norm(weight, bias, eps)


def _several(input: Tensor, axes: Sequence[int], need: str) -> Any:
    """How many elements some axes have: one has no variance."""
    size = prod(input.shape[axis] for axis in axes)
    if isinstance(size, int) and size == 1:
        raise ValueError(f"{need}, not shape {shape_text(input.shape)}")
    return size


def _move(running: Tensor | None, towards: Tensor, momentum: float | Tensor) -> None:
    if running is not None:
        with no_grad():
            running.assign((running + (towards - running) * momentum).cast(running.dtype))

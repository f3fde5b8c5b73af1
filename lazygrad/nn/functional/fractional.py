"""Maxima of windows at random places, so that a picture becomes smaller by any ratio.

(Graham, Fractional max-pooling, 2014: the pseudorandom sequences.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...dtype import dtypes
from ...shape import shape_text, vmax
from ...tensor import Tensor
from ...tensor.neural.convolution import each
from ...tensor.neural.pooling import greatest
from ..parameters import Sizes
from .axes import over_axes

Ratios = float | Sequence[float]


@over_axes
def _fractional_max_pool(
    axes: int,
    input: Tensor,
    kernel_size: Sizes,
    output_size: Sizes | None = None,
    output_ratio: Ratios | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """The greatest element of each of `output_size` windows of {last}, whose distances are random: the
    average one is what makes them fill the axis.

    input            (batch, channels, {sizes}), or without batch
    output_ratio     instead of `output_size`: the part of {last} that is left, between 0 and 1
    return_indices   also where each was, in {last} flattened
    _random_samples  (batch, channels, {n}): numbers from 0 to below 1, one for each axis, drawn if not given

    >>> nn.functional.fractional_max_pool{n}d(Tensor.ones(1, 1{fours}), 2, 2).shape
    (1, 1{twos})
    """
    values, places = _pooled(axes, input, kernel_size, output_size, output_ratio, _random_samples)
    return (values, places) if return_indices else values


@over_axes
def _fractional_max_pool_with_indices(
    axes: int,
    input: Tensor,
    kernel_size: Sizes,
    output_size: Sizes | None = None,
    output_ratio: Ratios | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """`fractional_max_pool{n}d` with `return_indices`, whatever that is here.

    >>> len(nn.functional.fractional_max_pool{n}d_with_indices(Tensor.ones(1, 1{fours}), 2, 3))
    2
    """
    return _pooled(axes, input, kernel_size, output_size, output_ratio, _random_samples)


def _pooled(
    axes: int,
    x: Tensor,
    kernel_size: Sizes,
    output_size: Sizes | None,
    output_ratio: Ratios | None,
    samples: Tensor | None,
) -> tuple[Tensor, Tensor]:
    name = f"fractional_max_pool{axes}d"
    if x.ndim not in (axes + 1, axes + 2) or not dtypes.is_float(x.dtype):
        raise ValueError(
            f"{name} takes floats (batch, channels) and {axes} axes, or these without batch, not "
            f"{x.dtype.name} of shape {shape_text(x.shape)}"
        )
    several = x if x.ndim == axes + 2 else x.unsqueeze(0)
    whole = tuple(map(vmax, x.shape[-axes:]))
    kernel = each(kernel_size, axes, "kernel_size")
    sizes = _output_sizes(name, whole, kernel, output_size, output_ratio)
    lead = tuple(several.shape[:2])
    if samples is None:
        samples = Tensor.rand(*lead, axes, dtype=x.dtype, device=x.device)
    if samples.shape != (*lead, axes):
        raise ValueError(
            f"{name}: _random_samples of a batch of {shape_text(several.shape)} have shape "
            f"{shape_text((*lead, axes))}, not {shape_text(samples.shape)}"
        )
    # (batch, channels, *sizes, *kernel): where the elements of each window are
    indices: Tensor | None = None
    for axis, (length, wide, count) in enumerate(zip(whole, kernel, sizes, strict=True)):
        # of the last axis is the first sample of a picture; of a volume each axis has its own
        sample = samples[..., axes - 1 - axis if axes == 2 else axis]
        own = _begins(sample, length, wide, count).unsqueeze(-1) + Tensor.arange(wide, device=x.device)
        shape = [1] * (2 * axes)
        shape[axis], shape[axes + axis] = count, wide
        own = own.reshape(*lead, *shape)
        indices = own if indices is None else indices * length + own
    assert indices is not None
    flat = several.flatten(2)
    windows = flat.detach().gather(2, indices.flatten(2)).reshape(indices.shape)
    _, best = greatest(windows, indices, axes, True)
    values = flat.gather(2, best.flatten(2)).reshape(best.shape)
    return (values, best) if x.ndim == axes + 2 else (values.squeeze(0), best.squeeze(0))


def one_of(
    name: str, size: Sizes | None, ratio: Ratios | None, axes: int
) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """(the output's size along each axis, or its part of each axis); a ValueError unless one is given."""
    if (size is None) == (ratio is None):
        raise ValueError(f"{name} takes one of output_size and output_ratio, not {size!r} and {ratio!r}")
    if size is not None:
        return tuple(each(size, axes, "output_size")), ()
    parts = tuple(ratio) if isinstance(ratio, Sequence) else (ratio,) * axes
    if len(parts) != axes or not all(isinstance(part, (int, float)) and 0 < part < 1 for part in parts):
        raise ValueError(
            f"{name}'s output_ratio must be a number between 0 and 1, or {axes} of them, not {ratio!r}"
        )
    return (), tuple(float(part) for part in parts if part is not None)


def _output_sizes(
    name: str, whole: Sequence[int], kernel: Sequence[int], size: Sizes | None, ratio: Ratios | None
) -> tuple[int, ...]:
    known, parts = one_of(name, size, ratio, len(whole))
    sizes = known or tuple(int(length * part) for length, part in zip(whole, parts, strict=True))
    for length, wide, count in zip(whole, kernel, sizes, strict=True):
        if count < 1 or wide < 1 or wide + count - 1 > length:
            raise ValueError(
                f"{name}: {count} windows of {wide} do not fit an axis of {length}: they begin at places of "
                f"their own, so there must be 1 to {length - wide + 1} of them"
            )
    return sizes


def _begins(sample: Tensor, length: int, wide: int, count: int) -> Tensor:
    """Where each window begins: ⌊(i + sample)·α⌋ - ⌊sample·α⌋, and the last at the end of the axis."""
    last = length - wide
    fixed = Tensor.full((*sample.shape, 1), last, dtype=dtypes.int32, device=sample.device)
    if count == 1:
        return fixed
    precise = sample if sample.dtype.itemsize >= 4 else sample.float()
    step = Tensor(last, dtype=precise.dtype, device=sample.device) / (count - 1)
    counter = Tensor.arange(count - 1, dtype=precise.dtype, device=sample.device)
    begins = ((precise.unsqueeze(-1) + counter) * step).int() - (precise * step).int().unsqueeze(-1)
    return begins.clamp(0, last).cat(fixed, dim=-1)


_, fractional_max_pool2d, fractional_max_pool3d = _fractional_max_pool
_, fractional_max_pool2d_with_indices, fractional_max_pool3d_with_indices = _fractional_max_pool_with_indices

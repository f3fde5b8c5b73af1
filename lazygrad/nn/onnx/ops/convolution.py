"""Convolutions, their transposes and relatives."""

from __future__ import annotations

import math
from typing import Any

from ....dtype import dtypes
from ....tensor import Tensor
from ..execution import Run
from ..table import op
from ..values import ints, shape_of


def axis_pads(
    sizes: Any, kernel: Any, strides: Any, dilations: Any, pads: Any, auto_pad: str
) -> list[tuple[int, int]]:
    """(before, after) of each axis. SAME: as many windows as the axis divided by the stride, rounded up."""
    rank = len(kernel)
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        found = []
        for size, k, stride, dilation in zip(sizes, kernel, strides, dilations, strict=True):
            total = max((-(-size // stride) - 1) * stride + (k - 1) * dilation + 1 - size, 0)
            small, large = total // 2, total - total // 2
            found.append((small, large) if auto_pad == "SAME_UPPER" else (large, small))
        return found
    if auto_pad == "VALID" or pads is None:
        return [(0, 0)] * rank
    return list(zip(pads[:rank], pads[rank:], strict=True))


def padded(x: Tensor, around: list[tuple[int, int]], value: Any = 0) -> tuple[Tensor, Any]:
    """Pads that a convolution makes itself, or the tensor with those that differ between sides."""
    if all(before == after for before, after in around):
        return x, tuple(before for before, _ in around)
    return x.pad([(0, 0), (0, 0), *around], value=value), 0


@op("Conv")
def conv(
    x: Tensor,
    w: Tensor,
    b: Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Any = None,
    group: int = 1,
    kernel_shape: Any = None,
    pads: Any = None,
    strides: Any = None,
) -> Tensor:
    rank = x.ndim - 2
    kernel = shape_of(w)[2:]
    strides, dilations = strides or [1] * rank, dilations or [1] * rank
    around = axis_pads(shape_of(x)[2:], kernel, strides, dilations, pads, auto_pad)
    x, padding = padded(x, around)
    return x.conv2d(w, b, group, tuple(strides), tuple(dilations), padding)


@op("ConvInteger")
def conv_integer(
    x: Tensor,
    w: Tensor,
    x_zero_point: Tensor | None = None,
    w_zero_point: Tensor | None = None,
    **attributes: Any,
) -> Tensor:
    left, right = x.cast("int32"), w.cast("int32")
    left = left if x_zero_point is None else left - x_zero_point.cast("int32")
    if w_zero_point is not None:
        right = right - w_zero_point.cast("int32").reshape(-1, *[1] * (w.ndim - 1))
    return integer_conv(left, right, **attributes)


def integer_conv(x: Tensor, w: Tensor, **attributes: Any) -> Tensor:
    """In int32; the padding is zeros of numbers that have their zero point taken off."""
    return conv(x, w, **attributes).cast(dtypes.int32)


@op("ConvTranspose")
def conv_transpose(
    x: Tensor,
    w: Tensor,
    b: Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Any = None,
    group: int = 1,
    kernel_shape: Any = None,
    output_padding: Any = None,
    output_shape: Any = None,
    pads: Any = None,
    strides: Any = None,
    run: Run,
) -> Tensor:
    rank = x.ndim - 2
    strides, dilations = strides or [1] * rank, dilations or [1] * rank
    more = output_padding or [0] * rank
    kernel = shape_of(w)[2:]
    whole = [
        (size - 1) * stride + (k - 1) * dilation + 1
        for size, stride, k, dilation in zip(shape_of(x)[2:], strides, kernel, dilations, strict=True)
    ]
    if output_shape is not None or auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        wanted = output_shape or [
            size * stride for size, stride in zip(shape_of(x)[2:], strides, strict=True)
        ]
        around = []
        for full, extra, size in zip(whole, more, wanted[-rank:], strict=True):
            total = full + extra - size
            half = max(total, 0) // 2  # what is missing is added behind
            around.append(
                (half, total - half) if auto_pad == "SAME_UPPER" else (max(total, 0) - half, min(half, total))
            )
    else:
        around = axis_pads(shape_of(x)[2:], kernel, strides, dilations, pads, auto_pad)
    if any(stride > 1 for stride in strides) and all(dilation == 1 for dilation in dilations):
        filters = run.weights.arranged(w, lambda: _phase_filters(w, group, strides))
        y = _by_phases(x, filters, group, strides)
    else:
        y = x.conv_transpose2d(w, None, group, tuple(strides), tuple(dilations))
    ends = [
        full - before - after + extra
        for full, (before, after), extra in zip(whole, around, more, strict=True)
    ]
    cuts = [
        (-before, end + before - size)
        for (before, _), end, size in zip(around, ends, shape_of(y)[2:], strict=True)
    ]
    y = y.pad([(0, 0), (0, 0), *cuts])
    return y if b is None else y + b.reshape(1, -1, *[1] * rank)


def _phase_filters(w: Tensor, group: int, strides: Any) -> Tensor:
    """Of the filters of a transposed convolution, those that make each of its phases by an ordinary one.

    What lies at place q·stride + p of the result is Σᵤ x[q - u] · w[u·stride + p]: a convolution with every
    stride-th tap. So nothing is multiplied by the zeros that a stride puts between the places of x.

    w (channels, out / group, *kernel) → (out · phases, channels / group, *taps)
    """
    channels, out, *kernel = shape_of(w)
    rank = len(kernel)
    taps = [-(-k // stride) for k, stride in zip(kernel, strides, strict=True)]
    whole = [(0, t * stride - k) for t, stride, k in zip(taps, strides, kernel, strict=True)]
    split = [size for pair in zip(taps, strides, strict=True) for size in pair]
    parts = w.pad([(0, 0), (0, 0), *whole]).reshape(group, channels // group, out, *split)
    of_taps, of_phases = range(3, 3 + 2 * rank, 2), range(4, 4 + 2 * rank, 2)
    parts = parts.permute(0, 2, *of_phases, 1, *of_taps)
    return parts.reshape(-1, channels // group, *taps).flip(tuple(range(2, 2 + rank)))


def _by_phases(x: Tensor, filters: Tensor, group: int, strides: Any) -> Tensor:
    """The phases side by side; longer than a transposed convolution, with zeros behind.

    They are stored as the convolution makes them: one that wrote every stride-th place took 8 to 20 times as
    long.
    """
    rank = len(strides)
    y = x.conv2d(filters, None, group, padding=tuple(t - 1 for t in shape_of(filters)[2:])).contiguous()
    n, channels, *places = shape_of(y)
    parts = y.reshape(n, channels // math.prod(strides), *strides, *places)
    order = [axis for number in range(rank) for axis in (2 + rank + number, 2 + number)]
    longer = [size * stride for size, stride in zip(places, strides, strict=True)]
    return parts.permute(0, 1, *order).reshape(n, channels // math.prod(strides), *longer)


@op("DeformConv")
def deform_conv(
    x: Tensor,
    w: Tensor,
    offset: Tensor,
    b: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    dilations: Any = None,
    group: int = 1,
    kernel_shape: Any = None,
    offset_group: int = 1,
    pads: Any = None,
    strides: Any = None,
) -> Tensor:
    """A convolution whose window has each of its places moved by an offset (Dai et al. 2017).

    offset  (batch, groups · kh · kw · 2, out h, out w), y before x      mask  the same without the 2
    """
    if x.ndim != 4:
        raise NotImplementedError("DeformConv works on images (two axes) only")
    n, c, h, width = shape_of(x)
    kh, kw = shape_of(w)[2:]
    oh, ow = shape_of(offset)[2:]
    strides, dilations, pads = strides or [1, 1], dilations or [1, 1], pads or [0] * 4
    taps = kh * kw
    moved = offset.reshape(n, offset_group, taps, 2, oh, ow)
    grid_y = _base(kh, dilations[0], kw, True).reshape(1, 1, taps, 1, 1) + _base(
        oh, strides[0], 1, True
    ).reshape(1, 1, 1, oh, 1)
    grid_x = _base(kw, dilations[1], kh, False).reshape(1, 1, taps, 1, 1) + _base(
        ow, strides[1], 1, True
    ).reshape(1, 1, 1, 1, ow)
    y = moved[:, :, :, 0] + grid_y - pads[0]
    xs = moved[:, :, :, 1] + grid_x - pads[1]
    # align_corners: -1 is the middle of the first pixel, 1 that of the last.
    grid = Tensor.stack(_unit(xs, width), _unit(y, h), dim=-1).reshape(n * offset_group, taps * oh, ow, 2)
    images = x.reshape(n * offset_group, c // offset_group, h, width)
    picked = images.grid_sample(grid, "bilinear", "zeros", True)
    picked = picked.reshape(n, offset_group, c // offset_group, taps, oh, ow)
    if mask is not None:
        picked = picked * mask.reshape(n, offset_group, 1, taps, oh, ow)
    columns = picked.reshape(n, group, (c // group) * taps, oh * ow)
    filters = shape_of(w)[0]
    out = w.reshape(1, group, filters // group, -1).matmul(columns).reshape(n, filters, oh, ow)
    return out if b is None else out + b.reshape(1, -1, 1, 1)


def _base(count: int, step: int, repeats: int, each: bool) -> Tensor:
    line = Tensor.arange(count).float() * step
    return line.repeat_interleave(repeats) if each else line.repeat(repeats)


def _unit(place: Tensor, size: int) -> Tensor:
    return place * (2 / (size - 1)) - 1 if size > 1 else place * 2


@op("CausalConvWithState")
def causal_conv_with_state(
    x: Tensor, w: Tensor, b: Tensor | None = None, state: Tensor | None = None, *, activation: str = "none"
) -> Any:
    """A depthwise convolution along time that sees the past only, and hands on the end of what it saw.

    x  (batch, channels, time)    w  (channels, 1, kernel)    state  (batch, channels, kernel - 1)
    """
    kernel = shape_of(w)[-1]
    past = Tensor.zeros(*shape_of(x)[:-1], kernel - 1, dtype=x.dtype) if state is None else state
    seen = past.cat(x, dim=-1) if kernel > 1 else x
    y = seen.conv2d(w, b, groups=shape_of(x)[1])
    if activation in ("silu", "swish"):
        y = y.silu()
    elif activation != "none":
        raise NotImplementedError(f"CausalConvWithState with the activation {activation!r} is not supported")
    return y, seen[..., shape_of(seen)[-1] - (kernel - 1) :]


@op("Col2Im", host=("image_shape", "block_shape"))
def col2im(
    x: Tensor,
    image_shape: Any,
    block_shape: Any,
    *,
    dilations: Any = None,
    pads: Any = None,
    strides: Any = None,
) -> Tensor:
    """Columns summed into images: the transpose of the convolution that takes each place of a block."""
    image, block = ints(image_shape), ints(block_shape)
    rank = len(image)
    dilations, strides, pads = dilations or [1] * rank, strides or [1] * rank, pads or [0] * (2 * rank)
    n, taps = shape_of(x)[0], math.prod(block)
    channels = shape_of(x)[1] // taps
    counts = [
        (size + pads[a] + pads[rank + a] - dilations[a] * (block[a] - 1) - 1) // strides[a] + 1
        for a, size in enumerate(image)
    ]
    one = Tensor.eye(taps, dtype=x.dtype).reshape(taps, 1, *block)
    windows = x.reshape(n * channels, taps, *counts)
    y = windows.conv_transpose2d(one, None, 1, tuple(strides), tuple(dilations))
    cuts = [(-pads[a], image[a] + pads[a] - shape_of(y)[2 + a]) for a in range(rank)]
    return y.pad([(0, 0), (0, 0), *cuts]).reshape(n, channels, *image)

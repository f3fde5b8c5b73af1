"""Fourier transforms, windows, the scale of mel."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....tensor import Tensor
from ..table import op
from ..values import numpy_dtype, scalar, shape_of


def _complex(x: Tensor) -> Tensor:
    """With a last axis of two: a real signal has 0 as its other part."""
    return x if shape_of(x)[-1] == 2 else x.pad([(0, 0)] * (x.ndim - 1) + [(0, 1)])


def _transformed(x: Tensor, length: Any, axis: int, inverse: int, onesided: int) -> Tensor:
    axis %= x.ndim
    count = shape_of(x)[axis] if length is None else int(scalar(length))
    if onesided and inverse:
        count = 2 * (shape_of(x)[axis] - 1) if length is None else count
        return _complex(x).irfft(count, axis).unsqueeze(-1)
    if onesided:
        real = x.squeeze(-1) if shape_of(x)[-1] == 1 else x[..., 0]
        return real.rfft(count, axis)
    both = _complex(x)
    return both.ifft(count, axis) if inverse else both.fft(count, axis)


@op("DFT", since=20, host=("dft_length", "axis"))
def dft(
    x: Tensor, dft_length: Any = None, axis: Any = None, *, inverse: int = 0, onesided: int = 0
) -> Tensor:
    return _transformed(x, dft_length, -2 if axis is None else int(scalar(axis)), inverse, onesided)


@op("DFT", since=17, host=("dft_length",))
def dft_along_attribute(
    x: Tensor, dft_length: Any = None, *, axis: int = 1, inverse: int = 0, onesided: int = 0
) -> Tensor:
    return _transformed(x, dft_length, axis, inverse, onesided)


@op("STFT", host=("frame_step", "frame_length"))
def stft(
    signal: Tensor,
    frame_step: Any,
    window: Tensor | None = None,
    frame_length: Any = None,
    *,
    onesided: int = 1,
) -> Tensor:
    """(batch, time, 1 or 2) → (batch, frames, frequencies, 2)"""
    size = int(scalar(frame_length)) if frame_length is not None else shape_of(signal)[1]
    if window is not None and frame_length is None:
        size = shape_of(window)[0]
    frames = signal.unfold(1, size, int(scalar(frame_step)))  # (batch, frames, 1 or 2, size)
    frames = frames if window is None else frames * window
    if onesided:
        return frames[:, :, 0].rfft(size, -1)
    return _complex(frames.permute(0, 1, 3, 2)).fft(size, 2)


@op(
    "MelWeightMatrix",
    host=("num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz", "upper_edge_hertz"),
)
def mel_weight_matrix(
    num_mel_bins: Any,
    dft_length: Any,
    sample_rate: Any,
    lower_edge_hertz: Any,
    upper_edge_hertz: Any,
    *,
    output_datatype: int = 1,
) -> Any:
    """Triangles whose corners are equally far on the scale 2595 · log₁₀(1 + f / 700)."""
    count, length = int(scalar(num_mel_bins)), int(scalar(dft_length))
    low, high = (
        2595 * np.log10(1 + float(scalar(edge)) / 700) for edge in (lower_edge_hertz, upper_edge_hertz)
    )
    corners = low + np.arange(count + 2) * ((high - low) / (count + 2))
    hertz = 700 * (np.power(10, corners / 2595) - 1)
    bins = ((length + 1) * hertz // int(scalar(sample_rate))).astype(np.int64)
    result = np.zeros((length // 2 + 1, count))
    for number in range(count):
        left, middle, right = bins[number : number + 3]
        if middle == left:
            result[middle, number] = 1
        else:
            result[left : middle + 1, number] = np.arange(middle - left + 1) / (middle - left)
        if right > middle:
            result[middle:right, number] = (right - np.arange(middle, right)) / (right - middle)
    return result.astype(numpy_dtype(output_datatype))

"""The standard's extension for Fourier transforms, as far as it needs no complex numbers."""

from __future__ import annotations

from typing import Any

from .arrays import Array

__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn",
    "rfft", "rfftfreq", "rfftn",
]  # fmt: skip


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Any:
    """The frequencies of a transform of `n` samples at distances `d`."""
    return Array.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Any:
    """The frequencies of a transform of `n` real samples at distances `d`."""
    return Array.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x: Any, /, *, axes: Any = None) -> Any:
    """Frequency 0 in the middle of axes."""
    return x.fftshift(axes)


def ifftshift(x: Any, /, *, axes: Any = None) -> Any:
    """Frequency 0 at the beginning of axes: the inverse of `fftshift`."""
    return x.ifftshift(axes)


def _one_axis(name: str) -> Any:
    def function(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Any:
        raise _lacking(name)

    function.__name__ = function.__qualname__ = name
    return function


def _several_axes(name: str) -> Any:
    def function(x: Any, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Any:
        raise _lacking(name)

    function.__name__ = function.__qualname__ = name
    return function


def _lacking(name: str) -> NotImplementedError:
    return NotImplementedError(
        f"the standard's fft.{name} has complex numbers, which lazygrad lacks; lazygrad.fft.{name} has them "
        "as a last axis of 2"
    )


fft, ifft, rfft, irfft, hfft, ihfft = map(_one_axis, ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"))
fftn, ifftn, rfftn, irfftn = map(_several_axes, ("fftn", "ifftn", "rfftn", "irfftn"))

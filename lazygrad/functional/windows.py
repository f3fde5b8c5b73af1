"""Windows for spectra: how much each of n samples counts.

A periodic window is a symmetric one of n + 1 samples without the last. Sources: Harris, On the use of windows
for harmonic analysis with the discrete Fourier transform (Proc. IEEE 66, 1978); Kaiser and Schafer (1980).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..dtype import default_float
from ..tensor import Tensor


def bartlett_window(window_length: int, periodic: bool = True, **kwargs: Any) -> Tensor:
    """A triangle that is 0 at both ends.

    >>> functional.bartlett_window(5, periodic=False).tolist()
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    return _window(window_length, periodic, lambda at: 1.0 - (at * 2.0 - 1.0).abs(), kwargs)


def hann_window(window_length: int, periodic: bool = True, **kwargs: Any) -> Tensor:
    """½ - ½ cos 2πt.

    >>> functional.hann_window(4).round(4).tolist()
    [0.0, 0.5, 1.0, 0.5]
    """
    return _window(window_length, periodic, lambda at: 0.5 - (at * (2.0 * math.pi)).cos() * 0.5, kwargs)


def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, **kwargs: Any
) -> Tensor:
    """alpha - beta cos 2πt.

    >>> functional.hamming_window(2, dtype="float64").round(4).tolist()
    [0.08, 1.0]
    """
    return _window(window_length, periodic, lambda at: alpha - (at * (2.0 * math.pi)).cos() * beta, kwargs)


def blackman_window(window_length: int, periodic: bool = True, **kwargs: Any) -> Tensor:
    """0.42 - 0.5 cos 2πt + 0.08 cos 4πt.

    >>> functional.blackman_window(2).abs().round(4).tolist()
    [0.0, 1.0]
    """

    def value(at: Tensor) -> Tensor:
        return 0.42 - (at * (2.0 * math.pi)).cos() * 0.5 + (at * (4.0 * math.pi)).cos() * 0.08

    return _window(window_length, periodic, value, kwargs)


def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, **kwargs: Any) -> Tensor:
    """I0(β √(1 - (2t - 1)²)) / I0(β).

    >>> functional.kaiser_window(3, periodic=False, dtype="float64").round(4).tolist()
    [0.0001, 1.0, 0.0001]
    """

    def value(at: Tensor) -> Tensor:
        side = at * 2.0 - 1.0
        inside = ((1.0 - side * side).clamp(min=0.0).sqrt() * beta).i0()
        return inside / at._filled(beta).i0()

    return _window(window_length, periodic, value, kwargs)


def _window(
    length: int, periodic: bool, value: Callable[[Tensor], Tensor], options: dict[str, Any]
) -> Tensor:
    """The values at t = 0 to 1, in a dtype and on a device."""
    unknown = options.keys() - {"dtype", "device", "requires_grad", "layout", "pin_memory"}
    if unknown:
        raise TypeError(f"a window has no argument {sorted(unknown)[0]!r}; it takes dtype and device")
    if length < 0:
        raise ValueError(f"a window has a length of at least 0, not {length}")
    dtype = options.get("dtype") or default_float()
    last = length if periodic else length - 1
    if last < 1 or length == 1:
        made = Tensor.ones(length, dtype=dtype, device=options.get("device"))
    else:
        at = Tensor.arange(length, dtype="float64", device=options.get("device")) / float(last)
        made = value(at).cast(dtype)
    return made.requires_grad_() if options.get("requires_grad") else made

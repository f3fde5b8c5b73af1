"""`torch.fft` on lazygrad's Tensors: the same functions; complex numbers are a last axis of 2.

All but `hfft` and `ihfft` are methods of Tensor, taken as functions.
"""

from __future__ import annotations

from .tensor import Tensor
from .tensor.as_functions import function_of
from .tensor.trace import check_functions

fft = function_of(Tensor.fft)
fft2 = function_of(Tensor.fft2)
fftn = function_of(Tensor.fftn)
fftfreq = Tensor.fftfreq
fftshift = function_of(Tensor.fftshift)
ifft = function_of(Tensor.ifft)
ifft2 = function_of(Tensor.ifft2)
ifftn = function_of(Tensor.ifftn)
ifftshift = function_of(Tensor.ifftshift)
irfft = function_of(Tensor.irfft)
irfft2 = function_of(Tensor.irfft2)
irfftn = function_of(Tensor.irfftn)
rfft = function_of(Tensor.rfft)
rfft2 = function_of(Tensor.rfft2)
rfftfreq = Tensor.rfftfreq
rfftn = function_of(Tensor.rfftn)

#: The scale of a transform there is that of its inverse here.
_SWAPPED = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}


def hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The real spectrum of a signal that is Hermitian, of which one half is given, as complex numbers.

    >>> fft.hfft(Tensor([[1.0, 0.0], [0.0, 0.0]])).tolist()
    [1.0, 1.0]
    """
    return _conjugate(input).irfft(n, dim, _swapped("hfft", norm))


def ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of `hfft`: half of the Hermitian signal whose spectrum is real.

    >>> fft.ihfft(Tensor([1.0, 1.0])).round(4).abs().tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    return _conjugate(input.rfft(n, dim, _swapped("ihfft", norm)))


def _swapped(name: str, norm: str | None) -> str:
    if norm not in _SWAPPED:
        raise ValueError(f"{name}: norm must be 'backward', 'forward' or 'ortho', not {norm!r}")
    return _SWAPPED[norm]


def _conjugate(x: Tensor) -> Tensor:
    if x.ndim < 2 or x.shape[-1] != 2:
        raise ValueError(f"complex numbers need a last axis of size 2, not shape {x.shape}")
    made: Tensor = x * Tensor([1.0, -1.0], dtype=x.dtype, device=x.device)
    return made


check_functions(globals())

"""Complex numbers are pairs here: real and imaginary parts in a last axis of 2, as `fft` gives them."""

from __future__ import annotations

from ..shape import shape_text
from ..tensor import Tensor


def _pairs(name: str, x: Tensor) -> Tensor:
    if x.ndim == 0 or x.shape[-1] != 2:
        raise ValueError(
            f"{name} takes complex numbers, a last axis of 2 (real and imaginary parts), not shape "
            f"{shape_text(x.shape)}"
        )
    return x


def complex(real: Tensor, imag: Tensor) -> Tensor:
    """Complex numbers of these parts: (..., 2).

    >>> functional.complex(Tensor([1.0]), Tensor([2.0])).tolist()
    [[1.0, 2.0]]
    """
    if real.shape != imag.shape or real.dtype is not imag.dtype:
        raise ValueError(
            f"complex takes parts of one shape and dtype, not {real.dtype.name} of {shape_text(real.shape)} "
            f"and {imag.dtype.name} of {shape_text(imag.shape)}"
        )
    return real.stack(imag, dim=-1)


def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """Complex numbers of these lengths and angles: (..., 2).

    >>> functional.polar(Tensor([2.0]), Tensor([0.0])).tolist()
    [[2.0, 0.0]]
    """
    return complex(abs * angle.cos(), abs * angle.sin())


def real(input: Tensor) -> Tensor:
    """The real parts of complex numbers (..., 2).

    >>> functional.real(Tensor([[1.0, 2.0]])).tolist()
    [1.0]
    """
    return _pairs("real", input)[..., 0]


def imag(input: Tensor) -> Tensor:
    """The imaginary parts of complex numbers (..., 2).

    >>> functional.imag(Tensor([[1.0, 2.0]])).tolist()
    [2.0]
    """
    return _pairs("imag", input)[..., 1]


def conj(input: Tensor) -> Tensor:
    """Complex numbers (..., 2) with the other sign of the imaginary part.

    >>> functional.conj(Tensor([[1.0, 2.0]])).tolist()
    [[1.0, -2.0]]
    """
    return real(input).stack(-_pairs("conj", input)[..., 1], dim=-1)


def conj_physical(input: Tensor) -> Tensor:
    """`conj`.

    >>> functional.conj_physical(Tensor([[1.0, 2.0]])).tolist()
    [[1.0, -2.0]]
    """
    return conj(input)


def angle(input: Tensor) -> Tensor:
    """The angles of complex numbers (..., 2), from -π to π.

    >>> functional.angle(Tensor([[2.0, 0.0]])).tolist()
    [0.0]
    """
    return imag(input).atan2(real(input))


def view_as_real(input: Tensor) -> Tensor:
    """Complex numbers (..., 2) as they are: pairs of floats.

    >>> functional.view_as_real(Tensor([[1.0, 2.0]])).tolist()
    [[1.0, 2.0]]
    """
    return _pairs("view_as_real", input)


def view_as_complex(input: Tensor) -> Tensor:
    """Pairs of floats (..., 2) as they are: complex numbers.

    >>> functional.view_as_complex(Tensor([[1.0, 2.0]])).tolist()
    [[1.0, 2.0]]
    """
    return _pairs("view_as_complex", input)

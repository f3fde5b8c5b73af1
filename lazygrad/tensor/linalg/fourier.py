"""The discrete Fourier transform: complex numbers are a trailing axis of 2, (real, imaginary).

A transform of size n = a·b is a transform of size a of every b-th element, a rotation, and a transform of
size b (Cooley and Tukey 1965); sizes up to `SMALL` are one product with a matrix; a size with a large prime
factor becomes a convolution of a size that is a power of 2 (Bluestein 1970). All of it is movement and
products, so it has gradients and fuses. The tables are computed in float64.

Axes are named without the trailing axis of 2: for a complex tensor of shape (3, 8, 2), dim -1 has size 8.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...device import Devices
from ...dtype import default_float, dtypes, numpy_name, to_dtype
from ...shape import shape_text, vmax
from ..arguments import at_most
from ..face import Tensor
from ..shape.movement import checked_axis
from ..signatures import Axis, DTypeLike
from .butterflies import ComplexTransform, RealInverse, RealTransform, has_butterflies

if TYPE_CHECKING:
    import numpy as np


#: A longer axis is a mistake: its factors alone would take gigabytes.
MOST_SAMPLES = 1 << 26
#: Sizes up to this one are one product with a matrix.
SMALL = 32
NORMS = ("backward", "ortho", "forward")


class Fourier(Tensor):
    """Fourier transforms."""

    # *** one axis

    def fft(self, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
        """The transform of complex numbers along an axis: X[k] = Σ x[j]·e^(-2πijk/n).

        n     the size: the axis is cut, or zeros are added      norm  where to divide by n: "backward" (in
        `ifft`, the default), "forward" (here), or "ortho" (by its root, in both)

        >>> Tensor([[1.0, 0.0], [0.0, 0.0]]).fft().tolist()
        [[1.0, 0.0], [1.0, 0.0]]
        """
        return self._transformed("fft", n, dim, norm, False)

    def ifft(self, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
        """The inverse of `fft`.

        >>> Tensor([[1.0, 0.0], [1.0, 0.0]]).ifft().tolist()
        [[1.0, 0.0], [0.0, 0.0]]
        """
        return self._transformed("ifft", n, dim, norm, True)

    def rfft(self, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
        """The first n // 2 + 1 numbers of the transform of real numbers; the others mirror them.

        >>> Tensor([1.0, 0.0]).rfft().tolist()
        [[1.0, 0.0], [1.0, 0.0]]
        """
        axis = self._axis(dim)
        x = self._float()
        size = vmax(x.shape[axis]) if n is None else n
        if has_butterflies(x, size, real=True):
            checked_norm("rfft", norm)
            lines = x._wide()._resized(axis, size).movedim(axis, -1)
            made: Tensor = RealTransform.apply(lines, _factor(norm, size, False))
            return made.movedim(-2, axis).cast(x.dtype)
        whole = x.unsqueeze(-1).pad((0, 1))._transformed("rfft", n, axis, norm, False)
        return whole._window(axis, 0, vmax(whole.shape[axis]) // 2 + 1)

    def irfft(self, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
        """The inverse of `rfft`: n real numbers (2·(m - 1) of m, if not given).

        >>> Tensor([[1.0, 0.0], [1.0, 0.0]]).irfft().tolist()
        [1.0, 0.0]
        """
        axis = self._complex_axis("irfft", dim)
        size = 2 * (vmax(self.shape[axis]) - 1) if n is None else n
        if size < 1:
            raise ValueError(f"irfft needs a positive size, not {size}")
        half = self._resized(axis, size // 2 + 1)
        if has_butterflies(self, size, real=True):
            checked_norm("irfft", norm)
            real: Tensor = RealInverse.apply(half._wide().movedim(axis, -2), _factor(norm, size, True))
            return real.movedim(-1, axis).cast(self.dtype)
        # what mirrors: the places before the last one down to 1, with the imaginary part negated
        count = (size - 1) // 2
        sign: Any = type(self)([1.0, -1.0], device=self.device, dtype=half.dtype)
        edges = [axis, *(i for i in range(half.ndim) if i != axis)]
        lines = half.permute(edges)
        imaginary_free: Any = type(self)([1.0, 0.0], device=self.device, dtype=half.dtype)
        first = lines._window(0, 0, 1) * imaginary_free
        inner = lines._window(0, 1, 1 + count)
        parts = [first, inner] if count else [first]
        if size % 2 == 0:
            parts.append(lines._window(0, size // 2, size // 2 + 1) * imaginary_free)
        if count:
            parts.append(inner.flip(0) * sign)
        whole = parts[0].cat(*parts[1:], dim=0) if len(parts) > 1 else parts[0]
        back = sorted(range(half.ndim), key=edges.__getitem__)
        made = whole.permute(back)._transformed("irfft", size, axis, norm, True)
        return made.select(-1, 0)  # type: ignore[no-any-return]

    # *** several axes

    def fft2(
        self, s: Sequence[int] | None = None, dim: Sequence[int] = (-2, -1), norm: str | None = None
    ) -> Tensor:
        """`fft` along two axes.

        >>> Tensor([[[1.0, 0.0]]]).fft2().tolist()
        [[[1.0, 0.0]]]
        """
        return self.fftn(s, dim, norm)

    def ifft2(
        self, s: Sequence[int] | None = None, dim: Sequence[int] = (-2, -1), norm: str | None = None
    ) -> Tensor:
        """The inverse of `fft2`.

        >>> Tensor([[[1.0, 0.0]]]).ifft2().tolist()
        [[[1.0, 0.0]]]
        """
        return self.ifftn(s, dim, norm)

    def rfft2(
        self, s: Sequence[int] | None = None, dim: Sequence[int] = (-2, -1), norm: str | None = None
    ) -> Tensor:
        """`fft2` of real numbers: half of the last axis.

        >>> Tensor([[1.0]]).rfft2().tolist()
        [[[1.0, 0.0]]]
        """
        return self.rfftn(s, dim, norm)

    def irfft2(
        self, s: Sequence[int] | None = None, dim: Sequence[int] = (-2, -1), norm: str | None = None
    ) -> Tensor:
        """The inverse of `rfft2`.

        >>> Tensor([[[1.0, 0.0], [1.0, 0.0]]]).irfft2().tolist()
        [[1.0, 0.0]]
        """
        return self.irfftn(s, dim, norm)

    def fftn(self, s: Sequence[int] | None = None, dim: Axis = None, norm: str | None = None) -> Tensor:
        """`fft` along several axes (all, if none are named); s are the sizes.

        >>> Tensor([[[1.0, 0.0]]]).fftn().tolist()
        [[[1.0, 0.0]]]
        """
        made: Any = self
        for axis, size in self._named("fftn", s, dim, self.ndim - 1):
            made = made.fft(size, axis, norm)
        return made  # type: ignore[no-any-return]

    def ifftn(self, s: Sequence[int] | None = None, dim: Axis = None, norm: str | None = None) -> Tensor:
        """The inverse of `fftn`.

        >>> Tensor([[[1.0, 0.0]]]).ifftn().tolist()
        [[[1.0, 0.0]]]
        """
        made: Any = self
        for axis, size in self._named("ifftn", s, dim, self.ndim - 1):
            made = made.ifft(size, axis, norm)
        return made  # type: ignore[no-any-return]

    def rfftn(self, s: Sequence[int] | None = None, dim: Axis = None, norm: str | None = None) -> Tensor:
        """`fftn` of real numbers: half of the last axis that is named.

        >>> Tensor([[1.0]]).rfftn().tolist()
        [[[1.0, 0.0]]]
        """
        *others, (last, size) = self._named("rfftn", s, dim, self.ndim)
        made = self.rfft(size, last, norm)
        for axis, count in others:
            made = made.fft(count, axis, norm)
        return made

    def irfftn(self, s: Sequence[int] | None = None, dim: Axis = None, norm: str | None = None) -> Tensor:
        """The inverse of `rfftn`.

        >>> Tensor([[[1.0, 0.0], [1.0, 0.0]]]).irfftn().tolist()
        [[1.0, 0.0]]
        """
        *others, (last, size) = self._named("irfftn", s, dim, self.ndim - 1)
        made: Any = self
        for axis, count in others:
            made = made.ifft(count, axis, norm)
        return made.irfft(size, last, norm)  # type: ignore[no-any-return]

    # *** frequencies

    def fftshift(self, dim: Axis = None) -> Tensor:
        """The second half of axes (all, if none are named) before the first: frequency 0 in the middle.

        The axes are those of the tensor as it is.

        >>> Tensor([0, 1, 2, 3, 4]).fftshift().tolist()
        [3, 4, 0, 1, 2]
        """
        axes = self._axes(dim)
        return self.roll([vmax(self.shape[a]) // 2 for a in axes], axes) if axes else self.reshape(self.shape)

    def ifftshift(self, dim: Axis = None) -> Tensor:
        """The inverse of `fftshift`.

        >>> Tensor([3, 4, 0, 1, 2]).ifftshift().tolist()
        [0, 1, 2, 3, 4]
        """
        axes = self._axes(dim)
        return (
            self.roll([-(vmax(self.shape[a]) // 2) for a in axes], axes) if axes else self.reshape(self.shape)
        )

    @classmethod
    def fftfreq(
        cls, n: int, d: float = 1.0, *, dtype: DTypeLike = None, device: Devices | None = None
    ) -> Tensor:
        """The frequencies that the numbers of `fft` belong to, for samples d apart.

        >>> Tensor.fftfreq(4).tolist()
        [0.0, 0.25, -0.5, -0.25]
        """
        chosen = default_float() if dtype is None else to_dtype(dtype)
        if n < 0:
            raise ValueError(f"fftfreq needs a number of samples of at least 0, not {n}")
        count = cls.arange(n, dtype=dtypes.int32, device=device)
        return ((count < (n + 1) // 2).where(count, count - n).cast(chosen)) / (n * d)

    @classmethod
    def rfftfreq(
        cls, n: int, d: float = 1.0, *, dtype: DTypeLike = None, device: Devices | None = None
    ) -> Tensor:
        """The frequencies that the numbers of `rfft` belong to, for samples d apart.

        >>> Tensor.rfftfreq(4).tolist()
        [0.0, 0.25, 0.5]
        """
        chosen = default_float() if dtype is None else to_dtype(dtype)
        if n < 0:
            raise ValueError(f"rfftfreq needs a number of samples of at least 0, not {n}")
        return cls.arange(n // 2 + 1, dtype=dtypes.int32, device=device).cast(chosen) / (n * d)

    # *** how

    def _complex_axis(self, name: str, dim: int) -> int:
        if self.ndim < 2 or self.shape[-1] != 2 or not dtypes.is_float(self.dtype):
            raise ValueError(
                f"{name} takes complex numbers, floats with a trailing axis of 2, not {self.dtype} of shape "
                f"{shape_text(self.shape)}; rfft takes real ones"
            )
        return checked_axis(dim, self.ndim - 1, self.shape[:-1])

    def _named(self, name: str, s: Any, dim: Any, rank: int) -> list[tuple[int, int | None]]:
        sizes = None if s is None else tuple(s)
        if dim is None:
            axes: tuple[int, ...] = tuple(range(rank))[-len(sizes) :] if sizes else tuple(range(rank))
        else:
            axes = tuple(checked_axis(a, rank, self.shape) for a in ((dim,) if isinstance(dim, int) else dim))
        if sizes is not None and len(sizes) != len(axes):
            raise ValueError(f"{name} needs a size for each axis, not {sizes} for {axes}")
        if len(set(axes)) < len(axes):
            raise ValueError(f"{name}: axes {axes} name an axis of shape {shape_text(self.shape)} twice")
        if not axes:
            raise ValueError(f"{name} needs an axis, not shape {shape_text(self.shape)}")
        return list(zip(axes, sizes or (None,) * len(axes), strict=True))

    def _resized(self, axis: int, size: int) -> Tensor:
        """An axis cut to a size, or with zeros added."""
        have = vmax(self.shape[axis])
        if size <= have:
            return self._window(axis, 0, size)
        return self.pad(tuple((0, size - have) if i == axis else (0, 0) for i in range(self.ndim)))

    def _transformed(self, name: str, n: int | None, dim: int, norm: str | None, inverse: bool) -> Tensor:
        axis = self._complex_axis(name, dim)
        checked_norm(name, norm)
        size = vmax(self.shape[axis]) if n is None else n
        if size < 1:
            raise ValueError(f"{name} needs a positive size, not {size} in shape {shape_text(self.shape)}")
        at_most(name, "samples along an axis", size, MOST_SAMPLES)
        lines = self._wide()._resized(axis, size).movedim(axis, -2)
        made = _dft(lines, size, inverse, _factor(norm, size, inverse))
        return made.movedim(-2, axis).cast(self.dtype)


def checked_norm(name: str, norm: str | None) -> None:
    if norm not in (None, *NORMS):
        raise ValueError(f"{name}'s norm must be one of {', '.join(NORMS)}, not {norm!r}")


def _factor(norm: str | None, size: int, inverse: bool) -> float:
    """The factor of a transform."""
    if norm == "ortho":
        return 1.0 / math.sqrt(size)
    return 1.0 / size if (norm == "forward") != inverse else 1.0


def _divisor(n: int) -> int:
    """The largest divisor that is at most SMALL."""
    return next(d for d in range(min(SMALL, n), 0, -1) if n % d == 0)


def _dft(x: Tensor, n: int, inverse: bool, factor: float = 1.0) -> Tensor:
    """The transform along the axis before the last, times a factor."""
    if has_butterflies(x, n):
        whole: Tensor = ComplexTransform.apply(x, inverse, factor)
        return whole
    made = _by_products(x, n, inverse)
    return made if factor == 1.0 else made * factor


def _by_products(x: Tensor, n: int, inverse: bool) -> Tensor:
    lead = x.shape[:-2]
    if n <= SMALL:
        return x.reshape((*lead, 2 * n)).dot(_table(_matrix, n, inverse, x)).reshape((*lead, n, 2))
    a = _divisor(n)
    b = n // a
    if a == 1:
        return _bluestein(x, n, inverse)
    if b == 1:
        raise RuntimeError("a size beyond SMALL has a divisor of its own")
    split = x.reshape((*lead, a, b, 2)).transpose(-3, -2)
    inner = _times(_dft(split, a, inverse), _table(_twiddles, (a, b), inverse, x)).contiguous()
    outer = _dft(inner.transpose(-3, -2).contiguous(), b, inverse)
    return outer.transpose(-3, -2).reshape((*lead, n, 2)).contiguous()


def _bluestein(x: Tensor, n: int, inverse: bool) -> Tensor:
    """jk = (j² + k² - (j - k)²) / 2: a convolution with a chirp, by transforms of a power of 2."""
    size = 1 << (2 * n - 2).bit_length()
    chirp = _table(_chirp, n, inverse, x)
    spectrum = _table(_chirp_spectrum, (n, size), inverse, x)
    padding = tuple((0, 0) for _ in x.shape[:-2]) + ((0, size - n), (0, 0))
    moved = _times(x, chirp).pad(padding).contiguous()
    product = _times(_dft(moved, size, False), spectrum).contiguous()
    back = _dft(product, size, True, 1.0 / size)
    return _times(back._window(back.ndim - 2, 0, n), chirp)


def _times(x: Tensor, y: Tensor) -> Tensor:
    """The product of complex numbers."""
    a, b, c, d = x.select(-1, 0), x.select(-1, 1), y.select(-1, 0), y.select(-1, 1)
    return (a * c - b * d).stack(a * d + b * c, dim=-1)


def _table(make: Any, size: Any, inverse: bool, like: Tensor) -> Tensor:
    made: Any = type(like)(make(size, inverse).astype(numpy_name(like.dtype)), device=like.device)
    return made  # type: ignore[no-any-return]


def _pairs(angles: Any, inverse: bool) -> np.ndarray[Any, Any]:
    import numpy as np

    return np.stack([np.cos(angles), np.sin(angles) if inverse else -np.sin(angles)], axis=-1)


@functools.lru_cache(64)
def _matrix(n: int, inverse: bool) -> np.ndarray[Any, Any]:
    """The transform as a real matrix: rows are (place, part), columns (frequency, part)."""
    import numpy as np

    w = _pairs(2.0 * math.pi / n * (np.outer(np.arange(n), np.arange(n)) % n), inverse)
    c, s = w[..., 0], w[..., 1]
    whole = np.empty((n, 2, n, 2))
    whole[:, 0, :, 0], whole[:, 0, :, 1], whole[:, 1, :, 0], whole[:, 1, :, 1] = c, s, -s, c
    return whole.reshape(2 * n, 2 * n)


@functools.lru_cache(64)
def _twiddles(sizes: tuple[int, int], inverse: bool) -> np.ndarray[Any, Any]:
    import numpy as np

    a, b = sizes
    return _pairs(2.0 * math.pi / (a * b) * np.outer(np.arange(b), np.arange(a)), inverse)


@functools.lru_cache(16)
def _chirp(n: int, inverse: bool) -> np.ndarray[Any, Any]:
    import numpy as np

    return _pairs(math.pi / n * (np.arange(n, dtype=np.int64) ** 2 % (2 * n)), inverse)


@functools.lru_cache(16)
def _chirp_spectrum(sizes: tuple[int, int], inverse: bool) -> np.ndarray[Any, Any]:
    import numpy as np

    n, size = sizes
    chirp = _chirp(n, inverse)
    line = np.zeros(size, np.complex128)
    line[:n] = chirp[:, 0] - 1j * chirp[:, 1]
    line[size - n + 1 :] = line[1:n][::-1]
    spectrum = np.fft.fft(line)
    return np.stack([spectrum.real, spectrum.imag], axis=-1)

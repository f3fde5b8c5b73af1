"""The Fourier transform of each of the overlapping windows of a signal, and a signal from these.

Complex numbers are a trailing axis of 2, (real, imaginary), as in fourier.py. The inverse adds the windows up
where they overlap and divides by what the squares of the window function add up to there (Griffin and Lim,
Signal estimation from modified short-time Fourier transform, 1984).
"""

from __future__ import annotations

from typing import Any

from ...dtype import dtypes
from ...shape import shape_text, vmax
from ..face import Tensor
from .routines import or_nan

#: Below this the squares of a window add up to nothing.
LEAST_WEIGHT = 1e-11


class Spectrograms(Tensor):
    """Short-time Fourier transforms."""

    def stft(
        self,
        n_fft: int,
        hop_length: int | None = None,
        win_length: int | None = None,
        window: Tensor | None = None,
        center: bool = True,
        pad_mode: str = "reflect",
        normalized: bool = False,
        onesided: bool | None = None,
        return_complex: bool | None = None,
        align_to_window: bool | None = None,
    ) -> Tensor:
        """The transform of each window of a signal: (frequencies, windows, 2), after a batch axis.

        self        a signal (n,), or a batch of them (batch, n); complex ones are a batch (batch, n, 2)
        n_fft       the size of each transform
        hop_length  how far apart windows begin; n_fft // 4 if not given
        win_length  the size of the window, n_fft if not given; in the middle of n_fft, zeros around it
        window      (win_length,), what each sample counts; ones if not given
        center      window t is around sample t · hop_length: the signal has borders of n_fft // 2, by
                    `pad_mode` as in `pad`; else it begins there
        normalized  divided by √n_fft
        onesided    the n_fft // 2 + 1 frequencies that others mirror: for real signals, if not given
        return_complex   the result is the same for either: complex numbers are a trailing axis of 2
        align_to_window  without `center`: whether the window's own samples begin at t · hop_length, rather
                         than the zeros around it

        >>> Tensor([1.0, 0.0, 0.0, 0.0]).stft(2, 2, center=False).tolist()
        [[[1.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 0.0]]]
        """
        is_complex = self.ndim == 3 and self.shape[-1] == 2
        if not is_complex and self.ndim not in (1, 2):
            raise ValueError(
                f"stft takes (n,), (batch, n), or complex numbers (batch, n, 2), not {shape_text(self.shape)}"
            )
        if is_complex and onesided:
            raise ValueError("stft: the frequencies of a complex signal mirror nothing: onesided=False")
        hop, weights = self._stft_window("stft", n_fft, hop_length, win_length, window)
        if align_to_window is not None and center:
            raise ValueError("stft: align_to_window is for center=False")
        signal = self._float()
        if self.ndim == 1:
            signal = signal.unsqueeze(0)
        lines = signal.movedim(-1, 1) if is_complex else signal.unsqueeze(1)  # (batch, 1 or 2, n)
        if center:
            lines = lines.pad((n_fft // 2, n_fft // 2), mode=pad_mode)
        elif align_to_window:
            width = n_fft if win_length is None else win_length
            before = (n_fft - width) // 2
            lines = lines.pad((before, n_fft - width - before))
        if vmax(lines.shape[-1]) < n_fft:
            raise ValueError(f"stft: {n_fft} samples are no window of a signal of {lines.shape[-1]}")
        frames = lines.unfold(-1, n_fft, hop)  # (batch, 1 or 2, windows, n_fft)
        if weights is not None:
            frames = frames * weights
        if is_complex:
            made = frames.movedim(1, -1).fft(n_fft, -1)
        elif onesided or onesided is None:
            made = frames.squeeze(1).rfft(n_fft, -1)
        else:
            made = frames.squeeze(1).unsqueeze(-1).pad((0, 1)).fft(n_fft, -1)
        made = made.transpose(1, 2)
        if normalized:
            made = made * n_fft**-0.5
        return made.squeeze(0) if self.ndim == 1 else made

    def istft(
        self,
        n_fft: int,
        hop_length: int | None = None,
        win_length: int | None = None,
        window: Tensor | None = None,
        center: bool = True,
        normalized: bool = False,
        onesided: bool | None = None,
        length: int | None = None,
        return_complex: bool = False,
    ) -> Tensor:
        """The signal that `stft` with the same arguments takes apart: (n,) or (batch, n).

        self            (frequencies, windows, 2), or these after a batch axis
        length          the size of the signal: it is cut, or zeros are added
        return_complex  a complex signal (n, 2), from all n_fft frequencies

        Of frequencies that no signal has, it is the signal whose own are nearest. Where the squares of the
        window add up to nothing the signal is unknown: a ValueError when it is read, NaN under a jit.

        >>> x = Tensor([1.0, 2.0, 3.0, 4.0])
        >>> x.stft(2, 1).istft(2, 1).round(decimals=4).tolist()
        [1.0, 2.0, 3.0, 4.0]
        """
        if self.ndim not in (3, 4) or self.shape[-1] != 2:
            raise ValueError(
                "istft takes complex numbers (frequencies, windows, 2), or these after a batch axis, not "
                f"{shape_text(self.shape)}"
            )
        if self.ndim == 3:
            options = (window, center, normalized, onesided, length, return_complex)
            return self.unsqueeze(0).istft(n_fft, hop_length, win_length, *options).squeeze(0)
        hop, weights = self._stft_window("istft", n_fft, hop_length, win_length, window)
        found = vmax(self.shape[1])
        half = found != n_fft if onesided is None else onesided
        if return_complex and half:
            raise ValueError(f"istft: a complex signal needs all {n_fft} frequencies, and onesided=False")
        if found != (n_fft // 2 + 1 if half else n_fft):
            wanted = n_fft // 2 + 1 if half else n_fft
            raise ValueError(
                f"istft: n_fft={n_fft} with onesided={half} has {wanted} frequencies, not {found}"
            )
        count = vmax(self.shape[2])
        lines = self._float().transpose(1, 2)  # (batch, windows, frequencies, 2)
        if normalized:
            lines = lines * n_fft**0.5
        if return_complex:
            frames = lines.ifft(n_fft, -1).movedim(-1, 1)
        elif half:
            frames = lines.irfft(n_fft, -1).unsqueeze(1)
        else:
            frames = lines.ifft(n_fft, -1).select(-1, 0).unsqueeze(1)
        ones = frames._make(frames.ones(n_fft, dtype=frames.dtype, device=frames.device).uop)
        weights = ones if weights is None else weights.cast(frames.dtype)
        size = n_fft + hop * (count - 1)
        batch, parts = frames.shape[:2]
        columns = (frames * weights).reshape((batch * parts, count, n_fft)).transpose(1, 2)
        total = columns.fold((1, size), (1, n_fft), stride=(1, hop)).reshape((batch, parts, size))
        squares = (weights * weights).reshape((1, n_fft, 1)).expand((1, n_fft, count))
        weight = squares.fold((1, size), (1, n_fft), stride=(1, hop)).reshape((size,))
        begin = n_fft // 2 if center else 0
        end = size - begin if length is None else begin + length
        if begin >= min(end, size):
            raise ValueError(
                f"istft: {count} windows of {n_fft} leave no sample behind the border of {begin}"
            )
        kept = min(end, size)
        total, weight = total._window(2, begin, kept), weight._window(0, begin, kept)
        known = (weight.abs() > LEAST_WEIGHT).all()
        problem = "istft: the squares of the windows add up to 0 at some sample: the signal is unknown there"
        made = or_nan(total / weight, known.logical_not().cast(dtypes.int32), 0, problem)
        if end > size:
            made = made.pad((0, end - size))
        return made.movedim(1, -1) if return_complex else made.squeeze(1)

    def _stft_window(
        self, name: str, n_fft: int, hop_length: int | None, win_length: int | None, window: Tensor | None
    ) -> tuple[int, Tensor | None]:
        """How far apart windows are, and what their n_fft samples count; None: all 1."""
        if n_fft < 1:
            raise ValueError(f"{name}: n_fft must be positive, not {n_fft}")
        hop = max(1, n_fft // 4) if hop_length is None else hop_length
        width = n_fft if win_length is None else win_length
        if hop < 1:
            raise ValueError(f"{name}: hop_length must be positive, not {hop}")
        if not 0 < width <= n_fft:
            raise ValueError(f"{name}: win_length must be from 1 to n_fft, {n_fft}, not {width}")
        if window is None:
            if width == n_fft:
                return hop, None
            weights: Any = self.ones(width, dtype=self._float().dtype, device=self.device)
        else:
            weights = self._operand(window)
        if weights.shape != (width,):
            raise ValueError(f"{name}: a window has shape ({width},), not {shape_text(weights.shape)}")
        before = (n_fft - width) // 2
        return hop, weights.pad((before, n_fft - width - before))

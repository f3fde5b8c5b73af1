"""Sound for speech models: WAV files, other sample rates, and log-mel spectrograms.

What a spectrogram and a filter need is a product of *frames* with a matrix: windows that overlap.
"""

from __future__ import annotations

import functools
import math
import os
import pathlib
import wave
from typing import Any

from ..shape import shape_text
from ..tensor import Tensor

RATE = 16_000  #: samples of a second, as Whisper takes them
WINDOW, HOP = 400, 160  #: samples of a window of the spectrogram (25 ms), and from one to the next (10 ms)

#: Zero crossings of the sinc on each side of a resampled sample, at the lower of the two rates.
CROSSINGS = 24
#: Blocks (of the least number of samples after which both rates meet again) that are resampled at once.
BLOCKS = 256

# ---- WAV ----


def read_wav(path: str | os.PathLike[str]) -> tuple[Tensor, int]:
    """(the samples, samples of a second) of a WAV file: floats in [-1, 1), the mean of its channels.

    8, 16, 24 and 32 bits of plain PCM are read, as the standard library does. ValueError says what is wrong.
    """
    import numpy as np

    file = pathlib.Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"no file {file}")
    try:
        with wave.open(str(file), "rb") as opened:
            channels, width, rate, count = opened.getparams()[:4]
            data = opened.readframes(min(count, os.path.getsize(file)))
    except (wave.Error, EOFError, RuntimeError) as error:  # the last where a chunk is longer than its file
        text = str(error) or "it ends too early"
        raise ValueError(f"{file} is not a WAV file of PCM samples: {text}") from None
    if width not in (1, 2, 3, 4) or not channels or not rate:
        raise ValueError(
            f"{file}: {channels} channels of {8 * width} bits at {rate} a second are not supported"
        )
    data = data[: len(data) // (width * channels) * width * channels]
    if width == 1:  # of 8 bits, and only of these, 0 stands for the least
        samples = np.frombuffer(data, np.uint8).astype(np.float32) - 128.0
    elif width == 3:
        words = np.zeros((len(data) // 3, 4), np.uint8)
        words[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
        samples = (words.view("<i4")[:, 0] >> 8).astype(np.float32)
    else:
        samples = np.frombuffer(data, f"<i{width}").astype(np.float32)
    return Tensor(samples.reshape(-1, channels).mean(1) / np.float32(1 << (8 * width - 1))), rate


# ---- frames ----


def frames(samples: Tensor, width: int, step: int) -> Tensor:
    """(count, width): the windows that begin at every `step`-th sample, of samples (n,)."""
    return samples.unfold(0, width, step)


def resample(samples: Tensor, rate: int, to: int = RATE) -> Tensor:
    """The same sound at `to` samples a second: a band-limited interpolation by a windowed sinc.

    samples  (n,), at `rate` a second; the result has ⌈n · to / rate⌉

    After rate/g samples in and to/g out (g is what both divide by) the same weights return, so a block of
    outputs is a row of inputs times a matrix. (Smith, "Digital Audio Resampling", 1984-; Hann's window.)
    """
    import numpy as np

    for name, value in (("rate", rate), ("to", to)):
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 10_000_000:
            raise ValueError(f"{name} must be a number of samples a second, not {value!r}")
    if samples.ndim != 1 or not isinstance(count := samples.shape[0], int):
        raise ValueError(f"samples have shape (n,), not {shape_text(samples.shape)}")
    if rate == to or not count:
        return samples
    down, up = rate // math.gcd(rate, to), to // math.gcd(rate, to)
    if down * up > 1 << 22:
        raise ValueError(f"{rate} and {to} samples a second have too little in common; resample by steps")
    matrix, reach = _interpolation(down, up)
    blocks = -(-count // down)
    wide = -(-blocks // BLOCKS) * BLOCKS
    padded = np.zeros(wide * down + 2 * reach, np.float32)
    padded[reach : reach + count] = samples.numpy()
    parts = []
    for begin in range(0, wide, BLOCKS):
        piece = padded[begin * down : (begin + BLOCKS) * down + 2 * reach]
        parts.append((frames(Tensor(piece), down + 2 * reach, down) @ matrix).numpy())
    return Tensor(np.concatenate(parts).reshape(-1)[: -(-count * to // rate)])


@functools.lru_cache(maxsize=8)
def _interpolation(down: int, up: int) -> tuple[Tensor, int]:
    """(the matrix (down + 2 · reach, up), reach): from inputs and `reach` around them to outputs."""
    import numpy as np

    stretch = max(1.0, down / up)  # the cut-off is half of the lower rate
    reach = math.ceil(CROSSINGS * stretch)
    into = np.arange(-reach, down + reach)[:, None]
    distance = (np.arange(up)[None] * down / up - into) / stretch
    hann = np.where(abs(distance) < CROSSINGS, np.cos(np.pi * distance / (2 * CROSSINGS)) ** 2, 0.0)
    return Tensor((np.sinc(distance) * hann / stretch).astype(np.float32)).realize(), reach


# ---- the spectrogram ----


def mel_filters(bins: int = 80, size: int = WINDOW, rate: int = RATE) -> Any:
    """(bins, size / 2 + 1), in numpy: triangles, even on Slaney's mel scale from 0 to rate / 2, of area one.

    The scale is linear, 3 mel for 200 Hz, up to 1000 Hz and logarithmic, 27 mel for a factor of 6.4, above
    (Slaney, "Auditory Toolbox", 1998).
    """
    import numpy as np

    def hertz(mel: Any) -> Any:
        return np.where(mel < 15, mel * 200 / 3, 1000 * np.exp(np.log(6.4) / 27 * (mel - 15)))

    top = 15 + 27 * math.log(rate / 2 / 1000) / math.log(6.4) if rate > 2000 else rate * 3 / 400
    corners = hertz(np.linspace(0, top, bins + 2))
    places = np.arange(size // 2 + 1) * rate / size
    left, middle, right = corners[:-2, None], corners[1:-1, None], corners[2:, None]
    rise, fall = (places - left) / (middle - left), (right - places) / (right - middle)
    return np.maximum(0, np.minimum(rise, fall)) * 2 / (right - left)


@functools.lru_cache(maxsize=4)
def _matrices(bins: int) -> tuple[Tensor, Tensor]:
    """What a spectrogram multiplies by: Hann's window times a Fourier transform (400, 402); the filters."""
    import numpy as np

    at = np.arange(WINDOW)
    # k · n modulo the size: the angle of a large product would be rounded
    angles = 2 * np.pi / WINDOW * (np.outer(at, np.arange(WINDOW // 2 + 1)) % WINDOW)
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * at / WINDOW)
    fourier = hann[:, None] * np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
    found = Tensor(fourier.astype(np.float32)), Tensor(mel_filters(bins).T.astype(np.float32))
    Tensor.realize(*found)
    return found


def log_mel(samples: Tensor, bins: int = 80) -> Tensor:
    """(bins, n / 160): how loud each band is every 10 ms, in steps of 40 dB, as Whisper hears it.

    samples  (n,), at 16,000 a second; Whisper takes 30 seconds

    Power in windows of 400 samples around every 160th, the sound mirrored at its ends; of its decimal
    logarithm what is more than 8 below the loudest is raised to that, and it is brought near to [-1, 1]
    by (x + 4) / 4 (Radford et al. 2022, section 2.2).
    """
    if samples.ndim != 1 or not isinstance(samples.shape[0], int) or samples.shape[0] <= WINDOW // 2:
        raise ValueError(f"a spectrogram needs samples of shape (n,) with n > {WINDOW // 2}")
    fourier, filters = _matrices(bins)
    half = WINDOW // 2
    mirrored = samples[1 : half + 1].flip(0).cat(samples, samples[-half - 1 : -1].flip(0))
    waves = frames(mirrored, WINDOW, HOP)[: samples.shape[0] // HOP] @ fourier
    real, imaginary = waves.chunk(2, 1)
    power = (real * real + imaginary * imaginary) @ filters
    level = power.maximum(1e-10).log2() * math.log10(2)
    return ((level.maximum(level.max() - 8) + 4) / 4).transpose(0, 1)

"""Sound: what WAV files hold, resampling, and the spectrogram, beside their formulas and transformers."""

from __future__ import annotations

import struct
import wave

import numpy as np
import pytest

from lazygrad import Tensor
from lazygrad.models.audio import HOP, RATE, WINDOW, frames, log_mel, mel_filters, read_wav, resample
from tests.helpers import needs, require


def write_wav(path, data, rate=RATE, width=2, channels=1):
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(data)
    return path


def tone(hertz, rate, count, phase=0.0):
    return np.sin(2 * np.pi * hertz * np.arange(count) / rate + phase).astype(np.float32)


# ---- WAV ----


@pytest.mark.parametrize(
    ("width", "data"),
    [
        (1, bytes([128, 192, 0])),
        (2, struct.pack("<3h", 0, 1 << 14, -(1 << 15))),
        (3, b"\0\0\0" + b"\0\0\x40" + b"\0\0\x80"),
        (4, struct.pack("<3i", 0, 1 << 30, -(1 << 31))),
    ],
)
def test_widths(tmp_path, width, data):
    samples, rate = read_wav(write_wav(tmp_path / "a.wav", data, 8000, width))
    assert rate == 8000
    assert samples.tolist() == [0.0, 0.5, -1.0]


def test_the_mean_of_channels(tmp_path):
    data = struct.pack("<4h", 1 << 14, 0, -(1 << 14), 1 << 14)
    assert read_wav(write_wav(tmp_path / "a.wav", data, channels=2))[0].tolist() == [0.25, 0.0]


def test_a_file_that_ends_early(tmp_path):
    """What is there is heard, as far as it is whole samples."""
    path = write_wav(tmp_path / "a.wav", struct.pack("<4h", 1, 2, 3, 4), channels=2)
    path.write_bytes(path.read_bytes()[:-3])
    assert read_wav(path)[0].shape == (1,)


@pytest.mark.parametrize(
    "data", [b"", b"RIFF", b"OggS" + bytes(60), b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0" + bytes(20)]
)
def test_no_wav(tmp_path, data):
    (tmp_path / "a.wav").write_bytes(data)
    with pytest.raises(ValueError, match=r"a\.wav is not a WAV file of PCM samples"):
        read_wav(tmp_path / "a.wav")


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="no file"):
        read_wav(tmp_path / "a.wav")


# ---- resampling ----


@pytest.mark.parametrize("rate", [8000, 22_050, 44_100, 48_000])
def test_a_tone_stays_a_tone(rate):
    count = rate // 4 + 7
    found = resample(Tensor(tone(440, rate, count)), rate).numpy()
    assert len(found) == -(-count * RATE // rate)
    inner = slice(200, -200)
    np.testing.assert_allclose(found[inner], tone(440, RATE, len(found))[inner], atol=1e-4)


def test_what_is_too_high_is_left_out():
    """20 kHz are no tone at 16,000 samples a second; every third sample of it would sound as 4 kHz."""
    found = resample(Tensor(tone(20_000, 48_000, 9600)), 48_000).numpy()
    assert np.abs(found[200:-200]).max() < 1e-3


def test_the_same_rate_is_the_same_tensor():
    samples = Tensor([1.0, 2.0])
    assert resample(samples, RATE) is samples
    assert resample(Tensor.zeros(0), 8000).shape == (0,)


@pytest.mark.parametrize(
    ("samples", "rate", "message"),
    [
        (Tensor.zeros(4), 0, "rate must be a number of samples a second, not 0"),
        (Tensor.zeros(4), 44_100.0, "rate must be a number of samples a second, not 44100.0"),
        (Tensor.zeros(4, 2), 8000, r"samples have shape \(n,\), not \(4, 2\)"),
        (Tensor.zeros(4), 15_991, "15991 and 16000 samples a second have too little in common"),
    ],
)
def test_refused(samples, rate, message):
    with pytest.raises(ValueError, match=message):
        resample(samples, rate)


# ---- the spectrogram ----


def plain_log_mel(samples):
    """Windows, numpy's Fourier transform, filters: in float64."""
    padded = np.pad(samples.astype(np.float64), WINDOW // 2, mode="reflect")
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)
    count = len(samples) // HOP
    windows = np.stack([padded[i * HOP : i * HOP + WINDOW] * hann for i in range(count)])
    power = np.abs(np.fft.rfft(windows)) ** 2
    level = np.log10(np.maximum(power @ mel_filters().T, 1e-10))
    return ((np.maximum(level, level.max() - 8) + 4) / 4).T


def speech_like(count=RATE):
    at = np.arange(count) / RATE
    sound = 0.3 * np.sin(2 * np.pi * (200 * at + 900 * at * at))
    sound += 0.01 * np.random.default_rng(0).standard_normal(count)
    sound[count * 2 // 3 :] = 0
    return sound.astype(np.float32)


def test_spectrogram():
    found = log_mel(Tensor(speech_like())).numpy()
    assert found.shape == (80, 100)
    np.testing.assert_allclose(found, plain_log_mel(speech_like()), atol=1e-4)


def test_silence():
    """No power is -10 everywhere, and so is the loudest."""
    np.testing.assert_allclose(log_mel(Tensor.zeros(800)).numpy(), -1.5, atol=1e-6)


def test_filters():
    """Each is a triangle of area one (in hertz), between its neighbours' middles."""
    filters = mel_filters()
    assert filters.shape == (80, 201)
    wide = mel_filters(10, 16_000)
    np.testing.assert_allclose(wide.sum(1), 1, rtol=1e-4)
    assert (np.count_nonzero(filters, axis=1) > 0).all()


def test_frames():
    assert frames(Tensor([0, 1, 2, 3, 4]), 3, 2).tolist() == [[0, 1, 2], [2, 3, 4]]


def test_too_short():
    with pytest.raises(ValueError, match=r"needs samples of shape \(n,\) with n > 200"):
        log_mel(Tensor.zeros(200))


@pytest.mark.slow
@needs("torch", "transformers")
@pytest.mark.parametrize("bins", [80, 128])
def test_equal_to_transformers(bins):
    extractor = require("transformers").WhisperFeatureExtractor(feature_size=bins)
    samples = np.zeros(30 * RATE, np.float32)
    samples[: 5 * RATE] = speech_like(5 * RATE)
    np.testing.assert_allclose(mel_filters(bins).T, extractor.mel_filters, atol=1e-9)
    expected = extractor(samples, sampling_rate=RATE, return_tensors="np").input_features[0]
    np.testing.assert_allclose(log_mel(Tensor(samples), bins).numpy(), expected, atol=1e-4)

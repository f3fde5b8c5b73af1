"""`stft` and `istft` against PyTorch's, with all their arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor, TinyJit
from lazygrad.functional import hann_window
from tests.helpers import needs, require
from tests.tensor.support import data

SIGNAL = data(2, 40, seed=1)
#: n_fft, and the options that both functions take; only `stft`'s; only `istft`'s
CASES: list[tuple[int, dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    (8, {}, {}, {}),
    (8, {"hop_length": 3, "win_length": 6, "normalized": True}, {"pad_mode": "constant"}, {"length": 35}),
    (9, {"hop_length": 2, "onesided": False}, {"pad_mode": "circular"}, {"length": 45}),
    (8, {"hop_length": 2, "win_length": 5, "center": False}, {"align_to_window": True}, None),
    (2, {"hop_length": 1}, {"pad_mode": "replicate"}, {}),
]  # fmt: skip


@needs("torch")
@pytest.mark.parametrize(("n_fft", "both", "there", "back"), CASES, ids=range(len(CASES)))
@pytest.mark.filterwarnings("ignore")
def test_there_and_back_is_pytorchs(n_fft: int, both: Any, there: Any, back: Any) -> None:
    torch = require("torch")
    weights = np.hanning(both.get("win_length", n_fft) + 2)[1:-1].astype(np.float32)
    mine, theirs = Tensor(SIGNAL, requires_grad=True), torch.tensor(SIGNAL, requires_grad=True)
    found = mine.stft(n_fft, window=Tensor(weights), **both, **there)
    wanted = torch.stft(theirs, n_fft, window=torch.tensor(weights), return_complex=True, **both, **there)
    np.testing.assert_allclose(found.numpy(), torch.view_as_real(wanted).detach().numpy(), atol=1e-5)
    if back is None:  # the window leaves the first sample out
        with pytest.raises(ValueError, match="the signal is unknown there"):
            found.istft(n_fft, window=Tensor(weights), **both).numpy()
        return
    again = (found * Tensor([1.0, 0.5])).istft(n_fft, window=Tensor(weights), **both, **back)
    wanted = wanted.real + 0.5j * wanted.imag
    expected = torch.istft(wanted, n_fft, window=torch.tensor(weights), **both, **back)
    np.testing.assert_allclose(again.numpy(), expected.detach().numpy(), atol=1e-5)
    again.square().sum().backward()
    expected.square().sum().backward()
    assert mine.grad is not None
    np.testing.assert_allclose(mine.grad.numpy(), theirs.grad.numpy(), atol=1e-4)


@needs("torch")
@pytest.mark.filterwarnings("ignore")
def test_complex_signals_are_pytorchs() -> None:
    torch = require("torch")
    z = data(2, 12, 2, seed=2)
    found = Tensor(z).stft(4)
    wanted = torch.stft(torch.view_as_complex(torch.tensor(z)), 4, return_complex=True)
    np.testing.assert_allclose(found.numpy(), torch.view_as_real(wanted).numpy(), atol=1e-5)
    again = found[0].istft(4, return_complex=True, onesided=False)
    np.testing.assert_allclose(again.numpy(), z[0], atol=1e-5)


def test_in_a_jit_what_is_unknown_is_nan() -> None:
    spectrum = Tensor.ones(3, 2, 2).contiguous().realize()
    jit = TinyJit(lambda x, window: x.istft(4, 4, window=window, center=False).realize())
    windows = [hann_window(6)[1:5].contiguous().realize() for _ in range(3)] + [hann_window(4).realize()]
    results = [jit(spectrum, window).numpy() for window in windows]
    assert [bool(np.isnan(found).any()) for found in results] == [False, False, False, True]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: x.stft(8, window=Tensor.ones(7)), r"a window has shape \(8,\), not \(7,\)"),
        (lambda x: x.stft(8, 0), "hop_length must be positive, not 0"),
        (lambda x: x.stft(8, win_length=9), "win_length must be from 1 to n_fft, 8, not 9"),
        (lambda x: x.stft(64, center=False), "64 samples are no window of a signal of 40"),
        (lambda x: x.reshape(1, 2, 40).stft(8), r"stft takes \(n,\), \(batch, n\)"),
        (lambda x: x.stft(8).istft(10), "n_fft=10 with onesided=True has 6 frequencies, not 5"),
        (lambda x: x.stft(8).istft(8, return_complex=True), "needs all 8 frequencies"),
        (lambda x: x.istft(8), r"istft takes complex numbers"),
    ],
)
def test_mistakes_are_named(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(Tensor(SIGNAL))

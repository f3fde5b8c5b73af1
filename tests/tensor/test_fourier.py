"""Fourier transforms against numpy and PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lazygrad import Context, Tensor, jit, vmap
from tests.helpers import needs, require
from tests.tensor.support import data, like_torch


def pairs(x: Any) -> Any:
    return np.stack([x.real, x.imag], -1)


def joined(x: Any) -> Any:
    return x[..., 0] + 1j * x[..., 1]


@pytest.mark.parametrize("n", [1, 2, 6, 32, 37, 60, 64, 74, 100, 256, 270, 1001])
def test_one_axis(n: int) -> None:
    x = data(2, n, 2, seed=n, dtype=np.float64)
    z = joined(x)
    np.testing.assert_allclose(Tensor(x).fft().numpy(), pairs(np.fft.fft(z)), atol=1e-11 * n)
    np.testing.assert_allclose(Tensor(x).ifft().numpy(), pairs(np.fft.ifft(z)), atol=1e-13 * n)
    np.testing.assert_allclose(Tensor(z.real).rfft().numpy(), pairs(np.fft.rfft(z.real)), atol=1e-11 * n)
    if n > 1:
        half = pairs(np.fft.rfft(z.real))
        np.testing.assert_allclose(Tensor(half).irfft(n).numpy(), z.real, atol=1e-12 * n)


def test_float32_is_as_good_as_numpys() -> None:
    x = data(1024, 2, seed=3)
    expected = pairs(np.fft.fft(joined(x.astype(np.float64))))
    found = Tensor(x).fft().numpy()
    assert found.dtype == np.float32
    assert np.abs(found - expected).max() < 3e-6 * np.abs(expected).max()


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_norms_sizes_and_axes(norm: str) -> None:
    x = data(6, 4, 2, seed=5, dtype=np.float64)
    z = joined(x)
    for n in (3, 8):
        found = Tensor(x).fft(n, 0, norm)
        np.testing.assert_allclose(found.numpy(), pairs(np.fft.fft(z, n, 0, norm)), atol=1e-12)
    found = Tensor(z.real).rfft(5, 0, norm).irfft(5, 0, norm)
    np.testing.assert_allclose(found.numpy(), z.real[:5], atol=1e-12)


def test_several_axes() -> None:
    x = data(3, 4, 5, 2, seed=6, dtype=np.float64)
    z = joined(x)
    for mine, theirs in (
        (Tensor(x).fft2(), np.fft.fft2(z)),
        (Tensor(x).ifft2(), np.fft.ifft2(z)),
        (Tensor(x).fftn(), np.fft.fftn(z)),
        (Tensor(x).ifftn(dim=(0, 2)), np.fft.ifftn(z, axes=(0, 2))),
        (Tensor(z.real).rfft2(), np.fft.rfft2(z.real)),
        (Tensor(z.real).rfftn((4, 4)), np.fft.rfftn(z.real, (4, 4), (-2, -1))),
    ):
        np.testing.assert_allclose(mine.numpy(), pairs(theirs), atol=1e-12)
    back = Tensor(z.real).rfftn().irfftn((3, 4, 5))
    np.testing.assert_allclose(back.numpy(), z.real, atol=1e-12)
    back = Tensor(z.real).rfft2().irfft2((4, 5))
    np.testing.assert_allclose(back.numpy(), z.real, atol=1e-12)


@needs("torch")
def test_gradients() -> None:
    torch = require("torch")
    x = data(3, 10, 2, seed=7)

    def theirs(x: Any) -> Any:
        return torch.view_as_real(torch.fft.fft(torch.view_as_complex(x), dim=0, norm="ortho"))

    like_torch(lambda x: x.fft(dim=0, norm="ortho"), theirs, [x])
    like_torch(lambda x: x.rfft(), lambda x: torch.view_as_real(torch.fft.rfft(x)), [x[..., 0]])
    half = x[:, :6]
    like_torch(lambda x: x.irfft(), lambda x: torch.fft.irfft(torch.view_as_complex(x)), [half])


def kernel_names(x: Tensor) -> str:
    return " ".join(kernel.name for kernel in x.kernels())


def test_large_sizes_are_routines() -> None:
    x = Tensor.zeros(3, 256).contiguous().realize()
    assert "real_fourier_3_256" in kernel_names(x.rfft())
    with Context(FFT=0):
        assert "fourier" not in kernel_names(x.rfft())


def test_a_routine_multiplies_by_the_factor_too() -> None:
    x = Tensor.zeros(3, 256, 2).contiguous().realize()
    assert kernel_names(x.fft()) == "fourier_3_256_0_0"
    assert kernel_names(x.ifft()) == "fourier_3_256_1_1"
    assert (
        kernel_names(Tensor.zeros(129, 2).contiguous().realize().irfft(norm="ortho"))
        == "real_inverse_1_256_1"
    )


@needs("cl")
def test_on_a_grid_they_are_products() -> None:
    x = data(256, seed=12)
    made = Tensor(x, device="CL").rfft()
    assert "fourier" not in kernel_names(made)
    np.testing.assert_allclose(made.numpy(), pairs(np.fft.rfft(x)), atol=1e-4)


@needs("torch")
def test_gradients_of_routines() -> None:
    torch = require("torch")
    x, half = data(2, 72, seed=8, dtype=np.float64), data(2, 37, 2, seed=9, dtype=np.float64)
    like_torch(lambda x: x.rfft() ** 2, lambda x: torch.view_as_real(torch.fft.rfft(x)) ** 2, [x])
    like_torch(lambda x: x.irfft() ** 2, lambda x: torch.fft.irfft(torch.view_as_complex(x)) ** 2, [half])


def test_batches_of_routines() -> None:
    x = Tensor(data(4, 128, seed=10))
    expected = x.rfft().numpy()
    np.testing.assert_array_equal(vmap(lambda line: line.rfft())(x).numpy(), expected)
    np.testing.assert_array_equal(jit(lambda x: x.rfft())(x).numpy(), expected)
    for axis in (0, 1, None):
        np.testing.assert_array_equal(x.shard(("CPU:0", "CPU:1"), axis).rfft().numpy(), expected)


def test_first_and_last_numbers_are_taken_as_real() -> None:
    half = data(37, 2, seed=11, dtype=np.float64)
    np.testing.assert_allclose(Tensor(half).irfft().numpy(), np.fft.irfft(joined(half)), atol=1e-14)


def test_frequencies_and_shifts() -> None:
    for n in (4, 5):
        np.testing.assert_allclose(Tensor.fftfreq(n, 0.5).numpy(), np.fft.fftfreq(n, 0.5), rtol=1e-6)
        np.testing.assert_allclose(Tensor.rfftfreq(n, 0.5).numpy(), np.fft.rfftfreq(n, 0.5), rtol=1e-6)
        x = data(n, 3)
        np.testing.assert_array_equal(Tensor(x).fftshift().numpy(), np.fft.fftshift(x))
        np.testing.assert_array_equal(Tensor(x).fftshift(0).ifftshift(0).numpy(), x)


def test_errors() -> None:
    with pytest.raises(ValueError, match=r"fft takes complex numbers, .* of shape \(3,\); rfft takes real"):
        Tensor.zeros(3).fft()
    with pytest.raises(ValueError, match="fft's norm must be one of backward, ortho, forward, not 'other'"):
        Tensor.zeros(3, 2).fft(norm="other")
    with pytest.raises(ValueError, match="ifft needs a positive size, not 0"):
        Tensor.zeros(3, 2).ifft(0)
    with pytest.raises(ValueError, match=r"fftn needs a size for each axis, not \(2,\) for \(0, 1\)"):
        Tensor.zeros(3, 3, 2).fftn((2,), (0, 1))
    with pytest.raises(IndexError, match="axis 2 is out of range"):
        Tensor.zeros(3, 3, 2).fft(dim=2)

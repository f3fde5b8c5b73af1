"""What PyTorch sets for a process; complex numbers as pairs; singular values of large matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lazygrad import Device, Tensor, fft, functional
from lazygrad.config import THREADS
from tests.helpers import needs, require

RNG = np.random.default_rng(0)


def test_the_default_dtype() -> None:
    try:
        functional.set_default_dtype("float64")
        assert Tensor([1.5]).dtype is functional.get_default_dtype() is Tensor([1.5]).double().dtype
    finally:
        functional.set_default_dtype(Tensor([1.0]).float().dtype)
    assert Tensor([1.5]).dtype is Tensor([1.5]).float().dtype
    with pytest.raises(TypeError, match="takes a dtype of floats, not int"):
        functional.set_default_dtype("int32")


def test_the_default_device() -> None:
    before = functional.get_default_device()
    try:
        functional.set_default_device("python")
        assert Tensor([1.0]).device == functional.get_default_device() == "PYTHON"
    finally:
        Device.DEFAULT = before
    assert functional.get_default_device() == before


def test_threads() -> None:
    before = functional.get_num_threads()
    try:
        functional.set_num_threads(3)
        assert THREADS.value == functional.get_num_threads() == 3
    finally:
        functional.set_num_threads(before)
    with pytest.raises(ValueError, match="a number of threads, from 1 on, not 0"):
        functional.set_num_threads(0)


def test_what_is_recorded() -> None:
    assert functional.is_grad_enabled()
    assert not functional.is_inference_mode_enabled()
    with Tensor.no_grad():
        assert not functional.is_grad_enabled()


def test_precision_and_determinism() -> None:
    functional.use_deterministic_algorithms(False)
    assert functional.are_deterministic_algorithms_enabled()
    functional.set_float32_matmul_precision("high")
    assert functional.get_float32_matmul_precision() == "high"
    functional.set_float32_matmul_precision("highest")
    with pytest.raises(ValueError, match="takes highest, high or medium, not 'low'"):
        functional.set_float32_matmul_precision("low")


@needs("torch")
def test_pairs_are_pytorchs_complex_numbers() -> None:
    torch = require("torch")
    x, y = RNG.standard_normal((2, 3, 4))
    theirs, ours = torch.complex(torch.tensor(x), torch.tensor(y)), functional.complex(Tensor(x), Tensor(y))
    for name in ("real", "imag", "conj", "conj_physical", "angle", "view_as_real"):
        expected = getattr(torch, name)(theirs).resolve_conj()
        expected = torch.view_as_real(expected) if expected.is_complex() else expected
        found = getattr(functional, name)(ours)
        np.testing.assert_allclose(found.numpy(), expected.numpy(), atol=1e-12)
    for name in ("complex", "polar"):
        expected = torch.view_as_real(getattr(torch, name)(torch.tensor(x), torch.tensor(y)))
        found = getattr(functional, name)(Tensor(x), Tensor(y))
        np.testing.assert_allclose(functional.view_as_complex(found).numpy(), expected.numpy(), atol=1e-12)
    assert not functional.is_complex(ours)


def test_transforms_give_pairs() -> None:
    x = RNG.standard_normal(8)
    np.testing.assert_allclose(functional.real(fft.rfft(Tensor(x))).numpy(), np.fft.rfft(x).real, atol=1e-12)


def test_gradients_of_pairs() -> None:
    x = Tensor([[3.0, 4.0]], requires_grad=True)
    (slope,) = (functional.angle(x).sum() + functional.real(functional.conj(x)).sum()).gradient(x)
    np.testing.assert_allclose(slope.numpy(), [[1 - 4 / 25, 3 / 25]], rtol=1e-6)


@needs("torch")
def test_matrices_of_low_rank() -> None:
    torch = require("torch")
    a = RNG.standard_normal((2, 30, 3)) @ RNG.standard_normal((2, 3, 20))
    u, s, v = functional.svd_lowrank(Tensor(a), 5)
    assert (u.shape, s.shape, v.shape) == tuple(tuple(t.shape) for t in torch.svd_lowrank(torch.tensor(a), 5))
    np.testing.assert_allclose((u * s.unsqueeze(-2)).dot(v.mT).numpy(), a, atol=1e-10)
    np.testing.assert_allclose(s.numpy(), np.linalg.svd(a)[1][:, :5], atol=1e-10)
    _, s, v = functional.pca_lowrank(Tensor(a[0]), 3)
    _, expected, theirs = torch.pca_lowrank(torch.tensor(a[0]), 3)
    np.testing.assert_allclose(s.numpy(), expected.numpy(), rtol=1e-8)
    np.testing.assert_allclose(np.abs((v.numpy() * theirs.numpy()).sum(0)), 1, rtol=1e-6)
    assert functional.pca_lowrank(Tensor(a[0, :4]))[1].shape == (4,)


def test_gradients_of_low_rank() -> None:
    a = Tensor(RNG.standard_normal((6, 2)) @ RNG.standard_normal((2, 5)), requires_grad=True)
    (slope,) = functional.svd_lowrank(a, 2)[1].sum().gradient(a)
    u, _, vh = np.linalg.svd(a.numpy())
    np.testing.assert_allclose(slope.numpy(), u[:, :2] @ vh[:2], atol=1e-6)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (
            lambda: functional.real(Tensor([1.0])),
            r"real takes complex numbers, a last axis of 2 .*, not shape \(1,\)",
        ),
        (
            lambda: functional.complex(Tensor([1.0]), Tensor([1.0, 2.0])),
            r"float of \(1,\) and float of \(2,\)",
        ),
        (
            lambda: functional.svd_lowrank(Tensor.ones(3, 2), 3),
            "q is from 1 to 2 for matrices of shape 3 × 2, not 3",
        ),
        (lambda: functional.svd_lowrank(Tensor.ones(3, 2), 1, -1), "niter is not negative, not -1"),
        (lambda: functional.pca_lowrank(Tensor.ones(3)), r"pca_lowrank takes matrices, not shape \(3,\)"),
    ],
)
def test_wrong_calls(wrong: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        wrong()

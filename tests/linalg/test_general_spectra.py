"""Eigenvalues and eigenvectors of matrices that need not be symmetric."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor, TinyJit, linalg, vmap


def normal(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape)


TURN = np.array([[1.0, 2.0], [-2.0, 1.0]])
MATRICES: dict[str, Callable[[], Any]] = {
    **{f"random {n}": lambda n=n: normal(n, n) for n in (1, 2, 3, 5, 17)},
    "symmetric": lambda: normal(6, 6) + normal(6, 6).T,
    "zeros": lambda: np.zeros((4, 4)),
    "one": lambda: np.eye(4),
    "a block of Jordan": lambda: np.eye(8) + np.diag(np.ones(7), 1),
    "nilpotent": lambda: np.diag(np.ones(7), 1),
    "cyclic": lambda: np.roll(np.eye(8), 1, 0),  # shifts of its own alone get a step going
    "rank one": lambda: np.ones((5, 5)),
    "companion": lambda: np.vstack([np.array([-1.0, 2.0, -3.0, 4.0]), np.eye(4)[:3]]),
    "equal pairs": lambda: np.kron(np.eye(3), TURN),
    "equal pairs, linked": lambda: np.kron(np.eye(3), TURN) + np.diag(np.ones(4), 2),
    "triangular": lambda: np.triu(normal(6, 6)),
    "huge": lambda: normal(5, 5) * 1e30,
    "tiny": lambda: normal(5, 5) * 1e-30,
    "graded": lambda: 10.0 ** -np.arange(6)[:, None] * normal(6, 6),
}


def complex_of(pairs: Tensor) -> Any:
    return pairs.numpy()[..., 0] + 1j * pairs.numpy()[..., 1]


def in_order(values: Any, digits: int) -> Any:
    return np.sort_complex(values.round(digits))


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("dtype", [np.float64, pytest.param(np.float32, marks=pytest.mark.slow)])
def test_pairs(name: str, dtype: Any) -> None:
    a = MATRICES[name]().astype(dtype)
    scale = float(np.abs(a).max()) or 1.0
    near = float(np.finfo(dtype).eps) * 10 * len(a)
    values, vectors = map(complex_of, linalg.eig(Tensor(a)))
    whole = a.astype(np.float64) / scale
    assert np.abs(whole @ vectors - vectors * values / scale).max() < near
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=0), 1, atol=near)
    digits = 10 if dtype is np.float64 else 4
    if "Jordan" not in name and "linked" not in name:  # whose eigenvalues are not worth so many digits
        exact = np.linalg.eigvals(whole)
        np.testing.assert_allclose(in_order(values / scale, digits), in_order(exact, digits), atol=10 * near)
    only = complex_of(linalg.eigvals(Tensor(a)))
    np.testing.assert_allclose(
        in_order(only / scale, digits), in_order(values / scale, digits), atol=100 * near
    )


def test_as_lapack_leaves_them() -> None:
    values, vectors = map(complex_of, linalg.eig(Tensor(normal(7, 7))))
    turning = values.imag != 0
    assert 0 < turning.sum() < 7
    first = np.flatnonzero(values.imag > 0)
    assert (values[first + 1] == values[first].conj()).all()
    assert (vectors[:, first + 1] == vectors[:, first].conj()).all()
    assert (vectors[:, ~turning].imag == 0).all()
    greatest = np.abs(vectors).argmax(0)
    assert (vectors[greatest, np.arange(7)].imag == 0).all()
    assert (vectors[greatest, np.arange(7)].real[turning] > 0).all()


def test_captured_and_mapped() -> None:
    def rebuilt(a: Tensor) -> Tensor:
        """The real part of V diag(λ) and of A V: two of the same."""
        values, vectors = linalg.eig(a)
        re = vectors[..., 0] * values[..., 0].unsqueeze(-2) - vectors[..., 1] * values[..., 1].unsqueeze(-2)
        return (a.dot(vectors[..., 0]) - re).abs().max() + (
            linalg.eigvals(a)[..., 0].sum(-1) - values[..., 0].sum(-1)
        ).abs().max()

    step = TinyJit(lambda a: rebuilt(a).realize())
    for n in range(3):
        assert step(Tensor(normal(2, 4, 4) * (n + 1)).realize()).item() < 1e-12
    assert vmap(rebuilt)(Tensor(normal(3, 2, 4, 4))).numpy().max() < 1e-12


@pytest.mark.parametrize("bad", [np.nan, pytest.param(np.inf, marks=pytest.mark.slow)])
def test_numbers_that_are_not_finite_have_none(bad: float) -> None:
    several = np.stack([np.eye(2), np.array([[1.0, bad], [0.0, 1.0]])])
    with pytest.raises(ValueError, match=r"eig: a matrix of shape .* has numbers that are not finite"):
        linalg.eig(Tensor(several)).eigenvectors.numpy()
    with pytest.raises(ValueError, match=r"eigvals: a matrix of shape .* not finite"):
        linalg.eigvals(Tensor(several)).numpy()
    step = TinyJit(lambda a: [t.realize() for t in linalg.eig(a)])
    for a in (normal(2, 2, 2), normal(2, 2, 2), several):
        values, vectors = step(Tensor(a).realize())
    assert np.isnan(values.numpy()[1]).all()
    assert np.isnan(vectors.numpy()[1]).all()
    assert values[0].tolist() == [[1.0, 0.0], [1.0, 0.0]]


def test_empty_ones() -> None:
    for shape in ((0, 0), (2, 0, 0), (0, 3, 3)):
        values, vectors = linalg.eig(Tensor(np.zeros(shape)))
        assert (values.shape, vectors.shape) == ((*shape[:-1], 2), (*shape, 2))
        assert linalg.eigvals(Tensor(np.zeros(shape))).shape == values.shape


def test_gradients_in_a_jit() -> None:
    def slope(a: Tensor) -> Tensor:
        a.requires_grad_()
        (found,) = linalg.eigvals(a).square().sum().gradient(a)
        return found.realize()

    step = TinyJit(slope)
    for n in range(3):
        a = normal(3, 3) + n
        np.testing.assert_allclose(step(Tensor(a).realize()).numpy(), slope(Tensor(a)).numpy(), atol=1e-10)


def test_wrong_calls() -> None:
    with pytest.raises(ValueError, match=r"eig needs square matrices, not shape \(2, 3\)"):
        linalg.eig(Tensor.ones(2, 3))
    with pytest.raises(ValueError, match=r"eigvals needs square matrices, not shape \(2, 3\)"):
        linalg.eigvals(Tensor.ones(2, 3))

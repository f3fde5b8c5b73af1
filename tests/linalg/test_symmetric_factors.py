"""`ldl_factor`, `ldl_factor_ex` and `ldl_solve` beside PyTorch's, which are LAPACK's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor, TinyJit, linalg, vmap
from tests.helpers import needs, require

SINGULAR = np.array([[4.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
PAIR = np.array([[0.0, 2.0], [2.0, 0.0]])


def symmetric(*shape: int, kind: str = "full", dtype: Any = np.float64) -> Any:
    rng = np.random.default_rng(sum(shape))
    a = rng.standard_normal(shape)
    a = a + a.swapaxes(-1, -2)
    if kind == "hollow":  # blocks of two
        a = a * (1 - np.eye(shape[-1]))
    if kind == "sparse":
        keep = rng.random(shape) < 0.4
        a = a * (keep | keep.swapaxes(-1, -2)) + np.eye(shape[-1]) * 1e-3
    return a.astype(dtype)


@needs("torch")
@pytest.mark.parametrize("kind", ["full", "hollow", "sparse"])
@pytest.mark.parametrize("shape", [(2, 2), (5, 5), (2, 9, 9), (3, 2, 4, 4), (33, 33)])
def test_the_same_as_lapack(shape: tuple[int, ...], kind: str) -> None:
    torch = require("torch")
    a, b = symmetric(*shape, kind=kind), np.random.default_rng(0).standard_normal((*shape[:-1], 3))
    expected = torch.linalg.ldl_factor_ex(torch.tensor(a))
    found = linalg.ldl_factor_ex(Tensor(a))
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype.name == {torch.float64: "double", torch.int32: "int"}[theirs.dtype]
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-7, atol=1e-9)
    x = linalg.ldl_solve(found.LD, found.pivots, Tensor(b)).numpy()
    np.testing.assert_allclose(a @ x, b, atol=1e-8)


@pytest.mark.parametrize("size", [1, 2, 3, 8, 17, 64, 130])
def test_solutions_in_float32(size: int) -> None:
    a, b = symmetric(2, size, size, dtype=np.float32), np.ones((2, size, 1), np.float32)
    x = linalg.ldl_solve(*linalg.ldl_factor(Tensor(a)), Tensor(b)).numpy()
    assert np.abs(a @ x - b).max() < 1e-5 * np.abs(x).max() * np.abs(a).sum(-1).max()


def test_only_the_lower_triangle_is_read() -> None:
    a = symmetric(4, 4)
    whole, lower = (linalg.ldl_factor(Tensor(x)) for x in (a, np.tril(a) + np.triu(np.ones((4, 4)), 1)))
    assert whole.LD.tolist() == lower.LD.tolist()
    assert whole.pivots.tolist() == lower.pivots.tolist()


def test_a_pivot_of_zero() -> None:
    several = Tensor(np.stack([np.eye(3), SINGULAR]))
    found = linalg.ldl_factor_ex(several)
    assert found.info.tolist() == [0, 2]
    assert found.LD[0].tolist() == np.eye(3).tolist()
    with pytest.raises(ValueError, match=r"ldl_factor: D of a matrix of shape \(3, 3\) has a 0"):
        linalg.ldl_factor(several).LD.numpy()
    with pytest.raises(ValueError, match=r"ldl_factor_ex: D of .* \(ldl_factor_ex says where\)"):
        linalg.ldl_factor_ex(several, check_errors=True).LD.numpy()
    step = TinyJit(lambda x: linalg.ldl_factor(x).LD.realize())
    for a in (np.eye(3), PAIR_AND_ONE, SINGULAR):  # the last call replays
        made = step(Tensor(a).realize()).numpy()
    assert np.isnan(made).all()


PAIR_AND_ONE = np.pad(PAIR, (0, 1)) + np.diag([0.0, 0.0, 1.0])


def test_nan_stays_nan() -> None:
    a = np.eye(3)
    a[2, 0] = a[0, 2] = math.nan
    found = linalg.ldl_factor_ex(Tensor(a))
    assert np.isnan(found.LD.numpy()).any()
    assert np.isnan(linalg.ldl_solve(found.LD, found.pivots, Tensor.ones(3, 1).double()).numpy()).any()


@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 3)])
def test_captured_and_mapped(shape: tuple[int, ...]) -> None:
    def compute(a: Tensor, b: Tensor) -> Tensor:
        return linalg.ldl_solve(*linalg.ldl_factor(a), b)

    step = TinyJit(lambda a, b: compute(a, b).realize())
    b = np.random.default_rng(1).standard_normal((*shape[:-1], 2))
    several = np.stack([symmetric(*shape, kind=kind) for kind in ("full", "hollow", "full")])
    for a in several:
        made = step(Tensor(a).realize(), Tensor(b).realize()).numpy()
        np.testing.assert_allclose(a @ made, b, atol=1e-9)
    mapped = vmap(lambda a: compute(a, Tensor(b)))(Tensor(several)).numpy()
    np.testing.assert_allclose(several @ mapped, np.stack([b] * 3), atol=1e-9)


def test_one_matrix_and_many_right_sides() -> None:
    a, b = symmetric(4, 4), np.random.default_rng(2).standard_normal((3, 4, 2))
    x = linalg.ldl_solve(*linalg.ldl_factor(Tensor(a)), Tensor(b)).numpy()
    np.testing.assert_allclose(a @ x, b, atol=1e-9)


def test_empty_ones() -> None:
    for shape in ((0, 0), (2, 0, 0), (0, 3, 3)):
        found = linalg.ldl_factor_ex(Tensor(np.zeros(shape)))
        assert [t.shape for t in found] == [shape, shape[:-1], shape[:-2]]
        right = Tensor.zeros(*shape[:-1], 2)
        assert linalg.ldl_solve(found.LD, found.pivots, right).shape == right.shape


def test_gradients_flow_to_the_right_side() -> None:
    a, b = symmetric(4, 4), Tensor(np.arange(8.0).reshape(4, 2), requires_grad=True)
    factors = linalg.ldl_factor(Tensor(a))
    (slope,) = (linalg.ldl_solve(*factors, b) ** 2).sum().gradient(b)
    inverse = np.linalg.inv(a)
    np.testing.assert_allclose(slope.numpy(), 2 * inverse @ inverse @ b.numpy(), atol=1e-9)
    x = Tensor(a, requires_grad=True)
    with pytest.raises(NotImplementedError, match=r"ldl_factor has no gradient: `Tensor\.solve`"):
        linalg.ldl_factor(x).LD.sum().backward()
    ld = factors.LD.detach().requires_grad_()
    with pytest.raises(NotImplementedError, match="ldl_solve has no gradient of LD"):
        linalg.ldl_solve(ld, factors.pivots, b).sum().backward()


EYE, PIVOTS = Tensor.eye(2), Tensor([1, 2])


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (
            lambda: linalg.ldl_factor(Tensor.ones(2, 3)),
            r"ldl_factor needs square matrices, not shape \(2, 3\)",
        ),
        (lambda: linalg.ldl_factor_ex(Tensor.ones(3)), r"ldl_factor_ex needs square matrices"),
        (
            lambda: linalg.ldl_solve(EYE, PIVOTS, Tensor.ones(2)),
            r"takes B of shape \(..., n, k\), not \(2,\)",
        ),
        (lambda: linalg.ldl_solve(EYE, PIVOTS, Tensor.ones(3, 1)), r"does not take shape \(3, 1\)"),
        (
            lambda: linalg.ldl_solve(EYE, Tensor([1]), Tensor.ones(2, 1)),
            r"integers of shape \(2,\), .* int of \(1,\)",
        ),
        (lambda: linalg.ldl_solve(EYE, Tensor([1.0, 2.0]), Tensor.ones(2, 1)), "not float of"),
        (lambda: linalg.ldl_solve(EYE, Tensor([1, 3]), Tensor.ones(2, 1)).numpy(), "a row from 1 to 2"),
        (lambda: linalg.ldl_solve(EYE, Tensor([0, 1]), Tensor.ones(2, 1)).numpy(), "or minus that"),
    ],
)
def test_wrong_calls(wrong: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        wrong()

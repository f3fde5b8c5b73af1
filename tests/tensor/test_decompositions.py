"""Decompositions of matrices against numpy and PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor
from tests.helpers import needs, require, slow_but_for
from tests.tensor.support import data, like_torch

SQUARE = data(2, 3, 3, seed=1, dtype=np.float64) + 2 * np.eye(3)
TALL, WIDE = data(2, 5, 3, seed=2, dtype=np.float64), data(3, 5, seed=3, dtype=np.float64)
RIGHT = data(2, 3, 2, seed=4, dtype=np.float64)


def symmetric(x: Any) -> Any:
    return x + x.mT


def definite(x: Any) -> Any:
    return x @ x.mT


def linalg(name: str) -> Callable[..., Any]:
    return lambda *args, **more: getattr(require("torch").linalg, name)(*args, **more)


def lu(x: Any) -> Any:
    return linalg("lu")(x)


def qr(x: Any) -> Any:
    return linalg("qr")(x)


#: Signs of vectors are free, so what is compared does not depend on them.
GRADIENTS: dict[str, tuple[Callable[..., Any], Callable[..., Any] | None, list[Any]]] = {
    "inv": (lambda a: a.inv(), linalg("inv"), [SQUARE]),
    "det": (lambda a: a.det(), None, [SQUARE]),
    "det singular": (  # of a determinant that is exactly 0 PyTorch takes the slopes to be 0
        lambda a: a.det(),
        lambda a: linalg("cross")(a[0], a[1]) @ a[2],
        [np.array([[1.0, 2, 3], [2, 4, 6], [1, 0, 1]])],
    ),
    "logdet": (lambda a: definite(a).logdet(), None, [SQUARE]),
    "slogdet": (lambda a: a.slogdet()[1], None, [SQUARE]),
    "solve": (lambda a, b: a.solve(b), linalg("solve"), [SQUARE, RIGHT]),
    "solve line": (lambda a, b: a.solve(b), linalg("solve"), [SQUARE[0], RIGHT[0, :, 0]]),
    "solve batch": (lambda a, b: a.solve(b), linalg("solve"), [SQUARE[0], RIGHT]),
    "solve right": (
        lambda a, b: a.solve(b, left=False),
        lambda a, b: linalg("solve")(a, b, left=False),
        [SQUARE, RIGHT.transpose(0, 2, 1)],
    ),
    "solve_triangular": (
        lambda a, b: a.solve_triangular(b, upper=True),
        lambda a, b: linalg("solve_triangular")(a, b, upper=True),
        [SQUARE, RIGHT],
    ),
    "unitriangular": (
        lambda a, b: a.solve_triangular(b, upper=False, unitriangular=True),
        lambda a, b: linalg("solve_triangular")(a, b, upper=False, unitriangular=True),
        [SQUARE, RIGHT],
    ),
    "triangular_solve": (lambda b, a: b.triangular_solve(a, transpose=True)[0], None, [RIGHT, SQUARE]),
    "pinv": (lambda a: a.pinv(), linalg("pinv"), [TALL]),
    "pinv wide": (lambda a: a.pinv(), linalg("pinv"), [WIDE]),
    "lstsq": (
        lambda a, b: a.lstsq(b).solution,
        lambda a, b: linalg("lstsq")(a, b).solution,
        [TALL, data(2, 5, 2, seed=5, dtype=np.float64)],
    ),
    "cholesky": (lambda a: definite(a).cholesky(), lambda a: linalg("cholesky")(definite(a)), [SQUARE]),
    "cholesky upper": (
        lambda a: definite(a).cholesky(upper=True),
        lambda a: linalg("cholesky")(definite(a), upper=True),
        [SQUARE],
    ),
    "cholesky_solve": (lambda b, a: b.cholesky_solve(a.tril()), None, [RIGHT, SQUARE]),
    "cholesky_inverse": (lambda a: a.tril().cholesky_inverse(), None, [SQUARE]),
    "qr": (
        lambda a: a.qr()[0] + 2 * a.qr()[1][..., :1, :],
        lambda a: qr(a)[0] + 2 * qr(a)[1][..., :1, :],
        [SQUARE],
    ),
    "qr tall": (lambda a: a.qr()[0] * 2, lambda a: qr(a)[0] * 2, [TALL]),
    "qr wide": (lambda a: a.qr()[0].sum() + a.qr()[1], lambda a: qr(a)[0].sum() + qr(a)[1], [WIDE]),
    "svdvals": (lambda a: a.svdvals(), linalg("svdvals"), [TALL]),
    "lu tall": (lambda a: a.lu().L + 2 * a.lu().U.sum(), lambda a: lu(a)[1] + 2 * lu(a)[2].sum(), [TALL]),
    "lu wide": (lambda a: a.lu().U + 2 * a.lu().L.sum(), lambda a: lu(a)[2] + 2 * lu(a)[1].sum(), [WIDE]),
    "svd full": (
        lambda a: a.svd().U[..., :3] ** 2 @ abs(a.svd().Vh[..., :3, :]) + a.svd().S.sum(),
        lambda a: (
            linalg("svd")(a).U[..., :3] ** 2 @ abs(linalg("svd")(a).Vh[..., :3, :]) + linalg("svd")(a).S.sum()
        ),
        [TALL],
    ),
    "svd": (
        lambda a: a.svd(full_matrices=False)[0] ** 2 @ abs(a.svd(full_matrices=False)[2]),
        lambda a: (
            linalg("svd")(a, full_matrices=False)[0] ** 2 @ abs(linalg("svd")(a, full_matrices=False)[2])
        ),
        [TALL],
    ),
    "svd wide": (
        lambda a: abs(a.svd(full_matrices=False)[2]),
        lambda a: abs(linalg("svd")(a, full_matrices=False)[2]),
        [WIDE],
    ),
    "svd square": (lambda a: abs(a.svd()[0]), lambda a: abs(linalg("svd")(a)[0]), [SQUARE]),
    "eigh": (lambda a: symmetric(a).eigh()[1] ** 2, lambda a: linalg("eigh")(symmetric(a))[1] ** 2, [SQUARE]),
    "eigvalsh": (lambda a: symmetric(a).eigvalsh(), lambda a: linalg("eigvalsh")(symmetric(a)), [SQUARE]),
    "lu": (
        lambda a: a.lu()[1] @ a.lu()[2] + a.lu()[1],
        lambda a: linalg("lu")(a)[1] @ linalg("lu")(a)[2] + linalg("lu")(a)[1],
        [SQUARE],
    ),
    "matrix_norm": (
        lambda a: a.matrix_norm("nuc") + a.matrix_norm(1),
        lambda a: linalg("matrix_norm")(a, "nuc") + linalg("matrix_norm")(a, 1),
        [SQUARE],
    ),
    "matrix_norm 2": (
        lambda a: a.matrix_norm(2, keepdim=True) - a.matrix_norm(-2, keepdim=True),
        lambda a: linalg("matrix_norm")(a, 2, keepdim=True) - linalg("matrix_norm")(a, -2, keepdim=True),
        [SQUARE],
    ),
    "cond": (
        lambda a: a.cond(),
        lambda a: linalg("cond")(a),
        [SQUARE],
    ),
}


@needs("torch")
@pytest.mark.parametrize("name", GRADIENTS)
def test_values_and_gradients(name: str) -> None:
    ours, theirs, arrays = GRADIENTS[name]
    like_torch(ours, theirs or ours, arrays, rtol=1e-7, atol=1e-7)


def test_products_of_the_factors() -> None:
    for x in (SQUARE, TALL, WIDE, TALL[:, :1], data(2, 0, 3)):
        rows, columns = x.shape[-2:]
        q, r = Tensor(x).qr("complete")
        assert q.shape[-2:] == (rows, rows)
        assert r.shape[-2:] == (rows, columns)
        np.testing.assert_allclose((q @ r).numpy(), x, atol=1e-12)
        u, s, vh = Tensor(x).svd()
        assert u.shape[-1] == rows
        assert vh.shape[-1] == columns
        middle = s.unsqueeze(-2)
        k = min(rows, columns)
        np.testing.assert_allclose((u[..., :k] * middle @ vh[..., :k, :]).numpy(), x, atol=1e-12)
        p, low, up = Tensor(x).lu()
        np.testing.assert_allclose((p @ low @ up).numpy(), x, atol=1e-12)
    assert Tensor(WIDE).qr("r").R.shape == (3, 5)


def test_second_derivatives() -> None:
    a = Tensor(SQUARE[0], requires_grad=True)
    (first,) = a.inv().sum().gradient(a)
    (second,) = (first * first).sum().gradient(a)
    step = 1e-6

    def slope(x: Any) -> float:
        inverse = np.linalg.inv(x)
        grad = -(inverse.T @ np.ones((3, 3)) @ inverse.T)
        return float((grad * grad).sum())

    moved = SQUARE[0].copy()
    moved[1, 2] += step
    back = SQUARE[0].copy()
    back[1, 2] -= step
    assert math.isclose(second.numpy()[1, 2], (slope(moved) - slope(back)) / (2 * step), rel_tol=1e-5)


@needs("torch")
@pytest.mark.parametrize("name", slow_but_for(GRADIENTS, "cholesky", "det", "lu"))
def test_second_derivatives_are_those_of_pytorch(name: str) -> None:
    torch = require("torch")
    ours, theirs, arrays = GRADIENTS[name]

    def weighted(results: Any, wrap: Callable[[Any], Any]) -> Any:
        weights = [data(*r.shape, seed=n, low=0.5, high=1.5, dtype=np.float64) for n, r in enumerate(results)]
        return sum((r * wrap(w)).sum() for r, w in zip(results, weights, strict=True))

    mine = [Tensor(a, requires_grad=True) for a in arrays]
    slopes = weighted([ours(*mine)], Tensor).gradient(*mine)
    found = weighted(slopes, Tensor).gradient(*mine)
    other = [torch.tensor(a.copy(), requires_grad=True) for a in arrays]
    first = weighted([(theirs or ours)(*other)], torch.tensor)
    slopes = torch.autograd.grad(first, other, create_graph=True)
    expected = torch.autograd.grad(weighted(slopes, torch.tensor), other)
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-7, atol=1e-7)


WITHOUT_GRADIENT: dict[str, tuple[Callable[[Tensor], Tensor], str]] = {
    "qr": (
        lambda x: x.qr("complete").Q,
        r"qr\('complete'\) of shape \(3, 2\) has no gradient of tall matrices: .* 'reduced' has one",
    ),
}


@pytest.mark.parametrize("name", WITHOUT_GRADIENT)
def test_what_has_no_gradient_says_so(name: str) -> None:
    made, message = WITHOUT_GRADIENT[name]
    x = Tensor(TALL[0][:3, :2], requires_grad=True)
    with pytest.raises(NotImplementedError, match=message):
        made(x).sum().backward()


def test_the_singular_values_of_a_full_decomposition_have_a_gradient() -> None:
    x = Tensor(TALL[0][:3, :2], requires_grad=True)
    (full,) = x.svd().S.sum().gradient(x)
    (reduced,) = x.svdvals().sum().gradient(x)
    np.testing.assert_allclose(full.numpy(), reduced.numpy(), rtol=1e-12)


def test_ranks_and_residuals() -> None:
    x = np.array([[1.0, 2.0], [2.0, 4.0], [0.0, 0.0]])
    assert Tensor(x).matrix_rank().item() == 1
    assert Tensor(TALL).matrix_rank().tolist() == [3, 3]
    assert Tensor(x[:2]).matrix_rank(hermitian=True).item() == 1
    found = Tensor(TALL[0]).lstsq(Tensor(TALL[1]))
    expected = np.linalg.lstsq(TALL[0], TALL[1], rcond=None)
    np.testing.assert_allclose(found.solution.numpy(), expected[0], atol=1e-10)
    np.testing.assert_allclose(found.residuals.numpy(), expected[1], atol=1e-10)
    assert found.rank.item() == 3


def test_narrow_floats_and_integers() -> None:
    found = Tensor([[2, 0], [0, 4]]).inv()
    assert found.dtype is Tensor([1.0]).dtype
    assert found.tolist() == [[0.5, 0], [0, 0.25]]
    assert Tensor([[2.0]]).half().inv().dtype is Tensor([1.0]).half().dtype


ERRORS: dict[str, tuple[Callable[[], Any], str]] = {
    "inv": (lambda: Tensor.zeros(2, 2).inv().numpy(), r"inv: a matrix of shape \(2, 2\) is singular"),
    "square": (lambda: Tensor.zeros(2, 3).det(), r"det needs square matrices, not shape \(2, 3\)"),
    "line": (lambda: Tensor.zeros(3).svd(), r"svd needs matrices, not shape \(3,\)"),
    "cholesky": (
        lambda: (-Tensor.eye(2)).cholesky().numpy(),
        r"cholesky: a matrix of shape \(2, 2\) is not positive",
    ),
    "solve": (
        lambda: Tensor.eye(2).solve(Tensor.zeros(3, 1)),
        r"solve of matrices of shape \(2, 2\) does not",
    ),
    "qr mode": (
        lambda: Tensor.eye(2).qr("full"),
        "qr's mode must be 'reduced', 'complete' or 'r', not 'full'",
    ),
    "eigh": (lambda: Tensor.eye(2).eigh("X"), "eigh's UPLO must be 'L' or 'U', not 'X'"),
    "norm": (
        lambda: Tensor.eye(2).matrix_norm(3),
        "matrix_norm's ord must be 'fro', 'nuc', ±1, ±2 or ±inf, not 3",
    ),
    "lstsq": (
        lambda: Tensor.eye(2).lstsq(Tensor.zeros(3, 1)),
        r"lstsq of matrices of shape \(2, 2\) does not",
    ),
    "batches": (lambda: Tensor.zeros(2, 2, 2).solve(Tensor.zeros(3, 2, 1)), "do not broadcast"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    call, message = ERRORS[name]
    with pytest.raises(ValueError, match=message):
        call()


def jitted(name: str, compute: Callable[[Tensor], tuple[Tensor, ...]], examples: list[Any]) -> None:
    """Calls with different data, the last ones replayed, give what they give without a jit."""
    from lazygrad import TinyJit

    step = TinyJit(lambda x: tuple([part.realize() for part in compute(x)]))
    for example in examples:
        found = [part.numpy() for part in step(Tensor(example).realize())]
        for got, wanted in zip(found, compute(Tensor(example)), strict=True):
            np.testing.assert_allclose(got, wanted.numpy(), rtol=1e-9, atol=1e-9, err_msg=name)


#: Each as tensors that do not depend on free signs.
CAPTURED: dict[str, Callable[[Tensor], tuple[Tensor, ...]]] = {
    "inv": lambda a: (a.inv(),),
    "solve": lambda a: (a.solve(a.T), a.solve_triangular(a.T, upper=True)),
    "cholesky": lambda a: (definite(a).cholesky(), a.cholesky_solve(definite(a).cholesky())),
    "det": lambda a: (a.det(), a.slogdet()[1], definite(a).logdet()),
    "lu": lambda a: a.lu(),
    "qr": lambda a: (a.qr().R.abs(), a.qr("complete").Q.abs()),
    "svd": lambda a: (a.svd().S, a.svdvals(), a.svd().U.abs()),
    "eigh": lambda a: (symmetric(a).eigh().eigenvectors.abs(), symmetric(a).eigvalsh()),
    "pinv": lambda a: (a.pinv(), a.matrix_rank(), a.cond(), a.lstsq(a.T).solution),
    "lu_factor": lambda a: (a.lu_factor().LU, a.T.lu_solve(*a.lu_factor())),
}


@pytest.mark.parametrize("name", slow_but_for(CAPTURED, "cholesky", "lu", "svd"))
def test_a_jit_captures(name: str) -> None:
    jitted(name, CAPTURED[name], [data(4, 4, seed=n, dtype=np.float64) + 3 * np.eye(4) for n in range(4)])


@pytest.mark.parametrize("name", slow_but_for(CAPTURED, "cholesky", "lu", "svd"))
def test_vmap(name: str) -> None:
    from lazygrad import vmap

    compute = CAPTURED[name]
    x = data(3, 4, 4, seed=7, dtype=np.float64) + 3 * np.eye(4)
    found: Any = vmap(compute)(Tensor(x))
    for n, example in enumerate(x):
        for got, wanted in zip(found, compute(Tensor(example)), strict=True):
            np.testing.assert_allclose(got.numpy()[n], wanted.numpy(), rtol=1e-9, atol=1e-9)


def test_a_singular_matrix_is_nan_in_a_replay() -> None:
    from lazygrad import TinyJit

    step = TinyJit(lambda x: (x.inv().realize(), x.solve(x).realize(), (-x).cholesky().realize()))
    for _ in range(2):
        with_roots = step(Tensor(-np.eye(2)).realize())
        assert not any(np.isnan(part.numpy()).any() for part in with_roots)
    assert all(np.isnan(part.numpy()).all() for part in step(Tensor(np.zeros((2, 2))).realize()))


def test_an_error_comes_when_the_value_is_read() -> None:
    found = Tensor.zeros(2, 2).inv()
    with pytest.raises(ValueError, match=r"singular \(inv, .*test_decompositions.*found by numpy\(\) at"):
        found.numpy()


@pytest.mark.parametrize(
    ("size", "dtype"),
    [(0, np.float32), (1, np.float32), (2, np.float64), (7, np.float32), (33, np.float64), (70, np.float32)],
)
def test_factors_of_many_sizes(size: int, dtype: Any) -> None:
    eps = float(np.finfo(dtype).eps) * max(size, 1) * 8
    a = data(2, size, size, seed=size, dtype=dtype)
    symmetric = a @ a.swapaxes(-1, -2) + size * np.eye(size, dtype=dtype)
    scale = max(size * size, 1)
    root = Tensor(symmetric).cholesky().numpy()
    assert np.abs(root @ root.swapaxes(-1, -2) - symmetric).max(initial=0) < eps * scale
    p, low, up = (part.numpy() for part in Tensor(a).lu())
    assert np.abs(p @ low @ up - a).max(initial=0) < eps * max(size, 1)
    assert np.abs(low).max(initial=0) <= 1
    for part, expected in zip(Tensor(symmetric).slogdet(), np.linalg.slogdet(symmetric), strict=True):
        np.testing.assert_allclose(part.numpy(), expected, rtol=1e-5)
    right = data(2, size, 5, seed=3, dtype=dtype)
    assert (
        np.abs(symmetric @ Tensor(symmetric).solve(Tensor(right)).numpy() - right).max(initial=0) < eps * 50
    )
    inverse = Tensor(symmetric).inv().numpy()
    assert np.abs(inverse @ symmetric - np.eye(size)).max(initial=0) < eps * 50


def test_nan_stays_nan() -> None:
    a = np.eye(3)
    a[1, 2] = np.nan
    assert np.isnan(Tensor(a).inv().numpy()).any()
    assert np.isnan(Tensor(a).det().item())


def test_info_instead_of_an_error() -> None:
    x = Tensor([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, -1.0]]])
    found = x.cholesky_ex()
    assert found.info.tolist() == [0, 2]
    assert np.isnan(found.L.numpy()[1]).all()
    assert found.L.numpy()[0].tolist() == [[1, 0], [0, 1]]
    singular = Tensor([[[1.0, 2.0], [2.0, 4.0]], [[0.0, 1.0], [1.0, 0.0]]])
    assert singular.inv_ex().info.tolist() == [2, 0]
    assert singular.inv_ex().inverse.numpy()[1].tolist() == [[0, 1], [1, 0]]
    assert singular.solve_ex(Tensor([[1.0, 2.0], [3.0, 4.0]])).info.tolist() == [2, 0]
    right = singular.solve_ex(Tensor.ones(2, 1, 2), left=False).result.numpy()
    assert right[1].tolist() == [[1, 1]]
    assert np.isnan(right[0]).all()
    with pytest.raises(ValueError, match=r"inv: .* is singular"):
        singular.inv_ex(check_errors=True).inverse.numpy()


@needs("torch")
@pytest.mark.parametrize("x", [SQUARE, TALL, WIDE, SQUARE[:, :1, :1]], ids=["square", "tall", "wide", "one"])
def test_lu_factor_and_lu_solve_are_those_of_pytorch(x: Any) -> None:
    torch = require("torch")
    found, expected = Tensor(x).lu_factor(), torch.linalg.lu_factor(torch.tensor(x))
    np.testing.assert_allclose(found.LU.numpy(), expected.LU.numpy(), atol=1e-12)
    assert found.pivots.tolist() == expected.pivots.tolist()
    if x.shape[-1] == x.shape[-2]:
        right = data(*x.shape[:-1], 2, seed=4, dtype=np.float64)
        np.testing.assert_allclose(x @ Tensor(right).lu_solve(*found).numpy(), right, atol=1e-10)


@needs("torch")
def test_gradients_of_lu_factor_and_lu_solve() -> None:
    torch = require("torch").linalg
    like_torch(
        lambda a, b: b.lu_solve(*a.lu_factor()),
        lambda a, b: torch.lu_solve(*torch.lu_factor(a), b),
        [SQUARE, RIGHT],
        rtol=1e-7,
        atol=1e-7,
    )


#: Of a spectrum: hard ones too.
SPECTRA: dict[str, Callable[[], Any]] = {
    "zeros": lambda: np.zeros((6, 6)),
    "ones": lambda: np.ones((6, 6)),
    "identity": lambda: np.eye(6),
    "shift": lambda: np.diag(np.ones(5), 1),
    "hilbert": lambda: 1 / (np.arange(6)[:, None] + np.arange(6) + 1.0),
    "pairs": lambda: np.kron(np.eye(3), np.ones((2, 2))),
    "graded": lambda: np.diag(100.0 ** -np.arange(6.0)) + 1e-7,
    "tiny": lambda: data(6, 6, seed=1, dtype=np.float64) * 1e-30,
    "huge": lambda: data(6, 6, seed=2, dtype=np.float64) * 1e30,
    "rank": lambda: data(6, 2, seed=3, dtype=np.float64) @ data(2, 6, seed=4, dtype=np.float64),
    "random": lambda: data(33, 33, seed=5, dtype=np.float64),
}


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_spectra(name: str, dtype: Any) -> None:
    a = SPECTRA[name]().astype(dtype)
    size, scale = len(a), float(np.abs(a).max()) or 1.0
    limit = float(np.finfo(dtype).eps) * 10 * size
    whole = (a + a.T) / 2
    values, vectors = (part.numpy() for part in Tensor(whole).eigh())
    assert np.all(np.diff(values) >= 0)
    assert np.abs(vectors.T @ vectors - np.eye(size)).max() < limit
    assert np.abs((vectors * values) @ vectors.T / scale - whole / scale).max() < limit
    exact = np.linalg.eigvalsh(whole.astype(np.float64) / scale)
    assert np.abs(values / scale - exact).max() <= limit * max(abs(exact))
    assert Tensor(whole).eigvalsh().tolist() == values.tolist()
    u, s, vh = (part.numpy() for part in Tensor(a).svd())
    assert np.all(np.diff(s) <= 0)
    assert np.all(s >= 0)
    for q in (u, vh.T):
        assert np.abs(q.T @ q - np.eye(size)).max() < limit
    assert np.abs((u * s) @ vh / scale - a / scale).max() < limit
    assert Tensor(a).svdvals().tolist() == s.tolist()
    q, r = (part.numpy() for part in Tensor(a).qr())
    assert np.abs(q.T @ q - np.eye(size)).max() < limit
    assert np.abs(q @ r / scale - a / scale).max() < limit


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (1, 1), (1, 4), (2, 5, 3), (0, 3, 3)])
def test_shapes_of_spectra(shape: tuple[int, ...]) -> None:
    x = data(*shape, seed=6, dtype=np.float64)
    for full in (True, False):
        u, s, vh = (part.numpy() for part in Tensor(x).svd(full))
        assert [u.shape, s.shape, vh.shape] == [p.shape for p in np.linalg.svd(x, full_matrices=full)]
        k = s.shape[-1]
        np.testing.assert_allclose((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], x, atol=1e-12)


def test_numbers_that_are_not_finite_have_no_spectrum() -> None:
    for bad in (math.nan, math.inf):
        x = Tensor([[1.0, bad], [bad, 2.0]])
        for compute in (
            lambda x: x.eigh()[1],
            lambda x: x.eigvalsh(),
            lambda x: x.svd()[0],
            lambda x: x.pinv(),
        ):
            with pytest.raises(ValueError, match="has numbers that are not finite"):
                compute(x).numpy()


@pytest.mark.slow
def test_gradients_in_a_jit() -> None:
    def slopes(x: Tensor) -> tuple[Tensor, ...]:
        x.requires_grad_()
        loss = x.inv().sum() + x.det() + definite(x).cholesky().sum() + x.svd().S.sum()
        return tuple(loss.gradient(x))

    jitted("slopes", slopes, [data(3, 3, seed=n, dtype=np.float64) + 2 * np.eye(3) for n in range(3)])


def slopes_of_determinant(a: np.ndarray) -> np.ndarray:
    """det U · det V · U diag(the products of the other singular values) Vᵀ."""
    u, values, vh = np.linalg.svd(a)
    others = np.array([np.prod(np.delete(values, i)) for i in range(len(values))])
    return np.linalg.det(u) * np.linalg.det(vh) * (u * others) @ vh  # type: ignore[no-any-return]


SINGULAR = [
    np.array([[2.0]]),
    np.array([[0.0]]),
    np.diag([1e20, 1e20, 1e-20, 1e-20]),
    np.diag([1.0, 2.0, 0.0, 3.0]),
    np.outer([1.0, 2.0, 3.0], [3.0, 1.0, 2.0]),
    np.zeros((3, 3)),
    np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]),
    data(5, 3, seed=1, dtype=np.float64) @ data(3, 5, seed=2, dtype=np.float64),
    data(6, 5, seed=1, dtype=np.float64) @ data(5, 6, seed=2, dtype=np.float64),
]


@pytest.mark.parametrize("a", SINGULAR, ids=range(len(SINGULAR)))
def test_the_slope_of_a_determinant_needs_no_regular_matrix(a: np.ndarray) -> None:
    """And no singular values: all is done with the LU factors that are there."""
    x = Tensor(a, requires_grad=True)
    (slope,) = x.det().gradient(x)
    expected = slopes_of_determinant(a)
    np.testing.assert_allclose(slope.numpy(), expected, rtol=1e-11, atol=1e-13)
    assert not any("svd" in kernel.name for kernel in slope.kernels())
    if not np.array_equal(a, np.diag(np.diag(a))):
        turn, h = data(*a.shape, seed=4, dtype=np.float64), 1e-6
        second = (slope * Tensor(turn)).sum().gradient(x)[0].numpy()
        numeric = (slopes_of_determinant(a + h * turn) - slopes_of_determinant(a - h * turn)) / (2 * h)
        np.testing.assert_allclose(second, numeric, rtol=1e-5, atol=1e-6)


def test_regular_and_singular_matrices_of_a_batch() -> None:
    a = np.stack([data(3, 3, seed=5, dtype=np.float64), np.diag([1.0, 2.0, 0.0]), np.zeros((3, 3))])
    x = Tensor(a, requires_grad=True)
    x.det().sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [slopes_of_determinant(each) for each in a], atol=1e-13)

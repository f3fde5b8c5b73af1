"""`lazygrad.linalg` is `torch.linalg`, `lazygrad.fft` is `torch.fft`: the same call, the same result."""

from __future__ import annotations

import doctest
import importlib
from typing import Any

import numpy as np
import pytest

import lazygrad
from lazygrad import Tensor, fft, linalg
from tests.helpers import needs, require
from tests.tensor.support import check_gradients

pytestmark = needs("torch")
R = np.random.default_rng(0)
SQUARE, BATCH, POSITIVE = R.standard_normal((4, 4)), R.standard_normal((3, 4, 4)), np.eye(4) * 3 + 0.5


def normal(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape)


def call(name: str, *args: Any, **options: Any) -> Any:
    return pytest.param(name, args, options, id=f"{name}-{len(str(args))}-{'-'.join(map(str, options))}")


CALLS = [
    call("cholesky", POSITIVE),
    *(call(name, x) for x in (SQUARE, BATCH) for name in ("det", "inv", "slogdet", "matrix_exp", "cond")),
    *(call(name, x) for x in (SQUARE, BATCH) for name in ("matrix_rank", "matrix_norm", "svdvals", "norm")),
    *(
        call(name, x)
        for x in (SQUARE, BATCH)
        for name in ("lu", "lu_factor", "lu_factor_ex", "inv_ex", "pinv")
    ),
    *(call("lu_factor", normal(*shape)) for shape in ((5, 3), (3, 5), (2, 5, 3), (2, 3, 5))),
    *(call("norm", SQUARE, ord) for ord in (1, 2, "nuc", "fro", np.inf)),
    call("norm", normal(5), 3),
    call("norm", BATCH, 2, (1, 2)),
    call("norm", BATCH, np.inf, -1, keepdim=True),
    call("diagonal", BATCH),
    call("diagonal", BATCH, offset=1),
    call("solve", SQUARE, normal(4, 2)),
    call("solve", SQUARE, normal(2, 4), left=False),
    call("solve_ex", BATCH, normal(3, 4, 2)),
    call("solve_triangular", SQUARE, normal(4, 2), upper=True),
    call("multi_dot", [normal(3), normal(3, 4), normal(4)]),
    call("multi_dot", [normal(2, 3), normal(3, 4), normal(4, 5)]),
    call("vander", normal(4)),
    call("vander", normal(2, 4), N=3),
    call("vecdot", normal(3, 4), normal(3, 4)),
    call("cross", normal(2, 3), normal(2, 3)),
    call("tensorinv", normal(2, 3, 6)),
    call("tensorinv", normal(6, 2, 3), ind=1),
    call("tensorsolve", normal(2, 3, 6), normal(2, 3)),
    call("tensorsolve", normal(2, 6, 3), normal(2, 3), dims=(1,)),
    *(call("householder_product", normal(5, 3), normal(k)) for k in (3, 2)),
    call("householder_product", normal(2, 5, 3), normal(2, 3)),
    call("matrix_power", SQUARE, 3),
    call("eigvalsh", POSITIVE),
    call("pinv", SQUARE, atol=0.5),
    call("pinv", SQUARE, rtol=0.5),
]


def each(value: Any, of_array: Any) -> Any:
    if isinstance(value, list):
        return [each(v, of_array) for v in value]
    return of_array(value) if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize(("name", "args", "options"), CALLS)
def test_the_same_as_torch(name: str, args: Any, options: Any) -> None:
    torch = require("torch")
    expected = getattr(torch.linalg, name)(*each(list(args), torch.tensor), **options)
    found = getattr(linalg, name)(*each(list(args), Tensor), **options)
    pairs = [(found, expected)] if isinstance(found, Tensor) else zip(found, expected, strict=True)
    for ours, theirs in pairs:
        assert ours.shape == tuple(theirs.shape)
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
def test_solutions_by_factors(left: bool, adjoint: bool) -> None:
    for a in (SQUARE, BATCH):
        b = normal(*a.shape[:-2], *((4, 2) if left else (2, 4)))
        factors = linalg.lu_factor(Tensor(a))
        found = linalg.lu_solve(*factors, Tensor(b), left=left, adjoint=adjoint).numpy()
        matrix = a.swapaxes(-1, -2) if adjoint else a
        np.testing.assert_allclose(matrix @ found if left else found @ matrix, b, atol=1e-9)


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 4, 4)])
def test_factors_unpacked(shape: tuple[int, ...]) -> None:
    p, low, up = linalg.lu_unpack(*linalg.lu_factor(Tensor(normal(*shape))))
    np.testing.assert_allclose(p.dot(low).dot(up).numpy(), normal(*shape), atol=1e-12)


def test_least_squares() -> None:
    torch = require("torch")
    a, b = normal(6, 3), normal(6, 2)
    expected = torch.linalg.lstsq(torch.tensor(a), torch.tensor(b), driver="gelsd")
    found = linalg.lstsq(Tensor(a), Tensor(b), driver="gelsd")
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6)


def test_singular_matrices_are_told() -> None:
    several = Tensor([[[2.0, 0.0], [0.0, 4.0]], [[1.0, 1.0], [1.0, 1.0]]])
    found = linalg.inv_ex(several)
    assert found.info.tolist() == [0, 2]
    assert found.inverse[0].tolist() == [[0.5, 0.0], [0.0, 0.25]]
    assert np.isnan(found.inverse[1].numpy()).all()
    assert np.isnan(linalg.solve_ex(several, Tensor.ones(2, 2, 1)).result[1].numpy()).all()
    with pytest.raises(ValueError, match="singular: element 2 of U's diagonal is 0"):
        linalg.lu_factor_ex(several, check_errors=True)


def test_eigenvalues_of_any_matrix() -> None:
    values, vectors = (t.numpy() for t in linalg.eig(Tensor(BATCH)))
    w, v = values[..., 0] + 1j * values[..., 1], vectors[..., 0] + 1j * vectors[..., 1]
    np.testing.assert_allclose(BATCH @ v, v * w[:, None, :], atol=1e-9)


def test_gradient_of_reflections() -> None:
    check_gradients(linalg.householder_product, [normal(3, 2), normal(2)], second=False)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (lambda: linalg.norm(Tensor([1.0]), "nuc"), "'nuc' is a norm of matrices"),
        (lambda: linalg.multi_dot([Tensor([1.0])]), "at least two matrices, not 1"),
        (lambda: linalg.tensorinv(Tensor.ones(2, 3)), "tensorinv"),
        (lambda: linalg.tensorsolve(Tensor.ones(2, 3), Tensor.ones(2)), "does not map"),
        (lambda: linalg.householder_product(Tensor.ones(2, 3), Tensor.ones(2)), "takes tall matrices"),
        (
            lambda: linalg.lstsq(Tensor.ones(2, 2), Tensor.ones(2, 1), driver="x"),
            "driver must be one of gels",
        ),
        (lambda: linalg.lu_unpack(Tensor.eye(2), Tensor([3, 1])).P.numpy(), "a pivot is a row from 1 to 2"),
        (lambda: fft.hfft(Tensor([1.0])), "a last axis of size 2"),
        (
            lambda: fft.ihfft(Tensor([1.0]), norm="x"),
            "norm must be 'backward', 'forward' or 'ortho', not 'x'",
        ),
    ],
)
def test_wrong_calls(wrong: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        wrong()


@pytest.mark.parametrize("norm", [None, "ortho", "forward", "backward"])
@pytest.mark.parametrize("n", [None, 6, 9])
def test_hermitian_transforms(norm: str | None, n: int | None) -> None:
    torch = require("torch")
    x, y = normal(3, 8), normal(3, 7)[:, :7]
    expected = torch.fft.ihfft(torch.tensor(x), n, norm=norm).resolve_conj().numpy()
    found = fft.ihfft(Tensor(x), n, norm=norm).numpy()
    np.testing.assert_allclose(found[..., 0] + 1j * found[..., 1], expected, atol=1e-12)
    z = x[:, :7] + 1j * y
    expected = torch.fft.hfft(torch.tensor(z), n, norm=norm).numpy()
    found = fft.hfft(Tensor(np.stack([z.real, z.imag], -1)), n, norm=norm).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_are_found_at_the_top() -> None:
    assert (lazygrad.linalg, lazygrad.fft) == (linalg, fft)


@pytest.mark.parametrize("file", ["linalg.eigenvalues", "linalg.factors", "linalg.forms", "fft"])
def test_examples_run(file: str) -> None:
    module = importlib.import_module(f"lazygrad.{file}")
    runner = doctest.DocTestRunner()
    names = {"Tensor": Tensor, "linalg": linalg, "fft": fft}
    for example in doctest.DocTestFinder(exclude_empty=True).find(module, extraglobs=names):
        runner.run(example)
    assert not runner.summarize(verbose=False).failed

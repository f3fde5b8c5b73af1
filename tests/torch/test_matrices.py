"""Factorizations of matrices in compiled graphs: results, gradients, and PyTorch's errors."""

from __future__ import annotations

from typing import Any

import pytest

from tests.helpers import needs
from tests.torch.support import torch

pytestmark = needs("torch")

DONE = {
    "solve": lambda a, b: torch.linalg.solve(a, b),
    "solve of a transpose": lambda a, b: torch.linalg.solve(a.mT, b),
    "det": lambda a, b: torch.linalg.det(a) * b,
    "det of a transpose": lambda a, b: torch.linalg.slogdet(a.mT)[1] * b,
    "inv": lambda a, b: torch.linalg.inv(a) @ b,
    "cholesky": lambda a, b: torch.linalg.cholesky(a @ a.mT + torch.eye(3)) @ b,
    "qr": lambda a, b: torch.linalg.qr(a)[1] @ b,
    "svd": lambda a, b: torch.linalg.svdvals(a).sum() * b,
    "eigh": lambda a, b: torch.linalg.eigvalsh(a).prod() * b,
    "pinv": lambda a, b: torch.linalg.pinv(a) @ b,
}
QUICK = ("solve",)


def compiled(fn: Any) -> Any:
    torch._dynamo.reset()
    return torch.compile(fn, backend="lazygrad")


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in DONE])
def test_the_gradient_is_that_of_eager(name: str) -> None:
    torch.manual_seed(0)
    given = [torch.randn(3, 3, requires_grad=True), torch.randn(3, 2, requires_grad=True)]
    found, expected = compiled(DONE[name])(*given), DONE[name](*given)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
    for one, other in zip(
        torch.autograd.grad(found.square().sum(), given),
        torch.autograd.grad(expected.square().sum(), given),
        strict=True,
    ):
        torch.testing.assert_close(one, other, atol=1e-3, rtol=1e-3)


def test_a_singular_matrix_is_an_error_as_in_eager() -> None:
    run = compiled(torch.linalg.inv)
    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 13):  # its graphs have no such checks
        assert run(torch.zeros(2, 2)).isnan().all()
        return
    with pytest.raises(torch.linalg.LinAlgError, match="singular"):
        run(torch.zeros(2, 2))


def test_a_degree_that_is_a_tensor_is_left_to_pytorch() -> None:
    x, degrees = torch.tensor([0.5, 0.5]), torch.tensor([1, 2])
    run = compiled(torch.special.chebyshev_polynomial_t)
    with pytest.warns(RuntimeWarning, match="chebyshev_polynomial_t"):
        found = run(x, degrees)
    torch.testing.assert_close(found, torch.tensor([0.5, -0.5]))

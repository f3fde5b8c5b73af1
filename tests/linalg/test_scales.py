"""Values and gradients of matrices of extreme sizes: what is no extreme number itself is right.

PyTorch in float64 is the oracle. A scale is a number that all elements are multiplied by.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor
from tests.helpers import needs, require

rng = np.random.default_rng(0)
SQUARE, TALL, WIDE = (rng.standard_normal(shape) for shape in ((4, 4), (5, 3), (3, 5)))
SYMMETRIC, POSITIVE = SQUARE + SQUARE.T, SQUARE @ SQUARE.T + np.eye(4)
WEIGHTS = rng.standard_normal(25)
SCALES = [1e-36, 1e-24, 1e-20, 1.0, 1e20, 1e36]

#: What is computed of a matrix: the matrix, ours, and PyTorch's, which is None where it is the matrix again.
Case = tuple[Any, Callable[[Any], Any], Callable[[Any, Any], Any] | None]
CASES: dict[str, Case] = {
    "svdvals": (SQUARE, lambda x: x.svdvals(), lambda torch, x: torch.linalg.svdvals(x)),
    "svdvals of a tall one": (TALL, lambda x: x.svdvals(), lambda torch, x: torch.linalg.svdvals(x)),
    "svd": (SQUARE, lambda x: _product(*x.svd(False)), None),
    "svd of a tall one": (TALL, lambda x: _product(*x.svd(False)), None),
    "svd of a wide one": (WIDE, lambda x: _product(*x.svd(False)), None),
    "eigvalsh": (SYMMETRIC, lambda x: x.eigvalsh(), lambda torch, x: torch.linalg.eigvalsh(x)),
    "eigh": (SYMMETRIC, lambda x: _of_eigen(*x.eigh()), lambda torch, x: _of_eigen(*torch.linalg.eigh(x))),
    "qr": (TALL, lambda x: x.qr().R, lambda torch, x: torch.linalg.qr(x).R),
    "lu": (SQUARE, lambda x: x.lu()[2], lambda torch, x: torch.linalg.lu(x)[2]),
    "cholesky": (POSITIVE, lambda x: x.cholesky(), lambda torch, x: torch.linalg.cholesky(x)),
    "inv": (SQUARE, lambda x: x.inv() @ x.detach(), lambda torch, x: x.inverse() @ x.detach()),
    "pinv": (TALL, lambda x: x.pinv() @ x.detach(), lambda torch, x: x.pinverse() @ x.detach()),
    "slogdet": (SQUARE, lambda x: x.slogdet()[1], lambda torch, x: torch.linalg.slogdet(x)[1]),
    "cond": (SQUARE, lambda x: x.cond(), lambda torch, x: torch.linalg.cond(x)),
}


def _product(u: Any, s: Any, vh: Any) -> Any:
    return (u * s) @ vh


def _of_eigen(values: Any, vectors: Any) -> Any:
    return (vectors * values) @ vectors.swapaxes(-2, -1)


@needs("torch")
@pytest.mark.parametrize("name", CASES)
def test_scales(name: str) -> None:
    torch = require("torch")
    matrix, ours, theirs = CASES[name]
    for scale in SCALES:
        other = torch.tensor(matrix * scale, requires_grad=True)
        expected = other * 1 if theirs is None else theirs(torch, other)
        weights = WEIGHTS[: expected.numel()].reshape(expected.shape)
        (expected * torch.tensor(weights)).sum().backward()
        mine = Tensor((matrix * scale).astype(np.float32), requires_grad=True)
        found = ours(mine)
        gradient = (found * Tensor(weights.astype(np.float32))).sum().gradient(mine)[0]
        for got, wanted in ((found, expected.detach()), (gradient, other.grad)):
            most = wanted.abs().max().item()
            difference = np.abs(got.numpy() / np.float64(most) - wanted.numpy() / most).max()
            assert difference < 1e-4, f"{name} at {scale}: {difference}"

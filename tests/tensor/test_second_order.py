"""The gradient of a gradient against PyTorch's, for every row of the table, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor
from tests.helpers import needs, require
from tests.tensor.support import data
from tests.tensor.table import ROWS

pytestmark = [needs("torch"), pytest.mark.slow]


def parts(results: Any) -> list[Any]:
    return [p for r in results for p in parts(r)] if isinstance(results, (tuple, list)) else [results]


def weighted(tensors: list[Any], numbers: list[Any], make: Any) -> Any:
    total = None
    for tensor, number in zip(tensors, numbers, strict=True):
        if tensor is not None:
            term = (tensor * make(number)).sum()
            total = term if total is None else total + term
    return total


def theirs(function: Any, arrays: list[Any], weights: Any) -> list[Any] | None:
    """PyTorch's second derivatives; None where it has none."""
    torch = require("torch")
    leaves = [torch.tensor(np.ascontiguousarray(a), requires_grad=a.dtype.kind == "f") for a in arrays]
    floats = [t for t in leaves if t.requires_grad]
    results = [r for r in parts(function(*leaves)) if isinstance(r, torch.Tensor) and r.requires_grad]
    if not results:
        return None
    try:
        total = weighted(results, weights(results), torch.tensor)
        grads = torch.autograd.grad(total, floats, create_graph=True, allow_unused=True)
        slope = weighted(list(grads), weights(floats), torch.tensor)
        if slope is None or not slope.requires_grad:
            return None
        second = torch.autograd.grad(slope, floats, allow_unused=True)
    except (NotImplementedError, RuntimeError):  # "the derivative for ... is not implemented"
        return None
    return [
        np.zeros(t.shape) if s is None else s.numpy(force=True) for s, t in zip(second, floats, strict=True)
    ]


def ours(function: Any, arrays: list[Any], weights: Any) -> list[Any]:
    leaves = [Tensor(np.ascontiguousarray(a), requires_grad=a.dtype.kind == "f") for a in arrays]
    floats = [t for t in leaves if t.requires_grad]
    results = [r for r in parts(function(*leaves)) if isinstance(r, Tensor) and r.requires_grad]
    nothing = [(t * 0).sum() for t in floats]  # so that each leaf is reached, as with allow_unused
    total = sum(nothing, weighted(results, weights(results), Tensor))
    slope = sum(nothing, weighted(total.gradient(*floats), weights(floats), Tensor))
    return [s.numpy() for s in slope.gradient(*floats)]


@pytest.mark.parametrize("name", ROWS)
def test_the_gradient_of_a_gradient(name: str) -> None:
    row = ROWS[name]
    wide = [np.asarray(a) for a in row.arrays]
    wide = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in wide]

    def weights(tensors: list[Any]) -> list[Any]:
        return [data(*t.shape, seed=40 + i, dtype=np.float64) for i, t in enumerate(tensors)]

    expected = theirs(row.theirs, wide, weights)
    if expected is None:
        return
    for found, wanted in zip(ours(row.ours, wide, weights), expected, strict=True):
        known = ~np.isnan(wanted)  # of a root at 0 and of sinc at 0 PyTorch's is NaN
        np.testing.assert_allclose(found[known], wanted[known], rtol=1e-5, atol=1e-6)

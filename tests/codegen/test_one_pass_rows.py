"""Log-sum-exps of products in one pass: statistics of rows whose values are in no memory."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lazygrad import Tensor
from lazygrad.direct.one_pass import is_one_pass
from lazygrad.ir.ops import Ops
from tests.helpers import require

pytestmark = pytest.mark.choice

RNG = np.random.default_rng(0)


def kernels(value: Tensor) -> list[bool]:
    """Whether each kernel of a value is in one pass."""
    return [is_one_pass(item.ast) for item in value.schedule() if item.ast.op is Ops.SINK]


def compare(q: np.ndarray, k: np.ndarray, hidden: np.ndarray | None = None) -> None:
    """The log-sum-exp of q·kᵀ, some of it hidden, beside that of float64."""
    torch = require("torch")
    x = Tensor(q).realize() @ Tensor(k).realize().transpose(-2, -1)
    wide = torch.tensor(q, dtype=torch.float64) @ torch.tensor(k, dtype=torch.float64).transpose(-2, -1)
    if hidden is not None:
        x = Tensor(hidden).realize().where(-math.inf, x)
        wide = wide.masked_fill(torch.tensor(hidden), -math.inf)
    got = x.logsumexp(-1)
    assert kernels(got) == [True]
    np.testing.assert_allclose(got.numpy(), torch.logsumexp(wide, -1).numpy(), rtol=1e-6, atol=2e-5)


def normal(*shape: int, scale: float = 1.0) -> np.ndarray:
    return (RNG.standard_normal(shape) * scale).astype(np.float32)


@pytest.mark.parametrize(
    ("rows", "keys"),
    [
        (100, 7),
        pytest.param(7, 100, marks=pytest.mark.slow),
        pytest.param(2, 100, marks=pytest.mark.slow),
        pytest.param(259, 1000, marks=pytest.mark.slow),
    ],
)
def test_sizes_that_no_block_divides(one_pass_always: None, rows: int, keys: int) -> None:
    compare(normal(2, rows, 12), normal(2, keys, 12))


def test_large_values_and_rows_that_see_nothing(one_pass_always: None) -> None:
    hidden = RNG.random((40, 70)) > 0.5
    hidden[3] = True
    compare(normal(40, 16, scale=30), normal(70, 16, scale=30), hidden)


@pytest.mark.slow
def test_scores_that_grow_from_block_to_block(one_pass_always: None) -> None:
    q, k = np.ones((20, 8), np.float32), np.arange(3000, dtype=np.float32)[:, None] * np.ones(8, np.float32)
    compare(q, k)


def test_what_is_faster_is_chosen() -> None:
    """x of 8 MB would go to memory and back; one of 32 KB stays near, and 768 steps take far longer."""
    chosen = []
    for shape in ((8, 512, 64), (8, 32, 64), (8, 512, 768)):
        q, k = Tensor.empty(*shape).realize(), Tensor.empty(*shape).realize()
        chosen.append(any(kernels((q @ k.transpose(1, 2)).logsumexp(-1))))
    assert chosen == [True, False, False]


def test_what_others_read_is_stored(one_pass_always: None) -> None:
    x = Tensor.empty(40, 16).realize() @ Tensor.empty(16, 70).realize()
    assert not any(kernels(x.logsumexp(-1) - x[:, 0]))

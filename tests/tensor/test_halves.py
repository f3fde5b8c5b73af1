"""float16 numbers whose squares it cannot hold: norms and normalizations of them are PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor, dtypes
from lazygrad.dtype import DType
from lazygrad.nn import functional as ours
from tests.helpers import needs, require

pytestmark = needs("torch")
LARGE = np.array([[[300, 400, -500]], [[600, -20, 100]]], np.float16)

CASES: dict[str, Callable[[Any, Any], Any]] = {
    "rms_norm": lambda f, x: f.rms_norm(x, (3,)),
    "layer_norm": lambda f, x: f.layer_norm(x, (3,)),
    "group_norm": lambda f, x: f.group_norm(x, 1),
    "instance_norm": lambda f, x: f.instance_norm(x),
    "batch_norm": lambda f, x: f.batch_norm(x, None, None, training=True),
    "normalize": lambda f, x: f.normalize(x, dim=2),
    "cosine_similarity": lambda f, x: f.cosine_similarity(x, x, dim=2),
    "norm": lambda f, x: x.norm(),
    "norm of order 3": lambda f, x: x.norm(3),
}


@pytest.mark.parametrize("name", CASES)
def test_squares_are_taken_in_a_wider_type(name: str) -> None:
    torch = require("torch")
    found = CASES[name](ours, Tensor(LARGE))
    wanted = CASES[name](torch.nn.functional, torch.tensor(LARGE))
    assert found.dtype is dtypes.float16
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=2e-3, atol=1e-3)


def test_the_norm_of_matrices_stays_a_half():
    found = Tensor(LARGE).matrix_norm(1)
    assert (found.dtype, found.tolist()) == (dtypes.float16, [500.0, 600.0])


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16])
def test_large_scores_of_attention_are_not_rounded(dtype: DType) -> None:
    numbers = np.random.default_rng(0).standard_normal((3, 16, 64)).astype(np.float32) * 4
    q, k, v = (Tensor(each).cast(dtype) for each in numbers)
    wanted = q.double().scaled_dot_product_attention(k.double(), v.double()).numpy()
    found = q.scaled_dot_product_attention(k, v)
    assert found.dtype is dtype
    np.testing.assert_allclose(found.double().numpy(), wanted, atol=8 * dtypes.finfo(dtype).eps)


def test_the_bins_of_a_histogram_are_found_in_float32():
    x = Tensor([2.09375, 3.6875, 9.9375], dtype="bfloat16")
    assert x.histc(100, 0, 10).float().numpy().nonzero()[0].tolist() == [20, 36, 99]
    assert x.histc(100, 0, 10).dtype is dtypes.bfloat16

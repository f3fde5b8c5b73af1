"""Second derivatives of what networks are made of, by differences; empty batches; narrow dtypes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from lazygrad import Tensor, dtypes, grad, gradcheck, nn
from lazygrad.dtype import DType
from lazygrad.nn import functional
from tests.tensor.support import data

KERNEL = Tensor(data(2, 1, 2, seed=2, dtype=np.float64))
FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "conv1d": lambda x: functional.conv1d(x.reshape(1, 1, 6), KERNEL).square(),
    "layer_norm": lambda x: functional.layer_norm(x, (3,)) ** 3,
    "cross_entropy": lambda x: functional.cross_entropy(x, Tensor([2, 0])),
    "attention": lambda x: functional.scaled_dot_product_attention(x, x, x, is_causal=True),
    "softplus": lambda x: functional.softplus(x) * functional.mish(x),
    "cosine": lambda x: functional.cosine_similarity(x, x.flip(1) + 1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_second_derivatives(name: str) -> None:
    x = Tensor(data(2, 3, seed=1, dtype=np.float64))
    assert gradcheck(grad(lambda x: FUNCTIONS[name](x).sum()), x, eps=1e-5, atol=1e-4)


def test_an_empty_batch_gives_an_empty_result() -> None:
    nothing = Tensor.zeros(0, 4, 6, 6)
    assert nn.Conv2d(4, 3, 3)(nothing).shape == (0, 3, 4, 4)
    assert nothing.max_pool2d().shape == (0, 4, 3, 3)
    assert nn.Linear(6, 2)(nothing).numpy().shape == (0, 4, 6, 2)
    assert np.isnan(functional.mse_loss(nothing, nothing).item())


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16, dtypes.float64])
def test_a_dtype_stays(dtype: DType) -> None:
    x = Tensor(data(2, 4, 6), dtype=dtype)
    for result in (
        functional.gelu(x),
        functional.layer_norm(x, (6,)),
        functional.avg_pool1d(x, 2),
        functional.interpolate(x, 9, mode="linear"),
        functional.scaled_dot_product_attention(x, x, x),
        functional.smooth_l1_loss(x, x),
    ):
        assert result.dtype is dtype

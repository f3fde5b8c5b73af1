"""autocast: products in a narrow float, reductions and losses in float32; weights keep their dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lazygrad
from lazygrad import Tensor, TinyJit, dtypes, nn
from lazygrad.tensor.autocasting import NARROW, WIDE
from tests.helpers import needs, require

B, F, D = dtypes.bfloat16, dtypes.float32, dtypes.float64


def matrix(dtype: Any = F) -> Tensor:
    return Tensor(np.linspace(0.1, 1, 16).reshape(4, 4)).cast(dtype)


def test_all_names_are_methods() -> None:
    assert [name for name in NARROW | WIDE if not hasattr(Tensor, name)] == []
    assert not NARROW & WIDE


@pytest.mark.parametrize(
    ("compute", "dtype"),
    [
        (lambda x: x @ x, B),
        (lambda x: x.matmul(x), B),
        (lambda x: x.linear(x), B),
        (lambda x: Tensor.einsum("ij,jk->ik", x, x), B),
        (lambda x: x.reshape(1, 1, 4, 4).conv2d(Tensor.ones(1, 1, 2, 2)), B),
        (lambda x: x.scaled_dot_product_attention(x, x), B),
        (lambda x: x + x, F),
        (lambda x: (x @ x) + x, F),
        (lambda x: (x @ x).relu(), B),
        (lambda x: (x @ x).softmax(), F),
        (lambda x: (x @ x).layernorm(), F),
        (lambda x: (x @ x).sum(), F),
        (lambda x: (x @ x).exp(), F),
        (lambda x: (x @ x).cross_entropy(Tensor([0, 1, 2, 3])), F),
        (lambda x: nn.functional.mse_loss(x @ x, x), F),
        (lambda x: x.double() @ x.double(), D),
        (lambda x: x.double().sum(), D),
        (lambda x: x.cast("int32").sum(), dtypes.int32),
    ],
)
def test_what_computes_in_which_dtype(compute: Any, dtype: Any) -> None:
    x = matrix()
    plain = compute(x)
    with lazygrad.autocast("bfloat16"):
        found = compute(x)
    assert found.dtype is dtype
    np.testing.assert_allclose(found.numpy(), plain.numpy(), rtol=0.05, atol=0.02)


def test_it_nests_and_is_put_back() -> None:
    x = matrix()
    with Tensor.autocast(np.float16):
        assert (x @ x).dtype is dtypes.float16
        with lazygrad.autocast(enabled=False):
            assert (x @ x).dtype is F
        with pytest.raises(ValueError, match="boom"), lazygrad.autocast():
            raise ValueError("boom")
        assert (x @ x).dtype is dtypes.float16
    assert (x @ x).dtype is F

    @lazygrad.autocast("bfloat16")
    def product(x: Tensor) -> Tensor:
        return x @ x

    assert product(x).dtype is B


def test_weights_stay_and_get_gradients_of_their_own_dtype() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, 3))
    x, y = Tensor.randn(16, 4), Tensor.randint(16, high=3)
    optimizer = nn.optim.Adam(model.parameters(), lr=0.02)  # type: ignore[arg-type]
    losses = []
    with Tensor.train():
        for _ in range(15):
            optimizer.zero_grad()
            with lazygrad.autocast("bfloat16"):
                loss = model(x).cross_entropy(y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert (
        {p.dtype for p in model.parameters()}
        == {p.grad.dtype for p in model.parameters() if p.grad is not None}
        == {F}
    )
    assert losses[-1] < losses[0]


def test_a_jit_notices_it() -> None:
    step = TinyJit(lambda x: (x @ x).realize())
    x = matrix().contiguous().realize()
    seen = []
    for dtype in ("bfloat16", "bfloat16", "bfloat16", None, None):
        with lazygrad.autocast("bfloat16", enabled=dtype is not None):
            seen.append(step(x).dtype)
    assert seen == [B, B, B, F, F]


@needs("torch")
@pytest.mark.parametrize(
    "compute",
    [
        lambda x: x @ x,
        lambda x: x.matmul(x[0]),
        lambda x: x.addmm(x, x),
        lambda x: x[None].bmm(x[None]),
        lambda x: (x @ x) * x,
        lambda x: (x @ x).relu(),
    ],
)
def test_dtypes_are_those_of_pytorch(compute: Any) -> None:
    torch = require("torch")
    with lazygrad.autocast("bfloat16"):
        found = compute(matrix())
    # Its lists for the CPU are shorter than those for CUDA: what is in both is compared.
    with torch.autocast("cpu", dtype=torch.bfloat16):
        wanted = compute(torch.linspace(0.1, 1, 16).reshape(4, 4))
    assert found.dtype is lazygrad.dtype.to_dtype(wanted.dtype)
    np.testing.assert_allclose(found.numpy(), wanted.float().numpy(), rtol=0.05, atol=0.02)


def test_a_wide_dtype_is_refused() -> None:
    with pytest.raises(TypeError, match=r"computes in bfloat16 or float16, not in dtypes\.float"):
        lazygrad.autocast("float32")

"""Maxima of windows at random places, beside PyTorch's of the same random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor, TinyJit, nn
from lazygrad.nn import functional
from tests.helpers import needs, require

RNG = np.random.default_rng(0)


@needs("torch")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("shape", "kernel", "size"),
    [
        ((2, 3, 7, 9), 2, 4),
        ((2, 3, 7, 9), (3, 1), (5, 9)),
        ((2, 3, 7, 9), (2, 3), (1, 7)),
        ((3, 31, 17), 2, (16, 11)),
        ((2, 2, 5, 6, 7), 2, (3, 4, 5)),
        ((2, 5, 6, 7), (1, 2, 3), (4, 2, 1)),
    ],
)
def test_the_same_as_pytorch(shape: tuple[int, ...], kernel: Any, size: Any, dtype: Any) -> None:
    torch = require("torch")
    axes = len(size) if isinstance(size, tuple) else 2
    lead = shape[:-axes] if len(shape) == axes + 2 else (1, *shape[:-axes])
    x, samples = RNG.standard_normal(shape).astype(dtype), RNG.random((*lead, axes)).astype(dtype)
    name = f"fractional_max_pool{axes}d"
    theirs, ours = torch.tensor(x, requires_grad=True), Tensor(x, requires_grad=True)
    expected, there = getattr(torch.nn.functional, name)(
        theirs, kernel, size, return_indices=True, _random_samples=torch.tensor(samples)
    )
    found, here = getattr(functional, name)(
        ours, kernel, size, return_indices=True, _random_samples=Tensor(samples)
    )
    assert found.tolist() == expected.tolist()
    assert here.tolist() == there.tolist()
    weights = RNG.standard_normal(found.shape).astype(dtype)
    (expected * torch.tensor(weights)).sum().backward()
    (slope,) = (found * Tensor(weights)).sum().gradient(ours)
    np.testing.assert_allclose(slope.numpy(), theirs.grad.numpy(), rtol=1e-6, atol=1e-7)
    with_indices = getattr(functional, f"{name}_with_indices")(
        ours, kernel, size, _random_samples=Tensor(samples)
    )
    assert [t.tolist() for t in with_indices] == [found.tolist(), here.tolist()]


def test_random_places_differ_and_hold_maxima() -> None:
    x = Tensor.arange(400).float().reshape(1, 1, 20, 20)
    pool = nn.FractionalMaxPool2d(3, output_ratio=0.6)
    first, second = pool(x).numpy(), pool(x).numpy()
    assert first.shape == (1, 1, 12, 12)
    assert (first != second).any()
    assert first[0, 0, -1, -1] == 399
    assert (np.diff(first[0, 0]) > 0).all()


def test_each_call_of_a_jit_draws_anew() -> None:
    pool = nn.FractionalMaxPool2d(2, 5)
    step = TinyJit(lambda x: pool(x).realize())
    x = Tensor.arange(121).float().reshape(1, 1, 11, 11).realize()
    made = [step(x).tolist() for _ in range(8)]
    assert any(made[n] != made[-1] for n in range(2, 7))


def test_maxima_go_back_where_they_were() -> None:
    x = Tensor(RNG.standard_normal((1, 2, 6, 6)))
    values, places = nn.FractionalMaxPool2d(1, 6, return_indices=True)(x)
    assert functional.max_unpool2d(values, places, 1).tolist() == x.tolist()


IMAGE = Tensor.ones(1, 2, 6, 6)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (
            lambda: functional.fractional_max_pool2d(IMAGE, 2),
            "one of output_size and output_ratio, not None and",
        ),
        (
            lambda: nn.FractionalMaxPool2d(2, 3, 0.5),
            "FractionalMaxPool2d takes one of output_size and output_ratio",
        ),
        (lambda: nn.FractionalMaxPool3d(2, output_ratio=(0.5, 1.0, 0.5)), "between 0 and 1, or 3 of them"),
        (
            lambda: functional.fractional_max_pool2d(IMAGE, 2, 6),
            "6 windows of 2 do not fit an axis of 6: .* 1 to 5",
        ),
        (
            lambda: functional.fractional_max_pool2d(IMAGE, 2, (3, 3, 3)),
            "output_size must be one number or 2 of them",
        ),
        (
            lambda: functional.fractional_max_pool3d(Tensor.ones(2, 2), 2, 1),
            r"and 3 axes, .*not float of shape \(2, 2\)",
        ),
        (
            lambda: functional.fractional_max_pool2d(IMAGE, 2, 3, _random_samples=Tensor.ones(1, 3, 2)),
            r"have shape \(1, 2, 2\), not \(1, 3, 2\)",
        ),
    ],
)
def test_wrong_calls(wrong: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        wrong()

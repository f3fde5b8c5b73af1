"""Where values are equal the gradient goes where PyTorch's goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor
from tests.helpers import needs, require
from tests.tensor.support import like_torch

#: Few different values, as behind a relu.
EQUALS = np.random.RandomState(0).randint(0, 3, (2, 3, 8, 8)).astype(np.float32)

Case = tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]

POOLS: dict[str, Case] = {
    "max_pool2d": (lambda x: x.max_pool2d(2), lambda f, x: f.max_pool2d(x, 2)),
    "overlapping": (
        lambda x: x.max_pool2d(3, 1, padding=1),
        lambda f, x: f.max_pool2d(x, 3, 1, 1),
    ),
    "dilation": (
        lambda x: x.max_pool2d(3, 2, dilation=2, padding=1),
        lambda f, x: f.max_pool2d(x, 3, 2, 1, 2),
    ),
    "ceil_mode": (
        lambda x: x.max_pool2d(3, 2, ceil_mode=True),
        lambda f, x: f.max_pool2d(x, 3, 2, ceil_mode=True),
    ),
    "max_pool1d": (lambda x: x[0].max_pool1d(3, 2), lambda f, x: f.max_pool1d(x[0], 3, 2)),
    "max_pool3d": (lambda x: x.max_pool3d((1, 2, 4)), lambda f, x: f.max_pool3d(x, (1, 2, 4))),
    "adaptive": (lambda x: x.adaptive_max_pool2d((3, 4)), lambda f, x: f.adaptive_max_pool2d(x, (3, 4))),
    "adaptive 3d": (lambda x: x.adaptive_max_pool3d(2), lambda f, x: f.adaptive_max_pool3d(x, 2)),
}


@needs("torch")
@pytest.mark.parametrize("name", POOLS)
def test_a_window_gives_its_gradient_to_the_first_of_equals(name: str) -> None:
    ours, theirs = POOLS[name]
    functional = require("torch").nn.functional
    like_torch(ours, lambda x: theirs(functional, x), [EQUALS])


@needs("torch")
def test_a_window_of_nan_or_infinities_gives_its_gradient_to_one_element() -> None:
    functional = require("torch").nn.functional
    x = np.array([[[[-np.inf, -np.inf, 1.0, np.nan], [-np.inf, -np.inf, 3.0, 2.0]]]], np.float32)
    like_torch(lambda x: x.max_pool2d(2, 1, padding=1), lambda x: functional.max_pool2d(x, 2, 1, 1), [x])


def test_a_pool_is_differentiable_twice() -> None:
    x = Tensor([[2.0, 2.0, 1.0, 3.0]], requires_grad=True)
    (first,) = (x * x * x).max_pool1d(2).sum().gradient(x)
    (second,) = first.sum().gradient(x)
    assert second.tolist() == [[12.0, 0.0, 0.0, 18.0]]


def test_topk_and_kthvalue_take_the_first_of_equals() -> None:
    # PyTorch leaves open which
    x = Tensor([2.0, 5.0, 5.0, 2.0, 5.0], requires_grad=True)
    assert x.topk(2)[1].tolist() == [1, 2]
    assert x.kthvalue(4)[1].item() == 2
    x.topk(2)[0].sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0.0, 1.0, 1.0, 0.0, 0.0]

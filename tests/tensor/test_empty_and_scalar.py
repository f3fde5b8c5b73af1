"""Tensors without elements and without axes, bools and halves, where code ported from PyTorch meets them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor

EMPTY = np.zeros((0, 3), np.float32)
PAIRS = ["atan2", "hypot", "logaddexp", "xlogy", "copysign", "nextafter", "ldexp"]
#: What a call gives: PyTorch's values.
CASES: dict[str, tuple[Callable[[], Any], Any]] = {
    "sum of a number along its axes": (lambda: Tensor(2.0).sum((0,)).item(), 2.0),
    "a number backwards": (lambda: Tensor(2.0).flip(0).shape, ()),
    "a number transposed": (lambda: Tensor(2.0).transpose(0, -1).swapaxes(0, 0).shape, ()),
    "softmax of nothing": (lambda: Tensor(EMPTY).softmax(0).shape, (0, 3)),
    "softmax of an empty line": (lambda: Tensor(EMPTY[:, 0]).softmax(-1).tolist(), []),
    "log_softmax of nothing": (lambda: Tensor(EMPTY).log_softmax(0).shape, (0, 3)),
    "median of nothing": (lambda: math.isnan(Tensor(EMPTY).median().item()), True),
    "nanmedian of nothing": (lambda: math.isnan(Tensor(EMPTY).nanmedian().item()), True),
    "chunks of nothing": (lambda: [c.shape for c in Tensor(EMPTY).chunk(2)], [(0, 3), (0, 3)]),
    "half stays half": (lambda: repr(Tensor([1.5]).half().round().dtype), "dtypes.half"),
    "close bools": (lambda: Tensor([True, False]).isclose(Tensor([True, True])).tolist(), [True, False]),
    "unsigned distances": (
        lambda: Tensor([0], dtype="uint8").isclose(Tensor([255], dtype="uint8"), atol=2.0).tolist(),
        [False],
    ),
    "all close bools": (lambda: Tensor([True]).allclose(Tensor([True])), True),
    "an integer beside a half": (
        lambda: [repr(getattr(Tensor([1]), name)(Tensor([2.0]).half()).dtype) for name in PAIRS],
        ["dtypes.half"] * 7,
    ),
    "gather by a number": (lambda: Tensor([1, 2, 3]).gather(0, Tensor(2)).item(), 3),
    "scatter by a number": (lambda: Tensor([1, 2, 3]).scatter(0, Tensor(2), 9).tolist(), [1, 2, 9]),
    "add to a number": (lambda: Tensor(1).scatter_add(0, Tensor(0), Tensor(5)).item(), 6),
    "the square of a bool must be a number": (lambda: Tensor([True, False]).square().tolist(), [1, 0]),
}


@pytest.mark.parametrize("name", CASES)
def test_gives(name: str) -> None:
    made, expected = CASES[name]
    assert made() == expected


def test_nothing_flows_through_the_median_of_nothing() -> None:
    x = Tensor(EMPTY, requires_grad=True)
    assert x.median().gradient(x)[0].shape == (0, 3)


def test_nanmedian_over_no_elements() -> None:
    with pytest.raises(ValueError, match=r"nanmedian over no elements: axis 0 of shape \(0, 3\) has size 0"):
        Tensor(EMPTY).nanmedian(0)

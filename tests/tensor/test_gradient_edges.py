"""Gradients where functions have corners or poles, beyond the rows "corners" of the table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor

INF = np.inf


def array(*values: Any) -> Any:
    return np.array(values, np.float32)


def test_what_a_condition_leaves_out_sends_no_nan() -> None:
    x = Tensor(array(0, 0, 2, -1, 0), requires_grad=True)
    (grad,) = (x > 0).where(x.log(), 0.0).sum().gradient(x)
    np.testing.assert_array_equal(grad.numpy(), array(0, 0, 0.5, 0, 0))


def test_the_slope_of_hypot_at_the_origin_is_0() -> None:
    x, y = (Tensor([0.0], requires_grad=True) for _ in range(2))
    assert [g.item() for g in x.hypot(y).sum().gradient(x, y)] == [0.0, 0.0]


@pytest.mark.parametrize("name", ["log1p", "expm1", "asin", "acos", "atan", "asinh", "atanh", "acosh"])
def test_second_derivatives_of_written_slopes(name: str) -> None:
    from tests.tensor.support import check_gradients, data

    x = data(3, seed=2, low=0.2, high=0.8) + (1.0 if name == "acosh" else 0.0)
    function: Callable[..., Tensor] = lambda x: getattr(x, name)()
    check_gradients(function, [x])


def test_remainders_are_exact() -> None:
    r = np.random.default_rng(0)
    a = (r.uniform(-1, 1, 2000) * 10 ** r.uniform(-3, 8, 2000)).astype(np.float32)
    b = (r.uniform(-1, 1, 2000) * 10 ** r.uniform(0, 3, 2000)).astype(np.float32)
    a, b = np.append(a, array(5, -5, INF, 5, 0)), np.append(b, array(INF, INF, 3, 0, 2))
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(Tensor(a).fmod(Tensor(b)).numpy(), np.fmod(a, b))
        wide = np.remainder(a, b)
    np.testing.assert_array_equal(Tensor(a).remainder(Tensor(b)).numpy(), wide)


def test_what_padding_divides_by_zero_stays_out():
    """The places that no window covers: 0/0 in lanes that a `where` leaves out (a fault of LLVM's)."""
    x = Tensor.arange(36).float().reshape(1, 1, 6, 6).requires_grad_()
    averages = x.avg_pool2d(3, padding=1, count_include_pad=False).realize()
    averages.square().sum().backward()
    assert x.grad.numpy()[0, 0, 0].tolist() == pytest.approx([1.75, 1.75, 2, 2, 2, 0])


@pytest.mark.parametrize(("name", "ends"), [("hardtanh", (-1.0, 1.0)), ("relu6", (0.0, 6.0))])
def test_the_slope_at_the_ends_is_zero(name, ends):
    x = Tensor([ends[0] - 1, ends[0], 0.5, ends[1], ends[1] + 1], requires_grad=True)
    getattr(x, name)().sum().backward()
    assert x.grad.tolist() == [0, 0, 1, 0, 0]

"""Gradients where functions have corners, poles or nothing to work on: PyTorch's, one row each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor
from tests.helpers import needs, require

pytestmark = needs("torch")
INF = np.inf


def array(*values: Any) -> Any:
    return np.array(values, np.float32)


TIES, ZEROS, ROWS = array(1, 3, 3, 2, 3), array(0, 0, 2, -1, 0), array([0, 0, 0], [1, 0, 2])
EMPTY = np.zeros((0, 3), np.float32)
#: name → (method or function for both, arrays)
CASES: dict[str, tuple[Any, list[Any]]] = {
    "amax ties": (lambda x: x.amax(0), [TIES]),
    "amin ties": (lambda x: x.amin(0), [-TIES]),
    "maximum ties": (lambda x, y: x.maximum(y), [TIES, array(3, 3, 1, 2, 3)]),
    "prod of zeros": (lambda x: x.prod(0), [ZEROS]),
    "prod of one zero": (lambda x: x.prod(0), [array(0, 2, 3)]),
    "cumprod of zeros": (lambda x: x.cumprod(0), [ZEROS]),
    "norm of zeros": (lambda x: x.norm(dim=1), [ROWS]),
    "norm of zeros 3": (lambda x: x.norm(3, dim=1), [ROWS]),
    "norm inf": (lambda x: x.norm(INF), [TIES]),
    "norm 1/2": (lambda x: x.norm(0.5), [ZEROS]),
    "std of equals": (lambda x: x.std(0), [array(1, 1, 1)]),
    "abs": (lambda x: x.abs(), [ZEROS]),
    "sqrt": (lambda x: x.sqrt(), [array(0, 4)]),
    "pow": (lambda x, y: x**y, [array(0, 0, 2, 0), array(0, 2, 3, 1)]),
    "softmax of masked rows": (lambda x: (x + ROWS_MASK(x)).softmax(-1), [ROWS]),
    "sort ties": (lambda x: x.sort()[0] * x.detach(), [TIES]),
    "topk": (lambda x: x.topk(2)[0], [array(1, 5, 3)]),
    "median ties": (lambda x: x.median(), [TIES]),
    "repeated index": (lambda x: x[[0, 0, 2]], [TIES]),
    "clamp": (lambda x: x.clamp(0, 2), [array(0, 2, 3, -1, 1)]),
    "atan2 on the axes": (lambda y, x: y.atan2(x), [array(0, 1, -1, 0), array(1, 0, -1, -2)]),
    "xlogy at 0": (lambda x, y: x.xlogy(y), [array(0, 0, 1), array(2, 1, 3)]),
    "relu at 0": (lambda x: x.relu(), [ZEROS]),
    "sum of nothing": (lambda x: x.sum(0) + 1, [EMPTY]),
    "prod of nothing": (lambda x: x.prod(0), [EMPTY]),
    "mean of nothing": (lambda x: x.mean(0), [EMPTY]),
    "logsumexp of nothing": (lambda x: x.logsumexp(0), [EMPTY]),
    "logsumexp of -inf": (lambda x: x.logsumexp(0), [array(-INF, 1)]),
    "logaddexp of infinities": (lambda x, y: x.logaddexp(y), [array(INF, 1), array(1, 1)]),
    "log1p at -1": (lambda x: x.log1p(), [array(1e-8, -1, 5)]),
    "expm1": (lambda x: x.expm1(), [array(1e-8, -30, 5)]),
    "asin at 1": (lambda x: x.asin(), [array(1, 0.5, -1)]),
    "acos at 1": (lambda x: x.acos(), [array(1, 0.5, -1)]),
    "acosh at 1": (lambda x: x.acosh(), [array(1, 2)]),
    "atanh at 1": (lambda x: x.atanh(), [array(0.5, -0.5)]),
    "fmax ties": (lambda x, y: x.fmax(y), [TIES, array(3, 3, np.nan, 2, 3)]),
    "nanmean": (lambda x: x.nanmean(0), [array(1, np.nan, 3)]),
    "quantile of ties": (lambda x: x.quantile(0.5), [TIES]),
}


def ROWS_MASK(x: Any) -> Any:
    """-inf in the first column, of the library that x is of."""
    mask = array([-INF, 0, 0], [-INF, 0, 0])
    return Tensor(mask) if isinstance(x, Tensor) else require("torch").tensor(mask)


@pytest.mark.parametrize("name", CASES)
def test_gradients_at_the_edges(name: str) -> None:
    function, arrays = CASES[name]
    torch = require("torch")
    mine = [Tensor(a.copy(), requires_grad=True) for a in arrays]
    theirs = [torch.tensor(a.copy(), requires_grad=True) for a in arrays]
    found, expected = function(*mine), function(*theirs)
    np.testing.assert_allclose(found.numpy(), expected.detach().numpy(), rtol=1e-5, atol=1e-6)
    expected.sum().backward()
    for grad, other in zip(found.sum().gradient(*mine), theirs, strict=True):
        np.testing.assert_allclose(grad.numpy(), other.grad.numpy(), rtol=1e-5, atol=1e-6)


def test_what_a_condition_leaves_out_sends_no_nan() -> None:
    x = Tensor(ZEROS, requires_grad=True)
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

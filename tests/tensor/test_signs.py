"""Signs, zeros with a sign, infinities and NaN: what PyTorch gives, values and gradients."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lazygrad import Tensor
from tests.helpers import needs, require

INF, NAN = math.inf, math.nan
ENDS = [INF, -INF, NAN, 0.0, -0.0, 800.0, -800.0, 1.5]


@needs("torch")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["sign", "sinh", "cosh", "tanh"])
def test_one_number(name: str, dtype: str) -> None:
    theirs = require("torch").tensor(np.array(ENDS, dtype), requires_grad=True)
    mine = Tensor(np.array(ENDS, dtype), requires_grad=True)
    expected = getattr(theirs, name)()
    expected.sum().backward()
    found, wanted = getattr(mine, name)().numpy(), expected.detach().numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    numbers = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(wanted)[numbers])
    slope = getattr(mine, name)().sum().gradient(mine)[0].numpy()
    np.testing.assert_allclose(slope, theirs.grad.numpy(), rtol=1e-5)


def test_a_quotient_by_an_infinity_is_rounded_down():
    assert (Tensor([1.0, -1.0, 0.0]) // INF).tolist() == [0.0, -1.0, 0.0]
    assert (Tensor([1.0, -1.0, 0.0]) // -INF).tolist() == [-1.0, 0.0, 0.0]
    assert (Tensor([INF, -INF]) // 2.0).isnan().all().item()


def test_the_sign_that_is_copied_has_slope_0():
    x, y = Tensor([2.0, -2.0, 0.0], requires_grad=True), Tensor([1.0, -3.0, -0.0], requires_grad=True)
    x.copysign(y).sum().backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([1.0, 1.0, 0.0], [0.0, 0.0, 0.0])
    assert Tensor([[1.0], [2.0]]).copysign(Tensor([-1.0, 1.0])).tolist() == [[-1.0, 1.0], [-2.0, 2.0]]


def test_a_leaf_of_no_elements_gets_a_gradient_of_none():
    line = Tensor.zeros(0, requires_grad=True)
    line.sum().backward()
    table = Tensor(np.zeros((0, 3), np.float32), requires_grad=True)
    ((table * 2).sum() + table.prod(0).sum() + table.exp().mean()).backward()
    apart = Tensor(np.zeros((0, 2), np.float32), requires_grad=True)
    Tensor([1.0], requires_grad=True).sum().backward()
    assert (line.grad.shape, table.grad.shape, apart.grad) == ((0,), (0, 3), None)
    assert (line.grad.tolist(), table.grad.tolist()) == ([], [])
    assert [table.sum().item(), *table.prod(0).tolist(), *table.sum(1).tolist()] == [0, 1, 1, 1]


# *** numbers that no loop reaches


def test_orders_that_no_float_holds():
    x = Tensor([3.0], dtype="float64")
    assert math.isclose(x.polygamma(170).item(), -math.factorial(170) / 3.0**171, rel_tol=1e-9)
    for order in (171, 10**9):
        with pytest.raises(NotImplementedError, match=f"polygamma of order {order}: 170! is the last"):
            x.polygamma(order)


def test_a_gamma_function_of_many_dimensions():
    found = Tensor([3000.0], dtype="float64").mvlgamma(1000).item()
    terms = sum(math.lgamma(3000.0 - j / 2) for j in range(1000))
    assert math.isclose(found, 1000 * 999 / 4 * math.log(math.pi) + terms, rel_tol=1e-9)


def test_one_number_repeated_very_often():
    many = 10**12
    assert Tensor.zeros(many).sum().item() == 0
    assert Tensor.full((many,), 0.5, dtype="float64").sum().item() == 5e11
    assert Tensor.full((many,), 0.1, dtype="float64").mean().item() == pytest.approx(0.1)
    assert Tensor.full((many,), 3, dtype="int32").sum().item() == np.int64(3 * many).astype(np.int32)
    assert Tensor.full((many,), 3, dtype="int64").prod().item() == pow(3, many, 2**64) - 2**64 * (
        pow(3, many, 2**64) >= 2**63
    )
    assert Tensor.ones(2, many).max(1).tolist() == [1.0, 1.0]
    assert Tensor.full((many,), True).any().item() is True
    assert Tensor.ones(many, 2).sum(0, keepdim=True).shape == (1, 2)


@pytest.mark.parametrize(
    ("factor", "product"), [(1.0, 1.0), (0.5, 0.0), (2.0, INF), (-2.0, INF), (-1.0, 1.0)]
)
def test_the_product_of_one_number(factor, product):
    assert Tensor.full((10**12,), factor).prod().item() == product

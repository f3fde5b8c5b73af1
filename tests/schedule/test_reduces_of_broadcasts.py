"""A reduction over what only repeats is arithmetic, whatever the size."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazygrad import Tensor
from lazygrad.ir.ops import Ops

MANY = 10**6


def repeated(dtype: str = "float32") -> Tensor:
    """[1.25, 2.25, 3.25] in three planes of a million by a million, computed."""
    column = Tensor([[[1.0]], [[2.0]], [[3.0]]], dtype=dtype)
    return (column + Tensor([[0.25]], dtype=dtype)).expand(3, MANY, MANY)


def loops(tensor: Tensor) -> int:
    """How many reductions its kernels have."""
    items = [item for item in tensor.schedule() if item.ast.op is Ops.SINK]
    return sum(node.op is Ops.REDUCE_AXIS for item in items for node in item.ast.toposort())


def test_a_sum_is_a_product():
    assert repeated().sum((1, 2)).tolist() == pytest.approx([1.25e12, 2.25e12, 3.25e12])
    assert repeated().sum().item() == pytest.approx(6.75e12)
    assert repeated("float64").sum().item() == 6.75e12


def test_a_mean_and_a_spread():
    assert repeated("float64").mean().item() == 2.25
    assert repeated("float64").std(correction=0).item() == pytest.approx(math.sqrt(2 / 3))


def test_an_extreme_is_the_value():
    assert repeated().max((1, 2)).tolist() == [1.25, 2.25, 3.25]
    assert repeated().min().item() == 1.25
    assert math.isnan(Tensor([math.nan]).expand(MANY).max().item())


def test_a_product_is_a_power():
    assert Tensor([[1.5], [-1.0]]).expand(2, 3).prod(1).tolist() == [3.375, -1.0]
    found = Tensor([[1.0], [-1.0], [2.0], [0.5]]).expand(4, MANY * MANY).prod(1)
    assert found.tolist() == [1.0, 1.0, math.inf, 0.0]


def test_integers_wrap_to_the_same_bits():
    x = Tensor([[3], [-5]], dtype="int32").expand(2, MANY * MANY)
    sums = [3 * MANY**2, -5 * MANY**2]
    products = [pow(3, MANY**2, 2**32), pow(-5, MANY**2, 2**32)]
    for found, exact in ((x.sum(1), sums), (x.prod(1), products)):
        assert found.tolist() == [(n + 2**31) % 2**32 - 2**31 for n in exact]


def test_what_is_made_of_repeats_repeats():
    column, row = Tensor([[1.0], [2.0]]).expand(2, MANY * MANY), Tensor([3.0])
    assert (column * row + 1).sum(1).tolist() == pytest.approx([4e12, 7e12])
    assert loops((column * row + 1).sum(1)) == 0


def test_the_other_axes_are_reduced():
    x = Tensor([[1.0, 2.0], [3.0, 4.0]]).realize().reshape(2, 1, 2).expand(2, MANY * MANY, 2)
    assert x.sum((1, 2)).tolist() == pytest.approx([3e12, 7e12])
    assert loops(x.sum((1, 2))) == 1


def test_what_padding_cuts_off_does_not_repeat():
    x = Tensor([2.0]).expand(4).pad(((1, 2),))
    assert x.sum().item() == 8.0
    assert x.min().item() == 0.0


def test_a_type_that_does_not_hold_the_count_adds():
    """65,504 is the greatest half: 100,000 of them is none, but their sum may be."""
    assert Tensor([1e-4], dtype="half").expand(100_000).sum(dtype="half").item() == pytest.approx(
        10, rel=0.01
    )


def test_gradients_of_repeats():
    x = Tensor([2.0, 3.0], requires_grad=True)
    x.reshape(2, 1).expand(2, MANY * MANY).sum().backward()
    assert x.grad.tolist() == pytest.approx([1e12, 1e12])


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_every_way_to_repeat(data):
    """Small whole numbers: every order of summation is exact."""
    sizes = data.draw(st.lists(st.sampled_from([1, 2, 3]), min_size=1, max_size=3))
    whole = [n if n > 1 else data.draw(st.sampled_from([1, 4, 5])) for n in sizes]
    axes = tuple(i for i in range(len(sizes)) if data.draw(st.booleans())) or (0,)
    array = np.arange(1, 1 + math.prod(sizes), dtype=np.int64).reshape(sizes)
    x, y = Tensor(array).expand(*whole), np.broadcast_to(array, whole)
    order = data.draw(st.permutations(range(len(sizes))))
    for found, expected in ((x.permute(order) * 2, y.transpose(order) * 2), (x.flip(0), y[::-1])):
        assert np.array_equal(found.sum(axes).numpy(), expected.sum(axes))
        assert np.array_equal(found.prod(axes).numpy(), expected.prod(axes))
        assert np.array_equal(found.max(axes).numpy(), expected.max(axes))

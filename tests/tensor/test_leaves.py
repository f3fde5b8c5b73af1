"""Which tensor a gradient is by: no other one of equal value, and the same one before and after it runs."""

from __future__ import annotations

import pytest

from lazygrad import Tensor, checkpoint

MAKE = {
    "list": lambda: Tensor([1.0, 1.0], requires_grad=True),
    "ones": lambda: Tensor.ones(2, requires_grad=True),
    "computed": lambda: (Tensor([2.0, 2.0]) / 2).requires_grad_(),
    "memory": lambda: Tensor.full((2,), 1.0).contiguous().realize().requires_grad_(),
}
READ = {
    "not": lambda x: x,
    "realized": Tensor.realize,
    "read": Tensor.numpy,
    "in a sum": lambda x: x.sum().item(),
}


@pytest.mark.parametrize("read", READ)
@pytest.mark.parametrize("make", MAKE)
def test_uses_before_and_after_a_tensor_is_computed_count_both(make, read):
    x = MAKE[make]()
    before = x * 2
    READ[read](x)
    total = (before + x * 3).sum()
    assert total.gradient(x)[0].tolist() == [5.0, 5.0]
    total.backward()
    assert x.grad.tolist() == [5.0, 5.0]


def test_values_read_on_the_host_on_the_way_count_too():
    x = Tensor([[2.0, 0.0], [0.0, 4.0]], requires_grad=True)
    first = x.solve(Tensor([1.0, 1.0]))  # reads x
    assert x.transpose().solve(first).sum().gradient(x)[0].tolist() == [[-0.25, -0.125], [-0.0625, -0.03125]]


@pytest.mark.parametrize("make", MAKE)
def test_two_leaves_of_equal_value_are_two(make):
    a, b = MAKE[make](), MAKE[make]()
    total = (a * 2 + b * 3).sum()
    assert [grad.tolist() for grad in total.gradient(a, b)] == [[2.0, 2.0], [3.0, 3.0]]


def test_two_leaves_in_one_memory_are_two():
    t = Tensor([1.0, 2.0])
    a, b, c = t.detach().requires_grad_(), t.detach().requires_grad_(), Tensor(t, requires_grad=True)
    total = (a * 2 + b * 3 + c * 4).sum()
    assert [grad.tolist() for grad in total.gradient(a, b, c)] == [[2.0, 2.0], [3.0, 3.0], [4.0, 4.0]]


@pytest.mark.parametrize("make", MAKE)
def test_a_constant_of_equal_value_is_no_leaf(make):
    a = MAKE[make]()
    assert (a * a.ones_like() + Tensor([2.0, 2.0]) / 2).sum().gradient(a)[0].tolist() == [1.0, 1.0]


def test_a_leaf_that_was_marked_is_memory_once_it_is_realized():
    a = Tensor.ones(2, requires_grad=True).realize()
    assert a.is_realized
    a.assign(Tensor([5.0, 6.0]))
    assert (a * a).sum().gradient(a)[0].tolist() == [10.0, 12.0]


def test_to_require_a_gradient_again_leaves_the_way_to_the_leaf_open():
    x = Tensor([1.0, 2.0], requires_grad=True)
    y = (x * 2).requires_grad_()
    assert (y * y).sum().gradient(x, y)[0].tolist() == [8.0, 16.0]


def test_a_leaf_that_is_read_within_a_checkpoint():
    w = Tensor([3.0], requires_grad=True)

    def block(x):
        y = x * w
        w.item()
        return y * w

    x = Tensor([2.0], requires_grad=True)
    assert [grad.item() for grad in checkpoint(block, x).sum().gradient(x, w)] == [9.0, 12.0]

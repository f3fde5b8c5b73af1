"""Gradients of a structure that was differentiated before come from a list, and are those of the rules."""

import pytest

from lazygrad import Tensor
from lazygrad.gradient import again
from lazygrad.memo import forget_all


@pytest.fixture(autouse=True)
def forgotten():
    forget_all()
    yield
    forget_all()


def slope(x: float, weight: Tensor, factor: float = 3.0) -> float:
    weight.grad = None
    ((weight * Tensor([x, 2 * x])).relu() * factor).sum().backward()
    return weight.grad.tolist()


def test_the_rules_run_a_few_times_only(monkeypatch):
    weight = Tensor([1.0, -1.0], requires_grad=True).realize()
    for x in (1.0, 2.0, 3.0):
        assert slope(x, weight) == [3 * x, 0.0]
    monkeypatch.setattr(again, "gradient", None)
    for x in (4.0, -5.0):
        assert slope(x, weight) == ([12.0, 0.0] if x > 0 else [0.0, -30.0])


def test_they_are_the_same_nodes():
    weight = Tensor([1.0, -1.0], requires_grad=True).realize()
    for x in (1.0, 2.0, 3.0):
        slope(x, weight)
    loss = (weight * Tensor([4.0, 8.0])).relu().sum()
    order = loss.uop.toposort()
    seed = Tensor(1.0).uop
    made = [again.gradient_again(loss.uop, seed, [weight.uop], order) for _ in range(4)]
    assert all(each[weight.uop] is made[0][weight.uop] for each in made)


@pytest.mark.parametrize("change", ["constant", "leaf", "second leaf"])
def test_what_the_gradients_follow_from_is_compared(change):
    weight = Tensor([1.0, -1.0], requires_grad=True).realize()
    for x in (1.0, 2.0, 3.0, 4.0):
        slope(x, weight)
    if change == "constant":
        assert slope(5.0, weight, factor=0.5) == [2.5, 0.0]
    elif change == "leaf":
        other = Tensor([5.0, 10.0], requires_grad=True)
        ((weight.detach() * other).relu() * 3.0).sum().backward()
        assert other.grad.tolist() == [3.0, 0.0]
    else:
        other = Tensor([5.0, 10.0], requires_grad=True)
        weight.grad = None
        ((weight * other).relu() * 3.0).sum().backward()
        assert (weight.grad.tolist(), other.grad.tolist()) == ([15.0, 0.0], [3.0, 0.0])


def test_of_the_gradient_itself():
    for x in (1.0, 2.0, 3.0, 4.0, 5.0):
        t = Tensor([x], requires_grad=True)
        (first,) = (t * t * t).sum().gradient(t)
        (second,) = first.sum().gradient(t)
        assert (first.item(), second.item()) == (3 * x * x, 6 * x)

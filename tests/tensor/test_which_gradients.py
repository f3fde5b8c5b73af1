"""Which tensors have gradients, where a slope is 0 and where tensors are written: as in PyTorch."""

from __future__ import annotations

import math

import pytest

from lazygrad import Tensor, no_grad


def test_what_has_slope_0_has_a_gradient_of_zeros() -> None:
    for function in (
        lambda x: x**0,
        lambda x: x**0.0,
        lambda x: x.sign(),
        lambda x: x.floor(),
        lambda x: x.sigmoid().bernoulli(),
        lambda x: (x * 2).fill_(3.0),
        lambda x: (x * 2).zero_(),
    ):
        x = Tensor([0.5, 2.0, math.inf], requires_grad=True)
        function(x).sum().backward()
        assert x.grad is not None
        assert x.grad.tolist() == [0.0, 0.0, 0.0]


def test_what_left_the_floats_requires_no_gradient() -> None:
    x = Tensor([0.5, 2.0], requires_grad=True)
    for found in ((x > 1).float(), x.int().float(), x.argmax().float(), x.zeros_like(), x.detach()):
        assert not found.requires_grad
        with pytest.raises(RuntimeError, match="requires no gradient"):
            found.sum().backward()


def test_the_slope_of_nextafter() -> None:
    x, y = Tensor([1.0, 2.0], requires_grad=True), Tensor([1.0, 3.0], requires_grad=True)
    assert [g.tolist() for g in x.nextafter(y).sum().gradient(x, y)] == [[0.0, 1.0], [0.0, 0.0]]


def test_a_value_with_a_gradient_is_written() -> None:
    """What is not in memory requires a gradient from then on."""
    y = Tensor([1.0, 2.0], requires_grad=True)

    def add(z: Tensor) -> None:
        z += y * 2

    def set_one(z: Tensor) -> None:
        z[0] = y[1] * 2

    def set_all(z: Tensor) -> None:
        z[:] = y * 2

    for write, wanted in ((add, [2.0, 2.0]), (set_one, [0.0, 2.0]), (set_all, [2.0, 2.0])):
        for z in (Tensor.zeros(2), Tensor([5.0, 6.0]), Tensor([5.0, 6.0]) * 2, (y * 0).detach().clone()):
            write(z)
            assert z.requires_grad
            assert z.sum().gradient(y)[0].tolist() == wanted
        with no_grad():
            write(z := Tensor.zeros(2))
        assert not z.requires_grad


def test_all_of_a_recorded_value_is_written() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    z = x * 2
    z[:] = 3.0
    assert z.tolist() == [3.0, 3.0]
    assert (z * x).sum().gradient(x)[0].tolist() == [3.0, 3.0]

"""Deep copies of tensors and of models: memory of their own, in both directions."""

from __future__ import annotations

import copy

import pytest

from lazygrad import Tensor
from lazygrad.nn import Linear
from lazygrad.nn.state import get_parameters


def test_a_deep_copy_has_memory_of_its_own():
    w = Tensor([1.0, 2.0]).realize()
    twin = copy.deepcopy(w)
    twin.assign(twin * 0).realize()
    assert (w.tolist(), twin.tolist()) == ([1.0, 2.0], [0.0, 0.0])
    w.assign(w * 10).realize()
    assert (w.tolist(), twin.tolist()) == ([10.0, 20.0], [0.0, 0.0])


def test_a_copied_model_is_trained_apart():
    model = Linear(2, 2)
    model(Tensor([[1.0, 2.0]])).sum().backward()
    twin = copy.deepcopy(model)
    assert len(get_parameters(twin)) == 2
    assert twin.weight.grad.tolist() == model.weight.grad.tolist()
    twin.weight.assign(twin.weight * 0).realize()
    assert model.weight.abs().sum().item() > 0


def test_a_value_with_a_graph_is_not_copied():
    w = Tensor([1.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="computed with gradients"):
        copy.deepcopy(w * 2)

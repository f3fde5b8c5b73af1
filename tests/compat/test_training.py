"""Models and optimizers as older scripts write them: nobody says what is trained."""

from __future__ import annotations

import pytest

from lazygrad import Tensor, nn
from lazygrad.compat import aliases, training
from lazygrad.nn import BatchNorm, Linear
from lazygrad.nn.optim import SGD

pytestmark = pytest.mark.usefixtures("installed")


def test_an_optimizer_trains_what_it_is_given():
    weight = Tensor([1.0, 2.0])
    optimizer = SGD([weight], lr=0.5)
    with Tensor.train():
        (weight * weight).sum().backward()
        optimizer.step()
    assert weight.tolist() == [0.0, 0.0]
    aliases.uninstall()
    with pytest.raises(ValueError, match="does not require a gradient"):
        SGD([Tensor([1.0])], lr=0.5)


def test_what_is_not_trained_stays_as_it_is():
    from tinygrad.nn.state import get_parameters

    model = [Linear(2, 2), BatchNorm(2), Tensor.zeros(2, requires_grad=False)]
    parameters = get_parameters(model)
    assert len(parameters) == 8  # with three running statistics
    assert len(SGD([*parameters, Tensor([1, 2])], lr=0.1).params) == 4
    assert SGD([model[0].weight] * 2).params == [model[0].weight]
    with pytest.raises(ValueError, match="every tensor has requires_grad=False"):
        SGD([Tensor([1.0], requires_grad=False)])


def test_what_is_no_list_of_tensors_is_refused_as_ever():
    with pytest.raises(TypeError, match="takes a list of tensors, not one tensor"):
        SGD(Tensor([1.0]))
    weight = Tensor([1.0], requires_grad=True)
    assert SGD([{"params": [weight], "lr": 0.5}]).lr.item() == 0.5


def test_several_optimizers_together():
    from tinygrad.nn.optim import OptimizerGroup

    a, b = Tensor([1.0]), Tensor([1.0])
    group = OptimizerGroup(SGD([a], lr=0.5), SGD([b], lr=0.25))
    with Tensor.train():
        (a + b).sum().backward()
        group.step()
    assert (a.tolist(), b.tolist(), group.params, group[1].params) == ([0.5], [0.75], [a, b], [b])
    group.zero_grad()
    assert a.grad is b.grad is None


def test_values_are_brought_to_where_the_model_is():
    layer = nn.Linear(2, 4)
    layer.weight.shard_(("CPU", "CPU:1"), axis=0)
    training.load_state_dict(layer, {"weight": Tensor.ones(4, 2), "bias": Tensor.zeros(4)}, verbose=False)
    assert layer.weight.shard_axis == 0
    assert layer.weight.tolist() == [[1.0, 1.0]] * 4


def test_muon_by_its_older_words():
    with pytest.raises(ValueError, match=r"three ns_coefficients .* not \(1\.0, 2\.0\)"):
        training.Muon([Tensor.eye(2).requires_grad_()], ns_params=(1.0, 2.0))
    assert training.Muon([Tensor.eye(2).requires_grad_()], ns_params=(2.0, -1.5, 0.5)).params

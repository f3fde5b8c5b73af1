"""Containers, parameters and hooks as PyTorch's users write them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lazygrad
from lazygrad import Tensor, nn
from tests.helpers import needs, require


def network(nn: Any, ones: Any) -> Any:
    """What a tutorial of PyTorch writes, with the layers of one library or the other."""

    class Network(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(2, 3), nn.Linear(3, 2)])
            self.layers.append(nn.Linear(2, 2)).extend([nn.Linear(2, 2)])
            self.acts = nn.ModuleDict({"relu": nn.ReLU(), "prelu": nn.PReLU()})
            self.scale = nn.Parameter(ones(2))
            self.frozen = nn.Parameter(ones(1), requires_grad=False)
            self.shifts = nn.ParameterList([nn.Parameter(ones(2)) for _ in range(2)])
            self.named = nn.ParameterDict({"gain": nn.Parameter(ones(1))})
            self.register_buffer("mean", ones(2))

        def forward(self, x: Any) -> Any:
            x = self.layers[0](x)
            for layer, shift in zip(self.layers[1:3], self.shifts, strict=True):
                x = self.acts["prelu"](layer(x)) + shift
            return x * self.scale * self.named["gain"] + self.mean

    return Network()


@needs("torch")
def test_a_network_with_containers_is_that_of_torch() -> None:
    torch = require("torch")
    ours, theirs = network(nn, Tensor.ones), network(torch.nn, torch.ones)
    assert set(ours.state_dict()) == set(theirs.state_dict())
    for names in ("named_parameters", "named_modules", "named_children", "named_buffers"):
        assert {n for n, _ in getattr(ours, names)()} == {n for n, _ in getattr(theirs, names)()}
    ours.load_state_dict({name: Tensor(value.numpy()) for name, value in theirs.state_dict().items()})
    x = np.ones((4, 2), np.float32)
    np.testing.assert_allclose(ours(Tensor(x)).numpy(), theirs(torch.tensor(x)).detach().numpy(), atol=1e-6)


def test_containers_take_what_belongs_in_them() -> None:
    layers = nn.ModuleList([nn.ReLU()])
    layers.insert(0, nn.Tanh())
    assert [type(layer).__name__ for layer in layers[:1]] == ["Tanh"]
    assert isinstance(layers[:1], nn.ModuleList)
    assert len({layers, nn.ModuleList([])}) == 2  # modules are equal to themselves alone
    with pytest.raises(TypeError, match="ModuleList takes layers, not 3"):
        nn.ModuleList([3])
    with pytest.raises(ValueError, match=r"a text without dots, not 'a\.b'"):
        nn.ModuleDict({"a.b": nn.ReLU()})
    with pytest.raises(NotImplementedError, match="ModuleList cannot be called"):
        layers(Tensor([1.0]))
    assert "(1): ReLU" in repr(layers)


def test_parameters() -> None:
    data = Tensor([1.0, 2.0])
    made, frozen = nn.Parameter(data), nn.Parameter(data, requires_grad=False)
    assert [made.requires_grad, frozen.requires_grad, data.requires_grad] == [True, False, False]
    assert [isinstance(x, nn.Parameter) for x in (made, frozen, data, made * 2, 1)] == [True, True] + [
        False
    ] * 3
    assert all(isinstance(p, nn.Parameter) for p in nn.Linear(1, 1).parameters())
    assert nn.Parameter(Tensor([1, 2]), requires_grad=False).tolist() == [1, 2]
    with pytest.raises(TypeError, match="only float"):
        nn.Parameter(Tensor([1, 2]))


@needs("torch")
@pytest.mark.parametrize("prepend", [False, True])
def test_hooks_are_called_as_in_torch(prepend: bool) -> None:
    def told(nn: Any, make: Any) -> tuple[list[Any], Any]:
        seen: list[Any] = []
        model = nn.Sequential(nn.ReLU(), nn.Tanh())
        model.register_forward_pre_hook(lambda m, args: seen.append("before") or (args[0] * 2,))
        model.register_forward_pre_hook(
            lambda m, args, kwargs: seen.append(len(kwargs)), with_kwargs=True, prepend=prepend
        )
        model[0].register_forward_hook(lambda m, args, result: seen.append(float(result.sum())))
        model.register_forward_hook(lambda m, args, result: seen.append("after") or result + 1)
        handle = model.register_forward_hook(lambda m, args, result: result * 10, prepend=prepend)
        found = [float(model(make([1.0, -1.0])).sum())]
        handle.remove()
        found.append(float(model(make([1.0, -1.0])).sum()))
        return seen, np.round(found, 5).tolist()

    torch = require("torch")
    assert told(nn, Tensor) == told(torch.nn, torch.tensor)


def test_hooks_where_calls_fail_and_in_a_jit() -> None:
    layer, seen = nn.Linear(2, 2), []
    layer.register_forward_hook(lambda m, args, result: seen.append(result), always_call=True)
    with pytest.raises(ValueError, match="Linear"):
        layer(Tensor.ones(3))
    assert seen == [None]
    assert set(layer.state_dict()) == {"weight", "bias"}
    layer = nn.ReLU().eval()
    layer.register_forward_hook(lambda m, args, result: result + 1)
    step = lazygrad.jit(lambda x: layer(x))
    assert [step(Tensor([float(i)])).item() for i in range(4)] == [1.0, 2.0, 3.0, 4.0]
    with pytest.raises(TypeError, match="a hook must be a function, not 3"):
        layer.register_forward_hook(3)  # type: ignore[arg-type]

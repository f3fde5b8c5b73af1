"""`nn.utils` as `torch.nn.utils`: the same calls, the same values, gradients and names of weights."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import lazygrad
from lazygrad import Tensor, nn
from tests.helpers import needs, require

W = np.random.default_rng(0).standard_normal((3, 2)).astype(np.float32)


def test_parameters_in_a_line_and_back() -> None:
    layer = nn.Linear(2, 3)
    line = nn.utils.parameters_to_vector(layer.parameters())
    line.square().sum().backward()
    assert layer.weight.grad is not None
    np.testing.assert_allclose(layer.weight.grad.numpy(), 2 * layer.weight.numpy(), rtol=1e-6)
    nn.utils.vector_to_parameters(Tensor.arange(9).float(), layer.parameters())
    assert layer.weight.tolist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    assert layer.weight.requires_grad
    with pytest.raises(ValueError, match=r"takes a line of 9 numbers, not shape \(4,\)"):
        nn.utils.vector_to_parameters(Tensor.ones(4), layer.parameters())


@needs("torch")
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("side", ["right", "left"])
def test_sequences_are_padded_as_in_torch(batch_first: bool, side: str) -> None:
    torch = require("torch")
    several = [np.ones((n, 2), np.float32) * n for n in (3, 1, 2)]
    theirs = torch.nn.utils.rnn.pad_sequence([torch.tensor(x) for x in several], batch_first, -1.0, side)
    ours = nn.utils.rnn.pad_sequence([Tensor(x) for x in several], batch_first, -1.0, side)
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    if side == "right":
        back = nn.utils.rnn.unpad_sequence(ours, Tensor([3, 1, 2]), batch_first)
        assert [x.tolist() for x in back] == [x.tolist() for x in several]


def test_wrong_sequences() -> None:
    with pytest.raises(ValueError, match=r"number 0 has shape \(2,\), number 1 \(2, 2\)"):
        nn.utils.rnn.pad_sequence([Tensor.ones(2), Tensor.ones(2, 2)])
    with pytest.raises(ValueError, match="one sequence at least"):
        nn.utils.rnn.pad_sequence([])


def both(kind: str, make: Any) -> tuple[Any, Any]:
    """A layer of ours and one of PyTorch's, made by a function of the library's `nn`, with the same state."""
    torch = require("torch")
    theirs, ours = make(torch.nn, kind), make(nn, kind)
    state = theirs.state_dict()
    assert set(ours.state_dict()) == set(state)
    ours.load_state_dict({name: Tensor(value.numpy()) for name, value in state.items()})
    return ours, theirs


@needs("torch")
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("kind", ["weight_norm", "spectral_norm"])
def test_normed_weights_are_those_of_torch(kind: str, training: bool) -> None:
    torch = require("torch")

    def make(nn: Any, kind: str) -> Any:
        return getattr(nn.utils.parametrizations, kind)(nn.Linear(2, 3)).train(training)

    ours, theirs = both(kind, make)
    assert isinstance(ours, nn.Linear)
    x = np.ones((4, 2), np.float32)
    ours(Tensor(x)).square().sum().backward()
    theirs(torch.tensor(x)).square().sum().backward()
    gradients = {name: p.grad.numpy() for name, p in theirs.named_parameters()}
    for name, parameter in ours.named_parameters():
        assert parameter.grad is not None
        np.testing.assert_allclose(parameter.grad.numpy(), gradients[name], rtol=1e-4, atol=1e-5)
    for name, value in theirs.state_dict().items():  # the vectors of the power iteration moved
        np.testing.assert_allclose(ours.state_dict()[name].numpy(), value.numpy(), rtol=1e-4, atol=1e-5)


def test_a_normed_layer_trains_in_a_jit_and_is_copied() -> None:
    layer = nn.utils.parametrizations.spectral_norm(nn.Linear(2, 3)).train()
    step = lazygrad.jit(lambda x: layer(x))
    for _ in range(4):
        step(Tensor.ones(1, 2)).realize()
    twin = copy.deepcopy(layer)
    np.testing.assert_allclose(twin.eval().weight.numpy(), layer.eval().weight.numpy(), rtol=1e-6)
    assert np.linalg.svd(layer.weight.numpy())[1][0] == pytest.approx(1.0, abs=1e-3)


def test_weights_by_functions_of_ones_own() -> None:
    class Doubled(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x * 2

        def right_inverse(self, x: Tensor) -> Tensor:
            return x / 2

    layer = nn.Linear(2, 3)
    layer.weight.assign(Tensor(W))
    nn.utils.parametrize.register_parametrization(layer, "weight", Doubled())
    np.testing.assert_allclose(layer.weight.numpy(), W)
    assert list(layer.state_dict()) == ["bias", "parametrizations.weight.original"]
    layer.weight = Tensor(W * 3)
    np.testing.assert_allclose(layer.parametrizations["weight"].original.numpy(), W * 1.5)  # type: ignore[attr-defined]
    nn.utils.parametrize.remove_parametrizations(layer, "weight")
    assert (type(layer), isinstance(layer.weight, nn.Parameter)) == (nn.Linear, True)
    with pytest.raises(ValueError, match="Linear has no tensor 'wait' to parametrize"):
        nn.utils.parametrizations.weight_norm(layer, "wait")
    with pytest.raises(ValueError, match="makes shape"):
        nn.utils.parametrize.register_parametrization(layer, "weight", nn.Flatten(0))

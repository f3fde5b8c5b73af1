"""The digits network trained on several devices: data, tensor and fully sharded parallel, equal to one device
within rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor, nn
from lazygrad.sharding.multi import value_of

DEVICES = ("CPU", "CPU:1")
IMAGES, LABELS, _, _ = nn.datasets.digits()


class Net:
    def __init__(self) -> None:
        # a bias before the norm has no gradient but rounding, which Adam would make large
        self.first, self.norm, self.last = nn.Linear(64, 16, bias=False), nn.BatchNorm(16), nn.Linear(16, 10)

    def __call__(self, x: Tensor) -> Tensor:
        return self.last(self.norm(self.first(x.flatten(1))).relu())


def replicated(net: Any) -> None:
    for tensor in nn.state.get_state_dict(net).values():
        tensor.shard_(DEVICES)


def by_features(net: Net) -> None:
    replicated(net)
    net.first.weight.shard_(DEVICES, 0)
    net.last.weight.shard_(DEVICES, 1)


def all_parts(net: Net) -> None:
    for tensor in nn.state.get_state_dict(net).values():
        tensor.shard_(DEVICES, 0 if tensor.ndim else None)


Placed = Callable[[Tensor], Tensor]
WAYS: dict[str, tuple[Callable[[Net], None], Placed]] = {
    "data parallel": (replicated, lambda x: x.shard(DEVICES, 0)),
    "tensor parallel": (by_features, lambda x: x.shard(DEVICES)),
    "fully sharded": (all_parts, lambda x: x.shard(DEVICES, 0)),
}


def trained(optimizer: Any, lay: Callable[[Net], None], place: Placed) -> tuple[list[Any], Net]:
    """(losses and final parameters, the network) after three steps; the last batch is smaller and uneven."""
    Tensor.manual_seed(5)
    net = Net()
    lay(net)
    steps = optimizer(nn.state.get_parameters(net), lr=0.01)
    found: list[Any] = []
    with Tensor.train():
        for begin, end in ((0, 9), (9, 18), (18, 23)):
            x, y = place(IMAGES[begin:end]), place(LABELS[begin:end])
            steps.zero_grad()
            loss = net(x).sparse_categorical_crossentropy(y)
            loss.backward()
            steps.step()
            found.append(loss.numpy())
    return [*found, *(p.numpy() for p in nn.state.get_state_dict(net).values())], net


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("optimizer", [pytest.param(nn.optim.SGD, marks=pytest.mark.slow), nn.optim.Adam])
def test_training_is_that_of_one_device(optimizer: Any, way: str) -> None:
    expected, _ = trained(optimizer, lambda net: None, lambda x: x)
    found, net = trained(optimizer, *WAYS[way])
    for one, several in zip(expected, found, strict=True):
        np.testing.assert_allclose(several, one, rtol=1e-3, atol=1e-4)
    axes = {name: tensor.shard_axis for name, tensor in nn.state.get_state_dict(net).items()}
    fresh = Net()
    WAYS[way][0](fresh)
    assert axes == {name: tensor.shard_axis for name, tensor in nn.state.get_state_dict(fresh).items()}


def test_replicated_weights_stay_equal_to_the_bit() -> None:
    _, net = trained(nn.optim.Adam, *WAYS["data parallel"])
    for weight in nn.state.get_parameters(net):
        first, *others = [Tensor._make(part).numpy() for part in value_of(weight.uop).src]
        assert all(np.array_equal(first, other) for other in others)


def test_moments_lie_as_their_parameters_do() -> None:
    net = Net()
    by_features(net)
    steps = nn.optim.Adam(nn.state.get_parameters(net))
    axes = [p.shard_axis for p in steps.params]
    assert axes == [0, None, None, 1, None]
    assert [m.shard_axis for m in steps.m] == axes


def test_a_sharded_model_is_saved_and_loaded(tmp_path: Any) -> None:
    net, other = Net(), Net()
    by_features(net)
    by_features(other)
    nn.state.safe_save(nn.state.get_state_dict(net), str(tmp_path / "net.safetensors"))
    nn.state.load_state_dict(other, nn.state.safe_load(str(tmp_path / "net.safetensors")))
    assert other.first.weight.shard_axis == 0
    assert np.array_equal(other.first.weight.numpy(), net.first.weight.numpy())


class Block:
    """A transformer's block with one head for each device, as tensor parallel training splits it."""

    def __init__(self, width: int = 6) -> None:
        self.norm = nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def __call__(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = self.qkv(self.norm(x)).reshape(batch, length, 3, len(DEVICES), -1)
        q, k, v = (parts[:, :, i].permute(0, 2, 1, 3) for i in range(3))
        seen = q.scaled_dot_product_attention(k, v, is_causal=True)
        x = x + self.out(seen.permute(0, 2, 1, 3).reshape(batch, length, width))
        return x + self.down(self.up(x).gelu())


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_a_transformer_block(way: str) -> None:
    def step(lay: Callable[[Block], None], place: Placed) -> list[Any]:
        Tensor.manual_seed(1)
        block = Block()
        lay(block)
        # a key's bias has no gradient but rounding, which Adam would make large
        moves = nn.optim.SGD(nn.state.get_parameters(block), lr=0.1)
        with Tensor.train():
            for seed in range(2):
                x = np.random.default_rng(seed).normal(size=(4, 5, 6)).astype(np.float32)
                moves.zero_grad()
                block(place(Tensor(x))).square().mean().backward()
                moves.step()
        return [p.numpy() for p in moves.params]

    def by_heads(block: Block) -> None:
        for tensor in nn.state.get_state_dict(block).values():
            tensor.shard_(DEVICES)
        for layer in (block.qkv, block.up):
            layer.weight.shard_(DEVICES, 0)
        for layer in (block.out, block.down):
            layer.weight.shard_(DEVICES, 1)

    def fully(block: Block) -> None:
        for tensor in nn.state.get_state_dict(block).values():
            tensor.shard_(DEVICES, 0)

    lay = {"tensor parallel": by_heads, "fully sharded": fully}.get(way, replicated)
    place: Placed = lambda x: x.shard(DEVICES, None if way == "tensor parallel" else 0)
    expected = step(lambda block: None, lambda x: x)
    for one, several in zip(expected, step(lay, place), strict=True):
        np.testing.assert_allclose(several, one, rtol=1e-4, atol=1e-5)


def test_pipeline_parallel() -> None:
    """Each device has a layer; values go from one to the next, gradients back."""
    Tensor.manual_seed(2)
    layers = [nn.Linear(4, 4) for _ in DEVICES]
    x = Tensor([[1.0, 2.0, 3.0, 4.0]])
    expected = [p.grad.numpy() for p in _backward(layers, x, [None] * len(layers))]
    for layer, device in zip(layers, DEVICES, strict=True):
        for p in (layer.weight, layer.bias):
            p.to_(device).grad = None
    params = _backward(layers, x, list(DEVICES))
    assert [p.grad.device for p in params] == ["CPU", "CPU", "CPU:1", "CPU:1"]
    for one, several in zip(expected, params, strict=True):
        np.testing.assert_allclose(several.grad.numpy(), one, rtol=1e-5)


def _backward(layers: list[nn.Linear], x: Tensor, devices: list[Any]) -> list[Any]:
    for layer, device in zip(layers, devices, strict=True):
        x = layer(x if device is None else x.to(device)).tanh()
    x.sum().backward()
    return [p for layer in layers for p in (layer.weight, layer.bias)]

"""The digits network trained on several devices: data, tensor and fully sharded parallel, equal to one device
within rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor, nn
from lazygrad.schedule.multi import value_of

DEVICES = ("CPU", "CPU:1", "CPU:2")
IMAGES, LABELS, _, _ = nn.datasets.digits()


class Net:
    def __init__(self) -> None:
        # a bias before the norm has no gradient but rounding, which Adam would make large
        self.first, self.norm, self.last = nn.Linear(64, 16, bias=False), nn.BatchNorm(16), nn.Linear(16, 10)

    def __call__(self, x: Tensor) -> Tensor:
        return self.last(self.norm(self.first(x.flatten(1))).relu())


def replicated(net: Net) -> None:
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
        for begin, end in ((0, 10), (10, 20), (20, 28)):
            x, y = place(IMAGES[begin:end]), place(LABELS[begin:end])
            steps.zero_grad()
            loss = net(x).sparse_categorical_crossentropy(y)
            loss.backward()
            steps.step()
            found.append(loss.numpy())
    return [*found, *(p.numpy() for p in nn.state.get_state_dict(net).values())], net


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("optimizer", [nn.optim.SGD, nn.optim.Adam])
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

"""Garbage may be collected at any allocation: in the middle of planning, lowering, capturing, replaying.

Between tests only is it collected in the others (tests/conftest.py).
"""

import gc

import numpy as np
import pytest

from lazygrad import Tensor, TinyJit
from lazygrad.nn import Linear
from lazygrad.nn.optim import Adam


class Loop:
    """Garbage that holds a tensor: only a collection frees it."""

    def __init__(self, value: Tensor) -> None:
        self.value, self.itself = value, self


def trained(steps: int) -> list[float]:
    """The losses of a small network, in a jitted step, with garbage of every kind about."""
    Tensor.manual_seed(0)
    layer, out = Linear(8, 16), Linear(16, 4)
    optimizer = Adam([layer.weight, layer.bias, out.weight, out.bias], lr=0.01)

    @TinyJit
    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = out(layer(x).relu()).cross_entropy(y).backward()
        return loss.realize(*optimizer.schedule_step())

    losses = []
    with Tensor.train():
        for turn in range(steps):
            x = Tensor.randn(32, 8).realize()
            Loop(x + turn)
            Loop((x * turn).realize())
            losses.append(step(x, x[:, :4].argmax(axis=1)).item())
    return losses


@pytest.mark.slow
def test_garbage_collected_everywhere_changes_nothing():
    usual = gc.get_threshold()
    gc.set_threshold(1)
    gc.enable()
    try:
        found = trained(6)
        largest = Tensor.randn(50).sort()[0].numpy()
    finally:
        gc.disable()
        gc.set_threshold(*usual)
    assert found == trained(6)
    assert np.all(np.diff(largest) >= 0)

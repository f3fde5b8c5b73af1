"""A whole training step in a TinyJit: as without, and from the third on nothing is planned or compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor, TinyJit, nn
from lazygrad.nn import optim
from lazygrad.nn.state import get_parameters
from lazygrad.programs import runners
from lazygrad.schedule import kernelize
from tests.helpers import slow_but_for

OPTIMIZERS: dict[str, Callable[[list[Tensor]], optim.Optimizer]] = {
    "SGD": lambda p: optim.SGD(p, 0.05, momentum=0.9, nesterov=True, weight_decay=0.01),
    "SGD dampened": lambda p: optim.SGD(p, 0.05, momentum=0.9, dampening=0.5),
    "LARS": lambda p: optim.LARS(p, 0.05),
    "Lion": lambda p: optim.Lion(p, 0.01, weight_decay=0.1),
    "Muon": lambda p: optim.Muon(p[:1], 0.05),
    "Adam": lambda p: optim.Adam(p, 0.05),
    "AdamW": lambda p: optim.AdamW(p, 0.05),
    "NAdam": lambda p: optim.NAdam(p, 0.05),
    "RAdam": lambda p: optim.RAdam(p, 0.05),
    "Adamax": lambda p: optim.Adamax(p, 0.05),
    "LAMB": lambda p: optim.LAMB(p, 0.05),
    "RMSprop": lambda p: optim.RMSprop(p, 0.05, momentum=0.5, centered=True),
    "Adagrad": lambda p: optim.Adagrad(p, 0.05, lr_decay=0.1),
    "Adadelta": lambda p: optim.Adadelta(p),
    "Rprop": lambda p: optim.Rprop(p, 0.05),
    "ASGD": lambda p: optim.ASGD(p, 0.05, t0=2),
    "Adafactor": lambda p: optim.Adafactor(p, 0.05),
}


def train(make: Callable[[list[Tensor]], optim.Optimizer], jit: bool, steps: int, watch: Any) -> list[Any]:
    """Train a layer, with a rate and a momentum that schedules move; its weights."""
    Tensor.manual_seed(3)
    layer = nn.Linear(4, 3)
    optimizer = make(get_parameters(layer))
    schedule = optim.OneCycleLR(optimizer, 0.05, steps + 1)

    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss: Tensor = (layer(x) - y).square().mean().backward()
        return loss.realize(*optimizer.schedule_step())

    call: Any = TinyJit(step) if jit else step
    random = np.random.RandomState(0)
    losses = []
    with Tensor.train():
        for number in range(steps):
            x = Tensor(random.randn(5, 4).astype(np.float32)).realize()
            losses.append(call(x, x[:, :3] * 2.0).item())
            schedule.step()
            if number == 2:
                watch()
    return [losses, *(p.numpy() for p in optimizer.params)]


@pytest.mark.parametrize("name", slow_but_for(OPTIMIZERS, "SGD", "Adam"))
def test_steps_in_a_jit_are_the_same_and_compile_nothing_later(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = train(OPTIMIZERS[name], False, 6, lambda: None)

    def refuse(*args: Any) -> Any:
        raise AssertionError("planned or compiled again")

    def watch() -> None:
        monkeypatch.setattr(kernelize, "plan", refuse)
        monkeypatch.setattr(runners, "compile_kernel", refuse)

    found = train(OPTIMIZERS[name], True, 6, watch)
    for mine, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=1e-6)
    assert not np.allclose(found[1], train(OPTIMIZERS[name], False, 0, lambda: None)[1])

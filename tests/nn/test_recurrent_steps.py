"""All steps of a recurrence are the same kernels, and so are all steps of training with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lazygrad import Context, Tensor, nn
from lazygrad.codegen.direct_kernels import record_of
from lazygrad.engine.realize import observe_kernels
from lazygrad.ir.loop import LoopPlan
from lazygrad.nn.state import get_parameters
from lazygrad.schedule import kernelize


def sequence(length: int) -> Tensor:
    numbers = np.random.RandomState(length).randn(length, 2, 3).astype(np.float32)
    return Tensor(numbers).realize()


def trained(layer: Any, optimizer: Any, x: Tensor) -> None:
    optimizer.zero_grad()
    outputs, _ = layer(x)
    outputs[-1].square().mean().backward()
    optimizer.step()


def ran(kind: Any, length: int) -> tuple[int, int]:
    """(programs, kernels) of a step of training."""
    layer = kind(3, 5)
    optimizer = nn.optim.SGD(get_parameters(layer), 0.1)
    seen: list[Any] = []
    with Tensor.train(), observe_kernels(lambda item, *_: seen.append(item.ast)):
        trained(layer, optimizer, sequence(length))
    return len(set(seen)), len(seen)


@pytest.mark.choice
@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_a_longer_sequence_takes_no_more_kernels(kind: Any) -> None:
    assert ran(kind, 5) == ran(kind, 10)


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_written_out_a_longer_sequence_takes_hardly_more_programs(kind: Any) -> None:
    with Context(SCAN=0):
        (few, fewer), (programs, kernels) = ran(kind, 5), ran(kind, 8)
    assert kernels > fewer + 5
    assert programs <= few + 3


def test_the_second_step_of_training_plans_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[int] = []
    plan = kernelize.plan
    monkeypatch.setattr(kernelize, "plan", lambda *args: plans.append(1) or plan(*args))
    layer = nn.LSTM(3, 5)
    optimizer = nn.optim.Adam(get_parameters(layer), 0.1)
    x = sequence(3)
    with Tensor.train():
        trained(layer, optimizer, x)
        plans.clear()
        for _ in range(3):
            trained(layer, optimizer, x)
    assert not plans


def turns_of(layer: Any, x: Tensor) -> dict[str, int]:
    """How many kernels a turn of each loop of a step of training has."""
    found: dict[str, int] = {}
    optimizer = nn.optim.SGD(get_parameters(layer), 0.1)

    def note(item: Any, *_: Any) -> None:
        plan = record_of(item.ast, LoopPlan)
        if plan is not None:
            found[plan.name] = len(plan.launches)

    with Tensor.train(), observe_kernels(note):
        trained(layer, optimizer, x)
    return found


@pytest.mark.choice
def test_a_turn_of_a_recurrence_is_few_kernels() -> None:
    # forwards the product with the state, and the gates; backwards the gates, their join, the product, and
    # the state, which the product of all turns will need: short ones may be nests of one kernel
    x = Tensor(np.random.RandomState(0).randn(3, 16, 32).astype(np.float32)).realize()
    found = turns_of(nn.LSTM(32, 128), x)
    assert found["scan"] == 2
    assert found["scan_grad"] in (3, 4)

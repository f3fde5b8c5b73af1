"""The steps of a loop that was written out are one kernel, called with the places that each reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lazygrad import Tensor, TinyJit, nn
from lazygrad.nn.state import get_parameters
from lazygrad.programs import runners


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The kernels that are asked for, each once."""
    seen: dict[Any, None] = {}
    get_runner = runners.get_runner

    def spy(device: str, ast: Any) -> Any:
        seen[ast] = None
        return get_runner(device, ast)

    monkeypatch.setattr("lazygrad.engine.realize.get_runner", spy)
    return seen  # type: ignore[return-value]


def unrolled(x: Tensor, steps: int) -> Tensor:
    state = x[0]
    for time in range(1, steps):
        state = (state * 0.5 + x[time]).contiguous()
    return state


@pytest.mark.choice
def test_steps_that_read_another_part_are_one_kernel(compiled: Any) -> None:
    values = np.random.RandomState(0).randn(9, 4).astype(np.float32)
    wanted = values[0]
    for line in values[1:]:
        wanted = wanted * np.float32(0.5) + line
    found = unrolled(Tensor(values).realize(), 9)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-6)
    assert len(compiled) <= 3


@pytest.mark.choice
def test_a_few_kernels_keep_their_places(compiled: Any) -> None:
    unrolled(Tensor(np.ones((3, 5), np.float32)).realize(), 3).realize()
    assert len(compiled) == 2


def test_the_kernels_of_a_long_sequence_are_as_many_as_those_of_a_short_one(compiled: Any) -> None:
    layer = nn.GRU(3, 4)
    Tensor.realize(*get_parameters(layer))
    counts = []
    for length in (6, 16):
        compiled.clear()
        layer(Tensor(np.ones((length, 2, 3), np.float32)))[0].realize()
        counts.append(len(compiled))
    assert counts[1] - counts[0] <= 3  # the results of more steps are joined in more rounds
    assert counts[0] < 12


def test_a_jit_keeps_the_place_of_each_step() -> None:
    layer = nn.LSTM(3, 4)
    run = TinyJit(lambda x: layer(x)[0].realize())
    for seed in range(4):
        x = Tensor(np.random.RandomState(seed).randn(8, 2, 3).astype(np.float32)).realize()
        np.testing.assert_allclose(run(x).numpy(), layer(x)[0].numpy(), rtol=1e-5, atol=1e-6)

"""Copies of a model on several ranks that are not equal are an error on all of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from lazygrad import Tensor, nn
from lazygrad.device.world import World, set_world
from lazygrad.distributed import Mesh
from lazygrad.engine import collectives
from lazygrad.nn import copies, parallel


class Others:
    """What the other rank says of its copies: what this one does, but for some tensors."""

    def __init__(self) -> None:
        self.differ: tuple[str, ...] = ()
        self.said: list[dict[str, str]] = []

    def __call__(self, value: dict[str, str]) -> list[Any]:
        self.said.append(value)
        return [value, {name: "another" if name in self.differ else each for name, each in value.items()}]


@pytest.fixture
def others(monkeypatch: pytest.MonkeyPatch) -> Iterator[Others]:
    monkeypatch.setattr(copies, "_watch", copies._Watch())
    monkeypatch.setattr(collectives, "after_sending", [])
    monkeypatch.setattr(copies, "after_sending", collectives.after_sending)
    made = Others()
    before = set_world(World(0, 2, None, gather=made))
    yield made
    set_world(before)


MESH = Mesh(2, "data", ("CPU", "CPU:1"))


def test_equal_copies_are_compared_at_the_start(others: Others) -> None:
    parallel.data_parallel(nn.Linear(2, 3), MESH)
    assert [sorted(said) for said in others.said] == [["'bias'", "'weight'"]]


@pytest.mark.parametrize("divide", [parallel.data_parallel, parallel.fully_sharded])
def test_copies_that_begin_apart_are_an_error(others: Others, divide: Any) -> None:
    others.differ = ("'bias'",)
    said = r"rank 1 has other numbers than rank 0 in 'bias', before .* same seed \(Tensor.manual_seed"
    with pytest.raises(RuntimeError, match=said):
        divide({"bias": Tensor.rand(1), "weight": Tensor.rand(2, 2)}, MESH)


def test_what_is_split_is_not_computed_to_be_compared(others: Others) -> None:
    weight = Tensor.rand(4, 2)
    parallel.fully_sharded({"weight": weight}, MESH)
    assert others.said == [{}]


def test_copies_are_compared_again_and_again(others: Others, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "EVERY", 3)
    model = nn.Linear(2, 3)
    parallel.data_parallel(model, MESH)
    model.weight.realize()
    for _ in range(5):
        collectives.note_sent()
    assert [sorted(said) for said in others.said[1:]] == [["'weight'"]]
    others.differ = ("'weight'",)
    with pytest.raises(RuntimeError, match=r"rank 0 in 'weight', after 6 runs in which ranks sent"):
        collectives.note_sent()


def test_of_a_model_that_is_gone_the_others_are_still_heard(
    others: Others, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "EVERY", 1)
    parallel.data_parallel({"weight": Tensor.rand(2)}, MESH)
    collectives.note_sent()
    assert others.said[-1] == {}

"""What ranks send each other, as it is planned: nothing is sent here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lazygrad import Tensor
from lazygrad.device.world import World, set_world
from lazygrad.distributed import Mesh
from lazygrad.ir.args import CollectiveArg
from lazygrad.ir.ops import Ops
from lazygrad.schedule.between_ranks import messages_between


@pytest.fixture
def rank_1_of_3() -> Iterator[None]:
    before = set_world(World(1, 3))
    yield
    set_world(before)


def sent(function: Callable[[Tensor], Tensor]) -> list[CollectiveArg]:
    """What the second rank sends and receives for a function of six rows, of which each has two."""
    x = Tensor.empty(6, 4, device="CPU:1").shard(Mesh(3, "data"), {0: "data"}).realize()
    return [item.ast.arg for item in function(x).contiguous().schedule() if item.ast.op is Ops.COLLECTIVE]


#: What is done with it → kind, whose device comes first, what is sent (elements), what is received.
SENDS: dict[str, tuple[Callable[[Any], Any], list[Any]]] = {
    "a row that another has": (lambda x: x[5] + x, [("broadcast", "CPU:2", (), (4,))]),
    "a row of its own": (lambda x: x[3] + x, [("broadcast", "CPU:1", ((4, 8),), ())]),
    "what the devices have": (lambda x: x.pad(((1, 0), (0, 0))), []),
    "flipped": (lambda x: x.flip(0), [("send", "CPU", ((0, 0), (0, 8), (0, 0)), (0, 8, 0))]),
    "shifted": (
        lambda x: x.pad(((1, 0), (0, 0)))[:6],
        [("send", "CPU", ((0, 0), (0, 4), (4, 8)), (4, 4, 0))],
    ),
    "all of it": (lambda x: x.cumsum(0), [("all_gather", "CPU", ((0, 8),), (8, 8, 8))]),
}


@pytest.mark.usefixtures("rank_1_of_3")
@pytest.mark.parametrize("name", SENDS)
def test_what_moves_is_sent(name: str) -> None:
    function, expected = SENDS[name]
    found = [(arg.kind, arg.group[0], arg.sends, arg.receives) for arg in sent(function)]
    assert found == expected


def test_messages_are_what_one_has_and_another_wants() -> None:
    assert messages_between([(0, 3), (3, 3), (3, 5)], [(0, 4), (2, 3), (0, 0)]) == [(2, 0, 1), (0, 1, 1)]

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
from lazygrad.shape.rules import shape_of
from lazygrad.sharding.between_ranks import messages_between
from lazygrad.sharding.collectives import moved_along
from lazygrad.sharding.multi import value_of


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


@pytest.mark.usefixtures("rank_1_of_3")
def test_who_wants_nothing_of_what_nobody_sends_gets_nothing() -> None:
    x = Tensor.empty(6, 4, device="CPU:1").shard(Mesh(3, "data"), {0: "data"}).realize()
    moved = moved_along(value_of(x.uop), 0, [(0, 0), (0, 0), (4, 6)])
    assert [shape_of(part) for part in moved.src] == [(0, 4)]


@pytest.fixture
def rank_1_of_2_with_two_devices() -> Iterator[None]:
    before = set_world(World(1, 2, each=2))
    yield
    set_world(before)


def planned(sizes: tuple[int, ...], split: dict[int, str], function: Callable[[Tensor], Tensor]) -> list[Any]:
    """What the second rank sends, which has CPU:2 and CPU:3 of a mesh with axes a, b, ..."""
    x = Tensor.empty(8, 4, device="CPU:2").shard(Mesh(sizes, tuple("abc")[: len(sizes)]), split).realize()
    sent = [item.ast.arg for item in function(x).contiguous().schedule() if item.ast.op is Ops.COLLECTIVE]
    return [(arg.kind, arg.group, arg.sends) for arg in sent]


@pytest.mark.usefixtures("rank_1_of_2_with_two_devices")
def test_the_devices_of_a_rank_take_part_as_one() -> None:
    def total(x: Tensor) -> Tensor:
        return x.sum(0).exp()

    assert planned((4,), {0: "a"}, total) == [("all_reduce", ("CPU", "CPU:2"), ((0, 4),))]
    assert planned((4,), {0: "a"}, lambda x: x.cumsum(0)) == [("all_gather", ("CPU", "CPU:2"), ((0, 16),))]
    pairs = [("CPU", "CPU:2"), ("CPU:1", "CPU:3")]
    assert planned((2, 2), {0: "a"}, total) == [("all_reduce", pair, ((0, 4),)) for pair in pairs]
    assert planned((2, 2), {0: "b"}, total) == []  # they have all of it


@pytest.mark.usefixtures("rank_1_of_2_with_two_devices")
def test_a_rank_has_a_block_of_the_mesh() -> None:
    x = Tensor.empty(8, 4, device="CPU:2")
    apart = Mesh(4, "a", ("CPU", "CPU:2", "CPU:1", "CPU:3"))
    with pytest.raises(NotImplementedError, match="the devices of a rank are not side by side"):
        x.shard(apart, {0: "a"}).sum(0).exp().schedule()
    set_world(World(1, 2, each=3))
    with pytest.raises(NotImplementedError, match="3 x 2 devices where each rank has 3: they are no block"):
        Tensor.empty(6, 4, device="CPU:3").shard(Mesh((3, 2), ("a", "b")), {0: "a"}).sum(0).exp().schedule()


def test_messages_are_what_one_has_and_another_wants() -> None:
    assert messages_between([(0, 3), (3, 3), (3, 5)], [(0, 4), (2, 3), (0, 0)]) == [(2, 0, 1), (0, 1, 1)]

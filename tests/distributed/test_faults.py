"""What rank 0 finds wrong with what it hears of the ranks, without any."""

from __future__ import annotations

import sys
import threading
import types
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from lazygrad.device.world import World, set_world
from lazygrad.dtype import dtypes
from lazygrad.engine import collectives
from lazygrad.ir.args import CollectiveArg
from lazygrad.ir.ops import Ops
from lazygrad.ir.uop import UOp
from lazygrad.runtime._side_channel import Rank, SideChannel, Vote, differ, find_fault
from lazygrad.sharding import plan_agreement
from tests.helpers import PATIENCE


def rank(number: int, **facts: Any) -> Rank:
    """A rank that was heard of and went on at second 100, but for what is given."""
    made = Rank(number, f"h{number}", 10 + number)
    made.heard = made.changed = 100.0
    for name, value in facts.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize(
    ("facts", "fault"),
    [
        ([{}, {}], None),
        ([{"changed": 0.0}, {"changed": 0.0}], None),  # they compute
        ([{"waiting": "a", "changed": 95.0}, {}], None),  # the other one does something
        ([{"waiting": "a", "changed": 80.0}, {"changed": 99.0}], None),
        ([{}, {"heard": 91.0}], "rank 1 (host h1, process 11) has not been heard of for 8 s"),
        ([{"waiting": "a", "changed": 91.0}, {"changed": 91.0}], "rank 1 (host h1, process 11) hangs"),
        ([{"waiting": "a", "changed": 98.0}, {"ended": True}], "rank 1 (host h1, process 11) has ended"),
        ([{"ended": True, "heard": 1.0}, {}], None),
        (
            [{"waiting": "a", "changed": 97.0}, {"waiting": "b", "changed": 97.0}],
            "wait, for different things",
        ),
        # nobody knows what a rank does that was not heard of since: it may have got no core to say so
        ([{"waiting": "a", "changed": 90.0}, {"waiting": "b", "changed": 94.0, "heard": 94.5}], None),
        ([{"waiting": "a", "changed": 97.0}, {"waiting": "a", "changed": 97.0}], None),  # a large message
        ([{"waiting": "a", "changed": 50.0}, {"waiting": "a", "changed": 50.0}], "no message has come"),
    ],
)
def test_what_is_a_fault(facts: list[dict[str, Any]], fault: str | None) -> None:
    found = find_fault([rank(number, **each) for number, each in enumerate(facts)], 100.0, 8.0)
    assert found is None if fault is None else fault in str(found)


def test_ranks_compare_what_all_do_and_what_their_groups_do() -> None:
    rows, columns = {"0,1": "a", "0,2": "c"}, {"0,1": "a", "1,3": "d"}
    assert not differ(0, Vote("plan", "x", rows), 1, Vote("plan", "x", columns))
    assert differ(0, Vote("plan", "x", rows), 1, Vote("plan", "y", columns))
    assert differ(0, Vote("plan", "x", rows), 1, Vote("plan", "x", {"0,1": "b"}))
    assert differ(0, Vote("plan", "x", rows), 1, Vote("plan", "x", {}))


def test_a_plan_is_said_each_time_and_waited_for_when_it_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collectives, "_agreed", set())
    asked: list[tuple[str, Any]] = []
    waited: list[bool] = []

    def agree(what: str, digest: bytes, groups: Any, waits: bool) -> None:
        asked.append((what, groups))
        waited.append(waits)

    before = set_world(World(0, 2, None, agree))
    try:
        arg = CollectiveArg("all_reduce", Ops.ADD, ("CPU", "CPU:1"), 0, ((0, 4),), (4,), (4,))
        plan = [UOp(Ops.COLLECTIVE, dtypes.float, (), arg)]
        collectives.agree(plan)
        collectives.agree(plan)
        assert waited == [True, False]
        assert "with 1 collectives (all_reduce of dtypes.float (4,))" in asked[0][0]
        assert list(asked[0][1]) == [(0, 1)]
        plan_agreement.note_planned(b"another graph with the same collective")
        collectives.agree(plan)
        collectives.agree([UOp(Ops.COLLECTIVE, dtypes.float, (), arg._replace(receives=(5,)))])
        assert waited == [True, False, True, True]
    finally:
        set_world(before)


# ---- channels of two ranks, in one process


class Pair:
    """What MPI does for two ranks that are threads, as far as a SideChannel asks for it."""

    def __init__(self) -> None:
        self.barrier = threading.Barrier(2, timeout=PATIENCE)
        self.said: list[Any] = [None, None]

    def allgather(self, rank: int, value: Any) -> list[Any]:
        self.said[rank] = value
        self.barrier.wait()
        found = list(self.said)
        self.barrier.wait()
        return found


def transport_of(pair: Pair, rank: int) -> Any:
    """A transport on which nothing is begun: only `begun` is looked at."""
    comm = types.SimpleNamespace(
        allgather=lambda value: pair.allgather(rank, value),
        bcast=lambda value: pair.allgather(rank, value)[0],
        Barrier=pair.barrier.wait,
    )
    made = types.SimpleNamespace(comm=comm, rank=rank, size=2, waiting=None, last="none", steps=0, begun=0)
    made.waits_elsewhere, made.is_busy, made.advance = (lambda: None), False, (lambda: None)
    return made


@pytest.fixture
def channels() -> Iterator[Any]:
    """Makes the channels of two ranks: (a time limit) → (both, what ended all processes)."""
    made: list[SideChannel] = []

    def make(timeout: float) -> tuple[list[SideChannel], list[int]]:
        pair, ends = Pair(), list[int]()

        def end(rank: int) -> None:
            ends.append(rank)
            sys.exit()  # of its thread, in the place of the process

        def start(rank: int) -> SideChannel:
            return SideChannel(transport_of(pair, rank), timeout, lambda: 0, lambda: end(rank))

        with ThreadPoolExecutor(2) as pool:
            made.extend(pool.map(start, range(2)))
        return made, ends

    yield make
    for channel in made:
        channel._ended = True
        for connection in channel._sockets.values():
            connection.close()


def test_what_one_rank_knows_and_another_does_not_is_agreed_on(channels: Any) -> None:
    """A rank that has a plan goes on, one to which it is new does, too; and one that replays says nothing."""
    (first, second), ends = channels(PATIENCE)
    first.agree("a plan", b"1", {}, False)
    second.agree("a plan", b"1", {}, True)
    first.transport.begun = second.transport.begun = 1
    first.transport.begun = 2  # a replay
    first._beat()
    second.agree("the same plan", b"2", {}, True)
    assert not ends


def test_ranks_that_have_ended_may_still_write(channels: Any) -> None:
    """VIZ_SAVE writes at a process's end: for longer than the limit, on a busy machine."""
    (first, second), ends = channels(0.5)
    with ThreadPoolExecutor(1) as pool:
        closing = pool.submit(first.close)
        second.close()
        closing.result()
    second._thread.join(PATIENCE)
    assert not second._thread.is_alive()
    assert (ends, second.fault) == ([], None)

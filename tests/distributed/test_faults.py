"""What rank 0 finds wrong with what it hears of the ranks, without any."""

from __future__ import annotations

from typing import Any

import pytest

from lazygrad.device.world import World, set_world
from lazygrad.dtype import dtypes
from lazygrad.engine import collectives
from lazygrad.ir.args import CollectiveArg
from lazygrad.ir.ops import Ops
from lazygrad.ir.uop import UOp
from lazygrad.runtime._side_channel import Rank, Vote, differ, find_fault
from lazygrad.schedule import alike


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


def test_a_plan_is_compared_when_it_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collectives, "_agreed", set())
    asked: list[tuple[str, Any]] = []
    before = set_world(World(0, 2, None, lambda what, digest, groups: asked.append((what, groups))))
    try:
        arg = CollectiveArg("all_reduce", Ops.ADD, ("CPU", "CPU:1"), 0, ((0, 4),), (4,), (4,))
        plan = [UOp(Ops.COLLECTIVE, dtypes.float, (), arg)]
        collectives.agree(plan)
        collectives.agree(plan)  # a replay
        assert len(asked) == 1
        assert "with 1 collectives (all_reduce of dtypes.float (4,))" in asked[0][0]
        assert list(asked[0][1]) == [(0, 1)]
        alike.note_planned(b"another graph with the same collective")
        collectives.agree(plan)
        assert len(asked) == 2
    finally:
        set_world(before)

"""Graphs are planned again when the script has ended, as they were, with what each pass changed."""

from __future__ import annotations

import numpy as np
import pytest

from lazygrad import Tensor
from lazygrad.viz.planning import add_plans
from tests.viz.test_session import session_of


def planned(work) -> dict:
    session = session_of(work)
    rows = session.rows()
    add_plans(rows, session, 60)
    return rows


def test_a_plan_is_what_ran():
    weights = Tensor(np.ones((8, 8), np.float32)).realize()

    def update() -> None:
        before = weights.sum(1)  # reads what the update is about to overwrite, and is planned with it
        weights.assign(weights * 0.5 + before.exp().sum()).realize()
        before.tolist()

    rows = planned(update)
    assert sorted(n for plan in rows["plans"] for n in plan["plans"]) == sorted(
        {item["plan"] for item in rows["items"]}
    )
    assert "add readers" in str([step["heading"] for plan in rows["plans"] for step in plan["steps"]])
    for item in rows["items"]:
        said = [rows["without"][n] for n in item["without"]]
        assert [one["refused"] == "no other kernel of this plan reads it" for one in said] == [
            end[1] == 0 for end in item["ends"]
        ]


@pytest.mark.choice
def test_changed_nodes_are_marked_though_all_numbers_change():
    x = Tensor(np.ones((4, 8), np.float32)).realize()
    rows = planned(lambda: (x.detach() * 2).exp().sum().item())
    (plan,) = rows["plans"]
    made = next(step for step in plan["steps"] if "after make plain" in step["heading"])
    told = [f"{mark} {line.split()[1]}" for mark, line in made["lines"] if mark != " "]
    assert told == ["- DETACH", "- MUL", "+ MUL"]
    rule = next(step for step in plan["steps"] if step["rule"])
    assert "DETACH" in rule["rule"]
    assert rule["place"].startswith("lazygrad/schedule/rewrite/plain.py:")


def test_without_time_nothing_is_planned_again():
    x = Tensor(np.ones((4, 8), np.float32)).realize()
    session = session_of(lambda: (x + 1).tolist())
    rows = session.rows()
    add_plans(rows, session, -1)
    assert rows["plans"] == []
    assert rows["left_out"]["plans"] == 1

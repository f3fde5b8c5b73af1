"""Which tests a run plays: quick ones, shares of rows and of slow ones, parts, what was not played before."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests import shares
from tests.conftest import Played


class Item:
    """What is asked of a test: its id, its parameters, whether it has the mark `slow`."""

    def __init__(self, nodeid: str, slow: bool = False, **params: object) -> None:
        self.nodeid, self.slow = nodeid, slow
        if params:
            self.callspec = SimpleNamespace(params=params)

    def get_closest_marker(self, name: str) -> object:
        return True if self.slow else None

    def add_marker(self, mark: Any) -> None:
        self.slow = True


ROWS = "tests/tensor/test_torch.py::test_rows"


@pytest.fixture(autouse=True)
def one_row_in_five(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(shares.LISTED, ROWS, 5)


def rows(count: int) -> list[Any]:
    return [Item(f"{ROWS}[{n}]", row=n) for n in range(count)]


def played(items: list[Any], share: str | None = None, but_for: str | None = None) -> set[str]:
    out = shares.left_out(items, share, but_for)
    return {item.nodeid for item in items if item not in out}


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FUZZ_SEED", raising=False)
    monkeypatch.delenv("EXHAUSTIVE", raising=False)


def test_parts_have_each_test_once():
    ids = [f"tests/test_a.py::test_{n}" for n in range(200)]
    parts = [played([Item(each) for each in ids], f"{part}/7") for part in range(7)]
    assert sorted(each for part in parts for each in part) == sorted(ids)
    assert all(10 < len(part) < 60 for part in parts)


@pytest.mark.parametrize("share", ["7/7", "1", "-1/3", "1/0", "a/b"])
def test_a_part_that_is_none_is_refused(share):
    with pytest.raises(pytest.UsageError, match="is not I/N"):
        shares.left_out([], share, None)


def test_one_row_in_five_is_quick_and_half_of_the_others_are_played(monkeypatch):
    items = rows(2000)
    left = played(items)
    slow = {item.nodeid for item in items if item.slow}
    assert 300 < 2000 - len(slow) < 500
    assert 700 < len(left & slow) < 900
    monkeypatch.setenv("EXHAUSTIVE", "1")
    assert len(played(rows(2000))) == 2000


def test_seeds_draw_others_until_all_are_drawn(monkeypatch):
    found = set()
    for seed in range(200):
        monkeypatch.setenv("FUZZ_SEED", str(seed))
        found |= played(rows(50))
    assert len(found) == 50


@pytest.mark.parametrize(
    ("item", "one_in"),
    [
        (Item("tests/test_a.py::test_b"), 0),
        (Item("tests/test_a.py::test_b[3]", slow=True, n=3), shares.ALL),
        (Item("tests/torch/test_op_info.py::test_b[x]", slow=True, n=3), shares.ROWS),
        (Item("tests/codegen/test_scan.py::test_values[3]", n=3), shares.ALL),
        (Item("tests/device/test_every_device.py::test_a_type[x]", slow=True, n=3), shares.DEVICES),
    ],
)
def test_of_how_many_tests_one_is_played(item, one_in):
    assert shares.one_in(item, "0") == one_in


def test_what_another_run_has_played_is_left_out(tmp_path):
    file = tmp_path / "played"
    plugin = Played(file)
    for name, when, skipped in (
        ("a", "setup", False),
        ("a", "call", False),
        ("b", "setup", True),
        ("c", "call", True),
    ):
        plugin.pytest_runtest_logreport(SimpleNamespace(nodeid=name, when=when, skipped=skipped))
    plugin.pytest_sessionfinish()
    assert played([Item(name) for name in "abc"], but_for=str(file)) == {"b", "c"}

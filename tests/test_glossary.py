"""docs/glossary.md: every name of ours in it exists."""

from __future__ import annotations

import importlib
import re
from typing import Any

import pytest

from tests.helpers import ROOT

PAGE = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
NAMES = sorted(set(re.findall(r"`(lazygrad(?:\.\w+)+)`", PAGE)))


def find(name: str) -> Any:
    """The module or the member of that name; AttributeError where there is none."""
    parts = name.split(".")
    found = importlib.import_module(parts[0])
    for count, part in enumerate(parts[1:], 2):
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = importlib.import_module(".".join(parts[:count]))
            except ModuleNotFoundError:
                raise AttributeError(f"{name}: {found!r} has no {part}") from None
    return found


@pytest.mark.parametrize("name", NAMES)
def test_the_name_exists(name):
    find(name)


def test_a_name_that_does_not_exist_is_noticed():
    with pytest.raises(AttributeError, match="has no nothing"):
        find("lazygrad.ir.nothing")


def test_every_row_has_two_cells():
    rows = [line for line in PAGE.splitlines() if line.startswith("|")]
    assert len(rows) > 50
    assert all(line.count("|") == 3 for line in rows)

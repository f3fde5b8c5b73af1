"""The table of decisions is what the documentation lists, and what the code asks for."""

from __future__ import annotations

import re

from lazygrad.decisions import DECISIONS
from tests.helpers import ROOT

ASKED = re.compile(r'\b(?:decide|yes_or_no)\(\s*"(\w+)"')


def test_the_page_lists_every_decision():
    page = (ROOT / "docs" / "internals" / "decisions.md").read_text(encoding="utf-8")
    rows = [f"| `{each.name}` | {each.asks} | {each.answers} |" for each in DECISIONS.values()]
    assert [line for line in page.splitlines() if line.startswith("| `")] == rows


def test_every_decision_is_asked_for_and_no_other():
    asked = set()
    for file in (ROOT / "lazygrad").rglob("*.py"):
        asked.update(ASKED.findall(file.read_text(encoding="utf-8")))
    assert asked == set(DECISIONS)

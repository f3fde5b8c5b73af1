"""Every numbered line of the checklist has a test that carries its number, or a reason why not."""

from __future__ import annotations

import re
from pathlib import Path

#: Lines without a test, and what they wait for.
WAITING = {
    147: "the example that chats with a language model",
}


def covered() -> set[int]:
    found: set[int] = set()
    for path in Path(__file__).parent.glob("test_*.py"):
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.M):
            numbers = [int(number) for number in re.findall(r"_S(\d+)", name)]
            found.update(range(numbers[0], numbers[-1] + 1) if "_to_" in name else numbers)
    return found


def test_every_line_has_a_test():
    assert set(range(1, 151)) - covered() == set(WAITING)

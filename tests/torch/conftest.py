"""What tests of `torch.compile` look into."""

from __future__ import annotations

from typing import Any

import pytest

from tests.torch.support import door


@pytest.fixture
def made(monkeypatch) -> list[Any]:
    """What is made to be replayed, in order."""
    found: list[Any] = []
    plain = door.replay.Replayed.__init__

    def noted(self: Any, *args: Any) -> None:
        plain(self, *args)
        found.append(self)

    monkeypatch.setattr(door.replay.Replayed, "__init__", noted)
    return found

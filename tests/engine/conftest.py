"""What tests of running share."""

from __future__ import annotations

import pytest

from lazygrad.engine import realize


@pytest.fixture
def interrupted(monkeypatch):
    """Ctrl-C once, in place of the n-th thing that runs."""

    def interrupt(at: int) -> None:
        run = realize._run
        count = 0

        def once(*item) -> None:
            nonlocal count
            count += 1
            if count == at:
                raise KeyboardInterrupt
            return run(*item)

        monkeypatch.setattr(realize, "_run", once)

    return interrupt

"""`tinygrad` is lazygrad within a test that asks for it, and nothing afterwards."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lazygrad.compat import aliases


@pytest.fixture
def installed() -> Iterator[None]:
    aliases.install()
    yield
    aliases.uninstall()

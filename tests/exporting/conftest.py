"""One browser for all tests of pages, and functions that are shown in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import lazygrad
from tests.exporting.browser import WEBGPU, Exported, Shown, chromium, playwright, served


@pytest.fixture(scope="session")
def started() -> Iterator[Any]:
    with playwright() as found:
        yield found


@pytest.fixture(scope="session")
def browser(started) -> Iterator[Any]:
    with chromium(started, *WEBGPU) as opened:
        yield opened


@pytest.fixture
def exported(browser, tmp_path):
    """Exports a function and shows its page, in which nothing may be wrong."""
    shown: list[Shown] = []

    with served(tmp_path) as address:

        def export(fn, *args):
            lazygrad.export(fn, args, f"{tmp_path}/page{len(shown)}/")
            made = Exported(browser, f"{address}page{len(shown)}/index.html")
            shown.append(made.shown)
            return made

        yield export
        for page in shown:
            assert page.errors == []
            page.page.close()

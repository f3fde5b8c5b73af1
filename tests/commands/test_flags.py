"""The list of flags, and the page that is made of it."""

from __future__ import annotations

from lazygrad import Context
from lazygrad.__main__ import main
from lazygrad.commands.flags import markdown
from lazygrad.config import ContextVar
from tests.helpers import ROOT


def test_the_page_is_the_one_that_the_flags_give():
    page = (ROOT / "docs" / "env_vars.md").read_text(encoding="utf-8")
    assert page == markdown() + "\n", "python -m lazygrad flags --markdown > docs/env_vars.md"


def test_flags_are_listed_with_what_they_are_here(capsys):
    with Context(DEBUG=1, CC="my-cc"):
        assert main(["flags"]) == 0
    rows = dict(line.split(None, 2)[:2] for line in capsys.readouterr().out.splitlines())
    assert set(rows) == set(ContextVar.all)
    assert (rows["DEBUG"], rows["CC"]) == ("1", "my-cc")


def test_the_page_is_printed(capsys):
    assert main(["flags", "--markdown"]) == 0
    assert capsys.readouterr().out == markdown() + "\n"

"""docs/compat.md: the flags are those of the table, and what it says is not there is not there."""

from __future__ import annotations

import importlib
import re

import pytest

from lazygrad.compat.flags import ABSENT
from tests.helpers import ROOT

PAGE = (ROOT / "docs" / "compat.md").read_text(encoding="utf-8")
MISSING = re.findall(r"^\| `(tinygrad\.[\w.]+)` \|", PAGE, re.MULTILINE)


def test_the_flags():
    rows = {}
    for name, values, meaning in re.findall(
        r"^\| `([A-Z_0-9]+)` \| ([-\d, ]+) \| (.*) \|$", PAGE, re.MULTILINE
    ):
        rows[name] = [int(value) for value in values.split(",")], meaning
    assert rows == {
        name: (sorted({0, value, *same}), meaning) for name, (value, same, meaning) in ABSENT.items()
    }


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("name", MISSING)
def test_what_is_not_there(name):
    path, _, last = name.rpartition(".")
    with pytest.raises(ModuleNotFoundError, match="is not one of the paths that are served"):
        importlib.import_module(name)
    with pytest.raises(AttributeError, match=f"has no '{last}' here"):
        getattr(importlib.import_module(path), last)


def test_some_are_named():
    assert len(MISSING) > 10

"""docs/pytorch_names.md is what docs/writers/torch_names.py finds, and what it calls there is there."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from typing import Any

import pytest

from tests.helpers import ROOT, needs, require

pytestmark = needs("torch")
PAGE = (ROOT / "docs" / "pytorch_names.md").read_text("utf-8")


def writer() -> Any:
    folder = str(ROOT / "docs")
    if folder not in sys.path:
        sys.path.append(folder)
    return importlib.import_module("writers.torch_names")


def on_the_page() -> dict[tuple[str, str], str]:
    """(namespace, PyTorch's name) → the path here or the reason why not, as the page has it."""
    said: dict[tuple[str, str], str] = {}
    for part in PAGE.split("\n## ")[1:]:
        theirs, _, text = part.partition("\n")
        for line in text.splitlines():
            if there := re.fullmatch(r"There, as `(.*)…`: (.*)\.", line):
                said |= {(theirs, name): there[1] + name for name in there[2].split(", ")}
            elif (row := re.fullmatch(r"\| (\w.*) \| (.*) \|", line)) and row[2] not in ("here", "why"):
                path = row[2].strip("`") if re.fullmatch(r"`[\w.]+`", row[2]) else row[2]
                said |= {(theirs, name): path for name in row[1].split(", ")}
    return said


def test_the_page_is_what_the_names_are() -> None:
    """Of the names that it and the installed PyTorch share; all of it, where it is of that release."""
    names, said = writer(), on_the_page()
    now = {(theirs, row.name): row.ours or row.why for theirs in names.SPACES for row in names.rows(theirs)}
    shared = said.keys() & now.keys()
    assert len(shared) > 1000
    wrong = {key: (said[key], now[key]) for key in shared if said[key] != now[key]}
    assert wrong == {}, "run: python docs/generate.py names"
    release = re.search(r"PyTorch (\d+\.\d+)", PAGE)
    assert release
    if require("torch").__version__.startswith(f"{release[1]}."):
        assert names.page() == PAGE, "run: python docs/generate.py names"


def test_what_is_there_under_another_name_can_be_had() -> None:
    names = writer()
    for theirs, renamed in names.OTHERWISE.items():
        public = {row.name for row in names.rows(theirs)}
        assert set(renamed) <= public, f"{theirs} has not {set(renamed) - public}"
        for path in renamed.values():
            assert names.found_at(path) is not None


def test_no_reason_is_given_for_what_is_there() -> None:
    names = writer()
    for theirs, space in names.SPACES.items():
        ours = names.found_at(space.ours)
        assert [row.name for row in names.rows(theirs) if row.why and hasattr(ours, row.name)] == []


def test_every_reason_is_of_some_name() -> None:
    names = writer()
    said = {row.why for theirs in names.SPACES for row in names.rows(theirs)}
    assert [why for _, why in names.REASONS if why not in said] == []


@pytest.mark.parametrize("theirs", ["torch.nn.functional", "torch.nn", "torch.optim"])
def test_functions_take_the_first_arguments_of_torch(theirs: str) -> None:
    """By position: what PyTorch's Python functions and layers take first, ours take first under that name."""
    names = writer()
    module: Any = require("torch")
    for part in theirs.split(".")[1:]:
        module = getattr(module, part)
    different = {}
    for row in names.rows(theirs):
        if row.ours != f"{names.SPACES[theirs].ours}.{row.name}":
            continue
        try:
            wanted = list(inspect.signature(getattr(module, row.name)).parameters)
            found = list(inspect.signature(names.found_at(row.ours)).parameters)
        except (TypeError, ValueError):  # written in C++
            continue
        if {"args", "kwargs", "size_average"} & {*wanted, *found}:  # the last was a reduction, long ago
            continue
        if wanted[:1] != found[:1]:
            different[row.name] = (wanted[:1], found[:1])
    assert different == {}

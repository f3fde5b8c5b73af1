"""docs/tensor.md and docs/coverage.md are what docs/generate.py writes."""

from __future__ import annotations

import importlib.util
import re
from typing import Any

import pytest

from tests.helpers import ROOT, needs


def generator() -> Any:
    spec = importlib.util.spec_from_file_location("generate_docs", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text("utf-8")


def test_the_methods_are_those_of_the_code() -> None:
    assert page("tensor.md") == generator().tensor_page(), "run: python docs/generate.py"


def rows(text: str) -> list[str]:
    """The rows of methods, without the tests that call them."""
    return re.findall(r"^\| (\w+ \| [^|]* \| [^|]*) \| [^|]* \|$", text, re.M)


def test_the_coverage_has_every_method() -> None:
    assert [row.split(" ")[0] for row in rows(page("coverage.md"))][1:] == list(generator().methods())


@needs("torch")
@pytest.mark.slow
def test_the_coverage_is_current() -> None:
    assert rows(page("coverage.md")) == rows(generator().coverage_page()), "run: python docs/generate.py"

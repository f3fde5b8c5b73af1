"""What the pages say of files holds: the code that they name is where they say it is.

On every page, "`name` (`file.py`)" and "`file.py`, `name`" in parentheses say that the file binds the name. A
section of docs/tour.md whose heading names a file says so of each name in it that no other file is given for.
On docs/design.md and docs/tour.md every name occurs somewhere in the package, and every folder is one of it.
"""

from __future__ import annotations

import ast
import functools
import keyword
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers import ROOT

PACKAGE = ROOT / "lazygrad"
DESIGN, TOUR = ROOT / "docs" / "design.md", ROOT / "docs" / "tour.md"
PAGES = [ROOT / "README.md", *sorted(p for p in (ROOT / "docs").rglob("*.md") if p.parent.name != "tensor")]

NAME = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"
#: A name as a page writes it: alone, or as a call.
CODE_NAME = re.compile(rf"({NAME})(?:\(.*\))?$", re.S)
FILE = r"`([\w/]+\.py)`"


def prose_of(text: str) -> str:
    """A page without its blocks."""
    return re.sub(r"^ *(```+).*?^ *\1", "", text, flags=re.M | re.S)


def names_in(text: str) -> list[str]:
    """What stands in backticks and is a name: no expression, no path."""
    found = (CODE_NAME.match(code) for code in re.findall(r"`([^`]+)`", text))
    names = [match[1] for match in found if match and not keyword.iskeyword(match[1])]
    return [name for name in names if not name.endswith((".py", ".md", ".pyi"))]


def file_named(path: str) -> Path | None:
    """The file that the end of a path names: in the package if it is there, else in the checkout."""
    parts = tuple(path.split("/"))
    for folder in (PACKAGE, ROOT / "docs", ROOT / "bench", ROOT / "tests"):
        found = [each for each in sorted(folder.rglob(parts[-1])) if each.parts[-len(parts) :] == parts]
        if found:
            return min(found, key=lambda each: len(each.parts))
    return None


@functools.cache
def bound_in(path: Path) -> frozenset[str]:
    """The names that a file binds itself: functions, classes, arguments, what is assigned. No imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.id if isinstance(node, ast.Name) else node.attr)
    return frozenset(found)


def missing(path: str, names: list[str]) -> list[str]:
    """The names, `Class.method` among them, that are not bound in the file of that path."""
    file = file_named(path)
    if file is None:
        return [f"there is no {path}"]
    return [f"{path} has no {name}" for name in names if not bound_in(file).issuperset(name.split("."))]


def beside_files(prose: str) -> Iterator[tuple[str, str]]:
    """(file, name) where a page writes one beside the other."""
    for code, path in re.findall(rf"`([^`]+)` \({FILE}\)", prose):
        for name in names_in(f"`{code}`"):
            yield path, name
    for path, rest in re.findall(rf"\({FILE}((?:, `[^`]+`)+)\)", prose):
        for name in names_in(rest):
            yield path, name


def sections_of_files(text: str) -> Iterator[tuple[str, str]]:
    """(file, prose) of each section whose heading names one."""
    for section in re.split(r"^## ", prose_of(text), flags=re.M)[1:]:
        heading, _, prose = section.partition("\n")
        for path in re.findall(FILE, heading):
            yield path, prose


def problems_of_sections(text: str) -> list[str]:
    found = []
    for path, prose in sections_of_files(text):
        elsewhere = {name for _, name in beside_files(prose)}
        found += missing(path, [name for name in names_in(prose) if name not in elsewhere])
    return found


@functools.cache
def words_of_the_package() -> frozenset[str]:
    return frozenset(
        word for path in PACKAGE.rglob("*.py") for word in re.findall(r"\w+", path.read_text("utf-8"))
    )


def short(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=short)
def test_names_are_in_the_file_that_stands_beside_them(page: Path) -> None:
    for path, name in beside_files(prose_of(page.read_text(encoding="utf-8"))):
        assert not missing(path, [name])


def test_the_tour_is_of_a_week_of_files() -> None:
    paths = [path for path, _ in sections_of_files(TOUR.read_text(encoding="utf-8"))]
    assert len(set(paths)) == len(paths) == 14
    assert [path for path in paths if not (PACKAGE / path).is_file()] == []
    assert sum(len((PACKAGE / path).read_text("utf-8").splitlines()) for path in paths) <= 5500


def test_a_section_of_the_tour_names_what_its_file_has() -> None:
    assert problems_of_sections(TOUR.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", [DESIGN, TOUR], ids=short)
def test_names_and_folders_are_those_of_the_package(page: Path) -> None:
    prose = prose_of(page.read_text(encoding="utf-8"))
    words = {part for name in names_in(prose) for part in name.split(".")}
    unknown = {word for word in words if re.sub(r"\d+$", "", word) not in words_of_the_package()}
    assert sorted(unknown - words_of_the_package()) == []  # a name may be numbered: `bad0`
    folders = re.findall(r"`((?:\w+/)+)`", prose)
    assert folders
    assert [each for each in folders if not ((PACKAGE / each).is_dir() or (ROOT / each).is_dir())] == []


# ---- tests of the checker ----


def test_what_is_not_there_is_noticed() -> None:
    text = """
## 1. One file: `ir/rewrite.py`

`graph_rewrite(root, matcher)` and `RewriteError.nothing`, `x + 0`, `ir/`.
`linearize` (`codegen/linearizing/linearize.py`).

```python
`graph_transmute`
```

## The end

`anything`
"""
    assert problems_of_sections(text) == ["ir/rewrite.py has no RewriteError.nothing"]
    assert problems_of_sections("## `ir/none.py`\n\n`x`\n") == ["there is no ir/none.py"]


@pytest.mark.parametrize("text", ["(`ir/rewrite.py`, `linearize`)", "`linearize` (`ir/rewrite.py`)"])
def test_a_name_beside_another_file_is_noticed(text: str) -> None:
    ((path, name),) = beside_files(text)
    assert missing(path, [name]) == ["ir/rewrite.py has no linearize"]

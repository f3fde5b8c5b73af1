"""The tables of docs/devices.md: the programs of tests/device/every_device.py, each on every device."""

from __future__ import annotations

from pathlib import Path

from lazygrad.codegen.opt import OptOps
from tests.device.every_device import (
    ASKED,
    DEVICES,
    DTYPES,
    FAMILIES,
    FEATURES,
    has,
    is_right,
    multiplies_by_dots,
    on,
    takes,
)

PAGE = Path(__file__).parent.parent / "devices.md"
HEAD = "## What computes where\n"

_TOP = f"""
Written by `python docs/generate.py devices`, which runs small programs for each cell and compares what they
give with device PYTHON (`tests/device/every_device.py`; the tests run a share of them each time). CUDA and
METAL are emulated, AARCH64 is device CPU's code for ARM in an emulator, WEBGPU is lavapipe, CL is PoCL.

Of each dtype: {", ".join(FAMILIES)}. "yes" is all of them; "-" is none:
the device has no such type, and says so.

"""


def section() -> str:
    """Both tables, by running everything; it takes minutes, and needs every device."""
    return tables({name: column(name) for name in DEVICES})


def column(name: str) -> dict[str, str]:
    """What a device says in each row."""
    with on(name):
        found = {
            dtype: cell([family for family in FAMILIES if is_right(name, family, dtype)]) for dtype in DTYPES
        }
        found |= {feature: _WORDS[has(name, feature)] for feature in FEATURES}
        found |= {op.name: opt_cell(name, op) for op in OptOps}
        return found | {question: _WORDS[answer(name)] for question, answer in ASKED.items()}


def opt_cell(name: str, op: OptOps) -> str:
    """Whether kernels on a device have an optimization."""
    if op is OptOps.TC and multiplies_by_dots(name):
        return DOTS
    return _WORDS[takes(name, op)]


def tables(columns: dict[str, dict[str, str]]) -> str:
    """The section of the page."""
    types, features = _table("dtype", DTYPES, columns), _table("feature", [*FEATURES, *ASKED], columns)
    opts = _table("optimization", [op.name for op in OptOps], columns)
    return f"{HEAD}{_TOP}{types}\n{features}\n{_OPTS}{opts}"


_OPTS = """\
Of each [optimization](kernels.md): whether kernels on the device have it. Which a kernel gets is
chosen by what is predicted for its device.

"""
#: Said of optimizations that depend on which processor it is.
DOTS = "if the processor has it"
_WORDS = {True: "yes", False: "no"}


def cell(right: list[str]) -> str:
    """How the families that a type has are written."""
    if len(right) == len(FAMILIES):
        return "yes"
    return ", ".join(right) or "-"


def _table(what: str, rows: list[str], columns: dict[str, dict[str, str]]) -> str:
    lines = [f"| {what} | {' | '.join(columns)} |", "|---" * (1 + len(columns)) + "|"]
    for row in rows:
        lines.append(f"| {row} | {' | '.join(column[row] for column in columns.values())} |")
    return "\n".join(lines) + "\n"


def written(text: str) -> dict[tuple[str, str], str]:
    """(row, device) → the cell, of the tables of a page."""
    found: dict[tuple[str, str], str] = {}
    columns: list[str] = []
    for line in text[text.index(HEAD) :].splitlines():
        cells = [each.strip() for each in line.strip("|").split("|")] if line.startswith("|") else []
        if not cells:
            columns = []
        elif not columns:
            columns = cells[1:]
        elif not line.startswith("|---"):
            found.update({(cells[0], name): each for name, each in zip(columns, cells[1:], strict=True)})
    return found


def page() -> str:
    """The page with its tables anew."""
    before, _, after = PAGE.read_text("utf-8").partition(HEAD)
    rest = after.partition("\n## ")[2]
    return f"{before}{section()}\n## {rest}"

"""The schedule of a recording as a tree that fits a screen: layers, the lines in them, the calls on these,
and the kernels that end with a call's result.

A kernel computes what many calls made, and is counted with the one whose result it stores. Layers in which
the same line runs are told as one: `blocks.*.up` for `blocks.0.up` and `blocks.1.up`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ..report.terminal import time_text
from .schedule_text import largest_plan

LEVELS = ("layers", "lines", "calls", "kernels")
#: Columns of the numbers before the names.
_HEAD = f"{'kernels':>7} {'time':>9} {'stored':>12}  "


@dataclass
class _Branch:
    kernels: int = 0
    seconds: float = 0.0
    stored: int = 0
    inside: dict[str, _Branch] = field(default_factory=dict)


def schedule_tree(recording: dict[str, Any], depth: int = 4, rows: int = 40, width: int = 100) -> str:
    """The largest plan, with so many levels, rows and columns at most. Where the levels do not fit into the
    rows, there are fewer; the last line says so.

    The time is that of each kernel at its best, "stored" the bytes that kernels write.
    """
    items = largest_plan(recording)
    if not items:
        return "no kernel ran"
    layers = _layers(recording)
    root = _Branch()
    for item in items:
        kernel = recording["kernels"][item["kernel"]]
        branch = root
        for name in (None, *_path(recording, item, layers)):
            branch = branch if name is None else branch.inside.setdefault(name, _Branch())
            branch.kernels += 1
            branch.seconds += kernel["best"]
            branch.stored += sum(nbytes for _, nbytes in item["writes"])
    asked = min(depth, len(LEVELS))
    shown = next((n for n in range(asked, 1, -1) if _count(root, n) + 3 <= rows), 1)
    lines = [_row(root, "all"), *_lines(root, shown)]
    room = rows - 2
    if len(lines) > room:
        lines = [*lines[: room - 1], f"{'':{len(_HEAD)}}... {len(lines) - room + 1} more"]
    last = f"down to {LEVELS[shown - 1]}"
    if shown < asked:
        last += f": {LEVELS[shown]} would not fit {rows} rows"
    elif shown < len(LEVELS):
        last += f": --depth {shown + 1} adds {LEVELS[shown]}"
    return "\n".join(line[: width - 1] + "…" if len(line) > width else line for line in (_HEAD, *lines, last))


def _layers(recording: dict[str, Any]) -> dict[int, str]:
    """The number of a call → the layers in which it was made, as one name."""
    found: dict[int, set[str]] = {}
    for graph in recording["graphs"]:
        for _, _, _, _, _, _, call, layer, *_ in graph["nodes"]:
            if call >= 0 and layer >= 0:
                found.setdefault(call, set()).add(recording["names"][layer])
    return {call: _folded(names) for call, names in found.items()}


def _folded(names: Iterable[str]) -> str:
    """`a.*.c` for `a.0.c` and `a.1.c`; several names where they differ otherwise."""
    by_form: dict[str, set[str]] = {}
    for name in names:
        form = ".".join("*" if part.isdecimal() else part for part in name.split("."))
        by_form.setdefault(form, set()).add(name)
    return ", ".join(form if len(each) > 1 else min(each) for form, each in sorted(by_form.items()))


def _path(recording: dict[str, Any], item: dict[str, Any], layers: dict[int, str]) -> Iterator[str]:
    """The names of the branches that lead to a kernel."""
    kernel = recording["kernels"][item["kernel"]]
    known = [call for *_, call in item["ends"] if call >= 0] + [call for call in kernel["calls"] if call >= 0]
    method, line, code = recording["calls"][known[0]] if known else ("", "", "")
    yield layers.get(known[0], "outside of layers") if known else "outside of layers"
    yield f"{line}  {code.strip()}".strip() if line else "no line of yours"
    yield method or "no call"
    yield f"{kernel['name']} {kernel['shape']}"


def _count(branch: _Branch, depth: int) -> int:
    """The rows of so many levels."""
    return sum(1 + _count(each, depth - 1) for each in branch.inside.values()) if depth else 0


def _lines(branch: _Branch, depth: int, indent: str = "  ") -> Iterator[str]:
    for name, inside in branch.inside.items():
        yield _row(inside, f"{indent}{name}")
        if depth > 1:
            yield from _lines(inside, depth - 1, f"{indent}  ")


def _row(branch: _Branch, name: str) -> str:
    return f"{branch.kernels:>7} {time_text(branch.seconds).strip():>9} {branch.stored:>12,}  {name}"

"""The schedule of a recording as text that fits a screen: a row per kernel, and what each of them reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..report.terminal import time_text


def plans_of(recording: dict[str, Any]) -> dict[int, list[dict[str, Any]]]:
    """The items of each plan, in the order in which they ran."""
    found: dict[int, list[dict[str, Any]]] = {}
    for item in recording["items"]:
        found.setdefault(item["plan"], []).append(item)
    return found


def largest_plan(recording: dict[str, Any]) -> list[dict[str, Any]]:
    """The items of the plan with the most different kernels; of those that have as many, with the most; the
    last of these. Weights that are drawn one by one are many of a kind.
    """
    plans = reversed(plans_of(recording).values())
    return max(plans, key=lambda items: (len({item["kernel"] for item in items}), len(items)), default=[])


def schedule_text(recording: dict[str, Any], rows: int = 40, width: int = 100) -> str:
    """The largest plan, with so many rows and columns at most: what each kernel is, from which of the others
    it reads, what it took, why its result is stored.
    """
    items = largest_plan(recording)
    if not items:
        return "no kernel ran"
    kernels = recording["kernels"]
    total = sum(kernels[item["kernel"]]["best"] for item in items)
    took = f"{time_text(total).strip()} in all (each at its best)" if total else "none of which has run"
    head = f"{len(items)} kernels and copies, {took}"
    lines = [head, _cells("", "kernel", "writes", "reads from", "time", "why it ends there")]
    lines += list(_rows(recording, items))
    if len(lines) > rows:
        left = len(lines) - rows + 1
        lines = [*lines[: rows - 1], f"... {left} more"]
    return "\n".join(line if len(line) <= width else f"{line[: width - 1]}…" for line in lines)


def _rows(recording: dict[str, Any], items: list[dict[str, Any]]) -> Iterator[str]:
    writer: dict[int, int] = {}
    for number, item in enumerate(items):
        kernel = recording["kernels"][item["kernel"]]
        sources = list(dict.fromkeys(writer[memory] for memory, _ in item["reads"] if memory in writer))
        outside = sum(memory not in writer for memory, _ in item["reads"])
        read = ", ".join([*map(str, sources), *([f"{outside} outside"] if outside else [])])
        calls = [recording["calls"][n][0] for n in kernel["calls"] if n >= 0]
        reason = item["ends"][0][0] if item["ends"] else ""
        why = f"{'+'.join(reversed(calls[:4]))}: {reason}" if calls else reason
        took = time_text(kernel["best"]).strip() if kernel["best"] else ""
        yield _cells(str(number), kernel["name"], kernel["shape"], read, took, why)
        for memory, _ in item["writes"]:
            writer[memory] = number


def _cells(number: str, name: str, shape: str, read: str, took: str, why: str) -> str:
    return f"{number:>3} {_fit(name, 22)} {_fit(shape, 14)} {_fit(read, 14)} {took:>9}  {why}".rstrip()


def _fit(text: str, width: int) -> str:
    return f"{text if len(text) <= width else text[: width - 1] + '…':{width}}"

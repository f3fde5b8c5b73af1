"""What `python -m bench torch` prints: a row for each architecture, ratios from a saved run, and a tally."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

#: What `measure` found, by keys such as "forward lazygrad", "training first inductor".
Found = dict[str, Any]

#: The largest difference from eager that counts as equal.
EQUAL = 1e-3
#: A call may take this part of a side's time.
MOST = {"eager": 0.9, "inductor": 1.0}
#: The first call may take this part of inductor's.
FIRST = 1 / 3


def read(*paths: str) -> list[dict[str, Any]]:
    """The lines of saved runs whose measurement did not fail: name, what was asked, what was found."""
    lines = list[dict[str, Any]]()
    for path in paths:
        with open(path, encoding="utf-8") as file:
            lines += [json.loads(line) for line in file]
    return [line for line in lines if "failed" not in line["found"]]


def timed(lines: Iterable[dict[str, Any]]) -> dict[str, Found]:
    """What was found by name, in alphabetical order: the last line of each that has times, and of those with
    inductor's times before those without.
    """
    found = dict[str, Found]()
    for line in lines:
        one, before = line["found"], found.get(line["name"], {})
        if "forward eager" in one and ("forward inductor" in one or "forward inductor" not in before):
            found[line["name"]] = one
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))


def _ratio(found: Found, kind: str, side: str, of: str) -> float | None:
    time, other = found.get(f"{kind} {side}"), found.get(f"{kind} {of}")
    return None if time is None or other is None else time / other


# ---- all that is known ----


def heading(kinds: list[str]) -> list[str]:
    """The lines above the rows."""
    cells = ["architecture"]
    for kind in kinds:
        cells += [kind, "ours, ms", "eager", "inductor", "first, s", "inductor's", "graphs/breaks"]
    return _rows([*cells, "ops in PyTorch"])


def _rows(cells: list[str]) -> list[str]:
    return ["| " + " | ".join(cells) + " |", "|" + "---|" * len(cells)]


def row(name: str, found: Found, kinds: list[str]) -> str:
    """One line of the table."""
    if "failed" in found:
        return f"| {name} | {found['failed']} |"
    cells = [name]
    for kind in kinds:
        cells.append(f"{found[kind]:.0e}" + _beside_float64(found, kind))
        cells += [_number(found.get(f"{kind} {side}"), 1e3) for side in ("lazygrad", "eager", "inductor")]
        cells += [_number(found.get(f"{kind} first {side}")) for side in ("lazygrad", "inductor")]
        cells.append(f"{found[f'{kind} graphs']}/{found[f'{kind} breaks']}")
    cells.append(", ".join(text.split(" ")[0].removeprefix("aten.") for text in found["fell"]))
    return "| " + " | ".join(cells) + " |"


def _beside_float64(found: Found, kind: str) -> str:
    """Of what is not equal: how far both are from float64, and how far apart if both compute in it."""
    if found[kind] <= EQUAL:
        return ""
    ours, eager = found[f"{kind} exact"]
    return f" **!** float64: {ours:.0e}, eager {eager:.0e}, both in it {found[f'{kind} wide']:.0e}"


def _number(value: float | None, unit: float = 1.0, digits: int = 1) -> str:
    return "" if value is None else f"{value * unit:.{digits}f}"


# ---- in parts of eager's time ----


def ratios(results: dict[str, Found], kinds: list[str]) -> list[str]:
    """A table of times in parts of eager's, and of first calls in seconds."""
    cells = [""]
    for kind in kinds:
        cells += [f"{kind}: eager, ms", "ours", "inductor", "first: ours, s", "inductor"]
    lines = _rows(cells)
    for name, found in results.items():
        cells = [name]
        for kind in kinds:
            cells.append(_number(found.get(f"{kind} eager"), 1e3))
            cells += [
                _number(_ratio(found, kind, side, "eager"), digits=2) for side in ("lazygrad", "inductor")
            ]
            cells += [_number(found.get(f"{kind} first {side}")) for side in ("lazygrad", "inductor")]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


# ---- how many ----


def _bound(results: dict[str, Found], key: str, of: str, most: float, what: str) -> list[str]:
    """How many keep a bound, and which do not with what ratio, the worst first."""
    found = {name: ratio for name, one in results.items() if (ratio := _ratio(one, key, "lazygrad", of))}
    if not found:
        return []
    above = sorted((-ratio, name) for name, ratio in found.items() if ratio > most)
    line = f"  {len(found) - len(above)} of {len(found)} take at most {what}"
    return [line + (": not " + ", ".join(f"{name} {-ratio:.2f}" for ratio, name in above) if above else "")]


def _everywhere(results: dict[str, Found], kinds: list[str], of: str, most: float) -> list[str]:
    """How many keep a bound in each kind of call."""
    found = [[_ratio(one, kind, "lazygrad", of) for kind in kinds] for one in results.values()]
    known = [[ratio for ratio in each if ratio] for each in found if all(each)]
    kept = sum(max(each) <= most for each in known)
    return [f"  {kept} of {len(known)} take at most {most} of {of}'s time"] if known else []


def tally(results: dict[str, Found], kinds: list[str]) -> list[str]:
    """How many are equal to eager, and how many keep each bound of time; who does not is named."""
    good = {name: found for name, found in results.items() if "failed" not in found}
    lines = []
    for kind in kinds:
        equal = sum(found.get(kind, math.inf) <= EQUAL for found in good.values())
        lines.append(f"{kind}: {equal} of {len(results)} equal to eager within {EQUAL}")
        for side, most in MOST.items():
            lines += _bound(good, kind, side, most, f"{most} of {side}'s time")
        lines += _bound(good, f"{kind} first", "inductor", FIRST, "a third of inductor's first call")
    if len(kinds) > 1:
        lines.append(" and ".join(kinds) + ":")
        for side, most in MOST.items():
            lines += _everywhere(good, kinds, side, most)
    fell = sorted({text for found in good.values() for text in found["fell"]})
    return lines + (["What ran in PyTorch:", *(f"  {text}" for text in fell)] if fell else [])

"""What a processor was seen to do: a row of figures, its text, and the rows that ship.

`python -m lazygrad calibrate` measures a row, with small kernels that do one thing each (`calibration/`). A
text is JSON, one figure a line, for a person to read and to contribute: a file of rows/, named as LLVM names
the processor.
"""

from __future__ import annotations

import functools
import json
import math
import re
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

#: Of the text and of what its figures mean; a row of another version is not read.
VERSION = 2
#: Where rows that ship lie.
_ROWS = Path(__file__).with_name("rows")
#: What a processor can be named: it becomes the name of a file.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Figure(NamedTuple):
    """A number that was measured.

    value   the best of several runs: other work on the machine makes a run slower, nothing makes it faster
    spread  how much longer than the best the median run took, as a part of it: 0.1 is 10 %; 1 of a single run
    """

    value: float
    spread: float


class Group(NamedTuple):
    """Figures of one kind: their unit, what they are measured at, which each row has, what they mean."""

    unit: str
    keys: tuple[str, ...]
    needed: tuple[str, ...]
    meaning: str


_CACHES = ("level1", "level2", "level3", "memory")
_ENDS = ("level1", "memory")
_WIDTHS = ("16", "32", "64")

#: name → what it is; `Row.figures` has these names.
GROUPS = {
    "clock": Group("GHz", ("core",), ("core",), "operations a nanosecond of a chain of one cycle each"),
    "read": Group("GB/s", _CACHES, _ENDS, "a walk through what a cache has and not the one before; memory"),
    "latency": Group("ns", _CACHES, _ENDS, "until a load is there whose address an earlier load has given"),
    "streams": Group(
        "GB/s", ("1", "2", "4", "8", "16", "32"), ("1",), "so many walks through memory side by side, in all"
    ),
    "columns": Group(
        "GB/s",
        ("64", "128", "512", "2048"),
        ("64",),
        "so many bytes of each 4,096, down all of memory, then the next so many: of what is read",
    ),
    "page_walk": Group(
        "ns", ("load",), (), "what a load takes longer on a page whose address is not at hand"
    ),
    "gather": Group(
        "ns", ("level1", "level2", "memory"), _ENDS, "a lane, by loads one by one at random addresses"
    ),
    "gather_instruction": Group(
        "ns", ("level1", "level2", "memory"), (), "a lane, by an instruction that loads all lanes of a vector"
    ),
    "store": Group(
        "GB/s", ("memory", "past_caches"), ("memory",), "a walk that writes memory, and one past the caches"
    ),
    "fork": Group(
        "ns", ("awake", "asleep"), (), "until all threads, which waited or slept, have met in a kernel"
    ),
    "barrier": Group("ns", ("all",), (), "until all threads of a kernel have met"),
    "fma": Group("GFLOPS", _WIDTHS, ("16",), "multiply-adds of float32 in vectors of so many bytes, a core"),
    "fma_latency": Group("ns", _WIDTHS, ("16",), "until such a result can be added to"),
    "dot": Group(
        "GOPS", ("int8", "int16", "bfloat16"), (), "multiplications and additions of instructions that add up"
    ),
}  # fmt: skip
#: Of these 0 is a result: pages so large that nothing is looked up.
_MAY_BE_ZERO = frozenset(("page_walk",))


class BadRow(ValueError):
    """A text that is no row: what is wrong with it, in a sentence."""


@dataclass(frozen=True)
class Row:
    """What one processor was seen to do.

    processor  as LLVM calls it: `znver3`
    machine    where it was measured, in words
    date       when, as 2026-11-29
    threads    how many took part in `fork` and `barrier`
    figures    group → key → Figure, in the units of `GROUPS`. What the machine does not have is missing:
               levels of caches, widths of registers, instructions, threads
    """

    processor: str
    machine: str
    date: str
    threads: int
    figures: Mapping[str, Mapping[str, Figure]]

    def value(self, group: str, key: str) -> float | None:
        """One number, in the unit of its group; None where it was not measured."""
        found = self.figures.get(group, {}).get(key)
        return None if found is None else found.value

    def to_text(self) -> str:
        """The row as JSON, to be read again by `from_text`: four digits of each number."""
        lines = [f' "version": {VERSION}']
        for name in ("processor", "machine", "date", "threads"):
            lines.append(f" {json.dumps(name)}: {json.dumps(getattr(self, name))}")
        for name in GROUPS:
            found = self.figures.get(name)
            if found:
                each = (f"  {json.dumps(key)}: {_figure_text(found[key])}" for key in found)
                lines.append(f" {json.dumps(name)}: {{\n" + ",\n".join(each) + "\n }")
        return "{\n" + ",\n".join(lines) + "\n}\n"

    @classmethod
    def from_text(cls, text: str) -> Row:
        """The row of a text. BadRow says what is wrong with one that is damaged, or of something else."""
        try:
            found = json.loads(text)
        except ValueError as error:
            raise BadRow(f"it is not JSON ({error})") from None
        except RecursionError:
            raise BadRow("it is not a row: its lists have no end") from None
        if not isinstance(found, dict):
            raise BadRow(f"it is not a row, which is a JSON object, but {_kind(found)}")
        if "version" not in found:
            raise BadRow("it has no version, so it is not a row")
        version = found["version"]
        if isinstance(version, bool) or version != VERSION:
            raise BadRow(
                f"it is of version {version!r}, and this lazygrad reads version {VERSION}: "
                "`python -m lazygrad calibrate` measures anew"
            )
        unknown = sorted(found.keys() - {"version", "processor", "machine", "date", "threads", *GROUPS})
        if unknown:
            raise BadRow(f"it has {unknown[0]!r}, which is no group of figures")
        words = {name: _word(found, name) for name in ("processor", "machine", "date")}
        if not _NAME.fullmatch(words["processor"]):
            raise BadRow(f"processor is {words['processor']!r}, which is no name of a processor")
        if not re.fullmatch(r"\d{4}-\d\d-\d\d", words["date"]):
            raise BadRow(f"date is {words['date']!r}, not one such as 2026-11-29")
        threads = found.get("threads")
        if not isinstance(threads, int) or isinstance(threads, bool) or threads < 1:
            raise BadRow(f"threads is {threads!r}, not a whole number from 1 on")
        return cls(**words, threads=threads, figures=_figures(found))


def _figures(found: dict[str, Any]) -> dict[str, dict[str, Figure]]:
    figures = {}
    for name, group in GROUPS.items():
        given = found.get(name, {})
        if not isinstance(given, dict):
            raise BadRow(f"{name} is {_kind(given)}, not an object of figures")
        for key in given:
            if key not in group.keys:
                raise BadRow(f"{name} has {key!r}; there are {', '.join(group.keys)}")
        for key in group.needed:
            if key not in given:
                raise BadRow(f"it lacks {name}, {key}")
        if given:
            figures[name] = {key: _figure(name, key, value) for key, value in given.items()}
    return figures


def _figure(name: str, key: str, given: Any) -> Figure:
    if not isinstance(given, list) or len(given) != 2:
        raise BadRow(f"{name}, {key} is {given!r}, not a number and its spread, such as [12.5, 0.02]")
    for number in given:
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise BadRow(f"{name}, {key} has {number!r}, which is not a number")
    # a whole number may have hundreds of digits
    value, spread = [math.inf if abs(number) > sys.float_info.max else float(number) for number in given]
    if not math.isfinite(value) or not math.isfinite(spread):
        raise BadRow(f"{name}, {key} is {given!r}, which is not finite")
    if value < 0 or spread < 0:
        raise BadRow(f"{name}, {key} is {given!r}, and nothing there can be negative")
    if value == 0 and name not in _MAY_BE_ZERO:
        raise BadRow(f"{name}, {key} is 0, and nothing is that slow or that fast")
    return Figure(value, spread)


def _word(found: dict[str, Any], name: str) -> str:
    given = found.get(name)
    if not isinstance(given, str) or not given:
        raise BadRow(f"{name} is {given!r}, not a text" if name in found else f"it lacks {name}")
    return given


def _kind(value: Any) -> str:
    names = {list: "a list", str: "a text", type(None): "null", bool: "true or false", dict: "an object"}
    return names.get(type(value), "a number")


def _figure_text(figure: Figure) -> str:
    return f"[{float(f'{figure.value:.4g}')!r}, {float(f'{figure.spread:.2g}')!r}]"


# *** the rows that ship


#: The processors of which a row ships.
SHIPPED = tuple(sorted(path.stem for path in _ROWS.glob("*.json")))


@functools.cache
def shipped_row(name: str) -> Row | None:
    """The row that ships of the processor of this name; None where nobody has contributed one."""
    path = _ROWS / f"{name}.json"
    return Row.from_text(path.read_text(encoding="utf-8")) if name in SHIPPED else None


#: Processors that are alike, oldest first, as LLVM names them: what one does is nearest to what its
#: neighbours do.
FAMILIES = (
    ("znver1", "znver2", "znver3", "znver4", "znver5"),
    ("haswell", "broadwell", "skylake", "icelake-client", "tigerlake", "rocketlake", "alderlake",
     "raptorlake", "meteorlake", "arrowlake"),
    ("skylake-avx512", "cascadelake", "cooperlake", "icelake-server", "sapphirerapids", "emeraldrapids",
     "graniterapids", "diamondrapids"),
    ("neoverse-n1", "neoverse-n2", "neoverse-n3"),
    ("neoverse-v1", "neoverse-v2", "neoverse-v3"),
    ("apple-m1", "apple-m2", "apple-m3", "apple-m4", "apple-m5"),
)  # fmt: skip


#: Instructions, as LLVM calls them → the first processor that has them, of a family that kept them; the
#: newest first.
_FIRST_WITH = (("prefetchi amx-tile", "graniterapids"), ("amx-tile", "sapphirerapids"))


def named(name: str, features: Collection[str]) -> str:
    """The name of a processor that says it is `name` and has these features.

    A hypervisor may show the model of one processor with the instructions of a later one: LLVM calls that by
    the model, but code for it, and how fast that is, goes by what the processor is.
    """
    for words, first in _FIRST_WITH:
        if all(word in features for word in words.split()):
            family, since = _position(first)
            return name if name in family[since:] else first
    return name


def nearest(name: str, known: Collection[str]) -> str:
    """Which of the processors that are known stands for one: itself, or else the nearest of its family; of
    two that are as near, the older. A name that is not listed and ends in a number, as `znver6`, is of the
    family of those that differ in the number. "" where none of its family is known.
    """
    if name in known:
        return name
    family, position = _position(name)
    near = [(abs(at - position), at, other) for at, other in enumerate(family) if other in known]
    return min(near)[2] if near else ""


def _position(name: str) -> tuple[tuple[str, ...], int]:
    """The family of a processor and its position there, which may lie beyond; () where it has none."""
    for family in FAMILIES:
        if name in family:
            return family, family.index(name)
    stem, number = _numbered(name)
    for family in FAMILIES:
        for at, other in enumerate(family):
            if number >= 0 and _numbered(other)[0] == stem:
                return family, at + number - _numbered(other)[1]
    return (), 0


def _numbered(name: str) -> tuple[str, int]:
    """`znver` and 3 of `znver3`; -1 without a number."""
    found = re.fullmatch(r"(.*?[a-z-])(\d{1,4})", name)
    return (found[1], int(found[2])) if found else (name, -1)

"""Two records of a program, kernel by kernel: what is another, what is gone or new, what has moved."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .record import COMPILED, Kernel, Record

#: A difference of names alone: of the kernel, or of the methods that it comes from.
NAMES = "names"
#: Of a kernel that the other record does not have, or has in another place.
GONE, NEW, MOVED = "gone", "new", "order"


class Difference(NamedTuple):
    """A kernel that is another.

    number  of the kernel in the later record, from 1; of one that is gone, in the earlier one
    part    of `Kernel`; NAMES; GONE, NEW or MOVED
    lines   of a unified diff; of a kernel that is gone or new, where it was or is
    """

    number: int
    name: str
    part: str
    lines: Sequence[str]


def differences(before: Record, after: Record) -> Iterator[Difference]:
    """The kernels of two records of a program that differ, in the order of the later one.

    Kernels are matched by what they compute, so one that is gone does not make all others differ. Memory is
    the same if its numbers can be exchanged one for one.
    """
    pairs, moved = _matched(before, after)
    renamed = _Renamed()
    was = {now: old for old, now in (pairs | moved).items()}
    for now, kernel in enumerate(after):
        if now not in was:
            yield Difference(now + 1, kernel.name, NEW, _briefly(kernel))
            continue
        if was[now] in moved:
            yield Difference(now + 1, kernel.name, MOVED, [f"it was number {was[now] + 1}"])
        yield from _kernel(now + 1, before[was[now]], kernel, renamed)
    for old, kernel in enumerate(before):
        if old not in pairs and old not in moved:
            yield Difference(old + 1, kernel.name, GONE, _briefly(kernel))


def _matched(before: Record, after: Record) -> tuple[dict[int, int], dict[int, int]]:
    """Earlier number → later number of kernels in the same place, and of those that are in another place."""
    old, new = [[kernel.parts.get("ast", "") for kernel in record] for record in (before, after)]
    pairs, blocks = dict[int, int](), list[tuple[range, range]]()
    for kind, i, to, j, until in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            pairs.update(zip(range(i, to), range(j, until), strict=True))
        else:
            blocks.append((range(i, to), range(j, until)))
    free = dict[str, list[int]]()
    for _, added in blocks:
        for now in added:
            free.setdefault(new[now], []).append(now)
    moved = {n: free[old[n]].pop(0) for removed, _ in blocks for n in removed if free.get(old[n])}
    taken = set(moved.values())
    for removed, added in blocks:  # what stands where another was is taken for that, changed
        others = [n for n in removed if n not in moved], [n for n in added if n not in taken]
        pairs.update(zip(*others, strict=False))
    return pairs, moved


def _kernel(number: int, old: Kernel, new: Kernel, renamed: _Renamed) -> Iterator[Difference]:
    """How a kernel differs: the first part of compiling, then its place in the program, else its names."""
    found = []
    for part in COMPILED:
        texts = [_nameless(kernel.parts.get(part, ""), kernel.name) for kernel in (old, new)]
        if texts[0] != texts[1]:
            found.append(_difference(number, old, new, part))
            break
    if not renamed.same(old.parts.get("memory", ""), new.parts.get("memory", "")):
        found.append(_difference(number, old, new, "memory"))
    if old.parts.get("reasons", "") != new.parts.get("reasons", ""):
        found.append(_difference(number, old, new, "reasons"))
    if not found:
        names = [[kernel.name, *kernel.parts.get("calls", "").splitlines()] for kernel in (old, new)]
        if names[0] != names[1]:
            found.append(Difference(number, new.name, NAMES, _lines(*names)))
    yield from found


def _nameless(text: str, name: str) -> str:
    """The text with another name for the kernel, the same for all."""
    return re.sub(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![0-9])", "KERNEL", text)


class _Renamed:
    """Memory by its numbers in two records: which stands for which."""

    def __init__(self) -> None:
        self._later: dict[str, str] = {}
        self._earlier: dict[str, str] = {}

    def same(self, old: str, new: str) -> bool:
        pattern = re.compile(r"\bm\d+\b")
        names = pattern.findall(old), pattern.findall(new)
        if len(names[0]) != len(names[1]) or pattern.sub("", old) != pattern.sub("", new):
            return False
        for a, b in zip(*names, strict=True):
            if self._later.setdefault(a, b) != b or self._earlier.setdefault(b, a) != a:
                return False
        return True


def _briefly(kernel: Kernel) -> list[str]:
    return [line for part in ("reasons", "memory") for line in kernel.parts.get(part, "").splitlines()]


def _difference(number: int, old: Kernel, new: Kernel, part: str) -> Difference:
    return Difference(
        number, new.name, part, _lines(*(kernel.parts.get(part, "").splitlines() for kernel in (old, new)))
    )


def _lines(before: Sequence[str], after: Sequence[str]) -> list[str]:
    return [
        line
        for line in difflib.unified_diff(before, after, lineterm="", n=0)
        if line[:3] not in ("---", "+++")
    ]

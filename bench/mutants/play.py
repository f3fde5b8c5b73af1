"""A mutant against the tests that run its line, and what became of all of them, kept as lines of JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .copies import Copy
from .coverage_map import Map
from .draw import Mutant, mutated

#: How many tests the first process of a mutant runs; each further one runs so many times more.
FIRST, MORE = 12, 5
#: A test hangs that takes so many times what it took when it was measured, and so many seconds.
SLOWER, HANGS = 5, 10.0

KILLED, SURVIVED, UNCOVERED, AGAIN = "killed", "survived", "not covered", "to be played again"


class Verdict(NamedTuple):
    """What became of a mutant: by what it was killed (a test, the time, its import, a crash), in which test,
    and the tests that had passed before."""

    mutant: str
    verdict: str
    by: str = ""
    test: str = ""
    why: str = ""
    passed: tuple[str, ...] = ()


class Verdicts:
    """Those so far, of all shares: a file to which lines are only added, so that processes may share it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.found: dict[str, Verdict] = {}
        self.trusted: set[str] = set()
        self.unfit: set[str] = set()
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            self._learn(json.loads(line))

    def _learn(self, row: dict[str, Any]) -> None:
        if "mutant" in row:
            self.found[row["mutant"]] = Verdict(**{**row, "passed": tuple(row["passed"])})
        self.trusted |= set(row.get("trusted", ()))
        self.unfit |= set(row.get("unfit", ()))

    def add(self, row: Verdict | dict[str, Any]) -> None:
        entry = row._asdict() if isinstance(row, Verdict) else row
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
        self._learn(entry)

    def has(self, mutant: Mutant) -> bool:
        return self.found.get(mutant.name, Verdict("", AGAIN)).verdict != AGAIN


def play(
    copy: Copy, mutant: Mutant, tests: Sequence[str], seconds: dict[str, float], limit: float
) -> Verdict:
    """Run the tests in their order until one fails or so many seconds are over. What was measured of a test
    says when it hangs.
    """
    source = (copy.project.root / mutant.file).read_text(encoding="utf-8")
    changed = mutated(source, mutant)
    if changed is None:
        raise ValueError(f"{mutant.name}: {mutant.file} has no such position")
    if not tests:
        return Verdict(mutant.name, UNCOVERED)
    passed: list[str] = []
    begun = False

    def killed(by: str, test: str = "", why: str = "") -> Verdict:
        return Verdict(mutant.name, KILLED, by, test, why, tuple(passed))

    def patience(test: str) -> float:
        return max(HANGS, SLOWER * seconds.get(test, 0))

    left = limit
    with copy.holding(mutant.file, changed):
        for batch in _batches(tests):
            if left <= 0:
                break
            files = list(dict.fromkeys(test.partition("::")[0] for test in batch))
            run = copy.run(batch, files, left, options=["-x"], patience=patience)
            begun = begun or any("begins" in event for event in run.events)
            passed += [event["ends"] for event in run.ended("passed")]
            left -= sum(event["seconds"] for event in run.ended("passed"))
            for event in run.ended("failed"):
                return killed("test", event["ends"], event["why"])
            if not run.in_time:
                if run.running and time.monotonic() - run.running["at"] >= patience(run.running["begins"]):
                    return killed("time", run.running["begins"])
                if not begun:
                    return killed("time", why="no test had begun")
                break
            if broken := [event for event in run.events if "broken" in event]:
                return killed("import", broken[0]["broken"], broken[0]["why"].strip().splitlines()[-1])
            if run.status is None:
                return killed("crash", run.running["begins"] if run.running else "", run.output[-200:])
            if run.status not in (0, 5):  # 5: none of these tests is there any more
                return killed("import", "", (run.output.strip().splitlines() or [""])[-1])
    return Verdict(mutant.name, SURVIVED, passed=tuple(passed))


def _batches(tests: Sequence[str]) -> list[Sequence[str]]:
    found, start, size = [], 0, FIRST
    while start < len(tests):
        found.append(tests[start : start + size])
        start, size = start + size, size * MORE
    return found


def confirm(copy: Copy, verdicts: Verdicts, limit: float) -> list[str]:
    """Run the tests that killed, without a mutant: what a test killed that fails then, too, is to be played
    again, without that test. The tests that fail.
    """
    tests = {v.test for v in verdicts.found.values() if v.verdict == KILLED and "::" in v.test}
    tests -= verdicts.trusted | verdicts.unfit
    if not tests:
        return []
    files = sorted({test.partition("::")[0] for test in tests})
    run = copy.run(sorted(tests), files, limit)
    fine = {event["ends"] for event in run.ended("passed")}
    wrong = {event["ends"] for event in [*run.ended("failed"), *run.ended("skipped")]}
    verdicts.add({"trusted": sorted(fine), "unfit": sorted(wrong)})
    for verdict in list(verdicts.found.values()):
        if verdict.verdict == KILLED and verdict.test in wrong:
            verdicts.add(Verdict(verdict.mutant, AGAIN))
    return sorted(wrong)


def order(chart: Map, mutant: Mutant, source: str, unfit: set[str]) -> list[str]:
    return [test for test in chart.tests_of(mutant, source) if test not in unfit]

"""A process that runs tests in a copy of the tree; started by its path, so that it finds the copy's package.

    python player.py EVENTS TESTS [--coverage FILE --include PATTERN...] -- PYTEST-ARGUMENT...

TESTS is a file with the ids to run, in that order, or "-" for all. A line of JSON is added to EVENTS when a
test begins and when it has ended, at once: whoever waits may have to kill this process.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest


class Events:
    """What happens, as lines of a file; with `measure` each test is a context of coverage."""

    def __init__(self, path: Path, wanted: list[str] | None, measure: Any = None) -> None:
        self.path, self.wanted, self.measure = path, wanted, measure
        self.failed, self.skipped, self.begun = "", False, 0.0

    def say(self, **event: Any) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(event) + "\n")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        if self.wanted is not None:
            order = {name: number for number, name in enumerate(self.wanted)}
            config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in order])
            items[:] = sorted((i for i in items if i.nodeid in order), key=lambda i: order[i.nodeid])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.say(broken=report.nodeid, why=report.longreprtext[-300:])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        if self.measure is not None:
            self.measure.switch_context(nodeid)
        self.failed, self.skipped, self.begun = "", False, time.monotonic()
        self.say(begins=nodeid, at=time.monotonic())

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failed:
            lines = [line for line in report.longreprtext.splitlines() if line.startswith("E ")]
            self.failed = (lines or [report.longreprtext[-200:]])[0][:200]
        self.skipped = self.skipped or report.skipped

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        if self.measure is not None:
            self.measure.switch_context("")
        verdict = "failed" if self.failed else "skipped" if self.skipped else "passed"
        self.say(ends=nodeid, verdict=verdict, why=self.failed, seconds=time.monotonic() - self.begun)


def main(arguments: list[str]) -> int:
    own, rest = arguments[: arguments.index("--")], arguments[arguments.index("--") + 1 :]
    names = None if own[1] == "-" else Path(own[1]).read_text(encoding="utf-8").splitlines()
    measure = None
    if "--coverage" in own:
        import coverage

        include = own[own.index("--include") + 1 :]
        measure = coverage.Coverage(data_file=own[3], include=include, config_file=False)
        measure.set_option("run:relative_files", True)  # this copy is gone when the names are read
        measure.start()
    events = Events(Path(own[0]), names, measure)
    status = int(pytest.main(rest, plugins=[events]))
    if measure is not None:
        measure.stop()
        measure.save()
    events.say(status=status)
    return status


if __name__ == "__main__":
    sys.path[0] = "."  # the copy, in which this runs; not the folder of this file
    sys.exit(main(sys.argv[1:]))

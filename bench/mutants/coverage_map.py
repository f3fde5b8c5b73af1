"""Which tests run which lines: coverage.py with a context for each test, a few files of tests a process.

Only tests that passed are in it. What a test starts in processes of its own is not seen.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .copies import Copy, Project
from .draw import Mutant, lines_of_statement, runs_at_import

#: Files of tests that one process runs, and the seconds that it may take; a file that takes more is left out.
TOGETHER, PATIENCE = 6, 900


def test_files(root: Path, chosen: Sequence[str]) -> list[str]:
    """The files of tests in folders, or named; ValueError for what is neither."""
    found = set[str]()
    for name in chosen:
        path = root / name
        if not path.exists():
            raise ValueError(f"--tests {name}: there is no such file or folder in {root}")
        paths = [path] if path.is_file() else path.rglob("test_*.py")
        found |= {each.resolve().relative_to(root.resolve()).as_posix() for each in paths}
    return sorted(found)


class Map:
    """What has been measured so far, in a folder: for each process a file of coverage and one of JSON."""

    def __init__(self, project: Project) -> None:
        self.folder = project.results / "map"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.pieces: list[tuple[Path, dict[str, Any]]] = []
        for path in sorted(self.folder.glob("*.json")):
            self.pieces.append((path.with_suffix(".coverage"), json.loads(path.read_text(encoding="utf-8"))))
        self.seconds: dict[str, float] = {}
        self.lines: dict[str, int] = {}
        for _, piece in self.pieces:
            for test, (lines, seconds) in piece["tests"].items():
                self.lines[test], self.seconds[test] = lines, seconds

    def files(self) -> list[str]:
        return sorted(file for _, piece in self.pieces for file in piece["files"])

    def text(self) -> str:
        """What it was made from, in a few lines."""
        folders = Counter(file.rpartition("/")[0] for file in self.files())
        failed = [test for _, piece in self.pieces for test in piece["failed"]]
        unfinished = [file for _, piece in self.pieces if piece["unfinished"] for file in piece["files"]]
        rows = [f"map: {len(self.lines):,} tests of {sum(folders.values())} files:"]
        rows[0] += " " + ", ".join(f"{folder} ({count})" for folder, count in sorted(folders.items()))
        if failed:
            rows.append(f"not in it, since they fail when they are measured: {', '.join(sorted(failed))}")
        if unfinished:
            rows.append(f"not in it, since they ended in no result: {', '.join(sorted(unfinished))}")
        return "\n".join(rows)

    def tests_of(self, mutant: Mutant, source: str) -> list[str]:
        """Those that run a mutant's line, who runs the fewest lines first. For a line that runs when the
        module is imported, those that run any other line of the file come after them.
        """
        from coverage import CoverageData

        by_line: dict[int, set[str]] = {}
        for path, _ in self.pieces:
            if path.exists():
                data = CoverageData(str(path))
                data.read()
                for line, tests in data.contexts_by_lineno(mutant.file).items():
                    by_line.setdefault(line, set()).update(test for test in tests if test in self.lines)
                data.close()
        own = by_line.get(mutant.line, set()) or {
            test for line in lines_of_statement(source, mutant.line) for test in by_line.get(line, ())
        }
        found = own | set().union(*by_line.values()) if runs_at_import(source, mutant.line) else own
        return sorted(found, key=lambda test: (test not in own, self.lines[test], test))


def make(copy: Copy, files: Sequence[str], until: float, show: Any = print) -> bool:
    """Measure what is not measured yet; False where `until` came first."""
    have = set(Map(copy.project).files())
    left = [file for file in files if file not in have]
    groups = [left[start : start + TOGETHER] for start in range(0, len(left), TOGETHER)]
    while groups:
        if time.monotonic() > until:
            return False
        group = groups.pop(0)
        piece = _measured(copy, group)
        if piece is None:
            groups = [[file] for file in group] + groups
            continue
        line = f"{piece['wall']:6.1f} s  {len(piece['tests']):5} tests run {piece['covered']:6} lines"
        show(f"{line}  {group[0]}" + (f" … {group[-1]}" if len(group) > 1 else ""))
    return True


def _measured(copy: Copy, group: list[str]) -> dict[str, Any] | None:
    """The piece of these files, which is kept; None where it ended in no result and one alone may."""
    from coverage import CoverageData

    stem = copy.project.results / "map" / hashlib.sha256("\n".join(group).encode()).hexdigest()[:16]
    path = stem.with_suffix(".coverage")
    path.unlink(missing_ok=True)
    start = time.monotonic()
    run = copy.run(None, group, PATIENCE, coverage=path)
    unfinished = run.status not in (0, 1, 5)
    if unfinished and len(group) > 1:
        return None
    counts, covered = Counter[str](), 0
    if path.exists() and not unfinished:
        with contextlib.closing(CoverageData(str(path))) as data:
            data.read()
            for file in data.measured_files():
                by_line = data.contexts_by_lineno(file)
                covered += len(by_line)
                for tests in by_line.values():
                    counts.update(tests)
    piece = {
        "files": group,
        "tests": {
            e["ends"]: (counts[e["ends"]], e["seconds"]) for e in run.ended("passed") if not unfinished
        },
        "failed": [event["ends"] for event in run.ended("failed")],
        "unfinished": unfinished,
        "output": run.output if unfinished else "",
        "covered": covered,
        "wall": time.monotonic() - start,
    }
    stem.with_suffix(".part").write_text(json.dumps(piece), encoding="utf-8")
    stem.with_suffix(".part").rename(stem.with_suffix(".json"))
    return piece

"""A copy of the tree in which mutants live and die. Nothing is ever written into the tree itself.

Each process there has a cache folder and a folder for temporary files of its own, which go with it, a limit
of time and of memory, and no processes that outlive it.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

PLAYER = Path(__file__).with_name("player.py")
#: What is no part of the tree. Compiled files are: else the first mutant would wait for all to be compiled.
LEFT_OUT = (".git", ".venv*", ".*_cache", ".hypothesis", "*.egg-info", "build", "dist", "site")
#: Seconds until the first test begins, at most: to import and to collect takes long where others work, too.
START = 120.0
#: Bytes of data that a process may have: a mutant that never stops to append must not take the machine's.
MEMORY = 8 << 30
#: What a process wants to be sent when its parent ends (prctl(2)).
PR_SET_PDEATHSIG = 1


class Project(NamedTuple):
    """Where the tree is, the folders that are mutated, and the folder of its results."""

    root: Path
    folders: list[str]
    results: Path


def digest(root: Path, parts: Sequence[str]) -> str:
    """A key for the Python files in folders of a tree, whether they are committed or not."""
    found = hashlib.sha256()
    for path in (path for part in parts for path in sorted((root / part).rglob("*.py"))):
        found.update(f"{path.relative_to(root).as_posix()}\n".encode() + path.read_bytes())
    return found.hexdigest()[:16]


class Run(NamedTuple):
    """What a process of the player said; its status is None where it was killed or died."""

    events: list[dict[str, Any]]
    in_time: bool
    output: str

    def ended(self, verdict: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event.get("verdict") == verdict]

    @property
    def status(self) -> int | None:
        return next((event["status"] for event in self.events if "status" in event), None)

    @property
    def running(self) -> dict[str, Any] | None:
        """The test that had begun and not ended."""
        last = next((event for event in reversed(self.events) if {"begins", "ends"} & set(event)), {})
        return last if "begins" in last else None


class Copy:
    """A copy of a project's tree; `copy_of` makes one and removes it."""

    def __init__(self, project: Project, folder: Path) -> None:
        self.project, self.folder, self.tree = project, folder, folder / "tree"
        shutil.copytree(project.root, self.tree, ignore=shutil.ignore_patterns(*LEFT_OUT))

    @contextlib.contextmanager
    def holding(self, file: str, source: str) -> Iterator[None]:
        """The file has this source meanwhile."""
        path = self.tree / file
        original = path.read_text(encoding="utf-8")
        try:
            self._write(path, source)
            yield
        finally:
            self._write(path, original)

    def _write(self, path: Path, source: str) -> None:
        path.write_text(source, encoding="utf-8")
        # Python knows for what source a compiled file is by its second and its size: both may be equal
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink()

    def run(
        self,
        tests: Sequence[str] | None,
        files: Sequence[str],
        limit: float,
        *,
        options: Sequence[str] = (),
        coverage: Path | None = None,
        patience: Callable[[str], float] = lambda test: 0.0,
    ) -> Run:
        """Run tests of these files, all of them where `tests` is None, for at most `limit` seconds from the
        first one on. A test that runs then may go on until it has run for `patience` of it.
        """
        with tempfile.TemporaryDirectory(dir=self.folder, ignore_cleanup_errors=True) as name:
            here = Path(name)
            (here / "t").mkdir()
            (here / "c").mkdir(mode=0o700)
            events, wanted, output = here / "events", here / "wanted", here / "output"
            events.touch()
            words = [sys.executable, str(PLAYER), str(events), "-"]
            if tests is not None:
                wanted.write_text("".join(f"{test}\n" for test in tests), encoding="utf-8")
                words[-1] = str(wanted)
            if coverage is not None:
                patterns = [f"{folder}/*" for folder in self.project.folders]
                words += ["--coverage", str(coverage), "--include", *patterns]
            words += ["--", "-q", "-n", "0", "-p", "no:cacheprovider", *options, *files]
            places = {"XDG_CACHE_HOME": here / "c", "CACHEDB": here / "c" / "cache.db", "TMPDIR": here / "t"}
            places["PYTHONPATH"] = self.tree
            environment = {**os.environ, **{key: str(path) for key, path in places.items()}}
            environment["COVERAGE_CORE"] = "ctrace"  # the others know no contexts
            environment.pop("PYTEST_ADDOPTS", None)
            with output.open("wb") as noise:
                process = subprocess.Popen(
                    words,
                    cwd=self.tree,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=noise,
                    stderr=noise,
                    start_new_session=True,
                    preexec_fn=_bounded,
                )
                try:
                    in_time = _waited(process, limit, events, patience)
                finally:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
            return Run(_read(events), in_time, output.read_text(encoding="utf-8", errors="replace")[-2000:])


def _bounded() -> None:
    """In a process that begins: it may have so much memory, and on Linux ends when this one is killed."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _waited(
    process: subprocess.Popen[bytes], limit: float, events: Path, patience: Callable[[str], float]
) -> bool:
    """Whether the process ended by itself."""
    start = time.monotonic()
    while not (begun := any("begins" in event for event in _read(events))) and process.poll() is None:
        if time.monotonic() > start + max(START, limit):
            return False
        time.sleep(0.05)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(limit if begun else None)
        return True
    running = Run(_read(events), False, "").running
    if running is not None:
        end = running["at"] + patience(running["begins"])  # both clocks are the machine's
        while process.poll() is None and time.monotonic() < end:
            if Run(_read(events), False, "").running != running:
                return False
            time.sleep(0.05)
    return process.poll() is not None


def _read(events: Path) -> list[dict[str, Any]]:
    lines = events.read_text(encoding="utf-8").splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]  # the last may be half of one


@contextlib.contextmanager
def copy_of(project: Project) -> Iterator[Copy]:
    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as folder:
        yield Copy(project, Path(folder))

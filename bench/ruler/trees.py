"""Trees of source that are measured by turns, each in processes of its own.

A tree is a folder whose `lazygrad` is that of a commit, and whose `bench` is that of the working tree: so all
trees play the same cases. It has a disk cache of its own.
"""

from __future__ import annotations

import io
import json
import os
import select
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
#: The landing beside which a change of the core is measured. It stays, so that small steps do not add up.
ANCHOR = "da68fb4a"


class Tree(NamedTuple):
    """A name for tables, the folder, and flags of lazygrad that its processes have."""

    name: str
    folder: Path
    flags: dict[str, str]

    def environment(self, threads: int = 1) -> dict[str, str]:
        """Of a process of this tree."""
        counts = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "THREADS"), str(threads))
        cache = str(self.folder / "cache" / "cache.db")
        return {**os.environ, "PYTHONPATH": str(self.folder), "CACHEDB": cache, **counts, **self.flags}


def commit_of(name: str) -> str:
    """The full name of a commit; ValueError where this clone does not have it."""
    done = _git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    if done.returncode:
        raise ValueError(f"this clone has no commit {name}: fetch it, or name another with --beside")
    return done.stdout.decode().strip()


def has_changes() -> bool:
    """Whether lazygrad or bench of the working tree is another than the commit's."""
    return bool(_git("status", "--porcelain", "--", "lazygrad", "bench/*.py", "bench/*/*.py").stdout.strip())


def _git(*words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, check=False)


@contextmanager
def trees(**sources: str | None) -> Iterator[list[Tree]]:
    """A tree for each name: of a commit, or of the working tree where that is None."""
    with tempfile.TemporaryDirectory() as folder:
        made = []
        for name, commit in sources.items():
            place = Path(folder) / name
            place.mkdir()
            (place / "cache").mkdir(mode=0o700)
            (place / "bench").symlink_to(ROOT / "bench")
            if commit is None:
                (place / "lazygrad").symlink_to(ROOT / "lazygrad")
            else:
                archive = _git("archive", commit_of(commit), "lazygrad")
                if archive.returncode:
                    raise ValueError(f"git archive {commit}: {archive.stderr.decode().strip()}")
                with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
                    files.extractall(place, filter="data")
            made.append(Tree(name, place, {}))
        yield made


class Player:
    """A process of a tree that plays cases; a new one after it failed or took too long."""

    def __init__(self, tree: Tree, cores: Sequence[int], patience: float = 120) -> None:
        self.tree, self.cores, self.patience = tree, cores, patience
        self.process: subprocess.Popen[str] | None = None

    def _start(self) -> subprocess.Popen[str]:
        self.noise = tempfile.TemporaryFile("w+")  # noqa: SIM115  closed with the process
        return subprocess.Popen(
            [sys.executable, "-m", "bench.ruler.player"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.noise,
            text=True,
            cwd=self.tree.folder,
            env=self.tree.environment(len(self.cores)),
            preexec_fn=lambda: os.sched_setaffinity(0, self.cores),
        )

    def ask(self, **request: Any) -> dict[str, Any]:
        """Its answer; one with "error" if it fails, dies or takes too long."""
        if self.process is None:
            self.process = self._start()
        assert self.process.stdin is not None  # both are pipes
        assert self.process.stdout is not None
        line = ""
        try:
            print(json.dumps(request), file=self.process.stdin, flush=True)
            if not select.select([self.process.stdout], [], [], self.patience)[0]:
                self.close()
                return {"error": f"took longer than {self.patience:.0f} s"}
            line = self.process.stdout.readline()
        except BrokenPipeError:
            pass
        if not line:
            status = self.process.wait()
            self.noise.seek(0)
            last = (self.noise.read().strip().splitlines() or [f"exit status {status}"])[-1]
            self.close()
            return {"error": f"the process died: {last}"}
        found: dict[str, Any] = json.loads(line)
        return found

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.noise.close()
            self.process = None


@contextmanager
def players(chosen: Sequence[Tree], cores: Sequence[int]) -> Iterator[dict[str, Player]]:
    """A player for each tree, on these cores."""
    made = {tree.name: Player(tree, cores) for tree in chosen}
    try:
        yield made
    finally:
        for player in made.values():
            player.close()

"""Plays stages in processes of their own, each with its limit, and writes what they find after each.

A case that hangs or crashes costs that case: its process is started anew for those that are left. What a
stage could not reach in its time is listed as `left`.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ..ruler.trees import ROOT
from .stages import Stage

#: A process needs so many seconds to start: with fewer left none is started.
START = 3.0
#: A dry run is not measured, and its machine may be slow and busy: limits are so many times as long.
DRY_PATIENCE = 8.0
#: Lines of what a crashed process said last that are kept.
LAST = 12


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Share:
    """What one of a stage's processes is to play, and has played, over all its starts."""

    def __init__(self, number: int, of: int, seed: int | None) -> None:
        self.number, self.of, self.seed = number, of, seed
        self.left: list[str] | None = None  #: None until the process has said what its share is
        self.results: dict[str, dict[str, Any]] = {}
        self.counts: list[dict[str, int]] = []

    def take(self, path: Path, ending: dict[str, Any]) -> None:
        """Read what a process wrote; `ending` is the result of the case in which it ended, if it did."""
        begun, counts = "", {}
        for line in path.read_text(encoding="utf-8").splitlines():
            with contextlib.suppress(json.JSONDecodeError):  # a line that was cut off
                entry = json.loads(line)
                if "all" in entry:
                    self.left = entry["all"]
                elif "begun" in entry:
                    begun = entry["begun"]
                else:
                    name = entry.pop("case")
                    counts = {k: entry.pop(k) for k in ("compiled", "played") if k in entry}
                    self._end(name, entry)
                    begun = ""
        if begun:
            self._end(begun, ending)
        elif self.left is None and "start" not in self.results:
            self._end("start", ending)
        if counts:
            self.counts.append(counts)

    def _end(self, name: str, result: dict[str, Any]) -> None:
        self.results[name] = result
        if self.left is not None and name in self.left:
            self.left.remove(name)

    @property
    def is_over(self) -> bool:
        return "start" in self.results or self.left == []


def play_stage(
    stage: Stage, mode: str, folder: Path, seconds: float, processes: int = 1, seed: int | None = None
) -> dict[str, Any]:
    """A stage in so many seconds: its cases' results, what is left, and how it ended. `seed` draws cases."""
    begin = time.monotonic()
    end = begin + seconds
    shares = [Share(number, processes, seed) for number in range(processes)]
    with ThreadPoolExecutor(processes) as pool:
        for each in [pool.submit(_play_share, stage, mode, folder, end, share) for share in shares]:
            each.result()
    results = {name: result for share in shares for name, result in share.results.items()}
    left = [name for share in shares for name in share.left or []]
    counts: dict[str, int] = {}
    for each in (found for share in shares for found in share.counts):
        counts = {key: counts.get(key, 0) + each.get(key, 0) for key in {*counts, *each}}
    failed = sum("error" in result for result in results.values())
    status = "cut" if left or not results else "failed" if failed else "done"
    return {
        "stage": stage.name,
        "about": stage.about,
        "mode": mode,
        "status": status,
        "limit": round(seconds, 1),
        "took": round(time.monotonic() - begin, 1),
        "processes": processes,
        **counts,
        "cases": results,
        "left": left,
    }


def _play_share(stage: Stage, mode: str, folder: Path, end: float, share: Share) -> None:
    while not share.is_over and time.monotonic() + START < end:
        before = len(share.results)
        _play_once(stage, mode, folder, end, share)
        if len(share.results) == before:
            return


def _play_once(stage: Stage, mode: str, folder: Path, end: float, share: Share) -> None:
    """One process, until it ends or the time does."""
    with tempfile.TemporaryDirectory() as place:
        path, noise = Path(place) / "results", Path(place) / "noise"
        path.touch()
        request = {
            "stage": list(stage),
            "mode": mode,
            "folder": str(folder),
            "cases": share.left,
            "share": [share.number, share.of],
            "seed": share.seed,
            "to": str(path),
        }
        with noise.open("w") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "bench.gpu.player"],
                stdin=subprocess.PIPE,
                stdout=file,
                stderr=subprocess.STDOUT,
                text=True,
                cwd=ROOT,
                env=environment(folder, share.of),
                start_new_session=True,
            )
            assert process.stdin is not None  # it is a pipe
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(json.dumps(request) + "\n")
                process.stdin.close()
            cut = False
            try:
                process.wait(max(end - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                cut = True
            finally:
                end_group(process)
        said = noise.read_text(encoding="utf-8", errors="replace")
        share.take(path, _ending(process.returncode, cut, said, stage.patience))


def end_group(process: subprocess.Popen[str]) -> None:
    """End a process, and what it has started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _ending(status: int, cut: bool, said: str, patience: float) -> dict[str, Any]:
    """The result of the case in which a process ended."""
    if cut:
        return {"error": {"type": "Cut", "text": "the stage's time was over in this case"}}
    if "Timeout (" in said:  # faulthandler's
        places = [line.strip() for line in said.splitlines() if line.strip().startswith("File ")][:LAST]
        return {"error": {"type": "Hang", "text": f"took longer than {patience:g} s", "at": places}}
    how = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
    return {
        "error": {"type": "Crash", "text": f"its process ended: {how}", "said": said.splitlines()[-LAST:]}
    }


def environment(folder: Path, processes: int = 1) -> dict[str, str]:
    """Of the processes: this tree first, the rest as it was given (platformdirs may be a wheel there);
    programs that were compiled before, in another process or run, are kept beside the results; CUDA's headers
    are those beside nvcc, where nobody says; and the CPU's cores are shared.
    """
    cache = folder / "cache"
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    nvcc = shutil.which("nvcc")
    toolkit = {"CUDA_HOME": str(Path(nvcc).resolve().parents[1])} if nvcc else {}
    return {
        **toolkit,
        **os.environ,
        "PYTHONPATH": path,
        "THREADS": str(max(1, cores() // processes)),
        "CACHEDB": str(cache / "cache.db"),
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"),
        "TRITON_CACHE_DIR": str(cache / "triton"),
    }


_writing = threading.Lock()


def write(folder: Path, result: dict[str, Any]) -> Path:
    """Keep a stage's result: of a dry run both halves are in one file. Whoever reads finds it whole."""
    path = folder / f"{result['stage']}.json"
    with _writing:
        whole = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        whole[result["mode"]] = result
        new = path.with_suffix(".new")
        new.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
        new.replace(path)
    return path


def processes_of(stage: Stage) -> int:
    """On the machine with the GPU."""
    return max(1, min(stage.processes, cores() - 2))

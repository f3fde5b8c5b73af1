"""Generated code beside PyTorch, JAX and numpy, in one run; also `python -m bench` alone.

    python -m bench                        all cases on one core
    python -m bench --threads 2            on two
    python -m bench --threads 1 2 --json speed.json    on one and then on two, and all that was measured
    python -m bench --cases matmul sort    those with these words in their names
    python -m bench --kernels              the kernels of each case, their times and Opts
    python -m bench --quick                each briefly: that it runs and is right, not how fast it is

Each library has a process of its own on the same cores, and they take turns, so that what disturbs one
disturbs all. Everything is warm (compiled, captured, caches filled), outputs are checked against PyTorch's in
float64. Times are the fastest of all; a ratio is lazygrad's time over the other's (below 1: faster).
`limit` is lazygrad's time over the least that these cores could take, measured in the same run: FLOPs over
the peak of multiply-adds, or bytes over a bandwidth, whichever takes longer. Bytes that the last cache holds
come from the first cache that does; more of them from memory, whose speed is measured by turns with the case
as `limit.py` says. (A case little larger than the last cache finds a part there: it may come below 1.)
A library that fails, dies or takes longer than --patience over something has no time, and a new process for
the next case; what was measured is written after each case.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from lazygrad.report.roofline import Roofline

from .cases import Case, named
from .limit import Limit
from .peer import CLOCKS, LIBRARIES

PEERS = [library for library in LIBRARIES if library != "lazygrad"]
MODULES = {"torch.compile": "torch"}
#: Kernels with less of a case's time are not listed.
SHOWN = 0.03


class Peer:
    """A library's process, bound to some cores; a new one after it failed."""

    def __init__(self, library: str, cores: list[int], patience: float) -> None:
        self.library, self.cores, self.patience = library, cores, patience
        self.process: subprocess.Popen[str] | None = None

    def _start(self) -> subprocess.Popen[str]:
        self.noise = tempfile.TemporaryFile("w+")  # noqa: SIM115  closed with the process
        count = str(len(self.cores))
        threads = dict.fromkeys(
            ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "THREADS"), count
        )
        return subprocess.Popen(
            [sys.executable, "-m", "bench.speed.peer", self.library, count],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.noise,
            text=True,
            env={**os.environ, **threads},
            preexec_fn=lambda: os.sched_setaffinity(0, self.cores),
        )

    def ask(self, **request: Any) -> dict[str, Any]:
        """Its answer; one with "error" if it fails, dies or takes too long."""
        if self.process is None:
            self.process = self._start()
        process = self.process
        assert process.stdin is not None  # both are pipes
        assert process.stdout is not None
        line = ""
        try:
            print(json.dumps(request), file=process.stdin, flush=True)
            if not select.select([process.stdout], [], [], self.patience)[0]:
                self.close()
                return {"error": f"{self.library} took longer than {self.patience:.0f} s"}
            line = process.stdout.readline()
        except BrokenPipeError:
            pass
        if not line:
            answer = {"error": f"the process of {self.library} died: {self._last_words(process)}"}
            self.close()
            return answer
        found: dict[str, Any] = json.loads(line)
        return found

    def _last_words(self, process: subprocess.Popen[str]) -> str:
        status = process.wait()
        self.noise.seek(0)
        lines = self.noise.read().strip().splitlines()
        return lines[-1] if lines else f"exit status {status}"

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.noise.close()
            self.process = None


@contextmanager
def started(libraries: list[str], cores: list[int], patience: float) -> Iterator[dict[str, Peer]]:
    """The processes of libraries, and that of the reference where PyTorch is installed: `reference`."""
    peers = {library: Peer(library, cores, patience) for library in libraries}
    if _installed("torch"):
        peers["reference"] = Peer("torch", cores, patience)
    try:
        yield peers
    finally:
        for peer in peers.values():
            peer.close()


def measure(
    case: Case, peers: dict[str, Peer], limit: Limit, rounds: int, seconds: float, clock: str = "wall"
) -> tuple[dict[str, dict[str, Any]], Limit]:
    """For each library "fastest" and "median" in seconds and "wrong", its error; or "error". And what the
    cores can do at most, which is measured again by turns with them.

    For lazygrad also "kernels": the name, seconds, operations, bytes and Opts of each.
    """
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        correct = _reference(case, peers, os.path.join(folder, "reference.npy"))
        for library, peer in peers.items():
            if library == "reference":
                continue
            path = os.path.join(folder, f"{library}.npy")
            found[library] = peer.ask(case=case.name, dtype=case.dtype, save=path, warm=True)
            if "error" not in found[library] and correct is not None:
                found[library]["wrong"] = _error(np.load(path), correct)
    for _ in range(rounds):
        for library, held in found.items():
            if "error" in held:
                continue
            for key, value in peers[library].ask(seconds=seconds, clock=clock).items():
                held[key] = min(held.get(key, value), value)
        if limit.needs_memory(case):
            limit = limit.or_better(Limit(limit.roofline, *_asked(peers["lazygrad"], memory=seconds)))
    limit = limit.or_better(limit._replace(roofline=_roofline(peers["lazygrad"])))
    if "fastest" in found.get("lazygrad", {}):
        found["lazygrad"].update(peers["lazygrad"].ask(kernels=seconds))
    for library in found:
        peers[library].ask(case=None)  # its memory
    return found, limit


def _reference(case: Case, peers: dict[str, Peer], path: str) -> np.ndarray | None:
    """The result in float64; None without PyTorch."""
    if "reference" not in peers:
        return None
    answer = peers["reference"].ask(case=case.name, dtype="float64", save=path, warm=False)
    if "error" in answer:
        raise RuntimeError(f"{case.name}: the reference failed: {answer['error']}")
    peers["reference"].ask(case=None)
    return np.load(path)


def _error(found: np.ndarray, correct: np.ndarray) -> float:
    """The largest error, as a share of the largest correct value; NaN where they differ in NaNs or shapes."""
    if found.shape != correct.shape:
        return float("nan")
    return float(np.abs(found.astype(np.float64) - correct).max() / max(np.abs(correct).max(), 1e-30))


def _roofline(peer: Peer) -> Roofline:
    """What these cores can do at most, measured by lazygrad's process now."""
    ops, caches, memory = _asked(peer, roofline=True)
    return Roofline(ops, tuple(map(tuple, caches)), memory)


def _asked(peer: Peer, **request: Any) -> Any:
    (key,) = request
    answer = peer.ask(**request)
    if "error" in answer:
        raise RuntimeError(f"the {key} could not be measured: {answer['error']}")
    return answer[key]


def _installed(library: str) -> bool:
    return importlib.util.find_spec(MODULES.get(library, library)) is not None


def _row(case: Case, found: dict[str, dict[str, Any]], limit: Limit, peers: list[str]) -> str:
    ours = found["lazygrad"]
    if "error" in ours:
        return f"{case.name:26} {ours['error']}"
    time = ours["fastest"]
    cells = []
    for library in peers:
        theirs = found.get(library, {})
        cells.append(f"{time / theirs['fastest']:14.2f}" if "fastest" in theirs else f"{'-':>14}")
    wrong = "" if ours.get("wrong", 0.0) <= case.tolerance else f"  WRONG by {ours['wrong']:.1e}"
    return f"{case.name:26} {time * 1e3:9.3f} {time / limit.seconds(case):7.2f}" + "".join(cells) + wrong


def _kernel_rows(ours: dict[str, Any]) -> Iterator[str]:
    """The kernels that take a share of the time: milliseconds, share, what they reach, and their Opts."""
    kernels = ours.get("kernels", [])
    total = sum(kernel["seconds"] for kernel in kernels)
    for kernel in kernels:
        seconds = max(kernel["seconds"], 1e-9)
        if seconds >= SHOWN * total:
            reached = (
                f"{kernel['ops'] / seconds * 1e-9:6.0f} GFLOP/s {kernel['bytes'] / seconds * 1e-9:6.1f} GB/s"
            )
            share = f"{100 * seconds / total:4.0f}%"
            yield f"  {seconds * 1e3:9.3f} ms {share} {reached}  {kernel['name']}  {kernel['opts']}"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        "python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--threads",
        type=int,
        nargs="+",
        default=[1],
        help="cores that each library may use; one run for each",
    )
    parser.add_argument("--cases", nargs="*", default=[], help="words: cases with one of them in their names")
    parser.add_argument(
        "--peers", nargs="*", default=PEERS, choices=PEERS, help="the libraries beside lazygrad"
    )
    parser.add_argument("--rounds", type=int, default=5, help="turns of each library")
    parser.add_argument("--seconds", type=float, default=0.3, help="how long a turn is")
    parser.add_argument(
        "--clock", choices=list(CLOCKS), default="wall", help="cpu: processor time, where others work beside"
    )
    parser.add_argument("--quick", action="store_true", help="one short turn each")
    parser.add_argument("--kernels", action="store_true", help="list the kernels of each case")
    parser.add_argument("--patience", type=float, default=120, help="seconds that one answer may take")
    parser.add_argument("--json", metavar="PATH", help="write all that was measured here too")
    given = parser.parse_args(arguments)
    try:
        cases = named(given.cases)
    except ValueError as error:
        parser.error(str(error))
    cores = sorted(os.sched_getaffinity(0))
    for threads in given.threads:
        if not 1 <= threads <= len(cores):
            parser.error(f"--threads {threads}: this process may use {len(cores)} cores")
    libraries = [library for library in given.peers if _installed(library)]
    for library in given.peers:
        if library not in libraries:
            print(f"{library} is not installed: pip install {MODULES.get(library, library)}")
    runs: list[dict[str, Any]] = []
    wrong = 0
    for threads in given.threads:
        with started(["lazygrad", *libraries], cores[:threads], given.patience) as peers:
            for run, failed in _run(cases, peers, threads, given):
                wrong += failed
                if given.json:
                    with open(given.json, "w") as file:
                        json.dump({"runs": [*runs, run]}, file, indent=1)
            runs.append(run)
    return 1 if wrong else 0


def _run(
    cases: list[Case], peers: dict[str, Peer], threads: int, given: argparse.Namespace
) -> Iterator[tuple[dict[str, Any], bool]]:
    """After each case: all that was measured on so many cores until then, and whether lazygrad failed."""
    begin = time.perf_counter()
    rounds, seconds = (1, 0.0) if given.quick else (given.rounds, given.seconds)
    limit = Limit(_roofline(peers["lazygrad"]), *_asked(peers["lazygrad"], memory=seconds))
    libraries = [library for library in peers if library not in ("lazygrad", "reference")]
    print(f"{threads} of {os.cpu_count()} cores")
    print(f"{'case':26} {'ms':>9} {'limit':>7}" + "".join(f"{library:>14}" for library in libraries))
    results: dict[str, dict[str, dict[str, Any]]] = {}
    for case in cases:
        found, limit = measure(case, peers, limit, rounds, seconds, given.clock)
        results[case.name] = found
        print(_row(case, found, limit, libraries), flush=True)
        if given.kernels:
            for row in _kernel_rows(found["lazygrad"]):
                print(row, flush=True)
        ours = found["lazygrad"]
        took = time.perf_counter() - begin
        yield (
            {
                "threads": threads,
                "seconds": took,
                "limit": {**limit.roofline._asdict(), "read": limit.read, "both": limit.both},
                "cases": results,
            },
            "error" in ours or not ours.get("wrong", 0.0) <= case.tolerance,
        )
    print(f"the most of all turns: {limit}")

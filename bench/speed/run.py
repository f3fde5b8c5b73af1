"""Generated code beside PyTorch, JAX and numpy, in one run; also `python -m bench` alone.

    python -m bench                        all cases on one core
    python -m bench --threads 2            on two
    python -m bench --cases matmul sort    those with these words in their names
    python -m bench --quick                each briefly: that it runs and is right, not how fast it is

Each library has a process of its own on the same cores, and they take turns, so that what disturbs one
disturbs all. Everything is warm (compiled, captured, caches filled), outputs are checked against PyTorch's in
float64. Times are the fastest of all; a ratio is lazygrad's time over the other's (below 1: faster).
`limit` is lazygrad's time over that of the roofline measured in the same run: FLOPs over the peak of
multiply-adds, or bytes over the bandwidth, whichever takes longer.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from typing import Any

import numpy as np

from lazygrad.engine.roofline import Roofline

from .cases import Case, named
from .peer import CLOCKS, LIBRARIES

PEERS = [library for library in LIBRARIES if library != "lazygrad"]
MODULES = {"torch.compile": "torch"}


class Peer:
    """A library's process, bound to some cores."""

    def __init__(self, library: str, cores: list[int]) -> None:
        self.library = library
        self.noise = tempfile.TemporaryFile("w+")  # noqa: SIM115  closed with the process
        count = str(len(cores))
        threads = dict.fromkeys(
            ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "THREADS"), count
        )
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bench.speed.peer", library, count],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.noise,
            text=True,
            env={**os.environ, **threads},
            preexec_fn=lambda: os.sched_setaffinity(0, cores),
        )

    def ask(self, **request: Any) -> dict[str, Any]:
        """Its answer; one with "error" if it fails or dies."""
        assert self.process.stdin is not None  # both are pipes
        assert self.process.stdout is not None
        try:
            print(json.dumps(request), file=self.process.stdin, flush=True)
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        return (
            json.loads(line)
            if line
            else {"error": f"the process of {self.library} died: {self._last_words()}"}
        )

    def _last_words(self) -> str:
        self.noise.seek(0)
        lines = self.noise.read().strip().splitlines()
        return lines[-1] if lines else f"exit status {self.process.wait()}"

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.noise.close()


def measure(
    case: Case, libraries: list[str], cores: list[int], rounds: int, seconds: float, clock: str = "wall"
) -> dict[str, dict[str, Any]]:
    """For each library "fastest" and "median" in seconds and "wrong", its error; or "error"."""
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        correct = _reference(case, cores, os.path.join(folder, "reference.npy"))
        peers = []
        for library in libraries:
            peer = Peer(library, cores)
            path = os.path.join(folder, f"{library}.npy")
            found[library] = peer.ask(case=case.name, dtype=case.dtype, save=path, warm=True)
            if "error" in found[library]:
                peer.close()
                continue
            peers.append(peer)
            if correct is not None:
                found[library]["wrong"] = _error(np.load(path), correct)
        for _ in range(rounds):
            for peer in peers:
                answer = peer.ask(seconds=seconds, clock=clock)
                held = found[peer.library]
                for key, value in answer.items():
                    held[key] = min(held.get(key, value), value)
        for peer in peers:
            peer.close()
    return found


def _reference(case: Case, cores: list[int], path: str) -> np.ndarray | None:
    """The result in float64; None without PyTorch."""
    if not _installed("torch"):
        return None
    peer = Peer("torch", cores)
    answer = peer.ask(case=case.name, dtype="float64", save=path, warm=False)
    peer.close()
    if "error" in answer:
        raise RuntimeError(f"{case.name}: the reference failed: {answer['error']}")
    return np.load(path)


def _error(found: np.ndarray, correct: np.ndarray) -> float:
    """The largest error, as a share of the largest correct value; NaN where they differ in NaNs or shapes."""
    if found.shape != correct.shape:
        return float("nan")
    return float(np.abs(found.astype(np.float64) - correct).max() / max(np.abs(correct).max(), 1e-30))


def _roofline(cores: list[int]) -> Roofline:
    """What these cores can do at most, measured by lazygrad's process now."""
    peer = Peer("lazygrad", cores)
    answer = peer.ask(roofline=True)
    peer.close()
    if "error" in answer:
        raise RuntimeError(f"the roofline could not be measured: {answer['error']}")
    return Roofline(answer["ops"], tuple(map(tuple, answer["bandwidth"])))


def _installed(library: str) -> bool:
    return importlib.util.find_spec(MODULES.get(library, library)) is not None


def _row(case: Case, found: dict[str, dict[str, Any]], roofline: Roofline, peers: list[str]) -> str:
    ours = found["lazygrad"]
    if "error" in ours:
        return f"{case.name:26} {ours['error']}"
    time = ours["fastest"]
    cells = []
    for library in peers:
        theirs = found.get(library, {})
        cells.append(f"{time / theirs['fastest']:13.2f}" if "fastest" in theirs else f"{'-':>13}")
    wrong = "" if ours.get("wrong", 0.0) <= case.tolerance else f"  WRONG by {ours['wrong']:.1e}"
    limit = max(case.flops / roofline.ops, case.moved / roofline.bytes_per_second(int(case.moved)))
    return f"{case.name:26} {time * 1e3:9.3f} {time / limit:7.2f}" + "".join(cells) + wrong


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        "python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=1, help="cores that each library may use")
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
    parser.add_argument("--json", metavar="PATH", help="write all that was measured here too")
    given = parser.parse_args(arguments)
    try:
        cases = named(given.cases)
    except ValueError as error:
        parser.error(str(error))
    cores = sorted(os.sched_getaffinity(0))
    if not 1 <= given.threads <= len(cores):
        parser.error(f"--threads {given.threads}: this process may use {len(cores)} cores")
    rounds, seconds = (1, 0.0) if given.quick else (given.rounds, given.seconds)
    peers = [library for library in given.peers if _installed(library)]
    for library in given.peers:
        if library not in peers:
            print(f"{library} is not installed: pip install {MODULES.get(library, library)}")
    cores = cores[: given.threads]
    roofline = _roofline(cores)
    ops, rate = roofline.ops * 1e-9, roofline.bytes_per_second(1 << 40) * 1e-9
    print(f"{given.threads} of {os.cpu_count()} cores: {ops:.0f} GFLOP/s, {rate:.1f} GB/s")
    print(f"{'case':26} {'ms':>9} {'limit':>7}" + "".join(f"{library:>13}" for library in peers))
    results, wrong = {}, 0
    for case in cases:
        found = measure(case, ["lazygrad", *peers], cores, rounds, seconds, given.clock)
        results[case.name] = found
        ours = found["lazygrad"]
        wrong += "error" in ours or not ours.get("wrong", 0.0) <= case.tolerance
        print(_row(case, found, roofline, peers), flush=True)
    if given.json:
        with open(given.json, "w") as file:
            json.dump(
                {"threads": given.threads, "roofline": roofline._asdict(), "cases": results}, file, indent=1
            )
    return 1 if wrong else 0

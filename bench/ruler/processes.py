"""Measurements that are whole processes: latency, start, memory, growing sizes, the compiler's own time.

Each is a command of `bench`, run in a tree; what it prints becomes numbers by name. Smaller is better.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .trees import Tree

#: Seconds that one process may take.
PATIENCE = 300


class Command(NamedTuple):
    """One process: its words after `python -m`, and how its output becomes numbers; `times` as it is run in a
    tree: a second time with the cache that the first has filled."""

    name: str
    suite: str
    words: Sequence[str]
    read: Callable[[str], dict[str, float]]
    times: int = 1


def run(command: Command, tree: Tree, threads: int) -> dict[str, float]:
    """Its numbers by name; RuntimeError with its last words where it fails."""
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory(dir=tree.folder) as folder:
        cache = Path(folder) / "private"
        cache.mkdir(mode=0o700)
        environment = {**tree.environment(threads), "CACHEDB": str(cache / "cache.db")}
        for again in range(command.times):
            done = subprocess.run(
                [sys.executable, "-m", *command.words],
                cwd=tree.folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=PATIENCE,
                check=False,
            )
            if done.returncode:
                last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
                raise RuntimeError(f"{command.name}: {last}")
            prefix = f"{command.suite}: {command.name}" + (", again" if again else "")
            found |= {f"{prefix}{name}": value for name, value in command.read(done.stdout).items()}
    return found


def _microseconds(output: str) -> dict[str, float]:
    lines = [line for line in output.splitlines() if not line.startswith("#")]
    numbers = [float(word) for line in lines for word in line.split()]
    return {f" {n + 1}" if len(numbers) > 1 else "": value * 1e-6 for n, value in enumerate(numbers)}


def _marks(output: str) -> dict[str, float]:
    marks: list[tuple[float, float]] = json.loads(output.splitlines()[-1])
    return {f", processor time until mark {n + 1}": work for n, (_, work) in enumerate(marks)}


def _memory(output: str) -> dict[str, float]:
    found = json.loads(output.splitlines()[-1])
    return {", peak MB": found["peak"] / 1e6, ", buffers MB": found["buffers"] / 1e6}


def _growing(output: str) -> dict[str, float]:
    (token,) = re.findall(r"a later token at least ([\d.]+) ms", output)
    (total,) = re.findall(r"CPU time ([\d.]+) s", output)
    return {", a later token": float(token) * 1e-3, ", all": float(total)}


def _compile(output: str) -> dict[str, float]:
    results: list[dict[str, Any]] = json.loads(output)["results"]
    return {f" {row['case']}": row["seconds_min"] for row in results}


#: A GPT for the memory of a training step: small enough to be played often.
SMALL = ("--layers", "4", "--width", "256", "--tokens", "128", "--vocabulary", "8000", "--steps", "4")
COMMANDS = [
    *(
        Command(case, "latency", ("bench.latency_cases", "lazygrad", case), _microseconds, times)
        for case, times in (("load", 1), ("eager", 1), ("jit", 1), ("replay", 1), ("mlp", 2), ("block", 2))
    ),
    Command("demo", "start", ("bench.start", "--one", "demo"), _marks, 2),
    Command("GPT", "start", ("bench.start", "--one", "lazygrad", "--layers", "4"), _marks, 2),
    Command("GPT, jit", "memory", ("bench", "memory", *SMALL, "--alone", "jit"), _memory),
    Command("GPT", "memory", ("bench", "memory", *SMALL, "--alone", "lazygrad"), _memory),
    Command("GPT", "growing", ("bench", "growing", "--tokens", "40"), _growing),
    *(
        Command(case, "compile", ("bench", "compile", "--json", "--repeats", "1", "--cases", case), _compile)
        for case in ("kernel", "schedule", "layers", "mlp", "convnet", "digits", "transformer")
    ),
]

"""Waiting: imports, first results, single calls, beside PyTorch and JAX.

    python -m bench latency                  all rows, one core, five processes of each library
    python -m bench latency --rounds 1       fewer
    python -m bench latency --json           the same as JSON, one object
    python -m bench latency --quick          one process each and few rows: that it runs, not how fast

Every number comes from a process of its own; the libraries take turns on the same core, and the least of all
rounds is shown. *Cold* begins with an empty cache on disk, *warm* is the next process with the same cache
(PyTorch compiles nothing, so its two are alike). A library that is not installed is named and left out.
`goal` is what we want of lazygrad.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

#: Library → the module that must be there.
MODULES = {"lazygrad": "lazygrad", "PyTorch": "torch", "JAX": "jax"}


class Row(NamedTuple):
    """One line: which number of which case (`bench/latency_cases.py`), in which process.

    number  of those that the case prints; None is the wall time of the whole process
    again   whether the case runs a second time with the cache that the first filled: then that is shown
    """

    text: str
    case: str
    number: int | None
    unit: str
    goal: float
    again: bool = False


ROWS = [
    Row("import", "load", 0, "ms", 60e3),
    Row("a process that adds two tensors, cold", "two", None, "ms", 300e3),
    Row("the same, warm", "two", None, "ms", 200e3, again=True),
    Row("eager add of 4 floats", "eager", 0, "us", 40),
    Row("jit call of one kernel", "jit", 0, "us", 5),
    Row("the same, its result kept", "jit", 1, "us", 10),
    Row("100 dependent tiny kernels, each", "replay", 0, "us", 0.4),
    Row("MLP, three training steps, cold", "mlp", 0, "ms", 700e3),
    Row("the same, warm", "mlp", 0, "ms", 150e3, again=True),
    Row("transformer block, first result, cold", "block", 0, "ms", 500e3),
    Row("the same, warm", "block", 0, "ms", 80e3, again=True),
]
QUICK = ("load", "two")


def present() -> tuple[list[str], list[str]]:
    """(libraries that are installed, those that are not)."""
    found = {name: importlib.util.find_spec(module) is not None for name, module in MODULES.items()}
    return [name for name in found if found[name]], [name for name in found if not found[name]]


def run(library: str, case: str, folder: str) -> list[float]:
    """The wall time of a process in microseconds, then the numbers that it printed."""
    env = {**os.environ, "CACHEDB": os.path.join(folder, "cache.db")}
    env |= {"JAX_COMPILATION_CACHE_DIR": folder, "JAX_PLATFORMS": "cpu"}
    env |= {
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    command = [sys.executable, "-m", "bench.latency_cases", library, case]
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    wall = (time.perf_counter() - start) * 1e6
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[1:])} failed:\n{done.stderr[-2000:]}")
    lines = [line for line in done.stdout.splitlines() if not line.startswith("#")]
    return [wall, *[float(word) for line in lines for word in line.split()]]


def measure(libraries: list[str], rows: list[Row], rounds: int) -> dict[str, list[float | None]]:
    """Library → the least number of each row; None where it has none."""
    least: dict[tuple[str, str, bool], list[list[float]]] = {}
    cases = dict.fromkeys(row.case for row in rows)
    for _ in range(rounds):
        for case in cases:
            for library in libraries:
                with tempfile.TemporaryDirectory() as folder:
                    for again in (False, True):
                        if not again or any(row.again for row in rows if row.case == case):
                            least.setdefault((library, case, again), []).append(run(library, case, folder))
    table: dict[str, list[float | None]] = {}
    for library in libraries:
        table[library] = []
        for row in rows:
            place = 0 if row.number is None else row.number + 1
            runs = [found[place] for found in least[library, row.case, row.again] if place < len(found)]
            table[library].append(min(runs, default=None))
    return table


def number(value: float | None, unit: str) -> str:
    """A number of microseconds in its unit, three figures."""
    if value is None:
        return "-"
    scaled = value / {"us": 1, "ms": 1e3}[unit]
    return f"{scaled:.0f}" if scaled >= 100 else f"{scaled:.1f}" if scaled >= 10 else f"{scaled:.2f}"


def text(rows: list[Row], table: dict[str, list[float | None]]) -> str:
    """The table."""
    lines = [["", *table, "goal", ""]]
    for at, row in enumerate(rows):
        numbers = [number(found[at], row.unit) for found in table.values()]
        lines.append([row.text, *numbers, number(row.goal, row.unit), row.unit])
    widths = [max(len(line[n]) for line in lines) for n in range(len(lines[0]))]
    return "\n".join(
        "  ".join(
            word.ljust(width) if n == 0 else word.rjust(width)
            for n, (word, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench latency", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--rounds", type=int, default=5, help="processes of each library for each row (5)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quick", action="store_true", help="few rows, once: that it runs, not how fast")
    options = parser.parse_args(arguments)
    if hasattr(os, "sched_setaffinity"):  # what is started stays on the same core
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    libraries, missing = present()
    rows = [row for row in ROWS if not options.quick or row.case in QUICK]
    if options.quick:
        libraries = libraries[:1]
    table = measure(libraries, rows, 1 if options.quick else options.rounds)
    if options.json:
        print(
            json.dumps({"rows": [row._asdict() for row in rows], "microseconds": table, "missing": missing})
        )
    else:
        print(text(rows, table))
        if missing:
            print(f"not installed: {', '.join(missing)}")
    return 0

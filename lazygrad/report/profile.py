"""What ran, summed up: by kernel and by line of the user's program, and as a timeline.

`DEBUG=2` prints the tables at the end of a process; `lazygrad.profile()` gives them as an object.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import linecache
import math
import os
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..config import DEBUG
from ..device import Buffer, GlobalCounters
from ..ir.ops import TRANSFERS, Ops
from ..ir.uop import UOp
from ..schedule.kernels.items import ScheduleItem
from ..shape import shape_text
from .rows import plain_name
from .terminal import show, time_text

#: So many runs are kept for the timeline; the sums have all.
MOST_RUNS = 200_000
#: So many rows of a table are printed.
LISTED = 20
#: Columns of a name, and of the text of a line.
NAME, CODE = 40, 60
#: What stands for the line where none was noted: the operation was recorded before lines were asked for.
NO_LINE = "(recorded before)"
#: And where a TinyJit runs kernels of many lines at once.
OF_JIT = "(at once, in a jit)"


class Run(NamedTuple):
    """One kernel or copy that ran.

    name   as DEBUG=2 shows it            calls  the methods that it comes from, the latest first
    line   of the program, of the latest  shape  of what it writes
    begin  in seconds from the beginning of the profile
    """

    device: str
    name: str
    calls: tuple[str, ...]
    line: str
    shape: str
    begin: float
    seconds: float
    ops: int
    nbytes: int


@dataclass
class Row:
    """The runs of one kernel, or of one line.

    what    the kernel's name, or `file:line`    device  of the kernel; "" for a line
    detail  the methods that it comes from, or the text of the line
    count   how often it ran     seconds, ops, nbytes  of all these runs     share  of the time of all rows
    """

    what: str
    device: str
    detail: str
    count: int = 0
    seconds: float = 0.0
    ops: int = 0
    nbytes: int = 0
    share: float = 0.0

    @property
    def gbs(self) -> float:
        """Bytes of all arguments per second, in 10⁹."""
        return self.nbytes / max(self.seconds, 1e-12) * 1e-9

    @property
    def gflops(self) -> float:
        return self.ops / max(self.seconds, 1e-12) * 1e-9

    def _add(self, run: Run) -> None:
        self.count += 1
        self.seconds += run.seconds
        self.ops += run.ops
        self.nbytes += run.nbytes


class Profile:
    """What ran in a block.

    rows, lines     a Row for each kernel and copy, for each line of the program; the longest first
    total           seconds of all kernels and copies     wall  seconds of the block
    runs            each run in order, of the first 200,000
    """

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.total = 0.0
        self.wall = 0.0
        self._begin = time.perf_counter()
        self._kernels: dict[tuple[str, str], Row] = {}
        self._lines: dict[str, Row] = {}

    def __repr__(self) -> str:
        return f"<profile of {self.count} runs of {len(self._kernels)} kernels, {self.total * 1e3:.2f} ms>"

    @property
    def count(self) -> int:
        """How many kernels and copies ran."""
        return sum(row.count for row in self._kernels.values())

    @property
    def rows(self) -> list[Row]:
        return _sorted(self._kernels.values(), self.total)

    @property
    def lines(self) -> list[Row]:
        return _sorted(self._lines.values(), self.total)

    # *** noting

    def note(self, item: ScheduleItem, name: str, seconds: float | None, ops: int, moved: int) -> None:
        """Called after each kernel and copy."""
        metadata = item.metadata
        line = next((found for each in metadata if (found := getattr(each, "line", ""))), "")
        calls = tuple(dict.fromkeys(getattr(each, "name", str(each)) for each in metadata))
        shown = " ".join(name.split()) if item.ast.op in TRANSFERS else plain_name(item.ast, name)
        self._add(
            item.bufs[0].device, shown, calls, line, output_shape(item.ast, item.bufs), seconds, ops, moved
        )

    def note_batch(self, device: str, name: str, seconds: float, ops: int, moved: int) -> None:
        """Kernels that ran as one, so that the time of each is not known."""
        self._add(device, name, (), OF_JIT, "", seconds, ops, moved)

    def _add(
        self,
        device: str,
        name: str,
        calls: tuple[str, ...],
        line: str,
        shape: str,
        seconds: float | None,
        ops: int,
        nbytes: int,
    ) -> None:
        took = seconds or 0.0
        begin = time.perf_counter() - self._begin - took
        run = Run(device, name, calls, line or NO_LINE, shape, begin, took, ops, nbytes)
        if len(self.runs) < MOST_RUNS:
            self.runs.append(run)
        self.total += took
        kernel = self._kernels.get((device, name))
        if kernel is None:
            kernel = self._kernels[device, name] = Row(name, device, ", ".join(calls))
        kernel._add(run)
        of_line = self._lines.get(run.line)
        if of_line is None:
            of_line = self._lines[run.line] = Row(short_path(run.line), "", code_at(run.line))
        of_line._add(run)

    # *** showing

    def text(self, most: int = LISTED) -> str:
        """The two tables, of so many rows each."""
        if not self._kernels:
            return "no kernel ran"
        several = len({row.device for row in self._kernels.values()}) > 1
        named = [(f"{row.device} {row.what}" if several else row.what, row) for row in self.rows]
        tables = [_table("kernel", "from", named, most)]
        if not self._lines.keys() <= {NO_LINE, OF_JIT}:
            tables.append(_table("line", "", [(row.what, row) for row in self.lines], most))
        end = f"{self.count} runs of {len(self._kernels)} kernels and copies, {self.total * 1e3:.2f} ms"
        if self.wall:
            end += f" of {self.wall * 1e3:.2f} ms"
        return "\n\n".join(tables) + f"\n\n{end}"

    def print(self, most: int = LISTED) -> None:
        """Print the tables, of so many rows each."""
        show(self.text(most))

    def trace(self, path: str | os.PathLike[str]) -> None:
        """Write a timeline as JSON in the Trace Event Format, which ui.perfetto.dev opens.

        A row for each device; each run is a complete event (`ph` is "X") with its times in microseconds.
        """
        devices = list(dict.fromkeys(run.device for run in self.runs))
        events: list[dict[str, Any]] = [_named("process_name", 0, "lazygrad")]
        events += [_named("thread_name", number, device) for number, device in enumerate(devices)]
        for run in self.runs:
            details = {"line": run.line, "from": ", ".join(run.calls), "shape": run.shape}
            events.append(
                {
                    "name": run.name,
                    "cat": "copy" if run.name.startswith(("copy ", "xfer ")) else "kernel",
                    "ph": "X",
                    "ts": run.begin * 1e6,
                    "dur": run.seconds * 1e6,
                    "pid": 0,
                    "tid": devices.index(run.device),
                    "args": {**details, "operations": run.ops, "bytes": run.nbytes},
                }
            )
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": events, "displayTimeUnit": "ms"}, file)


def _named(what: str, tid: int, name: str) -> dict[str, Any]:
    """A metadata event: what a process or a thread is called."""
    return {"name": what, "ph": "M", "pid": 0, "tid": tid, "args": {"name": name}}


def _sorted(rows: Iterable[Row], total: float) -> list[Row]:
    found = sorted(rows, key=lambda row: -row.seconds)
    for row in found:
        row.share = row.seconds / total if total else 0.0
    return found


def _table(what: str, detail: str, rows: Sequence[tuple[str, Row]], most: int) -> str:
    cells = [(what, "count", "time", "share", "GB/s", detail)]
    for name, row in rows[:most]:
        cells.append(_cells(name, row))
    if len(rows) > most:
        rest = [row for _, row in rows[most:]]
        other = Row("", "", "", sum(r.count for r in rest), sum(r.seconds for r in rest))
        other.nbytes, other.share = sum(r.nbytes for r in rest), sum(r.share for r in rest)
        cells.append(_cells(f"{len(rest)} more", other))
    widths = [max(len(line[column]) for line in cells) for column in range(5)]
    lines = []
    for first, *numbers, last in cells:
        right = [text.rjust(width) for text, width in zip(numbers, widths[1:], strict=True)]
        lines.append("  ".join([first.ljust(widths[0]), *right, last]).rstrip())
    return "\n".join(lines)


def _cells(name: str, row: Row) -> tuple[str, str, str, str, str, str]:
    took = time_text(row.seconds).strip()
    return (
        _cut(name, NAME),
        str(row.count),
        took,
        f"{row.share:.1%}",
        f"{row.gbs:.1f}",
        _cut(row.detail, CODE),
    )


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def short_path(line: str) -> str:
    """`file:line` with the file as seen from the working directory, if it is below it."""
    path, colon, number = line.rpartition(":")
    here = os.getcwd() + os.sep
    return path.removeprefix(here) + colon + number


def code_at(line: str) -> str:
    """The text of a `file:line`; "" where it is not to be had."""
    path, _, number = line.rpartition(":")
    return linecache.getline(path, int(number)).strip() if number.isdecimal() else ""


def output_shape(ast: UOp, bufs: Sequence[Buffer]) -> str:
    """The shape of what a kernel writes, without axes of size 1; of the largest where it writes several."""
    if ast.op in TRANSFERS:
        return shape_text((bufs[0].size,))
    shapes = [store.src[1].arg.shape for store in ast.src if store.src[1].op is Ops.VIEW]
    if not shapes:
        return ""
    largest = max(shapes, key=lambda shape: math.prod(size if isinstance(size, int) else 1 for size in shape))
    return shape_text(tuple(size for size in largest if not isinstance(size, int) or size != 1))


#: What DEBUG=2 has shown until now.
shown = Profile()


def _summary() -> None:
    """What DEBUG=2 prints at the end: the tables to stderr, since in stdout each line of DEBUG is a row."""
    if DEBUG >= 2 and shown.count:
        with contextlib.redirect_stdout(sys.stderr), contextlib.suppress(OSError, ValueError):
            show("")
            shown.print()
    if DEBUG >= 3 and GlobalCounters.kernel_count:
        seconds = max(GlobalCounters.time_sum_s, 1e-12)
        show(
            f"avg: {GlobalCounters.global_ops / seconds * 1e-9:8.2f} GFLOPS "
            f"{GlobalCounters.global_mem / seconds * 1e-9:8.2f} GB/s   "
            f"total: {GlobalCounters.kernel_count:4d} kernels {GlobalCounters.global_ops * 1e-9:8.2f} GOPS "
            f"{GlobalCounters.global_mem * 1e-9:8.2f} GB {GlobalCounters.time_sum_s * 1e3:8.2f} ms"
        )


atexit.register(_summary)

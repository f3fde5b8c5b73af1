"""`python -m lazygrad explain script.py`: a kernel of a script through every form, step by step."""

from __future__ import annotations

import argparse
import contextlib
import sys

from ..config import NOOPT, Context
from ..device import Device
from ..engine.realize import observe_kernels
from ..report.terminal import use_color
from ..schedule.kernels.items import ScheduleItem
from ..viz import brief, pages, plain, record
from ..viz.record import PlanningRecorder
from ..viz.walk import in_terminal
from .recorded import Enough, Recorded, ended_after
from .script import name_of, run_script, script_argument
from .words import KERNEL, seconds

HELP = "walk through the compilation of one kernel of a script: every pass, every rewrite and its rule"
#: So long a script may run until the kernel that is wanted.
SECONDS = 60.0
#: So many names of kernels are listed.
LISTED = 20


def arguments(parser: argparse.ArgumentParser) -> None:
    script_argument(parser)
    parser.add_argument(
        "--kernel",
        default="1",
        help=f"the kernel: its number, from 1 (the default), or {KERNEL}",
        metavar="WHICH",
    )
    parser.add_argument(
        "--seconds",
        type=seconds,
        default=SECONDS,
        help=f"stop the script if the kernel has not run after this time (default {SECONDS:.0f})",
    )
    parser.add_argument(
        "--plain", action="store_true", help="print the forms as text instead of walking through the steps"
    )
    parser.add_argument("--full", action="store_true", help="show every rewrite, and all of large graphs")


class _Search(Recorded):
    """Waits for the n-th different kernel, or for one that a word means, while a script runs."""

    def __init__(self, wanted: str) -> None:
        super().__init__()
        self.wanted = wanted
        self.found: ScheduleItem | None = None

    def note(self, item: ScheduleItem, name: str, seconds: float | None, ops: int, moved: int) -> None:
        known = len(self.items)
        super().note(item, name, seconds, ops, moved)
        if len(self.items) > known and self._is_it(item):
            self.found = item
            raise Enough

    def _is_it(self, item: ScheduleItem) -> bool:
        if self.wanted.isdecimal():
            return len(self.items) == int(self.wanted)
        return self.is_meant(item.ast, self.wanted)


def run(given: argparse.Namespace) -> int:
    if given.kernel.isdecimal() and int(given.kernel) < 1:
        print("lazygrad explain: the first kernel is 1", file=sys.stderr)
        return 2
    search, planning = _Search(given.kernel), PlanningRecorder()
    status = 0
    limit, ended, lines = ended_after(given.seconds), contextlib.suppress(Enough), Context(TRACEMETA=2)
    with limit as late, ended, lines, observe_kernels(search.note), planning.recording():
        status = run_script(given)
    if search.found is None:
        if status == 0:
            print(f"lazygrad explain: {name_of(given)} {_ran(search, given, bool(late))}", file=sys.stderr)
        return status or 1
    item = search.found
    renderer = Device[item.bufs[0].device].renderer
    recording = record(item.ast, renderer, [] if NOOPT else None, planning.requested, planning.forms)
    if given.plain or not (sys.stdin.isatty() and sys.stdout.isatty()):
        for line in plain(recording, full=True) if given.full else brief(recording):
            print(line)
        if not given.full:
            print("\n--full shows every rewrite with its rule, and all lines")
    else:
        in_terminal(pages(recording, given.full), use_color())
    return 0


def _ran(search: _Search, given: argparse.Namespace, late: bool) -> str:
    """What a script ran, instead of the kernel that was wanted."""
    if not search.items:
        return f"ran no kernel in {given.seconds:g} s" if late else "runs no kernel"
    names = list(search.names.values())
    listed = ", ".join(names[:LISTED]) + (f" and {len(names) - LISTED} more" if len(names) > LISTED else "")
    if given.kernel.isdecimal():
        counted = f"only {len(names)} different kernels"
        return f"ran {counted} in {given.seconds:g} s" if late else f"runs {counted}"
    return (
        f"runs no kernel {given.kernel}"
        + (f" in {given.seconds:g} s" if late else "")
        + f"; it runs {listed}"
    )

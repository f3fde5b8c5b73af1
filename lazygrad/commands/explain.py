"""`python -m lazygrad explain script.py`: a kernel of a script through every form, step by step."""

from __future__ import annotations

import argparse
import sys

from ..config import NOOPT
from ..device import Device
from ..engine.realize import observe_kernels
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..report.terminal import use_color
from ..schedule.items import ScheduleItem
from ..viz import pages, plain, record
from ..viz.record import PlanningRecorder
from ..viz.walk import in_terminal
from .script import name_of, run_script, script_argument
from .words import positive

HELP = "a kernel of a script through every form, each rewrite with its rule, forwards and backwards"


def arguments(parser: argparse.ArgumentParser) -> None:
    script_argument(parser)
    parser.add_argument("--kernel", type=positive, default=1, help="which of its kernels; the first is 1")
    parser.add_argument("--plain", action="store_true", help="all steps as text, as in a pipe")
    parser.add_argument("--full", action="store_true", help="leave out nothing of large forms")


class _Enough(BaseException):
    """The kernel that is wanted has run: no more of the script is needed."""


class _Search:
    """Waits for the n-th different kernel while a script runs."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.met: set[UOp] = set()
        self.found: ScheduleItem | None = None

    def ran(self, item: ScheduleItem, name: str, seconds: float | None, ops: int, moved: int) -> None:
        if item.ast.op is Ops.COPY or item.ast in self.met:
            return
        self.met.add(item.ast)
        if len(self.met) == self.wanted:
            self.found = item
            raise _Enough


def run(given: argparse.Namespace) -> int:
    search, planning = _Search(given.kernel), PlanningRecorder()
    status = 0
    try:
        with observe_kernels(search.ran), planning.recording():
            status = run_script(given)
    except _Enough:
        pass
    if search.found is None:
        if status == 0:
            count = f"only {len(search.met)} different kernels" if search.met else "no kernel"
            print(f"lazygrad explain: {name_of(given)} runs {count}", file=sys.stderr)
        return status or 1
    item = search.found
    renderer = Device[item.bufs[0].device].renderer
    recording = record(item.ast, renderer, [] if NOOPT else None, planning.asked, planning.forms)
    if given.plain or not (sys.stdin.isatty() and sys.stdout.isatty()):
        for line in plain(recording, given.full):
            print(line)
    else:
        in_terminal(pages(recording, given.full), use_color())
    return 0

"""`python -m lazygrad explain script.py`: a kernel of a script through every form, step by step."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import NamedTuple

from ..config import NOOPT
from ..device import Device
from ..engine.realize import observe_kernels
from ..ir.ops import Ops
from ..ir.rewrite import observe
from ..ir.uop import UOp
from ..report.terminal import use_color
from ..schedule.items import ScheduleItem
from ..schedule.kernelize import plan_observers
from ..viz import Rewrite, pages, plain, record
from ..viz.record import noting
from ..viz.walk import in_terminal
from .script import name_of, run_script, script_argument
from .words import positive

HELP = "a kernel of a script through every form, each rewrite with its rule, forwards and backwards"


def arguments(parser: argparse.ArgumentParser) -> None:
    script_argument(parser)
    parser.add_argument("--kernel", type=positive, default=1, help="which of its kernels; the first is 1")
    parser.add_argument("--plain", action="store_true", help="all steps as text, as in a pipe")
    parser.add_argument("--full", action="store_true", help="leave out nothing of large forms")


class _Found(NamedTuple):
    """A kernel that ran, the graph that it was cut from, and the rewrites seen while it was."""

    item: ScheduleItem
    asked: tuple[UOp, ...]
    planning: tuple[Rewrite, ...]


class _Enough(BaseException):
    """The kernel that is wanted has run: no more of the script is needed."""


class _Search:
    """Waits for the n-th different kernel while a script runs."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.met: set[UOp] = set()
        self.asked: tuple[UOp, ...] = ()
        self.rewrites: list[Rewrite] = []
        self.found: _Found | None = None

    def plan(self, wanted: Sequence[UOp]) -> None:
        self.asked = tuple(wanted)
        self.rewrites.clear()

    def ran(self, item: ScheduleItem, name: str, seconds: float | None, ops: int, moved: int) -> None:
        if item.ast.op is Ops.COPY or item.ast in self.met:
            return
        self.met.add(item.ast)
        if len(self.met) == self.wanted:
            self.found = _Found(item, self.asked, tuple(self.rewrites))
            raise _Enough


def run(given: argparse.Namespace) -> int:
    search = _Search(given.kernel)
    plan_observers.append(search.plan)
    status = 0
    try:
        with observe_kernels(search.ran), observe(noting(search.rewrites)):
            status = run_script(given)
    except _Enough:
        pass
    finally:
        plan_observers.remove(search.plan)
    if search.found is None:
        if status == 0:
            count = f"only {len(search.met)} different kernels" if search.met else "no kernel"
            print(f"lazygrad explain: {name_of(given)} runs {count}", file=sys.stderr)
        return status or 1
    item, asked, planning = search.found
    renderer = Device[item.bufs[0].device].renderer
    recording = record(item.ast, renderer, [] if NOOPT else None, asked, planning)
    if given.plain or not (sys.stdin.isatty() and sys.stdout.isatty()):
        for line in plain(recording, given.full):
            print(line)
    else:
        in_terminal(pages(recording, given.full), use_color())
    return 0

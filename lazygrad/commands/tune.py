"""`python -m lazygrad tune script.py`: search the Opts of each kernel of a script, keep what is found."""

from __future__ import annotations

import argparse
import sys

from ..config import BEAM, Context
from ..device import Device
from ..engine.realize import observe_kernels
from ..report.terminal import time_text
from ..tuning.beam import Tuned, tune
from .script import name_of, run_script, script_argument
from .seen import Seen
from .words import positive

HELP = "time other optimizations of every kernel of a script, and keep the fastest for runs with BEAM"
#: How many lists of Opts a search follows unless told.
WIDTH = 2


def arguments(parser: argparse.ArgumentParser) -> None:
    script_argument(parser)
    parser.add_argument(
        "--beam", type=positive, help=f"how many lists of Opts a search follows; {WIDTH} unless BEAM says"
    )


def run(given: argparse.Namespace) -> int:
    width = given.beam or max(BEAM.value, 0) or WIDTH
    seen = Seen()
    with Context(BEAM=0), observe_kernels(seen.note):
        status = run_script(given)
    if status or not seen.items:
        if not status:
            print(f"lazygrad tune: {name_of(given)} runs no kernel", file=sys.stderr)
        return status
    order = sorted(seen.items, key=lambda ast: -seen.seconds[ast])
    print(f"{'kernel':32} {'runs':>5} {'heuristic':>11} {'best':>11} {'times':>6}  opts")
    done = 0
    try:
        for ast in order:
            found = tune(Device[seen.items[ast].bufs[0].device], ast, width)
            done += 1
            print(_row(found, seen.runs[ast]), flush=True)
    except KeyboardInterrupt:
        print(f"stopped after {done} of {len(order)} kernels: run it again to go on", file=sys.stderr)
        raise
    print(f"BEAM={width} uses what was found")
    return 0


def _row(found: Tuned, runs: int) -> str:
    name = f"{found.name[:32]:32} {runs:5d}"
    if found.note:
        return f"{name} {found.note}"
    gain = found.usual_seconds / found.seconds if found.seconds else 1.0
    changed = list(found.opts) if found.opts != found.usual else "as the heuristic"
    return f"{name} {time_text(found.usual_seconds)} {time_text(found.seconds)} {gain:5.2f}x  {changed}"

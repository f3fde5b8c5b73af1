"""`python -m lazygrad tune script.py`: search the Opts of each kernel of a script, keep what is found."""

from __future__ import annotations

import argparse
import sys
import time

from ..config import BEAM, Context
from ..device import Device
from ..engine.realize import observe_kernels
from ..report.terminal import time_text
from ..tuning.beam import CUT_SHORT, Tuned, tune
from .recorded import Recorded
from .script import name_of, run_script, script_argument
from .words import KERNEL, positive, seconds

HELP = "search for faster optimizations of the kernels of a script; runs with BEAM use what was found"
#: How many lists of Opts a search follows unless told.
WIDTH = 2
#: So long a script's kernels are searched unless told.
SECONDS = 300.0


def arguments(parser: argparse.ArgumentParser) -> None:
    script_argument(parser)
    parser.add_argument(
        "--kernel", action="append", metavar="WHICH", help=f"only the kernel with {KERNEL}; can be repeated"
    )
    parser.add_argument(
        "--seconds",
        type=seconds,
        default=SECONDS,
        help=f"time limit of the whole search (default {SECONDS:.0f})",
    )
    parser.add_argument(
        "--beam", type=positive, help=f"width of the beam search (default {WIDTH}, or BEAM if it is set)"
    )


def run(given: argparse.Namespace) -> int:
    width = given.beam or max(BEAM.value, 0) or WIDTH
    seen = Recorded()
    with Context(BEAM=0, TRACEMETA=2), observe_kernels(seen.note):
        status = run_script(given)
    if status or not seen.items:
        if not status:
            print(f"lazygrad tune: {name_of(given)} runs no kernel", file=sys.stderr)
        return status
    order = sorted(seen.selected(given.kernel), key=lambda ast: -seen.seconds[ast])
    if not order:
        words, names = " or ".join(given.kernel), ", ".join(seen.names.values())
        print(f"lazygrad tune: {name_of(given)} runs no kernel {words}; it runs {names}", file=sys.stderr)
        return 1
    print(f"{'kernel':32} {'runs':>5} {'heuristic':>11} {'best':>11} {'times':>6}  opts")
    begin = time.monotonic()
    until = begin + given.seconds
    found: list[tuple[Tuned, int]] = []
    try:
        for ast in order:
            if time.monotonic() > until:
                break
            made = tune(Device[seen.items[ast].bufs[0].device], ast, width, until)
            found.append((made, seen.runs[ast]))
            print(_row(seen.names[ast], *found[-1]), flush=True)
    except KeyboardInterrupt:
        print(f"stopped after {len(found)} of {len(order)} kernels: run it again to go on", file=sys.stderr)
        raise
    left = len(order) - sum(made.note != CUT_SHORT for made, _ in found)
    if left:
        print(
            f"{given.seconds:g} s were over with {left} of {len(order)} kernels to be searched: run it again "
            "to go on, or with more --seconds"
        )
    print(_in_all(found))
    print(f"BEAM={width} uses what was found")
    return 0


def _in_all(found: list[tuple[Tuned, int]]) -> str:
    """What was won, over all runs of the kernels that were searched."""
    before = sum(made.usual_seconds * runs for made, runs in found)
    after = sum(made.seconds * runs for made, runs in found)
    gain = before / after if after else 1.0
    runs = sum(runs for _, runs in found)
    return (
        f"in all, {runs} runs of {len(found)} kernels: {time_text(before).strip()} before, "
        f"{time_text(after).strip()} now, {gain:.2f}x"
    )


def _row(name: str, found: Tuned, runs: int) -> str:
    name = f"{name[:32]:32} {runs:5d}"
    if found.note and found.note != CUT_SHORT:
        return f"{name} {found.note}"
    gain = found.usual_seconds / found.seconds if found.seconds else 1.0
    changed = list(found.opts) if found.opts != found.usual else "as the heuristic"
    ended = f" ({CUT_SHORT})" if found.note else ""
    return (
        f"{name} {time_text(found.usual_seconds)} {time_text(found.seconds)} {gain:5.2f}x  {changed}{ended}"
    )

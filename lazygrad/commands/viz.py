"""`python -m lazygrad viz script.py`: what a script does, seen in a browser, as a picture or as text."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import webbrowser
from pathlib import Path
from typing import Any

from ..viz.details import add_details
from ..viz.files import RecordingError, read_recording, write_recording
from ..viz.live import SECONDS
from ..viz.planning import add_plans
from ..viz.ranks import path_of_rank, rank_of, side_by_side
from ..viz.schedule_text import schedule_text
from ..viz.schedule_tree import LEVELS, schedule_tree
from ..viz.server import Server
from ..viz.session import Session
from ..viz.svg import schedule_svg
from ..viz.timeline import trace_events
from .script import name_of, run_script, script_argument
from .words import positive, seconds

#: What recordings' names end with.
ENDINGS = (".json", ".gz")
HELP = "show what a script does: its graphs, kernels, times and memory, in a browser, a picture or as text"


def arguments(parser: argparse.ArgumentParser) -> None:
    script_argument(parser)
    parser.epilog = (
        "SCRIPT may also be a saved recording, and RECORDING those of the other ranks of a distributed run, "
        "which are laid side by side. What the script prints goes to stderr."
    )
    parser.add_argument("others", nargs="*", metavar="RECORDING", help="recordings to lay beside the first")
    parser.add_argument("--save", metavar="FILE", help="write the recording there (.json or .json.gz)")
    parser.add_argument("--svg", metavar="FILE", help="draw the schedule there, and open no browser")
    parser.add_argument("--text", action="store_true", help="print the schedule, and open no browser")
    parser.add_argument(
        "--depth",
        type=positive,
        metavar="N",
        help=f"print it as a tree of at most so many levels: {', '.join(LEVELS)}",
    )
    parser.add_argument("--trace", metavar="FILE", help="write the timeline there for ui.perfetto.dev")
    parser.add_argument(
        "--log",
        metavar="FILE",
        action="append",
        default=[],
        help="show the curves that lazygrad.log wrote there; given twice, two runs are laid over each other",
    )
    parser.add_argument("--port", type=int, default=0, help="of the page (by default a free one)")
    parser.add_argument("--open", action="store_true", help="open the page in the browser of this machine")
    parser.add_argument(
        "--seconds",
        type=seconds,
        default=SECONDS,
        help=f"how long to look at kernels after the script has ended (default {SECONDS:.0f})",
    )


def run(given: argparse.Namespace) -> int:
    found, status = _recording(given)
    if found is None:
        return status
    if given.save:
        write_recording(found, path_of_rank(given.save, rank_of()))
    if given.svg:
        Path(given.svg).write_text(schedule_svg(found), encoding="utf-8")
    if given.trace:
        Path(given.trace).write_text(json.dumps(trace_events(found)), encoding="utf-8")
    if given.text or given.depth:
        size = shutil.get_terminal_size((100, 40))
        rows, columns = max(size.lines - 2, 10), max(size.columns, 80)
        if given.depth:
            print(_printable(schedule_tree(found, given.depth, rows, columns)))
        else:
            print(_printable(schedule_text(found, rows, columns)))
    if given.save or given.svg or given.trace or given.text or given.depth:
        return status
    try:
        server = Server(found, given.port, [Path(path) for path in given.log])
    except OSError as error:
        print(f"lazygrad viz: port {given.port} cannot be had: {error}", file=sys.stderr)
        return 1
    print(f"{server.url}  (Ctrl-C ends)", flush=True)
    if given.open:
        webbrowser.open(server.url)
    server.run()
    return status


def _printable(text: str) -> str:
    """Text that tells a terminal nothing else: names may come from a file that somebody sent."""
    return "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text)


def _recording(given: argparse.Namespace) -> tuple[dict[str, Any] | None, int]:
    """What a file holds, or what a script did; and the exit status."""
    if given.script is not None and given.script.endswith(ENDINGS):
        paths = [given.script, *given.others]
        try:
            found = [read_recording(path) for path in paths]
            return (side_by_side(found, paths) if given.others else found[0]), 0
        except RecordingError as error:
            print(f"lazygrad viz: {error}", file=sys.stderr)
            return None, 1
    if given.others:
        print(f"lazygrad viz: {given.others[0]} stands beside no recording", file=sys.stderr)
        return None, 2
    session = Session()
    with session.recording():
        status = run_script(given)
    if not session.kernels:
        if status == 0:
            print(f"lazygrad viz: {name_of(given)} runs no kernel", file=sys.stderr)
        return None, status or 1
    rows = session.rows()
    rows["made"]["script"] = name_of(given)
    if not given.text and not given.svg and not given.depth:
        add_plans(rows, session, given.seconds / 4)
        add_details(rows, list(session.kernels), given.seconds)
    return rows, status

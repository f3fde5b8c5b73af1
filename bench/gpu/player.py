"""The process of a stage: `python -m bench.gpu.player`; what it is to play is a line of JSON on its input.

{"stage": [...], "mode": MODE, "folder": DIR, "cases": [...] or null, "share": [i, n], "seed": s, "to": PATH}

It writes a line to PATH before each case and one after it, so that whoever reads knows which one hung or
crashed. With "cases": null it plays its share of all, of which "seed" draws some where it is no null. A case
that takes longer than the stage's patience ends the process, as does one after which the GPU is lost: it is
started anew for those that are left.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import signal
import sys
import threading
import time
import traceback
from typing import IO, Any

from .machine import Machine
from .stages import Case, Missing, Stage, drawn

#: Its exit status where the GPU is lost.
LOST = 3
#: Characters of an error that are kept, and lines of where it was raised.
TEXT, FRAMES = 1500, 6


def play(name: str, case: Case, machine: Machine) -> dict[str, Any]:
    """A case's result: what it found, what is missing, or its error."""
    start = time.perf_counter()
    try:
        found = {"found": case()}
    except (ImportError, Missing) as error:
        found = {"missing": str(error)}
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        found = {"error": _text(error)}
    took = round(time.perf_counter() - start, 3)
    return {"case": name, "took": took, **found, **machine.counts()}


def _text(error: BaseException) -> dict[str, Any]:
    """Its type and text; and the last places it came through, as `file:line function`."""
    frames = traceback.extract_tb(error.__traceback__)[-FRAMES:]
    places = [f"{'/'.join(f.filename.split('/')[-3:])}:{f.lineno} {f.name}" for f in frames]
    notes = "".join(f"\n{note}" for note in getattr(error, "__notes__", ()))
    return {"type": type(error).__name__, "text": f"{error}{notes}"[:TEXT], "at": places}


def end_with(parent: int) -> None:
    """End this process, and what it has started, once its parent is no more: it may hold the GPU."""
    while os.getppid() == parent:
        time.sleep(1)
    os.killpg(0, signal.SIGKILL)


def main() -> int:
    threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
    given = json.loads(sys.stdin.readline())
    stage = Stage(*given["stage"])
    machine = Machine(given["mode"], given["folder"], short=given["seed"] is not None)
    with open(given["to"], "a", encoding="utf-8") as file, contextlib.ExitStack() as stack:
        try:
            stack.enter_context(machine.entered())
            cases = stage.cases(machine)
        except BaseException as error:
            _write(file, {"case": "start", "took": 0.0, **_start_failed(error)})
            return 0
        wanted = given["cases"]
        if wanted is None:
            part, parts = given["share"]
            wanted = list(cases)
            if given["seed"] is not None:
                wanted = drawn(wanted, stage.drawn, given["seed"])
            wanted = wanted[part::parts]
            _write(file, {"all": wanted})
        for name in wanted:
            _write(file, {"begun": name})
            faulthandler.dump_traceback_later(stage.patience, exit=True)
            result = play(name, cases[name], machine)
            faulthandler.cancel_dump_traceback_later()
            _write(file, result)
            if machine.is_lost():
                return LOST
    return 0


def _start_failed(error: BaseException) -> dict[str, Any]:
    """Without an emulation a dry run plays nothing; else the stage cannot begin."""
    if type(error).__name__ == "Skipped" or isinstance(error, ImportError | Missing):
        return {"missing": str(error)}
    if isinstance(error, KeyboardInterrupt):
        raise error
    return {"error": _text(error)}


def _write(file: IO[str], line: dict[str, Any]) -> None:
    file.write(json.dumps(line, default=str) + "\n")
    file.flush()


if __name__ == "__main__":
    sys.exit(main())

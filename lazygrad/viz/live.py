"""`VIZ=1 python script.py`, or VIZ_SAVE=FILE: a session from the first import to the end of the process.

At the end it is written to a file. On a terminal the file is then shown in a browser; elsewhere, and where
the file was named, it is only said where it lies. `lazygrad/__init__.py` begins it, since nobody else may
know of a viewer.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from ..config import VIZ, VIZ_SAVE, Context
from .details import add_details
from .files import write_recording
from .planning import add_plans
from .ranks import path_of_rank, rank_of
from .session import Session

#: Seconds for what there is to see of kernels; the rest of them has no forms in the recording.
SECONDS = 20.0


def save(session: Session, path: str | os.PathLike[str], seconds: float = SECONDS) -> None:
    """Write what a session has noted, with what there is to see of its kernels."""
    rows = session.rows()
    with Context(DEBUG=0):
        add_plans(rows, session, seconds / 4)
        add_details(rows, list(session.kernels), seconds)
    write_recording(rows, path)


def begin() -> None:
    """Record this process from now on, and show it at its end; commands of lazygrad say themselves what they
    record.
    """
    if "-m" in sys.orig_argv and sys.orig_argv[sys.orig_argv.index("-m") + 1 :][:1] == ["lazygrad"]:
        return
    stack = contextlib.ExitStack()
    session = Session()
    stack.enter_context(session.recording())
    owner = os.getpid()

    def end() -> None:
        stack.close()
        if os.getpid() != owner or not session.kernels:  # a forked child has nothing of its own
            return
        named = VIZ_SAVE.value
        path = Path(named or Path(tempfile.mkdtemp(prefix="lazygrad-")) / "recording.json.gz")
        path = path_of_rank(path, rank_of())
        print(f"VIZ: writing what ran to {path}", file=sys.stderr)
        save(session, path)
        words = [sys.executable, "-m", "lazygrad", "viz", str(path)]
        if named or not sys.stdout.isatty():
            print(f"VIZ: python -m lazygrad viz {path}  shows it", file=sys.stderr)
            return
        environment = {name: value for name, value in os.environ.items() if name != VIZ.name}
        with contextlib.suppress(KeyboardInterrupt):
            subprocess.run([*words, "--open"], env=environment, check=False)

    atexit.register(end)

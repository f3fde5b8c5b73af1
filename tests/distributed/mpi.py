"""Programs of several ranks: `run` starts one with mpirun, as a user does, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from tests.helpers import PATIENCE, ROOT, require

PROGRAMS = Path(__file__).parent / "programs"


class Ended(NamedTuple):
    """How a program ended: its exit status, and what all ranks have printed."""

    status: int
    out: str
    error: str


def run(ranks: int, program: str, *arguments: Any, **environment: str) -> Ended:
    """Run a file of `programs` on so many ranks of this machine."""
    options = ["--oversubscribe", "--bind-to", "none"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options.append("--allow-run-as-root")
    command = [require("mpi"), *options, "-n", str(ranks), sys.executable, str(PROGRAMS / program)]
    started = subprocess.Popen(
        [*command, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "THREADS": "1", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        out, error = started.communicate(timeout=PATIENCE / 2)
    finally:
        if started.poll() is None:
            os.killpg(started.pid, signal.SIGKILL)
    return Ended(started.returncode, out.replace("\r", ""), error.replace("\r", ""))

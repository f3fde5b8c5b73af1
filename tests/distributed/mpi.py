"""Programs of several ranks: `run` starts one with mpirun, as a user does, and leaves nothing behind."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from tests.helpers import PATIENCE, ROOT, require

PROGRAMS = Path(__file__).parent / "programs"
#: Seconds that a process may take to be gone after the launcher has ended.
GOING = 2.0


class Ended(NamedTuple):
    """How a program ended: its exit status, and what all ranks have printed.

    after  seconds from a fault until all had ended; its rank wrote when it was, to the file FAULT_NOTE
    """

    status: int
    out: str
    error: str
    after: float | None


def run(ranks: int, program: str, *arguments: Any, two_hosts: bool = False, **environment: str) -> Ended:
    """Run a file of `programs` on so many ranks of this machine, or of two hosts that it plays.

    Its hosts are `hosta` and `hostb`, with half of the ranks each, and one network between them.
    AssertionError if a process is left when the launcher has ended.
    """
    options = ["--bind-to", "none"]
    options += ["--host", f"hosta:{ranks // 2},hostb:{ranks // 2}"] if two_hosts else ["--oversubscribe"]
    if two_hosts or (hasattr(os, "geteuid") and os.geteuid() == 0):
        options.append("--allow-run-as-root")
    command = [require("mpi"), *options, "-n", str(ranks), sys.executable, str(PROGRAMS / program)]
    token = secrets.token_hex(8)
    with tempfile.TemporaryDirectory() as folder:
        if two_hosts:
            command = [*require("namespaces"), str(Path(__file__).parent / "two_hosts.sh"), folder, *command]
        noted = Path(folder) / "fault"
        known = {"PYTHONPATH": str(ROOT), "THREADS": "1", "FAULT_NOTE": str(noted), "RUN_TOKEN": token}
        started = subprocess.Popen(
            [*command, *map(str, arguments)],
            env={**os.environ, **known, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            out, error = started.communicate(timeout=PATIENCE / 2)
            ended = time.monotonic()
        finally:
            if started.poll() is None:
                os.killpg(started.pid, signal.SIGKILL)
        left = _left(token)
        assert not left, f"processes are left: {left}\n{error}"
        after = ended - float(noted.read_text()) if noted.exists() else None
    return Ended(started.returncode, out.replace("\r", ""), error.replace("\r", ""), after)


def _left(token: str) -> list[str]:
    """The processes of a run that stay when it has ended; they are killed."""
    deadline = time.monotonic() + GOING
    while (found := _with_token(token)) and time.monotonic() < deadline:
        time.sleep(0.05)
    for process in found:
        os.kill(process, signal.SIGKILL)
    return list(found.values())


def _with_token(token: str) -> dict[int, str]:
    """The processes whose environment has it, and their commands; where there is no /proc, none is found."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"RUN_TOKEN={token}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found[int(folder.name)] = (folder / "cmdline").read_text().replace("\0", " ")
        except OSError:  # it has ended, or is another user's
            continue
    return found

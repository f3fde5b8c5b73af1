"""Scripts of the seeds in fresh processes: unique ids and `opened device` lines begin anew there."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

from tests.helpers import PATIENCE, ROOT

SCRIPTS = Path(__file__).parent / "scripts"
FLAGS = (
    "DEBUG",
    "NOOPT",
    "DEV",
    "CHECK",
    "TRACEMETA",
    "CACHELEVEL",
    "FUSE",
    "DEBUG_STYLE",
    "JIT_NESTED",
    "CPU",
    "CLANG",
)


def run_script(script: str, **flags: str | int) -> str:
    """What a script prints, with only these flags set. Colours are off; times and pids are as they are."""
    return _run([sys.executable, "-c", textwrap.dedent(script)], flags)


def _run(command: list[str], flags: dict[str, str | int]) -> str:
    env = {name: text for name, text in os.environ.items() if name not in FLAGS and name[:7] != "PYTEST_"}
    env |= {
        "PYTHONPATH": str(ROOT),
        "NO_COLOR": "1",
        "PYTHONIOENCODING": "utf-8",
        **{name: str(flag) for name, flag in flags.items()},
    }
    return _printed(tuple(command), tuple(sorted(env.items())))


@functools.cache
def _printed(command: tuple[str, ...], env: tuple[tuple[str, str], ...]) -> str:
    done = subprocess.run(command, capture_output=True, encoding="utf-8", env=dict(env), timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_file(name: str, *words: str, **flags: str | int) -> str:
    """What one of the scripts beside prints when compat runs it."""
    return _run([sys.executable, "-m", "lazygrad.compat", str(SCRIPTS / f"{name}.py"), *words], flags)


def on_cpu(text: str) -> str:
    """A seed's text with the device that runs it here."""
    return re.sub(r"\bMETAL\b", "CPU", textwrap.dedent(text))


def rows(output: str) -> list[str]:
    """The lines of DEBUG=2 for kernels and copies."""
    return [line for line in output.splitlines() if line.startswith("*** ")]

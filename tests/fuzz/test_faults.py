"""Programs while the process is interrupted, forks, runs out of memory, disk, threads and address space.

Each example is a process of its own (`faults.py`) that meets some faults in turn, with a time limit: what
goes wrong hangs, ends the process, or computes a wrong number.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.faults import FAULTS, OTHER
from tests.fuzz.harness import fuzzed
from tests.helpers import PATIENCE, ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the limits are those of Linux")

fault = st.tuples(st.sampled_from(FAULTS), st.integers(0, 9999), st.floats(0, 1))


def run(command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, f"ended with {done.returncode} after\n{done.stdout}\n{done.stderr[-6000:]}"
    return done.stdout


@fuzzed(quick=1, sweep=8, share=4)
@given(st.lists(fault, min_size=8, max_size=14))
def test_faults(faults: list[tuple[str, int, float]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "CACHEDB": os.path.join(folder, "cache.db")}
        out = run([sys.executable, "-m", "tests.fuzz.faults", json.dumps(faults)], environment)
        assert out.splitlines()[-1].startswith("right"), out
        assert run([sys.executable, "-c", OTHER, "5", "2"], environment) == "right\n"

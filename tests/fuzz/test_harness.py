"""The harness of the generators: budgets, seeds, and what a failure says."""

from __future__ import annotations

import os
import re
import subprocess
import sys

from tests.helpers import ROOT

EXAMPLE = """
from hypothesis import given, strategies as st
from tests.fuzz.harness import fuzzed
seen = []

@fuzzed(quick=20, sweep=50, share=30)
@given(st.integers(0, 1000))
def test_small(number):
    seen.append(number)
    assert number < 500

@fuzzed(quick=20, sweep=50, share=30)
@given(st.integers(0, 10**9))
def test_drawn(number):
    print("drew", number)
"""


def run(tmp_path, *arguments: str, seed: str = "") -> str:
    file = tmp_path / "test_example.py"
    file.write_text(EXAMPLE)
    environment = {**os.environ, "PYTEST_ADDOPTS": "", **({"FUZZ_SEED": seed} if seed else {})}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
        "-c",
        str(ROOT / "pyproject.toml"),
    ]
    command += ["--rootdir", str(ROOT), str(file), *arguments]
    ran = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=600)
    return ran.stdout + ran.stderr


def drawn(text: str) -> list[str]:
    return re.findall(r"drew \d+", text)


def test_a_failure_is_shrunk_and_says_how_to_see_it_again(tmp_path):
    text = run(tmp_path, "-k", "small", seed="abc")
    assert "number=500," in text  # the smallest that fails
    assert "again: FUZZ_SEED=abc python -m pytest -n 0 -m ''" in text
    assert "test_small[20-quick]" in text


def test_a_seed_repeats_its_examples_and_another_looks_elsewhere(tmp_path):
    first, again, other = (drawn(run(tmp_path, "-s", "-k", "drawn", seed=seed)) for seed in ("1", "1", "2"))
    assert len(first) >= 20
    assert first == again
    assert first != other


def test_a_sweep_is_shared_among_slow_tests(tmp_path):
    text = run(tmp_path, "--collect-only", "-q", "-m", "slow", "-k", "drawn")
    assert "[30-part-1]" in text
    assert "[20-part-2]" in text
    assert "quick" not in text


def test_all_parts_run_in_one_process(tmp_path):
    assert "3 passed" in run(tmp_path, "-m", "", "-k", "drawn")

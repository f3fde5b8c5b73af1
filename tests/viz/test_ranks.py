"""Ranks of a distributed run: which one a process is, how its file is called, recordings side by side."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lazygrad.__main__ import main
from lazygrad.viz.files import read_recording, write_recording
from lazygrad.viz.ranks import path_of_rank, rank_of, side_by_side
from lazygrad.viz.schedule_text import plans_of
from lazygrad.viz.timeline import label_of, trace_events
from tests.helpers import PATIENCE, ROOT


@pytest.mark.parametrize(
    ("environment", "rank"),
    [
        ({"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4"}, 3),
        ({"PMI_RANK": "0", "PMI_SIZE": "2"}, 0),
        ({"SLURM_PROCID": "1", "SLURM_NTASKS": "8"}, 1),
        ({"RANK": "1", "WORLD_SIZE": "2"}, 1),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "1"}, None),  # a job of one process
        ({"RANK": "first", "WORLD_SIZE": "2"}, None),
        ({}, None),
    ],
)
def test_launchers_say_which_rank_a_process_is(environment, rank):
    assert rank_of(environment) == rank


def test_ranks_do_not_write_the_same_file():
    assert path_of_rank("out/run.json.gz", 1) == Path("out/run.rank1.json.gz")
    assert path_of_rank("out/run.json.gz", None) == Path("out/run.json.gz")


def test_side_by_side_everything_refers_to_what_it_did(replayed):
    first = {**replayed, "made": {**replayed["made"], "rank": 1, "when": 100.0, "wall": 2.0}}
    second = {**replayed, "made": {**replayed["made"], "rank": 0, "when": 100.5, "wall": 1.0}}
    whole = json.loads(json.dumps(side_by_side([first, second], ["a", "b"])))
    assert [rank["name"] for rank in whole["ranks"]] == ["rank 0", "rank 1"]
    assert whole["made"]["wall"] == 2.0
    count = len(replayed["events"])
    for number, later in ((0, 0.5e6), (1, 0.0)):
        begin, end = whole["ranks"][number]["events"]
        assert end - begin == count
        for mine, known in zip(whole["events"][begin:end], replayed["events"], strict=True):
            assert mine[1] == pytest.approx(known[1] + later, abs=0.11)
            assert label_of(whole, mine[5]) == label_of(replayed, known[5])
            assert whole["names"][mine[4]] == replayed["names"][known[4]]
            assert len(mine) == len(known)
    half = len(replayed["allocations"])
    for mine, known in zip(whole["allocations"][half:], replayed["allocations"], strict=True):
        assert whole["names"][mine[3]] == f"rank 1: {replayed['names'][known[3]]}"
        assert whole["names"][mine[6]] == replayed["names"][known[6]]
        assert whole["calls"][mine[7]] == replayed["calls"][known[7]]
        assert mine[9] == known[9] + 2 if known[9] >= 0 else known[9] - (known[9] < -1)
    assert [arena["steps"] for arena in whole["arenas"]] == [[1] * 4, [3] * 4]
    assert [kernel["number"] for kernel in whole["kernels"]] == [0, 1, 2, 3]
    assert len(plans_of(whole)) == 2 * len(plans_of(replayed))
    assert [capture["steps"] for capture in whole["captures"]] == [[1] * 4, [3] * 4]
    processes = {
        e["args"]["name"]: e["pid"] for e in trace_events(whole)["traceEvents"] if e["name"] == "process_name"
    }
    assert processes == {"rank 0": 0, "rank 1": 1}


def test_recordings_without_ranks_are_called_by_their_files(replayed, tmp_path, capsys):
    paths = [str(tmp_path / name) for name in ("a.json", "b.json")]
    for path in paths:
        write_recording(replayed, path)
    assert main(["viz", *paths, "--save", str(tmp_path / "both.json")]) == 0
    both = read_recording(tmp_path / "both.json")
    assert [rank["name"] for rank in both["ranks"]] == paths
    assert main(["viz", str(ROOT / "none.py"), paths[0]]) == 2
    assert f"{paths[0]} stands beside no recording" in capsys.readouterr().err


@pytest.mark.slow
def test_a_process_of_a_launcher_writes_a_file_of_its_own(tmp_path):
    launched = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "PYTHONPATH": str(ROOT)}
    env = {**os.environ, **launched, "VIZ_SAVE": str(tmp_path / "run.json.gz")}
    line = [sys.executable, "-c", "from lazygrad import Tensor; print((Tensor([1.0]) + 1).tolist())"]
    done = subprocess.run(line, capture_output=True, text=True, env=env, timeout=PATIENCE)
    assert (done.returncode, done.stdout) == (0, "[2.0]\n"), done.stderr
    (path,) = tmp_path.iterdir()
    assert path.name == "run.rank1.json.gz"
    assert read_recording(path)["made"]["rank"] == 1

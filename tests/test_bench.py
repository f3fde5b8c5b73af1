"""The measurements run. How fast anything is, is never asserted: that depends on the machine."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from bench import latency, torch_compile
from bench.speed.cases import Case, named
from bench.speed.limit import Limit, Memory
from bench.speed.run import Peer
from lazygrad.report.roofline import Roofline

from .helpers import PATIENCE, ROOT, needs


def run_bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench", *arguments]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=env, timeout=PATIENCE)


@pytest.mark.slow
def test_every_case_runs():
    done = run_bench("compile", "--quick", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["processor"]
    assert found["cores"] >= 1
    names = [row["case"] for row in found["results"]]
    for name in (
        "import lazygrad",
        "new kernel: softmax",
        "eager add of 4 floats",
        "transformer block: first",
    ):
        assert name in names
    for row in found["results"]:
        assert 0 < row["seconds_min"] <= row["seconds_median"]
        assert row["repeats"] >= 1


def test_stages_of_a_new_kernel():
    done = run_bench("compile", "--quick", "--json", "--cases", "kernel", "--clock", "cpu")
    assert done.returncode == 0, done.stderr
    for row in json.loads(done.stdout)["results"]:
        stages = row["stages_seconds"]
        assert row["kernels"] == 1
        assert all(
            stages[stage] > 0 for stage in ("schedule", "lower", "linearize", "render", "compile", "load")
        )
        assert sum(stages.values()) == pytest.approx(row["seconds_min"], rel=1e-6)


def test_the_table_shows_marks_beside_what_was_measured():
    done = run_bench("compile", "--quick", "--cases", "eager")
    assert done.returncode == 0, done.stderr
    head, row = done.stdout.split("\n\n")[1].splitlines()
    assert head.split() == ["case", "min", "median", "mark", "goal", "kernels", "note"]
    assert row.startswith("eager add of 4 floats")
    assert row.split()[7:10] == ["150", "80.0", "us"]


def test_unknown_names_are_refused():
    assert run_bench("conpile").returncode == 2
    done = run_bench("compile", "--cases", "kernel,nothing")
    assert done.returncode == 2
    assert "no case nothing" in done.stderr


def test_predictions_beside_what_was_measured():
    done = run_bench("predict", "--targets", "native,pdp11", "--programs", "row sums")
    native, head, *rows, found = done.stdout.splitlines()
    assert native.startswith("native: ")
    assert head.split() == ["measured", "predicted", "by"]
    assert any("row sums" in row for row in rows)
    assert re.fullmatch(r"\d+ kernels: rank correlation -?\d\.\d+, \d+% within .* cycle", found)
    assert done.returncode == 1
    assert "CPU_TARGET must be native or one of aarch64" in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processes do not choose their cores here")
def test_what_cores_are_worth():
    done = run_bench("cores", "--quick")
    assert done.returncode == 0, done.stderr
    assert "from disk" in done.stdout
    assert "NO" not in done.stdout.split()
    assert done.stdout.count(" yes\n") == 6


@pytest.mark.slow
def test_speed_runs_beside_numpy_and_is_right(tmp_path):
    path = tmp_path / "speed.json"
    cases = ["--cases", "matmul 127", "gather", "--kernels"]
    done = run_bench("--quick", *cases, "--peers", "numpy", "--json", str(path))
    assert done.returncode == 0, done.stdout + done.stderr
    cores, head, *rows, most = done.stdout.splitlines()
    assert cores.startswith("1 of ")
    assert head.split() == ["case", "ms", "limit", "numpy"]
    assert re.fullmatch(r"the most of all turns: \d+ GFLOP/s; .* [\d.]+ GB/s, .* [\d.]+ GB/s", most)
    assert [row.split()[0] for row in rows if row[0] != " "] == ["gather", "matmul"]
    assert "GFLOP/s" in rows[-1]
    assert "UPCAST" in rows[-1]
    (run,) = json.loads(path.read_text())["runs"]
    found = run["cases"]["matmul 127"]
    assert run["threads"] == 1
    assert set(run["limit"]) == {"ops", "caches", "memory", "read", "both"}
    assert 0 < found["lazygrad"]["fastest"] <= found["lazygrad"]["median"]
    assert found["lazygrad"]["kernels"][0]["seconds"] > 0
    assert found["numpy"]["fastest"] > 0


def test_the_limit_of_what_no_cache_holds_is_that_of_memory():
    roofline = Roofline(100e9, ((1 << 20, 200e9), (32 << 20, 100e9)), 30e9)
    limit = Limit(roofline, read=40e9, both=50e9)

    def seconds(read: float, written: float, flops: float = 0.0) -> float:
        return limit.seconds(Case("made up", "none", lambda rng: [], flops, read, written))

    assert seconds(1 << 19, 1 << 19) == (1 << 20) / 200e9
    assert seconds(16 << 20, 16 << 20) == (32 << 20) / 100e9
    assert seconds(32 << 20, 1) == pytest.approx((32 << 20) / 40e9)
    assert seconds(4e9, 0) == 4 / 40
    assert seconds(4e9, 4e9) == 8 / 50
    assert seconds(6e9, 4e9) == pytest.approx(8 / 50 + 2 / 40)
    assert seconds(0, 5e9) == 5 / 50
    assert seconds(4e9, 4e9, 1e12) == 10
    chain, matvec = named(["chain"])[0], named(["matvec"])[0]
    assert limit.seconds(chain) == pytest.approx(2 * 64 * (1 << 20) / 50e9)
    assert limit.seconds(matvec) == pytest.approx(64 * (1 << 20) / 40e9, rel=1e-3)


def test_of_two_limits_the_higher_numbers_count():
    one = Limit(Roofline(2e9, ((8, 3.0), (64, 2.0)), 1.0), 4.0, 7.0)
    two = Limit(Roofline(1e9, ((8, 2.0), (64, 2.5)), 1.5), 5.0, 6.0)
    assert one.or_better(two) == Limit(Roofline(2e9, ((8, 3.0), (64, 2.5)), 1.5), 5.0, 7.0)
    assert one.or_better(two) == two.or_better(one)


@pytest.mark.parametrize("cores", [1, 2, 3])
def test_memory_is_gone_through_whole(cores):
    memory = Memory(4000, cores)
    seen = []
    read, both = memory.rates(lambda: seen.append(0), budget=0.0)
    assert min(read, both) > 0
    assert seen == [0, 0, 0]
    assert set(memory.x.tolist()) == {-1.0}  # turned thrice
    assert set(memory.y.tolist()) == {1.0}


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="processes do not choose their cores here")
def test_a_library_that_hangs_or_dies_has_no_time_and_another_process_next():
    cores = sorted(os.sched_getaffinity(0))[:1]
    peer = Peer("numpy", cores, patience=0.0)
    assert peer.ask(case=None) == {"error": "numpy took longer than 0 s"}
    assert peer.process is None
    peer.patience = PATIENCE
    assert peer.ask(case=None) == {}
    peer.process.kill()
    peer.process.wait()
    assert peer.ask(case=None) == {"error": "the process of numpy died: exit status -9"}
    peer.close()


@pytest.mark.slow
def test_odd_sizes_stand_beside_round_ones():
    done = run_bench("odd", "--quick", "--cases", "elementwise")
    assert done.returncode == 0, done.stderr
    head, *rows = [line.split() for line in done.stdout.splitlines()]
    assert head == ["case", "size", "us", "ns", "each", "times"]
    assert [row[:2] for row in rows] == [
        ["elementwise", "1048576"],
        ["elementwise", "1048573"],
        ["elementwise", "1021x1021"],
    ]
    assert rows[0][4] == "1.00"
    assert run_bench("odd", "--cases", "nothing").returncode == 2


def test_speed_names_the_cases_there_are():
    done = run_bench("--cases", "matmull")
    assert done.returncode == 2
    assert "no case has 'matmull' in its name: there are matmul 512, " in done.stderr


@pytest.mark.slow
@needs("torch")
def test_the_cases_of_training_agree_with_float64():
    done = run_bench("--quick", "--cases", "MLP", "decode", "--peers")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WRONG" not in done.stdout


@pytest.mark.slow
def test_latency_counts_from_processes_of_their_own():
    done = run_bench("latency", "--quick", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [row["case"] for row in found["rows"]] == ["load", "two", "two"]
    assert all(value > 1000 for value in found["microseconds"]["lazygrad"])  # microseconds


def test_latency_names_what_is_not_installed(monkeypatch, capsys):
    monkeypatch.setitem(latency.MODULES, "JAX", "no_such_module")
    monkeypatch.setattr(latency, "run", lambda library, case, folder: [2e3, 1e3])
    monkeypatch.setattr(os, "sched_setaffinity", lambda *_: None, raising=False)
    assert latency.main(["--quick"]) == 0
    out = capsys.readouterr().out
    assert "not installed: " in out
    assert "JAX" in out
    assert out.splitlines()[1].split() == ["import", "1.00", "60.0", "ms"]


@pytest.mark.slow
@needs("torch")
def test_the_memory_of_training_steps() -> None:
    small = ["--layers", "1", "--width", "64", "--tokens", "4", "--vocabulary", "8", "--steps", "3"]
    done = run_bench("memory", *small)
    assert done.returncode == 0, done.stderr
    steps, checkpoints = done.stdout.split("\n\n")
    rows = [line.split() for line in steps.splitlines()[1:]]
    assert [row[0] for row in rows][:2] == ["jit", "lazygrad"]
    assert all(0 < float(row[2]) < float(row[1]) and len(row) == 7 for row in rows[:2])
    for line in checkpoints.splitlines()[1:]:
        *_, plain, kept = line.split()
        assert 0 < int(kept) <= int(plain)


@pytest.mark.slow
def test_from_the_shell_to_the_first_step() -> None:
    done = run_bench("start", "--layers", "1", "--width", "32", "--tokens", "4", "--rounds", "1")
    assert done.returncode == 0, done.stderr
    rows = [
        [cell.strip() for cell in line.split("|")] for line in done.stdout.splitlines() if "step |" in line
    ]
    assert [row[1] for row in rows[:2]] == ["to the first step", "all to the first step"]
    for _, _, cold, _, warm, *_ in rows[:2]:
        assert float(cold.split()[0]) > float(warm.split()[0])  # what the first process left is found


@pytest.mark.slow
def test_loops_over_time_beside_pytorch() -> None:
    small = ["--length", "3", "--batch", "2", "--input", "4", "--hidden", "4", "--seconds", "0.1"]
    done = run_bench("loops", "gru", "mamba", *small)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()[1:]]
    assert [row[0] for row in rows] == ["gru", "lazygrad", "jit", "mamba", "lazygrad", "jit"]
    assert all(float(time) > 0 for time in rows[1][1:5])


def test_the_tally_names_who_is_above_a_bound(tmp_path, capsys) -> None:
    def line(name: str, ours: float, first: float, **more: float) -> str:
        times = {"eager": 0.01, "lazygrad": ours, "first lazygrad": first, "first inductor": 9.0} | more
        kinds = {f"{kind} {key}": value for kind in ("forward", "training") for key, value in times.items()}
        return json.dumps({"name": name, "found": {"fell": [], "forward": 1e-6, "training": 1e-2} | kinds})

    saved, again = tmp_path / "saved", tmp_path / "again"
    failed = json.dumps({"name": "Slow", "found": {"failed": "no answer"}})
    saved.write_text("\n".join([line("quick", 0.009, 9.0, inductor=0.008), line("Slow", 0.2, 4.5), failed]))
    again.write_text("\n".join([line("Slow", 0.0095, 4.5), line("quick", 0.008, 3.0, inductor=0.008)]))
    assert torch_compile.main(["--table", str(saved), str(again)]) == 0
    table, tally = capsys.readouterr().out.split("\n\n")
    assert table.splitlines()[2:] == [
        "| quick | 10.0 | 0.80 | 0.80 | 3.0 | 9.0 | 10.0 | 0.80 | 0.80 | 3.0 | 9.0 |",
        "| Slow | 10.0 | 0.95 |  | 4.5 | 9.0 | 10.0 | 0.95 |  | 4.5 | 9.0 |",
    ]
    times = [
        "  1 of 2 take at most 0.9 of eager's time: not Slow 0.95",
        "  1 of 1 take at most 1.0 of inductor's time",
        "  1 of 2 take at most a third of inductor's first call: not Slow 0.50",
    ]
    assert tally.splitlines() == [
        "forward: 2 of 2 equal to eager within 0.001",
        *times,
        "training: 0 of 2 equal to eager within 0.001",
        *times,
        "forward and training:",
        "  1 of 2 take at most 0.9 of eager's time",
        "  1 of 1 take at most 1.0 of inductor's time",
    ]

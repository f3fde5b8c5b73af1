"""What ran in a block, by kernel and by line, and as a timeline in the Trace Event Format."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys

import pytest

import lazygrad
from lazygrad import Context, Tensor, TinyJit, profile
from lazygrad.report.profile import NO_LINE, Profile


def test_rows_by_kernel_and_by_line():
    with profile() as seen:
        for _ in range(3):
            doubled = Tensor([1.0, 2.0, 3.0, 4.0]).realize().mul(2)
            doubled.realize()  # computes what the line above asked for
        total = doubled.sum().realize()
    assert total.item() == 20
    # a process that has made another kernel of this name before calls it E_4n1
    (doubling,) = [row for row in seen.rows if re.match(r"E_4(n\d+)?\b", row.what)]
    assert (doubling.device, doubling.count, doubling.nbytes) == ("CPU", 3, 3 * 2 * 16)
    assert doubling.detail == "mul"
    by_code = {row.detail: row for row in seen.lines}
    assert by_code["total = doubled.sum().realize()"].count == 1
    multiplied = by_code["doubled = Tensor([1.0, 2.0, 3.0, 4.0]).realize().mul(2)"]
    assert multiplied.what.startswith(("tests/report/test_profile.py:", "/"))
    assert multiplied.count in (3, 6)  # the copies too, where there are any
    assert sum(row.share for row in seen.rows) == pytest.approx(1)
    assert sum(row.seconds for row in seen.lines) == pytest.approx(seen.total)
    assert 0 < seen.total < seen.wall


def test_what_runs_outside_is_not_in_it():
    with profile() as seen:
        pass
    (Tensor([1.0]) + 1).realize()
    assert (seen.count, seen.rows, seen.text()) == (0, [], "no kernel ran")


def test_profiles_within_each_other_see_the_same():
    with profile() as outer:
        (Tensor([1.0]).realize() + 1).realize()
        with profile() as inner:
            (Tensor([1.0]).realize() + 2).realize()
    assert inner.count * 2 == outer.count
    assert [row.count for row in inner.rows if row.what.startswith("E")] == [1]


def test_an_error_ends_it():
    seen = None

    def fails() -> None:
        nonlocal seen
        with profile() as seen:
            (Tensor([1.0]).realize() + 1).realize()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert seen.wall > 0
    before = seen.count
    (Tensor([1.0]).realize() + 1).realize()
    assert seen.count == before


def test_kernels_of_a_jit_are_seen_one_by_one():
    @TinyJit
    def step(x: Tensor) -> Tensor:
        return (x + 1).contiguous().sum()

    for _ in range(3):
        step(Tensor.ones(8).contiguous().realize())
    x = Tensor.ones(8).contiguous().realize()
    with profile() as seen:
        step(x)
    assert seen.count == 2
    assert [row.what for row in seen.lines] == [NO_LINE]  # captured when no lines were asked for
    assert "line" not in seen.text()


def test_the_table():
    with profile() as seen:
        for n in range(2, 6):
            (Tensor.ones(n).contiguous().realize() * 3).realize()
    lines = seen.text(2).splitlines()
    assert lines[0].split() == ["kernel", "count", "time", "share", "GB/s", "from"]
    assert [line.split()[0] for line in lines[1:4]][-1] == f"{len(seen.rows) - 2}"
    assert "more" in lines[3]
    assert lines[5].split() == ["line", "count", "time", "share", "GB/s"]
    assert lines[-1].startswith(f"{seen.count} runs of ")


def test_print(capsys):
    with profile() as seen:
        (Tensor([1.0]).realize() + 1).realize()
    seen.print()
    assert capsys.readouterr().out.strip() == seen.text().strip()


def test_names_of_several_devices_tell_which():
    with profile() as seen:
        (Tensor([1.0, 2.0]).shard(("CPU", "CPU:1"), 0).realize() + 1).realize()
    assert "CPU:1 E_" in seen.text()


# *** the timeline


def check_trace(text: str) -> list[dict]:
    """The events of a file, each as the Trace Event Format documents it."""
    form = json.loads(text)
    assert isinstance(form["traceEvents"], list)
    assert form["displayTimeUnit"] in ("ms", "ns")
    for event in form["traceEvents"]:
        assert isinstance(event["name"], str)
        assert isinstance(event["ph"], str)
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        assert isinstance(event.get("args", {}), dict)
        if event["ph"] == "M":  # metadata: what a process or thread is called
            assert event["name"] in ("process_name", "thread_name")
            assert isinstance(event["args"]["name"], str)
        else:  # a complete event: begin and duration in microseconds
            assert event["ph"] == "X"
            assert isinstance(event["cat"], str)
            for key in ("ts", "dur"):
                assert isinstance(event[key], float)
                assert event[key] >= 0
    return form["traceEvents"]


def test_the_timeline(tmp_path):
    with profile() as seen:
        x = Tensor([1.0, 2.0, 3.0]).shard(("CPU", "CPU:1"), 0).realize()
        (x + 1).sum().realize()
    seen.trace(tmp_path / "trace.json")
    events = check_trace((tmp_path / "trace.json").read_text())
    runs = [event for event in events if event["ph"] == "X"]
    assert len(runs) == seen.count
    threads = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert set(threads.values()) == {"CPU", "CPU:1"}
    assert {event["tid"] for event in runs} == set(threads)
    assert {event["cat"] for event in runs} == {"kernel", "copy"}
    assert any(event["args"]["line"].startswith(__file__) for event in runs)
    for device in threads:  # one after another
        own = sorted((e["ts"], e["dur"]) for e in runs if e["tid"] == device)
        assert all(later + 1 >= begin + took for (begin, took), (later, _) in itertools.pairwise(own))


def test_a_timeline_of_nothing(tmp_path):
    Profile().trace(tmp_path / "trace.json")
    assert [event["name"] for event in check_trace((tmp_path / "trace.json").read_text())] == ["process_name"]


# *** the end of DEBUG=2

SCRIPT = """
from lazygrad import Tensor, TinyJit
x = Tensor.ones(4, 4).contiguous().realize()
print((x @ x).sum().item())
f = TinyJit(lambda x: (x + 1).contiguous().sum())
for _ in range(3): f(x).item()
"""


@pytest.mark.parametrize("level", ["1", "2"])
def test_debug_ends_with_the_tables(tmp_path, level):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    ran = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, cwd=tmp_path, env=_environment(level)
    )
    assert ran.returncode == 0, ran.stderr
    assert "share" not in ran.stdout
    if level == "1":
        assert ran.stderr == ""
        return
    _, _, end = ran.stderr.partition("\nkernel")
    by_kernel, by_line, total = end.split("\n\n")
    assert "<batched 2>" in by_kernel
    lines = by_line.splitlines()
    assert any(
        line.startswith("script.py:4") and line.endswith("print((x @ x).sum().item())") for line in lines
    )
    assert "runs of" in total


def _environment(level: str) -> dict[str, str]:
    return {**os.environ, "DEBUG": level, "PYTHONPATH": os.pathsep.join(sys.path)}


def test_debug_in_a_block_of_a_process_prints_no_tables(capsys):
    with Context(DEBUG=2):
        (Tensor([1.0]).realize() + 1).realize()
    assert "share" not in capsys.readouterr().out


def test_it_is_found_at_the_top():
    assert lazygrad.profile is profile

"""python -m lazygrad tune: the kernels of a script are searched, and a table says what was found."""

from __future__ import annotations

import re
import time

import pytest

from lazygrad import Context
from lazygrad.__main__ import main
from lazygrad.codegen.opt import Opt, OptOps
from lazygrad.commands import tune
from lazygrad.ir.ops import Ops
from lazygrad.tuning.beam import Tuned
from tests.helpers import PATIENCE

SCRIPT = """
from lazygrad import Tensor
x = Tensor.arange(64).reshape(8, 8).cast("float").contiguous()
for _ in range(2):
    x.sum(0).tolist()
print("done")
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    with Context(CACHEDB=str(tmp_path / "private" / "cache.db"), BEAM_TIMEOUT_SEC=PATIENCE):
        yield str(path)


def test_a_table_of_what_was_found(script, capsys, monkeypatch):
    widths = []

    def found(device, ast, width, until):
        widths.append(width)
        if any(node.op is Ops.REDUCE_AXIS for node in ast.toposort()):  # whichever took longer comes first
            return Tuned("r_8_8", (Opt(OptOps.UPCAST, 0, 8),), 2e-6, (), 4e-6, 12)
        return Tuned("E_64", (), 1e-6, (), 1e-6, 12)

    monkeypatch.setattr(tune, "tune", found)
    assert main(["tune", script, "--beam", "3"]) == 0
    out, err = capsys.readouterr()
    assert err == "done\n"
    assert widths == [3, 3]
    lines = out.splitlines()
    assert lines[0].split() == ["kernel", "runs", "heuristic", "best", "times", "opts"]
    (reduced,) = [line for line in lines if "OptOps.UPCAST" in line]
    (copied,) = [line for line in lines if "as the heuristic" in line]
    assert reduced.split(None, 5)[2:] == [
        "4.00us",
        "2.00us",
        "2.00x",
        "[Opt(op=OptOps.UPCAST, axis=0, amount=8)]",
    ]
    assert copied.endswith("1.00x  as the heuristic")
    runs = {int(line.split()[1]) for line in (reduced, copied)}
    assert lines[3].startswith("in all, 3 runs of 2 kernels: ")
    assert runs == {1, 2}
    assert lines[4] == "BEAM=3 uses what was found"


def test_it_searches_and_keeps(script, capsys):
    assert main(["tune", script, "--beam", "1"]) == 0
    first = capsys.readouterr().out.splitlines()
    assert main(["tune", script, "--beam", "1"]) == 0
    again = capsys.readouterr().out.splitlines()
    assert sorted(first) == sorted(again)  # the second time nothing is measured


def test_ctrl_c_says_how_far_it_came(script, capsys, monkeypatch):
    asked = []

    def stopped(device, ast, width, until):
        asked.append(ast)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return Tuned("E_64", (), 1e-6, (), 1e-6, 12)

    monkeypatch.setattr(tune, "tune", stopped)
    assert main(["tune", script]) == 130
    out, err = capsys.readouterr()
    assert out.splitlines()[1].startswith(("E_", "r_"))  # the name that DEBUG=2 shows
    assert "stopped after 1 of 2 kernels: run it again to go on" in err


def test_mistakes(tmp_path, capsys):
    path = tmp_path / "nothing.py"
    path.write_text("x = 1\n")
    assert main(["tune", str(path)]) == 0
    assert "runs no kernel" in capsys.readouterr().err
    path.write_text("x = 1 / 0\n")
    assert main(["tune", str(path)]) == 1
    assert "ZeroDivisionError" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["tune", str(path), "--beam", "0"])


@pytest.mark.parametrize(
    ("word", "name"),
    [("sum", "r_"), ("script.py:5", "r_"), ("(8,)", "r_"), ("r", "r_"), ("contiguous", "E_")],
)
def test_kernels_are_chosen(script, capsys, monkeypatch, word, name):
    monkeypatch.setattr(tune, "tune", lambda *given: Tuned("", (), 1e-6, (), 1e-6, 1))
    assert main(["tune", script, "--kernel", word]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert lines[1].startswith(name)


def test_a_word_that_means_no_kernel(script, capsys):
    assert main(["tune", script, "--kernel", "softmax"]) == 1
    assert re.search(r"script.py runs no kernel softmax; it runs E_\w+, r_\w+", capsys.readouterr().err)


def test_it_ends_in_time(script, capsys):
    begin = time.monotonic()
    assert main(["tune", script, "--seconds", "0.001", "--beam", "1"]) == 0
    assert time.monotonic() - begin < PATIENCE
    out = capsys.readouterr().out
    assert "0.001 s were over with 2 of 2 kernels to be searched" in out
    assert main(["tune", script, "--beam", "1"]) == 0  # what is left is searched, what was cut short too
    assert "were over" not in capsys.readouterr().out


@pytest.mark.parametrize("seconds", ["0", "-1", "x", "nan", "inf"])
def test_what_is_no_budget(script, capsys, seconds):
    with pytest.raises(SystemExit):
        main(["tune", script, f"--seconds={seconds}"])
    assert "is not a number of seconds" in capsys.readouterr().err

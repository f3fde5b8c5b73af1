"""Timing and Profiling."""

from __future__ import annotations

import pstats
import re

import pytest

from lazygrad.timing import Profiling, Timing


def test_a_block_is_timed(capsys):
    with Timing("load: ") as timing:
        pass
    assert re.fullmatch(r"load: +\d+\.\d\d ms\n", capsys.readouterr().out)
    assert timing.et > 0


def test_a_text_may_follow_and_silence_is_possible(capsys):
    with Timing("", lambda ns: f", {ns > 0}"):
        pass
    assert capsys.readouterr().out.endswith(" ms, True\n")
    with Timing("quiet: ", enabled=False) as timing:
        pass
    assert capsys.readouterr().out == ""
    assert timing.et > 0


def test_a_function_is_timed(capsys):
    @Timing("f: ")
    def f():
        return 3

    assert f() == 3
    assert capsys.readouterr().out.startswith("f: ")


def busy(n):
    return sum(i * i for i in range(n))


def test_profiling_prints_the_functions_that_took_longest(capsys, tmp_path):
    file = tmp_path / "out.proc"
    with Profiling(frac=0.5, fn=file):
        busy(200_000)
    lines = capsys.readouterr().out.splitlines()
    row = r"n: +\d+  tm: *\d+\.\d\dms  tot: *\d+\.\d\dms  \S+:\d+:.+"
    assert all(re.match(row, line) for line in lines)
    assert "test_timing.py" in lines[0]
    assert lines[0].endswith("busy")
    assert re.search(r"<- +\d+% tests/test_timing\.py:\d+:busy$|<- +\d+% ~:0:<built-in", lines[1])
    assert pstats.Stats(str(file)).total_calls > 200_000


def test_profiling_that_is_off_prints_nothing(capsys, tmp_path):
    with Profiling(enabled=False, fn=tmp_path / "none"):
        busy(10)
    assert capsys.readouterr().out == ""
    assert not (tmp_path / "none").exists()


def test_an_unknown_order():
    with pytest.raises(ValueError, match="sort must be 'cumtime' or 'time', not 'name'"):
        Profiling(sort="name")

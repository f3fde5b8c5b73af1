"""Which measured row a process goes by: its own machine's, one that ships, or that of rank 0."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lazygrad import Context
from lazygrad.renderer.cstyle.dialects import c_target
from lazygrad.renderer.llvmir import target as llvm_target
from lazygrad.runtime import _measured, _native
from lazygrad.runtime._measured import keep, measured_row, own_row
from lazygrad.runtime._native import host_target
from lazygrad.target import PROCESSORS, refined
from lazygrad.target.measured import VERSION, Figure, shipped_row


@pytest.fixture(autouse=True)
def folder(tmp_path):
    """A folder where nothing was measured, and a process that has asked for nothing."""
    with Context(CACHEDB=str(tmp_path / "lazygrad" / "cache.db"), CPU_TARGET="native", CACHELEVEL=2):
        _measured.forget()
        _measured._said.clear()
        yield tmp_path / "lazygrad" / "measured"
        _measured.forget()


SHIPS = shipped_row("znver3")
assert SHIPS is not None
MINE = replace(SHIPS, machine="mine")
ZEN_3 = "znver3"


def test_what_ships_counts_where_nothing_was_measured():
    assert measured_row(ZEN_3) == SHIPS


def test_what_was_measured_here_comes_first():
    keep(MINE)
    assert measured_row(ZEN_3) == MINE


def test_a_row_does_not_change_while_a_program_runs():
    measured_row(ZEN_3)
    keep(MINE)
    assert measured_row(ZEN_3) == SHIPS
    _measured.forget()  # as in the next process
    assert measured_row(ZEN_3) == MINE


def test_code_that_runs_elsewhere_goes_by_what_ships():
    features = PROCESSORS[ZEN_3].features
    before = refined(llvm_target(), ZEN_3, features)
    keep(replace(MINE, figures={**MINE.figures, "streams": {"1": Figure(1.0, 0.0)}}))
    assert refined(llvm_target(), ZEN_3, features) == before
    assert host_target(llvm_target(), ZEN_3, features).memory.stream < before.memory.stream


def test_a_processor_that_is_asked_for_by_name_goes_by_what_ships():
    keep(MINE)
    with Context(CPU_TARGET="znver3"):
        assert measured_row(ZEN_3) == SHIPS
    with Context(CPU_TARGET="x86-64-v3"):
        assert measured_row("x86-64-v3") is None


def test_without_a_cache_only_what_ships_counts():
    keep(MINE)
    with Context(CACHELEVEL=0):
        assert measured_row(ZEN_3) == SHIPS


def test_device_clang_has_the_row_of_this_processor(monkeypatch):
    monkeypatch.setattr(_measured, "processor_name", lambda: "znver3")
    assert measured_row("native") == SHIPS


def test_an_unknown_processor_takes_the_nearest_and_says_so_once(capsys):
    with Context(DEBUG=1):
        assert measured_row("znver99") == shipped_row("znver5")
        measured_row("znver99")
    said = "znver99 is not known: what is known of znver5 stands for it\n"
    assert capsys.readouterr().out == said


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "it is not JSON"),
        ("x" * 70_000, "it is longer than 65536 bytes"),
        (MINE.to_text().replace(f'"version": {VERSION}', '"version": 99'), "it is of version 99"),
        (replace(MINE, processor="znver4").to_text(), "it is a row of znver4"),
    ],
)
def test_a_damaged_file_is_named_and_does_not_count(folder, capsys, text, problem):
    folder.mkdir(parents=True)
    (folder / "znver3.json").write_text(text)
    assert own_row("znver3") == SHIPS
    said = capsys.readouterr().err
    assert problem in said
    assert str(folder / "znver3.json") in said
    assert said.count("python -m lazygrad calibrate") == 1


def test_a_file_that_was_damaged_is_written_anew(folder):
    folder.mkdir(parents=True)
    (folder / "znver3.json").write_text("{")
    assert keep(MINE) == folder / "znver3.json"
    assert own_row("znver3") == MINE
    assert [path.name for path in folder.iterdir()] == ["znver3.json"]


def test_ranks_go_by_the_row_of_rank_0():
    _measured.go_by(MINE)
    assert measured_row(ZEN_3) == MINE
    assert measured_row("znver5") == MINE


def test_ranks_have_no_row_where_rank_0_has_none():
    keep(MINE)
    _measured.go_by(None)
    assert measured_row(ZEN_3) is None
    found = host_target(llvm_target(), ZEN_3, PROCESSORS[ZEN_3].features)
    assert found.memory.stream == PROCESSORS[ZEN_3].memory.stream


def test_code_in_c_has_no_gathers_whatever_is_measured_of_them(monkeypatch):
    faster = {"gather": {"level1": Figure(1.0, 0.0)}, "gather_instruction": {"level1": Figure(0.5, 0.0)}}
    monkeypatch.setattr(_native, "measured_row", lambda arch: replace(SHIPS, figures=faster))
    with Context(CPU_TARGET="native"):
        assert host_target(llvm_target(), "znver3", frozenset(("avx2",))).has_gathers
        assert not host_target(c_target(), "native", frozenset(("avx2",))).has_gathers

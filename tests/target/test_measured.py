"""The text of a measured row, what is refused of it, and which row stands for a processor without one."""

from __future__ import annotations

import json

import pytest

from lazygrad.target import PROCESSORS, measured
from lazygrad.target.measured import (
    GROUPS,
    SHIPPED,
    VERSION,
    BadRow,
    Figure,
    Row,
    named,
    nearest,
    shipped_row,
)

FIGURES = {name: {key: [2.5, 0.25] for key in group.keys} for name, group in GROUPS.items()}
HEAD = {
    "version": VERSION,
    "processor": "znver3",
    "machine": "AMD EPYC; caches of 32 KB",
    "date": "2026-11-29",
    "threads": 2,
}


def text(**changed) -> str:
    return json.dumps({**HEAD, **FIGURES, **changed})


def without(name: str) -> str:
    whole = json.loads(text())
    del whole[name]
    return json.dumps(whole)


def test_a_row_is_read_and_written():
    row = Row.from_text(text())
    assert row.value("read", "level1") == 2.5
    assert row.figures["dot"]["int8"] == Figure(2.5, 0.25)
    assert Row.from_text(row.to_text()) == row


def test_a_text_is_one_figure_a_line():
    assert '\n  "level1": [2.5, 0.25],\n' in Row.from_text(text()).to_text()


def test_numbers_have_four_digits():
    row = Row("znver3", "m", "2026-11-29", 1, {"clock": {"core": Figure(3.14159, 0.01234)}})
    assert '"core": [3.142, 0.012]' in row.to_text()


def test_what_a_machine_lacks_is_left_out():
    row = Row.from_text(without("dot"))
    assert row.value("dot", "int8") is None
    assert row.value("read", "level1") == 2.5


@pytest.mark.parametrize(
    ("damaged", "problem"),
    [
        ("", "it is not JSON"),
        ("{", "it is not JSON"),
        ("[1, 2]", "it is not a row, which is a JSON object, but a list"),
        ("[" * 100_000, "it is not a row: its lists have no end"),
        ("{}", "it has no version, so it is not a row"),
        (text(version=1), "it is of version 1, and this lazygrad reads version 2"),
        (text(version="1"), "it is of version '1'"),
        (text(version=True), "it is of version True"),
        (text(bandwidth={}), "it has 'bandwidth', which is no group of figures"),
        (without("machine"), "it lacks machine"),
        (text(machine=3), "machine is 3, not a text"),
        (text(processor="../x"), "processor is '../x', which is no name of a processor"),
        (text(date="today"), "date is 'today', not one such as 2026-11-29"),
        (text(threads=0), "threads is 0, not a whole number from 1 on"),
        (text(threads=True), "threads is True, not a whole number"),
        (without("threads"), "threads is None, not a whole number"),
        (without("clock"), "it lacks clock, core"),
        (text(clock=[]), "clock is a list, not an object of figures"),
        (text(read={"level1": [1, 0]}), "it lacks read, memory"),
        (text(barrier={"none": [1, 0]}), "barrier has 'none'; there are all"),
        (text(barrier={"all": 3}), "barrier, all is 3, not a number and its spread"),
        (text(barrier={"all": [1]}), "not a number and its spread, such as [12.5, 0.02]"),
        (text(barrier={"all": ["1", 0]}), "barrier, all has '1', which is not a number"),
        (text(barrier={"all": [True, 0]}), "barrier, all has True, which is not a number"),
        (text(barrier={"all": [float("nan"), 0]}), "which is not finite"),
        (text(barrier={"all": [1, float("inf")]}), "which is not finite"),
        (text(barrier={"all": [10**400, 0]}), "which is not finite"),
        (text(barrier={"all": [-1, 0]}), "nothing there can be negative"),
        (text(barrier={"all": [1, -0.5]}), "nothing there can be negative"),
        (text(barrier={"all": [0, 0]}), "barrier, all is 0, and nothing is that slow or that fast"),
    ],
)
def test_a_damaged_text_is_refused(damaged, problem):
    with pytest.raises(BadRow) as refused:
        Row.from_text(damaged)
    assert problem in str(refused.value)


def test_pages_that_need_no_walk_are_a_result():
    assert Row.from_text(text(page_walk={"load": [0, 0.5]})).value("page_walk", "load") == 0


# ---- rows that ship


@pytest.mark.parametrize("name", SHIPPED)
def test_a_row_that_ships_is_whole(name):
    row = shipped_row(name)
    assert row is not None
    assert row.processor == name
    assert Row.from_text(row.to_text()) == row


def test_a_row_of_the_machine_at_hand_ships():
    assert "znver3" in SHIPPED


@pytest.mark.parametrize(
    ("name", "features", "what"),
    [
        ("rocketlake", "avx512f amx-tile amx-int8 prefetchi", "graniterapids"),  # seen on a rented machine
        ("icelake-server", "avx512f amx-tile", "sapphirerapids"),
        ("emeraldrapids", "avx512f amx-tile", "emeraldrapids"),
        ("emeraldrapids", "avx512f amx-tile prefetchi", "graniterapids"),
        ("diamondrapids", "avx512f amx-tile prefetchi", "diamondrapids"),
        ("rocketlake", "avx512f", "rocketlake"),
        ("znver5", "avx512f prefetchi", "znver5"),
    ],
)
def test_a_processor_that_shows_the_model_of_an_older_one_is_known_by_its_instructions(name, features, what):
    assert named(name, features.split()) == what


@pytest.mark.parametrize(
    ("name", "stands"),
    [
        ("znver2", "znver2"),
        ("znver1", "znver2"),
        ("znver3", "znver2"),  # of two that are as near, the older
        ("znver5", "znver4"),
        ("znver6", "znver4"),
        ("sapphirerapids", "icelake-server"),
        ("skylake", ""),
        ("neoverse-n1", ""),
        ("x86-64-v3", ""),
        ("m68k", ""),
        ("", ""),
    ],
)
def test_the_nearest_of_a_family(name, stands):
    assert nearest(name, ("icelake-server", "znver2", "znver4")) == stands


def test_the_families_are_of_names_that_are_known():
    known = {name for family in measured.FAMILIES for name in family}
    named = {name for name in PROCESSORS if not name.startswith(("x86-64", "aarch64"))}
    assert named <= known

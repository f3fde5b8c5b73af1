"""What this machine does is measured: figures that can be, whatever else runs here meanwhile."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from lazygrad import Context
from lazygrad.calibration import beside_the_data_sheet, measure
from lazygrad.calibration.measure import _figures
from lazygrad.calibration.probes import Bench
from lazygrad.config import usable_cores
from lazygrad.device import Device
from lazygrad.renderer.llvmir import target as llvm_target
from lazygrad.runtime import _pool
from lazygrad.runtime._llvm import CrossCompiler
from lazygrad.target import PROCESSORS, refined
from lazygrad.target.measured import GROUPS, Figure, Row


def one_turn() -> Row:
    """One turn of each figure, of a memory that is small."""
    with Context(THREADS=2):
        return measure(0.1, far=8 << 20)


@pytest.fixture(scope="module")
def row() -> Row:
    return one_turn()


def rows(first: Row) -> Iterator[Row]:
    """A few: other work on the machine makes a sample slower, and one may be all that a figure has."""
    yield first
    yield from (one_turn() for _ in range(4))


def test_every_figure_is_finite_and_more_than_0(row):
    figures = [(name, key, each) for name, group in row.figures.items() for key, each in group.items()]
    assert len(figures) > 20
    for name, key, (value, spread) in figures:
        assert math.isfinite(value), (name, key)
        assert value > 0 or name == "page_walk", (name, key)
        assert spread >= 0, (name, key)


def test_what_lies_nearer_comes_sooner(row):
    assert any(each.value("read", "level1") > each.value("read", "memory") / 2 for each in rows(row))
    assert any(each.value("latency", "level1") < each.value("latency", "memory") * 2 for each in rows(row))
    assert any(each.value("columns", "2048") > each.value("columns", "64") / 4 for each in rows(row))


def test_figures_are_what_a_processor_of_today_can_do(row):
    """Loose by ten times and more: a slip in what a kernel is said to do is larger than what others take."""
    assert 0.05 < row.value("clock", "core") < 20
    assert 0.1 < row.value("fma", "16") < 2000
    assert 0.05 < row.value("fma_latency", "16") < 200
    assert 0.1 < row.value("latency", "level1") < 200


def test_a_chain_is_slower_than_chains_beside_each_other(row):
    alone = 2 * 16 / 4
    assert any(each.value("fma", "16") > 1.2 * alone / each.value("fma_latency", "16") for each in rows(row))


def test_a_row_can_be_written_and_read(row):
    again = Row.from_text(row.to_text())
    assert again.processor == row.processor
    assert again.figures.keys() == row.figures.keys()


def test_one_thread_has_no_forks():
    with Context(THREADS=1):
        bench = Bench(Device["CPU"].renderer.target, 1 << 20)
    try:
        assert {"fork", "barrier"} & {probe.group for probe in bench.probes()} == set()
    finally:
        bench.close()


@pytest.mark.skipif(usable_cores() < 2 or not _pool.available(), reason="the worker pool has one thread here")
def test_threads_meet():
    """Sooner or later: where the other core is busy, they come late thousands of times."""
    end = time.monotonic() + 60
    with Context(THREADS=2):
        bench = Bench(Device["CPU"].renderer.target, 1 << 20)
        try:
            meetings = [probe for probe in bench.probes() if probe.group in ("fork", "barrier")]
            assert {probe.key for probe in meetings} == {"awake", "asleep", "all"}
            for probe in meetings:
                while not math.isfinite(probe.run(1)):
                    assert time.monotonic() < end, probe
        finally:
            bench.close()


@pytest.mark.parametrize("name", ["x86-64", "x86-64-v3", "znver5", "aarch64"])
def test_the_kernels_can_be_compiled_for_other_processors(name):
    processor, features = PROCESSORS[name], PROCESSORS[name].features
    if name == "znver5":
        features |= {"avx512vnni", "avx512bf16"}
        processor = replace(processor, cpu=name)
    bench = Bench(refined(llvm_target(), name, features), 8 << 20)
    assert ("gather_instruction" in bench.source) == (name in ("x86-64-v3", "znver5"))
    assert ("dot_int8" in bench.source) == (name == "znver5")
    assert len(CrossCompiler(processor).compile(bench.source)) > 1000


def test_the_best_counts_and_how_far_the_median_is_from_it():
    found = _figures({("read", "memory"): [0.5, 0.25, 0.5], ("latency", "memory"): [90.0, 80.0, 100.0]})
    assert found["read"]["memory"] == Figure(4.0, 1.0)
    assert found["latency"]["memory"] == Figure(80.0, 0.125)


def test_runs_that_did_not_end_do_not_count():
    inf = math.inf
    found = _figures({("fork", "awake"): [inf, 4.0, inf], ("barrier", "all"): [inf]})
    assert found == {"fork": {"awake": Figure(4.0, 1.0)}}  # one sample: how far it varies is not known


@pytest.mark.parametrize(("sparse", "walk"), [(30.0, 20.0), (9.0, 0.0)])
def test_a_page_walk_is_what_many_pages_take_longer(sparse, walk):
    found = _figures({("page_walk", "sparse"): [sparse], ("page_walk", "dense"): [10.0]})
    assert found["page_walk"] == {"load": Figure(walk, 1.0)}


def test_a_table_shows_the_data_sheet_beside_and_marks_noise():
    figures = {
        "clock": {"core": Figure(2.0, 0.0)},
        "fma_latency": {"32": Figure(2.5, 0.01)},
        "read": {"memory": Figure(9.0, 0.5)},
    }
    target = refined(llvm_target(), "znver3", PROCESSORS["znver3"].features)
    text = beside_the_data_sheet(Row("znver3", "a machine", "2026-11-29", 2, figures), target)
    (latency,) = [line for line in text.splitlines() if line.split()[:2] == ["32", "ns"]]
    assert latency.split()[2:] == ["2.5", "1%", "2"]  # four cycles of half a nanosecond
    assert "50%*" in text
    assert text.splitlines()[-1].startswith("* 1 figure")
    assert all(GROUPS[name].meaning in text for name in figures)

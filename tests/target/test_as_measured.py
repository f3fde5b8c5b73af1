"""What a measured row makes of a target's facts: cycles of nanoseconds, and nothing of what it lacks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lazygrad.dtype import dtypes
from lazygrad.renderer.llvmir import target as llvm_target
from lazygrad.target import PROCESSORS, Target, as_measured, processors, refined
from lazygrad.target.measured import Figure, Row

FEATURES = PROCESSORS["znver2"].features
#: Of a processor of two cycles a nanosecond.
FIGURES = {
    "clock": {"core": 2.0},
    "read": {"level1": 128.0, "level2": 60.0, "level3": 40.0, "memory": 10.0},
    "latency": {"level1": 2.0, "level2": 7.0, "level3": 25.0, "memory": 90.0},
    "streams": {"1": 8.0, "2": 15.0, "4": 19.5, "8": 20.0},
    "gather": {"level1": 0.5},
    "gather_instruction": {"level1": 0.4},
    "fork": {"awake": 500.0, "asleep": 8000.0},
    "fma": {"16": 32.0, "32": 63.0},
    "fma_latency": {"32": 2.55},
}


def row(processor: str = "znver2", **changed: dict[str, float]) -> Row:
    given = {**FIGURES, **changed}
    figures = {name: {key: Figure(value, 0.0) for key, value in each.items()} for name, each in given.items()}
    return Row(processor, "a machine", "2026-11-29", 2, figures)


@pytest.fixture
def plain() -> Target:
    return refined(llvm_target(), "m68k", FEATURES)


def test_figures_are_counted_in_cycles_of_the_rows_clock(plain):
    found = as_measured(plain, row(), True)
    assert (found.core.products, found.core.multiply_add, found.core.loads) == (2.0, 5.0, 2.0)
    assert found.memory.rates == (30.0, 20.0, 10.0)  # from memory as many walks as serve best
    assert (found.memory.stream, found.memory.walks) == (4.0, 4)
    assert found.memory.waits == (14.0, plain.memory.waits[1])
    assert found.launch.fork == 4000.0  # between 1,000, awake, and 16,000, asleep
    assert found.has_gathers


def test_columns_say_what_is_lost_behind_each_strip(plain):
    """Beside one walk of 8 GB/s: strips at half of it lose as many bytes as they have."""
    found = as_measured(plain, row(columns={"64": 2.0, "512": 4.0, "2048": 9.0}), True)
    assert found.memory.overrun == ((64, 190.0), (512, 510.0), (2048, 0.0))
    assert as_measured(plain, row(), True).memory.overrun == ()


def test_the_same_row_again_changes_nothing(plain):
    assert as_measured(as_measured(plain, row(), True), row(), True) == as_measured(plain, row(), True)


def test_what_was_not_measured_stays(plain):
    only = row(latency={"memory": 90.0}, gather={}, gather_instruction={}, fork={}, fma={}, fma_latency={})
    found = as_measured(plain, only, True)
    assert found.core == replace(plain.core, loads=2.0)
    assert found.memory.waits == plain.memory.waits
    assert (found.launch, found.has_gathers) == (plain.launch, plain.has_gathers)


def test_memory_comes_where_there_is_no_third_cache(plain):
    found = as_measured(plain, row(read={"level1": 128.0, "level2": 60.0, "memory": 8.0}), True)
    assert found.memory.rates == (30.0, 10.0, 10.0)


def test_a_gather_slower_than_loads_one_by_one_is_none(plain):
    assert not as_measured(replace(plain, has_gathers=True), row(gather={"level1": 0.3}), True).has_gathers


@pytest.fixture
def ships(monkeypatch):
    """As if this row shipped, and no other."""

    def ship(name: str) -> None:
        monkeypatch.setattr(processors, "SHIPPED", (name,))
        monkeypatch.setattr(processors, "shipped_row", {name: row(name)}.get)

    return ship


def test_code_that_can_have_no_gathers_has_none(plain):
    assert not as_measured(plain, row(), False).has_gathers


def test_the_order_of_a_rows_figures_does_not_matter(plain):
    turned = row(streams=dict(reversed(FIGURES["streams"].items())))
    assert as_measured(plain, turned, True) == as_measured(plain, row(), True)


def test_a_row_that_ships_counts_before_the_data_sheet(ships):
    ships("znver2")
    assert refined(llvm_target(), "znver2", FEATURES).memory.stream == 4.0
    assert refined(llvm_target(), "znver4", FEATURES).memory == PROCESSORS["znver4"].memory


def test_of_a_processor_that_was_not_measured_its_family_says_what_strips_lose():
    measured, other = (refined(llvm_target(), name, FEATURES).memory for name in ("znver3", "znver4"))
    assert measured.overrun
    assert other == replace(PROCESSORS["znver4"].memory, overrun=measured.overrun)


def test_a_processor_that_is_not_known_is_taken_for_the_nearest_of_its_family(ships):
    ships("znver5")
    found = refined(llvm_target(), "znver7", PROCESSORS["znver5"].features)
    assert (found.arch, found.core.add, found.memory.stream) == ("znver7", PROCESSORS["znver5"].core.add, 4.0)
    assert found.memory.prefetched == PROCESSORS["znver5"].memory.prefetched


@pytest.mark.parametrize("operations", [119.0, 476.0])
def test_an_instruction_that_is_slower_than_float32_is_not_used(operations):
    """`vdpbf16ps` takes two cycles on some processors: 119 and 238 were measured on Granite Rapids."""
    plain = refined(llvm_target(), "m68k", frozenset(("avx512f", "fma", "avx512bf16", "avx512vnni")))
    found = as_measured(plain, row(fma={"64": 238.0}, dot={"bfloat16": operations, "int16": 100.0}), True)
    elements = [dot.element for dot in found.dots]
    assert elements == ([dtypes.bfloat16, dtypes.int16] if operations > 238 else [dtypes.int16])

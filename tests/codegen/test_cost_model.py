"""Work and the time it takes: what a policy writes down in closed form is what a linear program does."""

from __future__ import annotations

import functools
import operator
from dataclasses import replace

import pytest

from lazygrad.codegen.compile import stages
from lazygrad.codegen.cost.cost_model import Loop, cycles, fetched, issued
from lazygrad.codegen.cost.predict import TURNS_OF_A_WHILE, _walk, predict
from lazygrad.codegen.lowering.lower import lower
from lazygrad.codegen.opt import Loops, OptOps
from lazygrad.codegen.opt.cpu import contraction
from lazygrad.codegen.opt.facts import Facts
from lazygrad.device import Device
from lazygrad.dtype import dtypes
from lazygrad.ir.args import AxisType, RangeArg
from lazygrad.ir.ops import Ops
from lazygrad.ir.own import MOST_TURNS
from lazygrad.ir.uop import UOp
from lazygrad.target import Core, Memory, Target

from .test_contraction import product

TARGET = Target(
    "CPU",
    vector_bytes=32,
    vector_registers=16,
    has_fma=True,
    core=Core(issued=4, arithmetic=2, products=2, loads=2, stores=1),
    memory=Memory((1 << 15, 1 << 19, 1 << 25), rates=(32, 16, 8), waits=(12, 40)),
)


def test_a_turn_takes_as_long_as_what_is_busy_longest():
    loop = Loop(100, Loop())
    loop.load(6)
    loop.compute(2, products=True)
    assert issued([loop], TARGET) == 100 * 6 / TARGET.core.loads
    loop.waits = 4.0
    assert issued([loop], TARGET) == 100 * 4
    loop.lost = 10.0
    assert issued([loop], TARGET) == 100 * 14


def test_sums_without_a_register_are_stored():
    loop = Loop(10, accumulators=12)
    assert issued([loop], TARGET) == 0
    loop.accumulators = 18
    assert issued([loop], TARGET) == 10 * 5


def walked(nbytes, step=8, turns=1):
    """A loop that loads vectors of 32 bytes, one after the other, some times all."""
    outer = Loop(turns)
    loop = Loop(nbytes / 32, outer)
    loop.load(1)
    loop.touch("memory", nbytes * step / 8, 4, 32, {loop: step})
    return [outer, loop]


def test_what_is_in_a_cache_is_not_fetched():
    assert fetched(walked(1 << 14), TARGET) == []
    assert fetched(walked(1 << 18), TARGET) == [(1 << 18) / 32]
    assert fetched(walked(1 << 22), TARGET) == [(1 << 22) / 32, (1 << 22) / 16]


def test_a_kernel_has_half_of_the_third_cache():
    assert len(fetched(walked(1 << 24), TARGET)) == 2
    assert len(fetched(walked(1 << 25), TARGET)) == 3


def test_lines_that_share_a_set_are_waited_for():
    apart, alike = (cycles(walked(1 << 19, step), TARGET) for step in (1000, 1024))
    assert alike > 2 * apart


def gathered(spread, parts=16):
    """A loop that loads one element of each of so many lines, and the next of each in its next turn."""
    outer = Loop(64)
    loop = Loop(16, outer)
    loop.load(parts)
    loop.touch("memory", 1 << 20, 4, 4.0 * parts, {loop: 1, outer: 1 << 12}, parts, spread)
    return [outer, loop]


def test_each_part_of_a_gathered_vector_is_in_a_line_of_its_own():
    loop = gathered(1000)[1]
    (traffic,) = loop.traffic.values()
    assert traffic.footprints([loop], 64) == [16 * 64]  # the next elements are in the same lines


def test_more_lines_than_a_set_has_are_waited_for_in_each_turn():
    assert cycles(gathered(4096), TARGET) > 3 * cycles(gathered(4096 + 64), TARGET)
    assert cycles(gathered(4096, 8), TARGET) < 1.5 * cycles(gathered(4096 + 64, 8), TARGET)


def test_what_shares_half_of_the_sets_is_too_much_for_them():
    """32 rows of 2 KB: a first cache of 32 KB has 8 lines for each place of a page, so 16 of such rows."""
    scattered = {parts: cycles(gathered(2048, parts), TARGET) for parts in (16, 32)}
    assert scattered[32] > 3 * cycles(gathered(2048 + 64, 32), TARGET)
    assert scattered[16] < 1.5 * cycles(gathered(2048 + 64, 16), TARGET)


def test_lanes_are_loaded_one_by_one_while_half_a_vector_is():
    """A core that takes a cycle for a whole vector begins two loads of one element in it."""
    target = replace(TARGET, core=replace(TARGET.core, loads=1.0, lane_loads=2.0, issued=8.0))
    vectors, lanes = Loop(100), Loop(100)
    vectors.load(8)
    lanes.load(8, True)
    assert issued([vectors], target) == 2 * issued([lanes], target) == 800


def test_computing_and_fetching_go_on_together():
    loops = walked(1 << 22)
    most = max(issued(loops, TARGET), *fetched(loops, TARGET))
    assert most < cycles(loops, TARGET) < 1.3 * most + issued(loops, TARGET)


#: Of strips of 64 and of 1,024 bytes, each in a page of its own.
MEASURED = replace(TARGET, memory=replace(TARGET.memory, overrun=((64, 100.0), (1024, 400.0))))


@pytest.mark.parametrize(("rows", "adjoining", "ends"), [(1, False, 1), (4, False, 4096), (4, True, 1)])
def test_rows_side_by_side_are_walks_that_begin_anew(rows, adjoining, ends):
    """4,096 rows of 1,152 bytes: one by one they are one walk through memory."""
    target = replace(MEASURED, memory=replace(MEASURED.memory, adjoining=adjoining))
    outer = Loop(4096 / rows)
    loop = Loop(36, outer)
    loop.touch("weights", 4096 * 1152, 2, 32.0 * rows, {loop: 16, outer: 576 * rows}, rows, 1152)
    near, far = fetched([outer, loop], TARGET)
    assert fetched([outer, loop], target) == [near, far + 400 * ends / 16]


@pytest.mark.parametrize(("strip", "lost"), [(32, 100), (64, 100), (256, 160), (1024, 400), (2048, 400)])
def test_a_strip_of_pages_loses_what_its_width_was_measured_to(strip, lost):
    rows = Loop(16384)
    rows.touch("matrix", 16384 * 8192, 4, strip, {rows: 2048})
    assert fetched([rows], MEASURED)[1] - fetched([rows], TARGET)[1] == 16384 * lost / 16


def test_strips_that_are_nearer_than_a_page_are_followed():
    rows = Loop(4096)
    rows.touch("matrix", 4096 * 4000, 4, 1024, {rows: 1000})
    walk = fetched([rows], MEASURED)[1]
    assert walk == fetched([rows], TARGET)[1] + 400 / 16  # the end of all


@pytest.mark.parametrize("order", [(False, False), (False, True)], ids=["rounds", "lanes of sums"])
def test_what_is_not_packed_is_the_work_that_its_program_does(order):
    ast = product(34, 768, 1024, *order)
    renderer = Device["CPU"].renderer
    memory = replace(renderer.target.memory, row=120.0)
    target = replace(renderer.target, memory=memory)
    apart = (OptOps.ROUNDS, OptOps.UNROLL)[order[1]]
    for before, tiling in contraction._tilings(Facts.of(Loops.of(lower(ast))), target):
        for tile in list(tiling.tiles())[:3]:
            opts = before + tiling.opts(tile)
            if apart not in {opt.op for opt in opts}:
                continue
            program = dict(stages(ast, renderer, opts))["form sums"]
            assert abs(predict(program, target) / cycles(tiling.loop_costs(tile), target) - 1) < 0.3


@pytest.mark.parametrize("order", [(False, False), (True, False), (False, True)], ids=str)
def test_a_tile_is_the_work_that_its_program_does(order):
    """The closed form of a candidate beside the walk over what is made of it."""
    ast = product(256, 384, 512, *order)
    renderer = Device["CPU"].renderer
    facts = Facts.of(Loops.of(lower(ast)))
    target = renderer.target
    for opts in contraction.candidates(facts, target)[:40:8]:
        program = dict(stages(ast, renderer, opts))["form sums"]
        counted = min(
            abs(predict(program, target) / cycles(tiling.loop_costs(tile), target) - 1)
            for before, tiling in contraction._tilings(facts, target)
            for tile in tiling.tiles()
            if before + tiling.opts(tile) == opts
        )
        assert counted < 0.4


def nest(*ends: int | str) -> list[UOp]:
    """A load in loops, one inside of the other, each from 0 to its end: a number, or "around", where the one
    around it is.
    """
    ranges: list[UOp] = []
    for number, end in enumerate(ends):
        size = ranges[-1] if end == "around" else UOp.const(dtypes.int32, end)
        start = UOp.const(dtypes.int32, 0)
        ranges.append(UOp(Ops.RANGE, dtypes.int32, (start, size), RangeArg(number, AxisType.LOOP)))
    memory = UOp(Ops.DEFINE_GLOBAL, dtypes.float32.ptr(1), (), 0)
    place = UOp(Ops.INDEX, memory.dtype, (memory, UOp.const(dtypes.int32, 0)))
    closed = [UOp(Ops.ENDRANGE, dtypes.void, (r,)) for r in reversed(ranges)]
    return [memory, *ranges, place, UOp(Ops.LOAD, dtypes.float32, (place,)), *closed]


def test_a_loop_that_ends_where_the_one_around_it_is_turns_half_as_often():
    triangle, half = predict(nest(128, "around"), TARGET), predict(nest(128, 63), TARGET)
    assert triangle == half


def test_a_while_is_taken_to_turn_a_few_times():
    assert predict(nest(4, MOST_TURNS), TARGET) == predict(nest(4, TURNS_OF_A_WHILE), TARGET)


def test_places_move_alike_in_whatever_order_their_loops_were_met():
    """Twelve loops, whose places are added up forwards and backwards: neighbours in one line."""
    of = dtypes.int32
    loops = [
        UOp(Ops.RANGE, of, (UOp.const(of, 0), UOp.const(of, 2)), RangeArg(number, AxisType.LOOP))
        for number in range(12)
    ]
    memory = UOp(Ops.DEFINE_GLOBAL, dtypes.float32.ptr(1 << 13), (), 0)
    forwards = functools.reduce(operator.add, [loop << n for n, loop in enumerate(loops, 1)])
    backwards = functools.reduce(operator.add, [loop << n for n, loop in reversed([*enumerate(loops, 1)])])
    loads = [
        UOp(Ops.LOAD, dtypes.float32, (UOp(Ops.INDEX, memory.dtype, (memory, place)),))
        for place in (forwards, backwards + 1)
    ]
    program = [u for u in UOp.sink(*loads).toposort() if u.op is not Ops.SINK and u not in loops]
    *_, inner = _walk([*loops, *program], TARGET)
    assert [traffic.nbytes for traffic in inner.traffic.values()] == [8]

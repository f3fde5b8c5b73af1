"""Which loop each node stands in, in which order."""

from __future__ import annotations

import pytest

from lazygrad.dtype import dtypes
from lazygrad.ir import index
from lazygrad.ir.args import AxisType, RangeArg
from lazygrad.ir.nest import Block, loop_nest, output_ranges, ranges_of
from lazygrad.ir.ops import Ops
from lazygrad.ir.uop import UOp

F = dtypes.float


def loop(number: int, size: int, kind: AxisType = AxisType.GLOBAL) -> UOp:
    return UOp(Ops.RANGE, dtypes.index, (index.const(size),), RangeArg(number, kind))


def place(number: int, at: UOp) -> UOp:
    buffer = UOp(Ops.DEFINE_GLOBAL, F.ptr(100), (), number)
    return UOp(Ops.INDEX, buffer.dtype, (buffer, at))


def load(number: int, at: UOp) -> UOp:
    return UOp(Ops.LOAD, F, (place(number, at),))


def store(number: int, at: UOp, value: UOp) -> UOp:
    return UOp(Ops.STORE, dtypes.void, (place(number, at), value))


def total(value: UOp, *ranges: UOp, op: Ops = Ops.ADD) -> UOp:
    return UOp(Ops.REDUCE, F, (value, *ranges), op)


def outline(block: Block) -> list:
    """The nest as nested lists: [number of the loop, items...], nodes by their op."""
    items = [
        outline(item) if isinstance(item, Block) else item.op.name
        for item in block.items
        if isinstance(item, Block) or item.op in (Ops.LOAD, Ops.STORE, Ops.REDUCE, Ops.EXP)
    ]
    return [block.range.arg.id if block.range else "body", *items]


I, J = loop(0, 4), loop(1, 5, AxisType.LOOP)
K = loop(2, 6, AxisType.REDUCE)
L = loop(3, 7, AxisType.REDUCE)


def test_ranges_of_a_node():
    element = load(1, I * 6 + K)
    assert ranges_of(element) == {I, K}
    assert ranges_of(total(element, K)) == {I}
    assert ranges_of(I) == {I}
    assert ranges_of(index.const(1)) == set()


def test_a_range_may_depend_on_another():
    inner = UOp(Ops.RANGE, dtypes.index, (I + 1,), RangeArg(5, AxisType.LOOP))
    assert ranges_of(inner) == {I, inner}
    nest = loop_nest(UOp.sink(store(0, I * 4 + inner, load(1, inner))))
    assert outline(nest) == ["body", [0, [5, "LOAD", "STORE"]]]


def test_outputs_nest_by_kind_and_number():
    sink = UOp.sink(store(0, J * 4 + I, load(1, J)))
    assert output_ranges(sink.toposort()) == [I, J]
    assert outline(loop_nest(sink)) == ["body", [0, [1, "LOAD", "STORE"]]]


def test_what_does_not_change_stands_outside():
    value = load(1, I).alu(Ops.EXP) * load(2, I * 5 + J)
    nest = loop_nest(UOp.sink(store(0, I * 5 + J, value)))
    assert outline(nest) == ["body", [0, "LOAD", "EXP", [1, "LOAD", "STORE"]]]


def test_a_reduction_opens_where_its_result_is_needed_first():
    row = total(load(1, I * 6 + K), K)
    nest = loop_nest(UOp.sink(store(0, I * 5 + J, row * load(2, J))))
    assert outline(nest) == ["body", [0, [2, "LOAD"], "REDUCE", [1, "LOAD", "STORE"]]]
    block = next(b for b in nest.walk() if b.range is K)
    assert block.opens == block.closes == [row]


def test_two_reductions_in_one_loop():
    element = load(1, I * 6 + K)
    nest = loop_nest(UOp.sink(store(0, I, total(element, K) + total(element, K, op=Ops.MAX))))
    assert outline(nest) == ["body", [0, [2, "LOAD"], "REDUCE", "REDUCE", "STORE"]]


def test_a_reduction_of_two_ranges():
    value = total(load(1, K * 7 + L), K, L)
    nest = loop_nest(UOp.sink(store(0, index.const(0), value)))
    assert outline(nest) == ["body", [2, [3, "LOAD"]], "REDUCE", "STORE"]
    blocks = {b.range: b for b in nest.walk()}
    assert (blocks[K].opens, blocks[K].closes) == ([value], [])
    assert (blocks[L].opens, blocks[L].closes) == ([], [value])


def test_a_value_without_the_range_is_still_added_up():
    value = total(load(1, I), K)
    nest = loop_nest(UOp.sink(store(0, I, value)))
    assert outline(nest) == ["body", [0, "LOAD", [2], "REDUCE", "STORE"]]


def test_a_reduction_inside_of_a_reduction():
    inner = total(load(1, K * 7 + L), L)
    outer = total(inner.alu(Ops.EXP), K)
    nest = loop_nest(UOp.sink(store(0, index.const(0), outer)))
    assert outline(nest) == ["body", [2, [3, "LOAD"], "REDUCE", "EXP"], "REDUCE", "STORE"]


def test_an_invariant_reduction_stands_before_the_loop_that_uses_it():
    first = total(load(1, K), K, op=Ops.MAX)
    second = total((load(1, L) - first).alu(Ops.EXP), L)
    nest = loop_nest(UOp.sink(store(0, index.const(0), second)))
    assert outline(nest) == ["body", [2, "LOAD"], "REDUCE", [3, "LOAD", "EXP"], "REDUCE", "STORE"]


def test_a_shared_loop_waits_for_what_both_need():
    """The second reduction's operand, a reduction itself, is only met after the first one."""
    needed = total(load(2, L), L)
    first = total(load(1, K), K)
    second = total(load(1, K) * needed, K, op=Ops.MAX)
    nest = loop_nest(UOp.sink(store(0, index.const(0), first + second)))
    assert outline(nest) == ["body", [3, "LOAD"], "REDUCE", [2, "LOAD"], "REDUCE", "REDUCE", "STORE"]


def test_stores_stand_last():
    row = total(load(1, I * 6 + K), K)
    sink = UOp.sink(store(0, I, row), store(2, I * 5 + J, load(1, I * 5 + J)))
    assert outline(loop_nest(sink)) == ["body", [0, [2, "LOAD"], "REDUCE", [1, "LOAD", "STORE"], "STORE"]]


def test_loops_that_wait_for_each_other_are_refused():
    first = total(load(1, K), K)
    second = total(load(1, K) * first, K)
    with pytest.raises(RuntimeError, match="stand before itself"):
        loop_nest(UOp.sink(store(0, index.const(0), second)))


def test_a_range_closed_in_two_places_is_refused():
    first, second = total(load(1, I * 6 + K), K), total(load(1, K), K)
    with pytest.raises(RuntimeError, match="closed in two places"):
        loop_nest(UOp.sink(store(0, I, first + second)))


def test_a_long_chain_needs_no_recursion():
    value = load(1, I)
    for _ in range(20_000):
        value = value.alu(Ops.EXP)
    nest = loop_nest(UOp.sink(store(0, I, value)))
    assert len(nest.items) == 1


# *** STAGE


def stage(number: int, size: int, fill: UOp, at: UOp, *ranges: UOp) -> UOp:
    memory = UOp(Ops.DEFINE_LOCAL, F.ptr(size), (), number)
    filling = UOp(Ops.STORE, dtypes.void, (UOp(Ops.INDEX, memory.dtype, (memory, at)), fill))
    return UOp(Ops.STAGE, memory.dtype, (memory, filling, *ranges))


def staged(kept: UOp, at: UOp) -> UOp:
    return UOp(Ops.LOAD, F, (UOp(Ops.INDEX, kept.dtype, (kept, at)),))


def test_a_stage_stands_where_what_it_keeps_changes():
    fill = loop(7, 6, AxisType.LOOP)
    kept = stage(0, 6, load(1, I * 6 + fill), fill, fill)
    assert ranges_of(kept) == {I}
    value = total(staged(kept, K) * load(2, J * 6 + K), K)
    kernel = UOp.sink(store(0, I * 5 + J, value))
    assert outline(loop_nest(kernel)) == [
        "body",
        [0, [7, "LOAD", "STORE"], [1, [2, "LOAD", "LOAD"], "REDUCE", "STORE"]],
    ]


def test_a_stage_without_loops_is_filled_before_it_is_read():
    kept = stage(0, 1, load(1, I), index.const(0))
    kernel = UOp.sink(store(0, I * 5 + J, staged(kept, index.const(0)).alu(Ops.EXP)))
    assert outline(loop_nest(kernel)) == ["body", [0, "LOAD", "STORE", "LOAD", "EXP", [1, "STORE"]]]


def test_a_stage_may_be_filled_from_another():
    first, second = loop(7, 6, AxisType.LOOP), loop(8, 6, AxisType.LOOP)
    below = stage(0, 6, load(1, first), first, first)
    kept = stage(1, 6, staged(below, second) + load(2, I), second, second)
    kernel = UOp.sink(store(0, I * 5 + J, staged(kept, J)))
    assert outline(loop_nest(kernel)) == [
        "body",
        [7, "LOAD", "STORE"],
        [0, "LOAD", [8, "LOAD", "STORE"], [1, "LOAD", "STORE"]],
    ]


def test_lanes_are_taken_just_before_they_are_stored():
    pair = UOp(Ops.EXP, F.vec(2), (UOp(Ops.LOAD, F.vec(2), (place(1, I),)),))
    lanes = [UOp(Ops.GEP, F, (pair,), (number,)) for number in range(2)]
    stores = [store(0, I * 2 + number, lane) for number, lane in enumerate(lanes)]
    (loop,) = loop_nest(UOp(Ops.SINK, dtypes.void, tuple(stores))).items
    shown = [item.op for item in loop.items if item.op is not Ops.INDEX and item.op in (Ops.GEP, Ops.STORE)]
    assert shown == [Ops.GEP, Ops.STORE] * 2

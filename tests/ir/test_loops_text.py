"""Kernels as loops: the text that errors, debugging and golden files share."""

from __future__ import annotations

import pytest

from lazygrad.config import Context
from lazygrad.dtype import dtypes
from lazygrad.ir import AxisType, Ops, RangeArg, UOp, Variable, loops_text
from lazygrad.ir.index import all_of
from lazygrad.ir.text import styled


def loop(number, size, kind=AxisType.GLOBAL):
    size = UOp.const(dtypes.index, size) if isinstance(size, int) else size
    return UOp(Ops.RANGE, dtypes.index, (size,), RangeArg(number, kind))


def memory(number, dtype=dtypes.float):
    return UOp(Ops.DEFINE_GLOBAL, dtype.ptr(1920), arg=number)


def at(buffer, *place):
    return UOp(Ops.INDEX, buffer.dtype, (buffer, *place))


def load(number, *place, dtype=dtypes.float):
    return UOp(Ops.LOAD, dtype, (at(memory(number, dtype.scalar()), *place),))


def store(number, place, value, valid=None, combine=None):
    where = (place,) if valid is None else (place, valid)
    return UOp(Ops.STORE, src=(at(memory(number, value.dtype.scalar()), *where), value), arg=combine)


def reduce(op, value, *ranges):
    return UOp(Ops.REDUCE, value.dtype, (value, *ranges), op)


G0, G1, ROW = loop(0, 64), loop(1, 30), loop(2, 30, AxisType.REDUCE)


def test_an_elementwise_kernel():
    kernel = UOp.sink(store(0, G0 * 30 + G1, load(1, G0 * 30 + G1) + 1))
    assert loops_text(kernel) == (
        "for gidx0 in 0..64   GLOBAL\n"
        "for gidx1 in 0..30   GLOBAL\n"
        "  data0[gidx0*30+gidx1] = data1[gidx0*30+gidx1] + 1.0"
    )
    assert loops_text(kernel, marks={G1: "axis 1"}) == (
        "  for gidx0 in 0..64   GLOBAL\n"
        "> for gidx1 in 0..30   GLOBAL      <- axis 1\n"
        "    data0[gidx0*30+gidx1] = data1[gidx0*30+gidx1] + 1.0"
    )
    assert styled("loops", kernel) == loops_text(kernel)
    with Context(DEBUG_STYLE=""):
        assert styled("loops", kernel) == loops_text(kernel)


def test_a_normalized_row(golden):
    """Two reductions, a value between the loops, two outputs of different rank."""
    x = load(2, G0 * 30 + ROW)
    other = loop(3, 30, AxisType.REDUCE)
    greatest = reduce(Ops.MAX, x, ROW)
    total = reduce(Ops.ADD, (load(2, G0 * 30 + other) - greatest).alu(Ops.EXP2), other)
    inner = loop(4, 30, AxisType.LOOP)
    shifted = (load(2, G0 * 30 + inner) - greatest).alu(Ops.EXP2)
    kernel = UOp.sink(
        store(0, G0 * 30 + inner, shifted / total), store(1, G0, greatest + total.alu(Ops.LOG2))
    )
    assert golden(loops_text(kernel))


def test_several_loops_of_one_reduction(golden):
    columns = loop(3, 5, AxisType.REDUCE)
    value = load(1, G0 * 150 + ROW * 5 + columns) * load(2, columns)
    assert golden(loops_text(UOp.sink(store(0, G0, reduce(Ops.ADD, value, ROW, columns)))))


def test_validity_is_written_as_bounds():
    inside = all_of([G0 < 40, (G0 * -1) < -3, (G1 < 5).ne(True), G1 < 20])
    kernel = UOp.sink(store(0, G0 * 30 + G1, load(1, G0 + G1, inside) * 2, valid=G0 + G1 < 50))
    assert loops_text(kernel).splitlines()[-1] == (
        "  if gidx0+gidx1 < 50: data0[gidx0*30+gidx1] = "
        "(4 <= gidx0 < 40 and 5 <= gidx1 < 20 ? data1[gidx0+gidx1] : 0) * 2.0"
    )


def test_values_used_twice_have_names():
    x = load(1, G0)
    y = (x * x + 1).sqrt()
    assert loops_text(UOp.sink(store(0, G0, y / (y + x)))).splitlines()[1:] == [
        "  val0 = data1[gidx0]",
        "  alu0 = sqrt(val0 * val0 + 1.0)",
        "  data0[gidx0] = alu0 / (alu0 + val0)",
    ]


def test_values_are_named_outside_the_loops_that_do_not_change_them():
    kernel = UOp.sink(store(0, G0 * 30 + G1, load(1, G0) * 3 - load(2, G1)))
    assert loops_text(kernel).splitlines() == [
        "for gidx0 in 0..64   GLOBAL",
        "  alu0 = data1[gidx0] * 3.0",
        "  for gidx1 in 0..30   GLOBAL",
        "    data0[gidx0*30+gidx1] = alu0 - data2[gidx1]",
    ]


def test_scatter_vectors_and_symbolic_sizes():
    n = Variable("n", 1, 64)
    rows = loop(0, n)
    place = load(1, rows, dtype=dtypes.int).cast(dtypes.index)
    added = store(0, place, load(2, rows), all_of([place < 9, (place * -1) < 1]), Ops.ADD)
    assert loops_text(UOp.sink(added)).splitlines() == [
        "for gidx0 in 0..n   GLOBAL",
        "  if 0 <= index(data1[gidx0]) < 9: data0[index(data1[gidx0])] += data2[gidx0]",
    ]
    four = load(1, G0 * 4, dtype=dtypes.float.vec(4))
    scale = UOp(Ops.VECTORIZE, four.dtype, (load(2, G0),) * 4)
    assert "data0[gidx0*4:+4] = data1[gidx0*4:+4] * vec4(data2[gidx0]) + 0.5" in loops_text(
        UOp.sink(store(0, G0 * 4, four * scale + 0.5))
    )


@pytest.mark.parametrize("op", [Ops.ADD, Ops.MUL, Ops.MAX, Ops.MIN])
def test_every_reduction(op):
    text = loops_text(UOp.sink(store(0, G0, reduce(op, load(1, G0 * 30 + ROW), ROW))))
    first, _, step = text.splitlines()[1:4]
    assert first == f"  acc0 = { {Ops.ADD: 0.0, Ops.MUL: 1.0, Ops.MAX: '-inf', Ops.MIN: 'inf'}[op] }"
    name = {
        Ops.ADD: "acc0 += ",
        Ops.MUL: "acc0 *= ",
        Ops.MAX: "acc0 = max(acc0, ",
        Ops.MIN: "acc0 = min(acc0, ",
    }
    assert step.strip().startswith(name[op])


def test_a_kernel_of_thousands_of_statements():
    value = load(1, G0)
    for n in range(3000):
        value = value * value + n
    assert len(loops_text(UOp.sink(store(0, G0, value))).splitlines()) == 3002

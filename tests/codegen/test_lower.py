"""Kernel ASTs become loops: what is indexed, which loops there are, and what stands outside of them."""

from __future__ import annotations

import textwrap

import pytest

from lazygrad import Context, Tensor
from lazygrad.codegen.expressions.ranges import make_range, substitute_ranges
from lazygrad.codegen.linearizing.linearize import linearize
from lazygrad.codegen.lowering.lower import lower
from lazygrad.codegen.passes import legalize
from lazygrad.dtype import dtypes
from lazygrad.ir import index
from lazygrad.ir.args import AxisType, RangeArg
from lazygrad.ir.loops_text import loops_text
from lazygrad.ir.ops import Ops
from lazygrad.ir.uop import UOp, Variable
from lazygrad.renderer.python import PythonRenderer
from lazygrad.shape import ShapeTracker
from lazygrad.simplify import fold

from .kernels import SEVEN, const, gather, load, move, plain, reduce, scatter, sink, spread, store, view

RENDERER = PythonRenderer()


def loops(*stores: UOp) -> str:
    return loops_text(lower(sink(*stores)))


def lines(text: str) -> str:
    return textwrap.dedent(text).strip("\n")


def name(*stores: UOp) -> str:
    return lower(sink(*stores)).arg.name


def ranges(lowered: UOp) -> list[tuple[int, str, int]]:
    found = [node for node in lowered.toposort() if node.op is Ops.RANGE]
    return sorted((r.arg.id, r.arg.kind.name, r.src[0].arg) for r in found)


def row(number: int, *shape: int) -> UOp:
    return load(number, plain(*shape))


# *** axes


def test_axes_that_memory_walks_as_one_are_joined():
    assert loops(*SEVEN["add"]().src) == lines("""
        for gidx0 in 0..16   GLOBAL
          data0[gidx0] = data1[gidx0] + data2[gidx0]
    """)


def test_a_transposed_operand_keeps_its_axes_apart():
    x = load(1, plain(4, 3).permute((1, 0)))
    assert loops(store(0, x + row(2, 3, 4))) == lines("""
        for gidx0 in 0..3   GLOBAL
        for gidx1 in 0..4   GLOBAL
          data0[gidx0*4+gidx1] = data1[gidx1*3+gidx0] + data2[gidx0*4+gidx1]
    """)


def test_only_the_axes_that_fit_are_joined():
    x = load(1, plain(2, 1, 4).expand((2, 3, 4)))
    assert name(store(0, x)) == "E_2_3_4"
    x = load(1, plain(1, 3, 4).expand((2, 3, 4)))
    assert name(store(0, x)) == "E_2_12"
    x = load(1, plain(2, 3, 1).expand((2, 3, 4)))
    assert name(store(0, x)) == "E_6_4"


def test_reduce_axes_are_joined_too():
    assert loops(store(0, reduce(row(1, 3, 2, 2, 2), Ops.ADD, 1, 2, 3))) == lines("""
        for gidx0 in 0..3   GLOBAL
          acc0 = 0.0
          for ridx0 in 0..8   REDUCE
            acc0 += data1[gidx0*8+ridx0]
          data0[gidx0] = acc0
    """)


def test_a_padded_outer_axis_does_not_stop_joining():
    x = load(1, plain(3, 4).pad(((1, 1), (0, 0))))
    assert loops(store(0, x)) == lines("""
        for gidx0 in 0..20   GLOBAL
          data0[gidx0] = (4 <= gidx0 < 16 ? data1[gidx0-4] : 0)
    """)


def test_an_axis_that_is_divided_stays_joined():
    x = load(1, plain(2, 6).permute((1, 0)).reshape((3, 4)))  # two views
    assert loops(store(0, x)) == lines("""
        for gidx0 in 0..12   GLOBAL
          data0[gidx0] = data1[gidx0%2*6+gidx0//2]
    """)


def test_a_reduction_that_is_divided_is_split_there():
    scales = load(1, plain(3).reshape((3, 1)).expand((3, 4)).reshape((12,)))
    assert loops(store(0, reduce(row(2, 12) * scales, Ops.ADD, 0))) == lines("""
        acc0 = 0.0
        for ridx0 in 0..3   REDUCE
          val0 = data1[ridx0]
          for ridx1 in 0..4   REDUCE
            acc0 += data2[ridx0*4+ridx1] * val0
        data0[0] = acc0
    """)


def test_halves_of_bytes_are_walked_half_by_half():
    """Blocks of 8 numbers in 4 bytes, the first half of them in the low bits."""
    halves = load(1, plain(3, 4).reshape((3, 1, 4)).expand((3, 2, 4)).reshape((24,)))
    scales = load(2, plain(3).reshape((3, 1)).expand((3, 8)).reshape((24,)))
    shown = loops(store(0, reduce(halves * scales, Ops.ADD, 0)))
    assert "data1[ridx0*4+ridx2]" in shown
    assert "data2[ridx0]" in shown
    assert "%" not in shown
    assert "//" not in shown


def test_axes_of_size_one_are_no_loops():
    assert loops(store(0, row(1, 1, 1))) == "data0[0] = data1[0]"
    assert name(store(0, row(1, 1, 1))) == "E_1"


def test_a_reduction_over_nothing_is_the_value():
    assert loops(store(0, reduce(row(1, 3, 1), Ops.MAX, 1))) == lines("""
        for gidx0 in 0..3   GLOBAL
          data0[gidx0] = data1[gidx0]
    """)
    assert name(store(0, reduce(row(1, 3, 1), Ops.MAX, 1))) == "r_3"


def test_a_reduction_over_an_empty_axis_is_the_identity():
    nothing = load(1, plain(2, 0), size=1)
    assert loops(store(0, reduce(nothing, Ops.ADD, 1))) == lines("""
        for gidx0 in 0..2   GLOBAL
          data0[gidx0] = 0.0
    """)


def test_an_empty_store_is_left_out():
    assert lower(sink(store(0, load(1, plain(0, 3), size=1)))).src == ()


def test_numbers_of_ranges_are_outputs_then_reductions():
    lowered = lower(SEVEN["softmax"]())
    assert ranges(lowered) == [(0, "GLOBAL", 4), (1, "LOOP", 5), (2, "REDUCE", 5), (3, "REDUCE", 5)]


def test_names_say_symbolic_sizes():
    n = Variable("n", 1, 10)
    assert name(store(0, load(1, plain(3, n), size=30))) == "E_3_n"
    assert lower(SEVEN["symbolic_sum"]()).arg.name == "r_2_n"


# *** several stores


def test_a_statistic_is_stored_outside_of_the_loop_over_its_row():
    assert loops(*SEVEN["value_and_statistic"]().src) == lines("""
        for gidx0 in 0..3   GLOBAL
          acc0 = 0.0
          for ridx0 in 0..4   REDUCE
            acc0 += data2[gidx0*4+ridx0]
          alu0 = acc0 * 0.25
          for gidx1 in 0..4   LOOP
            data0[gidx0*4+gidx1] = data2[gidx0*4+gidx1] - alu0
          data1[gidx0] = alu0
    """)


def test_a_store_that_lacks_a_parallel_axis_is_guarded():
    text = loops(store(0, row(2, 3, 4)), store(1, row(3, 3, 1)))
    assert text == lines("""
        for gidx0 in 0..3   GLOBAL
          val0 = data3[gidx0]
          for gidx1 in 0..4   GLOBAL
            data0[gidx0*4+gidx1] = data2[gidx0*4+gidx1]
            if gidx1 == 0: data1[gidx0] = val0
    """)


def test_a_store_inside_of_a_loop_that_it_lacks_is_guarded():
    x = row(2, 3, 4)
    column = spread(reduce(x, Ops.ADD, 0), 3, 4)
    total = spread(reduce(x, Ops.ADD, 0, 1), 3, 4)
    other = spread(reduce(x, Ops.MAX, 0, 1), 1, 4)
    text = loops(store(0, column * total), store(1, other))
    assert "if gidx0 == 0: data1[gidx1] =" in text


def test_the_scalar_of_two_parallel_axes():
    text = loops(store(0, load(2, plain(3, 4).permute((1, 0)))), store(1, row(3, 1, 1)))
    assert "if gidx1 == 0 and gidx0 == 0: data1[0] = val0" in text


def test_ranks_must_agree():
    with pytest.raises(ValueError, match=r"one rank, not \(3,\), \(1, 1\)"):
        lower(sink(store(0, row(2, 3)), store(1, row(3, 1, 1))))
    with pytest.raises(ValueError, match=r"one size or 1, not \(3,\), \(2,\)"):
        lower(sink(store(0, row(2, 3)), store(1, row(3, 2))))


# *** reductions


def test_softmax_is_one_kernel_with_each_reduction_once():
    assert loops(*SEVEN["softmax"]().src) == lines("""
        for gidx0 in 0..4   GLOBAL
          acc0 = -inf
          for ridx0 in 0..5   REDUCE
            acc0 = max(acc0, data1[gidx0*5+ridx0])
          acc1 = 0.0
          for ridx1 in 0..5   REDUCE
            acc1 += exp(data1[gidx0*5+ridx1] - acc0)
          for gidx1 in 0..5   LOOP
            data0[gidx0*5+gidx1] = exp(data1[gidx0*5+gidx1] - acc0) / acc1
    """)


def test_along_the_first_axis_the_parallel_loop_is_outside():
    x = row(1, 4, 5)
    assert loops(store(0, x - spread(reduce(x, Ops.MAX, 0), 4, 5))) == lines("""
        for gidx0 in 0..5   GLOBAL
          acc0 = -inf
          for ridx0 in 0..4   REDUCE
            acc0 = max(acc0, data1[ridx0*5+gidx0])
          for gidx1 in 0..4   LOOP
            data0[gidx1*5+gidx0] = data1[gidx1*5+gidx0] - acc0
    """)


def test_reductions_that_need_not_wait_share_a_loop():
    x = row(1, 3, 4)
    total, squares = reduce(x, Ops.ADD, 1), reduce(x * x, Ops.ADD, 1)
    assert loops(store(0, squares - total * total)) == lines("""
        for gidx0 in 0..3   GLOBAL
          acc0 = 0.0
          acc1 = 0.0
          for ridx0 in 0..4   REDUCE
            val0 = data1[gidx0*4+ridx0]
            acc0 += val0 * val0
            acc1 += val0
          data0[gidx0] = acc0 - acc1 * acc1
    """)


def test_loops_inside_of_shared_loops_are_shared():
    x, y = row(1, 3, 4, 5), row(2, 3, 4, 5)
    a = reduce(reduce(x, Ops.ADD, 2).alu(Ops.EXP), Ops.ADD, 1)
    b = reduce(reduce(y, Ops.ADD, 2).alu(Ops.EXP), Ops.ADD, 1)
    assert loops(store(0, a + b)) == lines("""
        for gidx0 in 0..3   GLOBAL
          acc0 = 0.0
          acc1 = 0.0
          for ridx0 in 0..4   REDUCE
            acc2 = 0.0
            acc3 = 0.0
            for ridx1 in 0..5   REDUCE
              acc2 += data1[gidx0*20+ridx0*5+ridx1]
              acc3 += data2[gidx0*20+ridx0*5+ridx1]
            acc0 += exp(acc2)
            acc1 += exp(acc3)
          data0[gidx0] = acc0 + acc1
    """)


def test_a_reduction_that_needs_another_waits():
    x = row(1, 4)
    centred = x - spread(reduce(x, Ops.ADD, 0), 4)
    text = loops(store(0, reduce(centred * centred, Ops.ADD, 0)))
    assert text.count("REDUCE") == 2


def test_no_circle_of_shared_loops():
    """a needs b and c needs d: sharing a with d, and b with c, would make each loop wait for the other."""
    x, y = row(1, 4), row(2, 4)
    b = reduce(x, Ops.ADD, 0)
    a = reduce(x * spread(b, 4), Ops.MAX, 0)
    d = reduce(y, Ops.ADD, 0)
    c = reduce(y * spread(d, 4), Ops.MAX, 0)
    text = loops(store(0, a + c))
    assert text.count("for") == 2


def test_every_axis_of_a_scalar_reduction_is_a_loop():
    x = row(1, 3, 4)
    lowered = lower(sink(store(0, x / spread(reduce(x, Ops.ADD, 0, 1), 3, 4))))
    assert ranges(lowered) == [(0, "LOOP", 12), (1, "REDUCE", 12)]


# *** views and validity


def test_a_mask_is_the_validity_of_its_load():
    assert loops(store(0, load(1, plain(3).pad(((1, 2),))))) == lines("""
        for gidx0 in 0..6   GLOBAL
          data0[gidx0] = (1 <= gidx0 < 4 ? data1[gidx0-1] : 0)
    """)


def test_memory_is_not_read_where_a_computed_value_is_masked():
    """exp(0) is 1, so the value is chosen too; and data1[-1] must not be read."""
    x = row(1, 3).alu(Ops.EXP)
    assert loops(store(0, move(x, plain(3).pad(((1, 0),))))) == lines("""
        for gidx0 in 0..4   GLOBAL
          data0[gidx0] = 1 <= gidx0 ? exp((1 <= gidx0 ? data1[gidx0-1] : 0)) : 0.0
    """)


def test_what_is_inside_anyway_is_read_without_a_condition():
    tracker = plain(1).expand((4,)).pad(((1, 0),))
    assert loops(store(0, move(row(1, 1).alu(Ops.EXP), tracker))) == lines("""
        alu0 = exp(data1[0])
        for gidx0 in 0..5   GLOBAL
          data0[gidx0] = 1 <= gidx0 ? alu0 : 0.0
    """)


def test_indices_simplify_under_their_mask():
    """Of (r-1)//4 and (r-1)%4 nothing is left where 1 <= r < 5."""
    x = reduce(row(1, 3, 4, 2), Ops.ADD, 2)
    text = loops(store(0, move(x, plain(3, 4, 1).pad(((0, 0), (1, 1), (0, 0))))))
    assert "%" not in text
    assert "//" not in text


def test_indices_simplify_under_the_limit_of_a_sum():
    """Rows of 8 in rows of 11, cut into rows of 10: below 33 the number of an element needs no wrapping."""
    wide = plain(3, 8).pad(((0, 0), (0, 3))).reshape((33,)).pad(((0, 7),)).reshape((4, 10))
    text = loops_text(lower(sink(store(0, reduce(load(1, wide.permute((1, 0)), size=24), Ops.ADD, 1)))))
    assert "(0 <= gidx0+ridx0*-1 < 8 and ridx0 < 3 ? data1[ridx0*7+gidx0] : 0)" in text


def test_fully_masked_values_are_zero():
    tracker = plain(3).pad(((3, 0),)).shrink(((0, 3),))
    assert loops(store(0, load(1, tracker, size=3))) == lines("""
        for gidx0 in 0..3   GLOBAL
          data0[gidx0] = 0.0
    """)
    assert "= 0.0" in loops(store(0, move(row(1, 3), tracker)))


def test_iota_is_the_index():
    number = UOp(Ops.IOTA, dtypes.int, (view(plain(4).flip((0,)).pad(((1, 0),))),))
    assert loops(store(0, number)) == lines("""
        for gidx0 in 0..5   GLOBAL
          data0[gidx0] = 1 <= gidx0 ? int(gidx0*-1+4) : 0
    """)


def test_a_variable_is_a_value():
    n = UOp(Ops.CAST, dtypes.int, (Variable("n", 1, 10),))
    assert loops(store(0, move(n, ShapeTracker.from_shape(()).reshape((1,))))) == "data0[0] = int(n)"


def test_a_broadcast_value_is_computed_once():
    x = row(1, 3, 1).alu(Ops.SIN)
    assert loops(store(0, spread(x, 3, 4) * row(2, 3, 4))) == lines("""
        for gidx0 in 0..3   GLOBAL
          alu0 = sin(data1[gidx0])
          for gidx1 in 0..4   GLOBAL
            data0[gidx0*4+gidx1] = alu0 * data2[gidx0*4+gidx1]
    """)


# *** computed places


@pytest.mark.choice
def test_rows_at_computed_places_are_read_in_order():
    table, rows = Tensor.empty(50, 8), Tensor.empty(3, dtype=dtypes.int32)
    with Context(CHECK_INDEX=0):
        (kernel,) = table[rows].schedule()
    inside, place = "0 <= alu0 and alu0 < 50", "index(0 <= alu0 & alu0 < 50 ? alu0 : 0)*8+gidx1"
    assert loops_text(lower(kernel.ast)) == lines(f"""
        for gidx0 in 0..3   GLOBAL
          val0 = data1[gidx0]
          alu0 = val0 < 0 ? val0 + 50 : val0
          for gidx1 in 0..8   GLOBAL
            data0[gidx0*8+gidx1] = ({inside} ? data2[{place}] : 0)
    """)


@pytest.mark.choice
def test_a_checked_place_is_read_without_a_condition():
    table, rows = Tensor.empty(50, 8), Tensor.empty(3, dtype=dtypes.int32)
    (kernel,) = table[rows].schedule()
    text = loops_text(lower(kernel.ast))
    assert "check(" in text
    assert ": 0)\n" not in text


def test_sums_that_may_wrap_around_stay_computed():
    index_of = load(2, plain(5), dtypes.int32)
    assert "index(data2[gidx0] + 7)" in loops(store(0, gather(1, 6, index_of + const(7, index_of))))


def test_a_gather_checks_its_index():
    where = load(2, plain(6), dtypes.int)
    assert loops(store(0, gather(1, 5, where))) == lines("""
        for gidx0 in 0..6   GLOBAL
          data0[gidx0] = (0 <= index(data2[gidx0]) < 5 ? data1[index(data2[gidx0])] : 0)
    """)


def test_an_index_that_can_not_be_outside_is_not_checked():
    where = load(2, plain(6), dtypes.uint8)
    assert "?" not in loops(store(0, gather(1, 256, where)))
    number = UOp(Ops.IOTA, dtypes.int, (view(plain(6).flip((0,))),))
    assert loops(store(0, gather(1, 6, number))) == lines("""
        for gidx0 in 0..6   GLOBAL
          data0[gidx0] = data1[gidx0*-1+5]
    """)


def test_a_scatter_runs_in_order():
    where = load(2, plain(6), dtypes.int)
    assert loops(scatter(0, 4, row(1, 6), where)) == lines("""
        for gidx0 in 0..6   LOOP
          if 0 <= index(data2[gidx0]) < 4: data0[index(data2[gidx0])] = data1[gidx0]
    """)


def test_a_combining_scatter_loads_what_is_there():
    where = load(2, plain(6), dtypes.uint8)
    assert loops(scatter(0, 256, row(1, 6), where, Ops.ADD)) == lines("""
        for gidx0 in 0..6   LOOP
          data0[index(data2[gidx0])] = data0[index(data2[gidx0])] + data1[gidx0]
    """)


def test_values_for_one_place_are_combined_before_they_are_stored():
    where = load(2, plain(6, 1).expand((6, 3)), dtypes.uint8)
    assert loops(scatter(0, 256, row(1, 6, 3), where, Ops.ADD)) == lines("""
        for gidx0 in 0..6   LOOP
          acc0 = 0.0
          for ridx0 in 0..3   REDUCE
            acc0 += data1[gidx0*3+ridx0]
          data0[index(data2[gidx0])] = data0[index(data2[gidx0])] + acc0
    """)


def test_of_values_for_one_place_the_last_stays():
    where = load(2, plain(6, 1).expand((6, 3)), dtypes.uint8)
    assert loops(scatter(0, 256, row(1, 6, 3), where)) == lines("""
        for gidx0 in 0..6   LOOP
          data0[index(data2[gidx0])] = data1[gidx0*3+2]
    """)


def test_what_is_there_is_loaded_in_each_turn_whatever_the_place_becomes():
    """A place of which a shorter loop leaves one number: what earlier turns have stored is added to."""
    counter = UOp(Ops.IOTA, dtypes.int, (view(plain(8)),))
    where = UOp(Ops.IDIV, dtypes.int, (counter, const(4, counter)))
    lowered = lower(sink(scatter(0, 2, const(1.0, row(1, 8)), where, Ops.ADD)))
    (loop,) = [node for node in lowered.toposort() if node.op is Ops.RANGE]
    shorter = fold(substitute_ranges(lowered, {loop: make_range(4, loop.arg.id, loop.arg.kind)}))
    assert "[0] = data0[0] + 1.0" in loops_text(shorter)
    program = [node.op for node in linearize(legalize(shorter, RENDERER))]
    assert program.index(Ops.RANGE) < program.index(Ops.LOAD)


# *** rows that are kept


def kept(value, axis):
    return UOp(Ops.STAGE, value.dtype, (value,), axis)


def test_a_row_that_is_kept_is_filled_once():
    x = kept(load(1, plain(2, 3)).alu(Ops.SIN), 1)
    total = spread(reduce(x, Ops.ADD, 1), 2, 3)
    assert loops(store(0, x + total)) == lines("""
        for gidx0 in 0..2   GLOBAL
          for gidx1 in 0..3   LOOP
            temp0[gidx1] = sin(data1[gidx0*3+gidx1])
          acc0 = 0.0
          for ridx0 in 0..3   REDUCE
            acc0 += temp0[ridx0]
          for gidx2 in 0..3   LOOP
            data0[gidx0*3+gidx2] = temp0[gidx2] + acc0
    """)


def test_who_does_not_walk_the_row_computes_the_value():
    x = kept(load(1, plain(3, 2)).alu(Ops.SIN), 0)
    first = UOp(Ops.VIEW, x.dtype, (x,), plain(3, 2).shrink(((0, 1), (0, 2))))
    assert loops(store(0, first)) == lines("""
        for gidx0 in 0..2   GLOBAL
          data0[gidx0] = sin(data1[gidx0])
    """)


# *** what can not be


def test_unknown_ops_are_named():
    copied = UOp(Ops.CONTIGUOUS, dtypes.float, (row(1, 3),))
    with pytest.raises(NotImplementedError, match=r"Ops\.CONTIGUOUS can not be lowered"):
        lower(sink(store(0, copied)))
    with pytest.raises(TypeError, match="a kernel must be a SINK of STOREs"):
        lower(row(1, 3))


def test_a_long_chain_needs_no_recursion():
    x = row(1, 4)
    for _ in range(20_000):
        x = x + row(1, 4)
    lowered = lower(sink(store(0, x)))
    assert sum(node.op is Ops.ADD for node in lowered.toposort()) == 20_000


def test_conditions_on_quotients_are_conditions_on_numbers():
    r = UOp(Ops.RANGE, dtypes.index, (index.const(24),), RangeArg(0, AxisType.LOOP))
    for divisor in (2, 5):
        for limit in range(-2, 14):
            for offset in (-7, 0, 3):
                quotient = (r + offset) // divisor
                for condition in (quotient < limit, -quotient < limit):
                    assert not any(node.op is Ops.IDIV for node in condition.toposort())
                    for i in range(24):
                        value = (i + offset) // divisor
                        expected = (value if condition is (quotient < limit) else -value) < limit
                        assert index.evaluate(condition, {r: i}) == expected


def test_constants_have_no_loops_of_their_own():
    x = row(1, 3, 4)
    assert loops(store(0, x + const(1.0, x))) == lines("""
        for gidx0 in 0..12   GLOBAL
          data0[gidx0] = data1[gidx0] + 1.0
    """)

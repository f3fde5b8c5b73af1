"""Vector code: its form, and that kernels mean the same with any legal Opts, wherever they run."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from lazygrad import Tensor
from lazygrad.codegen.lowering.lower import lower
from lazygrad.codegen.opt import Loops, Opt, OptOps, apply_opts
from lazygrad.codegen.vectorizing.vectorize import vectorize
from lazygrad.config import Context
from lazygrad.dtype import dtypes
from lazygrad.ir import index
from lazygrad.ir.args import AxisType
from lazygrad.ir.loops_text import loops_text
from lazygrad.ir.nest import ranges_of
from lazygrad.ir.ops import Ops
from lazygrad.ir.uop import UOp, Variable
from lazygrad.ir.walks import of_op
from lazygrad.oracle.evaluate import evaluate
from lazygrad.target import Target
from tests.helpers import needs

from .kernels import (
    SEVEN,
    VARIABLES,
    const,
    equal,
    gather,
    load,
    plain,
    random_contents,
    reduce,
    run,
    sink,
    spread,
    store,
    view,
)
from .test_opt import (
    CPU,
    SMALL_CPU,
    add,
    column_sum,
    convolution,
    matmul,
    row_sum,
    softmax_rows,
    transposed,
)

DEVICES = [
    "PYTHON",
    "CPU",
    pytest.param("AARCH64", marks=needs("aarch64")),
    pytest.param("CLANG", marks=needs("clang")),
]


def upcast(axis, amount):
    return Opt(OptOps.UPCAST, axis, amount)


def unroll(axis, amount):
    return Opt(OptOps.UNROLL, axis, amount)


def padto(axis, amount):
    return Opt(OptOps.PADTO, axis, amount)


# *** more kernels


def flipped(n):
    return sink(store(0, load(1, plain(n).flip((0,))) + load(2, plain(n))))


def bordered(rows, columns):
    """A border of zeros around a matrix."""
    return sink(store(0, load(1, plain(rows, columns).pad(((1, 1), (2, 1))), size=rows * columns)))


def turned_with_a_border(rows, columns, backwards=False):
    """With columns of zeros around it, transposed, and computed with: lanes along rows share a condition."""
    turned = plain(rows, columns).pad(((0, 0), (1, 2))).permute((1, 0))
    turned = turned.flip((1,)) if backwards else turned
    x, y = load(1, turned, size=rows * columns), load(2, plain(columns + 3, rows))
    return sink(store(0, x * y + y * y))


def counted(n):
    """Its index, and a choice by index."""
    number = UOp(Ops.IOTA, dtypes.int, (view(plain(n)),))
    return sink(store(0, (number < const(5, number)).where(number, number * number)))


def chosen(rows, n):
    """Rows of a table, at loaded indices."""
    where = load(2, plain(rows, 1).expand((rows, n)), dtypes.int, size=rows)
    column = UOp(Ops.IOTA, dtypes.int, (view(plain(1, n).expand((rows, n))),))
    return sink(store(0, gather(1, 8 * n, where * const(n, where) + column)))


def statistic(rows, columns):
    """A row less its mean, and the mean: stores of two ranks."""
    x = load(2, plain(rows, columns))
    total = reduce(x, Ops.ADD, 1)
    mean = total * const(0.5, total)
    return sink(store(0, x - spread(mean, rows, columns)), store(1, mean))


def constant_sum(n):
    """A reduction of what does not change along it."""
    x = load(1, plain(4, 1).expand((4, n)), size=4)
    return sink(store(0, reduce(x, Ops.ADD, 1)))


def repeated_column(rows, columns):
    """Each row's one element, in all columns that a border leaves."""
    narrow = plain(rows, 1).expand((rows, columns)).pad(((0, 0), (1, 2)))
    return sink(store(0, load(1, narrow, size=rows)))


def product_by_columns(m, k, n):
    """A product whose first factor and result lie across each other: lanes along rows, stored by columns."""
    a = load(1, plain(k, m).permute((1, 0)).reshape((m, 1, k)).expand((m, n, k)), size=k * m)
    b = load(2, plain(n, k).reshape((1, n, k)).expand((m, n, k)), size=n * k)
    return sink(store(0, reduce(a * b, Ops.ADD, 2)))


CASES = {
    "add": (add(64), [upcast(0, 32)]),
    "add, the whole axis": (add(64), [upcast(0, 0)]),
    "add with a tail": (add(70), [padto(0, 16), upcast(0, 16)]),
    "add, all in the tail": (add(5), [padto(0, 8), upcast(0, 8)]),
    "row sums": (row_sum(4, 64), [unroll(0, 32)]),
    "row sums, two rows at once": (row_sum(4, 64), [unroll(0, 32), upcast(0, 2)]),
    "row sums with a tail": (row_sum(4, 70), [padto(1, 16), unroll(0, 16)]),
    "row maxima with a tail": (row_sum(3, 30, Ops.MAX), [padto(1, 8), unroll(0, 8)]),
    "row products": (row_sum(3, 16, Ops.MUL), [unroll(0, 0)]),
    "column sums": (column_sum(6, 64), [upcast(0, 32)]),
    "a tile": (matmul(8, 16, 32), [upcast(0, 4), upcast(1, 16), unroll(0, 2)]),
    "a tile with tails": (
        matmul(7, 9, 21),
        [padto(0, 4), padto(1, 16), padto(2, 4)] + [upcast(0, 4), upcast(1, 16)],
    ),
    "a tile stored by its columns": (product_by_columns(16, 5, 24), [upcast(0, 8), upcast(1, 12)]),
    "a tile stored by its columns, with a tail": (
        product_by_columns(8, 5, 21),
        [padto(1, 8), upcast(0, 8), upcast(1, 8)],
    ),
    "softmax": (softmax_rows(4, 32), [upcast(1, 16), upcast(0, 2)]),
    "softmax with a tail": (softmax_rows(4, 30), [padto(1, 8), unroll(0, 8)]),
    "softmax, exponentials kept": (softmax_rows(4, 32, keep=True), [upcast(1, 8)]),
    "softmax, exponentials kept, with a tail": (
        softmax_rows(4, 30, keep=True),
        [padto(1, 8), upcast(1, 8)],
    ),
    "softmax, exponentials kept, padded after a split": (
        softmax_rows(4, 24, keep=True),
        [upcast(1, 8), padto(1, 4)],
    ),
    "reversed": (flipped(32), [upcast(0, 16)]),
    "transposed": (transposed(8, 16), [upcast(1, 8), upcast(0, 2)]),
    "transposed in squares": (transposed(16, 24), [upcast(1, 8), upcast(0, 8)]),
    "transposed in squares with tails": (
        transposed(13, 21),
        [padto(0, 8), padto(1, 8), upcast(1, 8), upcast(0, 8)],
    ),
    "with a border": (bordered(6, 13), [upcast(1, 8)]),
    "transposed with a border": (turned_with_a_border(16, 5), [upcast(1, 8)]),
    "transposed with a border, reversed": (turned_with_a_border(16, 5, True), [upcast(1, 8), upcast(0, 2)]),
    "counted": (counted(32), [upcast(0, 16)]),
    "gathered": (chosen(4, 16), [upcast(1, 8)]),
    "gathered, a row per lane": (chosen(4, 16), [upcast(0, 4)]),
    "two ranks": (statistic(4, 16), [upcast(1, 8), upcast(0, 2)]),
    "what does not change": (constant_sum(16), [unroll(0, 8)]),
    "repeated": (repeated_column(3, 13), [upcast(1, 8)]),
    "convolution": (convolution(2, 3, 10, 4), [upcast(1, 4), upcast(3, 8), unroll(1, 0), unroll(2, 0)]),
}

# *** the form


@pytest.mark.parametrize(
    "name", ["add with a tail", "row sums", "a tile", "softmax", "with a border", "gathered"]
)
def test_vector_code(name, golden):
    ast, opts = CASES[name]
    made = vectorize(apply_opts(lower(ast), opts, SMALL_CPU), SMALL_CPU)
    assert golden(loops_text(made))


@pytest.mark.parametrize(
    "target", [CPU, SMALL_CPU, Target("GPU", grid=True, load_bytes=16), Target("SCALAR")]
)
@pytest.mark.parametrize("name", CASES)
def test_no_range_of_lanes_is_left(name, target):
    ast, opts = CASES[name]
    opts = [each for each in opts if each.op is not OptOps.STAGE or not target.grid]
    made = vectorize(apply_opts(lower(ast), opts, target), target)
    widest = max(target.vector_bytes, target.load_bytes)
    for node in made.toposort():
        assert node.op is not Ops.RANGE or node.arg.kind not in (AxisType.UPCAST, AxisType.UNROLL)
        if node.dtype.count > 1 and node.dtype.scalar_type not in (dtypes.index, dtypes.bool):
            assert node.dtype.itemsize <= widest


def test_contiguous_rows_are_summed_in_vectors():
    made = vectorize(apply_opts(lower(row_sum(4, 256)), [unroll(0, 64)], CPU), CPU)
    reduces = [node for node in made.toposort() if node.op is Ops.REDUCE]
    assert [node.dtype for node in reduces] == [dtypes.float.vec(16)] * 4


def test_loops_over_a_row_are_lanes_together_rather_than_the_rows():
    """Each of three loops saves less than lanes across all of them; together they save more."""
    made = vectorize(apply_opts(lower(softmax_rows(8, 64)), [upcast(0, 8), upcast(1, 16)], CPU), CPU)
    assert {node.dtype.count for node in made.toposort() if node.op is Ops.LOAD} == {16}


def test_a_tile_loads_each_value_once():
    made = vectorize(apply_opts(lower(matmul(64, 64, 64)), [upcast(0, 8), upcast(1, 32)], CPU), CPU)
    loads = [node for node in made.toposort() if node.op is Ops.LOAD]
    assert sorted(node.dtype.count for node in loads) == [1] * 8 + [16] * 2


def test_a_square_is_transposed_between_registers():
    made = vectorize(apply_opts(lower(transposed(32, 32)), [upcast(0, 16), upcast(1, 16)], CPU), CPU)
    loads = [node for node in made.toposort() if node.op is Ops.LOAD]
    exchanges = [node for node in made.toposort() if node.op is Ops.WHERE]
    assert [node.dtype.count for node in loads] == [16] * 16
    assert len(exchanges) == 16 * 4


def test_a_tile_is_stored_by_its_columns():
    """12 vectors of 8 lanes: 3 by 2 squares of 4, whose columns are neighbours in memory."""
    ast, opts = CASES["a tile stored by its columns"]
    made = vectorize(apply_opts(lower(ast), opts, CPU), CPU)
    stores = [node for node in made.toposort() if node.op is Ops.STORE]
    assert [node.src[1].dtype.count for node in stores] == [4] * 24


def test_lanes_that_share_a_condition_are_left_out_together():
    made = vectorize(apply_opts(lower(turned_with_a_border(16, 5)), [upcast(1, 8)], CPU), CPU)
    loads = [node for node in made.toposort() if node.op is Ops.LOAD]
    choices = [node.dtype for node in made.toposort() if node.op is Ops.WHERE]
    assert sorted(node.dtype.count for node in loads) == [1] * 8 + [8]
    assert all(len(node.src[0].src) == 2 for node in loads)
    assert sorted(dtype.count for dtype in choices) == [1, 8]  # where they begin, and what they are


def test_only_the_tail_is_masked():
    made = vectorize(apply_opts(lower(add(1000)), [padto(0, 16), upcast(0, 16)], CPU), CPU)
    masked = [node for node in made.toposort() if node.op is Ops.INDEX and len(node.src) > 2]
    plain_ones = [node for node in made.toposort() if node.op is Ops.INDEX and len(node.src) == 2]
    assert len(masked) == len(plain_ones) == 3
    assert all(node.src[2].op is Ops.CONST for node in masked)


# *** the meaning


def agrees(ast, device, opts, seed=0, variables=None, tolerance=0.0):
    contents = random_contents(ast, seed)
    with Context(CHECK=1):
        found = run(ast, device, contents, variables, opts)
    expected = evaluate(ast, contents, variables)
    return all(equal(a, b, tolerance) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CASES)
def test_cases_agree_with_the_evaluator(name, device):
    ast, opts = CASES[name]
    assert agrees(ast, device, opts, tolerance=2e-6 if "softmax" in name else 0.0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", SEVEN)
def test_the_seven_agree_as_the_heuristic_makes_them(name, device):
    assert agrees(SEVEN[name](), device, None, 0, VARIABLES.get(name), 1e-6 if name == "softmax" else 0.0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "dtype", [dtypes.bool, dtypes.uchar, dtypes.short, dtypes.long, dtypes.half, dtypes.double]
)
def test_other_dtypes(dtype, device):
    x, y = load(1, plain(3, 40), dtype), load(2, plain(3, 40), dtype)
    kernel = sink(store(0, x * y), store(3, reduce(x, Ops.MAX, 1)))
    opts = [upcast(1, 8)] if len(Loops.of(lower(kernel)).axes) > 1 else None
    assert agrees(kernel, device, opts)
    assert agrees(kernel, device, None)


def test_symbolic_rows():
    n = Variable("n", 1, 40)
    kernel = sink(store(0, load(1, plain(n), size=40) * load(2, plain(n), size=40)))
    for value in (1, 7, 16, 40):
        assert agrees(kernel, "PYTHON", [padto(0, 4), upcast(0, 4)], 0, {"n": value})
        assert agrees(kernel, "CPU", None, 0, {"n": value})


@pytest.mark.parametrize("is_window", [True, False])
def test_a_window_that_wraps_around_is_no_gather(is_window):
    """Its lanes lie beside two places: as vectors they take half as long as an instruction for each lane."""
    target = replace(CPU, vector_bytes=64, has_masks=True, has_gathers=True)
    x = Tensor.arange(64).float().contiguous()
    y = x.roll(1) if is_window else x[Tensor.arange(64).contiguous()]
    ast = (x * x + y * 3 + x.sqrt()).schedule()[-1].ast
    kernel = vectorize(apply_opts(lower(ast), [upcast(0, 16)], target), target)
    wide = [node for node in of_op(kernel.toposort(), Ops.INDEX) if node.src[1].dtype.count > 1]
    assert bool(wide) is not is_window


@pytest.mark.parametrize("axis", [0, 1])
def test_a_masked_load_of_no_lane_stays_beside_its_buffer(axis):
    """The second of joined parts begins as far before its memory as the first is long."""
    target = replace(CPU, vector_bytes=32, has_masks=True)
    a, b = (Tensor.ones(9, 39 if axis else 38).contiguous().realize() for _ in range(2))
    ast = (a.cat(b, dim=axis).pad((1, 1, 1, 1)) + 1).schedule()[-1].ast
    kernel = vectorize(apply_opts(lower(ast), [upcast(1, 8)], target), target)
    masked = [node.src[0] for node in of_op(kernel.toposort(), Ops.LOAD) if len(node.src[0].src) > 2]
    masked = [place for place in masked if place.src[2].dtype.count > 1]
    assert masked
    for memory, position, _ in (place.src for place in masked):
        ranges = sorted(ranges_of(position), key=lambda r: r.arg.id)
        for turns in itertools.product(*(range(r.src[0].arg) for r in ranges)):
            first = index.evaluate(position, dict(zip(ranges, turns, strict=True)))
            assert -8 < first < memory.dtype.size

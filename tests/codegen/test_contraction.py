"""Contractions: which are packed in panels; their results are right whatever the sizes and strides."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest

from lazygrad import Tensor
from lazygrad.codegen.lowering.lower import lower
from lazygrad.codegen.opt import Loops, Opt, OptOps, apply_opts, choose, facts
from lazygrad.codegen.opt.cpu import contraction, tiles
from lazygrad.codegen.opt.cpu.contraction import candidates, packed_tiles
from lazygrad.codegen.opt.facts import Facts
from lazygrad.config import Context
from lazygrad.dtype import dtypes
from lazygrad.ir.loops_text import loops_text
from lazygrad.ir.ops import Ops
from lazygrad.oracle.evaluate import evaluate
from lazygrad.target import Memory, Target
from tests.helpers import needs

from .kernels import const, equal, load, opened, plain, random_contents, reduce, run, sink, store
from .test_opt import convolution, matmul, row_sum, softmax_rows

TILE, UPCAST = OptOps.TILE, OptOps.UPCAST
CPU = Target(
    "CPU", vector_bytes=64, vector_registers=32, memory=Memory((48 << 10, 1 << 20, 32 << 20)), has_fma=True
)


def chosen(ast, target=CPU):
    return packed_tiles(Facts.of(Loops.of(lower(ast))), target)[0]


def product(m, k, n, transposed_a=False, transposed_b=False, dtype=dtypes.float, summed=dtypes.float):
    """Any of the four orders in which a matmul's operands may lie."""
    a = plain(k, m).permute((1, 0)) if transposed_a else plain(m, k)
    b = plain(n, k) if transposed_b else plain(k, n).permute((1, 0))
    x = load(1, a.reshape((m, 1, k)).expand((m, n, k)), dtype, size=m * k)
    y = load(2, b.reshape((1, n, k)).expand((m, n, k)), dtype, size=k * n)
    return sink(store(0, reduce(x.cast(summed) * y.cast(summed), Ops.ADD, 2)))


def gram(n, k):
    """a @ a.T: both factors are of one input."""
    x = load(1, plain(n, 1, k).expand((n, n, k)), size=n * k)
    y = load(1, plain(1, n, k).expand((n, n, k)), size=n * k)
    return sink(store(0, reduce(x * y, Ops.ADD, 2)))


def staged(opts):
    return [opt.amount for opt in opts if opt.op is OptOps.STAGE]


# *** what is chosen


def test_a_last_tile_of_fewer_rows_must_be_worth_its_code():
    """Tiles of 12 rows are the fastest for 512, by less than the code of the last 8 takes."""
    assert Opt(UPCAST, 0, 8) in chosen(product(512, 512, 128))
    assert Opt(OptOps.PADTO, 0, 6) in chosen(product(1024, 1024, 1024))


def test_the_operand_that_lies_along_the_lanes_is_packed():
    assert staged(chosen(product(512, 512, 512))) == [2]


def test_rows_that_are_far_apart_or_converted_are_packed_too():
    assert staged(chosen(product(512, 512, 512, transposed_a=True))) == [2, 1]
    assert staged(chosen(product(512, 512, 512, dtype=dtypes.bfloat16))) == [2, 1]


ROWS = replace(CPU, memory=replace(CPU.memory, row=120.0))


def test_results_of_few_products_are_written_row_by_row_where_another_row_takes_time():
    """The gradient of weights: 34 products each, 9 MB of results."""
    ast = product(768, 34, 3072, transposed_a=True)
    assert staged(chosen(ast)) == [2, 1]
    opts = chosen(ast, ROWS)
    assert staged(opts) == [1]
    assert all(opt.op is not OptOps.TILE for opt in opts)


def widths(opts):
    """How wide a panel is, and a tile."""
    return [next(opt.amount for opt in opts if (opt.op, opt.axis) == (op, 1)) for op in (TILE, UPCAST)]


def test_a_panel_is_packed_for_tiles_side_by_side_where_another_row_takes_time():
    ast = product(64, 256, 3072)
    block, across = widths(chosen(ast))
    assert block == across
    block, across = widths(chosen(ast, ROWS))
    assert block > across
    assert block % across == 0


def test_what_the_second_cache_holds_is_tiled_the_same_where_another_row_takes_time():
    for order in ((False, False), (True, False), (False, True)):
        ast = product(64, 128, 256, *order)
        assert chosen(ast, ROWS) == chosen(ast)


def kinds(opts):
    return {opt.op for opt in opts}


def test_weights_in_rows_are_read_in_rounds_where_another_row_takes_time():
    """The gradient of x: each row of 3,072 is read once, in the order of memory, for all 64 results."""
    ast = product(64, 3072, 768)
    assert OptOps.ROUNDS not in kinds(chosen(ast))
    opts = chosen(ast, ROWS)
    assert {OptOps.STAGE, TILE}.isdisjoint(kinds(opts))
    assert [opt.amount for opt in opts if opt.op is OptOps.ROUNDS] == [64]
    several = chosen(ast, replace(ROWS, threads=4))
    assert [opt.amount for opt in several if opt.op is TILE] == [192]  # pieces for the cores


def test_rows_of_both_factors_are_summed_in_lanes_where_another_row_takes_time():
    """x @ weights.T: a panel would be transposed."""
    ast = product(34, 768, 3072, transposed_b=True)
    assert staged(chosen(ast)) == [2]
    opts = chosen(ast, ROWS)
    assert staged(opts) == []
    assert [opt.amount for opt in opts if opt.op is OptOps.UNROLL] == [16]


@pytest.mark.parametrize(("transposed", "op"), [(False, OptOps.ROUNDS), (True, OptOps.UNROLL)], ids=str)
def test_rows_along_two_axes_share_what_is_not_packed(transposed, op):
    """Twice 17 rows, stored one of each after the other."""
    x = load(1, plain(2, 17, 1, 768).permute((1, 0, 2, 3)).expand((17, 2, 2304, 768)), size=34 * 768)
    weights = plain(2304, 768) if transposed else plain(768, 2304).permute((1, 0))
    y = load(2, weights.reshape((1, 1, 2304, 768)).expand((17, 2, 2304, 768)), size=768 * 2304)
    opts = chosen(sink(store(0, reduce(x * y, Ops.ADD, 3))), ROWS)
    assert op in kinds(opts)
    assert staged(opts) == []


@pytest.mark.parametrize("order", [(False, False), (False, True)], ids=["rounds", "lanes of sums"])
@pytest.mark.parametrize("size", [(14, 96, 128), (16, 160, 96), (13, 512, 34)], ids=["14", "16", "13"])
def test_products_without_packing(size, order):
    """Whatever is predicted: the candidates that copy nothing."""
    m, k, n = size
    ast = product(m, k, n, *order)
    target = replace(CPU, memory=replace(Memory((64 << 10, 64 << 10, 1 << 20)), row=120.0))
    apart = (OptOps.ROUNDS, OptOps.UNROLL)[order[1]]
    lists = [opts for opts in candidates(Facts.of(Loops.of(lower(ast))), target) if apart in kinds(opts)]
    contents = random_contents(ast)
    b = np.array(contents[2]).reshape((n, k) if order[1] else (k, n))
    expected = np.array(contents[1]).reshape(m, k) @ (b.T if order[1] else b)
    assert bool(lists) == (order[1] or n % 16 == 0)
    for opts in lists[:2]:
        assert run(ast, "CPU", contents, opts=opts) == [expected.reshape(-1).tolist()]


def test_rounds_of_a_tail_add_to_what_their_own_memory_holds():
    """The last tile of columns has lanes beyond the axis and loops of its own."""
    ast = product(5, 8, 20)
    contents = random_contents(ast)
    opts = [Opt(OptOps.PADTO, 1, 16), Opt(TILE, 1, 16), Opt(UPCAST, 1, 16), Opt(OptOps.ROUNDS, 0, 4)]
    (made,) = run(ast, "CPU", contents, opts=opts)
    expected = np.array(contents[1]).reshape(5, 8) @ np.array(contents[2]).reshape(8, 20)
    assert made == expected.reshape(-1).tolist()


@pytest.mark.parametrize("size", [(96, 34, 128), (32, 64, 512)])
def test_products_where_another_row_takes_time(size):
    """With small caches, so that little is enough: rows of tiles in place, and tiles side by side."""
    m, k, n = size
    ast = product(m, k, n, transposed_a=m > k)
    contents = random_contents(ast)
    a = np.array(contents[1]).reshape((k, m) if m > k else (m, k))
    small = Memory((4 << 10, 64 << 10, 1 << 20))
    opts = chosen(ast, replace(CPU, memory=replace(small, row=120.0)))
    assert opts != chosen(ast, replace(CPU, memory=small))
    (made,) = run(ast, "CPU", contents, opts=opts)
    expected = (a.T if m > k else a) @ np.array(contents[2]).reshape(k, n)
    assert made == expected.reshape(-1).tolist()


def test_a_panel_stays_in_the_second_cache():
    for steps in (256, 1024, 4096, 16384):
        opts = chosen(product(512, steps, 512))
        across = next(opt.amount for opt in opts if opt.op is OptOps.UPCAST and opt.axis == 1)
        assert across == 16 or across * steps * 4 <= CPU.memory.second // 2


def test_a_tile_fits_the_registers():
    for target in (CPU, Target("CPU", vector_bytes=32, vector_registers=16, has_fma=True)):
        opts = chosen(product(512, 512, 512), target)
        tile = math.prod(opt.amount for opt in opts if opt.op is OptOps.UPCAST)
        assert 8 <= tile // (target.vector_bytes // 4) < target.vector_registers


def test_sums_leave_registers_for_what_is_loaded():
    """5 x 80 would fit, but 25 sums are slower than 24."""
    for ast in (product(960, 960, 960), product(1024, 1024, 1024, transposed_a=True)):
        rows, lanes = [opt.amount for opt in chosen(ast) if opt.op is OptOps.UPCAST]
        assert rows * lanes <= 24 * 16


def test_a_large_result_is_not_stored_across_its_rows():
    """Lanes along the first operand's columns are no neighbours of a result: 16 MB of it come from memory."""
    opts = chosen(product(2048, 2048, 2048, True, True))
    assert [opt.axis for opt in opts if opt.op is OptOps.UPCAST and opt.amount > 16] == [1]


def test_windows_are_read_where_they_lie():
    """A convolution's panel has nine places for each element: copying them costs more than it saves."""
    assert staged(chosen(convolution(4, 16, 34, 16))) == []
    assert any(opt.op is OptOps.TILE for opt in chosen(convolution(4, 16, 34, 16)))


@pytest.mark.parametrize("backward", [False, True])
def test_windows_with_a_border_are_copied_once(backward):
    """The copy of an image holds its zeros: what sums it asks for no conditions, and packs nothing else."""
    ast = convolution(4, 16, 32, 16, border=1, backward=backward)
    assert staged(chosen(ast)) == [1]
    opts = [opt for opt in chosen(ast) if opt.op is not OptOps.PADTO]
    text = loops_text(apply_opts(Loops.of(lower(ast)), opts, CPU))
    filling, _, summing = text.partition("acc0 = 0.0")
    assert "temp0[gidx1*1632+gidx2*48+gidx3*16+uidx0] = (" in filling
    assert "?" not in summing


def test_windows_some_steps_apart_are_copied_once_too():
    """Lanes along a row would be every second element of the copy: they go along the filters."""
    opts = chosen(convolution(4, 64, 56, 64, border=1, step=2))
    assert opts[:2] == [Opt(OptOps.TILE, 0, 1), Opt(OptOps.STAGE, 0, 1)]
    assert [opt.amount for opt in opts if opt.op is OptOps.UPCAST and opt.axis == 1] == [32]
    text = loops_text(apply_opts(Loops.of(lower(convolution(4, 64, 56, 64, border=1, step=2))), opts, CPU))
    assert "?" not in text.partition("acc0 = 0.0")[2]


@pytest.mark.choice
def test_a_mask_for_each_row_costs_more_than_one_for_a_vector():
    """The gradient of a convolution's input: its condition stays in the sum, so lanes go along the row."""
    x, w = Tensor.empty(128, 32, 26, 26, requires_grad=True), Tensor.empty(64, 32, 3, 3)
    y = x.conv2d(w)
    (gradient,) = y.gradient(x, gradient=Tensor.empty(*y.shape))
    opts = chosen(gradient.schedule()[-1].ast, replace(CPU, has_masks=True))
    assert [opt.amount for opt in opts if opt.op is OptOps.UPCAST and opt.axis == 3] == [32]


def test_the_lanes_are_those_that_fit():
    """24 places of a row would fill one and a half vectors: 64 filters fill four."""
    opts = chosen(convolution(128, 32, 26, 64))
    assert staged(opts) == [2]
    assert [opt.amount for opt in opts if opt.op is OptOps.UPCAST and opt.axis == 1] == [64]


def test_blocks_of_filters_are_walked_inside_of_an_image():
    """54 places of a row are nine tiles of six. Filters are packed in four blocks, each for a whole image."""
    caches = Memory((32 << 10, 512 << 10, 32 << 20))
    target = Target("CPU", vector_bytes=32, vector_registers=16, memory=caches, has_fma=True)
    packed = [Opt(OptOps.TILE, 1, 16), Opt(OptOps.UPCAST, 3, 6), Opt(OptOps.UPCAST, 1, 16)]
    opts = [Opt(OptOps.TILE, 0, 1), *packed, Opt(OptOps.STAGE, 1, 2)]
    ast = convolution(32, 64, 56, 64)
    assert chosen(ast, target) == opts
    (thread,) = (opt for opt in choose(Loops.of(lower(ast)), replace(target, threads=2)) if opt not in opts)
    assert thread == Opt(OptOps.THREAD, 0, 32)


@pytest.mark.choice
def test_filters_beside_a_copied_image_are_packed_once_for_all_of_its_rows():
    """Four phases of a transposed convolution: the price of packing was counted for each row of pixels."""
    y = Tensor.empty(4, 64, 28, 28).conv_transpose2d(Tensor.empty(64, 32, 4, 4), stride=2, padding=1)
    assert staged(chosen(y.schedule()[-1].ast, replace(CPU, has_masks=True))) == [1, 2]


def test_pieces_do_not_pack_the_same_again_and_again():
    target = replace(CPU, threads=2)
    few_blocks = choose(Loops.of(lower(product(1024, 2048, 64, transposed_b=True))), target)
    (thread,) = (opt for opt in few_blocks if opt.op is OptOps.THREAD)
    assert any(opt.op is OptOps.TILE and opt.axis == thread.axis for opt in few_blocks)
    no_block = choose(Loops.of(lower(convolution(128, 32, 26, 64))), target)
    assert [opt.amount for opt in no_block if opt.op is OptOps.THREAD] == [96]


def test_an_operand_that_serves_few_rows_is_read_once_and_not_packed():
    """All rows at once; where it comes from memory, a few of its rows in each round, in order."""
    for rows, vectors in ((2, 8), (4, 4), (8, 2)):
        ast = product(rows, 4096, 4096)
        assert chosen(ast) == []
        tile = [Opt(OptOps.UPCAST, 0, rows), Opt(OptOps.UPCAST, 1, 16 * vectors)]
        rounds = [Opt(OptOps.ROUNDS, 0, 512), Opt(OptOps.ROUNDS, 0, 8), Opt(OptOps.UNROLL, 0, 8)]
        assert choose(Loops.of(lower(ast)), CPU) == [*tile, *rounds]
    assert choose(Loops.of(lower(product(8, 512, 2048))), CPU) == [
        Opt(OptOps.UPCAST, 0, 8),
        Opt(OptOps.UPCAST, 1, 32),
    ]
    assert staged(chosen(product(16, 4096, 4096))) == [2]


def test_rows_along_two_axes_are_few_rows_too():
    x = load(1, plain(4, 2, 1, 512).permute((1, 0, 2, 3)).expand((2, 4, 2048, 512)), size=8 * 512)
    y = load(2, plain(512, 2048).permute((1, 0)).reshape((1, 1, 2048, 512)).expand((2, 4, 2048, 512)))
    opts = choose(Loops.of(lower(sink(store(0, reduce(x * y, Ops.ADD, 3))))), CPU)
    assert opts == [Opt(OptOps.UPCAST, 0, 2), Opt(OptOps.UPCAST, 1, 4), Opt(OptOps.UPCAST, 2, 32)]


def test_sums_of_few_products_are_stored_row_by_row_where_no_cache_holds_them():
    assert staged(chosen(product(512, 8, 2048, transposed_a=True))) == []
    assert staged(chosen(product(512, 64, 2048, transposed_a=True))) == [2, 1]
    assert staged(chosen(product(64, 8, 2048, transposed_a=True))) == [2, 1]


def test_odd_columns_are_summed_in_strips_too():
    """A strip that is a little too long, with its last lanes left out, and not single vectors."""
    for size, strip in ((1021, 256), (127, 128), (300, 160)):
        columns = sink(store(0, reduce(load(1, plain(1000, size).permute((1, 0))), Ops.ADD, 1)))
        assert choose(Loops.of(lower(columns)), CPU)[-1] == Opt(OptOps.UPCAST, 0, strip)


def test_a_matrix_times_few_columns_is_read_along_its_rows():
    opts = choose(Loops.of(lower(product(4096, 4096, 2))), CPU)
    assert opts == [Opt(OptOps.UPCAST, 0, 4), Opt(OptOps.UPCAST, 1, 2), Opt(OptOps.UNROLL, 0, 16)]


@pytest.mark.parametrize(
    "ast", [row_sum(512, 4096), softmax_rows(512, 512), matmul(512, 512, 1), matmul(8, 8, 8)]
)
def test_what_shares_nothing_or_is_small_is_no_contraction(ast):
    assert chosen(ast) == []


@pytest.mark.parametrize("caches", [(), (1 << 15,), (1 << 15, 1 << 18), (1 << 15, 1 << 20, 1 << 25)], ids=str)
@pytest.mark.parametrize("dtype", [dtypes.uint8, dtypes.half, dtypes.float, dtypes.double], ids=str)
def test_what_is_chosen_is_legal(dtype, caches):
    target = Target("CPU", vector_bytes=64, vector_registers=32, memory=Memory(caches), has_fma=True)
    for size in ((512, 512, 512), (16, 4096, 4096), (77, 33, 1000), (4096, 16, 5)):
        for order in ((False, False), (True, False), (False, True), (True, True)):
            loops = Loops.of(lower(product(*size, *order, dtype=dtype, summed=dtype)))
            assert apply_opts(loops, packed_tiles(Facts.of(loops), target)[0], target) is not None


def test_rows_that_are_read_otherwise_too_are_not_packed():
    """x.T @ w + x reads x in two ways; packed, both would be."""
    ast = product(256, 256, 256, transposed_a=True)
    again = load(1, plain(256, 256, 1))
    total = ast.src[0].src[2]
    assert staged(chosen(ast)) == [2, 1]
    assert staged(chosen(sink(store(0, total + again)))) == [2]


def test_an_input_may_be_both_factors():
    opts = chosen(gram(512, 512))
    assert staged(opts) == [1]
    text = loops_text(apply_opts(Loops.of(lower(gram(512, 512))), opts, CPU))
    assert "temp0[" in text
    assert "temp1[" in text


def test_what_is_used_again_and_again_is_looked_at_once():
    """Otherwise 40 squares of squares would be 2^40 looks."""
    ast = product(64, 64, 64)
    squares = ast.src[0].src[2].src[0]
    for _ in range(40):
        squares = squares * squares
    assert chosen(sink(store(0, reduce(squares, Ops.ADD, 2)))) is not None


def test_what_is_made_of_an_element_alone_is_done_while_packing():
    ast = product(64, 64, 64)
    half = const(0.5, (sums := ast.src[0].src[2].src[0]).src[1])
    changed = sink(store(0, reduce(sums.src[0] * (sums.src[1] * half).alu(Ops.MAX, half), Ops.ADD, 2)))
    loops = Loops.of(lower(changed))
    text = loops_text(apply_opts(loops, chosen(changed), CPU))
    filling, _, summing = text.partition("acc0 = 0.0")
    assert "max" in filling
    assert "max" not in summing


# *** what comes out

SIZES = [(64, 64, 64), (66, 50, 70), (127, 33, 97), (17, 300, 130)]


@pytest.mark.parametrize(
    "device",
    ["CPU", pytest.param("AARCH64", marks=needs("aarch64")), pytest.param("CLANG", marks=needs("clang"))],
)
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("order", [(False, False), (True, False), (False, True), (True, True)], ids=str)
def test_products(size, order, device, monkeypatch):
    monkeypatch.setattr(tiles, "WORST", math.inf)
    monkeypatch.setattr(facts, "FEW", 0)
    m, k, n = size
    ast = product(m, k, n, *order)
    contents = random_contents(ast)
    a = np.array(contents[1]).reshape((k, m) if order[0] else (m, k))
    b = np.array(contents[2]).reshape((n, k) if order[1] else (k, n))
    expected = (a.T if order[0] else a) @ (b.T if order[1] else b)
    assert staged(packed_tiles(Facts.of(Loops.of(lower(ast))), opened(device).renderer.target)[0])
    assert run(ast, device, contents, opts=None) == [expected.reshape(-1).tolist()]


@pytest.mark.parametrize(
    "device",
    ["CPU", pytest.param("AARCH64", marks=needs("aarch64")), pytest.param("CLANG", marks=needs("clang"))],
)
def test_panels_of_more_than_the_stack_holds(device):
    ast = product(16, 4000, 64)
    contents = random_contents(ast)
    a, b = np.array(contents[1]).reshape(16, 4000), np.array(contents[2]).reshape(4000, 64)
    assert run(ast, device, contents, opts=None) == [(a @ b).reshape(-1).tolist()]


@pytest.mark.parametrize("device", ["PYTHON", "CPU", pytest.param("AARCH64", marks=needs("aarch64"))])
@pytest.mark.parametrize(
    "ast",
    [
        product(9, 5, 20),
        product(7, 6, 11, True, True),
        product(20, 16, 24, False, True),
        product(24, 32, 9, True),
        gram(24, 16),
        convolution(1, 2, 12, 5),
        convolution(2, 2, 9, 5, border=1),
        convolution(2, 2, 9, 5, border=1, backward=True),
        convolution(2, 2, 10, 17, border=1, step=2),
        convolution(2, 2, 9, 17, border=2, backward=True, step=3),
    ],
    ids=["plain", "T", "squares", "crossing", "gram", "conv", "border", "backward", "step", "steps back"],
)
def test_small_ones_packed_all_the_same(ast, device, monkeypatch):
    monkeypatch.setattr(contraction, "LEAST_WORK", 1)
    monkeypatch.setattr(tiles, "WORST", math.inf)
    monkeypatch.setattr(facts, "FEW", 0)
    loops = Loops.of(lower(ast))
    opts = packed_tiles(Facts.of(loops), opened(device).renderer.target)[0]
    assert opts
    assert apply_opts(loops, opts, opened(device).renderer.target) is not None
    contents = random_contents(ast)
    with Context(CHECK=1):
        found = run(ast, device, contents, opts=opts)
    assert all(equal(a, b) for a, b in zip(found, evaluate(ast, contents), strict=True))


@pytest.mark.parametrize("device", ["PYTHON", "CPU"])
@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("border", [0, 1])
def test_windows_are_copied_as_what_they_are_on(device, backward, border):
    ast = convolution(2, 2, 7, 3, border, backward)
    contents = random_contents(ast)
    opts = [Opt(OptOps.STAGE, 0, 1)]
    with Context(CHECK=1):
        found = run(ast, device, contents, opts=opts)
    assert all(equal(a, b) for a, b in zip(found, evaluate(ast, contents), strict=True))
    text = loops_text(apply_opts(Loops.of(lower(ast)), opts, CPU))
    assert f"for gidx2 in 0..{7 + 2 * border}" in text


# *** random contractions


def random_contraction(rng):
    """Operands that each lack an output axis, in some order, perhaps padded, shifted or converted."""
    outputs = rng.choice((2, 2, 3))
    sizes = [rng.choice((5, 8, 9, 16, 17, 20, 33)) for _ in range(outputs)]
    sizes += [rng.randint(2, 7) for _ in range(rng.choice((1, 1, 2)))]
    reduced = range(outputs, len(sizes))
    missing = rng.sample(range(outputs), 2)
    value = None
    for number in range(1, rng.choice((3, 3, 3, 4))):
        lacks = missing[number - 1] if number < 3 else rng.randrange(outputs)
        along = [
            axis for axis in range(len(sizes)) if axis != lacks and (axis < outputs or rng.random() < 0.9)
        ]
        rng.shuffle(along)
        tracker = plain(*(sizes[axis] for axis in along))
        if rng.random() < 0.3:  # one element of zeros in front, the last one cut off
            tracker = tracker.pad(tuple((1, 0) for _ in along)).shrink(tuple((0, sizes[a]) for a in along))
        tracker = tracker.permute(tuple(sorted(range(len(along)), key=lambda i: along[i])))
        shape = tuple(size if axis in along else 1 for axis, size in enumerate(sizes))
        dtype = rng.choice((dtypes.float, dtypes.float, dtypes.half, dtypes.int))
        size = math.prod(sizes[axis] for axis in along)
        operand = load(number, tracker.reshape(shape).expand(tuple(sizes)), dtype, size=size)
        operand = operand.cast(dtypes.float) if dtype is not dtypes.float else operand
        value = operand if value is None else value * operand
    total = reduce(value, Ops.ADD, *reduced)
    return sink(store(0, total.alu(Ops.MAX, total * total) if rng.random() < 0.3 else total))


def check_random_contractions(device, seeds):
    """Those that are packed, packed or not worth it, agree with the evaluator; how many there were."""
    target = opened(device).renderer.target
    packed = 0
    for seed in seeds:
        ast = random_contraction(random.Random(seed))
        loops = Loops.of(lower(ast))
        opts = packed_tiles(Facts.of(loops), target)[0] if loops.axes else []
        if not opts:
            continue
        packed += bool(staged(opts))
        contents = random_contents(ast, seed, -2, 3)
        with Context(CHECK=1):
            found = run(ast, device, contents, opts=opts)
        expected = evaluate(ast, contents)
        assert all(equal(a, b) for a, b in zip(found, expected, strict=True)), f"{device} {seed}: {opts}"
    return packed


@pytest.mark.parametrize(("device", "count"), [("PYTHON", 12), ("CPU", 20)])
def test_random_contractions(device, count, monkeypatch):
    monkeypatch.setattr(contraction, "LEAST_WORK", 1)
    monkeypatch.setattr(tiles, "WORST", math.inf)
    monkeypatch.setattr(facts, "FEW", 0)
    assert check_random_contractions(device, range(count)) > count // 8


@pytest.mark.slow
@pytest.mark.parametrize(("device", "count"), [("PYTHON", 100), ("CPU", 200)])
def test_many_random_contractions(device, count, monkeypatch):
    monkeypatch.setattr(contraction, "LEAST_WORK", 1)
    monkeypatch.setattr(tiles, "WORST", math.inf)
    monkeypatch.setattr(facts, "FEW", 0)
    assert check_random_contractions(device, range(1000, 1000 + count)) > count // 8


@pytest.mark.choice
def test_lanes_are_where_no_product_has_a_mask_if_there_are_none():
    """The slope of a convolution by its input: near the borders of an image, some products are left out."""
    x, weights, slope = Tensor.empty(16, 32, 26, 26), Tensor.empty(64, 32, 3, 3), Tensor.empty(16, 64, 24, 24)
    (by_input,) = (x.conv2d(weights) * slope).sum().gradient(x)
    ast = max((item.ast for item in by_input.schedule()), key=lambda ast: len(ast.toposort()))
    target = replace(CPU, vector_bytes=32, vector_registers=16, has_masks=False, has_fma=True)
    assert Opt(OptOps.UPCAST, 1, 32) in chosen(ast, target)

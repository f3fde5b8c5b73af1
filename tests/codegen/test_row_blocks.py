"""Sums down the rows of a matrix: a few rows in each round, whose sums wait in memory."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazygrad.codegen.lowering.lower import lower
from lazygrad.codegen.opt import Loops, Opt, OptOps, choose
from lazygrad.codegen.opt.cpu.plans import plans
from lazygrad.codegen.opt.cpu.row_blocks import _amounts
from lazygrad.codegen.opt.facts import Facts
from lazygrad.codegen.opt.moves.k_blocks import IN_A_ROW
from lazygrad.dtype import dtypes
from lazygrad.ir.ops import Ops
from lazygrad.renderer.llvmir import target as llvm_target
from lazygrad.target import PROCESSORS, Memory, Target, refined

from .kernels import load, plain, random_contents, reduce, run, sink, store

#: A processor without masks, whose caches hold little: what is summed comes from memory.
MEMORY = Memory((1 << 12, 1 << 15, 1 << 17), overrun=((64, 400.0),))
CPU = Target("CPU", vector_bytes=32, vector_registers=16, has_fma=True, memory=MEMORY)


def columns(rows, width, dtype=dtypes.float):
    """(rows, width) summed over rows."""
    return sink(store(0, reduce(load(1, plain(rows, width).permute((1, 0)), dtype), Ops.ADD, 1)))


def greatest(rows, width, dtype=dtypes.float):
    """The greatest of each column of (rows, width)."""
    return sink(store(0, reduce(load(1, plain(rows, width).permute((1, 0)), dtype), Ops.MAX, 1)))


def middle(images, rows, width):
    """(images, rows, width) summed over rows."""
    x = load(1, plain(images, rows, width).permute((0, 2, 1)))
    return sink(store(0, reduce(x, Ops.ADD, 2)))


def few_rows(count, rows, width):
    """(count, rows) times (rows, width)."""
    x = load(1, plain(count, rows).reshape((count, 1, rows)).expand((count, width, rows)), size=count * rows)
    y = plain(rows, width).permute((1, 0)).reshape((1, width, rows)).expand((count, width, rows))
    return sink(store(0, reduce(x * load(2, y, size=rows * width), Ops.ADD, 2)))


def chosen(ast):
    return choose(Loops.of(lower(ast)), CPU)


def in_rounds(ast):
    """The Opts of every plan with rounds."""
    loops = Loops.of(lower(ast))
    return [plan.opts() for plan in plans(Facts.of(loops), CPU, loops) if plan.row_blocks is not None]


def assert_right(ast):
    found, contents = in_rounds(ast), random_contents(ast)
    assert found
    expected = run(ast, "CPU", contents)
    assert all(run(ast, "CPU", contents, opts=opts) == expected for opts in found)


def rounds_of(opts):
    return [opt.amount for opt in opts if opt.op is OptOps.ROUNDS]


def test_rows_are_read_in_order():
    assert chosen(columns(512, 1024)) == [
        Opt(OptOps.UPCAST, 0, 64),
        Opt(OptOps.ROUNDS, 0, 8),
        Opt(OptOps.UNROLL, 0, 8),
    ]


def test_many_rows_are_rounds_of_rounds():
    assert rounds_of(chosen(columns(4096, 1024))) == [512, 8]


def test_each_image_is_summed_by_itself():
    opts = chosen(middle(16, 64, 1024))
    assert opts[0] == Opt(OptOps.TILE, 0, 1)
    assert rounds_of(opts) == [8]


def test_a_row_whose_sums_no_cache_holds_is_cut():
    assert chosen(columns(64, 1 << 14))[0] == Opt(OptOps.TILE, 0, 2048)


@pytest.mark.parametrize(
    ("ast", "rounds"),
    [
        (columns(4096, 4096), True),  # strips of pages: 3.2 ms, in rounds 2.5
        (columns(8192, 1000), False),  # strips nearer than a page: as fast
        (few_rows(1, 1024, 1536), True),  # 0.29 ms, in rounds 0.25
        (few_rows(8, 1024, 1536), False),  # 48 KB of sums come and go: 0.51 ms in rounds, else 0.35
    ],
    ids=range(4),
)
def test_strips_of_pages_are_avoided_where_that_was_measured_to_pay(ast, rounds):
    """On Granite Rapids, whose row says what is lost at the end of strips, with the third cache it has."""
    target = refined(llvm_target(), "graniterapids", PROCESSORS["graniterapids"].features)
    target = replace(target, memory=replace(target.memory, caches=(*target.memory.caches, 480 << 20)))
    assert bool(rounds_of(choose(Loops.of(lower(ast)), target))) == rounds


def test_what_is_in_the_first_cache_is_summed_in_registers():
    assert rounds_of(chosen(columns(8, 64))) == []


def test_what_is_contiguous_along_the_sum_is_in_order_already():
    rows = sink(store(0, reduce(load(1, plain(1024, 1024)), Ops.ADD, 1)))
    assert rounds_of(chosen(rows)) == []


def test_narrow_sums_are_not_rounded_by_memory():
    assert rounds_of(chosen(columns(4096, 1024, dtypes.half))) == []


@pytest.mark.parametrize(
    "ast",
    [
        columns(512, 1024), columns(4096, 96), columns(77, 1003), columns(1021, 130), columns(131, 1 << 13),
        middle(3, 40, 520), middle(2, 37, 1000), few_rows(1, 520, 512), few_rows(4, 133, 512),
        greatest(512, 1024), greatest(77, 1003, dtypes.half), greatest(4096, 96, dtypes.int),
    ],
    ids=range(12),
)  # fmt: skip
def test_sums_in_rounds_are_right(ast):
    assert_right(ast)


def test_rounds_of_rounds_of_rounds(monkeypatch):
    monkeypatch.setattr("lazygrad.codegen.opt.cpu.row_blocks.IN_A_ROW", 9)
    ast = columns(1000, 256)
    assert len(rounds_of(in_rounds(ast)[0])) == 3
    assert_right(ast)


@given(st.integers(3, 1 << 24), st.sampled_from((2, 4, 8)))
def test_no_sum_is_of_many_in_a_row(size, at_once):
    amounts, rows = _amounts(size, at_once)
    steps = [rows, *amounts]
    assert amounts[-1] == at_once
    assert all(a % b == 0 and a // b <= IN_A_ROW for a, b in itertools.pairwise(steps))
    assert size <= rows < 1.1 * size + at_once

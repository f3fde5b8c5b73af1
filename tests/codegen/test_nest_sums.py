"""Long float sums become sums of sums; short ones, and sums of integers, stay as they are."""

from __future__ import annotations

import textwrap
from dataclasses import replace

import numpy as np
import pytest

from lazygrad import Tensor
from lazygrad.codegen.linearizing.linearize import linearize
from lazygrad.codegen.linearizing.nest_sums import end_late, nest_sums
from lazygrad.codegen.lowering.lower import lower
from lazygrad.codegen.opt import Loops, Opt, OptOps, apply_opts
from lazygrad.codegen.passes import legalize
from lazygrad.codegen.vectorizing.vectorize import vectorize
from lazygrad.dtype import dtypes
from lazygrad.ir.loops_text import loops_text
from lazygrad.ir.ops import Ops
from lazygrad.renderer.llvmir import LLVMRenderer
from lazygrad.renderer.llvmir import target as llvm_target
from lazygrad.target import Target

from .kernels import load, plain, reduce, sink, store

PLAIN = Target("PLAIN")


def sum_of(*shape, axes=(1,), dtype=dtypes.float32, op=Ops.ADD):
    return lower(sink(store(0, reduce(load(1, plain(*shape), dtype), op, *axes))))


def levels(kernel):
    """The sizes of the loops of each sum, the outermost first; of loops that end sooner, the greatest."""
    sums = [node for node in kernel.toposort() if node.op is Ops.REDUCE]
    return [[_most(r.src[0]) for r in node.src[1:]] for node in sums[::-1]]


def _most(size):
    return size.arg if size.op is Ops.CONST else max(s.arg for s in size.src if s.op is Ops.CONST)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (16, [[16]]),
        (17, [[2], [16]]),
        (64, [[4], [16]]),
        (100, [[7], [16]]),
        (1000, [[9], [7], [16]]),
        (2048, [[2], [8], [8], [16]]),
    ],
)
def test_a_long_loop_is_cut_into_blocks(size, expected):
    assert levels(nest_sums(sum_of(4, size), PLAIN)) == expected


def test_a_nest_of_loops_is_blocks_already():
    kernel = lower(
        sink(store(0, reduce(load(1, plain(4, 64, 3, 5).permute((0, 1, 3, 2))), Ops.ADD, 1, 2, 3)))
    )
    assert levels(nest_sums(kernel, PLAIN)) == [[8], [8], [5, 3]]


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((64, 3, 3), [[4], [8], [2, 3, 3]]),  # 18 turns, not 9
        ((64, 2, 2, 3), [[8], [8], [2, 2, 3]]),  # 12, not 24
        ((64, 10), [[4], [8], [2, 10]]),
    ],
)
def test_inner_loops_are_in_a_block_as_often_as_comes_nearest(shape, expected):
    axes = range(1, 1 + len(shape))
    apart = plain(4, *shape[::-1]).permute((0, *axes[::-1]))  # in memory's order they would be one loop
    kernel = lower(sink(store(0, reduce(load(1, apart), Ops.ADD, *axes))))
    assert levels(nest_sums(kernel, PLAIN)) == expected


def test_the_last_block_is_shorter():
    text = loops_text(nest_sums(sum_of(2, 40), PLAIN))
    assert text == textwrap.dedent("""
        for gidx0 in 0..2   GLOBAL
          acc0 = 0.0
          for ridx0 in 0..3   REDUCE
            acc1 = 0.0
            for ridx1 in 0..min(ridx0*-16+40, 16)   REDUCE
              acc1 += data1[gidx0*40+ridx0*16+ridx1]
            acc0 += acc1
          data0[gidx0] = acc0
    """).strip("\n")


@pytest.mark.parametrize(("dtype", "op"), [(dtypes.int32, Ops.ADD), (dtypes.float32, Ops.MAX)])
def test_what_is_exact_in_any_order_stays_as_it_is(dtype, op):
    kernel = sum_of(4, 1000, dtype=dtype, op=op)
    assert nest_sums(kernel, PLAIN) is kernel


def test_short_sums_stay_as_they_are():
    kernel = sum_of(4, 16)
    assert nest_sums(kernel, PLAIN) is kernel


def tile_program(size):
    """The linear program of a matmul whose tile of sums fills the registers."""
    kernel = lower(sink(store(0, reduce(_product(size), Ops.ADD, 2))))
    target = replace(llvm_target(), vector_bytes=32, vector_registers=16, has_fma=True)
    opts = [Opt(OptOps.UPCAST, 0, 6), Opt(OptOps.UPCAST, 1, 16)]
    scheduled = apply_opts(Loops.of(kernel), opts, target)
    renderer = LLVMRenderer(target)
    made = legalize(nest_sums(vectorize(scheduled, target), target), renderer)
    return end_late(linearize(made, renderer), target)


def _product(size):
    a = load(1, plain(12, size).reshape((12, 1, size)).expand((12, 32, size)))
    b = load(2, plain(size, 32).permute((1, 0)).reshape((1, 32, size)).expand((12, 32, size)))
    return a * b


def test_half_of_a_full_tile_ends_its_blocks_late():
    program = tile_program(4096)
    branches = [node for node in program if node.op is Ops.IF]
    assert len(branches) == 2  # in the middle of a block, and of a block of blocks
    inside = program[program.index(branches[0]) : program.index(branches[0]) + 4]
    assert [node.op for node in inside] == [Ops.IF, Ops.ADD, Ops.ASSIGN, Ops.ASSIGN]
    assert sum(node.op is Ops.DEFINE_ACC for node in program) == 12 * 3


@pytest.mark.parametrize(("size", "levels"), [(36, 1), (64, 1), (72, 1), (80, 2)])
def test_a_tile_of_no_more_turns_than_a_block_may_have_has_no_blocks(size, levels):
    program = tile_program(size)
    assert any(node.op is Ops.IF for node in program) is (levels > 1)
    assert sum(node.op is Ops.DEFINE_ACC for node in program) == 12 * levels


def test_a_sum_of_sums_whose_last_lanes_are_padding():
    """The blocks of the outer sum are as long as what is left of it, and its copies stand in other loops."""
    x = np.random.default_rng(0).random((24, 4), np.float32)
    t = Tensor(x).realize()
    found = (t @ t.T).tanh()[:-1].pad(((3, 1), (0, 1))).sum(0).numpy()
    expected = np.pad(np.tanh(x @ x.T)[:-1], ((3, 1), (0, 1))).sum(0)
    np.testing.assert_allclose(found, expected, rtol=1e-5)

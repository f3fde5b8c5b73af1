"""Copies that a workgroup shares: filled by all of its threads, read by all, with few barriers."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from lazygrad.codegen.compile import compile_kernel
from lazygrad.codegen.lowering.lower import lower
from lazygrad.codegen.opt import Opt, OptOps, choose
from lazygrad.ir import Ops
from lazygrad.oracle.evaluate import evaluate
from lazygrad.renderer.cstyle import CUDARenderer
from lazygrad.target import launch_of

from .kernels import GRID, equal, random_contents, run
from .test_opt import add, convolution, matmul, row_sum

UPCAST, LOCAL, UNROLL, STAGE, PADTO = (
    OptOps.UPCAST,
    OptOps.LOCAL,
    OptOps.UNROLL,
    OptOps.STAGE,
    OptOps.PADTO,
)
TILED = [
    *(Opt(UPCAST, axis, 4) for axis in (0, 1)),
    *(Opt(LOCAL, axis, 4) for axis in (0, 1)),
    Opt(UNROLL, 0, 4),
    *(Opt(STAGE, 2, data) for data in (1, 2)),
]
#: With what an H100 is known to have, and what the interpreter runs; and as small as a test's products.
H100 = replace(GRID, launch=launch_of("sm_90"))
SMALL = replace(GRID, launch=replace(H100.launch, multiprocessors=4))


def program(ast, opts):
    return compile_kernel(ast, CUDARenderer("sm_90"), opts)


@pytest.mark.parametrize(
    ("ast", "opts"),
    {
        "matmul": (matmul(16, 12, 16), TILED),
        "one copy": (matmul(16, 12, 16), TILED[:-1]),
        "more elements than threads, and no multiple": (
            matmul(15, 6, 10),
            [Opt(LOCAL, 0, 5), Opt(LOCAL, 1, 2), Opt(STAGE, 2, 1), Opt(STAGE, 2, 2)],
        ),
        "all of the reduction at once": (matmul(8, 6, 8), [Opt(LOCAL, 0, 4), Opt(STAGE, 0, 1)]),
        "padded": (matmul(13, 7, 9), [Opt(PADTO, 0, 16), Opt(PADTO, 1, 16), Opt(PADTO, 2, 8), *TILED]),
        "windows": (
            convolution(1, 3, 10, 8),
            [Opt(LOCAL, 2, 2), Opt(LOCAL, 1, 2), Opt(STAGE, 3, 1)],
        ),
        "beside parts of a sum": (
            matmul(8, 16, 4),
            [Opt(LOCAL, 0, 4), Opt(OptOps.GROUP, 0, 4), Opt(STAGE, 2, 2)],
        ),
    }.values(),
    ids=lambda value: "" if isinstance(value, list) else None,
)
def test_results_are_those_of_the_plain_loops(ast, opts):
    contents = random_contents(ast, 5)
    found, expected = run(ast, "GRID", contents, opts=opts), evaluate(ast, contents)
    assert all(equal(a, b) for a, b in zip(found, expected, strict=True))


def test_a_copy_that_is_one_vector_is_written_by_one_thread():
    """All would write the same; on CUDA that is a race."""
    text = program(add(8), [Opt(LOCAL, 0, 4), Opt(STAGE, 0, 1)]).src
    assert re.search(r"if \(lidx0<1\) \{\s*fetch_16\(temp0\+0,data1\+alu0\);\s*\}", text)


def test_threads_wait_twice_in_a_turn():
    """Once until both copies are filled, once until nobody reads them any more."""
    ops = [u.op for u in program(matmul(16, 64, 16), TILED).uops]
    inside = ops[ops.index(Ops.RANGE) : ops.index(Ops.ENDRANGE) + 1]
    assert inside.count(Ops.BARRIER) == 2
    assert inside[-2:] == [Ops.BARRIER, Ops.ENDRANGE]


def test_neighbours_are_loaded_as_vectors():
    """From memory, 16 bytes a thread; from the copies, the places of a thread."""
    spec = program(matmul(16, 64, 16), TILED)
    loads = [u for u in spec.uops if u.op is Ops.LOAD]
    assert {u.dtype.count for u in loads} == {4}


def test_memory_that_vectors_are_loaded_from_is_aligned():
    assert "__shared__ __align__(16) float temp0[" in program(matmul(16, 64, 16), TILED).src
    grouped = program(row_sum(4, 64), [Opt(OptOps.GROUP, 0, 16)])
    assert "__shared__ float temp0[16]" in grouped.src


def test_rows_that_would_share_banks_are_kept_apart():
    """Threads fill neighbours along the reduction, which lie a row of the copy apart: 64 + 4, not 64."""
    opts = [
        Opt(LOCAL, 0, 16),
        Opt(UPCAST, 0, 4),
        Opt(UNROLL, 0, 8),
        Opt(STAGE, 2, 1),
    ]
    (memory,) = (u for u in program(matmul(64, 64, 4), opts).uops if u.op is Ops.DEFINE_LOCAL)
    assert memory.dtype.size == 8 * (64 + 4)


# *** what is chosen


def chosen(ast, target=H100):
    return choose(lower(ast), target)


@pytest.mark.parametrize("sizes", [(64, 64, 64), (40, 100, 72), (128, 33, 64)], ids=str)
def test_products_of_matrices_are_computed_in_blocks(sizes):
    ast = matmul(*sizes)
    opts = chosen(ast, SMALL)
    assert [opt.op for opt in opts].count(STAGE) == 2
    contents = random_contents(ast, 1)
    found, expected = run(ast, SMALL, contents, opts=opts), evaluate(ast, contents)
    assert all(equal(a, b) for a, b in zip(found, expected, strict=True))


def test_convolutions_are_computed_in_blocks():
    """The places of the filter are loops inside. Threads wait for both copies at once, which loops fill."""
    ast = convolution(1, 16, 12, 16, 1)
    opts = chosen(ast, SMALL)
    assert [opt.op for opt in opts].count(STAGE) == 2
    contents = random_contents(ast, 1)
    found, expected = run(ast, SMALL, contents, opts=opts), evaluate(ast, contents)
    assert all(equal(a, b) for a, b in zip(found, expected, strict=True))
    assert [u.op for u in program(ast, opts).uops].count(Ops.BARRIER) == 2


def test_a_large_product_takes_large_blocks():
    """8 x 8 places a thread, where there are enough results for all multiprocessors."""
    opts = chosen(matmul(4096, 4096, 4096))
    places = dict.fromkeys((0, 1), 1)
    for opt in opts:
        if opt.op is UPCAST:
            places[opt.axis] *= opt.amount
    assert places == {0: 8, 1: 8}


def test_few_results_take_small_blocks():
    """Of 256 x 256 results every multiprocessor has some."""
    opts = chosen(matmul(256, 256, 256))
    block = 1
    for opt in opts:
        if opt.op in (UPCAST, LOCAL):
            block *= opt.amount
    assert 256 * 256 / block >= 64


def test_where_there_are_few_blocks_threads_share_sums():
    ops = [opt.op for opt in chosen(matmul(16, 4096, 16))]
    assert OptOps.GROUP in ops
    assert STAGE not in ops


@pytest.mark.parametrize("target", [GRID, replace(H100, has_local=False)], ids=["unknown", "no memory"])
def test_where_little_is_known_nothing_is_copied(target):
    assert STAGE not in [opt.op for opt in chosen(matmul(256, 256, 256), target)]


def test_what_is_no_product_is_left_alone():
    assert STAGE not in [opt.op for opt in chosen(row_sum(4096, 4096))]

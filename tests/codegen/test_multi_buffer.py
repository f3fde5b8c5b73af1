"""AHEAD: copies of a workgroup that are on the way while others are read."""

from __future__ import annotations

import pytest

from lazygrad.codegen.compile import compile_kernel
from lazygrad.codegen.lowering.lower import lower
from lazygrad.codegen.opt import KernelOptError, Opt, OptOps, apply_opts, choose
from lazygrad.dtype import dtypes
from lazygrad.ir import Ops
from lazygrad.ir.loops_text import loops_text
from lazygrad.oracle.evaluate import evaluate
from lazygrad.renderer.cstyle import CUDARenderer
from lazygrad.renderer.cstyle.dialects import cuda_target
from lazygrad.renderer.fetches import without_fetches
from lazygrad.runtime._cuda_compiler import CUDACompiler
from tests.helpers import needs

from .kernels import equal, load, plain, random_contents, reduce, run, sink, store
from .test_factors import AHEAD as TARGET
from .test_factors import AT_ONCE, COPIES
from .test_opt import matmul
from .test_shared_stages import TILED
from .test_warp_matrices import LOCAL, PADTO, TC, UPCAST

half = dtypes.float16
MATRICES = [Opt(TC, 0, 16), Opt(UPCAST, 0, 2), Opt(LOCAL, 1, 2), *COPIES]


def ahead(copies, axis=2):
    return Opt(OptOps.AHEAD, axis, copies)


def steps(ast, opts):
    return compile_kernel(ast, CUDARenderer("sm_90"), opts).uops


CASES = {
    "halves": (matmul(32, 96, 16, half), MATRICES),
    "floats": (matmul(16, 32, 16), TILED),
    "a border": (
        matmul(13, 21, 9),
        [Opt(PADTO, 0, 16), Opt(PADTO, 1, 16), Opt(PADTO, 2, 24), *TILED],
    ),
    "words": (
        matmul(20, 72, 10, half),
        [Opt(PADTO, 0, 32), Opt(PADTO, 1, 16), Opt(PADTO, 2, 80), Opt(TC, 0, 16), *COPIES],
    ),
    "one copy": (matmul(16, 32, 16), TILED[:-1]),
}


@pytest.mark.parametrize("copies", [2, 3])
@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_the_plain_loops(name, copies):
    ast, opts = CASES[name]
    contents = random_contents(ast, 3, -8, 8)
    found, expected = run(ast, TARGET, contents, opts=[*opts, ahead(copies)]), evaluate(ast, contents)
    assert all(equal(a, b) for a, b in zip(found, expected, strict=True))


def test_the_loops(golden):
    assert golden(loops_text(apply_opts(lower(matmul(32, 96, 16, half)), [*MATRICES, ahead(2)], TARGET)))


def test_threads_meet_once_in_a_turn():
    """After they have waited for what this turn reads, and before they fetch for a later one."""
    ops = [u.op for u in steps(matmul(32, 96, 16, half), [*MATRICES, ahead(2)])]
    loop = ops.index(Ops.WAIT) - 1
    assert Ops.FETCH in ops[:loop]
    assert ops[loop : loop + 3] == [Ops.RANGE, Ops.WAIT, Ops.BARRIER]
    assert ops.count(Ops.BARRIER) == ops.count(Ops.WAIT) == 1
    assert ops[loop:].index(Ops.FETCH) < ops[loop:].index(Ops.WMMA)


def test_with_three_copies_the_last_group_stays_on_the_way():
    uops = steps(matmul(32, 96, 16, half), [*MATRICES, ahead(3)])
    assert [u.arg for u in uops if u.op is Ops.WAIT] == [1]
    loop = next(n for n, u in enumerate(uops) if u.op is Ops.WAIT)
    assert sum(u.op is Ops.COMMIT for u in uops[loop:]) == 1


def test_other_languages_run_the_same_steps():
    """As loads and stores: what is filled in a turn is not what it reads."""
    uops = without_fetches(steps(matmul(32, 96, 16, half), [*MATRICES, ahead(2)]))
    assert {Ops.FETCH, Ops.COMMIT, Ops.WAIT}.isdisjoint(u.op for u in uops)
    assert sum(u.op is Ops.BARRIER for u in uops) == 1


@needs("nvrtc")
@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize("copies", [2, 3])
def test_nvidias_compiler_takes_it(arch, copies):
    spec = compile_kernel(matmul(32, 96, 16, half), CUDARenderer(arch), [*MATRICES, ahead(copies)])
    assert "cp.async.wait" in spec.src
    assert CUDACompiler(arch).compile(spec.src)


def sums_of_the_same(rows, times, columns):
    """Each row of (rows, columns) times several others, of (rows, times, columns), all summed."""
    x = load(1, plain(rows, columns).reshape((rows, 1, columns)).expand((rows, times, columns)))
    return sink(store(0, reduce(x * load(2, plain(rows, times, columns)), Ops.ADD, 1, 2)))


@pytest.mark.parametrize(
    ("ast", "opts", "target", "message"),
    [
        (matmul(16, 32, 16), [*TILED, ahead(2)], AT_ONCE, "has no copies that threads need not wait for"),
        (matmul(16, 32, 16), [*TILED, ahead(1)], TARGET, "there are 2 to 4 copies"),
        (matmul(16, 32, 16), [*TILED[:-2], ahead(2)], TARGET, "apply STAGE before"),
        (matmul(16, 32, 16), [*TILED, ahead(2), ahead(2)], TARGET, "AHEAD was applied"),
        (matmul(16, 8, 16), [*TILED, ahead(2)], TARGET, "more than 2 turns"),
        (
            matmul(16, 4, 16),
            [Opt(OptOps.UNROLL, 0, 4), Opt(OptOps.STAGE, 0, 1), ahead(2, 0)],
            TARGET,
            "its turns are threads and workgroups, which run at once",
        ),
        (
            sums_of_the_same(32, 3, 8),
            [Opt(LOCAL, 0, 16), Opt(OptOps.STAGE, 2, 1), ahead(2)],
            TARGET,
            "again and again",
        ),
        (matmul(16, 1024, 16), [*TILED[:-3], Opt(OptOps.UNROLL, 0, 64), *COPIES, ahead(4)], TARGET, "bytes"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
def test_what_is_refused(ast, opts, target, message):
    with pytest.raises(KernelOptError, match=message):
        apply_opts(lower(ast), opts, target)


# *** what is chosen


def chosen(ast, arch):
    return [opt.amount for opt in choose(lower(ast), cuda_target(arch)) if opt.op is OptOps.AHEAD]


def test_large_products_are_fetched_ahead_where_copies_are_asynchronous():
    for dtype in (half, dtypes.float):
        ast = matmul(4096, 4096, 4096, dtype)
        assert [chosen(ast, arch) for arch in ("sm_90", "sm_80", "sm_75")] == [[2], [2], []]


def test_borders_that_are_copied_word_by_word_are_not():
    assert not chosen(matmul(1000, 1000, 1000, half), "sm_90")

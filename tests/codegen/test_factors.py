"""What tensor cores multiply is copied as it lies in memory: once, 16 bytes at a time, and read as words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lazygrad.codegen.compile import compile_kernel
from lazygrad.codegen.lowering.lower import lower
from lazygrad.codegen.opt import Opt, apply_opts
from lazygrad.dtype import dtypes
from lazygrad.ir import Ops
from lazygrad.ir.loops_text import loops_text
from lazygrad.oracle.evaluate import evaluate
from lazygrad.renderer.cstyle import CUDARenderer, MetalRenderer
from lazygrad.renderer.cstyle.dialects import cuda_target
from lazygrad.renderer.fetches import without_fetches
from lazygrad.runtime._cuda_compiler import CUDACompiler
from tests.helpers import needs

from .kernels import equal, load, plain, random_contents, reduce, run, sink, store
from .test_contraction import product
from .test_opt import matmul
from .test_warp_matrices import LOCAL, PADTO, STAGE, TC, TILED, UNROLL, UPCAST, WARPS

half, int8 = dtypes.float16, dtypes.int8
#: With copies that are on the way until a thread waits for them, and with such as are done at once.
AHEAD, AT_ONCE = (replace(WARPS, copy_sizes=(4, 8, 16), async_copies=ahead) for ahead in (True, False))
COPIES = [Opt(STAGE, 2, data) for data in (1, 2)]
FEWER = [Opt(TC, 0, 16), Opt(UPCAST, 0, 2), Opt(LOCAL, 1, 2), Opt(UNROLL, 0, 2), *COPIES]


def halves(m, k, n, **orders):
    return product(m, k, n, dtype=half, **orders)


def gram(n, k):
    """a @ a.T: both factors are of one input."""
    x = load(1, plain(n, 1, k).expand((n, n, k)), half, size=n * k)
    y = load(1, plain(1, n, k).expand((n, n, k)), half, size=n * k)
    return sink(store(0, reduce(x.cast(dtypes.float) * y.cast(dtypes.float), Ops.ADD, 2)))


CASES = {
    "tiles": (matmul(64, 64, 32, half), TILED),
    "rows along the sum": (halves(32, 64, 16, transposed_b=True), FEWER),
    "columns of rows": (halves(32, 64, 16, transposed_a=True), FEWER),
    "one input": (gram(32, 64), FEWER[:-1]),
    "bfloat16": (matmul(32, 48, 16, dtypes.bfloat16), [Opt(TC, 0, 16), *COPIES]),
    "bytes": (product(16, 96, 16, dtype=int8, summed=dtypes.int), [Opt(TC, 0, 32), *COPIES]),
}


@pytest.mark.parametrize("target", [AHEAD, AT_ONCE, WARPS], ids=["asynchronous", "at once", "stored"])
@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_the_plain_loops(name, target):
    ast, opts = CASES[name]
    contents = random_contents(ast, 3, -8, 8)
    found, expected = run(ast, target, contents, opts=opts), evaluate(ast, contents)
    assert all(equal(a, b) for a, b in zip(found, expected, strict=True))


def test_the_copies(golden):
    """Two, as their sources lie; rows are 40 numbers apart, not 32, which would be in the same banks."""
    assert golden(loops_text(apply_opts(lower(halves(64, 128, 64)), TILED, WARPS)))


@pytest.mark.parametrize("name", CASES)
def test_factors_are_copied_once(name):
    ast, opts = CASES[name]
    uops = compile_kernel(ast, CUDARenderer("sm_90"), opts).uops
    assert sum(u.op is Ops.DEFINE_LOCAL for u in uops) == 2
    assert not any(u.op is Ops.STORE and u.src[0].src[0].op is Ops.DEFINE_LOCAL for u in uops)
    assert {u.arg * u.src[0].dtype.base.itemsize for u in uops if u.op is Ops.FETCH} <= {8, 16}


def test_neighbours_of_the_sum_are_read_as_words():
    """Of both factors, where the rows of both are along it, and a warp cannot load them together."""
    target = cuda_target("sm_90")
    cores = tuple(replace(core, loads=False) for core in target.tensor_cores)
    renderer = CUDARenderer(replace(target, tensor_cores=cores))
    uops = compile_kernel(halves(32, 64, 16, transposed_b=True), renderer, FEWER).uops
    assert {u.dtype for u in uops if u.op is Ops.LOAD} == {dtypes.uint32}


def test_a_border_is_copied_word_by_word():
    """Conditions differ from number to number there."""
    ast = matmul(20, 40, 10, half)
    opts = [Opt(PADTO, 0, 32), Opt(PADTO, 1, 16), Opt(PADTO, 2, 32), Opt(TC, 0, 16), *COPIES]
    assert not any(u.op is Ops.FETCH for u in compile_kernel(ast, CUDARenderer("sm_90"), opts).uops)
    contents = random_contents(ast, 3, -8, 8)
    found, expected = run(ast, AHEAD, contents, opts=opts), evaluate(ast, contents)
    assert all(equal(a, b) for a, b in zip(found, expected, strict=True))


def test_other_languages_load_and_store():
    """The same steps, where a language has no copies: element by element."""
    threads = [Opt(LOCAL, axis, 4) for axis in (0, 1)]
    spec = compile_kernel(matmul(8, 64, 8), CUDARenderer("sm_90"), [*threads, Opt(UNROLL, 0, 4), *COPIES])
    assert any(u.op is Ops.FETCH for u in spec.uops)
    plain = without_fetches(spec.uops)
    assert {Ops.FETCH, Ops.WAIT}.isdisjoint(u.op for u in plain)
    assert "*(temp0+" in MetalRenderer().render("k", spec.uops)


@needs("nvrtc")
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", "sm_100"])
def test_nvidias_compiler_takes_the_copies(arch):
    compiler = CUDACompiler(arch)
    steps = 8 if arch == "sm_75" else 16
    spec = compile_kernel(matmul(64, 64, 32, half), CUDARenderer(arch), [Opt(TC, 0, steps), *TILED[1:]])
    assert ("cp.async.cg" in spec.src) == (arch != "sm_75")
    assert "uint4" in spec.src or arch != "sm_75"
    assert compiler.compile(spec.src)

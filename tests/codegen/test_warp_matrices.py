"""TC on a grid: products of matrices by the tensor cores that the threads of a warp share."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lazygrad import Context
from lazygrad.codegen.compile import compile_kernel
from lazygrad.codegen.lowering.lower import lower
from lazygrad.codegen.opt import KernelOptError, Opt, OptOps, apply_opts, choose
from lazygrad.dtype import dtypes
from lazygrad.ir import Ops
from lazygrad.ir.loops_text import loops_text
from lazygrad.oracle.evaluate import evaluate
from lazygrad.renderer.cstyle import CUDARenderer
from lazygrad.runtime._cuda_compiler import CUDACompiler
from lazygrad.target import launch_of, tensor_cores_of
from tests.helpers import needs

from .kernels import GRID, equal, random_contents, run
from .test_contraction import product
from .test_opt import matmul, row_sum

TC, UPCAST, LOCAL, UNROLL, STAGE, PADTO = (
    OptOps.TC,
    OptOps.UPCAST,
    OptOps.LOCAL,
    OptOps.UNROLL,
    OptOps.STAGE,
    OptOps.PADTO,
)
half = dtypes.float16
#: The interpreter with an H100's tensor cores, and with as few multiprocessors as a test's products need.
WARPS = replace(GRID, tensor_cores=tensor_cores_of("sm_90"))
SMALL = replace(WARPS, launch=replace(launch_of("sm_90"), multiprocessors=2))
TILED = [
    Opt(TC, 0, 16),
    *(Opt(UPCAST, axis, 2) for axis in (0, 1)),
    *(Opt(LOCAL, axis, 2) for axis in (0, 1)),
    Opt(UNROLL, 0, 2),
    *(Opt(STAGE, 2, data) for data in (1, 2)),
]


COPIES = [Opt(STAGE, 2, data) for data in (1, 2)]


def same(ast, opts, target=WARPS, low=-8, high=8):
    contents = random_contents(ast, 3, low, high)
    found, expected = run(ast, target, contents, opts=opts), evaluate(ast, contents)
    return all(equal(a, b) for a, b in zip(found, expected, strict=True))


def test_what_a_thread_holds(golden):
    """In the sums it is (g + 8u, 2t + v); of the rows it loads g and g + 8, of the columns g."""
    assert golden(loops_text(apply_opts(lower(matmul(16, 32, 8, half)), TILED[:1], WARPS)))


@pytest.mark.parametrize(
    ("ast", "opts"),
    [
        pytest.param(matmul(16, 32, 8, half), TILED[:1], id="one matrix"),
        pytest.param(matmul(32, 48, 24, half), TILED[:1], id="several"),
        pytest.param(matmul(64, 64, 32, half), TILED, id="tiles and copies"),
        pytest.param(matmul(64, 64, 32, half), TILED[:-1], id="one copy"),
        pytest.param(matmul(32, 48, 16, dtypes.bfloat16), TILED[:1], id="bfloat16"),
        pytest.param(
            matmul(20, 40, 10, half),
            [Opt(PADTO, 0, 32), Opt(PADTO, 1, 16), Opt(PADTO, 2, 16), *TILED[:1]],
            id="a border",
        ),
        pytest.param(product(16, 96, 8, dtype=dtypes.int8, summed=dtypes.int), [Opt(TC, 0, 32)], id="bytes"),
    ],
)
def test_results_are_those_of_the_plain_loops(ast, opts):
    assert same(ast, opts)


@pytest.mark.parametrize("dtype", [dtypes.fp8e4m3, dtypes.fp8e5m2], ids=["e4m3", "e5m2"])
@pytest.mark.parametrize("opts", [[], COPIES], ids=["from memory", "from copies"])
def test_eight_bits_of_a_float(dtype, opts):
    assert same(product(16, 96, 8, dtype=dtype), [Opt(TC, 0, 32), *opts])


def test_eight_bits_of_a_float_are_there_from_ada_on():
    cores = {arch: [core.element for core in tensor_cores_of(arch)] for arch in ("sm_86", "sm_89", "sm_90a")}
    assert [dtypes.fp8e4m3 in found for found in cores.values()] == [False, True, True]


# *** tf32


@pytest.mark.parametrize("opts", [[], COPIES], ids=["from memory", "from copies"])
def test_float32_on_request(opts):
    with Context(TF32=1):
        assert same(matmul(16, 24, 8), [Opt(TC, 0, 8), *opts])


def test_the_last_13_bits_of_a_factor_are_not_read():
    """1 + 2**-10 + 2**-11 counts as 1 + 2**-10; sums are in float32."""
    ast = matmul(16, 16, 8)
    contents = [[0.0] * 128, [1 + 2.0**-10 + 2.0**-11] * 256, [1.0] * 128]
    with Context(TF32=1):
        (found, *_) = run(ast, WARPS, contents, opts=[Opt(TC, 0, 8)])
    assert found == [16 * (1 + 2.0**-10)] * 128
    assert evaluate(ast, contents)[0] == [16 * (1 + 2.0**-10 + 2.0**-11)] * 128


def test_without_the_request_float32_is_refused():
    with pytest.raises(KernelOptError, match="no product of matrices"):
        apply_opts(lower(matmul(16, 16, 8)), [Opt(TC, 0, 8)], WARPS)


def test_large_products_take_it_where_it_is_asked_for():
    ast = matmul(64, 64, 64)
    with Context(TF32=1):
        assert [opt.op for opt in choose(lower(ast), SMALL)].count(TC) == 1


# *** others


def test_turing_takes_8_steps():
    assert same(
        matmul(16, 16, 8, half), [Opt(TC, 0, 8)], replace(GRID, tensor_cores=tensor_cores_of("sm_75"))
    )


def test_each_instruction_stands_once_for_four_sums():
    spec = compile_kernel(matmul(64, 64, 32, half), CUDARenderer("sm_90"), TILED)
    steps = [u for u in spec.uops if u.op is Ops.WMMA]
    assert len(steps) == 2 * 2 * 2
    assert [len(u.src) for u in steps] == [4 + 1 + 1] * 8
    assert spec.src.count("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32") == 1


@needs("nvrtc")
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_89", "sm_90", "sm_100"])
def test_nvidias_compiler_takes_each_instruction(arch):
    compiler = CUDACompiler(arch)
    for core in tensor_cores_of(arch):
        ast = product(16 * core.warps, 2 * core.steps, 8, dtype=core.element, summed=core.total)
        with Context(TF32=1):
            spec = compile_kernel(ast, CUDARenderer(arch), [Opt(TC, 0, core.steps)])
        assert "mma.sync" in spec.src
        assert compiler.compile(spec.src)


@pytest.mark.parametrize(
    ("ast", "opts", "message"),
    [
        (
            matmul(16, 32, 8),
            TILED[:1],
            "matrices of bfloat16 by 16, bfloat16 by 32, .*, fp8e4m3 by 32, .*, half by 64",
        ),
        (matmul(16, 32, 8, half), [Opt(TC, 0, 4)], "no product of matrices"),
        (matmul(16, 32, 12, half), TILED[:1], "no product of matrices"),
        (matmul(16, 16, 8, half), TILED[:1], "no loop would be left along the axis"),
        (row_sum(16, 32), TILED[:1], "no product of matrices"),
        (matmul(32, 32, 8, half), [Opt(LOCAL, 0, 2), *TILED[:1]], "TC comes before LOCAL"),
        (matmul(32, 64, 8, half), [*TILED[:1], Opt(OptOps.GROUP, 0, 2)], "compute matrices together"),
        (
            matmul(16, 32, 8, half),
            [*TILED[:1], Opt(OptOps.UNROLL, 0, 2)],
            "no loop would be left for the sums",
        ),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
def test_what_is_refused(ast, opts, message):
    with pytest.raises(KernelOptError, match=message):
        apply_opts(lower(ast), opts, WARPS)


# *** what is chosen


@pytest.mark.parametrize("sizes", [(64, 64, 64), (72, 96, 40)], ids=str)
def test_products_of_halves_take_tensor_cores(sizes):
    ast = matmul(*sizes, half)
    opts = choose(lower(ast), SMALL)
    assert [opt.op for opt in opts].count(TC) == 1
    assert same(ast, opts, SMALL)


def test_products_of_float32_do_not():
    assert TC not in [opt.op for opt in choose(lower(matmul(64, 64, 64)), SMALL)]

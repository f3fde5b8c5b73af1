"""What the threads of a warp load together for tensor cores (PTX's `ldmatrix`): the text is executed, and
compared with the interpreter.
"""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from lazygrad import Context
from lazygrad.codegen.compile import compile_kernel
from lazygrad.codegen.opt import Opt, OptOps
from lazygrad.dtype import DType, dtypes
from lazygrad.ir import Ops
from lazygrad.renderer import ProgramSpec
from lazygrad.renderer.cstyle import CUDARenderer
from tests.codegen.test_contraction import product
from tests.helpers import needs

from .test_gpu_races import problem_of

TC, UPCAST, LOCAL = OptOps.TC, OptOps.UPCAST, OptOps.LOCAL
COPIES = [Opt(OptOps.STAGE, 2, data) for data in (1, 2)]
BOTH = [Opt(UPCAST, 0, 2), Opt(UPCAST, 1, 2)]
half, bf16, int8 = dtypes.float16, dtypes.bfloat16, dtypes.int8

#: Steps; the type; which factors lie the other way round; the architecture; other Opts than the copies.
CASES: dict[str, tuple[int, DType, str, str, list[Opt]]] = {
    "columns across the steps": (16, half, "", "sm_80", BOTH),
    "along the steps": (16, bf16, "b", "sm_80", BOTH),
    "rows across the steps": (16, bf16, "a", "sm_100", BOTH[:1]),
    "several warps": (16, half, "", "sm_90", [Opt(LOCAL, 0, 2), Opt(LOCAL, 1, 2), Opt(OptOps.UNROLL, 0, 2)]),
    "bytes": (32, int8, "b", "sm_80", BOTH),
    "Turing": (8, half, "", "sm_75", BOTH),
    "fp8": (32, dtypes.fp8e4m3, "b", "sm_89", []),
    "tf32": (8, dtypes.float32, "b", "sm_80", BOTH),
}
FAST = ("columns across the steps", "bytes", "rows across the steps")


def spec_of(name: str) -> ProgramSpec:
    steps, dtype, turned, arch, opts = CASES[name]
    ast = product(
        32, 4 * steps, 16, dtype=dtype, summed=dtypes.int if dtype is int8 else dtypes.float,
        transposed_a="a" in turned, transposed_b="b" in turned,
    )  # fmt: skip
    with Context(TF32=1):
        return compile_kernel(ast, CUDARenderer(arch), [Opt(TC, 0, steps), *opts, *COPIES])


@needs("g++")
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in FAST else pytest.mark.slow) for n in CASES]
)
def test_the_text_does_what_the_interpreter_does(name: str) -> None:
    spec = spec_of(name)
    assert "ldmatrix" in spec.src
    assert not any(u.op is Ops.LOAD for u in spec.uops)
    assert problem_of(spec) == ""


@needs("nvrtc")
@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_nvidias_compiler_takes_it(name: str) -> None:
    from lazygrad.runtime._cuda_compiler import CUDACompiler

    assert CUDACompiler(CASES[name][3]).compile(spec_of(name).src)


def test_each_matrix_is_loaded_once() -> None:
    """Two of the rows and two of the columns for four products."""
    calls = re.findall(r"^ +(ldmatrix\w+|mma\w+)\(", spec_of("columns across the steps").src, re.MULTILINE)
    assert sorted(calls) == ["ldmatrix_2_turned"] * 2 + ["ldmatrix_4"] * 2 + ["mma_half_16"] * 4


PLANTED = {
    "another row": (r"ldmatrix_4\((.*),temp0\+", r"ldmatrix_4(\1,temp0+8+", "the interpreter computes"),
    "no multiple of 16": (r"ldmatrix_4\((.*),temp0\+", r"ldmatrix_4(\1,temp0+4+", "MISALIGNED"),
    "not turned": ("ldmatrix_2_turned", "ldmatrix_2", "the interpreter computes"),
    "no barrier": (r"__syncthreads\(\);", "", "race|to which a copy is on the way"),
}


@needs("g++")
@pytest.mark.slow
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(name: str) -> None:
    old, new, report = PLANTED[name]
    spec = spec_of("columns across the steps")
    wrong, changes = re.subn(old, new, spec.src)
    assert changes
    assert re.search(report, problem_of(replace(spec, src=wrong)))

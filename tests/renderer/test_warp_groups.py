"""Products that four warps begin together (PTX's `wgmma`): the text is executed, its descriptors decoded.

The emulation (tests/runtime/emulated_cuda/machine.cpp) reads shared memory where a descriptor says that an
element lies, when the threads wait for the product; until then the sums are NaN.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lazygrad import Context
from lazygrad.codegen.compile import compile_kernel
from lazygrad.codegen.lowering.lower import lower
from lazygrad.codegen.opt import Opt, OptOps, choose
from lazygrad.dtype import DType, dtypes
from lazygrad.ir import Ops
from lazygrad.renderer import ProgramSpec
from lazygrad.renderer.cstyle import CUDARenderer
from lazygrad.renderer.cstyle.dialects import cuda_target
from lazygrad.runtime._cuda_compiler import CUDACompiler
from lazygrad.target import PackedTile
from tests.codegen.test_contraction import product
from tests.helpers import needs

from .test_gpu_races import Memory, checked, problem_of

TC, UPCAST, LOCAL = OptOps.TC, OptOps.UPCAST, OptOps.LOCAL
COPIES = [Opt(OptOps.STAGE, 2, data) for data in (1, 2)]
AHEAD = [*COPIES, Opt(OptOps.AHEAD, 2, 2)]
half, bf16, int8, float32 = dtypes.float16, dtypes.bfloat16, dtypes.int8, dtypes.float32

#: Rows, steps, columns; the type; which factors lie the other way round; the Opts; the columns of a `wgmma`.
CASES: dict[str, tuple[tuple[int, int, int], DType, str, list[Opt], int]] = {
    "halves": ((64, 64, 16), half, "", [Opt(TC, 0, 32), Opt(UPCAST, 1, 2), *COPIES], 16),
    "lines of 128 bytes": ((64, 192, 128), half, "", [Opt(TC, 0, 64), Opt(UPCAST, 1, 16), *AHEAD], 128),
    "columns along the steps": ((64, 128, 24), bf16, "b", [Opt(TC, 0, 64), Opt(UPCAST, 1, 3), *COPIES], 24),
    "rows across the steps": ((64, 64, 32), bf16, "a", [Opt(TC, 0, 32), Opt(UPCAST, 1, 4), *COPIES], 32),
    "both": ((64, 64, 16), half, "ab", [Opt(TC, 0, 32), Opt(UPCAST, 1, 2), *COPIES], 16),
    "two groups and two products": (
        (256, 96, 64), half, "",
        [Opt(TC, 0, 32), Opt(UPCAST, 0, 2), Opt(UPCAST, 1, 8), Opt(LOCAL, 0, 2), *AHEAD], 64,
    ),
    "bytes": ((64, 128, 16), int8, "b", [Opt(TC, 0, 64), Opt(UPCAST, 1, 2), *COPIES], 16),
    "tf32": ((64, 64, 16), float32, "b", [Opt(TC, 0, 16), Opt(UPCAST, 1, 2), *COPIES], 16),
    # where it cannot be: rows of bytes across the steps, and columns of two groups in one line
    "bytes across": ((64, 128, 8), int8, "", [Opt(TC, 0, 64), *COPIES], 0),
    "half a line": (
        (64, 64, 32), half, "", [Opt(TC, 0, 32), Opt(UPCAST, 1, 2), Opt(LOCAL, 1, 2), *COPIES], 0,
    ),
    "no copies": ((64, 64, 8), half, "", [Opt(TC, 0, 32)], 0),
}  # fmt: skip


def spec_of(name: str, arch: str = "sm_90") -> ProgramSpec:
    sizes, dtype, turned, opts, columns = CASES[name]
    total = dtypes.int if dtype is int8 else float32
    ast = product(*sizes, dtype=dtype, summed=total, transposed_a="a" in turned, transposed_b="b" in turned)
    with Context(TF32=1):
        spec = compile_kernel(ast, CUDARenderer(arch), opts)
    assert {u.arg.columns for u in spec.uops if u.op is Ops.WMMA} == {columns}
    return spec


def bits_of(numbers: np.ndarray[Any, Any], dtype: DType) -> np.ndarray[Any, Any]:
    """Integers that every type holds, in memory."""
    if dtype is bf16:
        return (numbers.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return numbers.astype({half: np.float16, int8: np.int8, float32: np.float32}[dtype])


def run(spec: ProgramSpec, name: str) -> tuple[bool, str]:
    """Whether the results are numpy's, and what the checker says."""
    (m, k, n), dtype, turned, _, _ = CASES[name]
    rng = np.random.default_rng(5)
    a, b = rng.integers(-9, 10, (m, k)), rng.integers(-9, 10, (k, n))
    memory = [Memory(np.zeros((m, n), np.int32 if dtype is int8 else np.float32))]
    memory += [Memory(bits_of(x.T.copy() if s in turned else x, dtype)) for x, s in ((a, "a"), (b, "b"))]
    outcome = checked(spec.src, spec.global_size or (1, 1, 1), spec.local_size or (1, 1, 1), memory)
    found = np.frombuffer(memory[0].tobytes(), np.int32 if dtype is int8 else np.float32)
    return np.array_equal(found.reshape(m, n), a @ b), f"{outcome.fault} {outcome.report}".strip()


SLOW = ("both", "two groups and two products", "half a line", "no copies")


@needs("g++")
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow if n in SLOW else ()) for n in CASES]
)
def test_the_text_computes_what_numpy_does(name: str) -> None:
    """By `wgmma`, or by one warp's `mma` where a group of warps cannot."""
    spec = spec_of(name)
    assert ("wgmma.mma_async" in spec.src) == (CASES[name][-1] > 0)
    assert run(spec, name) == (True, "")


@needs("g++")
@pytest.mark.parametrize("name", ["halves", "rows across the steps", "bytes", "tf32", "no copies"])
@pytest.mark.slow
def test_the_interpreter_agrees(name: str) -> None:
    assert problem_of(spec_of(name)) == ""


#: The descriptors' forms in the text that is changed below: of the rows, and of the columns.
ROWS, COLUMNS = "0x4000004000010000", "0x4000004002000000"
#: What is changed in a text, and what is reported; "" = the numbers are wrong.
PLANTED = {
    "no wait": (r' *asm volatile\("wgmma.wait_group.*\n', "", "has not waited for its products"),
    "no fence": (r' *asm volatile\("wgmma.fence.*\n', "", "multiplies with no wgmma.fence"),
    "no fence of proxies": (r"(?<=  )wgmma_shared\(\);", "", "with no fence between the proxies"),
    "no barrier": (r"__syncthreads\(\);", "", "race|to which a copy is on the way"),
    "another mode": (ROWS, "0x8000004000010000", ""),
    "another stride": (ROWS, "0x4000008000010000", "outside of the shared arrays"),
}
#: Others.
MORE_PLANTED = {
    "no commit": (r' *asm volatile\("wgmma.commit_group.*\n', "", "has not waited for its products"),
    "no wait for copies": (r"fetch_wait_0\(\);", "", "to which a copy is on the way"),
    "beside": (r"matrix_at\(temp0\+", "matrix_at(temp0+8+", ""),
    "beyond": (r"matrix_at\(temp1\+", "matrix_at(temp1+16384+", "outside of the shared arrays"),
    "lines that are not swapped": (COLUMNS, "0x0000004002000000", ""),
    "another panel": (COLUMNS, "0x4000004001000000", ""),
    "the second step": (r"\(a\+2\)", "(a+4)", ""),
    "not transposed": (r",p,1,1,0,1;", ",p,1,1,0,0;", ""),
}


def found(old: str, new: str, report: str) -> bool:
    spec = spec_of("lines of 128 bytes")
    wrong, changes = re.subn(old, new, spec.src)
    assert changes
    right, said = run(replace(spec, src=wrong), "lines of 128 bytes")
    return re.search(report, said) is not None if report else not right


@needs("g++")
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(name: str) -> None:
    assert found(*PLANTED[name])


@needs("g++")
@pytest.mark.slow
@pytest.mark.parametrize("name", MORE_PLANTED)
def test_another_planted_fault_is_found(name: str) -> None:
    assert found(*MORE_PLANTED[name])


@needs("g++")
@pytest.mark.slow
def test_threads_of_a_group_multiply_the_same() -> None:
    spec = spec_of("halves")
    wrong = re.sub(r"matrix_at\(temp0\+", "matrix_at(temp0+(threadIdx.z==0?512:0)+", spec.src)
    wrong = re.sub(r"matrix_at\(temp0,", "matrix_at(temp0+(threadIdx.z==0?512:0),", wrong)
    assert "multiply different matrices" in run(replace(spec, src=wrong), "halves")[1]


@needs("nvrtc")
@pytest.mark.parametrize(
    "name", ["halves", *[pytest.param(n, marks=pytest.mark.slow) for n in CASES if n != "halves"]]
)
def test_nvidias_compiler_takes_it(name: str) -> None:
    compiler = CUDACompiler("sm_90")
    assert compiler.arch == "sm_90a"
    assert compiler.compile(spec_of(name).src)


# *** how matrices lie


@pytest.mark.parametrize("line", [16, 32, 64])
def test_panels_hold_each_element_once(line: int) -> None:
    panel = PackedTile(False, line, 16, 2)
    places = [panel.index(step, column) for step in range(16) for column in range(2 * line)]
    assert sorted(places) == list(range(32 * line))


@pytest.mark.parametrize("line", [16, 32, 64])
def test_chunks_of_8_lines_lie_in_all_banks(line: int) -> None:
    panel = PackedTile(True, line, 64, 2)
    for chunk in range(0, line, 8):
        assert {panel.index(row, chunk) // 8 % 8 for row in range(8)} == set(range(8))


def test_shared_arrays_begin_where_swapping_does() -> None:
    """Lines of 64 and of 128 bytes, 8 of them."""
    assert re.findall(r"__align__\((\d+)\)", spec_of("two groups and two products").src) == ["512", "1024"]


# *** what is chosen


def chosen(dtype: DType, arch: str, turned: bool = False) -> Opt:
    """How matrices of 256 are multiplied by a GPU of so few multiprocessors that each has a block."""
    target = cuda_target(arch)
    small = replace(target, launch=replace(target.launch, multiprocessors=2))
    total = dtypes.int if dtype is int8 else float32
    ast = product(256, 256, 256, dtype=dtype, summed=total, transposed_b=turned)
    return next(opt for opt in choose(lower(ast), small) if opt.op is TC)


def test_hopper_takes_groups_of_warps() -> None:
    assert chosen(half, "sm_90").amount in (32, 64)
    assert chosen(int8, "sm_90", turned=True).amount in (64, 128)
    assert [chosen(half, arch).amount for arch in ("sm_80", "sm_100")] == [16, 16]


def test_borders_are_left_to_single_warps() -> None:
    """Their words are copied one by one."""
    target = cuda_target("sm_90")
    small = replace(target, launch=replace(target.launch, multiprocessors=2))
    opts = choose(lower(product(200, 256, 200, dtype=half)), small)
    assert [opt.amount for opt in opts if opt.op is TC] == [16]


def test_bytes_across_the_steps_are_left_to_single_warps() -> None:
    assert chosen(int8, "sm_90").amount == 32

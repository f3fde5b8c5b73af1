"""CUDA's texts under a checker of races and of bounds: every access of every thread is looked at
(tests/runtime/emulated_cuda/machine.cpp), for each kernel with Opts that share work among threads.
"""

from __future__ import annotations

import ctypes
import mmap
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lazygrad import Context
from lazygrad.codegen.compile import compile_kernel
from lazygrad.codegen.opt import KernelOptError, Opt, OptOps
from lazygrad.direct.one_pass.grid.grid_blocks import Block, core_for
from lazygrad.direct.one_pass.grid.write_matrices import matrix_program
from lazygrad.dtype import DType, dtypes
from lazygrad.ir import Ops, UOp
from lazygrad.renderer import ProgramSpec
from lazygrad.renderer.cstyle import CUDARenderer
from lazygrad.renderer.cstyle.dialects import cuda_target
from tests.codegen.test_contraction import product
from tests.codegen.test_one_pass_grid import attention, parts_of, reference
from tests.codegen.test_opt import convolution, matmul
from tests.helpers import needs
from tests.runtime.emulated_cuda.machine import Outcome, Text, launch

from .support import GPU_RENDERERS
from .test_gpu_runs import KERNELS, MEETING, SHUFFLED, contents, interpreted, shuffled
from .test_kernels import ast_of

pytestmark = needs("g++")

LOCAL, GROUP, GROUPTOP, UPCAST = OptOps.LOCAL, OptOps.GROUP, OptOps.GROUPTOP, OptOps.UPCAST
#: Opts that are tried on every kernel; those that are illegal for it are left out.
SHARED = {
    "local": [Opt(LOCAL, 0, 4)],
    "locals": [Opt(LOCAL, 0, 2), Opt(LOCAL, 1, 4)],
    "upcast-local": [Opt(UPCAST, 0, 4), Opt(LOCAL, 0, 2)],
    "group": [Opt(GROUP, 0, 8)],
    "grouptop": [Opt(GROUPTOP, 0, 8)],
    "group-warp": [Opt(GROUP, 0, 16), Opt(LOCAL, 0, 2)],
    "group-local": [Opt(GROUP, 0, 4), Opt(LOCAL, 0, 4)],
    "grouptop-local": [Opt(GROUPTOP, 0, 4), Opt(LOCAL, 0, 2)],
}


class Memory:
    """A copy of an array that ends where its pages end: what lies behind belongs to nobody."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.nbytes = array.nbytes
        self.pages = mmap.mmap(-1, -(-max(array.nbytes, 1) // 4096) * 4096)
        self.pages[: array.nbytes] = array.tobytes()
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.pages))

    @property
    def range(self) -> tuple[int, int]:
        return self.address, self.nbytes

    def tobytes(self) -> bytes:
        return self.pages[: self.nbytes]


def checked(
    text: str,
    groups: Sequence[int],
    threads: Sequence[int],
    memory: Sequence[Memory],
    values: Sequence[int] = (),
) -> Outcome:
    """Run a kernel on this memory and nothing else."""
    arguments = [each.address.to_bytes(8, "little") for each in memory]
    arguments += [value.to_bytes(8, "little") for value in values]
    ranges = [each.range for each in memory]
    return launch(Text(text), arguments, groups, threads, ranges, check=True)


def problem_of(spec: ProgramSpec) -> str:
    """What the checker says of a kernel, or that its result is not the interpreter's."""
    arrays = contents(spec)
    values = tuple(5 for _ in spec.vars)
    memory = [Memory(array) for array in arrays]
    outcome = checked(spec.src, spec.global_size or (1, 1, 1), spec.local_size or (1, 1, 1), memory, values)
    if outcome.fault or outcome.report:
        return f"{outcome.fault} {outcome.report}\n{spec.src}"
    for each, array, raw in zip(memory, arrays, interpreted(spec, arrays, values), strict=True):
        found, wanted = (np.frombuffer(b, array.dtype).copy() for b in (each.tobytes(), raw))
        if not np.array_equal(found, wanted, equal_nan=array.dtype.kind == "f"):
            return f"the interpreter computes {wanted}, not {found}\n{spec.src}"
    return ""


#: As if threads of a warp exchanged nothing: all that they share goes through local memory, as on WEBGPU.
WITHOUT_SHUFFLES = CUDARenderer(replace(GPU_RENDERERS["cuda"].target, shuffles=0))


def specs_of(name: str) -> dict[str, ProgramSpec]:
    """A kernel with its own Opts, with those that are chosen, and with each of SHARED that is legal, with
    shuffles and without.
    """
    renderer = GPU_RENDERERS["cuda"]
    found = {"own": compile_kernel(ast_of(name), renderer, KERNELS[name][2])}
    found["chosen"] = compile_kernel(ast_of(name), renderer)
    found |= {
        each: compile_kernel(ast_of(name), renderer, opts)
        for each, (kernel, opts) in MEETING.items()
        if kernel == name
    }
    for each, opts in SHARED.items():
        try:
            found[each] = compile_kernel(ast_of(name), renderer, opts)
            found[f"{each} in memory"] = compile_kernel(ast_of(name), WITHOUT_SHUFFLES, opts)
        except KernelOptError:
            continue
    texts: dict[str, None] = {}
    return {
        each: spec
        for each, spec in found.items()
        if spec.src not in texts and not texts.update({spec.src: None})
    }


@pytest.mark.parametrize("name", [n for n in KERNELS if n != "halves"])
def test_no_thread_disturbs_another(name: str) -> None:
    problems = {opts: problem for opts, spec in specs_of(name).items() if (problem := problem_of(spec))}
    assert not problems, "\n".join(f"{opts}: {problem}" for opts, problem in problems.items())


@pytest.mark.parametrize(
    "ast",
    [
        matmul(72, 33, 64),
        convolution(1, 16, 12, 16, 1),
        matmul(64, 96, 40, dtypes.float16),
        product(64, 96, 40, dtype=dtypes.int8, summed=dtypes.int),
    ],
    ids=["product", "convolution", "halves", "bytes"],
)
@pytest.mark.parametrize("arch", ["sm_75", "sm_90"])
def test_threads_that_fill_copies_disturb_none(ast: UOp, arch: str) -> None:
    """As such a GPU would run it, if it had four multiprocessors: both copies, vectors, and a border."""
    target = cuda_target(arch)
    small = replace(target, launch=replace(target.launch, multiprocessors=4))
    spec = compile_kernel(ast, CUDARenderer(small))
    ops = [opt.op for opt in spec.applied_opts]
    assert ops.count(OptOps.STAGE) == 2
    assert problem_of(spec) == ""


#: What is taken out of a kernel that fetches ahead, and what is reported.
AHEAD_PLANTED = {
    "no-wait": (r"fetch_wait_\d\(\);\n", "to which a copy is on the way"),
    "no-barrier": (r"__syncthreads\(\);\n", "race|to which a copy is on the way"),
    "too-late": (r"(fetch_wait_\d)\(\);\n(\s*__sync)", "to which a copy is on the way"),
}


@pytest.mark.parametrize("copies", [2, 3])
@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.float], ids=["halves", "floats"])
def test_copies_that_are_fetched_ahead_disturb_none(dtype: DType, copies: int) -> None:
    """Nor is a wait or a barrier there that could be left out."""
    locals_ = [Opt(LOCAL, axis, 2) for axis in (0, 1)]
    tiles = (
        [Opt(OptOps.TC, 0, 16), *locals_] if dtype is dtypes.float16 else [*locals_, Opt(OptOps.UNROLL, 0, 8)]
    )
    stages = [Opt(OptOps.STAGE, 2, data) for data in (1, 2)]
    opts = [*tiles, *stages, Opt(OptOps.AHEAD, 2, copies)]
    spec = compile_kernel(matmul(32, 96, 16, dtype), CUDARenderer("sm_90"), opts)
    assert problem_of(spec) == ""
    for old, report in AHEAD_PLANTED.values():
        wrong, changes = re.subn(old, r"\2" if "(" in old.replace(r"\(", "") else "", spec.src)
        assert changes == 1
        assert re.search(report, problem_of(replace(spec, src=wrong)))


@pytest.mark.parametrize(
    "dtype", [dtypes.fp8e4m3, dtypes.fp8e5m2, dtypes.float], ids=["e4m3", "e5m2", "tf32"]
)
def test_what_tensor_cores_of_ada_multiply(dtype: DType) -> None:
    """The header and the interpreter agree on what their bits mean."""
    stages = [Opt(OptOps.STAGE, 2, data) for data in (1, 2)]
    with Context(TF32=1):
        opts = [Opt(OptOps.TC, 0, 8 if dtype is dtypes.float else 32), *stages]
        spec = compile_kernel(product(32, 96, 16, dtype=dtype), CUDARenderer("sm_89"), opts)
    assert "mma.sync" in spec.src
    assert problem_of(spec) == ""


def of_matrices(arch: str, block: Block, dtype: str = "float16", **options: Any) -> ProgramSpec:
    """An attention in one pass, by tensor cores, with a block that is not chosen for its size."""
    renderer = CUDARenderer(arch)
    parts = parts_of(attention(2, 37, 48, dtype=dtype, **options))
    core = core_for(parts, renderer.target)
    assert core is not None
    return ProgramSpec.of("attention", renderer, matrix_program(parts, renderer, block, core))


@pytest.mark.choice
@pytest.mark.parametrize(("dtype", "error"), [("float16", 2e-3), ("bfloat16", 2e-2)])
def test_attention_by_tensor_cores_is_what_numpy_computes(dtype: str, error: float) -> None:
    spec = of_matrices("sm_80", Block(4, 16, 2, 8), dtype, keys=45, is_causal=True)
    rng = np.random.default_rng(3)
    drawn = [rng.standard_normal((2, rows, 48)).astype(np.float32) for rows in (37, 37, 45, 45)]
    bits = [(a.view(np.uint32) >> 16).astype(np.uint16) for a in drawn]
    memory = [
        Memory(a.astype(np.float16) if dtype == "float16" else b) for a, b in zip(drawn, bits, strict=True)
    ]
    assert checked(spec.src, spec.global_size or (), spec.local_size or (), memory) == ("", "")
    got, q, k, v = (numbers(each.tobytes(), dtype).reshape(2, -1, 48) for each in memory)
    seen = np.arange(45) <= np.arange(37)[:, None]
    np.testing.assert_allclose(got, reference(q, k, v, seen), atol=error)


def numbers(raw: bytes, dtype: str) -> np.ndarray[Any, Any]:
    if dtype == "float16":
        return np.frombuffer(raw, np.float16).astype(np.float32)
    return (np.frombuffer(raw, np.uint16).astype(np.uint32) << 16).view(np.float32)


def in_one_pass(kind: str) -> ProgramSpec:
    if kind == "floats":
        return compile_kernel(attention(2, 37, 12, keys=45, is_causal=True), CUDARenderer("sm_90"))
    return of_matrices("sm_90", Block(4, 8, 2, 8), kind, keys=45)


@pytest.mark.parametrize("kind", ["floats", "float16", "bfloat16"])
def test_threads_of_a_kernel_in_one_pass_disturb_none(kind: str) -> None:
    assert problem_of(in_one_pass(kind)) == ""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["floats", "float16"])
def test_no_barrier_and_no_wait_of_one_pass_can_be_left_out(kind: str) -> None:
    spec = in_one_pass(kind)
    found = list(re.finditer(r"(fetch_wait_\d|__syncthreads)\(\);\n", spec.src))
    assert len(found) == {"floats": 5, "float16": 7}[kind]
    for each in found:
        text = spec.src[: each.start()] + spec.src[each.end() :]
        assert re.search("race|on the way|has not waited", problem_of(replace(spec, src=text))), each


@pytest.mark.choice
def test_threads_meet_in_what_is_checked() -> None:
    ops = {opts: {u.op for u in spec.uops} for opts, spec in specs_of("row-sums").items()}
    assert all(Ops.BARRIER in ops[opts] for opts in ("group", "grouptop", "group-local", "grouptop-local"))
    assert {Ops.BARRIER, Ops.SHUFFLE} <= ops["row-sums-of-warps"]
    assert ops["group-warp"] - {Ops.BARRIER} == ops["group-warp"] >= {Ops.SHUFFLE}
    assert Ops.BARRIER in ops["group-warp in memory"]


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SHUFFLED if name not in ("bfloats", "any")])
def test_what_a_warp_exchanges(name: str) -> None:
    """By as many threads as it has, and by twice as many."""
    renderer = GPU_RENDERERS["cuda"]
    for amount in (32, 64):
        assert problem_of(shuffled(name, renderer, amount)) == ""


# *** faults that are planted

HEAD = 'extern "C" __global__ void __launch_bounds__(8) k(float* data0, float* data1) {\n'
SUM = """\
  __shared__ float temp0[8];
  *(temp0+threadIdx.x) = *(data1+threadIdx.x);
  __syncthreads();
  if (threadIdx.x == 0) { float sum = 0; for (int n = 0; n < 8; n++) sum = sum+*(temp0+n); *data0 = sum; }
}"""


def fault(text: str, size: int = 8, groups: int = 1) -> Outcome:
    memory = [Memory(np.zeros(1, np.float32)), Memory(np.arange(size, dtype=np.float32))]
    outcome = checked(HEAD + text, (groups, 1, 1), (8, 1, 1), memory)
    if not outcome.fault and not outcome.report:
        assert np.frombuffer(memory[0].tobytes(), np.float32)[0] == 28
    return outcome


def test_what_is_right_is_not_reported() -> None:
    assert fault(SUM) == ("", "")


#: What is changed in SUM, the driver's error, and what is reported.
PLANTED = {
    "no-barrier": ("  __syncthreads();\n", "", "", "race in k: thread . .* of shared array 0"),
    "one-place": ("if (threadIdx.x == 0) ", "", "", "race in k: thread 1 .* byte 0 of buffer 0"),
    "shared-end": ("temp0+n", "temp0+n+1", "ILLEGAL_ADDRESS", "thread 0 .* outside of the shared"),
    "shared-size": ("[8]", "[4]", "ILLEGAL_ADDRESS", "thread 4 .* outside of the shared"),
    "end": ("data1+threadIdx.x", "data1+threadIdx.x+1", "ILLEGAL_ADDRESS", "thread 7 .* outside of all"),
    "start": ("data1+threadIdx.x", "data1-threadIdx.x", "ILLEGAL_ADDRESS", "thread 1 .* outside of all"),
    "alignment": (
        "*(data1+threadIdx.x);", "0; float4 v = *((float4*)((data1+1))); *(temp0+threadIdx.x) = v.x;",
        "MISALIGNED_ADDRESS", "a vector of 16 bytes does not begin at a multiple of that",
    ),
    "divergent": ("  __syncthreads", "  if (threadIdx.x < 4) __syncthreads", "", "of 8 threads 4 wait"),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(name: str) -> None:
    old, new, error, report = PLANTED[name]
    assert old in SUM
    outcome = fault(SUM.replace(old, new))
    assert outcome.fault == (error and f"CUDA_ERROR_{error}")
    assert re.search(report, outcome.report), outcome


EXCHANGED = """\
  float sum = *(data1+threadIdx.x);
  for (int n = 1; n < 8; n += n) sum = sum+__shfl_xor_sync(0xffu,sum,n);
  if (threadIdx.x == 0) *data0 = sum;
}"""
#: What is changed in EXCHANGED, the driver's error, and what is reported.
PLANTED_IN_SHUFFLES = {
    "some": ("  for", "  if (threadIdx.x != 3) for", "ILLEGAL_ADDRESS", "of 8 threads of a warp 7 wait at a"),
    "mask": ("0xffu", "0x7fu", "", "thread 0 .* threads 7f of its warp take part, and these are ff"),
    "beyond": ("n < 8", "n < 16", "ILLEGAL_ADDRESS", "thread 0 .* takes what thread 8 has"),
    "no-order": (
        "  if", "  __shared__ float temp0[1]; if (threadIdx.x == 1) *temp0 = sum;\n"
        "  sum = __shfl_xor_sync(0xffu,sum,1);\n  if (threadIdx.x == 0) sum = *temp0;\n  if", "",
        "race in k: thread . .* of shared array 0",
    ),
}  # fmt: skip


def test_a_shuffle_of_all_threads_is_not_reported() -> None:
    assert fault(EXCHANGED) == ("", "")


@pytest.mark.parametrize("name", PLANTED_IN_SHUFFLES)
def test_a_planted_fault_in_shuffles_is_found(name: str) -> None:
    old, new, error, report = PLANTED_IN_SHUFFLES[name]
    assert old in EXCHANGED
    outcome = fault(EXCHANGED.replace(old, new))
    assert outcome.fault == (error and f"CUDA_ERROR_{error}")
    assert re.search(report, outcome.report), outcome


FETCHED = """\
  __shared__ __align__(16) float temp0[8];
  fetch_4(temp0+threadIdx.x,data1+threadIdx.x);
  fetch_wait_0();
  __syncthreads();
  if (threadIdx.x == 0) { float sum = 0; for (int n = 0; n < 8; n++) sum = sum+*(temp0+n); *data0 = sum; }
}"""
#: What is changed in FETCHED, the driver's error, and what is reported.
PLANTED_IN_COPIES = {
    "no-wait": ("  fetch_wait_0();\n", "", "", "reads byte 0 .* to which a copy is on the way"),
    "wait-for-others": ("wait_0", "wait_1", "", "to which a copy is on the way"),
    "no-barrier": ("  __syncthreads();\n", "", "", "race in k: thread . .* of shared array 0"),
    "wait-after": (
        "  fetch_wait_0();\n  __syncthreads();\n", "  __syncthreads();\n  fetch_wait_0();\n", "",
        "to which a copy is on the way",
    ),
    "at-the-end": ("sum; }\n", "sum; }\n  fetch_4(temp0+threadIdx.x,data1);\n", "", "has not waited for its"),
    "end": ("data1+threadIdx.x", "data1+threadIdx.x+1", "ILLEGAL_ADDRESS", "thread 7 .* outside of all"),
    "shared-end": ("temp0+threadIdx.x", "temp0+threadIdx.x+1", "ILLEGAL_ADDRESS", "thread 7 .* outside"),
    "alignment": ("fetch_4(temp0", "fetch_8(temp0", "MISALIGNED_ADDRESS", "thread 1 .* 8 bytes"),
}  # fmt: skip


def test_copies_that_are_waited_for_are_not_reported() -> None:
    assert fault(FETCHED) == ("", "")


@pytest.mark.parametrize("name", PLANTED_IN_COPIES)
def test_a_planted_fault_in_copies_is_found(name: str) -> None:
    old, new, error, report = PLANTED_IN_COPIES[name]
    assert old in FETCHED
    outcome = fault(FETCHED.replace(old, new))
    assert outcome.fault == (error and f"CUDA_ERROR_{error}")
    assert re.search(report, outcome.report), outcome


def test_workgroups_that_write_to_one_place() -> None:
    outcome = fault(SUM, groups=2)
    assert "race in k: thread 0 of workgroup 1 writes byte 0 of buffer 0, which thread 0 of" in outcome.report

"""Kernels that their users gave as text in CUDA and Metal: launched on this CPU as C++, and through NVRTC."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

from lazygrad import Tensor
from lazygrad.codegen.direct_kernels import LANGUAGES
from lazygrad.renderer import ProgramSpec
from tests.helpers import needs, require

from .support import GPU_WORDS
from .test_kernels import compiled

#: out = x + 2*y, one workgroup for each row and one thread for each column; the same in each language.
CUDA = """
template <typename T> __device__ T twice(T x) { return x + x; }
// __global__ void old(float* x) {}
__global__ void __launch_bounds__(3)
add(float* __restrict__ out,  // rows, columns
    float const* x, const float* __restrict__ y) {
  int i = 3 * blockIdx.x + threadIdx.x;
  out[i] = x[i] + twice(y[i]);
}
"""
METAL = """
#include <metal_stdlib>
using namespace metal;
kernel void add(device const float* x [[buffer(1)]], constant float *y [[ buffer(2) ]],
                device float* out [[buffer(0)]], uint3 gid [[threadgroup_position_in_grid]],
                uint3 lid [[thread_position_in_threadgroup]]) {
  uint i = 3 * gid.x + lid.x;
  out[i] = x[i] + 2 * y[i];
}
"""
OPENCL = """
__kernel void add(__global float* out, __global const float* x, __global const float* y) {
  int i = 3 * get_group_id(0) + get_local_id(0);
  out[i] = x[i] + 2 * y[i];
}
"""
C = "void add(float* out, float* x, float* y, long i) { for (i *= 3; out[i] = x[i] + 2*y[i], ++i % 3;); }"
LLVM = """
define void @add(ptr %out, ptr %x, ptr %y, i64 %i, i64 %j) {
  %row = mul i64 %i, 3
  %at = add i64 %row, %j
  %from = getelementptr float, ptr %x, i64 %at
  %also = getelementptr float, ptr %y, i64 %at
  %to = getelementptr float, ptr %out, i64 %at
  %a = load float, ptr %from
  %b = load float, ptr %also
  %c = fadd float %b, %b
  %d = fadd float %a, %c
  store float %d, ptr %to
  ret void
}
"""
TEXTS = {"llvm": LLVM, "c": C, "opencl": OPENCL, "cuda": CUDA, "metal": METAL}


def added(x: Tensor, y: Tensor) -> Tensor:
    out: Tensor = Tensor.custom_kernel(
        TEXTS, outputs=x, grid={**dict.fromkeys(TEXTS, 2), "llvm": (2, 3)}, group=3, inputs=[x, y]
    )
    return out


def ones(device: str) -> Tensor:
    return Tensor.ones(2, 3, device=device).contiguous().realize()


@pytest.mark.parametrize(
    "device", ["CPU", pytest.param("CLANG", marks=needs("clang")), pytest.param("CL", marks=needs("cl"))]
)
def test_one_program_on_each_device(device: str) -> None:
    x = Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], device=device)
    assert (added(x, x + 1) - 1).tolist() == [[4.0, 7.0, 10.0], [13.0, 16.0, 19.0]]


def spec_for(target: str, swapped: bool = False) -> ProgramSpec:
    x, y = ones("CPU"), ones("CPU")
    [kernel] = added(x, x if swapped else y).kernels(target=target)
    assert kernel.spec.global_size == (2, 1, 1)
    assert kernel.spec.local_size == (3, 1, 1)
    return kernel.spec


@pytest.mark.parametrize("language", ["cuda", "metal"])
def test_a_launch_gives_each_pointer_its_array(language: str, tmp_path: Path) -> None:
    """As for our own kernels: the text is C++ with a header's words, a loop is the launch."""
    require("g++")
    text = spec_for(language).src
    places = "{g, 0, 0}, {l, 0, 0}"
    header, before, after = '#include "cuda.h"\n', f"Place at[] = {{{places}}};", ""
    before += " blockIdx = at[0]; threadIdx = at[1];"
    if language == "metal":
        header, before, after = "", "", ", uint3{g, 0, 0}, uint3{l, 0, 0}"
    launch = (
        'extern "C" void launched(float** b) {\n'
        "for (unsigned g = 0; g < 2; g++) for (unsigned l = 0; l < 3; l++) {"
        f"{before.replace('{g', '{(int)g').replace('{l', '{(int)l')} add(b[0], b[1], b[2]{after}); }}\n}}\n"
    )
    source, library = tmp_path / "given.cpp", tmp_path / "given.so"
    source.write_text(header + text + launch)
    command = ["g++", "-shared", "-fPIC", "-O0", "-w", "-std=c++17", f"-I{GPU_WORDS}", "-o", str(library)]
    done = subprocess.run([*command, str(source)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    out, x, y = np.zeros(6, np.float32), np.arange(6, dtype=np.float32), np.ones(6, np.float32)
    ctypes.CDLL(str(library)).launched((ctypes.c_void_p * 3)(*(a.ctypes.data for a in (out, x, y))))
    assert out.tolist() == [2.0, 3.0, 4.0, 5.0, 6.0, 7.0]


@needs("nvrtc")
def test_nvrtc_compiles_what_a_user_gave() -> None:
    assert compiled(spec_for("cuda:sm_90").src, "sm_90") == ""
    assert compiled(spec_for("cuda:sm_90", swapped=True).src, "sm_90") == ""
    wrong = CUDA.replace("twice(y[i])", "thrice(y[i])")
    [kernel] = Tensor.custom_kernel(
        {"llvm": LLVM, "cuda": wrong}, outputs=ones("CPU"), grid=2, inputs=[ones("CPU")] * 2
    ).kernels(target="cuda")
    assert "(8): error" in compiled(kernel.source, "sm_80")  # the user's own line


def test_one_array_as_two_inputs_is_one_parameter() -> None:
    for target, parameters in (
        ("cuda", "(float* lazygrad0, float* lazygrad1) {"),
        ("metal", "(device float* lazygrad0 [[buffer(0)]], device float* lazygrad1 [[buffer(1)]], uint3 gid"),
    ):
        assert parameters in spec_for(target, swapped=True).src


def test_functions_that_can_be_launched() -> None:
    assert LANGUAGES["cuda"].functions(CUDA) == ["add"]
    assert LANGUAGES["cuda"].functions('extern "C" void __global__ f(float* x) {}') == ["f"]
    assert LANGUAGES["cuda"].functions("template <int N> __global__ void f(float* x) {}") == []
    assert LANGUAGES["metal"].functions("/* kernel void f() */ kernel void g(device float* x) {}") == ["g"]


@pytest.mark.parametrize(
    ("language", "head", "message"),
    [
        ("cuda", "__global__ void f(float* out, int n)", r"2 pointers.*not \(float\* out, int n\)"),
        ("metal", "kernel void f(device float* out)", "takes 2 pointers to device memory"),
        ("metal", "kernel void f(device int* a, device int* b, threadgroup int* t)", "takes 2 pointers"),
        ("metal", "kernel void f(device int* a [[buffer(0)]], device int* b [[buffer(2)]])", "to the last"),
    ],
)  # fmt: skip
def test_what_a_kernel_does_not_take(language: str, head: str, message: str) -> None:
    x = ones("CPU")
    text = {"llvm": "define void @f(ptr %o, ptr %x) { ret void }", language: f"{head} {{}}"}
    [kernel] = Tensor.custom_kernel(text, outputs=x, inputs=[x]).kernels(target=language)
    with pytest.raises(ValueError, match=message):
        _ = kernel.source

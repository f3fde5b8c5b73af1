"""`Tensor.custom_kernel`: kernels as text, in the languages of the devices that are here."""

from __future__ import annotations

import pytest

from lazygrad import Context, Tensor, TinyJit
from lazygrad.codegen.direct_kernels import LANGUAGES
from lazygrad.device import CompileError, DeviceError, GlobalCounters
from tests.helpers import needs

C = """
#include <math.h>
static float square(float x) { return x * x; }
void norm(float* out, const float* x, const float* y) {
  for (int i = 0; i < 4; i++) out[i] = sqrtf(square(x[i]) + square(y[i]));
}
"""
LLVM = """
define void @twice(ptr %out, ptr %x) {
  %v = load <4 x float>, ptr %x, align 4
  %w = fadd <4 x float> %v, %v
  store <4 x float> %w, ptr %out, align 4
  ret void
}
"""
OPENCL = """
// a sum
__kernel void add(__global float *out,
                  __global const float * restrict x, __global const float *y) {
  int i = get_global_id(0);
  out[i] = x[i] + 2*y[i];
}
"""


def on(device: str, *values: float) -> Tensor:
    return Tensor([*values], device=device).realize()


@pytest.mark.choice
@needs("clang")
def test_c_with_its_neighbours() -> None:
    x, y = on("CLANG", 3.0, 0.0, 1.0, 2.0), on("CLANG", 4.0, 1.0, 0.0, 0.0)
    with Context(CHECK=1):
        GlobalCounters.reset()
        z = Tensor.custom_kernel(C, "c", x, inputs=[x * 1 + 0 * y, y])
        assert (z + 1).tolist() == [6.0, 2.0, 2.0, 3.0]
        assert GlobalCounters.kernel_count == 3
    assert Tensor.custom_kernel(C, "c", ((4,), "float"), inputs=[y, y]).tolist()[1] == pytest.approx(2**0.5)


@needs("clang")
def test_c_over_a_grid_with_two_results() -> None:
    text = (
        "void f(float* out, int* at, float* x, long i, long j) { out[i+2*j]=2*x[i+2*j]; at[i+2*j]=10*i+j; }"
    )
    x = Tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], device="CLANG")
    outputs = [((3, 2), "float"), ((3, 2), "int")]
    out, at = Tensor.custom_kernel(text, "c", outputs, grid=(2, 3), inputs=[x])
    assert at.tolist() == [[0, 10], [1, 11], [2, 12]]
    assert out.tolist() == [[2.0, 4.0], [6.0, 8.0], [10.0, 12.0]]


def test_llvm_with_a_gradient() -> None:
    x = Tensor([3.0, 0.0, 1.0, 2.0], device="CPU", requires_grad=True)
    y = Tensor.custom_kernel(LLVM, "llvm", x, inputs=[x], gradient=lambda grad, out, x: grad * 2)
    (y * y).sum().backward()
    assert y.tolist() == [6.0, 0.0, 2.0, 4.0]
    assert x.grad.tolist() == [24.0, 0.0, 8.0, 16.0]


def test_without_a_gradient() -> None:
    x = Tensor([3.0, 0.0, 1.0, 2.0], device="CPU", requires_grad=True)
    with pytest.raises(NotImplementedError, match="kernel twice has no gradient"):
        Tensor.custom_kernel(LLVM, "llvm", x, inputs=[x]).sum().backward()


@needs("cl")
def test_opencl_in_a_jit() -> None:
    def run(x: Tensor) -> Tensor:
        return (Tensor.custom_kernel(OPENCL, "opencl", x, grid=2, group=2, inputs=[x, x + 1]) + 1).realize()

    assert run(on("CL", 3.0, 0.0, 1.0, 2.0)).tolist() == [12.0, 3.0, 6.0, 9.0]
    jitted = TinyJit(run)
    for k in range(4):
        assert jitted(on("CL", float(k), 1.0, 1.0, 1.0)).tolist() == [3.0 * k + 3, 6.0, 6.0, 6.0]


@needs("cl")
def test_one_tensor_as_several_inputs() -> None:
    x = on("CL", 1.0, 2.0, 3.0, 4.0)
    assert Tensor.custom_kernel(OPENCL, "opencl", x, grid=4, inputs=[x, x]).tolist() == [3.0, 6.0, 9.0, 12.0]


@needs("clang")
def test_what_the_compiler_says_has_the_users_lines() -> None:
    x = on("CLANG", 1.0)
    with pytest.raises(CompileError, match=r":2:.*\n.*y") as error:
        Tensor.custom_kernel("void f(float* o, float* x) {\n  o[0] = y;\n}", "c", x, inputs=[x]).realize()
    assert "o[0] = y" in str(error.value)


@needs("cl")
def test_opencl_errors_have_the_users_lines() -> None:
    x = on("CL", 1.0, 2.0, 3.0, 4.0)
    wrong = OPENCL.replace("2*y", "2*z")
    with pytest.raises(CompileError, match=r":6:\d+: use of undeclared identifier 'z'"):
        Tensor.custom_kernel(wrong, "opencl", x, grid=4, inputs=[x, x]).realize()
    with pytest.raises(ValueError, match="takes 2 pointers to __global memory, outputs first"):
        Tensor.custom_kernel(OPENCL, "opencl", x, grid=4, inputs=[x]).realize()


def test_llvm_errors() -> None:
    x = on("CPU", 1.0, 2.0, 3.0, 4.0)
    with pytest.raises(CompileError, match="use of undefined value '%u'"):
        Tensor.custom_kernel(LLVM.replace("%v, %v", "%v, %u"), "llvm", x, inputs=[x]).realize()


def test_the_functions_of_a_text() -> None:
    assert LANGUAGES["c"].functions(C) == ["norm"]
    assert LANGUAGES["llvm"].functions(LLVM) == ["twice"]
    assert LANGUAGES["opencl"].functions(OPENCL) == ["add"]
    marked = "__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void f(__global int* x) {}"
    assert LANGUAGES["opencl"].functions(marked) == ["f"]
    assert LANGUAGES["cuda"].functions('extern "C" __global__ void __launch_bounds__(32) f(float* x) {}') == [
        "f"
    ]
    assert LANGUAGES["metal"].functions("kernel void f(device float* x [[buffer(0)]]) {}") == ["f"]


def test_a_language_needs_its_device() -> None:
    x = on("CPU", 1.0)
    with pytest.raises(DeviceError, match=r"a text in cuda runs on device CUDA, and the tensors are on CPU"):
        Tensor.custom_kernel("__global__ void f(float* x) {}", "cuda", x, inputs=[x])

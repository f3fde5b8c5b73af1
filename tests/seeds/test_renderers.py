"""SEEDS 8: the text of kernels, for devices that need not be here."""

from __future__ import annotations

import re

import pytest

from lazygrad import Device, Tensor, dtypes
from lazygrad.codegen.compile import compile_kernel
from lazygrad.ir import Ops, UOp
from lazygrad.renderer.cstyle import CUDARenderer, MetalRenderer

from .test_scripts import CUDA_HEAD, GRID, HEAD

CONST = UOp(Ops.CONST, dtypes.float, arg=1.0)
ADD = UOp(Ops.ADD, dtypes.float, src=(CONST, CONST), arg=None)


def special(name: str, size: int) -> UOp:
    return UOp(Ops.SPECIAL, dtypes.int, arg=(name, size))


def ast_of(tensor: Tensor) -> UOp:
    return tensor.schedule()[-1].ast


def addition() -> UOp:
    return ast_of(Tensor.empty(4, 4) + Tensor.empty(4, 4))


def dot() -> UOp:
    return ast_of(Tensor([1, 2]).dot(Tensor([3, 4])))


def body(text: str) -> str:
    """The lines between the braces of the kernel."""
    return text.partition(") {\n")[2].rpartition("}")[0]


def test_S66_S68_metal():
    text = MetalRenderer().render("example", [CONST, ADD])
    assert text == f"{HEAD}kernel void example({GRID}) {{\n  float alu0 = (1.0f+1.0f);\n}}"


def test_S67_S68_cuda():
    assert CUDARenderer("sm_50").render("example", [CONST, ADD]) == (
        f"{CUDA_HEAD}  float alu0 = (1.0f+1.0f);\n}}"
    )


def test_S69_groups():
    assert body(MetalRenderer().render([special("gidx0", 16)])) == "  int gidx0 = gid.x; /* 16 */\n"
    assert body(CUDARenderer("sm_50").render([special("gidx0", 16)])) == (
        "  int gidx0 = blockIdx.x; /* 16 */\n"
    )


def test_S70_S74_two_axes():
    text = CUDARenderer("sm_50").render("example", [special("gidx0", 16), special("gidx1", 16)])
    assert text == (f"{CUDA_HEAD}  int gidx0 = blockIdx.x; /* 16 */\n  int gidx1 = blockIdx.y; /* 16 */\n}}")


def test_S71_threads_of_a_group():
    both = [special("lidx0", 4), special("lidx1", 8)]
    assert (
        body(MetalRenderer().render(both)) == "  int lidx0 = lid.x; /* 4 */\n  int lidx1 = lid.y; /* 8 */\n"
    )
    text = CUDARenderer("sm_50").render(both)
    assert body(text) == "  int lidx0 = threadIdx.x; /* 4 */\n  int lidx1 = threadIdx.y; /* 8 */\n"
    assert "__launch_bounds__(32)" in text


def test_S72_without_a_name_it_is_example():
    for renderer in (MetalRenderer(), CUDARenderer("sm_50"), Device["CLANG"].renderer):
        assert " example(" in renderer.render([CONST, ADD])
        assert renderer.render([CONST, ADD]) == renderer.render("example", [CONST, ADD])


def test_S73_an_architecture_is_text():
    assert CUDARenderer("50").target.arch == CUDARenderer("sm_50").target.arch == "sm_50"
    with pytest.raises(TypeError):
        CUDARenderer()


SQUARES = """\
  int lidx0 = {thread}; /* 4 */
  int alu0 = (lidx0<<2);
  float4 val0 = *(({space}float4*)((data1+alu0)));
  float4 val1 = *(({space}float4*)((data2+alu0)));
  *(({space}float4*)((data0+alu0))) = {vector}({sums});
"""
SUMS = "(val0.x+val1.x),(val0.y+val1.y),(val0.z+val1.z),(val0.w+val1.w)"


@pytest.mark.choice
def test_S75_four_by_four_on_metal():
    spec = compile_kernel(addition(), MetalRenderer())
    arguments = "device float* data0, device float* data1, device float* data2"
    inside = SQUARES.format(thread="lid.x", space="device ", vector="float4", sums=SUMS)
    assert spec.src == f"{HEAD}kernel void E_4_4({arguments}, {GRID}) {{\n{inside}}}"
    assert (spec.global_size, spec.local_size) == ((1, 1, 1), (4, 1, 1))


@pytest.mark.choice
def test_S76_four_by_four_on_cuda():
    text = compile_kernel(addition(), CUDARenderer("sm_50")).src
    assert "__launch_bounds__(4) E_4_4(float* data0, float* data1, float* data2) {" in text
    assert body(text) == SQUARES.format(thread="threadIdx.x", space="", vector="make_float4", sums=SUMS)


def test_S77_without_opts():
    inside = """\
  int gidx0 = {group}; /* 16 */
  float val0 = *(data1+gidx0);
  float val1 = *(data2+gidx0);
  *(data0+gidx0) = (val0+val1);
"""
    metal = compile_kernel(addition(), MetalRenderer(), []).src
    assert "kernel void E_16(" in metal
    assert body(metal) == inside.format(group="gid.x")
    cuda = compile_kernel(addition(), CUDARenderer("sm_50"), []).src
    assert "__launch_bounds__(1) E_16(" in cuda
    assert body(cuda) == inside.format(group="blockIdx.x")


DOT = """\
  int acc0 = 0;
  for (int ridx0 = 0; ridx0 < 2; ridx0++) {
    int val0 = *(data1+ridx0);
    int val1 = *(data2+ridx0);
    acc0 = (acc0+(val0*val1));
  }
  *(data0+0) = acc0;
"""


@pytest.mark.choice
def test_S78_a_dot_product_on_metal():
    text = compile_kernel(dot(), MetalRenderer(), []).src
    arguments = "device int* data0, device int* data1, device int* data2"
    assert text == f"{HEAD}kernel void r_2({arguments}, {GRID}) {{\n{DOT}}}"


@pytest.mark.choice
def test_S79_a_dot_product_in_c():
    text = compile_kernel(dot(), Device["CLANG"].renderer, []).src
    kernel = f"void r_2(int* restrict data0, int* restrict data1, int* restrict data2) {{\n{DOT}}}"
    assert kernel in text


@pytest.mark.choice
def test_C5_the_dot_product_of_the_older_seed():
    """Its text differs in two ways: `const` before inputs, and the accumulator as the second term."""
    older = "    acc0 = ((val0*val1)+acc0);\n"
    ours = compile_kernel(dot(), MetalRenderer(), []).src
    swapped = re.sub(r"\(acc0\+(\(.*?\))\)", r"(\1+acc0)", ours)
    assert older in swapped

"""SEEDS 17: the calls of every code block of the seeds, in scripts of ours that compat runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.helpers import needs

from .support import SCRIPTS, on_cpu, rows, run_file
from .test_kernel_creation import SHOWN

ZEROS = str([[0.0] * 4] * 4)


def test_S146_kernel_creation():
    assert run_file("kernel_creation") == on_cpu(SHOWN)


def test_S146_dot_product():
    assert run_file("dot_product") == "11\n"


@needs("clang")
def test_S146_dot_product_in_the_older_style():
    """DEBUG=5 NOOPT=1: the tree, the table, the code, the row, the result, in this order."""
    out = run_file("dot_product", DEBUG=5, NOOPT=1, DEBUG_STYLE="classic", CLANG=1)
    tree, table = out.index("  0 ━┳ STORE MemBuffer(idx=0"), out.index("step  Op_name  ")
    code, row, result = out.index("void r_2(int*"), out.index(" r_2     "), out.index("\n11\n")
    assert tree < table < code < row < result
    body = out[code:row]
    for line in (
        "  int acc0 = 0;",
        "  for (int ridx0 = 0; ridx0 < 2; ridx0++) {",
        "    int val0 = *(data1+ridx0);",
        "    int val1 = *(data2+ridx0);",
        "    acc0 = (acc0+(val0*val1));",
        "  *(data0+0) = acc0;",
    ):
        assert line in body


def test_S146_addition():
    recorded = "<Tensor <UOp CPU (4, 4) float (<Ops.ADD: 52>, None)> on CPU with grad None>"
    assert run_file("add") == f"{recorded}\n{ZEROS}\n"


def test_S146_what_addition_prints_with_debug():
    out = run_file("add", DEBUG=2)
    assert re.search(r"^opened device CPU from pid:\d+$", out, re.M)
    names = [row[17:58].split()[0] for row in rows(out)]
    assert names[:2] == ["empty", "empty"]
    assert re.fullmatch(r"E_\d+(_\d+)*", names[2])
    assert len(names) == 3  # nothing is copied: the CPU's memory is the host's
    assert out.endswith(f"{ZEROS}\n")
    assert "E_16" in rows(run_file("add", DEBUG=4, NOOPT=1))[2]


def test_S6_S146_multiplication_and_sum():
    assert run_file("multiply_and_sum") == f"{ZEROS}\n{[0.0] * 4}\n"
    kernels = [row for row in rows(run_file("multiply_and_sum", DEBUG=2)) if " empty " not in row]
    assert [row[17:19] for row in kernels] == ["E_", "r_"]
    assert "['__mul__']" in kernels[0]
    assert "['sum']" in kernels[1]


HEAD = """\
#include <metal_stdlib>
using namespace metal;
"""
GRID = "uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]"
CUDA_HEAD = """\
#define INFINITY (__int_as_float(0x7f800000))
#define NAN (__int_as_float(0x7fffffff))
extern "C" __global__ void __launch_bounds__(1) example() {
"""


def test_S146_nodes_and_their_text():
    assert run_file("nodes") == (
        "UOp(Ops.ADD, dtypes.float, arg=None, src=(\n"
        "  x0:=UOp(Ops.CONST, dtypes.float, arg=1.0, src=()),\n"
        "   x0,))\n"
        f"{HEAD}kernel void example({GRID}) {{\n  float alu0 = (1.0f+1.0f);\n}}\n"
        f"{CUDA_HEAD}  float alu0 = (1.0f+1.0f);\n}}\n"
    )


def test_S146_positions():
    assert run_file("positions") == (
        f"{HEAD}kernel void example({GRID}) {{\n  int gidx0 = gid.x; /* 16 */\n}}\n"
        f"{CUDA_HEAD}  int gidx0 = blockIdx.x; /* 16 */\n}}\n"
        f"{CUDA_HEAD}  int gidx0 = blockIdx.x; /* 16 */\n  int gidx1 = blockIdx.y; /* 16 */\n}}\n"
    )


def test_S80_S146_a_kernel_by_hand():
    assert run_file("by_hand") == (
        f"{HEAD}kernel void rendered(device float* data0, {GRID}) {{\n"
        "  int gidx0 = gid.x; /* 16 */\n"
        "  *(data0+gidx0) = (0.5f+0.5f);\n"
        "}\n"
    )


def test_S146_one_byte():
    first, second = run_file("one_byte").splitlines()
    assert first == r"b'\x00'"
    assert second.startswith("can't allocate already allocated buffer")


def test_S146_progress():
    out = run_file("progress", COLUMNS=80)
    # the bar takes what the rate leaves, so its length tells how busy the machine is
    bar = r"█+[▏▎▍▌▋▊▉]? +"
    assert re.search(
        rf"^list iterations:  60%\|{bar}\| 6\.00/10\.0 \[00:00<00:00, .*iterations/s\]$", out, re.M
    )


def test_S146_profile():
    out = run_file("profile")
    assert re.search(r"^n: +1  tm: .*time\.sleep", out, re.M)
    assert re.search(r"1( +\d\.\d{3}){4} \{built-in method time\.sleep\}", out)


def test_S102_S146_concrete_nodes_and_views():
    assert run_file("concrete_and_view").splitlines() == [
        "True True",
        "ShapeTracker(views=(View(shape=(2, 2), strides=(1, 2), offset=0, mask=None, contiguous=False),))",
        "2 <buf real:True device:CPU size:4 dtype:dtypes.int offset:0>",
        "None",
        "[[2, 6], [4, 8]] True",
    ]


def test_S133_S134_S146_nested_jits():
    nested = "having TinyJit inside another TinyJit is not supported len(capturing)=1 capturing=["
    first, second = run_file("nested_jit").splitlines()
    assert first.startswith(f"JitError {nested}")
    assert second == "[7]"


def test_S140_S142_S146_opts():
    out = run_file("opts")
    assert re.findall(r"kernel void (\w+)\(", out) == ["E_16", "E_2_8", "E_8_2"]


def test_every_script_is_run_by_a_test():
    source = Path(__file__).read_text(encoding="utf-8")
    for path in SCRIPTS.glob("*.py"):
        assert f'run_file("{path.stem}"' in source


@pytest.mark.parametrize("name", ["add", "dot_product", "kernel_creation"])
def test_S150_no_stray_rows(name):
    """DEBUG=2 adds lines of two kinds only: devices that are opened, and rows of what ran."""
    out = run_file(name, DEBUG=2).splitlines()
    explained = [line for line in out if line.startswith(("*** ", "opened device "))]
    assert [line for line in out if line not in explained] == run_file(name).splitlines()

"""The text of the C-like languages: the documents' samples, letter for letter, and golden texts of more."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest

from lazygrad.dtype import dtypes
from lazygrad.ir import Ops, UOp
from lazygrad.renderer.cstyle import CStyleRenderer, CUDARenderer, MetalRenderer, OpenCLRenderer
from lazygrad.renderer.cstyle.dialects import cuda_target
from tests.helpers import require

from .support import (
    GPU_RENDERERS,
    accumulator,
    add_program,
    assign,
    at,
    call_entry,
    const,
    data,
    dot_program,
    end,
    gpu_entry,
    lane,
    listed,
    load,
    loop,
    store,
)  # fmt: skip

METAL_HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
METAL_IDS = "uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]"
CUDA_HEAD = (
    "#define INFINITY (__int_as_float(0x7f800000))\n#define NAN (__int_as_float(0x7fffffff))\n"
    'extern "C" __global__ void __launch_bounds__'
)
ONE = UOp(Ops.CONST, dtypes.float, arg=1.0)
ADD = UOp(Ops.ADD, dtypes.float, src=(ONE, ONE), arg=None)


def special(name: str, size: int) -> UOp:
    return UOp(Ops.SPECIAL, dtypes.int, (), (name, size))


def add_4_4() -> list[UOp]:
    """E_4_4: one workgroup of four threads, each adds four neighbours."""
    a, b, c = (data(n, dtypes.float32, 16) for n in range(3))
    position = special("lidx0", 4) << const(2)
    x, y = load(at(b, position), 4), load(at(c, position), 4)
    total = UOp(Ops.VECTORIZE, dtypes.float.vec(4), tuple(lane(x, n) + lane(y, n) for n in range(4)))
    return listed(a, b, c, position, x, y, store(at(a, position), total))


def add_16() -> list[UOp]:
    """E_16, of NOOPT: a thread per element."""
    a, b, c = (data(n, dtypes.float32, 16) for n in range(3))
    i = special("gidx0", 16)
    return listed(a, b, c, i, store(at(a, i), load(at(b, i)) + load(at(c, i))))


def test_s66_metal_adds_two_constants() -> None:
    assert MetalRenderer().render("example", [ONE, ADD]) == (
        METAL_HEAD + f"kernel void example({METAL_IDS}) {{\n  float alu0 = (1.0f+1.0f);\n}}"
    )


@pytest.mark.parametrize("arch", ["sm_50", "50"])
def test_s67_cuda_adds_two_constants(arch: str) -> None:
    renderer = CUDARenderer(arch)
    assert (
        renderer.render("example", [ONE, ADD])
        == CUDA_HEAD + "(1) example() {\n  float alu0 = (1.0f+1.0f);\n}"
    )
    assert renderer.target.arch == "sm_50"


def test_s69_to_s74_places_of_threads_and_no_name() -> None:
    first, second = special("gidx0", 16), special("gidx1", 16)
    assert MetalRenderer().render([first]) == (
        METAL_HEAD + f"kernel void example({METAL_IDS}) {{\n  int gidx0 = gid.x; /* 16 */\n}}"
    )
    assert CUDARenderer("sm_50").render([first, second]) == (
        CUDA_HEAD
        + "(1) example() {\n  int gidx0 = blockIdx.x; /* 16 */\n  int gidx1 = blockIdx.y; /* 16 */\n}"
    )
    local = special("lidx0", 8)
    assert "int lidx0 = lid.x; /* 8 */" in MetalRenderer().render([local])
    text = CUDARenderer("sm_50").render([local, special("lidx1", 4)])
    assert "int lidx0 = threadIdx.x; /* 8 */" in text
    assert "__launch_bounds__(32)" in text


def test_s75_metal_e_4_4() -> None:
    assert MetalRenderer().render("E_4_4", add_4_4()) == METAL_HEAD + (
        f"kernel void E_4_4(device float* data0, device float* data1, device float* data2, {METAL_IDS}) {{\n"
        "  int lidx0 = lid.x; /* 4 */\n"
        "  int alu0 = (lidx0<<2);\n"
        "  float4 val0 = *((device float4*)((data1+alu0)));\n"
        "  float4 val1 = *((device float4*)((data2+alu0)));\n"
        "  *((device float4*)((data0+alu0))) = "
        "float4((val0.x+val1.x),(val0.y+val1.y),(val0.z+val1.z),(val0.w+val1.w));\n"
        "}"
    )


def test_s76_cuda_e_4_4() -> None:
    assert CUDARenderer("sm_50").render("E_4_4", add_4_4()) == CUDA_HEAD + (
        "(4) E_4_4(float* data0, float* data1, float* data2) {\n"
        "  int lidx0 = threadIdx.x; /* 4 */\n"
        "  int alu0 = (lidx0<<2);\n"
        "  float4 val0 = *((float4*)((data1+alu0)));\n"
        "  float4 val1 = *((float4*)((data2+alu0)));\n"
        "  *((float4*)((data0+alu0))) = "
        "make_float4((val0.x+val1.x),(val0.y+val1.y),(val0.z+val1.z),(val0.w+val1.w));\n"
        "}"
    )


@pytest.mark.parametrize("renderer", [CUDARenderer("sm_90"), MetalRenderer()], ids=lambda r: r.suffix)
@pytest.mark.parametrize(("place", "whole"), [(0, True), (4, True), (2, False), (1, False)])
def test_vectors_at_other_places_than_multiples_of_their_size_go_lane_by_lane(
    renderer: CStyleRenderer, place: int, whole: bool
) -> None:
    """A GPU faults, or rounds the address down."""
    a, b = (data(n, dtypes.float32, 72) for n in range(2))
    i = special("lidx0", 16)
    there = (i << 2) + place if place else i << 2
    text = renderer.render(listed(a, b, i, store(at(a, there), load(at(b, there), lanes=4))))
    assert text.count("float4*)") == (2 if whole else 0)
    assert text.count("[3]") == (0 if whole else 2)


def test_the_place_of_a_vector_may_be_made_of_floats() -> None:
    a, b, f = data(0, dtypes.float32, 16), data(1, dtypes.float32, 16), data(2, dtypes.float32, 4)
    where = load(at(f, special("lidx0", 4))) + const(4.0, dtypes.float32)
    position = where.cast(dtypes.int32)
    program = listed(a, b, f, store(at(a, position), load(at(b, position << const(2)), 4)))
    for renderer in (MetalRenderer(), CUDARenderer("sm_80")):
        text = renderer.render("k", program)
        assert "float4 val1 = *(" in text  # at a multiple of four
        assert "data0+cast0)[3] = " in text


def test_s77_e_16() -> None:
    loads = "  float val0 = *(data1+gidx0);\n  float val1 = *(data2+gidx0);\n"
    body = f" /* 16 */\n{loads}  *(data0+gidx0) = (val0+val1);\n}}"
    assert MetalRenderer().render("E_16", add_16()) == METAL_HEAD + (
        f"kernel void E_16(device float* data0, device float* data1, device float* data2, {METAL_IDS}) {{\n"
        "  int gidx0 = gid.x;" + body
    )
    assert CUDARenderer("sm_50").render("E_16", add_16()) == CUDA_HEAD + (
        "(1) E_16(float* data0, float* data1, float* data2) {\n  int gidx0 = blockIdx.x;" + body
    )


R_2 = """
  int acc0 = 0;
  for (int ridx0 = 0; ridx0 < 2; ridx0++) {
    int val0 = *(data1+ridx0);
    int val1 = *(data2+ridx0);
    acc0 = (acc0+(val0*val1));
  }
  *(data0+0) = acc0;
}"""


def test_s78_metal_r_2() -> None:
    assert MetalRenderer().render("r_2", dot_program()) == METAL_HEAD + (
        f"kernel void r_2(device int* data0, device int* data1, device int* data2, {METAL_IDS}) {{" + R_2
    )


def test_s79_c_r_2() -> None:
    text = CStyleRenderer().render("r_2", dot_program())
    kernel, entry = text.split("\nvoid r_2_entry")
    assert kernel == "void r_2(int* restrict data0, int* restrict data1, int* restrict data2) {" + R_2
    assert entry == (
        "(void** bufs, long long* vals, int piece, int pieces) {\n"
        "  r_2((int*)bufs[0], (int*)bufs[1], (int*)bufs[2]);\n}"
    )


def test_s80_half_plus_half() -> None:
    a, i, half = data(0, dtypes.float32, 16), special("gidx0", 16), const(0.5, dtypes.float32)
    assert MetalRenderer().render("rendered", listed(a, i, store(at(a, i), half + half))) == METAL_HEAD + (
        f"kernel void rendered(device float* data0, {METAL_IDS}) {{\n"
        "  int gidx0 = gid.x; /* 16 */\n  *(data0+gidx0) = (0.5f+0.5f);\n}"
    )


def test_s140_upcast_by_8(golden) -> None:  # type: ignore[no-untyped-def]
    a, b, c = (data(n, dtypes.float32, 16) for n in range(3))
    start = special("gidx0", 2) << const(3)
    stores = []
    for position in (start, start + 4):
        x, y = load(at(b, position), 4), load(at(c, position), 4)
        total = UOp(Ops.VECTORIZE, dtypes.float.vec(4), tuple(lane(x, n) + lane(y, n) for n in range(4)))
        stores.append(store(at(a, position), total))
    assert golden(MetalRenderer().render("E_2_8", listed(a, b, c, *stores)))


def test_s142_local() -> None:
    a, b, c = (data(n, dtypes.float32, 16) for n in range(3))
    i = special("lidx0", 2) + (special("gidx0", 8) << const(1))
    text = MetalRenderer().render(
        "E_8_2", listed(a, b, c, i, store(at(a, i), load(at(b, i)) + load(at(c, i))))
    )
    assert "int alu0 = (lidx0+(gidx0<<1));" in text


def grouped_sum() -> list[UOp]:
    """The documents' GROUP example: a row of four summed by two threads, that meet in local memory."""
    out, x = data(0, dtypes.float32, 4), data(1, dtypes.float32, 16)
    row, thread = special("gidx0", 4), special("lidx0", 2)
    temp = UOp(Ops.DEFINE_LOCAL, dtypes.float32.ptr(2, local=True), (), 0)
    zero = const(0.0, dtypes.float32)
    i, j = loop(0, 2), loop(1, 2)
    mine, whole = accumulator(0, zero, i), accumulator(1, zero, j)
    place = thread + (row << const(2)) + (i << const(1))
    only_one = UOp(Ops.IF, dtypes.void, (thread.eq(0),))
    barrier = UOp(Ops.BARRIER)
    first = listed(out, x, row, thread, temp, zero, const(0), const(2))
    steps = [mine, i, *listed(assign(mine, mine + load(at(x, place)))), end(i), at(temp, thread)]
    steps += [store(at(temp, thread), mine), barrier, *listed(only_one), whole, j]
    steps += [
        *listed(assign(whole, whole + load(at(temp, j)))),
        end(j),
        at(out, row),
        store(at(out, row), whole),
    ]
    return list(dict.fromkeys([*first, *steps, end(only_one)]))


@pytest.mark.parametrize(
    "renderer", [MetalRenderer(), CUDARenderer("sm_90"), OpenCLRenderer()], ids=["metal", "cuda", "opencl"]
)
def test_s143_group(golden, renderer) -> None:  # type: ignore[no-untyped-def]
    text = renderer.render("r_4_2_2", grouped_sum())
    assert golden(text)
    if isinstance(renderer, MetalRenderer):
        assert "  threadgroup float temp0[2];" in text
        assert "(data1+(lidx0+(gidx0<<2)+(ridx0<<1)))" in text
        assert "  threadgroup_barrier(mem_flags::mem_threadgroup);" in text


def test_constants() -> None:
    inf = float("inf")
    wanted = {
        "0.1f": const(0.1, dtypes.float32),
        "(-0.0f)": const(-0.0, dtypes.float32),
        "1e-08f": const(1e-8, dtypes.float32),
        "3.4028235e+38f": const(3.4028234663852886e38, dtypes.float32),
        "0.1": const(0.1, dtypes.float64),
        "INFINITY": const(inf, dtypes.float32),
        "(-INFINITY)": const(-inf, dtypes.float32),
        "((double)(-INFINITY))": const(-inf, dtypes.float64),
        "NAN": const(float("nan"), dtypes.float32),
        "((half)1.5f)": const(1.5, dtypes.float16),
        "(-5)": const(-5),
        "(-2147483647-1)": const(-(2**31)),
        "(-9223372036854775807ll-1)": const(-(2**63), dtypes.int64),
        "4294967295u": const(2**32 - 1, dtypes.uint32),
        "18446744073709551615ull": const(2**64 - 1, dtypes.uint64),
        "1": const(True, dtypes.bool),
    }
    for text, value in wanted.items():
        a = data(0, value.dtype, 1)
        assert f"*(data0+0) = {text};" in CStyleRenderer().render(listed(store(at(a, const(0)), value)))


def test_a_deep_expression_is_named_now_and_then() -> None:
    a, x = data(0, dtypes.float32, 1), const(1.0, dtypes.float32)
    value = load(at(data(1, dtypes.float32, 1), const(0)))
    for _ in range(10_000):
        value = value + x
    text = CStyleRenderer().render(listed(store(at(a, const(0)), value)))
    assert max(line.count("(") for line in text.splitlines()) < 60
    assert text.count("float alu") == 10_000 // 33


def test_what_a_renderer_supports() -> None:
    c, metal, cuda = CStyleRenderer(), MetalRenderer(), CUDARenderer(cuda_target("sm_90"))
    assert c.supports(Ops.ADD, dtypes.float32.vec(8))
    assert not c.supports(Ops.ADD, dtypes.bfloat16)
    assert not c.supports(Ops.MULACC, dtypes.float32)
    assert cuda.supports(Ops.MULACC, dtypes.float32)
    assert not metal.supports(Ops.ADD, dtypes.float64)
    assert metal.supports(Ops.LOAD, dtypes.float32.vec(4))
    assert not metal.supports(Ops.ADD, dtypes.float32.vec(4))
    assert not any(
        r.supports(op, dtypes.float32) for r in (c, metal, cuda) for op in (Ops.EXP2, Ops.SIN, Ops.POW)
    )


def test_what_a_renderer_cannot_say_is_named() -> None:
    x = load(at(data(1, dtypes.float32, 1), const(0)))
    with pytest.raises(NotImplementedError, match=r"C has no Ops\.SIN"):
        CStyleRenderer().render(listed(store(at(data(0, dtypes.float32, 1), const(0)), x.alu(Ops.SIN))))
    with pytest.raises(NotImplementedError, match="gidx0"):
        CStyleRenderer().render([special("gidx0", 4)])


def test_add_in_c(golden) -> None:  # type: ignore[no-untyped-def]
    assert golden(CStyleRenderer().render("E_16", add_program(16)), "scalar")
    assert golden(CStyleRenderer().render("E_4_4", add_program(16, 4)), "vector")


@pytest.mark.parametrize("program", [add_4_4, add_16, dot_program])
@pytest.mark.parametrize("language", GPU_RENDERERS)
def test_gpu_texts_run_as_cpp(tmp_path: Path, program: Callable[[], list[UOp]], language: str) -> None:
    require("g++")
    uops = program()
    kind = numpy.int32 if program is dot_program else numpy.float32
    out, a, b = numpy.zeros(16, kind), numpy.arange(16).astype(kind), numpy.ones(16, kind) * 3
    call_entry(gpu_entry(uops, language, "g++", tmp_path), [out, a, b])
    assert (out[:1] == 3).all() if program is dot_program else (out == a + b).all()


def test_opencl_is_accepted_by_clang(tmp_path: Path) -> None:
    require("clang-itself")  # any other C compiler serves elsewhere, but knows no OpenCL
    x, y, z = (load(at(data(n, dtypes.float32, 4), const(0))) for n in (1, 2, 3))
    out = at(data(0, dtypes.float32, 4), const(0))
    several = x.maximum(y).cast(dtypes.int).cast(dtypes.float) + x.bitcast(dtypes.uint).bitcast(dtypes.float)
    program = listed(store(out, several + x.sqrt().trunc().alu(Ops.MULACC, y, z) / (x < y).where(z, x)))
    source = tmp_path / "kernel.cl"
    for uops in (grouped_sum(), add_4_4(), program):
        source.write_text(OpenCLRenderer().render(uops))
        command = [
            "clang",
            "-x",
            "cl",
            "-cl-std=CL1.2",
            "-Xclang",
            "-finclude-default-header",
            "-fsyntax-only",
        ]
        done = subprocess.run([*command, str(source)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

"""The languages that look like C: the rows that differ, before those of all, and the words."""

from __future__ import annotations

from dataclasses import replace

from ...dtype import ALL_DTYPES, dtypes
from ...ir.ops import Ops
from ...ir.pattern import PatternMatcher, UPat
from ...target import SIMDGROUPS, Target, has_async_copies, launch_of, tensor_cores_of
from . import arithmetic, control, extension, memory, shuffles, simdgroups
from .arithmetic import may_overflow, on_unsigned
from .control import launch_row
from .dialect import Dialect
from .fetches import commit, fetch, wait
from .matrices import forgets, matrices, meet
from .memory import called, calling, is_misplaced, is_unaligned, is_wide, lanes_at, lanes_to, load, store

_NUMBERS = tuple(d for d in ALL_DTYPES if d.fmt is not None and d is not dtypes.bool)
_SHORT_NAMES = {d: d.name for d in (dtypes.bool, *_NUMBERS)}
_C_NAMES = {
    **_SHORT_NAMES,
    dtypes.int8: "signed char",
    dtypes.uint8: "unsigned char",
    dtypes.uint16: "unsigned short",
    dtypes.uint32: "unsigned int",
    dtypes.int64: "long long",
    dtypes.uint64: "unsigned long long",
}


#: What each op is in all of them.
COMMON = arithmetic.ROWS + memory.ROWS + control.ROWS

#: Signed numbers that leave their range are undefined where nothing tells the compiler that they wrap.
_OVERFLOW = PatternMatcher(
    [(UPat((Ops.ADD, Ops.SUB, Ops.MUL, Ops.NEG)), on_unsigned, may_overflow)], on=dtypes.ints
)
C = Dialect(
    rows=extension.ROWS + COMMON,
    types=_C_NAMES,
    vector_types=_SHORT_NAMES,
    vector_lengths=frozenset((2, 4, 8, 16, 32, 64)),
    make_vector="({type}){{{lanes}}}",
    lane="{vector}[{lane}]",
    long_suffix="ll",
    kernel="void {name}({parameters})",
    restrict=" restrict",
    function="static inline __attribute__((always_inline))",
    headers={
        dtypes.bool: "#define bool _Bool",
        # clang knows __fp16 everywhere, gcc _Float16; both are only stored here, arithmetic is float's
        dtypes.float16: ("#ifdef __clang__\ntypedef __fp16 half;\n#else\ntypedef _Float16 half;\n#endif"),
        "INFINITY": "#define INFINITY (__builtin_inff())",
        "NAN": '#define NAN (__builtin_nanf(""))',
    },
    sqrt="__builtin_sqrt{f}",
    trunc="__builtin_trunc{f}",
    fma="__builtin_fma{f}",
    bitcast="(*({type}*)&({source}){{{value}}})",
    vectors=True,
    entry=True,
)

OPENCL = Dialect(
    rows=PatternMatcher(
        [
            (UPat(Ops.SPECIAL), launch_row("get_group_id({number})", "get_local_id({number})")),
            (UPat(Ops.BARRIER), "barrier(CLK_LOCAL_MEM_FENCE);"),
            (UPat(Ops.LOAD), load(called("vload{lanes}(0, {pointer})")), is_wide),
            (UPat(Ops.STORE), store(calling("vstore{lanes}({value}, 0, {pointer})")), is_wide),
        ]
    )
    + _OVERFLOW
    + COMMON,
    types=_SHORT_NAMES,
    vector_types={d: _SHORT_NAMES[d] for d in _NUMBERS},
    vector_lengths=frozenset((2, 4, 8, 16)),
    make_vector="({type})({lanes})",
    lane="{vector}.s{lane:x}",
    long_suffix="l",
    kernel="__kernel void {name}({parameters})",
    buffer="__global ",
    local_memory="__local ",
    local_pointer="__local ",
    function="static inline",
    header=("#pragma OPENCL FP_CONTRACT OFF",),
    headers={
        dtypes.float16: "#pragma OPENCL EXTENSION cl_khr_fp16 : enable",
        dtypes.float64: "#pragma OPENCL EXTENSION cl_khr_fp64 : enable",
    },
    bitcast="as_{type}({value})",
)

CUDA = Dialect(
    rows=PatternMatcher(
        [
            (UPat(Ops.SPECIAL), launch_row("blockIdx.{axis}", "threadIdx.{axis}")),
            (UPat(Ops.BARRIER), meet),
            (UPat(Ops.WMMA), matrices),
            (UPat((Ops.RANGE, Ops.ENDRANGE, Ops.IF, Ops.ENDIF)), forgets),
            (UPat(Ops.SHUFFLE), shuffles.in_cuda),
            (UPat(Ops.FETCH), fetch),
            (UPat(Ops.COMMIT), commit),
            (UPat(Ops.WAIT), wait),
            (UPat(Ops.LOAD), load(lanes_at), is_misplaced),
            (UPat(Ops.STORE), store(lanes_to), is_misplaced),
        ]
    )
    + _OVERFLOW
    + COMMON,
    types=_C_NAMES,
    vector_types={
        **{d: _SHORT_NAMES[d] for d in _NUMBERS if d is not dtypes.float16},
        dtypes.int64: "longlong",
        dtypes.uint64: "ulonglong",
    },
    vector_lengths=frozenset((2, 4)),
    make_vector="make_{type}({lanes})",
    lane="{vector}.{letter}",
    long_suffix="ll",
    kernel='extern "C" __global__ void __launch_bounds__({bounds}) {name}({parameters})',
    local_memory="__shared__ ",
    local_aligned="__align__({bytes}) ",
    function="static __device__ __forceinline__",
    header=("#define INFINITY (__int_as_float(0x7f800000))", "#define NAN (__int_as_float(0x7fffffff))"),
    headers={dtypes.float16: "#include <cuda_fp16.h>"},
    sqrt="sqrt{f}",
    trunc="trunc{f}",
    fma="fma{f}",
    half_fma="__hfma",
)

METAL = Dialect(
    rows=PatternMatcher(
        [
            (UPat(Ops.SPECIAL), launch_row("gid.{axis}", "lid.{axis}")),
            (UPat(Ops.BARRIER), "threadgroup_barrier(mem_flags::mem_threadgroup);"),
            (UPat(Ops.DEFINE_ACC), simdgroups.begun),
            (UPat(Ops.WMMA), simdgroups.multiplied),
            (UPat(Ops.SHUFFLE), shuffles.in_metal),
            (UPat((Ops.RANGE, Ops.IF)), simdgroups.entered),
            (UPat((Ops.ENDRANGE, Ops.ENDIF)), simdgroups.left),
            (UPat(Ops.LOAD), load(lanes_at), is_unaligned),
            (UPat(Ops.STORE), store(lanes_to), is_unaligned),
        ]
    )
    + COMMON,
    types={d: name for d, name in _SHORT_NAMES.items() if d is not dtypes.float64},
    vector_types={d: _SHORT_NAMES[d] for d in _NUMBERS if d is not dtypes.float64},
    vector_lengths=frozenset((2, 4)),
    make_vector="{type}({lanes})",
    lane="{vector}.{letter}",
    long_suffix="l",
    kernel="kernel void {name}({parameters})",
    buffer="device ",
    variable="constant ",
    reference="&",
    more_parameters=(
        "uint3 gid [[threadgroup_position_in_grid]], uint3 lid [[thread_position_in_threadgroup]]"
    ),
    local_memory="threadgroup ",
    local_pointer="threadgroup ",
    header=("#include <metal_stdlib>", "using namespace metal;"),
    sqrt="precise::sqrt",
    bitcast="as_type<{type}>({value})",
)


# *** what each one's devices have, before a runtime measures

#: Entries of a Metal kernel's table of buffers (Apple's "Metal Feature Set Tables"); integers take some.
METAL_ARGUMENTS = 31


def _gpu(name: str, arch: str, dialect: Dialect, local_bytes: int) -> Target:
    return Target(
        name, arch, load_bytes=16, grid=True, has_local=True, local_bytes=local_bytes,
        native_dtypes=frozenset(dialect.types), has_fma=True,
    )  # fmt: skip


def c_target(arch: str = "") -> Target:
    """A 64-bit CPU of which nothing more is known."""
    half = frozenset((dtypes.float16,))
    return Target(
        "CLANG", arch, vector_bytes=16, vector_registers=16, native_dtypes=frozenset(C.types) - half,
        converted_dtypes=half,
    )  # fmt: skip


def opencl_target(arch: str = "") -> Target:
    return _gpu("CL", arch, OPENCL, 32 << 10)


def cuda_target(arch: str) -> Target:
    """`sm_90`, or the two digits alone."""
    arch = arch if arch.startswith("sm_") else f"sm_{arch}"
    return replace(
        _gpu("CUDA", arch, CUDA, 48 << 10), launch=launch_of(arch), tensor_cores=tensor_cores_of(arch),
        copy_sizes=(4, 8, 16), async_copies=has_async_copies(arch), shuffles=32,
    )  # fmt: skip


def metal_target(arch: str = "") -> Target:
    """Subnormal numbers may count as 0 (Apple's "Metal Shading Language Specification")."""
    base = _gpu("METAL", arch, METAL, 32 << 10)
    return replace(base, flushes=True, max_args=METAL_ARGUMENTS - 5, tensor_cores=SIMDGROUPS, shuffles=32)

"""What differs between the languages that look like C: a row for each, read by the other files here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...dtype import ALL_DTYPES, DType, dtypes
from ...target import Target

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


@dataclass(frozen=True)
class Dialect:
    """One language. In braces: what is filled in.

    types           dtype → the name of a scalar
    vector_types    dtype → a vector's name, less its length
    vector_lengths  which vectors it can load and store
    make_vector     `{type}` and `{lanes}` → a vector
    lane            `{vector}`, `{lane}` and `{letter}` → one lane
    long_suffix     of 64-bit literals
    kernel          `{bounds}`, `{name}`, `{parameters}` → the function's head; bounds: threads in a workgroup
    buffer, restrict     a parameter: `{buffer}float*{restrict} data0`
    variable, reference  another: `{variable}int{reference} n`
    more_parameters      at the end of the list
    global_id, local_id  `{axis}` (x, y, z) and `{number}` → the thread's place
    local_memory, barrier  the qualifier, the statement
    function        qualifiers of the small functions written before a kernel
    header          lines at the top of every text
    headers         a dtype that is used, or "INFINITY", "NAN" → a line
    sqrt, trunc, fma     functions, with `{f}` for the C library's letter
    bitcast         `{value}` of type `{source}` → the same bits as `{type}`; empty = a small function of ours
    vectors         whether vectors compute (the compilers' vector extension), or only load and store
    half_is_storage whether half has only conversions, so that arithmetic goes through float
    wraps           whether signed arithmetic that overflows wraps, or must go through unsigned numbers
    load, store     a vector at `{pointer}`, aligned as an element is; empty = through a vector pointer
    aligned         whether vectors are read and written at multiples of their size only, others lane by lane
    entry           whether the CPU's entry function is written too
    """

    types: Mapping[DType, str]
    vector_types: Mapping[DType, str]
    vector_lengths: frozenset[int]
    make_vector: str
    lane: str
    long_suffix: str
    kernel: str
    buffer: str = ""
    restrict: str = ""
    variable: str = "const "
    reference: str = ""
    more_parameters: str = ""
    global_id: str = ""
    local_id: str = ""
    local_memory: str = ""
    barrier: str = ""
    function: str = "inline"
    header: tuple[str, ...] = ()
    headers: Mapping[DType | str, str] = field(default_factory=dict)
    sqrt: str = "sqrt"
    trunc: str = "trunc"
    fma: str = "fma"
    bitcast: str = ""
    vectors: bool = False
    half_is_storage: bool = False
    wraps: bool = True
    load: str = ""
    store: str = ""
    aligned: bool = False
    entry: bool = False


C = Dialect(
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
    half_is_storage=True,
    entry=True,
)

OPENCL = Dialect(
    types=_SHORT_NAMES,
    vector_types={d: _SHORT_NAMES[d] for d in _NUMBERS},
    vector_lengths=frozenset((2, 4, 8, 16)),
    make_vector="({type})({lanes})",
    lane="{vector}.s{lane:x}",
    long_suffix="l",
    kernel="__kernel void {name}({parameters})",
    buffer="__global ",
    global_id="get_group_id({number})",
    local_id="get_local_id({number})",
    local_memory="__local ",
    barrier="barrier(CLK_LOCAL_MEM_FENCE);",
    function="static inline",
    header=("#pragma OPENCL FP_CONTRACT OFF",),
    headers={
        dtypes.float16: "#pragma OPENCL EXTENSION cl_khr_fp16 : enable",
        dtypes.float64: "#pragma OPENCL EXTENSION cl_khr_fp64 : enable",
    },
    bitcast="as_{type}({value})",
    wraps=False,
    load="vload{lanes}(0, {pointer})",
    store="vstore{lanes}({value}, 0, {pointer})",
)

CUDA = Dialect(
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
    global_id="blockIdx.{axis}",
    local_id="threadIdx.{axis}",
    local_memory="__shared__ ",
    barrier="__syncthreads();",
    function="static __device__ __forceinline__",
    header=("#define INFINITY (__int_as_float(0x7f800000))", "#define NAN (__int_as_float(0x7fffffff))"),
    headers={dtypes.float16: "#include <cuda_fp16.h>"},
    sqrt="sqrt{f}",
    trunc="trunc{f}",
    fma="fma{f}",
    wraps=False,
    aligned=True,
)

METAL = Dialect(
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
    global_id="gid.{axis}",
    local_id="lid.{axis}",
    local_memory="threadgroup ",
    barrier="threadgroup_barrier(mem_flags::mem_threadgroup);",
    header=("#include <metal_stdlib>", "using namespace metal;"),
    sqrt="precise::sqrt",
    bitcast="as_type<{type}>({value})",
    aligned=True,
)


# *** what each one's devices have, before a runtime measures


def _gpu(name: str, arch: str, dialect: Dialect, local_bytes: int) -> Target:
    return Target(
        name, arch, load_bytes=16, grid=True, has_local=True, local_bytes=local_bytes,
        native_dtypes=frozenset(dialect.types), has_fma=True,
    )  # fmt: skip


def c_target(arch: str = "") -> Target:
    """A 64-bit CPU of which nothing more is known."""
    return Target("CLANG", arch, vector_bytes=16, vector_registers=16, native_dtypes=frozenset(C.types))


def opencl_target(arch: str = "") -> Target:
    return _gpu("CL", arch, OPENCL, 32 << 10)


def cuda_target(arch: str) -> Target:
    """`sm_90`, or the two digits alone."""
    return _gpu("CUDA", arch if arch.startswith("sm_") else f"sm_{arch}", CUDA, 48 << 10)


def metal_target(arch: str = "") -> Target:
    return _gpu("METAL", arch, METAL, 32 << 10)

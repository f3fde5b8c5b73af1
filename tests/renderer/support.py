"""Hand-made linear programs, and ways to run their text: LLVM IR through llvmlite, C through a compiler."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy

from lazygrad.device import Buffer, Device
from lazygrad.dtype import ALL_DTYPES, DType, dtypes, from_numpy_name, numpy_name
from lazygrad.ir import AxisType, Ops, RangeArg, UOp
from lazygrad.renderer import ProgramSpec, Renderer, parameters
from lazygrad.renderer.cstyle import (
    FLAGS,
    CStyleRenderer,
    CUDARenderer,
    MetalRenderer,
    OpenCLRenderer,
    WGSL64Renderer,
    WGSLRenderer,
)
from lazygrad.renderer.cstyle.dialects import cuda_target, metal_target, opencl_target
from lazygrad.renderer.cstyle.wgsl import wgsl_target
from lazygrad.renderer.llvmir import LLVMRenderer
from lazygrad.target import Target
from tests import aarch64

LOOP, REDUCE, THREAD = AxisType.LOOP, AxisType.REDUCE, AxisType.THREAD


def const(value: Any, dtype: DType = dtypes.int32) -> UOp:
    return UOp.const(dtype, value)


def data(number: int, dtype: DType, size: int) -> UOp:
    return UOp(Ops.DEFINE_GLOBAL, dtype.ptr(size), (), number)


def loop(number: int, end: int | UOp, kind: AxisType = REDUCE) -> UOp:
    size = end if isinstance(end, UOp) else const(end)
    return UOp(Ops.RANGE, dtypes.int32, (const(0), size), RangeArg(number, kind))


def end(node: UOp) -> UOp:
    return UOp(Ops.ENDRANGE if node.op is Ops.RANGE else Ops.ENDIF, dtypes.void, (node,))


def at(buffer: UOp, position: UOp, valid: UOp | None = None) -> UOp:
    return UOp(Ops.INDEX, buffer.dtype, (buffer, position) + (() if valid is None else (valid,)))


def load(index: UOp, lanes: int = 1, other: UOp | None = None) -> UOp:
    return UOp(Ops.LOAD, index.src[0].dtype.base.vec(lanes), (index,) + (() if other is None else (other,)))


def store(index: UOp, value: UOp) -> UOp:
    return UOp(Ops.STORE, dtypes.void, (index, value))


def accumulator(number: int, start: UOp, *loops: UOp) -> UOp:
    return UOp(Ops.DEFINE_ACC, start.dtype, (start, *loops), (number,))


def assign(acc: UOp, value: UOp) -> UOp:
    return UOp(Ops.ASSIGN, acc.dtype, (acc, value))


def splat(value: UOp, lanes: int) -> UOp:
    return UOp(Ops.VECTORIZE, value.dtype.vec(lanes), (value,) * lanes)


def lane(vector: UOp, *lanes: int) -> UOp:
    return UOp(Ops.GEP, vector.dtype.scalar_type.vec(len(lanes)), (vector,), lanes)


def listed(*nodes: UOp) -> list[UOp]:
    """The nodes in order, each with what it needs in front of it, constants and definitions included."""
    found: dict[UOp, None] = {}
    for node in nodes:
        for below in node.toposort():
            found[below] = None
    first = [u for u in found if u.op in (Ops.DEFINE_GLOBAL, Ops.DEFINE_VAR)]
    first.sort(key=lambda u: (u.op is Ops.DEFINE_VAR, str(u.arg)))
    return [*first, *(u for u in found if u not in set(first))]


# *** programs


def add_program(size: int = 16, lanes: int = 1, kind: AxisType = LOOP) -> list[UOp]:
    """data0 = data1 + data2."""
    a, b, c = (data(n, dtypes.float32, size) for n in range(3))
    i = loop(0, size // lanes, kind)
    position = i * lanes if lanes > 1 else i
    total = load(at(b, position), lanes) + load(at(c, position), lanes)
    return listed(a, b, c, i, store(at(a, position), total), end(i))


def dot_program(size: int = 2) -> list[UOp]:
    """The documents' r_2: data0[0] = sum of data1 * data2, of ints."""
    a, b, c = data(0, dtypes.int32, 1), data(1, dtypes.int32, size), data(2, dtypes.int32, size)
    i = loop(0, size)
    acc = accumulator(0, const(0), i)
    total = acc + load(at(b, i)) * load(at(c, i))
    head = listed(a, b, c)
    # DEFINE_ACC names its loop as a source and yet is written before it
    return [
        *head, *i.src, acc, i, *[u for u in listed(assign(acc, total)) if u not in {*head, *i.src, acc, i}],
        end(i), at(a, const(0)), store(at(a, const(0)), acc),
    ]  # fmt: skip


# *** running

HALF = frozenset((dtypes.float16,))
HOST = Target(
    "CPU", vector_bytes=32, native_dtypes=frozenset(ALL_DTYPES) - HALF, converted_dtypes=HALF, has_fma=True
)
RENDERERS: dict[str, Renderer] = {
    "llvm": LLVMRenderer(HOST), "gcc": CStyleRenderer(HOST), "clang": CStyleRenderer(HOST),
    "aarch64": LLVMRenderer(aarch64.arm_target()),
}  # fmt: skip
#: Texts for GPUs, run on the CPU as C++: a header gives their words a meaning. No half: many C++
#: compilers have none.
_SCALARS = frozenset(d for d in ALL_DTYPES if d.fmt is not None and d is not dtypes.float16)
GPU_RENDERERS: dict[str, Renderer] = {
    "cuda": CUDARenderer(replace(cuda_target("sm_90"), native_dtypes=_SCALARS)),
    "metal": MetalRenderer(replace(metal_target(), native_dtypes=_SCALARS - {dtypes.float64})),
}
#: OpenCL's text runs on an OpenCL device.
OPENCL = OpenCLRenderer(replace(opencl_target(), native_dtypes=_SCALARS))
#: WGSL runs on a device of WebGPU, here with the types that lavapipe has.
_WGSL_TARGET = replace(wgsl_target(), native_dtypes=_SCALARS - {dtypes.float64})
WGSL, WGSL64 = WGSLRenderer(_WGSL_TARGET), WGSL64Renderer(_WGSL_TARGET)
ALL_RENDERERS = {**RENDERERS, **GPU_RENDERERS, "opencl": OPENCL, "wgsl": WGSL, "wgsl64": WGSL64}
GPU_WORDS = Path(__file__).parent / "gpu"
Run = Callable[..., None]
Arrays = Sequence[numpy.ndarray]
_alive: list[Any] = []


def call_entry(
    address: int, arrays: Arrays, values: Sequence[int] = (), piece: int = 0, pieces: int = 1
) -> None:
    buffers = (ctypes.c_void_p * max(len(arrays), 1))(*(a.ctypes.data for a in arrays))
    numbers = (ctypes.c_int64 * max(len(values), 1))(*values)
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32)
    kind(address)(ctypes.addressof(buffers), ctypes.addressof(numbers), piece, pieces)


def llvm_entry(text: str, name: str) -> int:
    """Parse, verify, optimize, compile: the address of the entry function."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(text)
    module.verify()
    features = llvm.get_host_cpu_features().flatten()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=2
    )
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    _alive.append((engine, machine))
    address: int = engine.get_function_address(f"{name}_entry")
    return address


def c_entry(text: str, name: str, compiler: str, flags: Sequence[str], folder: Path) -> int:
    """Compile to a shared object and load it: the address of the entry function."""
    source, library = folder / f"{name}.c", folder / f"{name}.so"
    source.write_text(text)
    command = [compiler, "-shared", "-fPIC", "-O2", *flags, "-o", str(library), str(source), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}\n{text}"
    loaded = ctypes.CDLL(str(library))
    _alive.append(loaded)
    return ctypes.cast(getattr(loaded, f"{name}_entry"), ctypes.c_void_p).value or 0


def run_on_arm(text: str, name: str, arrays: Arrays, values: Sequence[int] = (), pieces: int = 1) -> None:
    """LLVM IR, compiled for ARM and run by the emulator; any array may be written."""
    emulator = aarch64.emulator()
    library = emulator.library(aarch64.cross_compiler().compile(text))
    emulator.call(
        library, f"{name}_entry", [memoryview(a) for a in arrays], range(len(arrays)), values, pieces
    )


def gpu_entry(uops: Sequence[UOp], language: str, compiler: str, folder: Path) -> int:
    """A GPU's text as C++ for the CPU, with an entry that runs the threads of a launch in turn."""
    renderer = GPU_RENDERERS[language]
    assert isinstance(renderer, CStyleRenderer)
    sizes = {u.arg[0]: u.arg[1] for u in uops if u.op is Ops.SPECIAL}
    buffers, _ = parameters(uops)
    arguments = [f"({renderer.dialect.types[b.dtype.base]}*)bufs[{n}]" for n, b in enumerate(buffers)]
    places = "blockIdx = {g, 0, 0}; threadIdx = {l, 0, 0};"
    if language == "metal":
        places = ""
        arguments += ["uint3{g, 0, 0}", "uint3{l, 0, 0}"]
    entry = (
        'extern "C" void kernel_entry(void** bufs, long long* vals, int piece, int pieces) {\n'
        f"  for (unsigned g = 0; g < {sizes.get('gidx0', 1)}; g++)\n"
        f"    for (unsigned l = 0; l < {sizes.get('lidx0', 1)}; l++) {{\n"
        f"      {places} run({', '.join(arguments)});\n    }}\n}}\n"
    )
    text = renderer.render("run", uops)
    header = '#include "cuda.h"\n' if language == "cuda" else ""
    flags = [*FLAGS, "-march=native", f"-I{GPU_WORDS}", "-x", "c++", "-std=c++17"]
    return c_entry(f"{header}{text}\n{entry}", "kernel", compiler, flags, folder)


#: The languages that run on a device of lazygrad's own.
DEVICES = {"opencl": "CL", "wgsl": "WEBGPU", "wgsl64": "WEBGPU"}


def run_on_device(language: str, uops: Sequence[UOp], arrays: Arrays, values: Sequence[int] = ()) -> None:
    """Run a text on the device of its language; what it wrote is in the arrays."""
    name = DEVICES[language]
    device = Device[name]
    spec = ProgramSpec.of("run", ALL_RENDERERS[language], uops, device=name)
    program = device.load(spec, device.compile(spec))
    buffers = [Buffer(name, a.size, from_numpy_name(a.dtype.name)).allocate().copyin(a) for a in arrays]
    program(tuple(buffer._buf for buffer in buffers), tuple(values))
    for buffer, array in zip(buffers, arrays, strict=True):
        buffer.copyout(array)


def numpy_dtype(dtype: DType) -> Any:
    return numpy.dtype(numpy_name(dtype))

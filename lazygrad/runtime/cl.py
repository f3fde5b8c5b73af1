"""CL: OpenCL devices through pyopencl, on any installed driver (ICD); PoCL makes a CPU one.

Memory is a buffer of OpenCL's and an offset in it, so that a view is no object of its own: sub-buffers
must begin at addresses that few views have. A kernel therefore takes two arguments for each of its
parameters, and adds them (`with_offsets`); what is displayed is the text without that.

The device has one queue, which runs everything in order: launching does not wait, copies do. On PoCL it does:
at each launch a thread of its own reads the environment of the process, and starts a linker with it the first
time. A program that set a variable meanwhile (`os.environ`) moved what was read, and the process ended.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..device import (
    CompiledDevice,
    CompileError,
    Compiler,
    DeviceError,
    Graph,
    Launch,
    MissingDeviceError,
    Program,
)
from ..dtype import dtypes
from ..renderer import ProgramSpec
from ..renderer.cstyle import OpenCLRenderer
from ..renderer.cstyle.dialects import opencl_target
from ..target import Target
from ._regions import Region, RegionAllocator

POCL = "Portable Computing Language"

# *** memory


class CLAllocator(RegionAllocator):
    """Buffers of the device."""

    def __init__(self, name: str, cl: Any, context: Any, queue: Any) -> None:
        super().__init__(name, cl.Buffer, queue.device.max_mem_alloc_size)
        self.cl, self.context, self.queue = cl, context, queue
        self.cache_limit = max(int(queue.device.global_mem_size) // 8, 1 << 28)

    def _make(self, nbytes: int) -> Any:
        cl = self.cl
        try:
            buffer = cl.Buffer(self.context, cl.mem_flags.READ_WRITE, nbytes)
            self._clear(Region(buffer, nbytes))
        except cl.MemoryError as error:
            raise MemoryError(str(error)) from error
        return buffer

    def _release(self, buffer: Any) -> None:
        buffer.release()

    def _clear(self, handle: Region) -> None:
        nbytes = self._rounded(handle.nbytes)
        self.cl.enqueue_fill_buffer(self.queue, handle.buffer, b"\0\0\0\0", 0, nbytes)

    def _copyin(self, handle: Region, source: memoryview) -> None:
        if handle.nbytes:
            self.cl.enqueue_copy(self.queue, handle.buffer, source, dst_offset=handle.offset)

    def _copyout(self, target: memoryview, handle: Region) -> None:
        if handle.nbytes:
            self.cl.enqueue_copy(self.queue, target, handle.buffer, src_offset=handle.offset)


# *** programs

_HEAD = re.compile(r"^__kernel void (\w+)\((.*)\) \{$", re.MULTILINE)
_POINTER = re.compile(r"__global (.+)\* (\w+)")


def with_offsets(text: str) -> str:
    """The kernel whose parameters are buffers, each followed by how many bytes of it to leave out.

        __kernel void f(__global float* data0) {
    becomes
        __kernel void f(__global uchar* data0_base, const ulong data0_skip) {
          __global float* data0 = (__global float*)(data0_base+data0_skip);
    """

    def head(found: re.Match[str]) -> str:
        parameters, lines = [], []
        for parameter in found[2].split(", ") if found[2] else []:
            pointer = _POINTER.fullmatch(parameter)
            if pointer is None:
                parameters.append(parameter)
                continue
            kind, name = f"__global {pointer[1]}*", pointer[2]
            parameters.append(f"__global uchar* {name}_base, const ulong {name}_skip")
            lines.append(f"\n  {kind} {name} = ({kind})({name}_base+{name}_skip);")
        return f"__kernel void {found[1]}({', '.join(parameters)}) {{{''.join(lines)}"

    return _HEAD.sub(head, text)


class CLCompiler(Compiler):
    """OpenCL C → the driver's binary."""

    def __init__(self, cl: Any, context: Any, device: Any) -> None:
        self.cl, self.context, self.device = cl, context, device
        exact = cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
        rounded = bool(device.single_fp_config & exact)
        self.options = ["-w", *["-cl-fp32-correctly-rounded-divide-sqrt"] * rounded]

    def version(self) -> str:
        device = self.device
        driver = (device.platform.name, device.platform.version, device.name, device.version)
        return " | ".join((*driver, device.driver_version, *self.options))

    def compile(self, source: str) -> bytes:
        cl = self.cl
        try:
            program = cl.Program(self.context, with_offsets(source)).build(self.options)
            binary: bytes = program.get_info(cl.program_info.BINARIES)[0]
        except cl.Error as error:
            raise CompileError(f"{self.device.name} refuses this kernel", source, str(error)) from None
        return binary

    def load(self, spec: ProgramSpec, lib: bytes) -> Any:
        """The kernel of a binary."""
        cl = self.cl
        try:
            program = cl.Program(self.context, [self.device], [lib]).build(self.options)
            return cl.Kernel(program, spec.function_name)
        except cl.Error as error:
            raise CompileError(f"{self.device.name} cannot load a kernel", spec.src, str(error)) from None


class CLProgram:
    """A loaded kernel. Arguments belong to the kernel object, hence the lock; they are set where they change.

    `another()` is the same with arguments of its own.
    """

    def __init__(self, device: CLDevice, spec: ProgramSpec, kernel: Any, lib: bytes) -> None:
        import numpy

        self.device, self.spec, self.kernel, self.lib = device, spec, kernel, lib
        self.enqueue = device.cl.enqueue_nd_range_kernel
        variables = [numpy.dtype(variable.dtype.fmt) for variable in spec.vars]
        kernel.set_scalar_arg_dtypes([None, numpy.uint64] * spec.globals + variables)
        self.local = tuple(spec.local_size or (1, 1, 1))
        self.groups = tuple(spec.global_size or (1, 1, 1))
        self.size = tuple(g * n for g, n in zip(self.groups, self.local, strict=True))
        self.lock = threading.Lock()
        self.given: list[int] | None = None
        self.arguments: list[Any] = []  # keeps the ids in `given` from being given again

    def another(self) -> CLProgram:
        kernel = self.device.compiler.load(self.spec, self.lib)
        return CLProgram(self.device, self.spec, kernel, self.lib)

    def __call__(
        self, handles: tuple[Region, ...], vals: tuple[int, ...] = (), wait: bool = False
    ) -> float | None:
        arguments: list[Any] = []
        given: list[int] = []
        for handle in handles:
            arguments += (handle.buffer, handle.offset)
            given += (id(handle.buffer), handle.offset)
        arguments += vals
        given += vals
        try:
            with self.lock:
                if given != self.given:
                    self.given = None
                    self.kernel.set_args(*arguments)
                    self.given, self.arguments = given, arguments
                event = self.enqueue(self.device.queue, self.kernel, self.size, self.local)
            if wait or self.device.reads_environment:
                event.wait()
        except self.device.cl.Error as error:
            raise DeviceError(
                f"{self.device.name} does not run {self.spec.name} with {self.groups} workgroups of "
                f"{self.local}: {error}"
            ) from error
        if not wait:
            return None
        return float(event.profile.end - event.profile.start) * 1e-9


# *** devices


class CLDevice(CompiledDevice):
    """The n-th OpenCL device of this machine, GPUs first."""

    has_graphs = True
    fork_safe = False  # a driver's threads and locks do not survive a fork
    compiler: CLCompiler

    def __init__(self, name: str) -> None:
        cl = self.cl = _pyopencl()
        found = _devices(cl)
        number = int(name.partition(":")[2] or 0)
        if number >= len(found):
            listed = ", ".join(f"CL:{n} is {device.name.strip()}" for n, device in enumerate(found))
            raise DeviceError(f"there is no device {name}: {listed}")
        device = found[number]
        self.reads_environment = device.platform.name == POCL
        self.context = cl.Context([device])
        profiling = cl.command_queue_properties.PROFILING_ENABLE
        self.queue = cl.CommandQueue(self.context, device, profiling)
        allocator = CLAllocator(name, cl, self.context, self.queue)
        compiler = CLCompiler(cl, self.context, device)
        super().__init__(name, allocator, OpenCLRenderer(device_target(cl, device)), compiler)

    def load(self, spec: ProgramSpec, lib: bytes) -> Program:
        return CLProgram(self, spec, self.compiler.load(spec, lib), lib)

    def graph(self, launches: Sequence[Launch]) -> Graph:
        """Kernels with arguments of their own: only what changes is set again, and nothing is waited for."""
        own = [(program.another(), places, values) for program, places, values in launches]  # type: ignore[attr-defined]

        def run(handles: Sequence[Region], integers: Sequence[int]) -> None:
            for program, places, values in own:
                program(tuple([handles[n] for n in places]), tuple([integers[n] for n in values]))

        return run

    def synchronize(self) -> None:
        self.queue.finish()
        self.raise_reported()


def device_target(cl: Any, device: Any) -> Target:
    """What an OpenCL device says it has."""
    base = opencl_target(f"{device.name.strip()} {device.driver_version}")
    extensions = set(device.extensions.split())
    missing = {
        dtype
        for dtype, extension in ((dtypes.float16, "cl_khr_fp16"), (dtypes.float64, "cl_khr_fp64"))
        if extension not in extensions
    }
    axes = tuple(int(size) for size in device.max_work_item_sizes[:3])
    return replace(
        base,
        native_dtypes=base.native_dtypes - missing,
        has_fma=bool(device.single_fp_config & cl.device_fp_config.FMA),
        local_bytes=int(device.local_mem_size),
        group_threads=int(device.max_work_group_size),
        group_sizes=axes,
        grid_sizes=tuple((1 << 31) // size for size in axes),
    )


def _pyopencl() -> Any:
    try:
        import pyopencl
    except ImportError:
        raise MissingDeviceError('device CL needs pyopencl: pip install "lazygrad[cl]"') from None
    return pyopencl


def _devices(cl: Any) -> list[Any]:
    """Every device of every driver, GPUs before accelerators before CPUs."""
    try:
        found = [device for platform in cl.get_platforms() for device in platform.get_devices()]
    except cl.Error:  # the loader is there and finds no driver
        found = []
    if not found:
        raise MissingDeviceError(
            "device CL finds no OpenCL driver: install your GPU's, or for the CPU: "
            "apt-get install pocl-opencl-icd"
        )
    kinds = (cl.device_type.GPU, cl.device_type.ACCELERATOR)
    return sorted(
        found, key=lambda device: next((n for n, kind in enumerate(kinds) if device.type & kind), 2)
    )

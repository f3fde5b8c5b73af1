"""METAL: Apple's GPUs through Metal, which PyObjC brings to Python.

Memory is a buffer of Metal's that the host sees too ("shared"), and an offset in it. One queue runs all in
order: launching does not wait, the host waits before it looks at memory. Metal is asked to keep to IEEE 754.

No machine with Metal was at hand when this was written: see docs/devices.md.
"""

from __future__ import annotations

import platform
import re
import struct
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
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
    OutOfMemoryError,
    Program,
)
from ..renderer import ProgramSpec
from ..renderer.cstyle import MetalRenderer
from ..renderer.cstyle.dialects import METAL_ARGUMENTS, metal_target
from ..target import Target
from ._metal_graph import MetalGraph
from ._regions import Region, RegionAllocator
from ._segments import in_segments

#: So many launches may be on their way: a queue has room for 64 command buffers.
ON_THEIR_WAY = 32
#: MTLCommandBufferErrorOutOfMemory
_OUT_OF_MEMORY = 8


class Connection:
    """A GPU and its queue. One thread calls it at a time.

    apple7  whether it is of family Apple7 or a later one: M1 and what follows
    """

    def __init__(self, name: str, metal: Any, objc: Any, device: Any) -> None:
        self.name, self.metal, self.objc, self.device = name, metal, objc, device
        self.lock = threading.RLock()
        self.apple7 = bool(device.supportsFamily_(metal.MTLGPUFamilyApple7))
        self.queue = device.newCommandQueue()
        if self.queue is None:
            raise DeviceError(f"{name}: {device.name()} gives no queue of commands")
        self.started: deque[tuple[Any, str]] = deque()

    def run(self, what: str, encode: Callable[[Any], None], blit: bool = False) -> Any:
        """Start what `encode` writes: kernels one after the other, or what moves memory. The commands."""
        with self.lock, self.objc.autorelease_pool():
            commands = self.queue.commandBuffer()
            if commands is None:
                raise DeviceError(f"{self.name} takes no commands")
            encoder = commands.blitCommandEncoder() if blit else commands.computeCommandEncoder()
            try:
                encode(encoder)
            finally:
                encoder.endEncoding()  # one that is given up must end too
            commands.commit()
            self.started.append((commands, what))
            if len(self.started) > ON_THEIR_WAY:
                self._finish(1)
            return commands

    def wait(self) -> None:
        """Until all that was started is done."""
        with self.lock:
            self._finish(len(self.started))

    def _finish(self, count: int) -> None:
        """Wait for the first ones; what went wrong first is raised when all are done."""
        problem = None
        with self.objc.autorelease_pool():
            for _ in range(count):
                commands, what = self.started.popleft()
                commands.waitUntilCompleted()
                if commands.status() == self.metal.MTLCommandBufferStatusError and problem is None:
                    problem = self._problem(commands.error(), what)
        if problem is not None:
            raise problem

    def _problem(self, error: Any, what: str) -> DeviceError:
        code, said = (0, "it does not say why") if error is None else (error.code(), _said(error))
        kind = OutOfMemoryError if code == _OUT_OF_MEMORY else DeviceError
        return kind(f"{self.name} did not finish {what}: {said}")


def _said(error: Any) -> str:
    """The words of an NSError."""
    return "it does not say why" if error is None else str(error.localizedDescription())


# *** memory


class MetalBuffer:
    """An MTLBuffer of `size` bytes, and the host's view of them."""

    __slots__ = ("metal", "size", "view")

    def __init__(self, metal: Any, size: int) -> None:
        self.metal, self.size = metal, size
        self.view: memoryview | None = memoryview(metal.contents().as_buffer(size)).cast("B")


class MetalAllocator(RegionAllocator):
    """Memory that GPU and host share."""

    def __init__(self, name: str, gpu: Connection) -> None:
        super().__init__(name, MetalBuffer, int(gpu.device.maxBufferLength()))
        self.gpu = gpu
        self.cache_limit = max(int(gpu.device.recommendedMaxWorkingSetSize()) // 8, 1 << 28)

    def _make(self, nbytes: int) -> MetalBuffer:
        gpu = self.gpu
        with gpu.objc.autorelease_pool():
            options = gpu.metal.MTLResourceStorageModeShared
            found = gpu.device.newBufferWithLength_options_(nbytes, options)
            if found is None:
                raise MemoryError(f"{self.name} has no {nbytes:,} bytes")
            return MetalBuffer(found, nbytes)  # a new one reads zeros

    def _release(self, buffer: MetalBuffer) -> None:
        buffer.view = buffer.metal = None  # commands that use it keep it until they are done

    def _clear(self, handle: Region) -> None:
        """When what was started before is done."""
        buffer = handle.buffer
        self.gpu.run(
            "clearing memory",
            lambda blit: blit.fillBuffer_range_value_(buffer.metal, (0, buffer.size), 0),
            True,
        )

    def bytes_of(self, handle: Region) -> memoryview:
        """What the host sees of it; the GPU must be done."""
        view: memoryview = handle.buffer.view
        return view[handle.offset : handle.offset + handle.nbytes]

    def _copyin(self, handle: Region, source: memoryview) -> None:
        self.gpu.wait()
        self.bytes_of(handle)[: source.nbytes] = source

    def _copyout(self, target: memoryview, handle: Region) -> None:
        self.gpu.wait()
        target[:] = self.bytes_of(handle)[: target.nbytes]


# *** programs

#: A vector in memory is at a multiple of its size.
_VECTOR = re.compile(r"\(device (\w+?)([24])\*\)")
_SIZES = {"char": 1, "uchar": 1, "bool": 1, "short": 2, "ushort": 2, "half": 2, "long": 8, "ulong": 8}
#: Bytes of a long4.
_WIDEST = 32
_BUFFER = re.compile(r"\bdevice (\w+)\* ?\w+[,)]")


def alignments(spec: ProgramSpec) -> list[int]:
    """Of what each buffer of a kernel must begin at a multiple: its elements, and the widest vector in it."""
    head = next((line for line in spec.src.splitlines() if line.startswith("kernel ")), "")
    kinds = _BUFFER.findall(head)
    if len(kinds) != spec.globals:  # a user's text
        return [_WIDEST] * spec.globals
    widest = max((_SIZES.get(kind, 4) * int(lanes) for kind, lanes in _VECTOR.findall(spec.src)), default=1)
    return [max(_SIZES.get(kind, 4), widest) for kind in kinds]


class MetalCompiler(Compiler):
    """Metal's text is compiled here, and by macOS again when it is loaded: what is kept is the text."""

    def __init__(self, gpu: Connection) -> None:
        self.gpu = gpu
        self.libraries: dict[bytes, Any] = {}  # compiled and not loaded yet

    def version(self) -> str:
        return f"{self.gpu.device.name()} macOS {platform.mac_ver()[0]}"

    def compile(self, source: str) -> bytes:
        lib = source.encode()
        self.libraries.clear()
        self.libraries[lib] = self._library(source)
        return lib

    def _library(self, source: str) -> Any:
        metal = self.gpu.metal
        with self.gpu.objc.autorelease_pool():
            options = metal.MTLCompileOptions.alloc().init()
            options.setFastMathEnabled_(False)
            library, error = self.gpu.device.newLibraryWithSource_options_error_(source, options, None)
            if library is None:  # else an error is a warning
                raise CompileError(f"{self.gpu.name} refuses this kernel", source, _said(error))
            return library

    def load(self, spec: ProgramSpec, lib: bytes) -> Any:
        """The pipeline of a kernel."""
        library = self.libraries.pop(lib, None) or self._library(lib.decode())
        with self.gpu.objc.autorelease_pool():
            function = library.newFunctionWithName_(spec.function_name)
            if function is None:
                raise CompileError(f"the library has no function {spec.function_name}", spec.src)
            told = self.gpu.metal.MTLComputePipelineDescriptor.alloc().init()
            told.setComputeFunction_(function)
            told.setSupportIndirectCommandBuffers_(self.gpu.apple7)
            make = self.gpu.device.newComputePipelineStateWithDescriptor_options_reflection_error_
            pipeline, error = make(told, 0, None, None)
            if pipeline is None:
                raise CompileError(f"{self.gpu.name} cannot load a kernel", spec.src, _said(error))
            return pipeline


class MetalProgram:
    """A kernel's pipeline."""

    def __init__(self, device: MetalDevice, spec: ProgramSpec, pipeline: Any) -> None:
        self.device, self.spec, self.pipeline = device, spec, pipeline
        size = device.gpu.metal.MTLSize
        self.groups, self.threads = (size(*(n or (1, 1, 1))) for n in (spec.global_size, spec.local_size))
        self.values = [struct.Struct(f"={variable.dtype.fmt}") for variable in spec.vars]
        self.alignments = alignments(spec)

    def fits(self, handles: Sequence[Region]) -> bool:
        """Whether memory begins where Metal lets a kernel have it."""
        return not any(h.offset % multiple for h, multiple in zip(handles, self.alignments, strict=True))

    def encode(self, encoder: Any, handles: Sequence[Region], vals: Sequence[int]) -> None:
        encoder.setComputePipelineState_(self.pipeline)
        for number, handle in enumerate(handles):
            encoder.setBuffer_offset_atIndex_(handle.buffer.metal, handle.offset, number)
        for number, (form, value) in enumerate(zip(self.values, vals, strict=True), len(handles)):
            encoder.setBytes_length_atIndex_(form.pack(value), form.size, number)
        encoder.dispatchThreadgroups_threadsPerThreadgroup_(self.groups, self.threads)

    def __call__(
        self, handles: tuple[Region, ...], vals: tuple[int, ...] = (), wait: bool = False
    ) -> float | None:
        if not self.fits(handles):
            return self._on_copies(handles, vals, wait)
        gpu = self.device.gpu
        commands = gpu.run(self.spec.name, lambda encoder: self.encode(encoder, handles, vals))
        if not wait:
            return None
        gpu.wait()
        return float(commands.GPUEndTime() - commands.GPUStartTime())

    def _on_copies(self, handles: tuple[Region, ...], vals: tuple[int, ...], wait: bool) -> float | None:
        """With views that begin elsewhere in memory of their own."""
        allocator: Any = self.device.allocator
        fitting = [
            handle if handle.offset % multiple == 0 else allocator.alloc(handle.nbytes)
            for handle, multiple in zip(handles, self.alignments, strict=True)
        ]
        moved = [number for number, handle in enumerate(handles) if fitting[number] is not handle]
        try:
            for number in moved:
                allocator._copyin(fitting[number], allocator.bytes_of(handles[number]))
            seconds = self(tuple(fitting), vals, wait)
            for number in moved:
                if number in self.spec.outs:
                    allocator._copyin(handles[number], allocator.bytes_of(fitting[number]))
        finally:
            for number in moved:
                allocator.free(fitting[number])
        return seconds


# *** devices


class MetalDevice(CompiledDevice):
    """The n-th GPU of this Mac, the system's choice first."""

    has_graphs = True
    fork_safe = False  # Apple's frameworks do not survive a fork
    compiler: MetalCompiler

    def __init__(self, name: str) -> None:
        metal, objc = _metal()
        found = _devices(metal)
        number = int(name.partition(":")[2] or 0)
        if number >= len(found):
            listed = ", ".join(f"METAL:{n} is {device.name()}" for n, device in enumerate(found))
            raise DeviceError(f"there is no device {name}: {listed}")
        self.gpu = Connection(name, metal, objc, found[number])
        renderer = MetalRenderer(device_target(self.gpu))
        super().__init__(name, MetalAllocator(name, self.gpu), renderer, MetalCompiler(self.gpu))

    def load(self, spec: ProgramSpec, lib: bytes) -> Program:
        taken = spec.globals + len(spec.vars)
        if taken > METAL_ARGUMENTS:
            raise DeviceError(
                f"{self.name} does not run {spec.name}: it takes {taken} buffers and integers, and Metal "
                f"{METAL_ARGUMENTS}; compute parts of it with realize()"
            )
        pipeline = self.compiler.load(spec, lib)
        threads, most = 1, int(pipeline.maxTotalThreadsPerThreadgroup())
        for size in spec.local_size or ():
            threads *= size
        if threads > most:
            raise DeviceError(
                f"{self.name} does not run {spec.name} with workgroups of {threads} threads: "
                f"its registers leave room for {most}"
            )
        return MetalProgram(self, spec, pipeline)

    def graph(self, launches: Sequence[Launch]) -> Graph:
        """Kernels that follow each other in one command buffer: it is what takes time to start."""
        as_one = self._indirect if self.gpu.apple7 else self._commands
        return in_segments(launches, lambda program: isinstance(program, MetalProgram), as_one)

    def _indirect(self, launches: Sequence[Launch]) -> Graph:
        return MetalGraph(self.gpu, launches)

    def _commands(self, launches: Sequence[Launch]) -> Graph:
        """Encoded anew for each call."""
        programs: list[MetalProgram] = [program for program, _, _ in launches]  # type: ignore[misc]

        def run(handles: Sequence[Region], integers: Sequence[int]) -> None:
            given = [
                (program, tuple([handles[n] for n in places]), tuple([integers[n] for n in values]))
                for program, (_, places, values) in zip(programs, launches, strict=True)
            ]
            if all(program.fits(own) for program, own, _ in given):
                self.gpu.run("a captured function", lambda encoder: _encode(encoder, given))
            else:
                for program, own, vals in given:
                    program(own, vals)

        return run

    def about(self) -> str:
        """The model, as "Apple M2"."""
        return str(self.gpu.device.name())

    def synchronize(self) -> None:
        self.gpu.wait()
        self.raise_reported()


def _encode(
    encoder: Any, launches: Iterable[tuple[MetalProgram, tuple[Region, ...], tuple[int, ...]]]
) -> None:
    """The encoder is a serial one: a kernel sees what those before it wrote."""
    for program, handles, vals in launches:
        program.encode(encoder, handles, vals)


def device_target(gpu: Connection) -> Target:
    """What a GPU says it has; of families before Apple7, and of other makers' GPUs, it is not
    known how many threads a SIMD-group has, and they multiply no matrices."""
    device, most = gpu.device, gpu.device.maxThreadsPerThreadgroup()
    sizes = (int(most.width), int(most.height), int(most.depth))
    base = metal_target(str(device.name()))
    return replace(
        base,
        tensor_cores=base.tensor_cores if gpu.apple7 else (),
        shuffles=base.shuffles if gpu.apple7 else 0,
        local_bytes=int(device.maxThreadgroupMemoryLength()),
        group_threads=min(sizes[0], 1024),
        group_sizes=sizes,
    )


def _metal() -> tuple[Any, Any]:
    try:
        import Metal
        import objc
    except ImportError as error:
        if sys.platform != "darwin":
            raise MissingDeviceError(
                f"device METAL is for Apple's macOS, and this is {sys.platform}"
            ) from None
        raise MissingDeviceError(
            f'device METAL needs PyObjC ({error}): pip install "lazygrad[metal]"'
        ) from None
    return Metal, objc


def _devices(metal: Any) -> list[Any]:
    usual = metal.MTLCreateSystemDefaultDevice()
    if usual is None:
        raise DeviceError("device METAL finds no GPU that has Metal")
    others = [d for d in metal.MTLCopyAllDevices() or () if d.registryID() != usual.registryID()]
    return [usual, *others]

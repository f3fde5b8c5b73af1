"""WEBGPU: kernels in WGSL through wgpu, on Vulkan, Metal or Direct3D; Mesa's lavapipe makes a CPU one.

Memory is a buffer of WebGPU's and an offset in it. Bindings begin at multiples of up to 256 bytes, so a
kernel is bound from there, and told how many elements to skip: it has a uniform buffer of the numbers that it
is given, as renderer/cstyle/wgsl_kernel.py writes them. Copies move words of 4 bytes: what begins or ends
within one is completed from memory.

The queue runs everything in order: launching does not wait, copies to the host do. Calls of wgpu are made by
one thread at a time.
"""

from __future__ import annotations

import re
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
from ..renderer import ProgramSpec
from ..renderer.cstyle.wgsl import arguments, wgsl_target
from ..renderer.cstyle.wgsl_kernel import entry_name
from ..target import Target
from ._regions import Region, RegionAllocator
from ._segments import in_segments
from ._webgpu_connection import Connection, said, short
from ._webgpu_program import WebGPUGraph, WebGPUProgram

# *** memory


class WebGPUAllocator(RegionAllocator):
    """Buffers of the device."""

    def __init__(self, name: str, connection: Connection) -> None:
        limits = connection.limits
        largest = min(limits["max-buffer-size"], limits["max-storage-buffer-binding-size"]) // 64 * 64
        super().__init__(name, connection.wgpu.GPUBuffer, largest)
        self.gpu = connection
        #: Buffers by identity: of what the garbage collector finds, it would end these too, whose memory is
        #: used again afterwards.
        self.made: dict[int, Any] = {}

    def _make(self, nbytes: int) -> Any:
        gpu = self.gpu
        made = gpu.call("allocate", gpu.device.create_buffer, size=nbytes, usage=gpu.usage)
        self.made[id(made)] = made
        return made

    def _release(self, buffer: Any) -> None:
        self.made.pop(id(buffer), None)
        self.gpu.call("free", buffer.destroy)

    def _clear(self, handle: Region) -> None:
        def clear() -> None:
            encoder = self.gpu.device.create_command_encoder()
            encoder.clear_buffer(handle.buffer)
            self.gpu.queue.submit([encoder.finish()])

        self.gpu.call("clear memory", clear)

    def _copyin(self, handle: Region, source: memoryview) -> None:
        nbytes = min(handle.nbytes, source.nbytes)
        if not nbytes:
            return
        first, end = handle.offset // 4 * 4, -(-(handle.offset + nbytes) // 4) * 4
        write, queue = self.gpu.queue.write_buffer, self.gpu.queue
        with self.gpu.lock:
            data: Any = source
            if (first, end) != (handle.offset, handle.offset + nbytes):
                data = bytearray(end - first)
                for word in {first, end - 4}:
                    found = self.gpu.call("read memory", queue.read_buffer, handle.buffer, word, 4)
                    data[word - first : word - first + 4] = found
                begin = handle.offset - first
                data[begin : begin + nbytes] = source[:nbytes]
            self.gpu.call("write memory", write, handle.buffer, first, data)

    def _copyout(self, target: memoryview, handle: Region) -> None:
        nbytes = min(handle.nbytes, target.nbytes)
        if not nbytes:
            return
        first, end = handle.offset // 4 * 4, -(-(handle.offset + nbytes) // 4) * 4
        found = self.gpu.call("read memory", self.gpu.queue.read_buffer, handle.buffer, first, end - first)
        begin = handle.offset - first
        target[:nbytes] = found[begin : begin + nbytes]


# *** programs

_BUFFER = re.compile(r"^@group\(0\) @binding\(\d+\) var<storage, read_write> (\w+): .*; /\* (\d+) \*/$", re.M)


class WebGPUCompiler(Compiler):
    """WGSL is checked; what is loaded is the text itself."""

    def __init__(self, connection: Connection) -> None:
        self.gpu = connection

    def compile(self, source: str) -> bytes:
        self.module(source)
        return source.encode()

    def module(self, source: str) -> Any:
        try:
            with self.gpu.lock:
                return self.gpu.device.create_shader_module(code=source)
        except (self.gpu.wgpu.GPUError, RuntimeError) as error:
            raise CompileError(f"{self.gpu.name} refuses this kernel", source, str(error)) from None


# *** devices


class WebGPUDevice(CompiledDevice):
    """The n-th adapter of this machine, GPUs first."""

    has_graphs = True
    fork_safe = False  # a driver's threads and locks do not survive a fork
    compiler: WebGPUCompiler

    def __init__(self, name: str) -> None:
        wgpu = _wgpu()
        found = _adapters(wgpu)
        number = int(name.partition(":")[2] or 0)
        if number >= len(found):
            listed = ", ".join(f"WEBGPU:{n} is {said(adapter)}" for n, adapter in enumerate(found))
            raise DeviceError(f"there is no device {name}: {listed}")
        self.gpu = Connection(name, wgpu, found[number])
        target = device_target(self.gpu)
        super().__init__(
            name, WebGPUAllocator(name, self.gpu), self.gpu.renderer(target), WebGPUCompiler(self.gpu)
        )

    def load(self, spec: ProgramSpec, lib: bytes) -> Program:
        gpu, most = self.gpu, self.gpu.limits["max-storage-buffers-per-shader-stage"]
        if spec.globals > most:
            raise DeviceError(
                f"{self.name} does not run {spec.name}: it takes {spec.globals} buffers, and the adapter "
                f"binds {most}; compute parts of it with realize()"
            )
        module = self.compiler.module(lib.decode())
        compute = gpu.wgpu.ShaderStage.COMPUTE
        kinds = ["uniform", *["storage"] * spec.globals]
        entries = [
            {"binding": n, "visibility": compute, "buffer": {"type": kind}} for n, kind in enumerate(kinds)
        ]
        try:
            with gpu.lock:
                layout = gpu.device.create_bind_group_layout(entries=entries)
                pipeline = gpu.device.create_compute_pipeline(
                    layout=gpu.device.create_pipeline_layout(bind_group_layouts=[layout]),
                    compute={"module": module, "entry_point": entry_name(spec.function_name)},
                )
        except (gpu.wgpu.GPUError, RuntimeError) as error:
            raise CompileError(f"{self.name} cannot load a kernel", spec.src, short(error)) from None
        buffers = [(name, int(size)) for name, size in _BUFFER.findall(spec.src)]
        return WebGPUProgram(gpu, spec, pipeline, layout, buffers)

    def graph(self, launches: Sequence[Launch]) -> Graph:
        """Kernels that follow each other in one submission."""
        return in_segments(
            launches,
            lambda program: isinstance(program, WebGPUProgram),
            lambda run: WebGPUGraph(self.gpu, run),
        )

    def about(self) -> str:
        """The adapter; and whose the times of kernels are where it has none."""
        times = "" if self.gpu.clock is not None else "; times of kernels are the host's"
        return said(self.gpu.adapter) + times

    def synchronize(self) -> None:
        self.gpu.wait()
        self.raise_reported()


#: Mesa's llvmpipe ends the loops of a thread after so many turns, and says nothing (its
#: LP_MAX_TGSI_LOOP_ITERATIONS; found by a running sum of a million).
LLVMPIPE_TURNS = 65_535


def device_target(connection: Connection) -> Target:
    """What an adapter says it has."""
    info, limits = connection.adapter.info, connection.limits
    base = wgsl_target(f"{info['device']} {info['description']}".strip())
    return replace(
        base,
        loop_iterations=LLVMPIPE_TURNS if "llvmpipe" in info["device"] else 0,
        local_bytes=int(limits["max-compute-workgroup-storage-size"]),
        group_threads=int(limits["max-compute-invocations-per-workgroup"]),
        group_sizes=tuple(int(limits[f"max-compute-workgroup-size-{axis}"]) for axis in "xyz"),
        max_args=arguments(int(limits["max-storage-buffers-per-shader-stage"])),
    )


def _wgpu() -> Any:
    try:
        import wgpu
    except ImportError:
        raise MissingDeviceError('device WEBGPU needs wgpu: pip install "lazygrad[webgpu]"') from None
    except (OSError, RuntimeError) as error:  # its library does not load
        raise DeviceError(f"device WEBGPU: wgpu does not load: {error}") from error
    return wgpu


#: Backends that compute as WebGPU says: OpenGL's lacks much of it.
_BACKENDS = ("Vulkan", "Metal", "D3D12")
_KINDS = ("DiscreteGPU", "IntegratedGPU", "VirtualGPU")


def _adapters(wgpu: Any) -> list[Any]:
    """Every adapter, GPUs before what computes on the CPU."""
    try:
        found = [a for a in wgpu.gpu.enumerate_adapters_sync() if a.info["backend_type"] in _BACKENDS]
    except RuntimeError as error:
        raise DeviceError(f"device WEBGPU: wgpu finds no adapters: {error}") from error
    if not found:
        raise MissingDeviceError(
            "device WEBGPU finds no driver: install your GPU's for Vulkan, or for the CPU: "
            "apt-get install mesa-vulkan-drivers"
        )
    ranks = {kind: rank for rank, kind in enumerate(_KINDS)}
    return sorted(found, key=lambda adapter: ranks.get(adapter.info["adapter_type"], len(ranks)))

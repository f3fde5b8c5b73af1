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
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from ..device import (
    CompiledDevice,
    CompileError,
    Compiler,
    DeviceError,
    MissingDeviceError,
    Program,
)
from ..renderer import ProgramSpec
from ..renderer.cstyle import WGSL64Renderer, WGSLRenderer
from ..renderer.cstyle.wgsl import arguments, folded, numbers_format, wgsl_target
from ..renderer.cstyle.wgsl_kernel import entry_name
from ..target import Target
from ._regions import Region, RegionAllocator

_Result = TypeVar("_Result")

#: The feature that is no part of WebGPU and that brings int64.
_INT64 = "shader-int64"
#: Limits that a device has only as far as they are asked for.
_LIMITS = (
    "max-buffer-size",
    "max-storage-buffer-binding-size",
    "max-storage-buffers-per-shader-stage",
    "max-compute-invocations-per-workgroup",
    "max-compute-workgroup-size-x",
    "max-compute-workgroup-size-y",
    "max-compute-workgroup-size-z",
    "max-compute-workgroup-storage-size",
)


class Connection:
    """An adapter's device, and its queue. One thread calls it at a time."""

    def __init__(self, name: str, wgpu: Any, adapter: Any) -> None:
        self.name, self.wgpu, self.adapter = name, wgpu, adapter
        features = [_INT64] if _INT64 in adapter.features else []
        self.renderer = WGSL64Renderer if features else WGSLRenderer
        limits = {limit: adapter.limits[limit] for limit in _LIMITS if limit in adapter.limits}
        self.lock = threading.RLock()
        try:
            self.device = adapter.request_device_sync(required_features=features, required_limits=limits)
        except (wgpu.GPUError, RuntimeError) as error:
            raise DeviceError(f"{name}: {_said(adapter)} gives no device: {error}") from None
        self.queue = self.device.queue
        self.limits = self.device.limits
        self.bound_at = int(self.limits["min-storage-buffer-offset-alignment"])
        self.small = self.call("open", self.device.create_buffer, size=16, usage=self.usage)

    @property
    def usage(self) -> int:
        use = self.wgpu.BufferUsage
        return int(use.STORAGE | use.COPY_SRC | use.COPY_DST)

    def call(self, what: str, function: Callable[..., _Result], *args: Any, **more: Any) -> _Result:
        """Call wgpu; its error is a DeviceError that says what was tried."""
        try:
            with self.lock:
                return function(*args, **more)
        except self.wgpu.GPUOutOfMemoryError as error:
            raise MemoryError(f"{self.name}: {what}: {error}") from error
        except (self.wgpu.GPUError, RuntimeError) as error:
            lost = " (the device is lost: start the process again)" if "lost" in str(error) else ""
            raise DeviceError(f"{self.name} does not {what}{lost}: {_short(error)}") from error

    def wait(self) -> None:
        """Until all that was started is done."""
        self.call("answer", self.queue.read_buffer, self.small, 0, 4)


def _short(error: Exception) -> str:
    """wgpu's text without the lines around what went wrong."""
    rows = [row.strip() for row in str(error).splitlines() if row.strip()]
    return ": ".join(row for row in rows if row not in ("Validation Error", "Caused by:"))


# *** memory


class WebGPUAllocator(RegionAllocator):
    """Buffers of the device."""

    def __init__(self, name: str, connection: Connection) -> None:
        limits = connection.limits
        largest = min(limits["max-buffer-size"], limits["max-storage-buffer-binding-size"]) // 64 * 64
        super().__init__(name, connection.wgpu.GPUBuffer, largest)
        self.gpu = connection

    def _make(self, nbytes: int) -> Any:
        gpu = self.gpu
        return gpu.call("allocate", gpu.device.create_buffer, size=nbytes, usage=gpu.usage)

    def _release(self, buffer: Any) -> None:
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

#: So many bindings of a program are kept.
_KEPT = 8
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


class WebGPUProgram:
    """A pipeline. What was bound lately is kept: memory and numbers often come again."""

    def __init__(self, gpu: Connection, spec: ProgramSpec, pipeline: Any, layout: Any) -> None:
        self.gpu, self.spec, self.pipeline, self.layout = gpu, spec, pipeline, layout
        self.buffers = [(name, int(size)) for name, size in _BUFFER.findall(spec.src)]
        self.format = numbers_format(spec.globals, spec.vars)
        self.groups = folded(tuple(spec.global_size or (1, 1, 1)))
        self.bound: dict[tuple[Any, ...], Any] = {}

    def __call__(
        self, handles: tuple[Region, ...], vals: tuple[int, ...] = (), wait: bool = False
    ) -> float | None:
        gpu = self.gpu
        if wait:
            gpu.wait()
        start = time.perf_counter()
        try:
            with gpu.lock:
                self._launch(handles, vals)
        except (gpu.wgpu.GPUError, RuntimeError) as error:
            if isinstance(error, DeviceError):
                raise
            raise DeviceError(
                f"{gpu.name} does not run {self.spec.name} with {self.spec.global_size} workgroups of "
                f"{self.spec.local_size}: {_short(error)}"
            ) from error
        if not wait:
            return None
        gpu.wait()
        return time.perf_counter() - start

    def _launch(self, handles: tuple[Region, ...], vals: tuple[int, ...]) -> None:
        gpu = self.gpu
        given = (*[(handle.buffer, handle.offset, handle.nbytes) for handle in handles], *vals)
        bound = self.bound.get(given)
        if bound is None:
            if len(self.bound) >= _KEPT:
                self.bound.clear()
            bound = self.bound[given] = self._bound(handles, vals)
        encoder = gpu.device.create_command_encoder()
        step = encoder.begin_compute_pass()
        step.set_pipeline(self.pipeline)
        step.set_bind_group(0, bound)
        step.dispatch_workgroups(*self.groups)
        step.end()
        gpu.queue.submit([encoder.finish()])

    def _bound(self, handles: tuple[Region, ...], vals: tuple[int, ...]) -> Any:
        """What a launch is given: its numbers, and each buffer from where a binding may begin."""
        gpu, skips, entries = self.gpu, [], []
        for number, handle in enumerate(handles):
            begin = handle.offset // gpu.bound_at * gpu.bound_at
            skips.append(self._skip(number, handle.offset - begin))
            size = min(max(handle.offset - begin + handle.nbytes, 4) + 3, handle.buffer.size - begin)
            resource = {"buffer": handle.buffer, "offset": begin, "size": size // 4 * 4}
            entries.append({"binding": number + 1, "resource": resource})
        numbers = struct.pack(self.format, 0, *skips, *vals)
        numbers += bytes(-len(numbers) % 16)
        uniform = gpu.device.create_buffer_with_data(data=numbers, usage=gpu.wgpu.BufferUsage.UNIFORM)
        resource = {"buffer": uniform, "offset": 0, "size": len(numbers)}
        return gpu.device.create_bind_group(
            layout=self.layout, entries=[{"binding": 0, "resource": resource}, *entries]
        )

    def _skip(self, number: int, nbytes: int) -> int:
        """How many elements come before a view in its binding."""
        if not nbytes:
            return 0
        name, itemsize = self.buffers[number]
        if nbytes % itemsize:
            raise DeviceError(
                f"{self.gpu.name} does not run {self.spec.name}: its {name} has elements of {itemsize} bytes "
                "and begins between two of them; copy the bytes to memory of their own first (contiguous())"
            )
        return nbytes // itemsize


# *** devices


class WebGPUDevice(CompiledDevice):
    """The n-th adapter of this machine, GPUs first."""

    fork_safe = False  # a driver's threads and locks do not survive a fork
    compiler: WebGPUCompiler

    def __init__(self, name: str) -> None:
        wgpu = _wgpu()
        found = _adapters(wgpu)
        number = int(name.partition(":")[2] or 0)
        if number >= len(found):
            listed = ", ".join(f"WEBGPU:{n} is {_said(adapter)}" for n, adapter in enumerate(found))
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
            raise CompileError(f"{self.name} cannot load a kernel", spec.src, _short(error)) from None
        return WebGPUProgram(gpu, spec, pipeline, layout)

    def synchronize(self) -> None:
        self.gpu.wait()
        self.look()


def device_target(connection: Connection) -> Target:
    """What an adapter says it has."""
    info, limits = connection.adapter.info, connection.limits
    base = wgsl_target(f"{info['device']} {info['description']}".strip())
    return replace(
        base,
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


def _said(adapter: Any) -> str:
    """What an adapter is called."""
    info = adapter.info
    return f"{info['device']} ({info['adapter_type']}, {info['backend_type']})"


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

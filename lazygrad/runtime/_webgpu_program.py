"""Kernels of WebGPU: a pipeline that is launched, and a recorded list of them, submitted as one.

WebGPU's command buffers are submitted once, and its bundles draw and do not compute. So what a replay keeps
is what takes time to make: what is bound, and one buffer with the numbers of all kernels, of which what has
changed is written. The commands are encoded anew, in one pass: there each kernel sees what those before it
wrote.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Sequence
from typing import Any

from ..device import DeviceError, Launch
from ..renderer import ProgramSpec
from ..renderer.cstyle.wgsl import folded, numbers_format
from ._regions import Region
from ._webgpu_connection import Connection, short

#: So many bindings of a program, or of a kernel of a list, are kept.
_KEPT = 8


class WebGPUProgram:
    """A pipeline. What was bound lately is kept: memory and numbers often come again.

    buffers  (name, bytes of an element) of each buffer
    """

    def __init__(
        self, gpu: Connection, spec: ProgramSpec, pipeline: Any, layout: Any, buffers: list[tuple[str, int]]
    ) -> None:
        self.gpu, self.spec, self.pipeline, self.layout = gpu, spec, pipeline, layout
        self.buffers = buffers
        self.format = numbers_format(spec.globals, spec.vars)
        self.size = -(-struct.calcsize(self.format) // 16) * 16  # of a struct in uniform memory
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
                self._launch(handles, vals, wait)
        except (gpu.wgpu.GPUError, RuntimeError) as error:
            if isinstance(error, DeviceError):
                raise
            raise DeviceError(
                f"{gpu.name} does not run {self.spec.name} with {self.spec.global_size} workgroups of "
                f"{self.spec.local_size}: {short(error)}"
            ) from error
        if not wait:
            return None
        gpu.wait()
        seconds = time.perf_counter() - start
        taken = None if gpu.clock is None else gpu.call("tell times", gpu.clock.read)
        return seconds if taken is None else taken

    def _launch(self, handles: tuple[Region, ...], vals: tuple[int, ...], timed: bool) -> None:
        gpu = self.gpu
        given = (*regions_of(handles), *vals)
        bound = self.bound.get(given)
        if bound is None:
            uniform = gpu.device.create_buffer_with_data(
                data=self.numbers(handles, vals), usage=gpu.wgpu.BufferUsage.UNIFORM
            )
            bound = keep(self.bound, given, self.bind(handles, uniform, 0))
        clock = gpu.clock if timed else None
        encoder = gpu.device.create_command_encoder()
        step = encoder.begin_compute_pass(timestamp_writes=None if clock is None else clock.writes)
        self.encode(step, bound)
        step.end()
        if clock is not None:
            clock.resolve(encoder)
        gpu.queue.submit([encoder.finish()])

    def encode(self, step: Any, bound: Any) -> None:
        """One launch, in a pass."""
        step.set_pipeline(self.pipeline)
        step.set_bind_group(0, bound)
        step.dispatch_workgroups(*self.groups)

    def bind(self, handles: Sequence[Region], uniform: Any, at: int) -> Any:
        """The buffers, each from where a binding may begin, and the numbers at a place in memory."""
        entries = [(uniform, at, self.size)]
        for handle in handles:
            begin = self._begin(handle)
            size = min(max(handle.offset - begin + handle.nbytes, 4) + 3, handle.buffer.size - begin)
            entries.append((handle.buffer, begin, size // 4 * 4))
        return self.gpu.device.create_bind_group(
            layout=self.layout,
            entries=[
                {"binding": n, "resource": {"buffer": buffer, "offset": offset, "size": size}}
                for n, (buffer, offset, size) in enumerate(entries)
            ],
        )

    def numbers(self, handles: Sequence[Region], vals: Sequence[int]) -> bytes:
        """What a launch is given beside buffers."""
        skips = [self._skip(n, handle.offset - self._begin(handle)) for n, handle in enumerate(handles)]
        return struct.pack(self.format, 0, *skips, *vals).ljust(self.size, b"\0")

    def _begin(self, handle: Region) -> int:
        return handle.offset // self.gpu.bound_at * self.gpu.bound_at

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


def regions_of(handles: Sequence[Region]) -> tuple[Any, ...]:
    """Which memory this is; it keeps the buffers, so that no other one is taken for them."""
    return tuple([(handle.buffer, handle.offset, handle.nbytes) for handle in handles])


def keep(kept: dict[tuple[Any, ...], Any], key: tuple[Any, ...], bound: Any) -> Any:
    if len(kept) >= _KEPT:
        kept.clear()
    kept[key] = bound
    return bound


# *** a list of kernels


class _Kernel:
    """One of the list: where its memory and integers come from, and its numbers in the common buffer."""

    def __init__(self, launch: Launch, at: int) -> None:
        program, self.slots, self.values = launch
        self.program: WebGPUProgram = program  # type: ignore[assignment]
        self.at = at
        self.bound: dict[tuple[Any, ...], Any] = {}
        self.now: Any = None
        self.bound_now: tuple[Any, ...] = ()
        self.values_now: list[int] | None = None


class WebGPUGraph:
    """Kernels that run one after the other: one submission, and one write of numbers where some changed."""

    def __init__(self, gpu: Connection, launches: Sequence[Launch]) -> None:
        self.gpu = gpu
        self.kernels: list[_Kernel] = []
        multiple, at = int(gpu.limits["min-uniform-buffer-offset-alignment"]), 0
        for launch in launches:
            self.kernels.append(_Kernel(launch, at))
            at += -(-self.kernels[-1].program.size // multiple) * multiple
        use = gpu.wgpu.BufferUsage
        self.numbers = bytearray(at)
        self.uniform = gpu.call(
            "allocate", gpu.device.create_buffer, size=at, usage=use.UNIFORM | use.COPY_DST
        )
        first = self.kernels[0].program.spec.name
        self.name = f"run {len(self.kernels)} kernels of a captured function, {first} first"

    def __call__(self, handles: Sequence[Region], integers: Sequence[int]) -> None:
        self.gpu.call(self.name, self._run, handles, integers)

    def _run(self, handles: Sequence[Region], integers: Sequence[int]) -> None:
        gpu = self.gpu
        try:
            changed = [span for kernel in self.kernels for span in self._set(kernel, handles, integers)]
            if changed:
                first, end = min(changed)[0], max(changed)[1]
                gpu.queue.write_buffer(self.uniform, first, self.numbers[first:end])
        except BaseException:
            for kernel in self.kernels:  # what was not written is set again by the next call
                kernel.values_now = None
            raise
        encoder = gpu.device.create_command_encoder()
        step = encoder.begin_compute_pass()
        for kernel in self.kernels:
            kernel.program.encode(step, kernel.now)
        step.end()
        gpu.queue.submit([encoder.finish()])

    def _set(
        self, kernel: _Kernel, handles: Sequence[Region], integers: Sequence[int]
    ) -> list[tuple[int, int]]:
        """Bind what the next launch takes; [where its numbers are] if they changed."""
        own, values = [handles[n] for n in kernel.slots], [integers[n] for n in kernel.values]
        places, program = regions_of(own), kernel.program
        if values == kernel.values_now and places == kernel.bound_now:
            return []
        numbers, end = program.numbers(own, values), kernel.at + program.size
        bound = kernel.bound.get(places)
        kernel.now = (
            keep(kernel.bound, places, program.bind(own, self.uniform, kernel.at)) if bound is None else bound
        )
        same = kernel.values_now is not None and numbers == self.numbers[kernel.at : end]
        self.numbers[kernel.at : end] = numbers
        kernel.bound_now, kernel.values_now = places, values
        return [] if same else [(kernel.at, end)]

"""The functions of cuda.bindings.driver that the runtime uses, on host memory.

What is asynchronous is late: a stream does nothing until somebody has to wait for it, and then only as much
as that needs. So what the runtime forgets to wait for has not happened. Errors of kernels come late too, and
end the context.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import mmap
import os
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any

from .compiler import MARK
from .machine import Text, entry_of, launch

#: So much work waits in a stream at most.
LATE = 500


class Problem(Exception):
    """What a function answers instead of success, by the name of its code."""


class Token:
    """One recording of an event: whether the stream has come there, and when."""

    def __init__(self, stream: Stream) -> None:
        self.stream, self.done, self.time = stream, False, 0.0

    def finish(self) -> None:
        self.done, self.time = True, time.perf_counter()


class Event:
    def __init__(self, context: Context, timed: bool) -> None:
        self.context, self.timed, self.token = context, timed, None


class Stream:
    def __init__(self, context: Context) -> None:
        self.context = context
        self.work: deque[Callable[[], None]] = deque()

    def __int__(self) -> int:
        return id(self)

    def add(self, work: Callable[[], None]) -> None:
        self.work.append(work)
        if len(self.work) > LATE:
            self.run()

    def run(self, until: Token | None = None) -> None:
        while self.work and not (until is not None and until.done):
            work = self.work.popleft()
            if not self.context.error:
                try:
                    work()
                except Problem as problem:
                    self.context.error = str(problem)
            elif getattr(work, "__self__", None).__class__ is Token:
                work()


class Context:
    """What belongs to one GPU: memory by address, with the mapping that holds it; streams; the last error."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.memory: dict[int, tuple[int, mmap.mmap]] = {}
        self.streams: list[Stream] = []
        self.peers: set[Context] = set()
        self.error = ""

    def run(self) -> None:
        for stream in self.streams:
            stream.run()

    def holds(self, address: int, size: int) -> bool:
        return any(begin <= address and address + size <= begin + n for begin, (n, _) in self.memory.items())


class Device:
    """A GPU; `limits` answers what is asked of it."""

    def __init__(self, number: int, capability: tuple[int, int], memory: int) -> None:
        self.number, self.memory = number, memory
        self.name = f"Emulated GPU {number}".encode()
        self.limits = {
            "COMPUTE_CAPABILITY_MAJOR": capability[0], "COMPUTE_CAPABILITY_MINOR": capability[1],
            "MULTIPROCESSOR_COUNT": 4, "MAX_THREADS_PER_MULTIPROCESSOR": 2048, "WARP_SIZE": 32,
            "MAX_SHARED_MEMORY_PER_BLOCK": 48 << 10, "MAX_THREADS_PER_BLOCK": 1024,
            "MAX_BLOCK_DIM_X": 1024, "MAX_BLOCK_DIM_Y": 1024, "MAX_BLOCK_DIM_Z": 64,
            "MAX_GRID_DIM_X": 2**31 - 1, "MAX_GRID_DIM_Y": 65535, "MAX_GRID_DIM_Z": 65535,
        }  # fmt: skip
        self.context: Context | None = None


class Launch:
    """A kernel with all that it is given."""

    def __init__(self, text: Text, grid: Sequence[int], group: Sequence[int], arguments: list[bytes]) -> None:
        self.text, self.grid, self.group, self.arguments = text, tuple(grid), tuple(group), arguments


class Node:
    def __init__(self, graph: Graph, launch: Launch, before: list[Node]) -> None:
        self.graph, self.launch, self.before = graph, launch, before


class Graph:
    def __init__(self) -> None:
        self.nodes: list[Node] = []


class Runnable:
    """An instantiated graph."""

    def __init__(self, graph: Graph) -> None:
        self.launches = {node: node.launch for node in graph.nodes}


def entry(context: bool = True) -> Callable[[Any], Any]:
    """A function of the driver: counted; answers the codes of what is wrong, and of what a test wants."""

    def wrap(function: Any) -> Any:
        name = function.__name__

        @functools.wraps(function)
        def call(self: EmulatedDriver, *arguments: Any) -> Any:
            with self.lock:
                self.calls[name] += 1
                try:
                    if self.planned.get(name):
                        raise Problem(self.planned[name].pop(0))
                    if name != "cuInit" and (self.process != os.getpid()):
                        raise Problem("CUDA_ERROR_NOT_INITIALIZED")
                    if context:
                        current = self.current()
                        if current.error:
                            raise Problem(current.error)
                    result = function(self, *arguments)
                    if context and current.error:
                        raise Problem(current.error)
                except Problem as problem:
                    return (getattr(self.CUresult, str(problem)), *[None] * self.answers.get(name, 0))
            done = self.CUresult.CUDA_SUCCESS
            return (done, result) if name in self.answers else (done,)

        return call

    return wrap


class EmulatedDriver:
    """A machine with GPUs.

    calls     how often each function was called
    planned   function → codes that its next calls give
    launched  the names of the kernels that ran, in order
    checked   whether races are looked for
    reports   what the machine reported
    """

    answers = {
        "cuDeviceGetCount": 1, "cuDeviceGet": 1, "cuDeviceGetName": 1, "cuDeviceGetAttribute": 1,
        "cuDeviceTotalMem": 1, "cuDevicePrimaryCtxRetain": 1, "cuDeviceCanAccessPeer": 1, "cuStreamCreate": 1,
        "cuEventCreate": 1, "cuEventElapsedTime": 1, "cuModuleLoadData": 1, "cuModuleGetFunction": 1,
        "cuFuncGetAttribute": 1, "cuMemAlloc": 1, "cuMemHostAlloc": 1, "cuGraphCreate": 1,
        "cuGraphAddKernelNode": 1, "cuGraphInstantiate": 1,
    }  # fmt: skip

    def __init__(
        self, real: Any, devices: int = 2, capability: tuple[int, int] = (9, 0), memory: int = 1 << 30
    ) -> None:
        for name in ("CUresult", "CUdevice_attribute", "CUfunction_attribute", "CUstream_flags"):
            setattr(self, name, getattr(real, name))
        self.CUevent_flags, self.CUfunction = real.CUevent_flags, real.CUfunction
        self.CUDA_KERNEL_NODE_PARAMS = real.CUDA_KERNEL_NODE_PARAMS
        self.devices = [Device(n, capability, memory) for n in range(devices)]
        self.lock = threading.RLock()
        self.process = 0
        self.thread = threading.local()
        self.pinned: dict[int, tuple[int, mmap.mmap]] = {}
        self.functions: dict[int, Text] = {}
        self.modules: dict[object, list[int]] = {}
        self.numbers = itertools.count(1)
        self.calls: Counter[str] = Counter()
        self.planned: dict[str, list[str]] = {}
        self.launched: list[str] = []
        self.reports: list[str] = []
        self.checked = False
        self.kernel_fault = ""  #: the code with which the next kernel ends

    def current(self) -> Context:
        context: Context | None = getattr(self.thread, "context", None)
        if context is None:
            raise Problem("CUDA_ERROR_INVALID_CONTEXT")
        return context

    def _mine(self, thing: Stream | Event) -> None:
        if thing.context is not self.current():
            raise Problem("CUDA_ERROR_INVALID_HANDLE")

    # *** the driver, devices

    @entry(context=False)
    def cuInit(self, Flags: int) -> None:
        assert Flags == 0
        self.process = os.getpid()

    @entry(context=False)
    def cuDeviceGetCount(self) -> int:
        return len(self.devices)

    @entry(context=False)
    def cuDeviceGet(self, ordinal: int) -> Device:
        if not 0 <= ordinal < len(self.devices):
            raise Problem("CUDA_ERROR_INVALID_DEVICE")
        return self.devices[ordinal]

    @entry(context=False)
    def cuDeviceGetName(self, length: int, dev: Device) -> bytes:
        return dev.name.ljust(length, b"\0")

    @entry(context=False)
    def cuDeviceGetAttribute(self, attrib: Any, dev: Device) -> int:
        return dev.limits[attrib.name.removeprefix("CU_DEVICE_ATTRIBUTE_")]

    @entry(context=False)
    def cuDeviceTotalMem(self, dev: Device) -> int:
        return dev.memory

    @entry(context=False)
    def cuDevicePrimaryCtxRetain(self, dev: Device) -> Context:
        dev.context = dev.context or Context(dev)
        return dev.context

    @entry(context=False)
    def cuCtxSetCurrent(self, ctx: Context) -> None:
        self.thread.context = ctx

    @entry(context=False)
    def cuDeviceCanAccessPeer(self, dev: Device, peerDev: Device) -> int:
        return int(dev is not peerDev)

    @entry()
    def cuCtxEnablePeerAccess(self, peerContext: Context, Flags: int) -> None:
        if peerContext in self.current().peers:
            raise Problem("CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED")
        self.current().peers.add(peerContext)

    def cuGetErrorString(self, error: Any) -> Any:
        return self.CUresult.CUDA_SUCCESS, f"the sentence about {int(error)}".encode()

    # *** streams and events

    @entry()
    def cuStreamCreate(self, Flags: int) -> Stream:
        assert Flags == int(self.CUstream_flags.CU_STREAM_NON_BLOCKING)
        stream = Stream(self.current())
        self.current().streams.append(stream)
        return stream

    @entry()
    def cuStreamSynchronize(self, hStream: Stream) -> None:
        self._mine(hStream)
        hStream.run()

    @entry()
    def cuStreamWaitEvent(self, hStream: Stream, hEvent: Event, Flags: int) -> None:
        assert Flags == 0
        self._mine(hStream)  # an event of another GPU may be waited for
        token = hEvent.token
        if token is not None:
            hStream.add(lambda: token.stream.run(token))

    @entry()
    def cuEventCreate(self, Flags: int) -> Event:
        return Event(self.current(), not Flags & int(self.CUevent_flags.CU_EVENT_DISABLE_TIMING))

    @entry()
    def cuEventRecord(self, hEvent: Event, hStream: Stream) -> None:
        self._mine(hEvent)
        self._mine(hStream)
        hEvent.token = token = Token(hStream)
        hStream.add(token.finish)

    @entry()
    def cuEventSynchronize(self, hEvent: Event) -> None:
        if hEvent.token is not None:
            hEvent.token.stream.run(hEvent.token)

    @entry(context=False)
    def cuEventQuery(self, hEvent: Event) -> None:
        token = hEvent.token
        if token is not None and not token.done:
            if token.stream.work:  # who asks sees it go on
                token.stream.work.popleft()()
            raise Problem("CUDA_ERROR_NOT_READY")

    @entry()
    def cuEventElapsedTime(self, hStart: Event, hEnd: Event) -> float:
        if not hStart.timed or not hEnd.timed:
            raise Problem("CUDA_ERROR_INVALID_HANDLE")
        if not hStart.token.done or not hEnd.token.done:
            raise Problem("CUDA_ERROR_NOT_READY")
        return (hEnd.token.time - hStart.token.time) * 1e3

    # *** memory

    def _pages(self, nbytes: int) -> tuple[int, mmap.mmap]:
        pages = mmap.mmap(-1, nbytes)
        address = ctypes.addressof(ctypes.c_char.from_buffer(pages))
        ctypes.memset(address, 0xA5, nbytes)
        return address, pages

    @entry()
    def cuMemAlloc(self, bytesize: int) -> int:
        context = self.current()
        if sum(size for size, _ in context.memory.values()) + bytesize > context.device.memory:
            raise Problem("CUDA_ERROR_OUT_OF_MEMORY")
        address, pages = self._pages(bytesize)
        context.memory[address] = bytesize, pages
        return address

    @entry()
    def cuMemFree(self, dptr: int) -> None:
        self.current().run()
        if self.current().memory.pop(dptr, None) is None:
            raise Problem("CUDA_ERROR_INVALID_VALUE")

    @entry()
    def cuMemHostAlloc(self, bytesize: int, Flags: int) -> int:
        assert Flags == 0
        address, pages = self._pages(bytesize)
        self.pinned[address] = bytesize, pages
        return address

    def _check(self, context: Context, address: int, size: int) -> None:
        if not context.holds(address, size):
            raise Problem("CUDA_ERROR_INVALID_VALUE")

    def _check_pinned(self, address: int, size: int) -> None:
        pinned = self.pinned.items()
        assert any(begin <= address and address + size <= begin + n for begin, (n, _) in pinned)

    @entry()
    def cuMemsetD8Async(self, dstDevice: int, uc: int, N: int, hStream: Stream) -> None:
        self._mine(hStream)
        self._check(hStream.context, dstDevice, N)
        hStream.add(lambda: ctypes.memset(dstDevice, uc, N))

    @entry()
    def cuMemcpyHtoDAsync(self, dstDevice: int, srcHost: int, ByteCount: int, hStream: Stream) -> None:
        self._mine(hStream)
        self._check(hStream.context, dstDevice, ByteCount)
        self._check_pinned(srcHost, ByteCount)
        hStream.add(lambda: ctypes.memmove(dstDevice, srcHost, ByteCount))

    @entry()
    def cuMemcpyDtoHAsync(self, dstHost: int, srcDevice: int, ByteCount: int, hStream: Stream) -> None:
        self._mine(hStream)
        self._check(hStream.context, srcDevice, ByteCount)
        self._check_pinned(dstHost, ByteCount)
        hStream.add(lambda: ctypes.memmove(dstHost, srcDevice, ByteCount))

    @entry()
    def cuMemcpyDtoDAsync(self, dstDevice: int, srcDevice: int, ByteCount: int, hStream: Stream) -> None:
        self._mine(hStream)
        for address in (dstDevice, srcDevice):
            self._check(hStream.context, address, ByteCount)
        hStream.add(lambda: ctypes.memmove(dstDevice, srcDevice, ByteCount))

    @entry()
    def cuMemcpyPeerAsync(
        self, dstDevice: int, dstContext: Context, srcDevice: int, srcContext: Context, ByteCount: int,
        hStream: Stream,
    ) -> None:  # fmt: skip
        self._mine(hStream)
        self._check(dstContext, dstDevice, ByteCount)
        self._check(srcContext, srcDevice, ByteCount)
        hStream.add(lambda: ctypes.memmove(dstDevice, srcDevice, ByteCount))

    # *** kernels

    @entry()
    def cuModuleLoadData(self, image: bytes) -> object:
        """NVRTC's cubin for this GPU, or its PTX for this or an older one; and its text."""
        made, arch, source = (image.split(MARK, 2) + [b"", b""])[:3]
        if not source:
            raise Problem("CUDA_ERROR_INVALID_IMAGE")
        limits = self.current().device.limits
        capability = 10 * limits["COMPUTE_CAPABILITY_MAJOR"] + limits["COMPUTE_CAPABILITY_MINOR"]
        is_cubin = made.startswith(b"\x7fELF")
        number = int(arch.rpartition(b"_")[2].rstrip(b"af"))
        if number != capability if is_cubin else number > capability:
            raise Problem("CUDA_ERROR_NO_BINARY_FOR_GPU")
        if not is_cubin and not made.endswith(b"\0"):
            raise Problem("CUDA_ERROR_INVALID_PTX")
        module = object()
        self.modules[module] = [next(self.numbers)]
        self.functions[self.modules[module][0]] = Text(source.decode())
        entry_of(source.decode())
        return module

    @entry()
    def cuModuleGetFunction(self, hmod: object, name: bytes) -> Any:
        number = self.modules[hmod][0]
        if self.functions[number].name != name.decode():
            raise Problem("CUDA_ERROR_NOT_FOUND")
        return self.CUfunction(number)

    @entry()
    def cuModuleUnload(self, hmod: object) -> None:
        self.current().run()
        for number in self.modules.pop(hmod):
            del self.functions[number]

    @entry()
    def cuFuncGetAttribute(self, attrib: Any, hfunc: Any) -> int:
        assert attrib.name == "CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK"
        return self.functions[int(hfunc)].threads

    def _launch(self, function: Any, grid: Sequence[int], group: Sequence[int], given: int) -> Launch:
        text = self.functions[int(function)]
        limits = self.current().device.limits
        too_many = group[0] * group[1] * group[2] > min(text.threads, limits["MAX_THREADS_PER_BLOCK"])
        if too_many or any(
            not 1 <= size <= limits[f"MAX_{kind}_DIM_{axis}"]
            for kind, sizes in (("GRID", grid), ("BLOCK", group))
            for size, axis in zip(sizes, "XYZ", strict=True)
        ):
            raise Problem("CUDA_ERROR_INVALID_VALUE")
        listed = (ctypes.c_void_p * len(text.parameters)).from_address(given)
        arguments = [ctypes.string_at(at, p.size) for at, p in zip(listed, text.parameters, strict=True)]
        return Launch(text, grid, group, arguments)

    def _run(self, context: Context, work: Launch) -> None:
        self.launched.append(work.text.name)
        if self.kernel_fault:
            fault, self.kernel_fault = self.kernel_fault, ""
            raise Problem(fault)
        memory = [(address, size) for address, (size, _) in context.memory.items()]
        outcome = launch(work.text, work.arguments, work.grid, work.group, memory, self.checked)
        if outcome.report:
            self.reports.append(outcome.report)
        if outcome.fault:
            raise Problem(outcome.fault)

    @entry()
    def cuLaunchKernel(
        self, f: Any, gridDimX: int, gridDimY: int, gridDimZ: int, blockDimX: int, blockDimY: int,
        blockDimZ: int, sharedMemBytes: int, hStream: Stream, kernelParams: int, extra: int,
    ) -> None:  # fmt: skip
        self._mine(hStream)
        assert sharedMemBytes == 0
        assert extra == 0
        grid, group = (gridDimX, gridDimY, gridDimZ), (blockDimX, blockDimY, blockDimZ)
        work = self._launch(f, grid, group, kernelParams)
        hStream.add(lambda: self._run(hStream.context, work))

    # *** graphs

    def _of(self, params: Any) -> Launch:
        grid = (params.gridDimX, params.gridDimY, params.gridDimZ)
        group = (params.blockDimX, params.blockDimY, params.blockDimZ)
        assert params.sharedMemBytes == 0
        return self._launch(params.func, grid, group, params.kernelParams)

    @entry()
    def cuGraphCreate(self, flags: int) -> Graph:
        assert flags == 0
        return Graph()

    @entry()
    def cuGraphAddKernelNode(
        self, hGraph: Graph, dependencies: list[Node], numDependencies: int, nodeParams: Any
    ) -> Node:
        assert numDependencies == len(dependencies)
        assert all(node in hGraph.nodes for node in dependencies)
        hGraph.nodes.append(Node(hGraph, self._of(nodeParams), list(dependencies)))
        return hGraph.nodes[-1]

    @entry()
    def cuGraphInstantiate(self, hGraph: Graph, flags: int) -> Runnable:
        assert flags == 0
        return Runnable(hGraph)

    @entry()
    def cuGraphExecKernelNodeSetParams(self, hGraphExec: Runnable, hNode: Node, nodeParams: Any) -> None:
        assert hNode in hGraphExec.launches
        hGraphExec.launches[hNode] = self._of(nodeParams)

    @entry()
    def cuGraphLaunch(self, hGraphExec: Runnable, hStream: Stream) -> None:
        """The nodes as they are now, each after what it depends on, the last ones as early as can be."""
        self._mine(hStream)
        left, ordered = dict(hGraphExec.launches), []
        while left:
            node = next(n for n in reversed(left) if not any(before in left for before in n.before))
            ordered.append(left.pop(node))

        def run() -> None:
            for work in ordered:
                self._run(hStream.context, work)

        hStream.add(run)

    @entry()
    def cuGraphExecDestroy(self, hGraphExec: Runnable) -> None:
        self.current().run()

    @entry()
    def cuGraphDestroy(self, hGraph: Graph) -> None:
        pass

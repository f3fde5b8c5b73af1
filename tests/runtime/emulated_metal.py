"""The modules `Metal` and `objc` of PyObjC, as far as runtime/metal.py calls them, on this CPU.

Texts are compiled as C++ with the words of renderer/gpu/metal_stdlib. What is committed runs when somebody
waits for it and not before: memory that is looked at too early is still old. What Apple's documentation does
not allow fails.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import re
import shutil
import subprocess
import sys
import tempfile
import time
import types
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lazygrad.renderer.cstyle import FLAGS
from tests.renderer.support import GPU_WORDS

MTLSize = namedtuple("MTLSize", ["width", "height", "depth"])
MTLGPUFamilyApple7 = 1007
_pools = 0


@contextlib.contextmanager
def autorelease_pool() -> Iterator[None]:
    global _pools
    _pools += 1
    try:
        yield
    finally:
        _pools -= 1


class NSError:
    def __init__(self, code: int, text: str) -> None:
        self._code, self._text = code, text

    def code(self) -> int:
        return self._code

    def localizedDescription(self) -> str:
        return self._text


# *** texts


_COMPILER = ["g++", "-fPIC", "-pthread", "-O0", "-std=c++20", *FLAGS]
_COMPILER += ["-fexcess-precision=16", "-march=native"]


@functools.cache
def _headers() -> Path:
    """The header of launches, compiled: it takes longer than any kernel."""
    folder = Path(tempfile.mkdtemp(prefix="lazygrad-metal-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    shutil.copy(GPU_WORDS / "threads.h", folder / "threads.h")
    subprocess.run([*_COMPILER, "-x", "c++-header", str(folder / "threads.h")], check=True)
    return folder


_HEAD = re.compile(r"^kernel void (\w+)\((.*)\) \{$", re.M)
_SIZES = {"char": 1, "uchar": 1, "bool": 1, "short": 2, "ushort": 2, "half": 2, "long": 8, "ulong": 8}


#: A pointer into memory that a workgroup shares is one of a thread's own.
_POINTER = re.compile(r"\bthreadgroup (\w+\*)")
_PLACES = {
    "[[threadgroup_position_in_grid]]": "uint3{g.x, g.y, g.z}",
    "[[thread_position_in_threadgroup]]": "uint3{l.x, l.y, l.z}",
}


class Function:
    """A kernel: its name, the types of what it takes ("float*", "int&"), its address."""

    def __init__(self, name: str, kinds: list[str], widest: int, address: Any) -> None:
        self.name, self.kinds, self.widest, self.address = name, kinds, widest, address


@functools.cache
def _compiled(source: str) -> dict[str, Function] | str:
    """The kernels of a text, or what the compiler says against it."""
    parts, found = [], {}
    source = _POINTER.sub(r"\1", source)
    widest = max((int(n) for n in re.findall(r"\(device \w+?([24])\*\)", source)), default=1)
    for name, listed in _HEAD.findall(source):
        words, arguments = [], []
        for each in listed.split(", "):
            place = next((text for word, text in _PLACES.items() if word in each), "")
            if not place:
                (kind,) = re.findall(r"^(?:device|constant) (\w+[*&]) ?\w+(?: \[\[buffer\(\d+\)\]\])?$", each)
                where = f"args[{len(words)}]"
                place = f"*({kind[:-1]}*){where}" if kind[-1] == "&" else f"({kind}){where}"
                words.append(kind)
            arguments.append(place)
        meets = str("group_barrier(" in source or "simd_shuffle" in source).lower()
        parts.append(
            f'extern "C" void entry_{name}(void** args, Size grid, Size group) {{\n'
            f"  launch(grid, group, {meets}, [=](Size g, Size l) {{\n"
            f"    {name}({', '.join(arguments)});\n  }});\n}}\n"
        )
        found[name] = words
    folder = Path(tempfile.mkdtemp(prefix="kernel-", dir=_headers()))
    (folder / "kernel.cpp").write_text("\n".join(['#include "threads.h"', source, *parts]))
    command = [*_COMPILER, "-shared", f"-I{_headers()}", f"-I{GPU_WORDS}"]
    command += ["-o", str(folder / "kernel.so"), str(folder / "kernel.cpp")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return done.stderr
    library = ctypes.CDLL(str(folder / "kernel.so"))
    return {name: Function(name, words, widest, library[f"entry_{name}"]) for name, words in found.items()}


class MTLCompileOptions:
    fast = True

    @classmethod
    def alloc(cls) -> MTLCompileOptions:
        return cls()

    def init(self) -> MTLCompileOptions:
        return self

    def setFastMathEnabled_(self, fast: bool) -> None:
        self.fast = fast


class MTLComputePipelineDescriptor:
    function: Any = None
    indirect = False

    @classmethod
    def alloc(cls) -> MTLComputePipelineDescriptor:
        return cls()

    def init(self) -> MTLComputePipelineDescriptor:
        return self

    def setComputeFunction_(self, function: Function) -> None:
        self.function = function

    def setSupportIndirectCommandBuffers_(self, indirect: bool) -> None:
        self.indirect = indirect


class Library:
    def __init__(self, functions: dict[str, Function]) -> None:
        self.functions = functions

    def newFunctionWithName_(self, name: str) -> Function | None:
        return self.functions.get(name)


class Pipeline:
    def __init__(self, function: Function, most: int, indirect: bool) -> None:
        self.function, self.most, self.indirect = function, most, indirect

    def maxTotalThreadsPerThreadgroup(self) -> int:
        return self.most


# *** memory and commands


class Contents:
    def __init__(self, memory: Any) -> None:
        self.memory = memory

    def as_buffer(self, count: int) -> memoryview:
        assert count <= len(self.memory)
        return memoryview(self.memory)[:count]


class Buffer:
    def __init__(self, nbytes: int) -> None:
        self.memory = bytearray(nbytes)

    def contents(self) -> Contents:
        return Contents(self.memory)

    def length(self) -> int:
        return len(self.memory)


class Encoder:
    """Of kernels and of fills; `steps` is what to do."""

    def __init__(self, commands: Commands) -> None:
        self.commands, self.steps, self.ended = commands, commands.steps, False
        self.pipeline: Any = None
        self.table: dict[int, Any] = {}
        self.used: list[Buffer] = []
        self.indirect = commands.indirect

    def setComputePipelineState_(self, pipeline: Pipeline) -> None:
        self._open()
        self.pipeline = pipeline

    def setBuffer_offset_atIndex_(self, buffer: Buffer, offset: int, index: int) -> None:
        self._open()
        assert 0 <= index < 31
        assert 0 <= offset < buffer.length()
        self.table[index] = (buffer, offset)

    def setBytes_length_atIndex_(self, data: bytes, length: int, index: int) -> None:
        self._open()
        assert 0 <= index < 31
        assert len(data) == length <= 4096
        self.table[index] = (bytes(data), 0)

    def dispatchThreadgroups_threadsPerThreadgroup_(self, groups: MTLSize, threads: MTLSize) -> None:
        self._open()
        self.steps.append(_launch(self.pipeline, self.table, groups, threads))

    def useResource_usage_(self, memory: Buffer, usage: int) -> None:
        self._open()
        assert usage == 3  # read and written
        self.used.append(memory)

    def executeCommandsInBuffer_withRange_(
        self, commands: IndirectCommandBuffer, where: tuple[int, int]
    ) -> None:
        self._open()
        assert where == (0, len(commands.commands))
        told = {id(memory) for memory in self.used}
        for command in commands.commands:
            assert all(id(memory) in told for memory, _ in command.table.values()), "not said to be used"
        self.steps.append(commands.run)
        self.indirect.append(commands)

    def fillBuffer_range_value_(self, buffer: Buffer, where: tuple[int, int], value: int) -> None:
        self._open()
        first, count = where
        assert first + count <= buffer.length()
        assert count > 0
        assert first % 4 == count % 4 == 0

        def run() -> None:
            buffer.memory[first : first + count] = bytes([value]) * count

        self.steps.append(run)

    def endEncoding(self) -> None:
        self._open()
        self.ended = True

    def _open(self) -> None:
        assert not self.ended
        assert not self.commands.committed


def _launch(pipeline: Pipeline, table: dict[int, Any], groups: MTLSize, threads: MTLSize) -> Any:
    """What runs a kernel with what the table has now."""
    assert isinstance(groups, MTLSize)
    assert isinstance(threads, MTLSize)
    assert threads.width * threads.height * threads.depth <= pipeline.most
    function, given = pipeline.function, []
    for index, kind in enumerate(function.kinds):
        memory, offset = table[index]
        size = _SIZES.get(kind[:-1], 4)
        assert kind[-1] == "&" or isinstance(memory, Buffer)
        assert offset % (size * function.widest) == 0, "memory begins where the kernel cannot have it"
        assert isinstance(memory, Buffer) or len(memory) == size
        given.append((memory, offset))

    def run() -> None:
        kept = [m.memory if isinstance(m, Buffer) else bytearray(m) for m, _ in given]
        places = [ctypes.addressof(ctypes.c_char.from_buffer(m)) for m in kept]
        args = (ctypes.c_void_p * len(given))(*(a + o for a, (_, o) in zip(places, given, strict=True)))
        three = [(ctypes.c_uint * 3)(*size) for size in (groups, threads)]
        function.address(args, *(_Size.from_buffer(each) for each in three))

    return run


class MTLIndirectCommandBufferDescriptor:
    kinds, buffers, pipelines, most = 0, True, True, 0

    @classmethod
    def alloc(cls) -> MTLIndirectCommandBufferDescriptor:
        return cls()

    def init(self) -> MTLIndirectCommandBufferDescriptor:
        return self

    def setCommandTypes_(self, kinds: int) -> None:
        self.kinds = kinds

    def setInheritBuffers_(self, inherit: bool) -> None:
        self.buffers = inherit

    def setInheritPipelineState_(self, inherit: bool) -> None:
        self.pipelines = inherit

    def setMaxKernelBufferBindCount_(self, count: int) -> None:
        assert 0 < count <= 31
        self.most = count


class IndirectCommand:
    """May be reset when nothing that was started runs it, and then be encoded again, its dispatch last."""

    def __init__(self, owner: IndirectCommandBuffer) -> None:
        self.owner = owner
        self._forget()

    def _forget(self) -> None:
        self.pipeline, self.table = None, {}  # type: ignore[var-annotated]
        self.sizes: Any = None
        self.after_others = False

    def reset(self) -> None:
        assert self.owner.on_the_way == 0, "the GPU may still read this"
        self._forget()
        self.owner.changes += 1

    def _change(self) -> None:
        assert self.owner.on_the_way == 0, "the GPU may still read this"
        assert self.sizes is None, "it was encoded: reset it before"

    def setComputePipelineState_(self, pipeline: Pipeline) -> None:
        self._change()
        assert pipeline.indirect
        self.pipeline = pipeline

    def setKernelBuffer_offset_atIndex_(self, memory: Buffer, offset: int, index: int) -> None:
        self._change()
        assert 0 <= index < self.owner.most
        assert 0 <= offset < memory.length()
        self.table[index] = (memory, offset)

    def concurrentDispatchThreadgroups_threadsPerThreadgroup_(
        self, groups: MTLSize, threads: MTLSize
    ) -> None:
        self._change()
        self.sizes = groups, threads

    def setBarrier(self) -> None:
        self._change()
        self.after_others = True


class IndirectCommandBuffer:
    """Commands between two barriers run in any order: here the last one first."""

    def __init__(self, told: MTLIndirectCommandBufferDescriptor, count: int) -> None:
        assert (told.kinds, told.buffers, told.pipelines) == (32, False, False)
        self.most, self.on_the_way, self.changes = told.most, 0, 0
        self.commands = [IndirectCommand(self) for _ in range(count)]

    def indirectComputeCommandAtIndex_(self, number: int) -> IndirectCommand:
        return self.commands[number]

    def run(self) -> None:
        together: list[IndirectCommand] = []
        for command in [*self.commands, None]:
            if command is None or command.after_others:
                for each in reversed(together):
                    _launch(each.pipeline, each.table, *each.sizes)()  # type: ignore[arg-type]
                together = []
            if command is not None:
                together.append(command)


class _Size(ctypes.Structure):
    _fields_ = (("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint))


class Commands:
    def __init__(self, queue: Queue) -> None:
        self.queue, self.steps, self.encoders = queue, [], []  # type: ignore[var-annotated]
        self.indirect: list[IndirectCommandBuffer] = []
        self.committed, self.state = False, 0
        self.problem: NSError | None = None
        self.times = 0.0, 0.0

    def _encoder(self) -> Encoder:
        assert not self.committed
        assert all(encoder.ended for encoder in self.encoders)
        self.encoders.append(Encoder(self))
        return self.encoders[-1]

    computeCommandEncoder = blitCommandEncoder = _encoder

    def commit(self) -> None:
        assert not self.committed
        assert all(encoder.ended for encoder in self.encoders)
        self.committed, self.state = True, 2
        for each in self.indirect:
            each.on_the_way += 1
        self.queue.waiting.append(self)
        self.queue.count += 1

    def waitUntilCompleted(self) -> None:
        assert self.committed
        while self.state < 4:
            self.queue.waiting.pop(0).run()

    def run(self) -> None:
        start = time.perf_counter()
        for each in self.indirect:
            each.on_the_way -= 1
        problems = self.queue.device.problems
        self.problem = problems.pop(0) if problems else None
        if self.problem is not None:
            self.state = 5
            return
        for step in self.steps:
            step()
        self.state, self.times = 4, (start, time.perf_counter())

    def status(self) -> int:
        return self.state

    def error(self) -> NSError | None:
        return self.problem

    def GPUStartTime(self) -> float:
        return self.times[0]

    def GPUEndTime(self) -> float:
        return self.times[1]


class Queue:
    def __init__(self, device: GPU) -> None:
        self.device, self.waiting, self.count = device, [], 0  # type: ignore[var-annotated]

    def commandBuffer(self) -> Commands:
        assert _pools, "commands would stay for ever: there is no pool"
        assert len(self.waiting) < 64, "Metal would wait here for ever"
        return Commands(self)


# *** devices


class GPU:
    """room: the bytes of the largest buffer that is given; most: the threads of a workgroup.

    family: of which GPUs it is; commands: the most of an indirect command buffer
    problems: what the next commands end with
    """

    def __init__(self, number: int) -> None:
        self.number, self.room, self.most, self.queues = number, 1 << 26, 1024, []  # type: ignore[var-annotated]
        self.problems: list[NSError] = []
        self.family, self.commands = MTLGPUFamilyApple7, 16384

    def name(self) -> str:
        return f"Emulated {self.number}"

    def registryID(self) -> int:
        return self.number

    def maxBufferLength(self) -> int:
        return 1 << 30

    def recommendedMaxWorkingSetSize(self) -> int:
        return 1 << 31

    def maxThreadgroupMemoryLength(self) -> int:
        return 32 << 10

    def supportsFamily_(self, family: int) -> bool:
        return family == self.family

    def maxThreadsPerThreadgroup(self) -> MTLSize:
        return MTLSize(1024, 1024, 1024)

    def newCommandQueue(self) -> Queue:
        self.queues.append(Queue(self))
        return self.queues[-1]

    def newBufferWithLength_options_(self, nbytes: int, options: int) -> Buffer | None:
        assert options == 0  # shared
        return Buffer(nbytes) if 0 < nbytes <= self.room else None

    def newLibraryWithSource_options_error_(
        self, source: str, options: MTLCompileOptions, error: None
    ) -> tuple[Library | None, NSError | None]:
        assert not options.fast
        assert error is None
        found = _compiled(source)
        return (None, NSError(3, found)) if isinstance(found, str) else (Library(found), None)

    def newIndirectCommandBufferWithDescriptor_maxCommandCount_options_(
        self, told: MTLIndirectCommandBufferDescriptor, count: int, options: int
    ) -> IndirectCommandBuffer | None:
        assert self.family == MTLGPUFamilyApple7
        assert options == 0
        assert 0 < count <= 16384
        return IndirectCommandBuffer(told, count) if count <= self.commands else None

    def newComputePipelineStateWithDescriptor_options_reflection_error_(
        self, told: MTLComputePipelineDescriptor, options: int, reflection: None, error: None
    ) -> tuple[Pipeline | None, NSError | None]:
        assert error is reflection is None
        assert options == 0
        if self.most == 0:
            return None, NSError(2, "Compute function exceeds available registers")
        return Pipeline(told.function, self.most, told.indirect), None


def modules(count: int = 1) -> tuple[dict[str, types.ModuleType], list[GPU]]:
    """`Metal` and `objc`, and the GPUs that they find."""
    gpus = [GPU(number) for number in range(count)]
    metal, objc = types.ModuleType("Metal"), types.ModuleType("objc")
    vars(metal).update(
        MTLCompileOptions=MTLCompileOptions,
        MTLSize=MTLSize,
        MTLComputePipelineDescriptor=MTLComputePipelineDescriptor,
        MTLGPUFamilyApple7=MTLGPUFamilyApple7,
        MTLIndirectCommandBufferDescriptor=MTLIndirectCommandBufferDescriptor,
        MTLIndirectCommandTypeConcurrentDispatch=32,
        MTLResourceUsageRead=1,
        MTLResourceUsageWrite=2,
        MTLResourceStorageModeShared=0,
        MTLCommandBufferStatusError=5,
        MTLCreateSystemDefaultDevice=lambda: gpus[-1] if gpus else None,
        MTLCopyAllDevices=lambda: gpus,
    )
    vars(objc).update(autorelease_pool=autorelease_pool)
    return {"Metal": metal, "objc": objc}, gpus


@contextlib.contextmanager
def emulated(count: int = 1) -> Iterator[list[GPU]]:
    """Within the block device METAL is on these GPUs."""
    from lazygrad.device import Device
    from lazygrad.programs.runners import clear_programs
    from lazygrad.runtime.metal import MetalDevice

    found, gpus = modules(count)
    with pytest.MonkeyPatch.context() as patch:
        for name, module in found.items():
            patch.setitem(sys.modules, name, module)
        clear_programs()  # those of others are on their GPU
        Device.register("METAL", MetalDevice)
        try:
            yield gpus
        finally:
            Device.unregister("METAL")
            clear_programs()

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
import tempfile
import time
import types
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
        meets = str("group_barrier(" in source).lower()
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


class Library:
    def __init__(self, functions: dict[str, Function]) -> None:
        self.functions = functions

    def newFunctionWithName_(self, name: str) -> Function | None:
        return self.functions.get(name)


class Pipeline:
    def __init__(self, function: Function, most: int) -> None:
        self.function, self.most = function, most

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
        assert isinstance(groups, MTLSize)
        assert isinstance(threads, MTLSize)
        assert threads.width * threads.height * threads.depth <= self.pipeline.most
        function, given = self.pipeline.function, []
        for index, kind in enumerate(function.kinds):
            memory, offset = self.table[index]
            size = _SIZES.get(kind[:-1], 4)
            assert isinstance(memory, Buffer) == (kind[-1] == "*")
            assert offset % (size * function.widest) == 0, "memory begins where the kernel cannot have it"
            assert kind[-1] == "*" or len(memory) == size
            given.append((memory, offset))

        def run() -> None:
            kept = [m.memory if isinstance(m, Buffer) else bytearray(m) for m, _ in given]
            places = [ctypes.addressof(ctypes.c_char.from_buffer(m)) for m in kept]
            args = (ctypes.c_void_p * len(given))(*(a + o for a, (_, o) in zip(places, given, strict=True)))
            three = [(ctypes.c_uint * 3)(*size) for size in (groups, threads)]
            function.address(args, *(_Size.from_buffer(each) for each in three))

        self.steps.append(run)

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


class _Size(ctypes.Structure):
    _fields_ = (("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint))


class Commands:
    def __init__(self, queue: Queue) -> None:
        self.queue, self.steps, self.encoders = queue, [], []  # type: ignore[var-annotated]
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
        self.queue.waiting.append(self)
        self.queue.count += 1

    def waitUntilCompleted(self) -> None:
        assert self.committed
        while self.state < 4:
            self.queue.waiting.pop(0).run()

    def run(self) -> None:
        start = time.perf_counter()
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

    family: of which GPUs it is
    problems: what the next commands end with
    """

    def __init__(self, number: int) -> None:
        self.number, self.room, self.most, self.queues = number, 1 << 26, 1024, []  # type: ignore[var-annotated]
        self.problems: list[NSError] = []
        self.family = MTLGPUFamilyApple7

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

    def newComputePipelineStateWithFunction_error_(
        self, function: Function, error: None
    ) -> tuple[Pipeline | None, NSError | None]:
        assert error is None
        if self.most == 0:
            return None, NSError(2, "Compute function exceeds available registers")
        return Pipeline(function, self.most), None


def modules(count: int = 1) -> tuple[dict[str, types.ModuleType], list[GPU]]:
    """`Metal` and `objc`, and the GPUs that they find."""
    gpus = [GPU(number) for number in range(count)]
    metal, objc = types.ModuleType("Metal"), types.ModuleType("objc")
    vars(metal).update(
        MTLCompileOptions=MTLCompileOptions,
        MTLSize=MTLSize,
        MTLGPUFamilyApple7=MTLGPUFamilyApple7,
        MTLResourceStorageModeShared=0,
        MTLCommandBufferStatusError=5,
        MTLCreateSystemDefaultDevice=lambda: gpus[-1] if gpus else None,
        MTLCopyAllDevices=lambda: gpus,
    )
    vars(objc).update(autorelease_pool=autorelease_pool)
    return {"Metal": metal, "objc": objc}, gpus

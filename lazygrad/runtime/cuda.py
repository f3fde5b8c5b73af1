"""CUDA: NVIDIA's GPUs, through the driver's own interface and NVRTC (cuda-bindings).

What is started returns at once, and one stream runs all kernels in order: copies to the host wait, launching
does not. So an error that a kernel makes is seen by a later call. It ends the GPU's context: the device is
lost for this process then, and everything else goes on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..device import CompiledDevice, CompileError, DeviceError, Graph, Launch, Program
from ..device.world import world
from ..renderer import ProgramSpec
from ..renderer.cstyle import CUDARenderer
from ..renderer.cstyle.dialects import cuda_target
from ..target import Target
from . import _cuda_driver
from ._cuda_compiler import CUDACompiler
from ._cuda_driver import Arguments, Connection
from ._cuda_graph import graph_of
from ._cuda_memory import CUDAAllocator
from ._mpi import Transport
from ._nccl import Nccl
from ._regions import Region

# *** programs

#: A vector in memory: its type, then where it is.
_VECTOR = re.compile(r"\*\(\(((?:u?(?:char|short|int|longlong)|float|double)[24])\*\)\(")
#: A parameter of a buffer, with its type's name.
_HEAD = re.compile(r"__global__\s+void\b[^;{]*?\b\w+\s*\(([^(){]*)\)\s*\{")
_BYTES = {
    "bool": 1, "signed char": 1, "unsigned char": 1, "char": 1, "half": 2, "__nv_bfloat16": 2, "short": 2,
    "unsigned short": 2, "int": 4, "unsigned int": 4, "float": 4, "long long": 8, "unsigned long long": 8,
    "double": 8,
}  # fmt: skip
#: A function that copies neighbours, and its bytes.
_FETCH = re.compile(r"(void (?:fetch|copy)_(\d+)(_where)?\([^)]*\)) \{ .* \}\n")
#: Vectors whose lanes are read and written one by one.
_UNALIGNED = """\
template <class V> struct Unaligned {
  typedef decltype(V::x) T;
  T lanes[sizeof(V)/sizeof(T)];
  __device__ operator V() const {
    V v;
    for (int n = 0; n < sizeof(V)/sizeof(T); n++) ((T*)&v)[n] = lanes[n];
    return v;
  }
  __device__ void operator=(const V& v) {
    for (int n = 0; n < sizeof(V)/sizeof(T); n++) lanes[n] = ((const T*)&v)[n];
  }
};
"""


def unaligned(text: str) -> str:
    """The kernel for buffers that begin at any element: vectors in memory have no alignment."""
    includes = re.findall(r"^#.*\n", text, re.MULTILINE)
    rest = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)
    rest = re.sub(r"\bfetch_(\d)", r"copy_\1", _FETCH.sub(_byte_by_byte, rest))  # none is on the way any more
    return "".join(includes) + _UNALIGNED + _VECTOR.sub(r"*((Unaligned<\1>*)(", rest)


def _byte_by_byte(found: re.Match[str]) -> str:
    """A function that copies neighbours which begin anywhere."""
    head, size, where = found.groups()
    byte = "((const char*)from)[n]"
    value = f"valid?{byte}:0" if where else byte
    return f"{head} {{ for (int n = 0; n < {size}; n++) ((char*)to)[n] = {value}; }}\n"


def parameter_bytes(text: str) -> list[int]:
    """How many bytes an element of each buffer has, as the kernel's text says; 1 where it is not known."""
    found = _HEAD.search(text)
    pointers = [each for each in found[1].split(",") if "*" in each] if found else []
    names = [re.sub(r"\bconst\b", "", each.partition("*")[0]).strip() for each in pointers]
    return [_BYTES.get(name, 1) for name in names]


class Loaded:
    """A function of a loaded module, which goes with it."""

    def __init__(self, gpu: Connection, spec: ProgramSpec, lib: bytes, compiler: str) -> None:
        self.gpu, driver = gpu, gpu.driver
        with gpu.entered():
            code, self.module = driver.cuModuleLoadData(lib)
            if code:
                problem = gpu.problem("load a kernel", code)
                hint = (
                    f" ({compiler} may be newer than the driver: update the driver, or install an older one)"
                )
                raise CompileError(f"{problem}{'' if gpu.lost else hint}", spec.src)
            gpu.own(self, driver.cuModuleUnload, self.module)
            code, self.function = driver.cuModuleGetFunction(self.module, spec.function_name.encode())
            if code:
                raise CompileError(f"{gpu.name} finds no {spec.function_name} in its text", spec.src)

    def attribute(self, name: str) -> int:
        driver = self.gpu.driver
        wanted = getattr(driver.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")
        return int(self.gpu.call(f"say {name}", driver.cuFuncGetAttribute, wanted, self.function))


class CUDAProgram:
    """A loaded kernel: each argument has a word, and the driver is told where the words are."""

    def __init__(self, device: CUDADevice, spec: ProgramSpec, lib: bytes) -> None:
        self.device, self.gpu, self.spec = device, device.gpu, spec
        self.loaded = Loaded(self.gpu, spec, lib, device.compiler.name)
        self.groups = tuple(spec.global_size or (1, 1, 1))
        self.local = tuple(spec.local_size or (1, 1, 1))
        self._check_size()
        self.sizes = parameter_bytes(spec.src)
        vectors = [int(t[-1]) * _lane_bytes(t[:-1]) for t in _VECTOR.findall(spec.src)]
        widest = max([1, *vectors, *(int(size) for _, size, _ in _FETCH.findall(spec.src))])
        #: an address with one of these bits does not begin where the kernel's vectors and elements may
        self.mask = max([widest, *self.sizes]) - 1
        self._unaligned: Loaded | None = None
        self.arguments = Arguments(spec.globals, len(spec.vars))

    @property
    def _what(self) -> str:
        return f"run {self.spec.name} with {self.groups} workgroups of {self.local}"

    def _check_size(self) -> None:
        """DeviceError if the device cannot start it as large as it is."""
        threads = self.local[0] * self.local[1] * self.local[2]
        most = self.loaded.attribute("MAX_THREADS_PER_BLOCK")
        target = self.device.target
        if threads > min(most, target.group_threads) or any(
            size > limit for size, limit in zip(self.local, target.group_sizes, strict=True)
        ):
            limits = f"at most {most} threads, of {target.group_sizes} along x, y and z"
            raise DeviceError(
                f"{self.gpu.name} does not {self._what}: a workgroup of this kernel has {limits}; smaller "
                "LOCAL and GROUP Opts fit"
            )
        if any(size > limit for size, limit in zip(self.groups, target.grid_sizes, strict=True)):
            raise DeviceError(
                f"{self.gpu.name} does not {self._what}: a launch has at most {target.grid_sizes} workgroups "
                "along x, y and z"
            )

    def function_for(self, addresses: Sequence[int]) -> Any:
        """The function that serves these addresses: another where vectors do not begin at their size."""
        joined = 0
        for address in addresses:
            joined |= address
        if not joined & self.mask:
            return self.loaded.function
        for number, (address, size) in enumerate(zip(addresses, self.sizes, strict=False)):
            if address % size:
                raise DeviceError(
                    f"{self.gpu.name} does not run {self.spec.name}: buffer {number} has elements of {size} "
                    "bytes and begins between two of them; copy the bytes to memory of their own first "
                    "(contiguous())"
                )
        if self._unaligned is None:
            compiler, text = self.device.compiler, unaligned(self.spec.src)
            self._unaligned = Loaded(self.gpu, self.spec, compiler.compile(text), compiler.name)
        return self._unaligned.function

    def __call__(
        self, handles: Sequence[Region], vals: Sequence[int] = (), wait: bool = False
    ) -> float | None:
        gpu, driver = self.gpu, self.gpu.driver
        addresses = [handle.buffer.address + handle.offset for handle in handles]
        with gpu.entered():
            function = self.function_for(addresses)
            gpu.last = self.spec.name
            self.arguments.set(addresses, vals)
            if wait:
                gpu.checked("mark", driver.cuEventRecord(gpu.begun, gpu.stream))
            (code,) = driver.cuLaunchKernel(
                function, *self.groups, *self.local, 0, gpu.stream, self.arguments.address, 0
            )
            if code:
                raise self._problem(code)
            gpu.tick = tick = gpu.tick + 1
            for handle in handles:
                handle.buffer.used = tick
            if not wait:
                return None
            gpu.checked("mark", driver.cuEventRecord(gpu.ended, gpu.stream))
            (code,) = driver.cuEventSynchronize(gpu.ended)
            if code:
                raise self._problem(code)
            elapsed = driver.cuEventElapsedTime(gpu.begun, gpu.ended)
            return float(gpu.checked("take the time", elapsed)) * 1e-3

    def _problem(self, code: Any) -> Exception:
        problem = self.gpu.problem(self._what, code)
        return DeviceError(str(problem)) if isinstance(problem, MemoryError) else problem


def _lane_bytes(name: str) -> int:
    """The bytes of a lane of CUDA's vector types, by what stands before the number: `uchar`."""
    return {"char": 1, "short": 2, "int": 4, "float": 4, "double": 8, "longlong": 8}.get(name.lstrip("u"), 8)


# *** devices


class CUDADevice(CompiledDevice):
    """The n-th GPU that the driver shows."""

    has_graphs = True
    fork_safe = False  # a context does not survive a fork
    compiler: CUDACompiler
    allocator: CUDAAllocator

    def __init__(self, name: str) -> None:
        driver = _cuda_driver.bindings()
        count = _cuda_driver.started(driver)
        number = world().ordinal(name, count)
        if number >= count:
            names = [driver.cuDeviceGetName(256, driver.cuDeviceGet(n)[1])[1] for n in range(count)]
            listed = ", ".join(f"CUDA:{n} is {_said(each)}" for n, each in enumerate(names))
            raise DeviceError(f"there is no device {name}: {listed}")
        self.gpu = gpu = Connection(name, driver, number)
        #: what the GPU is called
        self.model = _said(gpu.checked("say its name", driver.cuDeviceGetName(256, gpu.device)))
        target = device_target(gpu)
        super().__init__(name, CUDAAllocator(name, gpu), CUDARenderer(target), CUDACompiler(target.arch))
        self._transport: Nccl | None = None

    def transport(self, meeting: Transport) -> Nccl:
        """NCCL; NotImplementedError says how to install it, or that a rank has several GPUs."""
        if world().each > 1:
            raise NotImplementedError(
                f"NCCL between ranks that have {world().each} GPUs each: start a rank for each GPU"
            )
        if self._transport is None or self._transport.meeting is not meeting:
            self._transport = Nccl(self.gpu, meeting)
        return self._transport

    def load(self, spec: ProgramSpec, lib: bytes) -> Program:
        return CUDAProgram(self, spec, lib)

    def graph(self, launches: Sequence[Launch]) -> Graph:
        """One launch of a CUDA graph, in which only what changes is set again."""
        return graph_of(self.gpu, launches)

    def check(self) -> None:
        """Bytes go there and come back."""
        sent = b"lazygrad"
        handle = self.allocator.alloc(len(sent))
        try:
            self.allocator._copyin(handle, memoryview(sent))
            received = bytearray(len(sent))
            self.allocator._copyout(memoryview(received), handle)
        finally:
            self.allocator.free(handle)
        if received != sent:
            raise DeviceError(f"{self.name} ({self.model}) does not give back what was copied to it")

    def about(self) -> str:
        return f"{self.model}, {self.target.arch}"

    def synchronize(self) -> None:
        self.gpu.finish()
        self.raise_reported()


def _said(name: bytes) -> str:
    return name.split(b"\0")[0].decode(errors="replace").strip()


def device_target(gpu: Connection) -> Target:
    """What a GPU says it has, on the row of its architecture."""
    major, minor = (gpu.attribute(f"COMPUTE_CAPABILITY_{part}") for part in ("MAJOR", "MINOR"))
    base = cuda_target(f"sm_{major}{minor}")
    count = gpu.attribute("MULTIPROCESSOR_COUNT")
    threads = count * gpu.attribute("MAX_THREADS_PER_MULTIPROCESSOR")
    launch = replace(base.launch, resident=threads, warp=gpu.attribute("WARP_SIZE"), multiprocessors=count)
    return replace(
        base,
        launch=launch,
        local_bytes=gpu.attribute("MAX_SHARED_MEMORY_PER_BLOCK"),
        group_threads=gpu.attribute("MAX_THREADS_PER_BLOCK"),
        group_sizes=tuple(gpu.attribute(f"MAX_BLOCK_DIM_{axis}") for axis in "XYZ"),
        grid_sizes=tuple(gpu.attribute(f"MAX_GRID_DIM_{axis}") for axis in "XYZ"),
    )

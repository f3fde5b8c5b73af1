"""What each figure of a row is measured with: a kernel, the memory that it works on, how much it does."""

from __future__ import annotations

import ctypes
import math
import mmap
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from struct import pack
from typing import Any

from ..config import THREADS, usable_cores
from ..device import BufferSpec
from ..dtype import dtypes
from ..runtime._host import HostAllocator
from ..runtime._pool import SPIN_S, pool
from ..runtime.cpu import host_compiler
from ..target import Target
from . import texts

#: Memory is so many times what the last cache holds, and so many bytes at least and at most.
BEYOND, FAR_LEAST, FAR_MOST = 4, 128 << 20, 512 << 20
#: Pages of which one line each is read: more than any processor keeps the addresses of.
PAGES = 8192
#: Links of a chase that one run follows; meetings of threads in a region; regions in a sample. The latter are
#: few: where other work has the cores, each takes as long as that goes on.
LINKS, MEETINGS, REGIONS = 1 << 12, 50, 16
LINE = 64

_CALL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_CHASE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
_REGIONS = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int32, ctypes.c_int64
)


@dataclass(frozen=True)
class Probe:
    """One thing that is timed.

    group, key  of the figure that it becomes
    amount      what one run does, in the unit of the figure: bytes, operations, loads
    run         runs so many times; the seconds that took, infinity where it did not come to its end
    warm        runs that are not timed before those of a sample: what lies in a cache is there again
    most        runs of a sample at most
    once        whether a turn has one sample, however short that is
    """

    group: str
    key: str
    amount: float
    run: Callable[[int], float]
    warm: int = 1
    most: int = 1_000_000
    once: bool = False


class Bench:
    """The kernels in memory, and the memory that they work on. `close` gives it back."""

    def __init__(self, target: Target, far: int | None = None) -> None:
        self.target = target
        #: Of each level the name, and the bytes that are walked there: more than the level before holds, as
        #: many times as less than this one does.
        sizes = target.memory.sizes[:3]
        self.far = far or min(FAR_MOST, max(FAR_LEAST, BEYOND * sizes[-1]))
        before = [sizes[0] // 4, *sizes]
        between = [math.isqrt(less * size) // 4096 * 4096 for less, size in zip(before, sizes, strict=False)]
        self.levels = [(f"level{level}", min(size, self.far)) for level, size in enumerate(between, 1)]
        self.levels.append(("memory", self.far))
        self.threads = min(THREADS.value, usable_cores())
        self._allocator = HostAllocator("CPU")
        self._owned: list[Any] = []
        self._texts: list[str] = [texts.COMMON, texts.repeat_region()]
        self._names = [texts.REPEAT, texts.REPEAT_REGION, "lazygrad_chase", "lazygrad_wait_for_all"]
        self._addresses: dict[str, int] = {}
        self._makers: list[Iterator[Any]] = [
            self._clock(), self._read(), self._streams(), self._columns(), self._stores(), self._chases(),
            self._page_walks(), self._gathers(), self._multiply_adds(), self._dots(), self._threads(),
        ]  # fmt: skip
        for maker in self._makers:  # each adds its text, then waits for the code
            next(maker)
        #: All kernels, in LLVM IR.
        self.source = "\n".join([*self._texts, "!0 = !{i32 1}\n"])

    def probes(self) -> list[Probe]:
        """All of them, ready to run on this machine."""
        compiler = host_compiler()
        code = compiler.compile(self.source)
        self._addresses, self._code = compiler.link_all(code, self._names, self.source)
        return [probe for maker in self._makers for probe in maker]

    def close(self) -> None:
        """Give the memory back."""
        for handle in self._owned:
            if isinstance(handle, mmap.mmap):
                handle.close()
            else:
                self._allocator._free(handle)
        self._owned.clear()

    # ---- kernels and memory

    def _kernel(self, name: str, text: str) -> str:
        self._names.append(name)
        self._texts.append(text)
        return name

    def _memory(self, nbytes: int) -> int:
        """The address of so many bytes of zeros, as kernels find theirs; each page is written."""
        handle = self._allocator._alloc(nbytes, BufferSpec())
        self._owned.append(handle)
        ctypes.memset(handle.address, 0, nbytes)
        return int(handle.address)

    def _runs(self, name: str, at: int, n: int) -> Callable[[int], float]:
        """What runs a kernel of two arguments over and over."""
        repeat, kernel = _CALL(self._addresses[texts.REPEAT]), self._addresses[name]

        def run(times: int) -> float:
            start = time.perf_counter()
            repeat(kernel, at, n, times)
            return time.perf_counter() - start

        return run

    # ---- what is measured: each adds its kernels, yields None, and then the probes

    def _clock(self) -> Iterator[Any]:
        name = self._kernel("clock", texts.clock())
        yield None
        yield Probe("clock", "core", 100 * texts.CLOCK_STEPS, self._runs(name, self._memory(64), 100))

    @property
    def _width(self) -> int:
        return max(16, self.target.vector_bytes)

    def _read(self) -> Iterator[Any]:
        name = self._kernel("read_1", texts.read("read_1", 1, 0, self._width))
        step = texts.read_step(1, self._width)
        yield None
        self.memory = self._memory(self.far)
        for level, size in self.levels:
            nbytes = max(step, size // step * step)
            warm = 0 if level == "memory" else 1
            yield Probe("read", level, nbytes, self._runs(name, self.memory, nbytes), warm)

    def _streams(self) -> Iterator[Any]:
        made = []
        for streams in (1, 2, 4, 8, 16, 32):
            step = texts.read_step(streams, self._width)
            # walks that begin at the same bytes of a page would meet in one set of the first cache
            apart = self.far // streams // 4096 * 4096 - 4096 + 5 * LINE
            name = f"streams_{streams}"
            self._kernel(name, texts.read(name, streams, apart, self._width))
            made.append((name, streams, apart // step * step))
        yield None
        for name, streams, nbytes in made:
            yield Probe("streams", str(streams), streams * nbytes, self._runs(name, self.memory, nbytes), 0)

    def _columns(self) -> Iterator[Any]:
        made = []
        for wide in (64, 128, 512, 2048):
            name = f"columns_{wide}"
            made.append((wide, self._kernel(name, texts.columns(name, wide, self._width))))
        yield None
        nbytes = self.far // (8 * texts.ROW) * (8 * texts.ROW)
        for wide, name in made:
            yield Probe("columns", str(wide), nbytes, self._runs(name, self.memory, nbytes), 0)

    def _stores(self) -> Iterator[Any]:
        made = [("memory", self._kernel("store", texts.store("store", self._width, False)))]
        made.append(("past_caches", self._kernel("store_past", texts.store("store_past", self._width, True))))
        yield None
        nbytes = self.far // (16 * self._width) * (16 * self._width)
        for key, name in made:
            yield Probe("store", key, nbytes, self._runs(name, self.memory, nbytes), 0)

    def _chases(self) -> Iterator[Any]:
        yield None
        import numpy

        for level, size in self.levels:
            lines = LINE * numpy.arange(size // LINE)
            warm = 0 if level == "memory" else -(-len(lines) // LINKS)
            yield Probe("latency", level, LINKS, self._chased(self._memory(size), lines), warm)

    def _page_walks(self) -> Iterator[Any]:
        yield None
        import numpy

        numbers, page = numpy.arange(PAGES), mmap.PAGESIZE
        for key in ("sparse", "dense"):  # the same lines of the caches, on many pages and on few
            area = mmap.mmap(-1, PAGES * page)
            self._owned.append(area)
            if hasattr(mmap, "MADV_NOHUGEPAGE"):
                area.madvise(mmap.MADV_NOHUGEPAGE)
            offsets = numbers * page + LINE * numbers % page if key == "sparse" else LINE * numbers
            first = ctypes.c_char.from_buffer(area)
            address = ctypes.addressof(first)
            del first  # else the area could not be closed
            yield Probe("page_walk", key, LINKS, self._chased(address, offsets), PAGES // LINKS)

    def _chased(self, at: int, offsets: Any) -> Callable[[int], float]:
        """What follows a ring of pointers, at all these bytes from an address on, in a random order. It goes
        on where it was, so that of a long ring nothing is in a cache.
        """
        import numpy

        order = at + offsets[_random(len(offsets)).permutation(len(offsets))]
        words: Any = (ctypes.c_int64 * ((int(offsets.max()) + LINE) // 8)).from_address(at)
        numpy.frombuffer(words, numpy.int64)[(order - at) // 8] = numpy.roll(order, -1)
        chase = _CHASE(self._addresses["lazygrad_chase"])
        now = [int(order[0])]

        def run(times: int) -> float:
            start = time.perf_counter()
            now[0] = chase(now[0], LINKS * times)
            return time.perf_counter() - start

        return run

    def _gathers(self) -> Iterator[Any]:
        made = [("gather", self._kernel("gather", texts.gather()))]
        if self._width > 16:  # AVX2 and AVX-512 have it
            name = self._kernel("gather_instruction", texts.gather_instruction(self._width))
            made.append(("gather_instruction", name))
        yield None
        import numpy

        counts = {"level1": 1 << 10, "level2": 1 << 13, "memory": self.far // LINE}
        for level, size in self.levels:
            count = counts.get(level, 0)
            if not count:
                continue
            indices = _random(count).integers(0, size // 4, count, numpy.int32)
            copied = self._memory(4 * count)
            ctypes.memmove(copied, indices.ctypes.data, 4 * count)
            both = self._memory(16)
            ctypes.memmove(both, pack("QQ", self.memory, copied), 16)
            for group, name in made:
                warm = 0 if level == "memory" else 1
                yield Probe(group, level, count, self._runs(name, both, count), warm)

    def _multiply_adds(self) -> Iterator[Any]:
        made = []
        fused, chains = self.target.has_fma, min(24, self.target.vector_registers - 4)
        for width in (16, 32, 64):
            if width <= self._width:
                if fused:
                    self._texts.append(texts.fma_declaration(width))
                for group, count in (("fma", chains), ("fma_latency", 1)):
                    name = f"{group}_{width}"
                    self._kernel(name, texts.multiply_adds(name, width, count, fused))
                    steps = 100 * 16
                    amount = 2 * steps * count * width // 4 if group == "fma" else steps
                    made.append((group, width, name, amount))
        yield None
        for group, width, name, amount in made:
            yield Probe(group, str(width), amount, self._runs(name, self.memory, 100))

    def _dots(self) -> Iterator[Any]:
        there = {"int8"} if self.target.has_dp4a else set()
        names = {dtypes.int16: "int16", dtypes.bfloat16: "bfloat16"}
        there |= {names[each.element] for each in self.target.dots}
        chains = min(24, self.target.vector_registers - 4)
        for element in sorted(there):
            self._kernel(f"dot_{element}", texts.dot(element, self._width, chains))
        yield None
        for element in sorted(there):
            amount = 2 * texts.DOTS[element][3] * self._width // 4 * chains * 16 * 100
            yield Probe("dot", element, amount, self._runs(f"dot_{element}", self.memory, 100))

    def _threads(self) -> Iterator[Any]:
        yield None
        if self.threads < 2 or not pool.start(host_compiler):
            return
        counter = self._memory(2 * LINE)
        failed = ctypes.c_int32.from_address(counter + LINE)
        regions = _REGIONS(self._addresses[texts.REPEAT_REGION])
        entry, buffers = self._addresses["lazygrad_wait_for_all"], pack("P", counter)

        def meet(meetings: int, times: int, threads: int) -> float:
            failed.value = 0
            start = time.perf_counter()
            regions(pool.address, entry, buffers, pack("q", meetings), threads, times)
            return math.inf if failed.value else time.perf_counter() - start

        meet(1, 1, self.threads)  # the workers begin
        if pool.workers < self.threads - 1:  # the system gives no threads
            return

        def after_sleep(_: int) -> float:
            time.sleep(10 * SPIN_S)
            called = min(meet(1, 1, 1) for _ in range(10))  # what Python takes
            return max(0.0, meet(1, 1, self.threads) - called)

        def many(times: int) -> float:
            return meet(1, times, self.threads)

        def long(times: int) -> float:
            return meet(MEETINGS, times, self.threads)

        yield Probe("fork", "awake", 1, many, most=REGIONS)
        yield Probe("fork", "asleep", 1, after_sleep, 0, 1, once=True)
        yield Probe("barrier", "all", MEETINGS, long, most=1)


def _random(seed: int) -> Any:
    import numpy

    return numpy.random.default_rng(seed)

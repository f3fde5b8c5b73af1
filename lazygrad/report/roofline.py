"""What a machine can do at most, measured with kernels of our own; and how near to that a kernel comes.

The *roofline* of a machine is two numbers: operations per second, and bytes per second from where the data
lies. A kernel cannot be faster than the one that it needs more of, so that one is said to bind. What a cache
holds comes from there: a kernel that touches more than the last of them holds is bound by memory.

Other work makes what is measured too low, nothing makes it too high. So the first processes that ask measure
again, a kernel that exceeds what is known has it measured again, and the best of all is kept on disk.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from ..config import BEAM, CHECK, NOOPT, THREADS, Context
from ..device import BufferSpec, CompiledDevice, CompileError, Device, DeviceError, GlobalCounters
from ..dtype import dtypes
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..programs.runners import get_runner
from ..runtime import diskcache_get, diskcache_put
from ..schedule.kernelize import planning
from ..shape import ShapeTracker
from ..target import Target

TABLE = "roofline"
#: A cache is measured with half the bytes that it holds, memory with so many times those of the last cache
#: and so many bytes at least: three vectors, of which two are read and the third is written.
BEYOND, FAR = 6, 3 << 26
#: Elements of the vector that is computed with, on a slow device and on others.
FEW, MANY = 1 << 8, 1 << 20
#: Independent chains of multiply-adds per element, and their lengths: enough to hide an operation's latency.
CHAINS, STEPS = 8, 24
#: No size is tried that should take so long; and what one measurement may take, in seconds.
SLOW, BUDGET = 0.1, 30e-3
#: So many processes measure; and so much more than the peak is no inaccuracy of a clock.
TIMES, MORE = 5, 1.05


class Roofline(NamedTuple):
    """Operations per second; of each cache, innermost first, the bytes that it holds and bytes per second;
    bytes per second of memory.
    """

    ops: float
    caches: tuple[tuple[int, float], ...]
    memory: float

    def bytes_per_second(self, touched: int) -> float:
        """The bandwidth for a kernel that touches so many bytes: that of the first cache which holds them."""
        return next((rate for held, rate in self.caches if touched <= held), self.memory)

    def exceeded(self, seconds: float, ops: int, touched: int) -> bool:
        """Whether a run was faster than this machine was seen to be."""
        least = max(ops / self.ops, touched / self.bytes_per_second(touched))
        return 0 < seconds * MORE < least

    def share(self, seconds: float, ops: int, touched: int) -> str:
        """`34% of 21.5 GB/s`: what a run reached of that which bound it."""
        if seconds <= 0 or ops + touched == 0:
            return ""
        bandwidth = self.bytes_per_second(touched)
        if ops / self.ops > touched / bandwidth:
            return f"{100 * ops / seconds / self.ops:.0f}% of {self.ops * 1e-9:.1f} GFLOPS"
        return f"{100 * touched / seconds / bandwidth:.0f}% of {bandwidth * 1e-9:.1f} GB/s"


#: (kind of device, number of threads) → what was measured.
_known: dict[tuple[str, int], Roofline | None] = {}
#: Those that were measured in this process.
_measured_here: set[tuple[str, int]] = set()


def roofline(name: str) -> Roofline | None:
    """The roofline of a device with the threads of now: the best that was measured here until now; None where
    nothing runs.
    """
    device = Device[name]
    key = device.kind, THREADS.value
    with planning:
        if key not in _known:
            _known[key] = _cached_or_measured(device, TIMES)
        return _known[key]


def reached(name: str, seconds: float, ops: int, touched: int) -> str:
    """`34% of 21.5 GB/s`: what a run on a device reached of what binds it; empty where nothing is known."""
    found = roofline(name)
    if found is not None and found.exceeded(seconds, ops, touched):
        device = Device[name]
        key = device.kind, THREADS.value
        with planning:
            if key not in _measured_here:
                found = _known[key] = _cached_or_measured(device)
    return "" if found is None else found.share(seconds, ops, touched)


def forget() -> None:
    """Measure again when asked again (what is on disk stays)."""
    _known.clear()
    _measured_here.clear()


def _cached_or_measured(device: CompiledDevice, times: int | None = None) -> Roofline | None:
    """The best of what is on disk and, if that was measured fewer than so many `times`, of now."""
    if device.compiler is None:
        return None
    key = [device.kind, device.compiler.version(), device.target.arch, THREADS.value, "levels"]
    kept = diskcache_get(TABLE, key)
    count, found = kept or (0, [])
    if times is None or count < times:
        _measured_here.add((device.kind, THREADS.value))
        found = best(found, _measured(device))
        diskcache_put(TABLE, key, [count + 1, found])
    if not found:
        return None
    ops, caches, memory = found
    return Roofline(ops, tuple((held, rate) for held, rate in caches), memory)


def best(before: Any, now: Any) -> Any:
    """Of two measurements the higher numbers; caches that only one has are left as they are."""
    if not before or not now:
        return before or now
    rates = dict(before[1])
    for held, rate in now[1]:
        rates[held] = max(rate, rates.get(held, 0.0))
    caches = sorted([held, rate] for held, rate in rates.items())
    return [max(before[0], now[0]), caches, max(before[2], now[2])]


def _measured(device: CompiledDevice) -> Any:
    """A Roofline as lists, to be kept: [operations per second, [[bytes that a cache holds, bytes per second],
    ...], bytes per second of memory]; [] where running takes no time.
    """
    before = GlobalCounters.mem_peak
    with Context(DEBUG=0, **{flag.name: 0 for flag in (BEAM, CHECK, NOOPT)}):
        try:
            caches: list[list[float]] = []
            rates: list[float] = []
            held = _cache_bytes(device.target)
            for touched in [*(size // 2 for size in held), max(FAR, BEYOND * held[-1])]:
                if rates and touched / rates[-1] > SLOW:
                    break
                size = touched // 12
                seconds = _seconds(device, _sum_of_two(size), size)
                if seconds <= 0:
                    return []
                rates.append(12 * size / seconds)
            size = MANY if len(rates) > len(held) else FEW
            ops = (2 * CHAINS * STEPS + 2 * CHAINS) * size / _seconds(device, _multiply_adds(size), size)
        except (MemoryError, NotImplementedError, DeviceError, CompileError):  # no room, or no such words
            return []
        finally:
            GlobalCounters.mem_peak = before
    # what lies further is never nearer: what noise made it seem so is taken out
    for place in range(len(rates) - 2, -1, -1):
        rates[place] = max(rates[place], rates[place + 1])
    *nearer, memory = rates
    caches = [[size, rate] for size, rate in zip(held, nearer, strict=False)]
    return [ops, caches, memory]


def _cache_bytes(target: Target) -> list[int]:
    """Bytes that each cache holds for the threads of now: all but the last are a core's own."""
    *own, shared = target.memory.sizes
    return [size * max(1, min(THREADS.value, target.threads)) for size in own] + [shared]


def _seconds(device: CompiledDevice, ast: UOp, size: int) -> float:
    """The shortest run of a kernel on three buffers of zeros, outside of all books."""
    runner = get_runner(device.name, ast)
    allocator = device.allocator
    handles: list[Any] = []
    try:
        for _ in range(runner.spec.globals):
            handles.append(allocator._alloc(allocator._rounded(4 * size), BufferSpec()))
            handles[-1].nbytes = 4 * size
        for turn in range(len(handles)):  # every page is written once: those that never were are all one
            runner.program((*handles[turn:], *handles[:turn]), (), wait=True)
        return _shortest(lambda: runner.program(tuple(handles), (), wait=True))
    finally:
        for handle in handles:
            allocator._free(handle)


def _shortest(run: Callable[[], float | None]) -> float:
    start = time.perf_counter()
    best = run() or 0.0
    while best > 0 and time.perf_counter() - start < max(BUDGET, 3 * best):
        best = min(best, run() or 0.0)
    return best


# *** two kernels (form 2)


def _memory(number: int, size: int) -> tuple[UOp, UOp]:
    view = UOp(Ops.VIEW, dtypes.void, (), ShapeTracker.from_shape((size,)))
    return UOp(Ops.DEFINE_GLOBAL, dtypes.float32.ptr(size), (), number), view


def _kernel(size: int, value: UOp) -> UOp:
    return UOp.sink(UOp(Ops.STORE, dtypes.void, (*_memory(0, size), value)))


def _load(number: int, size: int) -> UOp:
    return UOp(Ops.LOAD, dtypes.float32, _memory(number, size))


def _sum_of_two(size: int) -> UOp:
    return _kernel(size, _load(1, size) + _load(2, size))


def _multiply_adds(size: int) -> UOp:
    """CHAINS chains `y = y * x + x` of STEPS steps, added up."""
    x = _load(1, size)
    everywhere = UOp(Ops.VIEW, dtypes.void, (), ShapeTracker.from_shape((1,)).expand((size,)))
    total = x
    for chain in range(CHAINS):
        y = x + UOp(Ops.CONST, dtypes.float32, (everywhere,), float(chain))
        for _ in range(STEPS):
            y = y * x + x
        total = total + y
    return _kernel(size, total)

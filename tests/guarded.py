"""Device GUARDED: CPU or CLANG with memory in which a stray access ends the process at once.

Each block has pages of its own between two pages that nobody may touch: it ends where the second begins, or
begins where the first ends (GUARD=start). What is freed is never used again, and nobody may touch it.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections import deque
from typing import Any

from lazygrad.device import BufferSpec, CompiledDevice, Device, GlobalCounters
from lazygrad.device.allocator import DEFAULT_SPEC, take_back
from lazygrad.locks import table_lock
from lazygrad.runtime._host import HostAllocator, Memory

PAGE = mmap.PAGESIZE
NOTHING, READ_AND_WRITE = 0, 3  # PROT_NONE, PROT_READ | PROT_WRITE
#: Freed blocks that stay untouchable: each is a mapping, and a process may have some 65,000.
MOST_FREED = 8000

_system = ctypes.CDLL(None, use_errno=True)
_system.mmap.restype = ctypes.c_void_p
_system.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_system.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_system.mprotect.argtypes = _system.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


class GuardedAllocator(HostAllocator):
    """Plain memory with guards around it; `owner` of a handle is (address, bytes) of the whole mapping."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.at_start = os.environ.get("GUARD") == "start"
        self.freed: deque[tuple[int, int]] = deque()

    def alloc(self, nbytes: int, options: BufferSpec = DEFAULT_SPEC, zero: bool = False) -> Memory:
        take_back()
        room = -(-max(nbytes, 1) // PAGE) * PAGE
        whole = room + 2 * PAGE
        address = _system.mmap(None, whole, NOTHING, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        assert address != ctypes.c_void_p(-1).value, "no room for a mapping"
        assert _system.mprotect(address + PAGE, room, READ_AND_WRITE) == 0
        begin = address + PAGE + (0 if self.at_start else room - nbytes)
        seen = memoryview((ctypes.c_char * nbytes).from_address(begin)).cast("B")
        with table_lock:
            GlobalCounters.reserved += nbytes
        return Memory(begin, seen, nbytes, (address, whole))

    def free(self, handle: Any, options: BufferSpec = DEFAULT_SPEC, shared: bool = False) -> None:
        with table_lock:
            GlobalCounters.reserved -= handle.nbytes
        if shared:
            return
        assert _system.mprotect(*handle.owner, NOTHING) == 0
        _system.madvise(*handle.owner, mmap.MADV_DONTNEED)
        self.freed.append(handle.owner)
        if len(self.freed) > MOST_FREED:
            _system.munmap(*self.freed.popleft())


def register(base: str) -> None:
    """Make it the default device: `base`, with guards."""

    def guarded(name: str) -> CompiledDevice:
        device = type(Device[base])(name)
        device.allocator = GuardedAllocator(name)
        return device

    Device.register("GUARDED", guarded)
    Device.DEFAULT = "GUARDED"

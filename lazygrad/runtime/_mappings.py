"""Room for machine code: Linux gives a process 65,530 mappings (vm.max_map_count), and a program takes a few.

LLVM ends the process where there are none left, and where it gets no memory: so this looks before.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import sys
from typing import Any

from ..device import OutOfMemoryError

#: So many are asked for: one program takes at most five.
WANTED = 8
#: Bytes that LLVM may take for a program, and for each character of its text (measured: up to 240).
SPACE, SPACE_FOR_TEXT = 32 << 20, 400
_NOTHING, _READ_AND_WRITE = 0, 3  # PROT_NONE, PROT_READ | PROT_WRITE


def check_room() -> None:
    """Raise OutOfMemoryError where the system may refuse the mappings of one more program."""
    if not _has_room():
        raise OutOfMemoryError(
            "the system gives this process no more mappings for programs: keep fewer of them, "
            "or raise its limit (sysctl vm.max_map_count)"
        )


def check_space(source: str) -> None:
    """Raise OutOfMemoryError where address space is too short to compile a text."""
    if sys.platform != "linux":
        return
    wanted = SPACE + SPACE_FOR_TEXT * len(source)
    block = _system().mmap(None, wanted, _NOTHING, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    if block == ctypes.c_void_p(-1).value:
        raise OutOfMemoryError(
            f"the system gives this process no {wanted >> 20} MB of address space, which may be needed to "
            "compile a program: free memory, or raise the limit (ulimit -v)"
        )
    _system().munmap(block, wanted)


def _has_room() -> bool:
    """Whether a block can have every other page of another kind: each is a mapping of its own."""
    if sys.platform != "linux":  # others have no such limit
        return True
    system, page = _system(), mmap.PAGESIZE
    block = system.mmap(None, WANTED * page, _NOTHING, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    if block == ctypes.c_void_p(-1).value:
        return False
    given = all(
        system.mprotect(block + number * page, page, _READ_AND_WRITE) == 0 for number in range(1, WANTED, 2)
    )
    system.munmap(block, WANTED * page)
    return given


@functools.cache
def _system() -> Any:
    """The functions of C's library."""
    system = ctypes.CDLL(None)
    system.mmap.restype = ctypes.c_void_p
    system.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    system.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    system.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return system

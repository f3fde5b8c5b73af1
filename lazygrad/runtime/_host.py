"""Memory of this process, for the devices whose kernels run in it: CPU, CLANG, PYTHON, and NPY's arrays."""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
from dataclasses import dataclass
from typing import Any

from ..device import Allocator, BufferSpec, DeviceError

#: A smaller block is a Python bytearray; others are pages of their own, which the system clears when touched.
PAGES_FROM = 1 << 16
#: From this size on a block asks for huge pages: they take a third of the time to clear at first, and a walk
#: across rows (a transpose) finds the addresses of all pages in the processor's tables.
HUGE_FROM, HUGE_PAGE = 4 << 20, 2 << 20
#: A forked child has pages of its own; Python's default is to share them with the parent.
_PRIVATE: Any = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}


@dataclass(eq=False, slots=True)
class Memory:
    """Some bytes in this process.

    address   where they are, a plain int, ready for a call    bytes  a memoryview of them, perhaps padded
    nbytes    how many were asked for                          owner  whatever keeps them alive
    """

    address: int
    bytes: memoryview
    nbytes: int
    owner: Any

    def __repr__(self) -> str:
        return f"<{self.nbytes} bytes at {self.address:#x}>"


def _physical_memory() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not on Windows
        return 1 << 33


class HostAllocator(Allocator):
    """Plain memory, 64-byte aligned, which is a cache line and the widest vector."""

    adopts_host_memory = True
    cache_limit = max(_physical_memory() // 8, 1 << 28)

    def _alloc(self, nbytes: int, options: BufferSpec) -> Memory:
        store: Any
        if nbytes < PAGES_FROM:
            store = bytearray(nbytes + self.alignment)
        else:
            try:
                store = mmap.mmap(-1, nbytes + (HUGE_PAGE if nbytes >= HUGE_FROM else 0), **_PRIVATE)
            except (OSError, OverflowError) as error:
                raise MemoryError(str(error)) from error
        first = ctypes.c_char.from_buffer(store)  # also keeps `store` from being resized or closed
        address = ctypes.addressof(first)
        start = -address % (self.alignment if nbytes < HUGE_FROM else HUGE_PAGE)
        if nbytes >= HUGE_FROM:
            ask_for_huge_pages(address + start, nbytes)
        return Memory(address + start, memoryview(store)[start : start + nbytes], nbytes, first)

    def _clear(self, handle: Memory) -> None:
        ctypes.memset(handle.address, 0, len(handle.bytes))

    def _adopt(self, opaque: Any, nbytes: int) -> Memory:
        if isinstance(opaque, int):  # an address: the caller keeps the memory alive
            if opaque == 0 and nbytes:
                raise DeviceError(f"{self.name} cannot use memory at address 0")
            store = (ctypes.c_char * nbytes).from_address(opaque)
            return Memory(opaque, memoryview(store).cast("B"), nbytes, store)
        if isinstance(opaque, Memory):
            if opaque.nbytes < nbytes:
                raise DeviceError(
                    f"{opaque.nbytes} bytes of memory are too few for a buffer of {nbytes} bytes"
                )
            return Memory(opaque.address, opaque.bytes, nbytes, opaque)
        flat = _flat_array(opaque)
        if flat.nbytes != nbytes:
            raise DeviceError(
                f"an array of {flat.nbytes} bytes cannot be the memory of a buffer of {nbytes} bytes"
            )
        return Memory(flat.__array_interface__["data"][0], memoryview(flat), nbytes, opaque)

    def _copyin(self, handle: Memory, source: memoryview) -> None:
        if handle.bytes.readonly:
            raise DeviceError("this memory is read-only: it belongs to bytes or to a read-only array")
        handle.bytes[: handle.nbytes] = source

    def _copyout(self, target: memoryview, handle: Memory) -> None:
        target[:] = handle.bytes[: handle.nbytes]

    def _as_buffer(self, handle: Memory) -> memoryview | None:
        import numpy

        exporter: Any = numpy.frombuffer(handle.bytes, numpy.uint8, handle.nbytes)
        return memoryview(exporter)

    def _view_of(self, handle: Memory) -> memoryview | None:
        return handle.bytes[: handle.nbytes]

    def _offset(self, handle: Memory, nbytes: int, offset: int) -> Memory:
        return Memory(handle.address + offset, handle.bytes[offset : offset + nbytes], nbytes, handle)


def _flat_array(opaque: Any) -> Any:
    """The bytes of an array, or of anything with the buffer protocol, as a one-dimensional numpy array."""
    import numpy

    array = opaque if isinstance(opaque, numpy.ndarray) else numpy.frombuffer(opaque, numpy.uint8)
    if not array.dtype.isnative:
        raise DeviceError(
            f"memory in the other byte order ({array.dtype.str}) cannot be adopted; copy it with Tensor()"
        )
    if not array.flags.c_contiguous:
        raise DeviceError("only contiguous memory can be adopted; make a contiguous copy first")
    return array.reshape(-1).view(numpy.uint8)


# *** pages of 2 MB, which Linux gives to those that ask


def ask_for_huge_pages(address: int, nbytes: int) -> None:
    """Asks for what lies wholly inside of this memory and is not touched yet. A wish that Linux alone knows,
    and may have no room for.
    """
    advise = _advise()
    start = -(-address // mmap.PAGESIZE) * mmap.PAGESIZE
    end = (address + nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
    if advise is not None and start < end:
        advise(start, end - start, mmap.MADV_HUGEPAGE)


@functools.cache
def _advise() -> Any:
    """`madvise` of C's library; None on systems without huge pages for those that ask."""
    if not hasattr(mmap, "MADV_HUGEPAGE"):
        return None
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return advise

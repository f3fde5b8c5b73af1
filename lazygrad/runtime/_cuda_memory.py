"""Memory of a GPU, and the way of bytes between it, the host and other GPUs.

Copies from and to the host go through two halves of *pinned* memory, which the GPU reads and writes by
itself: while one half is on its way, the host fills or empties the other. A copy to the GPU is over for the
host when the last half is filled. Between GPUs bytes go directly.
"""

from __future__ import annotations

import ctypes
from typing import Any

from ..device import Allocator
from ._cuda_driver import Connection
from ._regions import Region, RegionAllocator

#: Bytes of each half.
HALF = 4 << 20
#: The tick of memory that somebody else uses too.
_ALWAYS = 1 << 62


class Block:
    """Memory that the driver gave: where, how many bytes, and the tick of the last kernel that used it."""

    __slots__ = ("address", "size", "used")

    def __init__(self, address: int, size: int, used: int = 0) -> None:
        self.address, self.size, self.used = address, size, used


class Staging:
    """The two halves. Whoever uses them has the GPU's lock."""

    def __init__(self, gpu: Connection) -> None:
        self.gpu = gpu
        self.halves: list[memoryview] = []
        self.next = 0

    def _open(self) -> None:
        gpu = self.gpu
        address = int(gpu.checked("pin memory of the host", gpu.driver.cuMemHostAlloc(2 * HALF, 0)))
        self.addresses = (address, address + HALF)
        self.events = (gpu.event(), gpu.event())
        self.halves = [memoryview((ctypes.c_char * HALF).from_address(at)).cast("B") for at in self.addresses]

    def _take(self) -> int:
        """The half whose turn it is, when what it was used for is over."""
        if not self.halves:
            self._open()
        half, self.next = self.next, 1 - self.next
        self.gpu.checked("copy", self.gpu.driver.cuEventSynchronize(self.events[half]))
        return half

    def bring(self, address: int, source: memoryview) -> None:
        """Start copying to the GPU; the source may change as soon as this returns."""
        gpu, driver = self.gpu, self.gpu.driver
        for begin in range(0, len(source), HALF):
            half = self._take()
            part = source[begin : begin + HALF]
            self.halves[half][: len(part)] = part
            copied = driver.cuMemcpyHtoDAsync(address + begin, self.addresses[half], len(part), gpu.copies)
            gpu.checked("copy from the host", copied)
            gpu.checked("mark", driver.cuEventRecord(self.events[half], gpu.copies))

    def fetch(self, target: memoryview, address: int) -> None:
        """Copy from the GPU, and wait for it."""
        gpu, driver = self.gpu, self.gpu.driver
        coming: list[tuple[int, int, int]] = []
        for begin in range(0, len(target), HALF):
            half, size = self._take(), min(HALF, len(target) - begin)
            copied = driver.cuMemcpyDtoHAsync(self.addresses[half], address + begin, size, gpu.copies)
            gpu.checked("copy to the host", copied)
            gpu.checked("mark", driver.cuEventRecord(self.events[half], gpu.copies))
            coming.append((half, begin, size))
            if len(coming) > 1:
                self._empty(target, *coming.pop(0))
        for each in coming:
            self._empty(target, *each)

    def _empty(self, target: memoryview, half: int, begin: int, size: int) -> None:
        self.gpu.checked("copy to the host", self.gpu.driver.cuEventSynchronize(self.events[half]))
        target[begin : begin + size] = self.halves[half][:size]


class CUDAAllocator(RegionAllocator):
    """Blocks of the GPU; what is freed is kept for reuse, an eighth of its memory at most."""

    alignment = 256  #: so that parts of an arena begin where blocks may

    def __init__(self, name: str, gpu: Connection) -> None:
        total = int(gpu.checked("say how much memory it has", gpu.driver.cuDeviceTotalMem(gpu.device)))
        super().__init__(name, Block, total)
        self.gpu, self.staging = gpu, Staging(gpu)
        self.cache_limit = max(total // 8, 1 << 28)

    def _make(self, nbytes: int) -> Block:
        gpu = self.gpu
        with gpu.entered():
            block = Block(int(gpu.checked("allocate", gpu.driver.cuMemAlloc(nbytes))), nbytes)
            self._fill(block, block.address, nbytes)
        return block

    def _release(self, buffer: Block) -> None:
        gpu = self.gpu
        if gpu.lost:
            return
        with gpu.entered():  # cuMemFree waits for the kernels that use it, so says its documentation
            gpu.checked("free", gpu.driver.cuMemFree(buffer.address))

    def _fill(self, block: Block, address: int, nbytes: int) -> None:
        gpu = self.gpu
        gpu.checked("clear memory", gpu.driver.cuMemsetD8Async(address, 0, nbytes, gpu.stream))
        gpu.used(block)

    def _clear(self, handle: Region) -> None:
        with self.gpu.entered():
            address = handle.buffer.address + handle.offset
            self._fill(
                handle.buffer, address, min(self._rounded(handle.nbytes), handle.buffer.size - handle.offset)
            )

    def _copyin(self, handle: Region, source: memoryview) -> None:
        nbytes = min(handle.nbytes, source.nbytes)
        if nbytes:
            with self.gpu.entered():
                self.gpu.order_copy(handle.buffer)
                self.staging.bring(handle.buffer.address + handle.offset, source[:nbytes])
                self.gpu.order_kernels()

    def _copyout(self, target: memoryview, handle: Region) -> None:
        nbytes = min(handle.nbytes, target.nbytes)
        if nbytes:
            with self.gpu.entered():
                self.gpu.order_copy(handle.buffer)
                self.staging.fetch(target[:nbytes], handle.buffer.address + handle.offset)

    def _copy_from(self, handle: Region, other: Allocator, source: Region, nbytes: int) -> bool:
        if not isinstance(other, CUDAAllocator):
            return False
        if nbytes:
            _send(self.gpu, handle, other.gpu, source, nbytes)
        return True

    def _adopt(self, opaque: Any, nbytes: int) -> Region:
        if isinstance(opaque, int):  # an address on this GPU: the caller keeps the memory alive
            return Region(Block(opaque, nbytes, _ALWAYS), nbytes)
        return super()._adopt(opaque, nbytes)


def _send(gpu: Connection, handle: Region, other: Connection, source: Region, nbytes: int) -> None:
    """Copy between two places of one GPU or of two, in the order of the kernels of both."""
    driver = gpu.driver
    target, origin = handle.buffer.address + handle.offset, source.buffer.address + source.offset
    if gpu is other:
        with gpu.entered():
            gpu.checked("copy", driver.cuMemcpyDtoDAsync(target, origin, nbytes, gpu.stream))
            gpu.used(source.buffer)
            gpu.used(handle.buffer)
        return
    first, second = sorted((gpu, other), key=lambda each: each.name)  # whoever else sends takes them so too
    with first.lock, second.lock:
        with other.entered():
            other.checked("mark", driver.cuEventRecord(other.sent, other.stream))
        with gpu.entered():
            gpu.checked("wait", driver.cuStreamWaitEvent(gpu.stream, other.sent, 0))
            gpu.meet(other)
            sent = driver.cuMemcpyPeerAsync(target, gpu.context, origin, other.context, nbytes, gpu.stream)
            gpu.checked(f"copy from {other.name}", sent)
            gpu.used(handle.buffer)
            gpu.checked("mark", driver.cuEventRecord(gpu.sent, gpu.stream))
        with other.entered():
            other.checked("wait", driver.cuStreamWaitEvent(other.stream, gpu.sent, 0))
            other.used(source.buffer)

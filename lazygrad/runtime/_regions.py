"""Memory of drivers that make buffers of their own: a buffer, and where in it. A view of memory is no object
of the driver's then.
"""

from __future__ import annotations

import os
from typing import Any

from ..device import Allocator, BufferSpec, DeviceError


class Region:
    """`nbytes` of a driver's buffer, `offset` bytes from its start."""

    __slots__ = ("buffer", "nbytes", "offset")

    def __init__(self, buffer: Any, nbytes: int, offset: int = 0) -> None:
        self.buffer, self.nbytes, self.offset = buffer, nbytes, offset

    def __repr__(self) -> str:
        return f"<{self.nbytes} bytes of a {type(self.buffer).__name__} from {self.offset}>"


class RegionAllocator(Allocator):
    """Buffers of a driver; the order of its queue says when a freed one may be used again.

    kind     the driver's class of buffers, whose size is in `size`
    largest  the most bytes that one may have
    """

    def __init__(self, name: str, kind: type, largest: int) -> None:
        super().__init__(name)
        self.kind, self.largest = kind, largest
        self.process = os.getpid()

    def _make(self, nbytes: int) -> Any:
        """A new buffer, of zeros; MemoryError where there is no room."""
        raise NotImplementedError(f"{self.name} makes no memory")

    def _release(self, buffer: Any) -> None:
        raise NotImplementedError(f"{self.name} frees no memory")

    def _alloc(self, nbytes: int, options: BufferSpec) -> Region:
        if nbytes > self.largest:
            raise MemoryError(f"one buffer of {self.name} has at most {self.largest:,} bytes")
        return Region(self._make(nbytes), nbytes)

    def _free(self, handle: Region) -> None:
        if os.getpid() == self.process:  # what a forked child inherits is the parent's
            self._release(handle.buffer)

    def _adopt(self, opaque: Any, nbytes: int) -> Region:
        if isinstance(opaque, self.kind):
            opaque = Region(opaque, opaque.size)  # type: ignore[attr-defined]
        if not isinstance(opaque, Region):
            return super()._adopt(opaque, nbytes)  # type: ignore[no-any-return]
        if opaque.nbytes < nbytes:
            raise DeviceError(f"{opaque.nbytes} bytes of memory are too few for a buffer of {nbytes} bytes")
        return Region(opaque.buffer, nbytes, opaque.offset)

    def _offset(self, handle: Region, nbytes: int, offset: int) -> Region:
        return Region(handle.buffer, nbytes, handle.offset + offset)

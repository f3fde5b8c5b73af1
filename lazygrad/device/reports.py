"""Memory into which kernels report: a few words at a time, out of common pages of a device, 0 until one does.

Where the host sees a device's memory, it sees what was reported as soon as a kernel has run, for nothing.
"""

from __future__ import annotations

from typing import Any

from ..dtype import dtypes
from ..locks import WeakKeys
from .buffer import Buffer
from .registry import CompiledDevice, Device

#: Bytes of a page.
PAGE = 1 << 14


class _Pages:
    """The pages of a device: (page, offset) of what is free, by its size in bytes."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.free: dict[int, list[tuple[Buffer, int]]] = {}

    def take(self, nbytes: int) -> tuple[Buffer, int]:
        free = self.free.setdefault(nbytes, [])
        try:
            return free.pop()
        except IndexError:
            page = Buffer(self.device, max(PAGE, nbytes) // 8, dtypes.int64).allocate()
            places = [(page, offset) for offset in range(0, page.nbytes - nbytes + 1, nbytes)]
            free.extend(reversed(places[1:]))
            return places[0]


_pages: WeakKeys[CompiledDevice, _Pages] = WeakKeys()


class ReportBuffer(Buffer):
    """So many words of 8 bytes for reports. They go back to their page with the last reference.

    words  the same on the host, where it sees the memory; else None
    sites  of whom there are reports, one after another
    """

    __slots__ = ("_taken", "sites", "words")

    def __init__(self, device: str, count: int, sites: tuple[Any, ...]) -> None:
        opened = Device[device]
        pages = _pages.get(opened) or _pages.put(opened, _Pages(opened.name))
        alignment = opened.allocator.alignment
        nbytes = -(-8 * count // alignment) * alignment
        page, offset = pages.take(nbytes)
        self._taken: tuple[list[tuple[Buffer, int]], Buffer, int] | None = (pages.free[nbytes], page, offset)
        super().__init__(device, count, dtypes.int64, base=page, offset=offset)
        self.ensure_allocated()
        seen = opened.allocator._view_of(self._buf)
        self.words = None if seen is None else seen[: 8 * count].cast("q")
        self.sites = sites

    def another(self) -> ReportBuffer:
        """Memory of its own for the same reports."""
        return ReportBuffer(self.device, self.size, self.sites)

    def read(self) -> list[int]:
        """What is reported; it is as if nothing had been from now on."""
        if self.words is not None:
            found = self.words.tolist()
        else:
            found = memoryview(self.tobytes()).cast("q").tolist()
        if any(found):
            self.copyin(bytes(self.nbytes))
        return found

    def release(self) -> None:
        """Give the words back to their page, once."""
        super().release()
        taken, self._taken = getattr(self, "_taken", None), None
        if taken is not None:
            free, page, offset = taken
            free.append((page, offset))

"""Which buffers of WebGPU a page has, and which part of which each kernel of a capture is bound to.

Values that are needed inside only share buffers where their lives do not overlap: whole buffers, not parts of
one, since in a dispatch WebGPU has no buffer both for reading alone and for writing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...device import Buffer
from ...device.reports import ReportBuffer
from ...engine.actions import Action
from ...engine.replay import Replay
from ...ir.uop import UOp

#: Where bindings may begin, the most bytes of one, and of a buffer: the defaults of WebGPU's limits.
ALIGNED, MOST_BOUND, MOST_BYTES = 256, 128 << 20, 256 << 20


class Part(NamedTuple):
    """Bytes of a buffer of the page."""

    buffer: int
    offset: int
    nbytes: int

    @property
    def begin(self) -> int:
        """Where it is bound from."""
        return self.offset // ALIGNED * ALIGNED

    @property
    def end(self) -> int:
        """Where its binding ends, after a whole word."""
        return -(-max(self.offset + self.nbytes, 4) // 4) * 4


@dataclass
class PageBuffer:
    """A buffer of the page. `initial` is the memory that it begins as, where it begins with anything."""

    kind: str
    nbytes: int
    initial: Buffer | None = None
    changed: bool = False


class PageMemory:
    """The buffers of a replay: first those of arguments and results, in the order of its places."""

    def __init__(self, replay: Replay, actions: Sequence[Action], sizes: Sequence[tuple[str, int]]) -> None:
        """sizes  the kind and bytes of what changes from call to call"""
        self.replay = replay
        self.buffers = [PageBuffer(kind, nbytes) for kind, nbytes in sizes]
        #: number of a buffer for reports → who reports there, and the kernel
        self.reports: dict[int, tuple[tuple[Any, ...], UOp]] = {}
        self._views = {place: (whole, nbytes, offset) for place, whole, _, nbytes, offset in replay.views}
        self._known: dict[Buffer, int] = {}
        self._shared = self._share(actions)

    def _share(self, actions: Sequence[Action]) -> dict[int, int]:
        """Value that is needed inside only → buffer. The largest first, each in the first that is free."""
        lives: dict[int, list[int]] = {}
        sizes: dict[int, int] = {}
        for position, action in enumerate(actions):
            for place in action.slots:
                if place in self.replay.inner:
                    value, nbytes, _ = self.replay.inner[place]
                    lives.setdefault(value, [position, position])[1] = position
                    sizes[value] = nbytes
        found: dict[int, int] = {}
        taken: dict[int, list[tuple[int, int]]] = {}
        for value in sorted(sizes, key=lambda value: (-sizes[value], value)):
            first, last = lives[value]
            free = (n for n, others in taken.items() if all(last < b or e < first for b, e in others))
            number = next(free, len(self.buffers))
            if number not in taken:
                self.buffers.append(PageBuffer("inner", sizes[value]))
            taken.setdefault(number, []).append((first, last))
            found[value] = number
        return found

    def part(self, place: int, action: Action) -> Part:
        """What a place of the replay is on the page."""
        replay = self.replay
        if place < replay.changing:
            return Part(place, 0, self.buffers[place].nbytes)
        if place in self._views:
            whole, nbytes, offset = self._views[place]
            return Part(whole, offset, nbytes)
        if place in replay.inner:
            value, nbytes, offset = replay.inner[place]
            held = replay.buffers[place]
            return Part(self._shared[value], offset, held.nbytes)
        buffer = replay.buffers[place]
        base: Any = buffer if type(buffer) is ReportBuffer else buffer.base
        number = self._known.get(base)
        if number is None:
            number = self._known[base] = len(self.buffers)
            self.buffers.append(self._made(base, number, action))
        return Part(number, 0 if base is buffer else buffer.offset, buffer.nbytes)

    def _made(self, base: Buffer, number: int, action: Action) -> PageBuffer:
        if isinstance(base, ReportBuffer):
            self.reports[number] = base.sites, action.item.ast
            return PageBuffer("reports", base.nbytes)
        written = base in self.replay.mutated
        if base in self.replay.passing:
            return PageBuffer("inner", base.nbytes)
        return PageBuffer("memory", base.nbytes, base if any(base.as_buffer()) else None, written)

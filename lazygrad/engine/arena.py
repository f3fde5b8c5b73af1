"""Memory of one schedule's intermediate values: one arena a device, where lives that do not meet overlap.

Only memory that nothing outside of the schedule can reach is placed there: fresh outputs that no node of the
graph becomes (`schedule/kernels/template.py`), all of whose kernels run in this schedule, by this thread. In
a capture, where Buffers stand for themselves in what is recorded, they lie there only while the schedule
runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..config import DEBUG, POISON
from ..device import Buffer, Device
from ..device.reports import ReportBuffer
from ..dtype import dtypes
from ..events import listeners, tell
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..schedule.kernels.arena import arrange
from ..schedule.kernels.items import ScheduleItem

#: Shorter schedules have next to nothing to share.
SHORTEST = 3
#: (alignment, lives) → how they were arranged.
_arranged: dict[tuple[int, tuple[tuple[int, int, int], ...]], tuple[list[int], int]] = {}
MAX_ARRANGED = 1024


class Life:
    """A Buffer from the first to the last of the kernels that touch it, `users` in number.

    slot   its place in the arena: (the arena's memory, offset)
    """

    __slots__ = ("buffer", "first", "last", "slot", "users")

    def __init__(self, buffer: Buffer, first: int) -> None:
        self.buffer, self.first, self.last, self.users = buffer, first, first, 1
        self.slot: tuple[Buffer, int] | None = None


class Arena:
    """The intermediate values of one schedule that were placed in shared memory.

    lent  they are Buffers of their own that are given the memory for the time that they are used
    """

    def __init__(self, items: Sequence[ScheduleItem], lives: list[Life], lent: bool) -> None:
        self.items, self.lives, self.lent = items, lives, lent
        self.poisons = bool(POISON.value)
        self._beginning: dict[int, list[Life]] = {}
        self._slots = {life.buffer: life.slot for life in lives if life.slot is not None}
        for life in lives:
            assert life.slot is not None  # `allocate_intermediates` gave it one
            if lent:
                self._beginning.setdefault(life.first, []).append(life)
            else:
                life.buffer.move_into(*life.slot)

    def lend(self, position: int) -> None:
        """The item at this position is about to run, and is recorded."""
        for life in self._beginning.get(position, ()):
            assert life.slot is not None
            memory, offset = life.slot
            allocator = Device[memory.device].allocator
            life.buffer.point_to(allocator._offset(memory._buf, life.buffer.nbytes, offset))

    def slot_of(self, buffer: Buffer) -> tuple[Buffer, int] | None:
        """The arena's memory that a Buffer is in, and where; None of others."""
        return self._slots.get(buffer)

    def after(self, position: int) -> None:
        """Under POISON, what the item at this position read last becomes 0xFF."""
        if self.poisons:
            for life in self.lives:
                if life.last == position:
                    life.buffer.copyin(b"\xff" * life.buffer.nbytes)

    def close(self) -> None:
        """Take out what was lent, and what an error left uncomputed: whoever runs that plans anew."""
        for life in self.lives:
            if self.lent:
                life.buffer.release()
                life.slot = None
            elif "ran" not in self.items[life.first].kernel.facts:
                life.buffer.move_out()


def allocate_intermediates(items: Sequence[ScheduleItem], owner: object, lent: bool = False) -> Arena | None:
    """Place the unreachable outputs of the items that `owner` runs; None where that saves nothing.

    lent  for the time of the schedule alone
    """
    by_device: dict[str, list[Life]] = {}
    for life in _lives(items, owner):
        by_device.setdefault(life.buffer.device, []).append(life)
    placed: list[Life] = []
    for device, lives in by_device.items():
        allocator = Device[device].allocator
        key = (allocator.alignment, tuple([(life.first, life.last, life.buffer.nbytes) for life in lives]))
        found = _arranged.get(key)
        if found is None:
            if len(_arranged) >= MAX_ARRANGED:
                _arranged.clear()
            found = _arranged[key] = arrange(key[1], allocator.alignment)
        offsets, size = found
        apart = sum(life.buffer.nbytes for life in lives)
        if size >= apart:
            continue
        arena = Buffer(device, size, dtypes.uint8).allocate_uncleared()
        for life, offset in zip(lives, offsets, strict=True):
            life.slot = arena, offset
        placed += lives
        if listeners:
            values = [(*life, offset) for life, offset in zip(key[1], offsets, strict=True)]
            tell("arena", None, device, arena._buf, size, "schedule", items, values)
        if DEBUG >= 1 and not lent:
            print(f"memory reduced from {apart / 1e6:.2f} MB -> {size / 1e6:.2f} MB, {len(lives)} -> 1 bufs")
    return Arena(items, placed, lent) if placed else None


def _lives(items: Sequence[ScheduleItem], owner: object) -> list[Life]:
    """The memory that only these items can reach, and when they do."""
    lives: dict[UOp, Life] = {}
    for position, item in enumerate(items):
        if item.kernel.facts.get("runner") is not owner:
            continue
        own = item.bufs[:-1] if type(item.bufs[-1]) is ReportBuffer else item.bufs
        for source, buffer in zip(item.kernel.src, own, strict=False):
            node = source
            while node.op is Ops.ASSIGN:
                node = node.src[0]
            if "inner_users" not in node.facts:
                continue
            life = lives.get(node)
            if life is None:
                lives[node] = Life(buffer, position)
            elif life.last != position:
                life.last = position
                life.users += 1
    return [
        life
        for node, life in lives.items()
        if life.users == node.facts["inner_users"] and not life.buffer.is_allocated and life.buffer.nbytes
    ]

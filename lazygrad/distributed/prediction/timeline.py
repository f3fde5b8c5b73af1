"""When each kernel and each collective of a step begins and ends, on one device.

Kernels run one after another. A collective is started when its turn comes, and runs beside kernels, after the
collectives before it on the same level of links; what touches its memory waits for it, as in a run
(engine/collectives.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ...engine.actions import Action
from ...engine.collectives import Hazards


class Entry(NamedTuple):
    """One thing of a step: `kind` is "kernel", "copy" or that of a collective; times in seconds."""

    kind: str
    name: str
    begin: float
    end: float
    nbytes: int


class Timeline(NamedTuple):
    """A step of one device.

    seconds  how long it takes         kernels   how long kernels run
    sent     how long collectives run  waited    how long kernels wait for these
    """

    entries: tuple[Entry, ...]
    seconds: float
    kernels: float
    sent: float
    waited: float

    @property
    def hidden(self) -> float:
        """What part of the collectives' time is behind kernels; 1 where there are none."""
        return 1 - min(1.0, self.waited / self.sent) if self.sent else 1.0


#: Memory: what tells it from other memory, and the bytes [begin, end) of it.
Memory = tuple[object, int, int]


def timeline(
    actions: Sequence[Action],
    memory_of: Callable[[int], Memory],
    time_of: Callable[[Action], tuple[str, float, int]],
    level_of: Callable[[Action], int],
) -> Timeline:
    """The step that actions make in their order.

    memory_of  the memory of a place of the list
    time_of    the name of an action, the seconds that it takes, and the bytes that it moves
    level_of   the level of links on which a collective runs
    """
    hazards, ends = Hazards(), dict[int, float]()
    now = kernels = sent = waited = 0.0
    free: dict[int, float] = {}  # level of links → when the next collective may begin there
    entries = []
    for number, action in enumerate(actions):
        memory = list(map(memory_of, action.slots))
        writes, reads = memory[: action.outputs], memory[action.outputs :]
        needed = max((ends[each] for each in hazards.before(writes, reads)), default=0.0)
        waited += max(0.0, needed - now)
        now = max(now, needed)
        name, seconds, nbytes = time_of(action)
        if action.kind == "collective":
            level = level_of(action)
            begin = max(now, free.get(level, 0.0))
            free[level] = ends[number] = begin + seconds
            hazards.begin(number, writes, reads)
            sent += seconds
            kind = action.item.ast.arg.kind
        else:
            begin, kind = now, action.kind
            now += seconds
            kernels += seconds
        entries.append(Entry(kind, name, begin, begin + seconds, nbytes))
    end = max([now, *free.values()])
    return Timeline(tuple(entries), end, kernels, sent, waited + end - now)

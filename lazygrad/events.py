"""What happens and how long it takes, told to whoever listens: plans, programs, runs, memory.

Nothing here knows who listens, and where nobody does, a place that could tell asks whether a list is empty.

    kind       what it is told with
    plan       the nodes that were asked for
    lower      the device's name and the kernel's AST: the program's text was made, or found on disk
    compile    the device's name and the program's: the compiler ran
    kernel     the ScheduleItem, the program's name, operations, bytes that are loaded and stored
    copy       the same of a copy, without operations
    capture    what was captured, as errors call it, and the Replay that came of it (None: it was not kept)
    replay     the Replay that ran as one, and the handles that it was given: of arguments, then of results
    alloc      the device's name, the handle and its bytes
    free       the handle
    read       the handle: the host has looked at its bytes
    arena      the device's name, the handle of its memory, its bytes, what it is the arena of ("schedule" or
               "replay"), the ScheduleItems in order, and of each value in it (first item, last item, bytes,
               offset)
"""

from __future__ import annotations

import time
from typing import Any, Protocol


class Listener(Protocol):
    """Who is told. It is called on the thread where it happened, and must not raise."""

    def happened(self, kind: str, begin: float, end: float, what: Any) -> None:
        """Something took from `begin` to `end`, as `time.perf_counter` counts seconds."""


#: Who listens, in this process.
listeners: list[Listener] = []


def tell(kind: str, begin: float | None, *what: Any, end: float | None = None) -> None:
    """Tell that something has happened which began then (None: now), and ended at `end` or now."""
    until = time.perf_counter() if end is None else end
    for listener in tuple(listeners):
        listener.happened(kind, until if begin is None else begin, until, what)

"""The registry of tensors that exist: whoever writes memory must know who still looks at it."""

from __future__ import annotations

import sys
import weakref
from typing import Any

from ..ir import uop as graph
from ..schedule.graph.requested import toposort_effective
from .observer import observing
from .trace import warn


class _LiveRef(weakref.ref[Any]):
    """A weak reference that is itself a key: equal to no other, whatever its tensor is."""

    __slots__ = ()
    __hash__ = object.__hash__
    __eq__ = object.__eq__


#: In the order in which they were made. A tensor leaves when it dies: `_leave` is called with its
#: reference, and nothing written in Python, where Ctrl-C would be lost.
_live: dict[_LiveRef, None] = {}
_leave = _live.pop


#: So many operations may be recorded and not computed before a warning; each takes some 500 bytes.
MOST_NODES = 250_000
#: So many nodes are alive before it is counted which of them wait to be computed: others are the kernels of
#: programs, and what has become memory.
_count_from = 0


#: So many calls were put off since the last look at them.
_deferred = 0


def note_deferred(count: int) -> None:
    """So many calls were put off. Now and then the nodes of those that are left are made: they are counted
    then, too.
    """
    global _deferred
    _deferred += count
    if _deferred > MOST_NODES // 16:
        _deferred = 0
        for tensor in alive():
            if hasattr(tensor, "_uop_or_call"):
                tensor._uop  # noqa: B018


def register(tensor: object) -> None:
    """Note a new tensor."""
    if len(graph.nodes) > MOST_NODES and len(graph.nodes) > _count_from:
        _warn_of_growth()
    _live[_LiveRef(tensor, _leave)] = None
    if observing.by is not None:
        observing.by.made(tensor)


def waiting_nodes() -> int:
    """How many nodes what exists is to be computed from."""
    return len(toposort_effective([tensor._uop for tensor in alive() if hasattr(tensor, "_uop_or_call")]))


def _warn_of_growth() -> None:
    """Say once that graphs grow and are never computed, at the user's line that made them grow so far."""
    global MOST_NODES, _count_from
    waiting = waiting_nodes()
    if waiting <= MOST_NODES:  # looked at again when there may be as many more
        _count_from = len(graph.nodes) + MOST_NODES - waiting
        return
    count, MOST_NODES = MOST_NODES, sys.maxsize
    warn(
        f"more than {count:,} operations are recorded and not computed, and the latest is made here; "
        "what is carried from step to step (a running sum, a state) should be computed in each: "
        "call .realize() on it",
        RuntimeWarning,
    )


def alive() -> list[Any]:
    """What was registered and exists now."""
    found = [ref() for ref in list(_live)]
    return [tensor for tensor in found if tensor is not None]

"""The registry of tensors that exist: whoever writes memory must know who still looks at it."""

from __future__ import annotations

import sys
import warnings
import weakref
from typing import Any

from ..ir import uop as graph
from .trace import user_line


class _LiveRef(weakref.ref[Any]):
    """A weak reference that is itself a key: equal to no other, whatever its tensor is."""

    __slots__ = ()
    __hash__ = object.__hash__
    __eq__ = object.__eq__


#: In the order in which they were made. A tensor leaves when it dies: `_leave` is called with its
#: reference, and nothing written in Python, where Ctrl-C would be lost.
_live: dict[_LiveRef, None] = {}
_leave = _live.pop


#: So many nodes of graphs are alive before a warning; each takes some 500 bytes.
MOST_NODES = 250_000


def register(tensor: object) -> None:
    """Note a new tensor."""
    if len(graph.nodes) > MOST_NODES:
        _warn_of_growth()
    _live[_LiveRef(tensor, _leave)] = None


def _warn_of_growth() -> None:
    """Say once that graphs grow and are never computed, at the user's line that made them grow so far."""
    global MOST_NODES
    count, MOST_NODES = MOST_NODES, sys.maxsize
    file, _, number = user_line().rpartition(":")
    warnings.warn_explicit(
        f"more than {count:,} operations are recorded and not computed, and the latest is made here; "
        "what is carried from step to step (a running sum, a state) should be computed in each: "
        "call .realize() on it",
        RuntimeWarning,
        file,
        int(number or 0),
    )


def alive() -> list[Any]:
    """What was registered and exists now."""
    found = [ref() for ref in list(_live)]
    return [tensor for tensor in found if tensor is not None]

"""The registry of tensors that exist: whoever writes memory must know who still looks at it."""

from __future__ import annotations

import sys
import warnings
import weakref
from typing import TYPE_CHECKING

from ..ir import uop as graph
from .trace import user_line

if TYPE_CHECKING:
    from .base import TensorBase

_live: dict[int, _LiveRef] = {}


class _LiveRef(weakref.ref["TensorBase"]):
    """A weak reference that leaves the registry of tensors by itself."""

    __slots__ = ("key",)
    key: int


def _forget(ref: weakref.ref[TensorBase]) -> None:
    key = ref.key  # type: ignore[attr-defined]
    if _live.get(key) is ref:
        del _live[key]


#: So many nodes of graphs are alive before a warning; each takes some 500 bytes.
MOST_NODES = 1_000_000


def register(tensor: TensorBase) -> None:
    """Note a new tensor; it leaves by itself when it dies."""
    if len(graph.nodes) > MOST_NODES:
        _warn_of_growth()
    ref = _LiveRef(tensor, _forget)
    ref.key = id(tensor)
    _live[ref.key] = ref


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


def live_tensors() -> list[TensorBase]:
    """Every tensor that exists now."""
    found = [ref() for ref in list(_live.values())]
    return [tensor for tensor in found if tensor is not None]

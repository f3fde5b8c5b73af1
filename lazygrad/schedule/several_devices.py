"""Graphs over values that several devices hold: whether one is, and who makes plain graphs of it.

How such values lie, and what devices send each other for them, is no part of planning: `lazygrad/sharding/`
knows it, and says so here when it is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ..ir.ops import Ops
from ..ir.uop import UOp
from ..shape.movement import below_movement
from .graph.in_memory import is_materialized


class Sharding(NamedTuple):
    """What planning asks of it.

    separated        plain graphs that compute roots, behind a COLLECTIVE that comes before all of theirs
    end_of_plan      all that belongs to a plan has been found
    not_found_again  a COLLECTIVE is planned: who makes it anew computes it anew
    """

    separated: Callable[[Sequence[UOp], UOp | None], list[UOp]]
    end_of_plan: Callable[[], None]
    not_found_again: Callable[[UOp], None]


#: Who knows, once it is imported.
SHARDING: list[Sharding] = []


def sharding() -> Sharding:
    """Who knows how values lie on several devices."""
    if not SHARDING:
        raise NotImplementedError("nothing is there that separates devices: import lazygrad.sharding")
    return SHARDING[0]


def on_several(order: Iterable[UOp]) -> bool:
    """Whether a walk met a value that several devices hold."""
    for node in order:
        op = node.op
        place = node.src[0] if op is Ops.CONST and node.src else node
        if op in (Ops.MULTI, Ops.COLLECTIVE) or (place.op is Ops.DEVICE and type(place.arg) is tuple):
            return True
    return False


def in_place(value: UOp) -> bool:
    """Whether all parts of a MULTI are memory that is there, or planned."""
    return all(is_materialized(below_movement(part)) for part in value.src)

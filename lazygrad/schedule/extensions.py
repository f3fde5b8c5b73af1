"""What planning asks of extensions, each of which says what it knows here when it is imported.

Who writes kernels at once (`direct/one_pass/`) proposes them, whole, before values are placed one by one:
they may compute inside what would else be stored. How values of several devices lie, and what devices send
each other for them, `sharding/` knows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Iterable, Sequence, Set
from typing import Any, NamedTuple

from ..dtype import DType
from ..ir.args import MultiArg
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..shape.movement import below_movement
from ..shape.sizes import Shape
from ..shape.tracker import ShapeTracker
from ..target import Target
from .graph.requested import is_materialized

# *** kernels that are proposed


class Operands(NamedTuple):
    """What a proposed kernel computes beside its result, and what it reads: nodes below movements.

    beside  reductions inside that it stores, and the shapes that they have among its loops
    """

    inside: set[UOp]
    read: list[UOp]
    beside: dict[UOp, Shape] = {}

    def views(self) -> dict[UOp, ShapeTracker]:
        """How the loops see what is stored beside the result."""
        return {value: ShapeTracker.from_shape(shape) for value, shape in self.beside.items()}


class Proposals:
    """What is proposed for the values of one graph: here, nothing."""

    def operands(self, node: UOp) -> Operands | None:
        """What the kernel of a value reads, if one is proposed."""
        return None

    def why(self, node: UOp) -> str:
        """Why such a value is stored; nothing of others."""
        return ""

    def made_beside(self, node: UOp) -> UOp | None:
        """The value whose kernel stores this statistic of its rows."""
        return None

    def compute(self, values: Set[UOp]) -> bool:
        """Whether some kernel computes one of these values inside."""
        return False


#: Who proposes kernels, the last one that said so: of the nodes of a graph, those that are stored whatever
#: happens, what it is planned for, and whether memory is short.
PROPOSERS: list[Callable[[Sequence[UOp], Container[UOp], Target, bool], Proposals]] = [
    lambda order, must, target, spares: Proposals()
]


# *** several devices


class Sharding(NamedTuple):
    """What planning, and tensors on several devices, ask of it.

    separated        plain graphs that compute roots, behind a COLLECTIVE that comes before all of theirs
    not_found_again  a COLLECTIVE is planned: who makes it anew computes it anew
    take_planned     a digest of what all ranks plan alike, since this was asked last
    value_of         how a value that several devices hold lies: a MULTI of plain parts
    layout_of_value  the same, with what is pending
    sharded          a value that lies so from here on
    laid_like        a value as one that lies as a MULTI does
    placed_as_leaf   the gradient of a leaf that is in parts, in the same
    new_memory       memory to be written that lies as a value does
    empty_memory     the same, which reads zeros
    groups_here      the groups along some axes of a mesh of which this rank has devices
    """

    separated: Callable[[Sequence[UOp], UOp | None], list[UOp]]
    not_found_again: Callable[[UOp], None]
    take_planned: Callable[[], bytes]
    value_of: Callable[[UOp], UOp]
    layout_of_value: Callable[[UOp], MultiArg]
    sharded: Callable[[UOp, MultiArg], UOp]
    laid_like: Callable[[UOp, UOp], UOp]
    placed_as_leaf: Callable[[UOp, UOp], UOp]
    new_memory: Callable[[UOp], UOp]
    empty_memory: Callable[[UOp, DType], UOp]
    groups_here: Callable[[MultiArg, tuple[int, ...]], Sequence[Any]]


#: Who knows, once it is imported.
SHARDING: list[Sharding] = []


class PlanAtHand(threading.local):
    """What a thread's plan leaves to be done at its end.

    alone  COLLECTIVEs as they were before they named another one: who makes one of these again in the same
           plan shall find it, and in no other
    """

    alone: tuple[UOp, ...] = ()


at_hand = PlanAtHand()


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

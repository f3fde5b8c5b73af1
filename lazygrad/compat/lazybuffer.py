"""What a node of the tensor graph answered when it was called a LazyBuffer.

A node is *concrete* (something is computed or loaded), or a *view*: movements on a concrete one, its `base`.
"""

from __future__ import annotations

from typing import Any

from ..device import Buffer, Devices
from ..dtype import dtypes
from ..ir.index import bounds, sint
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..schedule.versions import buffer_of, device_of, latest, peel
from ..shape.movement import base_and_tracker
from ..shape.rules import shape_of
from ..shape.sizes import prod
from ..shape.tracker import ShapeTracker


def base(node: UOp) -> UOp:
    """The concrete node that a view looks at; of a concrete node itself."""
    return base_and_tracker(peel(node))[0]


def st(node: UOp) -> ShapeTracker:
    """How the base is seen."""
    return base_and_tracker(peel(node))[1]


def srcs(node: UOp) -> tuple[UOp, ...]:
    """What a concrete node is computed from; of a view its base."""
    if node is not base(node):
        return (base(node),)
    return tuple(s for s in node.src if s.op not in (Ops.DEVICE, Ops.UNIQUE))


def realized(node: UOp) -> Buffer | None:
    """The memory that holds the values of the base; None while they are not computed."""
    held = base(latest(node))
    if held.op not in (Ops.BUFFER, Ops.BUFFER_VIEW):
        return None
    buffer = buffer_of(held)
    return buffer if buffer.is_allocated else None


def shape(node: UOp) -> tuple[sint, ...]:
    return shape_of(node)


def size(node: UOp) -> sint:
    """The number of elements."""
    return prod(shape_of(node))


def device(node: UOp) -> Devices | None:
    return device_of(node)


def forced_realize(node: UOp) -> bool:
    """Whether the user asked that it be stored."""
    return base(node).op is Ops.CONTIGUOUS


def metadata(node: UOp) -> Any:
    """The method that made it."""
    return node.facts.get("origin")


def key(node: UOp) -> int:
    """A number that is the node's own: nodes that are equal are one object."""
    return hash(node)


def vmin(node: UOp) -> Any:
    """The least value that is known of it: of integers only."""
    return bounds(node)[0] if node.dtype is dtypes.index or dtypes.is_int(node.dtype) else -float("inf")


def vmax(node: UOp) -> Any:
    """The greatest value that is known of it: of integers only."""
    return bounds(node)[1] if node.dtype is dtypes.index or dtypes.is_int(node.dtype) else float("inf")


#: The attributes that `install` gives to nodes.
ATTRIBUTES = (base, st, srcs, realized, shape, size, device, forced_realize, metadata, key, vmin, vmax)


def install() -> None:
    """Give UOp these attributes, for scripts that ask for them."""
    for attribute in ATTRIBUTES:
        setattr(UOp, attribute.__name__, property(attribute))


def uninstall() -> None:
    """Take them away again."""
    for attribute in ATTRIBUTES:
        if attribute.__name__ in vars(UOp):
            delattr(UOp, attribute.__name__)

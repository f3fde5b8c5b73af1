"""How a value lies in memory: in that of one device, or a part in that of each of several.

Either is a version and movements on it; the version is a BUFFER, or a MULTI of parts, each of which is
movements on a BUFFER.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..device import Buffer
from ..ir.args import MultiArg
from ..ir.ops import MOVEMENT, Ops
from ..ir.uop import UOp
from ..schedule.graph.versions import buffer_of, version_on
from ..tensor.storage import base_of, versions_of

#: How a tensor looks at memory: movements as (op, argument), the innermost first.
Moves = tuple[tuple[Ops, Any], ...]


def moves_of(node: UOp) -> Moves:
    """The movements from a node down to its base, the innermost first."""
    found = []
    while node.op in MOVEMENT:
        found.append((node.op, node.arg))
        node = node.src[0]
    return tuple(reversed(found))


def moved(node: UOp, moves: Moves) -> UOp:
    """The same movements on another base."""
    for op, argument in moves:
        node = UOp(op, node.dtype, (node,), argument)
    return node


@dataclass(frozen=True, slots=True)
class Layout:
    """How a version lies, whatever memory it is in.

    devices  the nodes of its devices     moves  how each device's memory is seen as its part
    arg     that of the MULTI of the parts; None on one device, whose memory is the version itself
    """

    devices: tuple[UOp, ...]
    moves: tuple[Moves, ...]
    arg: MultiArg | None

    def on(self, buffers: Sequence[Buffer]) -> UOp:
        """A new version in this memory, that of each part in order."""
        if self.arg is None:
            return version_on(self.devices[0], buffers[0])
        parts = map(moved, map(version_on, self.devices, buffers), self.moves)
        return UOp(Ops.MULTI, buffers[0].dtype, tuple(parts), self.arg)

    def with_moves(self, change: Callable[[Moves], Moves]) -> Layout:
        """The same with other movements on each part."""
        return replace(self, moves=tuple(map(change, self.moves)))


def on_one_device(device: str) -> Layout:
    """As memory of one device lies."""
    return Layout((UOp(Ops.DEVICE, arg=device),), ((),), None)


def layout_of(version: UOp) -> Layout:
    """How a version in memory lies."""
    if version.op is not Ops.MULTI:
        return Layout((version.src[0],), ((),), None)
    places = tuple([base_of(part).src[0] for part in version.src])
    return Layout(places, tuple(map(moves_of, version.src)), version.arg)


def buffers_of(version: UOp) -> list[Buffer]:
    """The Buffer of a version in memory, or that of each of its parts."""
    return list(map(buffer_of, versions_of(version)))

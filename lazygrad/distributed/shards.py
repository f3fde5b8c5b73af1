"""Which elements of a tensor each rank has, and a tensor made of pieces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..device.world import owner
from ..ir.mesh import box_at
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..schedule.graph.versions import multi
from ..sharding.multi import value_of
from ..tensor import Tensor
from .starting import world_size

#: The elements of a part: from where to where along each axis.
Box = tuple[tuple[int, int], ...]


class Piece(NamedTuple):
    """A part of a tensor.

    box    its elements       ranks  which ranks have it
    part   it, if it is here
    """

    box: Box
    ranks: tuple[int, ...]
    part: Tensor | None


def is_whole(box: Box, shape: Sequence[Any]) -> bool:
    """Whether a part is all of a tensor."""
    return all(span == (0, size) for span, size in zip(box, shape, strict=True))


def _whole(tensor: Tensor) -> Box:
    return tuple([(0, size) for size in tensor.shape])  # type: ignore[misc]


def shards_of(tensor: Tensor) -> list[Piece]:
    """The parts of a tensor that has been computed; of copies one. All ranks have what is on one device."""
    if not isinstance(tensor.device, tuple):
        return [Piece(_whole(tensor), tuple(range(world_size())), tensor)]
    value = value_of(tensor.uop)
    ranks: dict[Box, list[int]] = {}
    for place, device in enumerate(value.arg.devices):
        ranks.setdefault(box_at(value.arg, tensor.shape, place), []).append(owner(device))  # type: ignore[arg-type]
    here: dict[Box, Tensor] = {}
    for place, part in zip(value.arg.here, value.src, strict=True):
        here.setdefault(box_at(value.arg, tensor.shape, place), Tensor._make(part))  # type: ignore[arg-type]
    return [Piece(box, tuple(dict.fromkeys(found)), here.get(box)) for box, found in ranks.items()]


def put_together(target: Tensor, read: Callable[[Box], Tensor]) -> Tensor:
    """A tensor that lies as another one does; `read` gives what this rank has of it."""
    if not isinstance(target.device, tuple):
        return read(_whole(target)).to(target.device)
    arg = value_of(target.uop).arg
    parts = []
    known: dict[Box, Tensor] = {}
    for place, device in zip(arg.here, arg.local, strict=True):
        box: Any = box_at(arg, target.shape, place)
        if box not in known:
            known[box] = read(box)
        node = known[box].uop
        parts.append(UOp(Ops.COPY, node.dtype, (node, UOp(Ops.DEVICE, arg=device))))
    return Tensor._make(multi(parts, arg))

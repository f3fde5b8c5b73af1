"""Which elements of a tensor each rank has, and a tensor made of pieces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..tensor import Tensor
from .starting import rank, world_size

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


def pieces_of(tensor: Tensor) -> list[Piece]:
    """The parts of a tensor that has been computed; of copies one. All ranks have what is on one device."""
    return [Piece(tuple([(0, size) for size in tensor.shape]), tuple(range(world_size())), tensor)]


def put_together(target: Tensor, read: Callable[[Box], Tensor]) -> Tensor:
    """A tensor that lies as another one does; `read` gives what this rank has of it."""
    return read(tuple([(0, size) for size in target.shape])).to(target.device)

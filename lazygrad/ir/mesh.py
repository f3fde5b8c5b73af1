"""Which elements of a value a device of a mesh has, and which devices are a group.

A place is the number of a device in `mesh.devices`, which are in row-major order.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from .args import MeshArg, MultiArg, Place
from .index import sint
from .ops import Ops

Span = tuple[sint, sint]


def is_axis(place: Place) -> bool:
    """Whether an axis of a mesh splits an axis of a value."""
    return place is not None and not isinstance(place, Ops)


def mesh_axes(arg: MultiArg, axis: int) -> tuple[int, ...]:
    """The axes of the mesh that split an axis."""
    return tuple([n for n, place in enumerate(arg.placements) if is_axis(place) and place == axis])


@functools.lru_cache(4096)
def coordinates(mesh: MeshArg, place: int) -> tuple[int, ...]:
    """Where in the grid a device is."""
    found = []
    for size in reversed(mesh.sizes):
        place, rest = divmod(place, size)
        found.append(rest)
    return tuple(reversed(found))


def position_at(mesh: MeshArg, at: Sequence[int]) -> int:
    """The place of the device that is there in the grid."""
    place = 0
    for size, number in zip(mesh.sizes, at, strict=True):
        place = place * size + number
    return place


@functools.lru_cache(4096)
def group_of(mesh: MeshArg, place: int, axes: tuple[int, ...]) -> tuple[int, ...]:
    """The places of the devices that differ from one along these axes of the mesh only, in order."""
    begin = list(coordinates(mesh, place))
    found = []
    for number in range(math.prod(mesh.sizes[axis] for axis in axes)):
        set_along(begin, mesh, axes, number)
        found.append(position_at(mesh, begin))
    return tuple(found)


def set_along(at: list[int], mesh: MeshArg, axes: Sequence[int], number: int) -> None:
    """Go to the device of this number along some axes of the mesh, counted in row-major order."""
    for axis in reversed(axes):
        number, at[axis] = divmod(number, mesh.sizes[axis])


def number_along(mesh: MeshArg, place: int, axes: Sequence[int]) -> int:
    """The number of a device along some axes of the mesh."""
    at, number = coordinates(mesh, place), 0
    for axis in axes:
        number = number * mesh.sizes[axis] + at[axis]
    return number


def span_at(arg: MultiArg, axis: int, place: int) -> tuple[int, int]:
    """The elements of an axis that a device has."""
    ends = dict(arg.ends)[axis]
    number = number_along(arg.mesh, place, mesh_axes(arg, axis))
    return (ends[number - 1] if number else 0, ends[number])


def box_at(arg: MultiArg, shape: Sequence[sint], place: int) -> tuple[Span, ...]:
    """The elements that a device has, along each axis of a value of a shape."""
    box: list[Span] = [(0, size) for size in shape]
    for axis in arg.axes:
        box[axis] = span_at(arg, axis, place)
    return tuple(box)

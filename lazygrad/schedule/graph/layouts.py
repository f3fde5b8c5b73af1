"""How a value lies on a mesh: which elements each device has, and which devices are a group.

`ir/mesh.py` says which of them a device has.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise

from ...device.world import local_positions
from ...ir.args import MeshArg, MultiArg, Place
from ...ir.index import sint
from ...ir.mesh import Span, is_axis
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...shape.rules import shape_of

Ends = tuple[int, ...]


def even_ends(size: int, count: int) -> Ends:
    """Where `count` parts of `size` elements end: the first ones are larger by one at most."""
    return tuple([(size * number + count - 1) // count for number in range(1, count + 1)])


def even_spans(size: int, count: int) -> list[tuple[int, int]]:
    """`size` elements in `count` parts, one after another."""
    return spans_to(even_ends(size, count))


def spans_to(ends: Sequence[int]) -> list[tuple[int, int]]:
    """The spans that end there, one after another."""
    return list(pairwise((0, *ends)))


def ends_of_sizes(sizes: Sequence[int]) -> Ends:
    """Where parts of these sizes end."""
    return tuple(accumulate(sizes))


# *** layouts


def layout(mesh: MeshArg, places: Sequence[Place], ends: Mapping[int, Ends]) -> MultiArg:
    """How a value lies, of which these axes are split. Along an axis of the mesh with one device nothing is
    split, and nothing is pending.
    """
    if 1 in mesh.sizes:
        places = [None if size == 1 else place for size, place in zip(mesh.sizes, places, strict=True)]
        ends = {axis: those for axis, those in ends.items() if axis in places}
    return MultiArg(mesh, tuple(places), tuple(sorted(ends.items())), local_positions(mesh.devices))


def copied(mesh: MeshArg) -> MultiArg:
    """A copy on each device."""
    return layout(mesh, [None] * len(mesh.sizes), {})


def split(mesh: MeshArg, places: Sequence[Place], shape: Sequence[sint]) -> MultiArg:
    """Even parts: what each axis of the mesh does to a value of a shape."""
    ends = {}
    for axis in dict.fromkeys(place for place in places if is_axis(place)):
        size = shape[axis]  # type: ignore[index]
        if not isinstance(size, int):
            raise NotImplementedError(f"parts along axis {axis}, whose size is symbolic")
        count = math.prod(n for n, place in zip(mesh.sizes, places, strict=True) if place == axis)
        ends[axis] = even_ends(size, count)
    return layout(mesh, places, ends)  # type: ignore[arg-type]


def renumbered(arg: MultiArg, names: Mapping[int, int]) -> MultiArg:
    """The layout where axes have other numbers; those that have none are not split."""
    places = [names.get(place, None) if is_axis(place) else place for place in arg.placements]  # type: ignore[arg-type]
    return layout(arg.mesh, places, {names[axis]: ends for axis, ends in arg.ends if axis in names})


def with_ends(arg: MultiArg, axis: int, ends: Ends) -> MultiArg:
    """The layout with other parts along an axis."""
    return layout(arg.mesh, arg.placements, {**dict(arg.ends), axis: ends})


def without_axis(arg: MultiArg, axis: int, place: Place = None) -> MultiArg:
    """The layout in which an axis is not split; what split it does `place` instead."""
    places = [place if before == axis and is_axis(before) else before for before in arg.placements]
    return layout(arg.mesh, places, {a: e for a, e in arg.ends if a != axis})


def settled(arg: MultiArg, but: MultiArg | None = None) -> MultiArg:
    """The layout with copies of what is pending, but for what another layout of that mesh has pending."""
    stay = (None,) * len(arg.placements) if but is None else but.placements
    places = [
        None if isinstance(place, Ops) and place is not other else place
        for place, other in zip(arg.placements, stay, strict=True)
    ]
    return layout(arg.mesh, places, dict(arg.ends))


def pending_axes(arg: MultiArg) -> list[int]:
    """The axes of the mesh along which there are terms."""
    return [number for number, place in enumerate(arg.placements) if isinstance(place, Ops)]


# *** elements


def spans_of(value: UOp, axis: int | None = None) -> list[tuple[int, int]]:
    """Where each part of a value begins and ends along an axis: the first that is split if none is given."""
    arg = value.arg
    return spans_to(dict(arg.ends)[arg.axis if axis is None else axis])


def whole_spans(value: UOp) -> tuple[Span, ...]:
    """The spans of a shrink that keeps everything."""
    return tuple([(0, size) for size in shape_of(value)])


def all_here(mesh: MeshArg) -> bool:
    """Whether this process has all devices of a mesh."""
    return len(local_positions(mesh.devices)) == len(mesh.devices)


# *** in words


def layout_text(mesh: MeshArg, placements: Sequence[Place]) -> str:
    """How a value lies: for each axis of the mesh, what it does."""
    return ", ".join(f"{name}: {_placed(place)}" for name, place in zip(mesh.names, placements, strict=True))


def _placed(place: object) -> str:
    """What one axis of a mesh does to a value."""
    if place is None:
        return "copy"
    if isinstance(place, Ops):
        return "pending sum" if place is Ops.ADD else f"pending {place.name.lower()}"
    return f"axis {place}"

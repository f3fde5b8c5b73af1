"""How many bytes devices would send to bring values into another layout.

Of a value of n bytes on p devices of a group, each device receives, if what is sent goes straight there:
the rest of all parts for a gather, n(p-1)/p; a part of each other one's for an all-to-all, n(p-1)/p²; a term
of each part, and then the parts, for an all-reduce, 2n(p-1)/p; only the terms for a reduce-scatter. (See
Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms".) Slicing a copy is free.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..ir.args import MultiArg
from ..ir.mesh import mesh_axes
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..schedule.graph.layouts import layout_text, settled
from ..shape.rules import shape_of
from ..shape.sizes import prod, vmax


def cheapest(choices: Sequence[MultiArg], cost: Callable[[MultiArg], float]) -> tuple[MultiArg, str]:
    """The layout that costs fewest bytes, the first of several; and why."""
    options = list(dict.fromkeys(choices))
    costs = list(map(cost, options))
    best = min(range(len(options)), key=costs.__getitem__)
    names = [layout_text(option.mesh, option.placements) for option in options]
    told = ", ".join(f"{name}: {_bytes(c)}" for name, c in zip(names, costs, strict=True))
    return options[best], f"laid {names[best]}, since each device receives ({told})"


def received(value: UOp, target: MultiArg) -> float:
    """The bytes that a device receives when a value is brought into another layout."""
    arg: MultiArg = value.arg
    size = float(value.dtype.itemsize * _elements(value))
    for axis, _ in arg.ends:
        size /= _count(arg, mesh_axes(arg, axis))
    total = 0.0
    for number, place in enumerate(arg.placements):
        count, goal = arg.mesh.sizes[number], target.placements[number]
        if isinstance(place, Ops) and not isinstance(goal, Ops):
            total += (1 if goal is not None else 2) * size * (count - 1) / count
    arg = settled(arg)
    for axis, ends in arg.ends:
        along = mesh_axes(arg, axis)
        count = _count(arg, along)
        if mesh_axes(target, axis) == along and dict(target.ends)[axis] == ends:
            continue
        if any(mesh_axes(target, other) == along for other in target.axes):
            total += size * (count - 1) / count
        else:
            total += size * (count - 1)
            size *= count
    return total


def _elements(value: UOp) -> int:
    size = 1
    for each in shape_of(value):
        size *= vmax(each)
    return size


def _count(arg: MultiArg, axes: Sequence[int]) -> int:
    return prod(arg.mesh.sizes[axis] for axis in axes)  # type: ignore[return-value]


def _bytes(count: float) -> str:
    return (
        f"{count / 1e6:.1f} MB"
        if count >= 1e6
        else f"{count / 1e3:.1f} kB"
        if count >= 1e3
        else f"{count:.0f} B"
    )

"""The mesh of all devices of the world, whose sizes a program need not know."""

from __future__ import annotations

import math

from ..device.mesh import Mesh
from ..device.world import world


class Sizes:
    """`requested`: the sizes that a prediction tries, by name; `made`: those of the last mesh."""

    requested: dict[str, int] | None = None
    made: dict[str, int] | None = None


def world_mesh(*names: str, **sizes: int) -> Mesh:
    """A mesh of all devices of the world.

    names  of the axes
    sizes  of axes: the first axis without one gets what is left, the others one device; in a world of one
           process an axis without a size has one device

    ValueError where the sizes do not make up the world. A prediction of a program on more devices
    (`python -m lazygrad.distributed predict`) tries other sizes than these.

    >>> from lazygrad.distributed import world_mesh
    >>> world_mesh("data", "model", model=2)
    Mesh(data=1, model=2: CPU, CPU:1)
    """
    unknown = [name for name in sizes if name not in names]
    if unknown:
        raise ValueError(f"world_mesh: {unknown[0]!r} has a size, and is none of the axes {', '.join(names)}")
    known = dict(sizes) if Sizes.requested is None else dict(Sizes.requested)
    if Sizes.requested is not None and set(known) != set(names):
        told = ", ".join(known)
        raise ValueError(f"world_mesh: sizes are asked for {told}, and the axes are {', '.join(names)}")
    free = [name for name in names if name not in known]
    count, given = world().count, math.prod(known.values())
    if free and count > 1 and count % given == 0:
        known[free[0]] = count // given
    grid = {name: known.get(name, 1) for name in names}
    if count > 1 and math.prod(grid.values()) != count:
        told = " x ".join(f"{name}={size}" for name, size in grid.items())
        raise ValueError(f"world_mesh: {told} are not the {count} devices of the world")
    Sizes.made = grid
    return Mesh(tuple(grid.values()), tuple(grid))

"""Ways to train a model on a mesh: what is split along which axis of it (docs/sharding.md).

Each is a few calls of `shard_`. What devices send each other follows from how the tensors lie, and is planned
with everything else; none of these functions runs anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..device.mesh import Mesh
from ..device.world import places_here
from ..ir.mesh import number_along
from ..schedule.parts import multi
from ..schedule.layouts import all_here, even_spans, split
from ..tensor import Tensor

# ---- batches ----


def share_of(mesh: Mesh, axis: str) -> tuple[int, int]:
    """Which share of what is split along an axis this process has: (number, of how many).

    Of one process that has all devices, (0, 1): all of it.
    """
    place = mesh.place(axis)
    if all_here(mesh):
        return 0, 1
    return number_along(mesh, _own_place(mesh), [place]), mesh.size(axis)


def _own_place(mesh: Mesh) -> int:
    here = places_here(mesh.devices)
    if len(here) > 1:
        raise NotImplementedError(f"this process has {len(here)} of the devices of {mesh}, and not all")
    return here[0]


def from_local(part: Tensor, mesh: Mesh, axis: str, size: int) -> Tensor:
    """A tensor whose first axis is split along an axis of a mesh, from what each process has of it.

    part  the elements of this process (`share_of`), as `Tensor.shard` divides them; of one process that has
          all devices, the whole tensor
    size  of the first axis of the whole

    Nothing is sent. ValueError where the part does not have the elements that it should.
    """
    if all_here(mesh):
        return part.shard(mesh, {0: axis})
    places: list[Any] = [0 if name == axis else None for name in mesh.names]
    target = split(mesh, places, (size, *part.shape[1:]))
    own = part.to(target.local[0])
    number, count = share_of(mesh, axis)
    begin, end = even_spans(size, count)[number]
    if part.shape[0] != end - begin:
        raise ValueError(
            f"of {size} elements in {count} parts, part {number} has {end - begin}, not {part.shape[0]}"
        )
    return Tensor._make(multi([own.contiguous().uop], target))


def map_tensors(value: Any, function: Callable[[Tensor], Any]) -> Any:
    """A function of each Tensor in tuples, lists and dicts."""
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, Mapping):
        return {key: map_tensors(part, function) for key, part in value.items()}
    if isinstance(value, (tuple, list)):
        made = [map_tensors(part, function) for part in value]
        return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
    return value

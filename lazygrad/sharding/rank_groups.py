"""Groups of devices that exchange something, where ranks have several of them: what the devices of a rank do
among themselves before and after the ranks send each other.

A rank puts together what its devices of a group have, takes part once, as one device, and gives each of them
what it wants of what comes back.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..device.world import world
from ..ir.args import MeshArg, MultiArg
from ..ir.mesh import group_of
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..schedule.graph.versions import multi
from ..shape.movement import permute
from ..shape.rules import shape_of
from .shards import combined_on, on_device, one_after_another, part_of

Spans = Sequence[tuple[int, int]]


class Group(NamedTuple):
    """Devices that exchange something, of which this rank has some.

    slots    theirs in the mesh, in order
    ranks    for each rank that has some of them, in order: which ones, as [begin, end) of `slots`
    own      which of the ranks this one is
    devices  for each rank the one that takes part: the first of its own
    """

    slots: tuple[int, ...]
    ranks: tuple[tuple[int, int], ...]
    own: int
    devices: tuple[str, ...]

    @property
    def device(self) -> str:
        """The device of this rank that takes part."""
        return self.devices[self.own]

    @property
    def numbers(self) -> range:
        """Which of the group are of this rank."""
        return range(*self.ranks[self.own])

    def shards(self, value: UOp) -> list[UOp]:
        """What the devices of this rank have of a value."""
        return [value.src[value.arg.here.index(self.slots[number])] for number in self.numbers]

    def spans(self, spans: Spans) -> list[tuple[int, int]]:
        """The spans of the ranks, from those of the devices: each from the first to the last element that
        one of its devices has or wants.
        """
        found = []
        for begin, end in self.ranks:
            some = [span for span in spans[begin:end] if span[0] < span[1]] or [spans[begin]]
            found.append((min(low for low, _ in some), max(high for _, high in some)))
        return found

    def combined(self, value: UOp, op: Ops) -> UOp:
        """The terms of this rank combined, in their order."""
        parts = self.shards(value)
        return parts[0] if len(parts) == 1 else combined_on(parts, op, self.device)

    def joined(self, value: UOp, axis: int) -> UOp:
        """The parts of this rank one after another along an axis."""
        parts = self.shards(value)
        some = [part for part in parts if shape_of(part)[axis] != 0] or parts[:1]
        if len(some) == 1:
            return on_device(some[0], self.device)
        return one_after_another(some, axis, self.device)

    def copies(self, whole: UOp, mesh: MeshArg) -> dict[int, UOp]:
        """A value for each device of this rank; equal to the bit."""
        if len(self.numbers) > 1:
            whole = UOp(Ops.CONTIGUOUS, whole.dtype, (whole,))
        return {self.slots[n]: on_device(whole, mesh.devices[self.slots[n]]) for n in self.numbers}

    def divided(self, whole: UOp, axis: int, first: int, wanted: Spans, mesh: MeshArg) -> dict[int, UOp]:
        """For each device of this rank the elements of an axis that it wants.

        first   which element of the axis the first one of `whole` is
        wanted  by each of the group
        """
        found = {}
        for number in self.numbers:
            low, high = wanted[number]
            begin = low - first if low < high else 0
            # nothing of a value is still of that value: on another rank the same node has elements
            part = part_of(whole, axis, begin, begin + high - low)
            found[self.slots[number]] = on_device(part, mesh.devices[self.slots[number]])
        return found


def groups_here(arg: MultiArg, axes: tuple[int, ...]) -> list[Group]:
    """The groups along some axes of a mesh of which this rank has devices, in an order that all ranks
    have.
    """
    found: list[Group] = []
    visited: set[int] = set()
    for place in arg.here:
        if place not in visited:
            found.append(_group(arg.mesh, place, axes, world().each, world().rank))
            visited.update(found[-1].slots)
    return found


@functools.lru_cache(4096)
def _group(mesh: MeshArg, place: int, axes: tuple[int, ...], each: int, rank: int) -> Group:
    places = group_of(mesh, place, axes)
    owners = [world().owner(mesh.devices[other]) for other in places]
    starts = [n for n in range(len(owners)) if not n or owners[n] != owners[n - 1]]
    ranks = tuple(zip(starts, [*starts[1:], len(owners)], strict=True))
    if each > 1:
        _check_blocks(mesh, each)
    devices = tuple([mesh.devices[places[begin]] for begin, _ in ranks])
    return Group(places, ranks, [owners[n] for n in starts].index(rank), devices)


def _check_blocks(mesh: MeshArg, each: int) -> None:
    """A rank's devices have to be a block of the mesh: then all ranks take part in the same exchanges."""
    names, sizes = ", ".join(mesh.names), " x ".join(map(str, mesh.sizes))
    owners = [world().owner(device) for device in mesh.devices]
    if any(owners[n] != owners[n - n % each] for n in range(len(owners))):
        raise NotImplementedError(f"a mesh ({names}) in which the devices of a rank are not side by side")
    inner = 1
    for size in reversed(mesh.sizes):
        if inner >= each:
            break
        inner *= size
        if inner % each and each % inner:
            raise NotImplementedError(
                f"a mesh ({names}) of {sizes} devices where each rank has {each}: they are no block of it"
            )


def gathered(found: Mapping[int, UOp], target: MultiArg, order: Sequence[int] | None = None) -> UOp:
    """The value of which each device of this rank has one of these parts, by place."""
    parts = [found[place] for place in target.here]
    return multi(parts if order is None else [permute(part, order) for part in parts], target)

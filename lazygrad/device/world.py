"""Which devices are here: one process has them all, or ranks have some each and reach others by a transport.

A program runs in every rank alike. Tensors on one device are of the rank that makes them; of those that
several devices hold together, a rank has the parts of its own devices.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ..dtype import DType
from .registry import Device


class Request(Protocol):
    """A transfer under way."""

    def wait(self) -> None:
        """Come back when it is done."""

    def test(self) -> bool:
        """Whether it is done."""


class Transport(Protocol):
    """What brings memory from rank to rank."""

    rank: int
    size: int

    def prepare(
        self,
        kind: str,
        ranks: tuple[int, ...],
        op: str | None,
        sends: Sequence[memoryview],
        receives: Sequence[memoryview],
        dtype: DType,
    ) -> Callable[[], Request]:
        """What begins a transfer in which these ranks take part, this one among them, whenever it is called.

        kind      "all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast" or "send"
        op        "ADD", "MUL", "MAX" or "MIN": what the first two combine with
        sends     the bytes for each of the ranks, in their order; one for all where all get the same. The
                  first rank alone sends a broadcast; a "send" has something for one other rank at most
        receives  where what comes from each goes; one where it is combined or comes from one. Lengths may
                  differ and be zero
        """


@dataclass(frozen=True)
class World:
    """The processes that run a program together.

    rank, size  which of how many this one is
    local_rank  which of those on this host
    each        how many devices every rank has: with two, rank 1 has CPU:2 and CPU:3
    transport   None where nothing is sent: in one process, or where a program is only predicted
    agree       ends the job on all ranks if they are not about to do the same. It is given what, in words;
                what must be the same on all ranks; by group of ranks, what must be the same on those; and
                whether to wait until all have said so
    gather      is given a Python value; those of all ranks, in their order
    """

    rank: int = 0
    size: int = 1
    transport: Transport | None = None
    agree: Callable[[str, bytes, Mapping[tuple[int, ...], bytes], bool], None] | None = None
    local_rank: int = 0
    each: int = 1
    gather: Callable[[Any], list[Any]] | None = None

    @property
    def count(self) -> int:
        """How many devices all ranks have together."""
        return self.size * self.each

    def owner(self, device: str) -> int:
        """The rank that has a device: where each has one that of its number, as rank 1 has CPU:1."""
        if self.size == 1:
            return 0
        number = device.partition(":")[2]
        rank = int(number) // self.each if number.isdigit() else 0
        if rank >= self.size:
            raise ValueError(f"{device} is the device of rank {rank}, and there are {self.size} ranks")
        return rank

    def ordinal(self, device: str, count: int) -> int:
        """Which of the `count` devices of its kind on this host a device is.

        Several ranks have as many each, in their order, so rank 9 has CUDA:9, which may be the second of its
        host; unless the launcher shows each rank its own only.
        """
        number = int(device.partition(":")[2] or 0)
        if self.size == 1 or not self.here(device):
            return number
        own = number % self.each
        return self.local_rank * self.each + own if count > self.each else own

    def here(self, device: str) -> bool:
        """Whether a device is one of this rank's."""
        return self.owner(device) == self.rank


_world = World()


def world() -> World:
    """The processes that run this program."""
    return _world


def set_world(made: World) -> World:
    """Say which processes run this program; the world before."""
    global _world
    before, _world = _world, made
    local_positions.cache_clear()
    owners.cache_clear()
    return before


def here(device: str) -> bool:
    """Whether a device is one of this process."""
    return _world.here(device)


def owner(device: str) -> int:
    """The rank that has a device."""
    return _world.owner(device)


@functools.lru_cache(256)
def owners(devices: tuple[str, ...]) -> tuple[int, ...]:
    """The ranks that have these devices."""
    return tuple(map(_world.owner, devices))


@functools.lru_cache(256)
def local_positions(devices: tuple[str, ...]) -> tuple[int, ...]:
    """Which of these devices are here."""
    found = tuple([number for number, device in enumerate(devices) if _world.here(device)])
    if not found:
        raise ValueError(
            f"rank {_world.rank} has none of the devices {', '.join(devices)}; in a world of {_world.size} "
            "ranks a mesh has a device of each"
        )
    return found


def first_devices(count: int) -> tuple[str, ...]:
    """The first devices of the default kind."""
    kind = Device.DEFAULT.partition(":")[0]
    return tuple([Device.canonicalize(f"{kind}:{number}") for number in range(count)])

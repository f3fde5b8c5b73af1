"""Kernels on a grid of threads: what the compiler asks of who knows how work is shared out there (`gpu/`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...ir.nest import Block
from ...target import Target
from .facts import Facts
from .moves.actions import Opt
from .moves.loops import Loops


@dataclass(frozen=True)
class Prediction:
    """What is predicted of one launch.

    workgroups, threads   how many there are, and the threads of each
    shared_bytes          local memory of a workgroup
    registers             of a thread
    occupancy             the part of the threads that a multiprocessor holds at most which it holds then
    wide                  the bytes of the widest load or store
    instructions          of all warps
    cycles                how long it takes without its start
    seconds               how long it takes
    share                 what that is of the roofline: bytes over bandwidth, or operations over the peak
    bound                 which of these is longer: "bandwidth" or "arithmetic"
    known                 whether the GPU's row says so; else it is taken for a common one
    """

    workgroups: int
    threads: int
    shared_bytes: int
    registers: int
    occupancy: float
    wide: int
    instructions: float
    cycles: float
    seconds: float
    share: float
    bound: str
    known: bool

    def __str__(self) -> str:
        taken = "" if self.known else ", on a common GPU"
        return (
            f"{_counted(self.workgroups, 'workgroup')} of {_counted(self.threads, 'thread')}, "
            f"{self.shared_bytes} bytes shared, "
            f"about {self.registers} registers, occupancy {100 * self.occupancy:.0f}%; predicted "
            f"{self.seconds * 1e6:.1f} us, {100 * self.share:.0f}% of the roofline ({self.bound}){taken}"
        )


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" + "s" * (count != 1)


class Grids(NamedTuple):
    """What is asked.

    choose   the Opts for loops nobody gave Opts for
    predict  what is predicted of a kernel (`Facts`: without Opts) with Opts; None where no multiprocessor
             holds a workgroup
    guard    what only the first thread of a workgroup stores, only it computes: the nest of such a kernel
    """

    choose: Callable[[Loops, Target], list[Opt]]
    predict: Callable[[Facts, Sequence[Opt], Target], Prediction | None]
    guard: Callable[[Block], None]


#: Who knows, once it is imported.
GRIDS: list[Grids] = []


def grids() -> Grids:
    """Who knows how work is shared out on a grid."""
    if not GRIDS:
        raise NotImplementedError("nothing is there that schedules a grid of threads: import lazygrad.gpu")
    return GRIDS[0]

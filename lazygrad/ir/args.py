"""The records that ops carry in `arg`."""

from __future__ import annotations

import enum
from typing import NamedTuple

from .ops import Ops

#: The name of one device, or the names of several that hold one tensor in parts or copies.
Devices = str | tuple[str, ...]


class AxisType(enum.Enum):
    """What a range is: who walks it, and how. The value is its place in a kernel, outermost first."""

    THREAD = 0
    TILE = 1
    GLOBAL = 2
    LOCAL = 3
    WARP = 4
    LOOP = 5
    GROUP = 6
    REDUCE = 7
    UNROLL = 8
    UPCAST = 9

    def __repr__(self) -> str:
        return self.name


class ReduceArg(NamedTuple):
    """How REDUCE_AXIS combines, and over which axes of its source; SCAN has one axis."""

    op: Ops
    axes: tuple[int, ...]

    def __repr__(self) -> str:
        return f"({self.op}, {tuple(self.axes)})"


class RoutineArg(NamedTuple):
    """Which ROUTINE: one of those that `codegen/routines` writes as loops.

    name   of the routine
    shape  of the result of one example; axes before it are those of a batch
    core   how many axes of each source belong to one example
    sizes  what else the routine must know
    """

    name: str
    shape: tuple[int, ...]
    core: tuple[int, ...]
    sizes: tuple[int, ...] = ()

    def __repr__(self) -> str:
        return f"({self.name!r}, {self.shape}, {self.core}, {self.sizes})"


class MultiArg(NamedTuple):
    """How a MULTI is sharded: split along an axis over devices, in their order; axis None: a copy on each."""

    axis: int | None
    devices: tuple[str, ...]


class RangeArg(NamedTuple):
    """Which loop a RANGE is: a number unique in its kernel, and its kind."""

    id: int
    kind: AxisType

    def __repr__(self) -> str:
        return f"({self.id:03d}, {self.kind.name})"


class CheckArg(NamedTuple):
    """What a CHECK checks an index against, and where a kernel reports one that fails.

    size    of the axis; a text where it is symbolic
    number  which of its kernel's CHECKs it is, from form 2 on
    memory  the number of the buffer that a kernel's CHECKs report in (`ir/reports.py`)
    checks  how many CHECKs the kernel has
    problem what is wrong where no index is: the text of a ValueError
    """

    size: int | str
    number: int = 0
    memory: int = 0
    checks: int = 0
    problem: str = ""

    def __repr__(self) -> str:
        return f"({self.size}, {self.number})" if self.checks else f"({self.size},)"


class KernelInfo(NamedTuple):
    """What a kernel's SINK remembers from form 3 on: its displayed name, and what the documents print."""

    name: str
    local_dims: int = 0
    upcasted: int = 0
    dont_use_locals: bool = False

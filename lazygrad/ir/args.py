"""The records that ops carry in `arg`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..dtype import DType, dtypes
from .members import Member
from .ops import Ops

#: The name of one device, or the names of several that hold one tensor in parts or copies.
Devices = str | tuple[str, ...]
#: Of a STORE in a linear program: it goes past the caches.
NONTEMPORAL = "nontemporal"


class Prefetch(NamedTuple):
    """What a PREFETCH(INDEX) asks for, or a PREFETCH(buffer, RANGE, ...).

    writes  whether it will be written; else it will be read
    number  which one of its program it is
    level   into which cache: 1 or 2
    begin   bytes behind the place of the INDEX; of a buffer, where it begins in the first turns of the loops
    steps   by how many bytes each of the loops moves it
    lines   how many lines, one after the other
    """

    writes: bool
    number: int
    level: int = 2
    begin: int = 0
    steps: tuple[int, ...] = ()
    lines: int = 1


class AxisType(Member):
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


class Array(NamedTuple):
    """An array that a kernel reads or writes: its elements lie row by row."""

    dtype: DType
    shape: tuple[Any, ...]

    @property
    def size(self) -> int:
        return math.prod(self.shape)


class KernelRecord:
    """What a PROGRAM does, as data. The compiler asks this record, and never which kind it is.

    kind         who writes it: its row in `codegen/direct_kernels.py`
    outputs      its results, where these do not follow from its sources
    inputs       what it reads, likewise
    begins       its results that go on with the values of a source: the last sources, one for each
    is_stored    whether it is stored once, in order, for everybody who reads it
    is_gathered  whether what is read at computed places is read where it is stored
    is_unique    whether equal ones are one object, which stands for more than its structure says
    is_free      whether several results are right: signs of vectors, or which of equal pivots is taken
    has_body     whether it runs kernels of its own, which are planned when its kernel is built
    """

    kind: str
    outputs: tuple[Array, ...]
    inputs: tuple[Array, ...]
    begins: tuple[int, ...] = ()
    is_stored = is_gathered = True
    is_unique = is_free = has_body = False

    def makes(self, given: Sequence[Array]) -> tuple[Array, ...]:
        """Its results, for sources of these dtypes and shapes (an Array each)."""
        return self.outputs

    def problem(self, given: Sequence[DType]) -> str | None:
        """Why it cannot have sources of these dtypes; in a kernel's AST its inputs alone are sources."""
        most = len(self.inputs) + len(self.begins)
        if len(given) not in (len(self.inputs), most):
            return f"it takes {most} sources, not {len(given)}"
        for array, dtype in zip(self.inputs, given, strict=False):
            if array.dtype is not dtype:
                return f"it reads {array.dtype}, not {dtype}"
        return None

    def batched(self, size: Any) -> KernelRecord:
        """The same for so many examples, along a new first axis of each array."""
        if self.is_unique:
            raise NotImplementedError(f"vmap over a {self.kind} is not implemented yet")
        return self


#: In a kernel's AST the result that is the memory which a program works in.
WORKING = -1


class ProgramArg(NamedTuple):
    """Which kernel a PROGRAM is a result of, and which of its results.

    elements  of working memory: how many there are
    """

    kernel: Any
    output: int = 0
    elements: int = 0

    def __repr__(self) -> str:
        return f"({self.kernel}, {self.output})"


@dataclass(frozen=True)
class SortRecord(KernelRecord):
    """The order of unsigned keys along their last axis."""

    kind = "sort"
    is_stored = is_gathered = False

    def makes(self, given: Sequence[Array]) -> tuple[Array, ...]:
        return (Array(dtypes.int32, given[0].shape),)

    def problem(self, given: Sequence[DType]) -> str | None:
        if len(given) == 1 and dtypes.is_unsigned(given[0]):
            return None
        return f"it sorts unsigned integers, not {given[0] if given else 'nothing'}"


SORT = ProgramArg(SortRecord())


@dataclass(frozen=True)
class RoutineRecord(KernelRecord):
    """One of the routines that `direct/routines` writes as loops: of values of one float dtype, and places.

    name   of the routine
    shape  of the result of one example; axes before it are those of a batch
    core   how many axes of each source belong to one example
    sizes  what else the routine must know
    """

    name: str
    shape: tuple[int, ...]
    core: tuple[int, ...]
    sizes: tuple[int, ...] = ()
    kind = "routine"
    is_free = True

    def makes(self, given: Sequence[Array]) -> tuple[Array, ...]:
        batch = given[0].shape[: len(given[0].shape) - self.core[0]]
        return (Array(given[0].dtype, (*batch, *self.shape)),)

    def problem(self, given: Sequence[DType]) -> str | None:
        if len(given) != len(self.core):
            return f"{self.name} takes {len(self.core)} sources, not {len(given)}"
        wrong = next((dtype for dtype in given if dtype not in (given[0], dtypes.int32)), None)
        return None if wrong is None else f"its dtype is that of its sources, {wrong}, not {given[0]}"


class Rows(NamedTuple):
    """Where the rows of a matrix are in a routine's memory: each of `size` numbers, `stride` behind the one
    before; `columns` of them are worked on.

    columns  a multiple of `group`, a power of two: what is behind `size` is 0
    stride   more than that where rows would lie on the same lines of a cache
    """

    size: int
    columns: int
    stride: int
    group: int

    @staticmethod
    def of(size: int) -> Rows:
        group = next((g for least, g in ((64, 32), (9, 16), (5, 8), (2, 4)) if size >= least), 1)
        columns = -(-size // group) * group
        return Rows(size, columns, columns + (16 if columns >= 128 else 0), group)


class Filled(NamedTuple):
    """Where the threads of a workgroup have filled a STAGE, in a list.

    copies  that are kept; None: one
    later   whether what was filled is for later turns of the loop
    """

    copies: int | None
    later: bool


class MeshArg(NamedTuple):
    """Devices in a grid: their names in row-major order, and the size and the name of each axis."""

    devices: tuple[str, ...]
    sizes: tuple[int, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, devices: tuple[str, ...]) -> MeshArg:
        """Devices in a row."""
        return cls(devices, (len(devices),), ("devices",))


#: How a value lies along one axis of a mesh: which of its own axes is split there; None: each has a copy; an
#: op: each has a term, and what they are when combined by the op is pending.
Place = int | None | Ops


class MultiArg(NamedTuple):
    """How a MULTI lies on a mesh.

    mesh    the devices
    placements  for each axis of the mesh, what it does to the value
    ends    for each split axis of the value, in order: the axis, and where its parts end
    here    the places in `mesh.devices` of the devices of this process: the sources are their parts
    """

    mesh: MeshArg
    placements: tuple[Place, ...]
    ends: tuple[tuple[int, tuple[int, ...]], ...]
    here: tuple[int, ...]

    @property
    def devices(self) -> tuple[str, ...]:
        """All devices of the mesh."""
        return self.mesh.devices

    @property
    def local(self) -> tuple[str, ...]:
        """The devices of the parts that are here."""
        return tuple([self.mesh.devices[number] for number in self.here])

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes of the value that are split."""
        return tuple([axis for axis, _ in self.ends])

    @property
    def axis(self) -> int | None:
        """The axis that is split where there is one; None for copies. Of several, the first."""
        return self.ends[0][0] if self.ends else None

    @property
    def is_pending(self) -> bool:
        """Whether the devices have terms that are to be combined."""
        return any(isinstance(place, Ops) for place in self.placements)


class CollectiveArg(NamedTuple):
    """What a device sends to others and receives from them, in elements of memory.

    kind      "all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast" or "send": an all_to_all
              in which each device sends to one other at most and receives from one at most
    op        what combines, of the first two
    group     the devices that take part, in order; the first one of a broadcast is the one that sends
    position  which of them this one is
    sends     the elements [begin, end) of its source that go to each of the group; one for all of them where
              all get the same; none from a device that a broadcast goes to
    receives  how many elements come from each, one after another; one where they are combined or come from
              one; none for the device from which a broadcast comes
    shape     of the result
    spans     what all of the group have and want, by which those of different collectives differ on all ranks
              or on none
    """

    kind: str
    op: Ops | None
    group: tuple[str, ...]
    position: int
    sends: tuple[tuple[int, int], ...]
    receives: tuple[int, ...]
    shape: tuple[int, ...]
    spans: tuple[tuple[tuple[int, int], ...], ...] = ()


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
    """What a kernel's SINK remembers from form 3 on: its displayed name, what the documents print, and how
    many stores each of its nests of loops has, if there are several.
    """

    name: str
    local_dims: int = 0
    upcasted: int = 0
    dont_use_locals: bool = False
    nests: tuple[int, ...] = ()

    def __repr__(self) -> str:
        shown = self._fields if self.nests else self._fields[:-1]
        return f"KernelInfo({', '.join([f'{name}={getattr(self, name)!r}' for name in shown])})"

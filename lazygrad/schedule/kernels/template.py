"""A template: the kernels of a structure, which name their memory by reference, so that it can be bound to
other buffers. A reference (Ref) is

    ("leaf", n)      node n of the walk      ("view", r, (size, byte offset), dtype)   a part of what r names
    ("out", k, o)    output o of kernel k    ("bind", n)   the n-th bound Variable in sizes of the walk
    ("value", b)     a bound Variable of the plan's own
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...dtype import DType
from ...ir.uop import UOp
from ..graph.reports import Reports

Ref = tuple[Any, ...]
#: An output of a kernel: the kernel's number, and which of its outputs.
Place = tuple[int, int]
#: For so many different lines a kernel of a plan keeps memory for reports.
MAX_REPORTS = 64


@dataclass
class Output:
    """Where one STORE of a kernel goes: fresh memory (into is None), or the next version of memory that is
    there.

    size    of memory that is enough for whatever Variables are bound to
    length  how many elements are stored, where that depends on Variables
    """

    into: Ref | None
    device: str
    size: int
    dtype: DType
    length: UOp | None = None


class Boundary(NamedTuple):
    """Why a kernel stores an output: the rule of placement, how many kernels read it again, and the user's
    call that made it.
    """

    reason: str
    readers: int
    origin: Any


class StagedValue(NamedTuple):
    """A value of which a kernel keeps a row, of so many bytes, and the user's call that made it."""

    nbytes: int
    origin: Any


@dataclass
class KernelTemplate:
    """A kernel whose buffers are references. `after`: kernels that must run before it, beyond those it
    reads from. `boundaries`: one for each output. `staged`: what it computes once for several loops. `sites`:
    for each of its CHECKs the node of the walk that says where the index comes from.
    """

    ast: UOp
    outputs: list[Output]
    inputs: list[Ref]
    binds: list[Ref]
    metadata: tuple[Any, ...]
    after: list[int] = field(default_factory=list)
    after_readers_of: list[int] = field(default_factory=list)
    boundaries: tuple[Boundary, ...] = ()
    staged: tuple[StagedValue, ...] = ()
    sites: tuple[int | None, ...] = ()
    known_reports: dict[tuple[Any, ...], Reports] = field(default_factory=dict)

    def reports_of(self, sites: tuple[Any, ...]) -> Reports:
        """Where the CHECKs report for these sites: the same for the same lines of the user."""
        found = self.known_reports.get(sites)
        if found is None:
            if len(self.known_reports) >= MAX_REPORTS:
                self.known_reports.clear()
            found = self.known_reports[sites] = Reports(sites)
        return found


class Rematerialized(NamedTuple):
    """What MEMORY_BUDGET did to a plan.

    budget         bytes, for each device
    before, after  bytes that the plan needs
    again          how many kernels run again
    added          the operations of these, beside those of all others (`operations`)
    largest        where the budget is not kept: (bytes, the user's call) of the largest values
    """

    budget: int
    before: int
    after: int
    again: int
    added: int
    operations: int
    largest: tuple[tuple[int, Any], ...] = ()


@dataclass(frozen=True)
class Template:
    """The kernels of a structure in an order in which they may run.

    results  (node of the walk, kernel, output): what nodes of the walk become
    inner    the outputs that only these kernels can reach, and how many of them touch each
    rematerialized  what a budget of memory did, where there is one and the plan needs more
    """

    kernels: list[KernelTemplate]
    results: list[tuple[int, int, int]]
    inner: dict[Place, int] = field(default_factory=dict)
    rematerialized: Rematerialized | None = None

"""A template: a plan as a graph of kernels and the memory between them, to be bound to any buffers.

A kernel names what it reads and writes: memory that the plan is given (Leaf), memory that a kernel has made
or written (Output), or a Part of these. Nothing names a kernel: each waits for whoever makes the Outputs that
it names. So kernels change their order, and several become one that has their Outputs, without a change of
others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

from ...dtype import DType
from ...ir.ops import Ops
from ...ir.spec import SpecError
from ...ir.uop import UOp
from ..graph.reports import Reports

#: For so many different lines a kernel of a plan keeps memory for reports.
MAX_REPORTS = 64


@dataclass(frozen=True, slots=True)
class Leaf:
    """What the plan is given: node `number` of the walk, which is memory, or a bound Variable."""

    number: int


@dataclass(frozen=True, slots=True)
class BoundSize:
    """The bound Variable that is number `number` of those in sizes of the walk."""

    number: int


@dataclass(frozen=True, slots=True)
class Part:
    """`size` elements of other memory, from a byte on."""

    of: Memory
    size: int
    offset: int
    dtype: DType


class Boundary(NamedTuple):
    """Why a kernel stores an output: the rule of placement, how many kernels read it again, and the user's
    call that made it.
    """

    reason: str
    readers: int
    origin: Any


@dataclass(eq=False, slots=True)
class Output:
    """What a STORE of a kernel makes: fresh memory (into is None), or the next version of memory that is
    there. No other is equal to it.

    size    of memory that is enough for whatever Variables are bound to
    length  how many elements are stored, where that depends on Variables
    boundary  why it is stored; None of what no graph asks for
    root    the memory itself: the version that was there first
    """

    into: Memory | None
    device: str
    size: int
    dtype: DType
    length: UOp | None = None
    boundary: Boundary | None = None
    root: Leaf | Output = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.root = self if self.into is None else root_of(self.into)

    @property
    def nbytes(self) -> int:
        """The bytes of its memory."""
        return self.size * self.dtype.itemsize


#: What a kernel reads, or goes on to write.
Memory = Leaf | Output | Part
#: What a Variable of a kernel is bound to: what the walk binds, or a number of the plan's own.
Binding = Leaf | BoundSize | UOp


def version_of(memory: Memory) -> Leaf | Output:
    """The version of memory that this is, or that it is a part of."""
    while isinstance(memory, Part):
        memory = memory.of
    return memory


def root_of(memory: Memory) -> Leaf | Output:
    """The memory that this is a version of, or a part of one."""
    while isinstance(memory, Part):
        memory = memory.of
    return memory.root if isinstance(memory, Output) else memory


def replacement(output: Output, others: Mapping[Output, Output]) -> Output:
    """The Output in whose place another one is, which may be in the place of a third."""
    while output in others:
        output = others[output]
    return output


def substituted(memory: Memory, others: Mapping[Output, Output]) -> Memory:
    """The memory with Outputs in the places of others."""
    if isinstance(memory, Part):
        return replace(memory, of=substituted(memory.of, others))
    return replacement(memory, others) if isinstance(memory, Output) else memory


class StagedValue(NamedTuple):
    """A value of which a kernel keeps a row, of so many bytes, and the user's call that made it."""

    nbytes: int
    origin: Any


@dataclass(eq=False)
class KernelTemplate:
    """A kernel, as a node of a plan.

    after   what must be made before it runs, beyond what it reads and goes on to write
    staged  what it computes once for several loops
    sites   for each of its CHECKs the node of the walk that says where the index comes from
    """

    ast: UOp
    outputs: list[Output]
    inputs: list[Memory]
    binds: list[Binding]
    metadata: tuple[Any, ...]
    after: list[Output] = field(default_factory=list)
    after_readers_of: list[int] = field(default_factory=list)
    staged: tuple[StagedValue, ...] = ()
    sites: tuple[int | None, ...] = ()
    known_reports: dict[tuple[Any, ...], Reports] = field(default_factory=dict)

    @property
    def boundaries(self) -> tuple[Boundary, ...]:
        """Why it stores what a graph asks for."""
        return tuple([output.boundary for output in self.outputs if output.boundary is not None])

    @property
    def overwrites(self) -> list[Memory]:
        """The memory that was there before, which it writes."""
        return [output.into for output in self.outputs if output.into is not None]

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

    results  what nodes of the walk become, by their numbers
    inner    the outputs that only these kernels can reach, and how many of them touch each
    rematerialized  what a budget of memory did, where there is one and the plan needs more
    """

    kernels: list[KernelTemplate]
    results: list[tuple[int, Output]]
    inner: dict[Output, int] = field(default_factory=dict)
    rematerialized: Rematerialized | None = None

    @cached_property
    def maker_of(self) -> dict[Output, int]:
        """Output → the kernel that makes it, by its number in the order."""
        return {output: number for number, kernel in enumerate(self.kernels) for output in kernel.outputs}

    @cached_property
    def before(self) -> list[list[int]]:
        """For each kernel those that have to run before it; of a COLLECTIVE first the one that is sent before
        it.
        """
        found = []
        for kernel in self.kernels:
            read = kernel.inputs[::-1] if kernel.ast.op is Ops.COLLECTIVE else kernel.inputs
            versions = map(version_of, (*kernel.overwrites, *read))
            named = [self.maker_of[made] for made in versions if isinstance(made, Output)]
            found.append(list(dict.fromkeys([*named, *sorted(self.maker_of[made] for made in kernel.after)])))
        return found

    @property
    def sends(self) -> bool:
        """Whether ranks send each other something."""
        return any(kernel.ast.op is Ops.COLLECTIVE for kernel in self.kernels)

    def touching(self) -> dict[Output, set[int]]:
        """Fresh outputs that no node of the graph becomes → the kernels that touch them.

        When all of these have run, nobody can ask for the memory any more.
        """
        found: dict[Output, set[int]] = {}
        for number, kernel in enumerate(self.kernels):
            for memory in (*kernel.outputs, *kernel.inputs):
                root = root_of(memory)
                if isinstance(root, Output):
                    found.setdefault(root, set()).add(number)
        for _, output in self.results:
            if isinstance(output.root, Output):
                found.pop(output.root, None)
        return found

    def depth_first(self, starts: Iterable[int]) -> list[int]:
        """All kernels: these first, and each behind what it needs, in the order in which it names that."""
        done: dict[int, None] = {}
        for start in (*starts, *range(len(self.kernels))):
            todo = [start]
            while todo:
                kernel = todo[-1]
                waiting = [] if kernel in done else [n for n in self.before[kernel] if n not in done]
                if waiting:
                    todo += reversed(waiting)
                else:
                    done[todo.pop()] = None
        return list(done)

    def ordered(self, order: Iterable[int]) -> Template:
        """The same with its kernels in another order."""
        return replace(self, kernels=[self.kernels[number] for number in order])


def verify_order(template: Template, pass_name: str) -> None:
    """Raise SpecError, naming the kernel and the pass, unless each kernel comes after what it needs."""
    made: set[Output] = set()
    for number, kernel in enumerate(template.kernels):
        needed = map(version_of, (*kernel.inputs, *kernel.overwrites, *kernel.after))
        if any(isinstance(version, Output) and version not in made for version in needed):
            raise SpecError(f"after {pass_name} (plan): kernel {number} needs what is not made before it")
        made.update(kernel.outputs)
    if not made.issuperset(output for _, output in template.results):
        raise SpecError(f"after {pass_name} (plan): nothing makes a result")

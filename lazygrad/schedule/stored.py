"""Plans on disk: what one process has planned, others look up.

The key is the structure and the numbers under which a plan is kept in memory (kernelize.py), as a text that
is the same in every process, with lazygrad's source, the flags and the devices. Kept is the template: the
kernels' ASTs, and for their memory the numbers of what makes it. The user's calls are named by their place in
the walk, so they are those of the graph that is asked for, with its lines. Entries are signed, as programs
are; one that does not fit is as if there were none.
"""

from __future__ import annotations

import hashlib
from typing import Any

from ..codegen.graph_rows import dtype_of_row, dtype_row, graph_of, graph_rows
from ..codegen.own_source import LEVEL, device_text, own_source
from ..config import CACHELEVEL, CHECK, ContextVar
from ..device import CompileError, Device, DeviceError
from ..ir.ops import TRANSFERS
from ..ir.rewrite import watched
from ..ir.uop import UOp
from ..ir.walks import device_of
from ..runtime import diskcache_get, diskcache_put
from ..structure import Unlasting, digest, lasting_text
from .graph.requested import Request
from .kernels.template import (
    Binding,
    Boundary,
    BoundSize,
    KernelTemplate,
    Leaf,
    Memory,
    Output,
    Part,
    Rematerialized,
    StagedValue,
    Template,
)
from .plan import pass_observers

TABLE = "plans"


class StoredPlan:
    """The place on disk of the plan of one structure.

    key      what is planned, the same in every process
    origins  the user's calls that the walk's nodes come from, in its order
    """

    def __init__(self, key: bytes, origins: list[Any]) -> None:
        self._key, self._origins = key, origins

    def load(self) -> Template | None:
        """What another process left."""
        record = diskcache_get(TABLE, self._key, LEVEL)
        if record is None:
            return None
        try:
            return _Reader(record, self._origins).template()
        except (KeyError, IndexError, TypeError, ValueError):  # of another layout
            return None

    def store(self, template: Template) -> None:
        """Leave a plan for other processes, if it can be said without this one."""
        try:
            diskcache_put(TABLE, self._key, _Writer(self._origins).form(template), LEVEL)
        except Unlasting:
            return


def stored_plan(asked: Request, key: tuple[Any, ...], numbers: tuple[Any, ...]) -> StoredPlan | None:
    """Where a plan is on disk; None where none is kept: stages are looked at, or a device does not say what
    its code depends on.

    key, numbers  what `Structure.plan_key` gives: last are the user's calls that its nodes come from
    """
    if CACHELEVEL.value < LEVEL or CHECK.value or pass_observers or watched():
        return None
    *rows, calls = key
    places = {device_of(node) for node in asked.order} | {Device.DEFAULT}
    try:
        devices = [device_text(name) for name in _names(places) if Device.runs_kernels(name)]
        text = lasting_text((tuple(rows), numbers, _first_equal(calls), _sites(asked), asked.grown))
    except (Unlasting, DeviceError, CompileError):
        return None
    flags = [(flag.name, flag.value) for flag in ContextVar.of_code]
    parts = (own_source(), Device.DEFAULT, repr(flags), *devices, text)
    return StoredPlan(hashlib.blake2b("\n".join(parts).encode()).digest(), list(calls))


def _names(places: set[Any]) -> list[str]:
    names = {name for place in places for name in (place if isinstance(place, tuple) else (place,)) if name}
    return sorted(names)


def _first_equal(values: tuple[Any, ...]) -> tuple[int, ...]:
    """Of each value the place of the first that is equal; -1 of None, which is no call."""
    first: dict[Any, int] = {None: -1}
    return tuple([first.setdefault(value, place) for place, value in enumerate(values)])


def _sites(asked: Request) -> tuple[int, ...]:
    """Which checked indices of the walk come from the same place."""
    return _first_equal(tuple([id(node.facts["site"]) for node in asked.order if "site" in node.facts]))


# *** writing


class _Writer:
    """A template as plain data."""

    def __init__(self, origins: list[Any]) -> None:
        self._index: dict[Any, int] = {}
        for place, origin in enumerate(origins):
            self._index.setdefault(origin, place)
        self._roots: list[UOp] = []
        self._numbers: dict[Output, tuple[int, int]] = {}

    def form(self, template: Template) -> dict[str, Any]:
        for number, kernel in enumerate(template.kernels):
            self._numbers.update({output: (number, place) for place, output in enumerate(kernel.outputs)})
        kernels = [self._kernel(kernel) for kernel in template.kernels]
        rows, numbers = graph_rows(self._roots)
        return {
            "graph": rows,
            "roots": numbers,
            "kernels": kernels,
            "results": [[node, *self._numbers[output]] for node, output in template.results],
            "inner": [[*self._numbers[output], users] for output, users in template.inner.items()],
            "rematerialized": self._rematerialized(template.rematerialized),
        }

    def _rematerialized(self, spared: Rematerialized | None) -> list[Any] | None:
        if spared is None:
            return None
        *numbers, largest = spared
        return [*numbers, [[nbytes, self._origin(origin)] for nbytes, origin in largest]]

    def _kernel(self, kernel: KernelTemplate) -> list[Any]:
        return [
            self._root(kernel.ast),
            None if kernel.ast.op in TRANSFERS else digest(kernel.ast),
            [self._output(output) for output in kernel.outputs],
            [self._memory(memory) for memory in kernel.inputs],
            [self._binding(bind) for bind in kernel.binds],
            [self._origin(origin) for origin in kernel.metadata],
            [self._numbers[output] for output in kernel.after],
            kernel.after_readers_of,
            [[row.nbytes, self._origin(row.origin)] for row in kernel.staged],
            kernel.sites,
        ]

    def _output(self, output: Output) -> list[Any]:
        into = None if output.into is None else self._memory(output.into)
        length = None if output.length is None else self._root(output.length)
        end = output.boundary
        why = None if end is None else [end.reason, end.readers, self._origin(end.origin)]
        return [into, output.device, output.size, dtype_row(output.dtype), length, why]

    def _memory(self, memory: Memory) -> list[Any]:
        if isinstance(memory, Part):
            if type(memory.size) is not int or type(memory.offset) is not int:
                raise Unlasting("a part of memory whose place depends on Variables")
            return [self._memory(memory.of), memory.size, memory.offset, dtype_row(memory.dtype)]
        return [memory.number] if isinstance(memory, Leaf) else list(self._numbers[memory])

    def _binding(self, bind: Binding) -> list[Any]:
        if isinstance(bind, UOp):
            return ["value", self._root(bind)]
        return ["walk" if isinstance(bind, Leaf) else "size", bind.number]

    def _root(self, node: UOp) -> int:
        self._roots.append(node)
        return len(self._roots) - 1

    def _origin(self, origin: Any) -> int | None:
        if origin is None:
            return None
        place = self._index.get(origin)
        if place is None:
            raise Unlasting("a user's call that is not in the graph")
        return place


# *** reading


class _Reader:
    """A template out of plain data, for a walk with these origins."""

    def __init__(self, form: dict[str, Any], origins: list[Any]) -> None:
        nodes = graph_of(form["graph"])
        self._roots = [nodes[number] for number in form["roots"]]
        self._form, self._origins = form, origins
        self._kernels: list[KernelTemplate] = []

    def template(self) -> Template:
        for row in self._form["kernels"]:
            self._kernels.append(self._kernel(*row))
        return Template(
            self._kernels,
            [(node, self._made(*place)) for node, *place in self._form["results"]],
            {self._made(*place): users for *place, users in self._form["inner"]},
            self._rematerialized(self._form["rematerialized"]),
        )

    def _rematerialized(self, row: list[Any] | None) -> Rematerialized | None:
        if row is None:
            return None
        made = Rematerialized(*row)
        return made._replace(largest=tuple([(size, self._origin(place)) for size, place in made.largest]))

    def _kernel(
        self,
        number: int,
        known_digest: str | None,
        outputs: list[Any],
        inputs: list[Any],
        binds: list[Any],
        metadata: list[Any],
        after: list[list[int]],
        after_readers_of: list[int],
        kept: list[Any],
        sites: list[int | None],
    ) -> KernelTemplate:
        ast = self._roots[number]
        if known_digest is not None:
            ast.facts["digest"] = known_digest
        return KernelTemplate(
            ast,
            [self._output(*output) for output in outputs],
            [self._memory(*row) for row in inputs],
            [self._binding(*row) for row in binds],
            tuple([self._origin(place) for place in metadata]),
            [self._made(*place) for place in after],
            after_readers_of,
            tuple([StagedValue(nbytes, self._origin(place)) for nbytes, place in kept]),
            tuple(sites),
        )

    def _output(
        self, into: Any, device: str, size: int, dtype: Any, length: int | None, why: list[Any] | None
    ) -> Output:
        written = None if into is None else self._memory(*into)
        symbolic = None if length is None else self._roots[length]
        boundary = None if why is None else Boundary(why[0], why[1], self._origin(why[2]))
        return Output(written, device, size, dtype_of_row(dtype), symbolic, boundary)

    def _made(self, kernel: int, output: int) -> Output:
        return self._kernels[kernel].outputs[output]

    def _memory(self, first: Any, *rest: Any) -> Memory:
        if len(rest) == 3:
            size, offset, dtype = rest
            return Part(self._memory(*first), size, offset, dtype_of_row(dtype))
        return self._made(first, *rest) if rest else Leaf(first)

    def _binding(self, kind: str, number: int) -> Binding:
        if kind == "value":
            node: UOp = self._roots[number]
            return node
        return Leaf(number) if kind == "walk" else BoundSize(number)

    def _origin(self, place: int | None) -> Any:
        return None if place is None else self._origins[place]

"""What a kernel does that its user wrote, as data: the record of its PROGRAM nodes.

Its `steps` are loops, branches, loads and stores in the order in which they are done, on DEFINE_GLOBALs that
are numbered outputs first; indices are index arithmetic, as in form 3. Or it is the text of a program.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..dtype import dtypes
from .args import Array, AxisType, KernelRecord, RangeArg
from .index import rebuild
from .ops import Ops
from .rewrite import transform
from .uop import UOp

#: So many turns a loop has at most that ends by a BREAK alone (a `while`): no kernel runs for ever.
MOST_TURNS = (1 << 31) - 1


class SourceText(NamedTuple):
    """A program as its user wrote it.

    language  "c", "llvm", "opencl", "cuda" or "metal"
    function  the name of its function
    grid      how many workgroups are launched along x, y and z; on a processor how many calls there are
    group     the threads of each workgroup
    """

    language: str
    function: str
    source: str
    grid: tuple[int, ...] | None = None
    group: tuple[int, ...] | None = None


@dataclass(frozen=True, eq=False)
class OwnKernel(KernelRecord):
    """A kernel of a user's own. Equal ones are one object: `OwnKernel.of`.

    outputs  what it makes, one PROGRAM for each
    inputs   what it reads: the first sources of its nodes
    begun    for each output, whether it begins with the values of a further source; else with anything
    steps    SINK of RANGE, ENDRANGE, IF, ENDIF, LOAD, STORE, BARRIER and BREAK nodes in order; None of a text
    texts    the program in each language that it was written in
    """

    name: str
    outputs: tuple[Array, ...]
    inputs: tuple[Array, ...]
    begun: tuple[bool, ...]
    steps: UOp | None = None
    texts: tuple[SourceText, ...] = ()
    kind = "custom"
    is_gathered = False
    is_unique = True

    @classmethod
    def of(cls, *fields: Any) -> OwnKernel:
        """The one object with these fields."""
        reference = _known.get(fields)
        found = None if reference is None else reference()
        if found is None:
            if len(_known) >= MOST_KNOWN:
                for key in [key for key, each in _known.items() if each() is None]:
                    del _known[key]
            found = cls(*fields)
            _known[fields] = weakref.ref(found)
        return found

    def __repr__(self) -> str:
        return f"<{self.name}: {len(self.inputs)} inputs, {len(self.outputs)} outputs>"

    @property
    def begins(self) -> tuple[int, ...]:  # type: ignore[override]
        return tuple([number for number, begun in enumerate(self.begun) if begun])

    def batched(self, size: Any) -> OwnKernel:
        """One more axis of its grid."""
        if not isinstance(size, int):
            raise NotImplementedError(
                "vmap of a symbolic size over a kernel of one's own is not implemented yet"
            )
        if self.steps is None:
            raise NotImplementedError(f"vmap over kernel {self.name}, which is a text")
        ids = [step.arg.id for step in self.steps.src if step.op is Ops.RANGE]
        number = RangeArg(min([0, *ids]) - 1, AxisType.GLOBAL)
        place = UOp(Ops.RANGE, dtypes.index, (UOp.const(dtypes.index, size),), number)

        def moved(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
            if node.op is not Ops.INDEX or node.src[0].op is not Ops.DEFINE_GLOBAL:
                return None
            memory = node.src[0]
            count = arrays[memory.arg].size
            wide = UOp(Ops.DEFINE_GLOBAL, memory.dtype.base.ptr(count * size), (), memory.arg)
            return UOp(Ops.INDEX, wide.dtype, (wide, src[1] + place * count, *src[2:]))

        arrays = (*self.outputs, *self.inputs)
        steps = transform(self.steps, moved, None, rebuild=rebuild).src
        sink = UOp.sink(place, *steps, UOp(Ops.ENDRANGE, dtypes.void, (place,)))
        outputs, inputs = (
            tuple([Array(array.dtype, (size, *array.shape)) for array in some])
            for some in (self.outputs, self.inputs)
        )
        return OwnKernel.of(self.name, outputs, inputs, self.begun, sink, ())


def unguarded(steps: Iterable[UOp]) -> set[UOp]:
    """What steps need whatever conditions say: not what only one side of a WHERE needs, nor what is asked
    beside a condition on indices (`i > 0 and x[i - 1] > 0`).
    """
    stack = [source for step in steps if step.op is not Ops.LOAD for source in step.src]
    visited: set[UOp] = set()
    while stack:
        node = stack.pop()
        if node in visited:
            continue
        visited.add(node)
        sources = node.src
        if node.op is Ops.WHERE:
            sources = node.src[:1]
        elif node.op in (Ops.AND, Ops.OR) and node.dtype is dtypes.bool:
            known = [s for s in node.src if not any(n.op is Ops.LOAD for n in s.toposort())]
            sources = tuple(known) if known else node.src
        stack += sources
    return visited


#: From so many kernels on, the entries of those that are gone are taken out.
MOST_KNOWN = 256
_known: dict[tuple[Any, ...], weakref.ref[OwnKernel]] = {}

"""What a kernel does that its user wrote, as data: the argument of a CUSTOM node.

Its `steps` are loops, branches, loads and stores in the order in which they are done, on DEFINE_GLOBALs that
are numbered outputs first; indices are index arithmetic, as in form 3. Or it is the text of a program.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..dtype import DType, dtypes
from .args import AxisType, RangeArg
from .index import rebuild
from .ops import Ops
from .rewrite import transform
from .uop import UOp

#: So many turns a loop has at most that ends by a BREAK alone (a `while`): no kernel runs for ever.
MOST_TURNS = (1 << 31) - 1


class Array(NamedTuple):
    """An array that a kernel reads or writes: its elements lie row by row."""

    dtype: DType
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        return math.prod(self.shape)


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
class OwnKernel:
    """A kernel of a user's own. Equal ones are one object: `OwnKernel.of`.

    outputs  what it makes, one CUSTOM node for each
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


def many(kernel: OwnKernel, size: int) -> OwnKernel:
    """The same kernel on so many sets of arrays, along a new first axis of each, one more of its grid."""
    if kernel.steps is None:
        raise NotImplementedError(f"vmap over kernel {kernel.name}, which is a text")
    ids = [step.arg.id for step in kernel.steps.src if step.op is Ops.RANGE]
    number = RangeArg(min([0, *ids]) - 1, AxisType.GLOBAL)
    place = UOp(Ops.RANGE, dtypes.index, (UOp.const(dtypes.index, size),), number)

    def moved(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
        if node.op is not Ops.INDEX or node.src[0].op is not Ops.DEFINE_GLOBAL:
            return None
        memory = node.src[0]
        count = arrays[memory.arg].size
        wide = UOp(Ops.DEFINE_GLOBAL, memory.dtype.base.ptr(count * size), (), memory.arg)
        return UOp(Ops.INDEX, wide.dtype, (wide, src[1] + place * count, *src[2:]))

    arrays = (*kernel.outputs, *kernel.inputs)
    steps = transform(kernel.steps, moved, None, rebuild=rebuild).src
    sink = UOp.sink(place, *steps, UOp(Ops.ENDRANGE, dtypes.void, (place,)))
    outputs, inputs = (
        tuple([Array(array.dtype, (size, *array.shape)) for array in some])
        for some in (kernel.outputs, kernel.inputs)
    )
    return OwnKernel.of(kernel.name, outputs, inputs, kernel.begun, sink, ())


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


class CustomArg(NamedTuple):
    """Which kernel a CUSTOM node is the result of, and which of its outputs."""

    kernel: OwnKernel
    output: int

    def __repr__(self) -> str:
        return f"({self.kernel.name}, {self.output})"

"""Which kernels of a plan may run a second time, and what that costs.

A kernel may run again where it gives the same values again. It is only asked of kernels that write nothing
but fresh memory, which no other kernel writes; so the second run has memory of its own, and what remains is
that it reads what the first run read. Each memory that it reads is one of

- memory that was there before the plan (a leaf), or that the plan made, and
- is written by some kernels of the plan, in place, or by none.

The order of the kernels is one in which they may run, so the first run reads the contents that are meant.
Until the next kernel that writes such memory they are the same: before it, the second run reads them too.
Leaves are different memory, except for parts of buffers and what is planned but has not run: those may be
parts of any other leaf.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any

from ...ir.ops import DIRECT, ELEMENTWISE, OPS, TRANSFERS, Ops
from ...ir.uop import UOp
from ...ir.walks import has_op, of_op
from ...shape.rules import shape_of
from ...shape.sizes import prod
from ...target import Target
from ..kernels.template import KernelTemplate, Place, Ref

#: A memory: ("leaf", n) of the walk, or ("out", kernel, output) of the plan.
Root = tuple[Any, ...]
#: Kernels of these are left alone: copies between devices, loops, what a user wrote, and what is a program of
#: its own.
_NOT_AGAIN = frozenset((*TRANSFERS, *DIRECT, Ops.CHECK))


class MemoryOf:
    """The memory that the references of a plan's kernels name.

    leaves  leaves that may be parts of other leaves' memory
    places  output → its memory
    writes  memory → the kernels that write it in place
    """

    def __init__(self, kernels: Sequence[KernelTemplate], parts: Iterable[int]) -> None:
        self._kernels = kernels
        self.leaves: frozenset[Root] = frozenset(("leaf", number) for number in parts)
        self.writes: dict[Root, set[int]] = {}
        for number, kernel in enumerate(kernels):
            for output in kernel.outputs:
                if output.into is not None:
                    self.writes.setdefault(self.root(output.into), set()).add(number)

    def of(self, kernels: Sequence[KernelTemplate]) -> MemoryOf:
        """The same of a list that begins with the same kernels; those behind write nothing in place."""
        made = copy.copy(self)
        made._kernels = kernels
        return made

    def root(self, reference: Ref) -> Root:
        """The memory that a reference names, or names a part of."""
        while True:
            if reference[0] == "view":
                reference = reference[1]
            elif reference[0] == "out":
                into = self._kernels[reference[1]].outputs[reference[2]].into
                if into is None:
                    return ("out", reference[1], reference[2])
                reference = into
            else:
                return ("leaf", reference[1])

    def made(self, reference: Ref) -> Place | None:
        """The output of the plan whose memory a reference names; None where it was there before."""
        root = self.root(reference)
        return (root[1], root[2]) if root[0] == "out" else None

    def writers(self, memory: Root) -> set[int]:
        """The kernels that write a memory in place, or memory that it may be a part of."""
        found = set(self.writes.get(memory, ()))
        if memory[0] == "leaf":
            for other, kernels in self.writes.items():
                if other[0] == "leaf" and (memory in self.leaves or other in self.leaves):
                    found |= kernels
        return found

    def may_run_again(self, number: int) -> bool:
        """Whether a kernel only makes new memory, which nobody else writes, and is left alone for no other
        reason.
        """
        kernel = self._kernels[number]
        if kernel.ast.op is not Ops.SINK or kernel.sites or kernel.after_readers_of:
            return False
        for position, output in enumerate(kernel.outputs):
            if output.into is not None or output.length is not None:
                return False
            if ("out", number, position) in self.writes:
                return False
        return not has_op(kernel.ast.toposort(), *_NOT_AGAIN)


def operations(ast: UOp) -> int | None:
    """The operations of a kernel on elements; None where they depend on Variables."""
    total = 0
    for node in ast.toposort():
        if node.op in ELEMENTWISE and _has_shape(node):
            count, cost = prod(shape_of(node)), OPS[node.op].cost
        elif node.op is Ops.REDUCE_AXIS:
            count, cost = prod(shape_of(node.src[0])), 1
        else:
            continue
        if type(count) is not int:
            return None
        total += count * cost
    return total


def _has_shape(node: UOp) -> bool:
    try:
        return shape_of(node) is not None
    except ValueError:  # of a size, or of an index
        return False


def time_of(kernel: KernelTemplate, target: Target) -> int | None:
    """What a kernel takes, in operations: those that it computes, its ways to memory, and its start."""
    computed = operations(kernel.ast)
    if computed is None:
        return None
    loaded = sum([node.src[0].dtype.size for node in of_op(kernel.ast.toposort(), Ops.LOAD)])  # type: ignore[attr-defined]
    stored = sum([output.size for output in kernel.outputs])
    return computed + target.memory.trip * int(loaded + stored) // 2 + target.launch.kernel


def outputs_of(kernel: KernelTemplate, number: int) -> list[tuple[Place, int]]:
    """The fresh outputs of a kernel, and the bytes of each."""
    return [
        ((number, position), output.size * output.dtype.itemsize)
        for position, output in enumerate(kernel.outputs)
        if output.into is None
    ]

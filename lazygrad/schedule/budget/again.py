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

from collections.abc import Iterable, Sequence

from ...ir.ops import ELEMENTWISE, OPS, TRANSFERS, Ops
from ...ir.uop import UOp
from ...ir.walks import has_op, of_op
from ...shape.rules import shape_of
from ...shape.sizes import prod
from ...target import Target
from ..kernels.template import KernelTemplate, Leaf, Output, root_of

#: Kernels of these are left alone: copies between devices, and what is a program of its own.
_NOT_AGAIN = frozenset((*TRANSFERS, Ops.PROGRAM, Ops.CHECK))


class InPlaceWrites:
    """The memory that kernels of a plan write in place.

    aliases  leaves that may be parts of other leaves' memory
    writes   memory → the kernels that write it
    """

    def __init__(self, kernels: Sequence[KernelTemplate], parts: Iterable[int]) -> None:
        self.aliases = frozenset(map(Leaf, parts))
        self.writes: dict[Leaf | Output, set[int]] = {}
        for number, kernel in enumerate(kernels):
            for memory in kernel.overwrites:
                self.writes.setdefault(root_of(memory), set()).add(number)

    def writers(self, memory: Leaf | Output) -> set[int]:
        """The kernels that write a memory, or memory that it may be a part of."""
        found = set(self.writes.get(memory, ()))
        if isinstance(memory, Leaf):
            for other, kernels in self.writes.items():
                if isinstance(other, Leaf) and (memory in self.aliases or other in self.aliases):
                    found |= kernels
        return found

    def may_run_again(self, kernel: KernelTemplate) -> bool:
        """Whether a kernel only makes new memory, which nobody else writes, and is left alone for no other
        reason.
        """
        if kernel.ast.op is not Ops.SINK or kernel.sites or kernel.after_readers_of:
            return False
        for output in kernel.outputs:
            if output.into is not None or output.length is not None or output in self.writes:
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


def fresh_outputs(kernel: KernelTemplate) -> list[Output]:
    """What a kernel makes in memory of its own."""
    return [output for output in kernel.outputs if output.into is None]

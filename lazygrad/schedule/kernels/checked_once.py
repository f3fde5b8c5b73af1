"""Indices are checked once: a kernel does not check what kernels that it waits for have checked.

Where an index is out of range, the first kernel that needs it says so, and what later ones compute is used by
nobody. On a device that goes on until somebody looks, later ones touch nothing out of range: an access whose
index is not checked has its condition.

That makes loads slower, so an index of loads alone is checked by each kernel. One that is compared, such as
the labels of a cross entropy, is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...codegen.lowering.lower import lowered
from ...ir.ops import ELEMENTWISE, Ops
from ...ir.uop import UOp
from ...ir.walks import of_op, reached
from ...shape.rules import shape_of
from ...shape.sizes import prod
from ...shape.tracker import ShapeTracker
from .template import KernelTemplate


class CheckedOnce:
    """The CHECKs of a graph that are done before each of its kernels, which are noted in their order."""

    def __init__(self, before: Mapping[int, Iterable[int]]) -> None:
        self._before = before
        self._done: dict[int, frozenset[UOp]] = {}

    def before(self, kernel: int) -> frozenset[UOp]:
        """What is checked when a kernel begins."""
        return frozenset().union(*[self._done.get(earlier, ()) for earlier in self._before[kernel]])

    def note(self, kernel: int, checks: Sequence[UOp], made: KernelTemplate) -> None:
        """A kernel was made, with these CHECKs. One that writes what was there checks for itself alone."""
        done = self.before(kernel)
        if checks and all(output.into is None for output in made.outputs):
            found = _numbers(_whole(made.ast)) & _numbers(lowered(made.ast).toposort())
            done |= {checks[number] for number in found}
        self._done[kernel] = done


def _numbers(nodes: Iterable[UOp]) -> set[int]:
    return {node.arg.number for node in of_op(nodes, Ops.CHECK)}


def _whole(ast: UOp) -> Iterable[UOp]:
    """The nodes of an AST of which every element is computed."""

    def below(node: UOp) -> Sequence[UOp]:
        if node.op is Ops.STORE:
            return node.src[2:]
        if node.op is Ops.VIEW:
            return [source for source in node.src if _shows_all(node.arg, source)]
        return node.src if node.op in ELEMENTWISE or node.op is Ops.REDUCE_AXIS else ()

    return reached(ast.src, below)


def _shows_all(tracker: ShapeTracker, source: UOp) -> bool:
    """Whether each element is seen, by strides that say so; sizes are known."""
    (view, *others) = tracker.views
    if others or view.mask is not None or view.offset != 0:
        return False
    axes: list[tuple[int, int]] = []
    for stride, size in zip(view.strides, view.shape, strict=True):
        if not isinstance(stride, int) or not isinstance(size, int):
            return False
        if stride != 0:
            axes.append((stride, size))
    seen = 1
    for stride, size in sorted(axes):
        if stride != seen:
            return False
        seen *= size
    return seen == prod(shape_of(source))

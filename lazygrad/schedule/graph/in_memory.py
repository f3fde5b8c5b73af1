"""What lies in memory, and in which order; and about which values decisions are asked."""

from __future__ import annotations

from collections.abc import Callable

from ...ir.args import Array, ProgramArg
from ...ir.ops import TRANSFERS, Ops
from ...ir.uop import UOp
from ...shape.movement import base_and_tracker, reshape
from ...shape.rules import shape_of
from ...shape.sizes import prod, resolve_equal
from ...shape.tracker import ShapeTracker
from ...structure import NEAR, structure_of

#: Memory that is there, or will be when the kernels planned earlier have run.
HELD = frozenset((Ops.BUFFER, Ops.BUFFER_VIEW, Ops.KERNEL))
#: What is stored once, in order, for everybody who reads it; and PROGRAMs that say so.
STORED_WHOLE = frozenset((Ops.CONTIGUOUS, *TRANSFERS))


def is_materialized(node: UOp) -> bool:
    """Whether a node stands for memory: a buffer, a view of one, or an ASSIGN whose kernel is planned."""
    return node.op in HELD or (node.op is Ops.ASSIGN and node.src[1].op is Ops.KERNEL)


def siblings(node: UOp) -> list[UOp]:
    """All results of the kernel that a PROGRAM is a result of."""
    made = node.arg.kernel.makes([Array(source.dtype, shape_of(source)) for source in node.src])
    return [
        UOp(node.op, array.dtype, node.src, ProgramArg(node.arg.kernel, n)) for n, array in enumerate(made)
    ]


def is_number(node: UOp) -> bool:
    """Whether a node is one number in every place, of a type whose bytes are known without a kernel."""
    base, tracker = base_and_tracker(node)
    plain = base.op is Ops.CONST and base.dtype.fmt is not None
    return plain and all(view.mask is None for view in tracker.views)


def is_copied_as_it_is(node: UOp) -> bool:
    """Whether a COPY of several takes a node without a kernel: a number, or what lies in memory in order."""
    base, tracker = base_and_tracker(node)
    if base.op in STORED_WHOLE:
        return is_whole(base, tracker)
    return is_number(node) or (is_materialized(base) and in_order(node).op is not Ops.CONTIGUOUS)


def in_order(node: UOp) -> UOp:
    """What a COPY or PROGRAM reads: a buffer in order, or a contiguous part of one as a BUFFER_VIEW."""
    base, tracker = base_and_tracker(node)
    stored = base.arg.kernel.is_stored if base.op is Ops.PROGRAM else base.op in STORED_WHOLE
    if (stored or is_materialized(base)) and is_whole(base, tracker):
        return node
    if is_materialized(base) and len(tracker.views) == 1:
        view = tracker.views[0]
        offset, size = view.offset, tracker.size
        packed = view.mask is None and _is_packed(view)
        if packed and isinstance(offset, int) and isinstance(size, int):
            part = UOp(Ops.BUFFER_VIEW, base.dtype, (base,), (size, offset * base.dtype.itemsize))
            return reshape(part, tracker.shape)
    return UOp(Ops.CONTIGUOUS, node.dtype, (node,))


def is_whole(base: UOp, tracker: ShapeTracker) -> bool:
    """Whether a tracker is all of a base, in its order."""
    return tracker.contiguous and resolve_equal(tracker.size, prod(shape_of(base)))


def _is_packed(view: object) -> bool:
    """Whether a view's elements follow each other in memory."""
    expected: object = 1
    shape, strides = view.shape, view.strides  # type: ignore[attr-defined]
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if not isinstance(size, int):
            return False
        if size != 1 and stride != expected:
            return False
        expected = expected * size  # type: ignore[operator]
    return True


# *** what decisions are asked about

#: What is in memory before anything reads it, whether it is computed in this plan or was in another one.
_STORED = frozenset((Ops.CONTIGUOUS, Ops.SCATTER, Ops.PROGRAM, *TRANSFERS))


def near(*values: UOp) -> Callable[[], str]:
    """Gives the structure of values: what they are made of, down to memory, as far as it is near.

    A jit's arguments are in memory when it is called; without a jit they may be copied in the same plan.
    """

    def is_memory(node: UOp) -> bool:
        return is_materialized(node) or (node.op in _STORED and node not in values)

    return lambda: structure_of(values, is_memory, NEAR)

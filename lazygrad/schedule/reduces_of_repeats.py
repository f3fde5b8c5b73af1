"""A reduction over what is the same everywhere is arithmetic: in the plain graph it loses such axes.

    sum over j of x[i]   is   n * x[i]          max over j of x[i]   is   x[i]
    prod over j of x[i]  is   x[i] ** n         by squaring

So a sum over what was only broadcast takes no loop, however large. Integers wrap to the same bits; a sum of
floats is rounded once where the loop rounds in each step, a product in each of log2(n) steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..dtype import cast_value, dtypes
from ..gradient import filled
from ..ir.args import ReduceArg
from ..ir.ops import ELEMENTWISE, MOVEMENT, Ops
from ..ir.uop import UOp, keep_origin
from ..shape import base_and_tracker, shape_of, shrink

#: Combined with itself, a value stays what it is.
_IDEMPOTENT = frozenset((Ops.MAX, Ops.MIN, Ops.AND, Ops.OR))


def without_repeats(node: UOp) -> UOp:
    """The plain value of a reduction, or of movements on one, where nothing that repeats is reduced by a
    loop; else itself.
    """
    if node.op in MOVEMENT:
        below = without_repeats(node.src[0])
        return node if below is node.src[0] else UOp(node.op, node.dtype, (below,), node.arg)
    if node.op is not Ops.REDUCE_AXIS:
        return node
    source, op = node.src[0], node.arg.op
    shape, still = shape_of(source), axes_of_repeats(source)
    axes = [axis for axis in node.arg.axes if axis in still and shape[axis] not in (0, 1)]
    count = math.prod(shape[axis] for axis in axes if isinstance(shape[axis], int))
    if not axes or (op is Ops.ADD and not _is_exact(count, node)):
        return node
    once = _once(source, axes)
    rest = tuple([axis for axis in node.arg.axes if axis not in axes and shape[axis] != 1])
    value = UOp(Ops.REDUCE_AXIS, node.dtype, (once,), ReduceArg(op, rest)) if rest else once
    if op in _IDEMPOTENT:
        return value
    if op is Ops.ADD:
        return _times(value, filled(shape_of(value), value.dtype, cast_value(count, value.dtype)))
    return _power(value, count) if op is Ops.MUL else node


def _once(node: UOp, axes: Sequence[int]) -> UOp:
    """The node with size 1 along axes: elementwise operations are done on what is left of their sources."""
    done: dict[UOp, UOp] = {}
    stack = [node]
    while stack:
        top = stack[-1]
        inner = top.op in ELEMENTWISE
        waiting = [s for s in top.src if s not in done] if inner and top not in done else []
        stack += waiting
        if waiting:
            continue
        stack.pop()
        if top in done:
            continue
        if inner:
            done[top] = UOp(top.op, top.dtype, tuple([done[s] for s in top.src]), top.arg)
            keep_origin(done[top], top)
        else:
            spans = [(0, 1) if axis in axes else (0, size) for axis, size in enumerate(shape_of(top))]
            done[top] = shrink(top, spans)
    return done[node]


def _is_exact(count: int, node: UOp) -> bool:
    """Whether the type holds the count, up to its precision: that of a half may overflow, and not the sum."""
    return not dtypes.is_float(node.dtype) or cast_value(count, node.dtype) != math.inf


def _times(a: UOp, b: UOp) -> UOp:
    return UOp(Ops.MUL, a.dtype, (a, b))


def _power(value: UOp, count: int) -> UOp:
    result: UOp | None = None
    while True:
        if count & 1:
            result = value if result is None else _times(result, value)
        count >>= 1
        if count == 0 and result is not None:
            return result
        value = _times(value, value)


def axes_of_repeats(node: UOp) -> frozenset[int]:
    """The axes of known size along which all elements of a node are certainly the same, cached on it."""
    waiting = [node]
    while "repeated_axes" not in node.facts:
        top = waiting[-1]
        below = [s for s in top.src if "repeated_axes" not in s.facts] if top.op in ELEMENTWISE else []
        if below:
            waiting += below
        else:
            waiting.pop()
            top.facts["repeated_axes"] = _axes_of_repeats(top)
    return node.facts["repeated_axes"]


def _axes_of_repeats(node: UOp) -> frozenset[int]:
    if node.op in ELEMENTWISE:
        first, *others = [source.facts["repeated_axes"] for source in node.src]
        return frozenset(first.intersection(*others))
    if node.op not in MOVEMENT:
        return frozenset()
    base, tracker = base_and_tracker(node)
    one = base.op is Ops.CONST
    steps = tracker.real_strides()
    return frozenset(
        axis
        for axis, size in enumerate(tracker.shape)
        if isinstance(size, int) and (steps[axis] == 0 or (one and steps[axis] is not None))
    )

"""A reduction over what is the same everywhere is arithmetic: in the plain graph it loses such axes.

    sum over j of x[i]   is   n * x[i]          max over j of x[i]   is   x[i]
    prod over j of x[i]  is   x[i] ** n         by squaring

So a sum over what was only broadcast takes no loop, however large. Integers wrap to the same bits; a sum of
floats is rounded once where the loop rounds in each step, a product in each of log2(n) steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ...dtype import cast_value, dtypes
from ...gradient import filled
from ...ir.args import ReduceArg
from ...ir.ops import ELEMENTWISE, MOVEMENT, Ops
from ...ir.pattern import PatternMatcher, UPat
from ...ir.rewrite import resolve
from ...ir.uop import UOp, keep_origin
from ...ir.walks import noted
from ...shape import base_and_tracker, shape_of, shrink

#: Combined with itself, a value stays what it is.
_IDEMPOTENT = frozenset((Ops.MAX, Ops.MIN, Ops.AND, Ops.OR))


class _Repeated(NamedTuple):
    """The axes of a reduction along which its source only repeats, and how many elements that makes."""

    axes: list[int]
    times: int


def _repeated(node: UOp) -> _Repeated:
    shape, still = shape_of(node.src[0]), repeated_axes(node.src[0])
    axes = [axis for axis in node.arg.axes if axis in still and shape[axis] not in (0, 1)]
    return _Repeated(axes, math.prod(shape[axis] for axis in axes if isinstance(shape[axis], int)))


def once(node: UOp) -> UOp | None:
    """The reduction without the axes along which its source only repeats; None where there are none."""
    axes = _repeated(node).axes
    if not axes:
        return None
    shape = shape_of(node.src[0])
    value = _once(node.src[0], axes)
    rest = tuple([axis for axis in node.arg.axes if axis not in axes and shape[axis] != 1])
    return UOp(Ops.REDUCE_AXIS, node.dtype, (value,), ReduceArg(node.arg.op, rest)) if rest else value


def n_times(node: UOp) -> UOp | None:
    """A sum of what repeats. Not where the type does not hold how often: the sum may be within it."""
    times = _repeated(node).times
    value = once(node) if _is_exact(times, node) else None
    if value is None:
        return None
    return _times(value, filled(shape_of(value), value.dtype, cast_value(times, value.dtype)))


def to_the_nth(node: UOp) -> UOp | None:
    """A product of what repeats."""
    value = once(node)
    return None if value is None else _power(value, _repeated(node).times)


repeat_rules = PatternMatcher(
    [
        (UPat(Ops.REDUCE_AXIS, name="node"), n_times, lambda node: node.arg.op is Ops.ADD),
        (UPat(Ops.REDUCE_AXIS, name="node"), to_the_nth, lambda node: node.arg.op is Ops.MUL),
        (UPat(Ops.REDUCE_AXIS, name="node"), once, lambda node: node.arg.op in _IDEMPOTENT),
    ]
)


def _once(node: UOp, axes: Sequence[int]) -> UOp:
    """The node with size 1 along axes: elementwise operations are done on what is left of their sources."""
    done: dict[UOp, UOp] = {}

    def once(top: UOp) -> UOp:
        if top.op not in ELEMENTWISE:
            return shrink(
                top, [(0, 1) if axis in axes else (0, size) for axis, size in enumerate(shape_of(top))]
            )
        made = UOp(top.op, top.dtype, tuple([done[s] for s in top.src]), top.arg)
        keep_origin(made, top)
        return made

    return resolve(node, _computed_from, once, done)


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


def repeated_axes(node: UOp) -> frozenset[int]:
    """The axes of known size along which all elements of a node are certainly the same, cached on it."""
    found = node.facts.get("repeated_axes")
    return noted(node, "repeated_axes", _repeated_axes, _computed_from) if found is None else found


def _computed_from(node: UOp) -> tuple[UOp, ...]:
    return node.src if node.op in ELEMENTWISE else ()


def _repeated_axes(node: UOp) -> frozenset[int]:
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

"""What a sum is of: products of distances from means over its own axes.

It is read off the graph that is asked for, before the sum of a mean is rewritten: see `moments.py`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ...dtype import dtypes
from ...ir.ops import ELEMENTWISE, MOVEMENT, Ops
from ...ir.uop import UOp
from ...shape import shape_of
from ..graph.requested import is_materialized
from ..graph.versions import effective
from .reduces_of_broadcasts import repeated_axes

#: So many distances are multiplied, from so many means: what is stored for a block grows with both.
MOST, MEANS = 4, 2
#: So many operations are looked at between a mean and its sum.
NEAR = 16


class Shift(NamedTuple):
    """A distance value - centre, where the centre is made of `mean`, a sum of the values."""

    value: UOp
    centre: UOp
    mean: UOp


class Condition(NamedTuple):
    """Where terms are not 0: where `value` is true, or where it is not."""

    value: UOp
    inverted: bool


class Terms(NamedTuple):
    """What is summed: powers of distances, times weights, where all conditions hold; times `late`, which does
    not depend on the axes that are summed over. In `late`, True stands for a divisor.
    """

    powers: Mapping[Shift, int]
    weights: Sequence[UOp]
    conditions: Sequence[Condition]
    late: Sequence[tuple[UOp, bool]]


def is_sum(node: UOp) -> bool:
    if node.op is not Ops.REDUCE_AXIS or node.arg.op is not Ops.ADD or is_materialized(node):
        return False
    return node.dtype in (dtypes.float32, dtypes.float64)


def terms_of(node: UOp) -> Terms | None:
    """What a sum is of, if that is powers of distances from means."""
    shape, axes = shape_of(node.src[0]), node.arg.axes
    wide = {axis for axis in axes if shape[axis] != 1}
    powers: dict[Shift, int] = {}
    weights, conditions, late = list[UOp](), list[Condition](), list[tuple[UOp, bool]]()
    stack = [node.src[0]]
    while stack:
        factor = _planned(stack.pop())
        if wide <= repeated_axes(factor):
            late.append((factor, False))
        elif factor.op is Ops.MUL:
            stack += factor.src
        elif factor.op is Ops.FDIV and wide <= repeated_axes(factor.src[1]):
            late.append((factor.src[1], True))
            stack.append(factor.src[0])
        elif factor.op is Ops.WHERE and _is_zero(factor.src[2]):
            conditions.append(Condition(factor.src[0], False))
            stack.append(factor.src[1])
        elif factor.op is Ops.WHERE and _is_zero(factor.src[1]):
            conditions.append(Condition(factor.src[0], True))
            stack.append(factor.src[2])
        elif (shift := _shift(factor, node)) is not None:
            powers[shift] = powers.get(shift, 0) + 1
        else:
            weights.append(factor)
    if not 2 <= sum(powers.values()) <= MOST or len(powers) > MEANS:
        return None
    means = [shift.mean for shift in powers]
    if any(_is_made_of(each, means) for each in (*weights, *[each.value for each in conditions])):
        return None
    return Terms(powers, weights, conditions, late)


def _shift(factor: UOp, node: UOp) -> Shift | None:
    """A factor of what a sum is of as the distance from a mean over the same axes."""
    if factor.op is not Ops.SUB or factor.dtype is not node.dtype:
        return None
    x, centre = _planned(factor.src[0]), factor.src[1]
    shape = shape_of(node.src[0])
    if not {axis for axis in node.arg.axes if shape[axis] != 1} <= repeated_axes(centre):
        return None
    for mean in itertools.islice(_made_of(centre), NEAR):
        if is_sum(mean) and mean.arg == node.arg and mean.dtype is node.dtype and x in masked(mean)[0]:
            return Shift(x, centre, mean)
    return None


def masked(mean: UOp) -> tuple[tuple[UOp, ...], Condition | None]:
    """What a sum is of, also without the condition under which it is not 0, and that condition."""
    source = _planned(mean.src[0])
    if source.op is Ops.WHERE and _is_zero(source.src[2]):
        return (source, _planned(source.src[1])), Condition(source.src[0], False)
    if source.op is Ops.WHERE and _is_zero(source.src[1]):
        return (source, _planned(source.src[2])), Condition(source.src[0], True)
    for factor, other in (source.src, source.src[::-1]) if source.op is Ops.MUL else ():
        factor = _planned(factor)
        if factor.op is Ops.CAST and factor.src[0].dtype is dtypes.bool:
            return (source, _planned(other)), Condition(factor.src[0], False)
    return (source,), None


def _planned(node: UOp) -> UOp:
    """What a node is now, without what planning ignores."""
    node = effective(node)
    while node.op is Ops.DETACH:
        node = effective(node.src[0])
    return node


def _made_of(value: UOp) -> Iterator[UOp]:
    """The values that one is made of by movements and operations on elements, with reductions."""
    stack, seen = [value], set[UOp]()
    while stack:
        node = _planned(stack.pop())
        if node in seen:
            continue
        seen.add(node)
        if node.op in MOVEMENT:
            stack.append(node.src[0])
            continue
        yield node
        if node.op in ELEMENTWISE and not is_materialized(node):
            stack += node.src


def _is_made_of(value: UOp, sums: Sequence[UOp]) -> bool:
    """Whether a value is made of one of some sums, as far as one looks."""
    near = list(itertools.islice(_made_of(value), NEAR + 1))
    return len(near) > NEAR or any(node in sums for node in near)


def _is_zero(node: UOp) -> bool:
    return all(each.op is Ops.CONST and each.arg == 0 for each in itertools.islice(_made_of(node), 2))

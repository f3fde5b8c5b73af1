"""Values one behind the other along an axis: few by a choice among them for each element, many in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..dtype import dtypes
from ..ir.args import Devices
from ..ir.index import sint
from ..ir.ops import MOVEMENT, Ops
from ..ir.uop import UOp
from ..shape import Shape, movement, resolve_equal, shape_of
from ..shape.movement import pad
from ..shape.sizes import mul
from .nodes import filled

#: Up to so many values are joined by a choice among them for each element: code grows with them.
MAX_CHOICES = 32


def choice(parts: Sequence[UOp], axis: int) -> UOp:
    """Some values along an axis, as a balanced tree of choices between two padded halves.

    Exact for NaN and -0.0.
    """
    left = list(parts)
    while len(left) > 1:
        paired = [_choice_of_two(a, b, axis) for a, b in zip(left[::2], left[1::2], strict=False)]
        left = paired + left[2 * len(paired) :]
    return left[0]


def _choice_of_two(a: UOp, b: UOp, axis: int) -> UOp:
    shape, other = shape_of(a), shape_of(b)

    def amounts(before: sint, after: sint) -> tuple[tuple[sint, sint], ...]:
        return tuple((before, after) if i == axis else (0, 0) for i in range(len(shape)))

    behind, front = amounts(0, other[axis]), amounts(shape[axis], 0)
    first = pad(filled(shape, dtypes.bool, True), behind)
    return UOp(Ops.WHERE, a.dtype, (first, pad(a, behind), pad(b, front)))


def is_choice_of_two(node: UOp) -> bool:
    """Whether a WHERE is two values one behind the other: each padded by the size of the other, and True
    padded as the first is.
    """
    condition, first, second = node.src
    if any(source.op is not Ops.PAD for source in node.src) or condition.arg != first.arg:
        return False
    inner, size, other = (shape_of(source.src[0]) for source in node.src)
    whole = movement.below_movement(condition.src[0], MOVEMENT - {Ops.PAD})
    if whole.op is not Ops.CONST or whole.arg is not True or inner != size:
        return False
    axes = [i for i, amounts in enumerate(first.arg) if amounts != (0, 0)]
    behind = tuple((0, other[i]) if i in axes else (0, 0) for i in range(len(size)))
    front = tuple((size[i], 0) if i in axes else (0, 0) for i in range(len(size)))
    return len(axes) == 1 and first.arg == behind and second.arg == front


def condition_of(node: UOp) -> UOp:
    """The condition of a WHERE, asked of its result where that tells as well.

    `(x <= c).where(c, x)`, as relu is written, is at most c where x is, and NaN where x is; so is
    `(x < c).where(x, c)` below c where x is. A gradient that asks the result does not need x any more.
    """
    condition, first, second = node.src
    if condition.op is Ops.DETACH:
        condition = condition.src[0]
    if condition.op not in (Ops.CMPLT, Ops.CMPLE):
        return condition
    value, limit = (first, second) if condition.op is Ops.CMPLT else (second, first)
    if movement.below_movement(limit).op is not Ops.CONST or value is limit:
        return condition
    if not (condition.src == (value, limit) or condition.src == (limit, value)):
        return condition
    return condition.replace(src=tuple(node if source is value else source for source in condition.src))


def in_memory(nodes: Sequence[UOp], axis: int, device: Devices) -> UOp:
    """Many values, one after another in one memory; where their axis cannot come first, in groups."""
    shapes = [shape_of(node) for node in nodes]
    size, before, behind = shapes[0][axis], shapes[0][:axis], shapes[0][axis + 1 :]
    target = UOp(Ops.DEVICE, arg=device)

    def copied(shape: Callable[[Shape], Shape]) -> UOp:
        parts = [movement.reshape(node, shape(own)) for node, own in zip(nodes, shapes, strict=True)]
        return UOp(Ops.COPY, parts[0].dtype, (*parts, target))

    if all(resolve_equal(other, 1) for other in before):
        joined = copied(lambda own: (own[axis], *behind))
        return movement.reshape(joined, (*before, shape_of(joined)[0], *behind))
    if all(resolve_equal(own[axis], size) for own in shapes):
        joined = copied(lambda own: (1, *own))
        moved = movement.permute(joined, (*range(1, axis + 1), 0, *range(axis + 1, len(shapes[0]) + 1)))
        return movement.reshape(moved, (*before, mul(size, len(nodes)), *behind))
    groups = [choice(nodes[i : i + MAX_CHOICES], axis) for i in range(0, len(nodes), MAX_CHOICES)]
    stored = [UOp(Ops.CONTIGUOUS, node.dtype, (node,)) for node in groups]
    return choice(stored, axis) if len(stored) <= MAX_CHOICES else in_memory(stored, axis, device)

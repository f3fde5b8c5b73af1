"""Sums that only one term is left of: elements of products, computed from the products' factors.

A cross entropy asks for the label's element of each row of x = a·b:

    Σⱼ where(j = yᵢ, x(i, j) - sᵢ, 0)  =  x(i, yᵢ) - sᵢ        if 0 ≤ yᵢ < n, otherwise 0
    x(i, yᵢ)  =  Σ_d a(i, d)·b(yᵢ, d)

The right side reads few elements of few factors. So nobody needs all of x on its behalf, and what else is
asked of x may be computed in one pass, which stores no x. Where x is stored in any case, the left side reads
one number from it, which is less; so `plan.py` has this done where one pass is what follows.
"""

from __future__ import annotations

import math

from ...dtype import dtypes
from ...gradient import filled
from ...ir.args import ReduceArg
from ...ir.ops import ELEMENTWISE, Ops
from ...ir.uop import UOp, keep_origin
from ...ir.walks import device_of
from ...shape.movement import below_movement, expand, movements_on, permute, reshape, shrink
from ...shape.rules import shape_of
from ...shape.sizes import Shape, vmax
from ..graph.requested import is_materialized
from .reduces_of_broadcasts import repeated_axes

#: Movements that a sum over a further axis takes part in.
_ALONG = frozenset((Ops.RESHAPE, Ops.PERMUTE))
#: Movements that leave a count along one axis as it is.
_COUNTS = frozenset((Ops.RESHAPE, Ops.PERMUTE, Ops.EXPAND))


def selected_products(node: UOp) -> set[UOp]:
    """The sums of products of which a sum has one element left in each of its own; none of other nodes."""
    if _selected_index(node) is None:
        return set()
    found, seen, stack = set[UOp](), set[UOp](), [node.src[0].src[1]]
    while stack:
        value = stack.pop()
        if value in seen:
            continue
        seen.add(value)
        base = below_movement(value)
        if _is_product(base) and all(move.op in _ALONG for move in movements_on(value)[0]):
            found.add(base)
        elif value.op in ELEMENTWISE and value.op is not Ops.CHECK:
            stack += value.src
    return found


def selected(node: UOp) -> UOp | None:
    """Such a sum as what is computed from the factors of its products; None of other nodes."""
    place = _selected_index(node)
    if place is None or not selected_products(node):
        return None
    _, value, zero = node.src[0].src
    (axis,) = node.arg.axes
    made = _Choice(place, axis, node).of(value)
    if made is None:
        return None
    once = shrink(zero, [(0, size) for size in shape_of(made)])
    return UOp(Ops.WHERE, node.dtype, (_is_within(place, shape_of(node.src[0])[axis]), made, once))


def _selected_index(node: UOp) -> UOp | None:
    """Which term is left, with size 1 along the axis of the sum; None where that is not what it is."""
    if node.op is not Ops.REDUCE_AXIS or node.arg.op is not Ops.ADD or len(node.arg.axes) != 1:
        return None
    where, shape = node.src[0], shape_of(node.src[0])
    if where.op is not Ops.WHERE or not dtypes.is_float(node.dtype) or where.src[0].op is not Ops.CMPEQ:
        return None
    zero = below_movement(where.src[2])
    if zero.op is not Ops.CONST or zero.arg != 0 or not all(isinstance(size, int) for size in shape):
        return None
    (axis,) = node.arg.axes
    for count, place in (where.src[0].src, where.src[0].src[::-1]):
        if axis in repeated_axes(place) and _is_count(count, shape, axis):
            return shrink(place, [(0, 1 if n == axis else size) for n, size in enumerate(shape)])
    return None


def _is_count(value: UOp, shape: Shape, axis: int) -> bool:
    """Whether a value is the place along an axis."""
    moves, base = movements_on(value)
    if base.op is not Ops.IOTA or base.arg != shape[axis] or any(move.op not in _COUNTS for move in moves):
        return False
    still = repeated_axes(value)
    return axis not in still and all(n in still for n, size in enumerate(shape) if size != 1 and n != axis)


def _is_product(node: UOp) -> bool:
    """Whether a value is a sum of products over its last axis, that nothing has stored."""
    if node.op is not Ops.REDUCE_AXIS or node.arg.op is not Ops.ADD or node.src[0].op is not Ops.MUL:
        return False
    shape = shape_of(node.src[0])
    return not is_materialized(node) and node.arg.axes == (len(shape) - 1,) and isinstance(shape[-1], int)


def _is_within(place: UOp, size: int) -> UOp:
    """Whether a place is one of [0, size). `size` may be too large for its dtype, `size - 1` is not."""
    shape, dtype = shape_of(place), place.dtype
    high = UOp(Ops.CMPLT, dtypes.bool, (filled(shape, dtype, size - 1), place))
    low = UOp(Ops.CMPLT, dtypes.bool, (place, filled(shape, dtype, 0)))
    beyond = UOp(Ops.OR, dtypes.bool, (high, low))
    return UOp(Ops.CMPNE, dtypes.bool, (beyond, filled(shape, dtypes.bool, True)))


class _Choice:
    """Values at a place along an axis: size 1 along that axis. What is beyond memory is not read."""

    def __init__(self, place: UOp, axis: int, origin: UOp) -> None:
        self.index, self.axis, self.origin = place, axis, origin
        self.done: dict[UOp, UOp | None] = {}

    def of(self, value: UOp) -> UOp | None:
        """None where it cannot be said."""
        if value not in self.done:
            self.done[value] = self._of(value)
        return self.done[value]

    def _of(self, value: UOp) -> UOp | None:
        shape = shape_of(value)
        if self.axis in repeated_axes(value):
            return shrink(value, [(0, 1 if n == self.axis else size) for n, size in enumerate(shape)])
        if value.op in ELEMENTWISE and value.op is not Ops.CHECK:
            sources = [self.of(source) for source in value.src]
            if None in sources:
                return None
            return UOp(value.op, value.dtype, tuple([s for s in sources if s is not None]), value.arg)
        moves, base = movements_on(value)
        if _is_product(base) and all(move.op in _ALONG for move in moves):
            return self._of_product(value, moves, base)
        return self._loaded(value) if is_materialized(base) and device_of(base) is not None else None

    def _loaded(self, value: UOp) -> UOp:
        """What memory holds there."""
        shape = shape_of(self.index)
        repeats = repeated_axes(value)
        own = shrink(value, [(0, 1 if n in repeats else size) for n, size in enumerate(shape_of(value))])
        sizes = [int(vmax(size)) for size in shape_of(own)]
        count = math.prod(sizes)
        dtype = dtypes.int32 if count <= dtypes.max(dtypes.int32) else dtypes.int64
        place, step = filled(shape, dtype, 0), count
        for axis, size in enumerate(sizes):
            step //= size
            if axis in repeats:
                continue
            if axis == self.axis:
                at = self.index if self.index.dtype is dtype else UOp(Ops.CAST, dtype, (self.index,))
            else:
                at = UOp(Ops.IOTA, dtype, (UOp(Ops.DEVICE, arg=device_of(value)),), size)
                at = expand(reshape(at, [size if n == axis else 1 for n in range(len(shape))]), shape)
            at = UOp(Ops.MUL, dtype, (at, filled(shape, dtype, step)))
            place = UOp(Ops.ADD, dtype, (place, at))
        return UOp(Ops.GATHER, value.dtype, (reshape(own, (count,)), place))

    def _of_product(self, value: UOp, moves: list[UOp], base: UOp) -> UOp | None:
        """A sum of products of chosen factors, stored: what reads it has to do with other loops."""
        shape, depth = shape_of(value), shape_of(base.src[0])[-1]
        wide = shape_of(self.index)
        place = expand(reshape(self.index, (*wide, 1)), (*wide, depth))
        inner = _Choice(place, self.axis, self.origin)
        factors = []
        for source in base.src[0].src:
            factor = reshape(source, (*shape_of(base), depth))
            for move in reversed(moves):
                if move.op is Ops.PERMUTE:
                    factor = permute(factor, (*move.arg, len(move.arg)))
                else:
                    factor = reshape(factor, (*shape_of(move), depth))
            made = inner.of(factor)
            if made is None:
                return None
            factors.append(made)
        product = UOp(Ops.MUL, base.dtype, tuple(factors))
        made = UOp(Ops.REDUCE_AXIS, base.dtype, (product,), ReduceArg(Ops.ADD, (len(shape),)))
        keep_origin(made, self.origin)
        return UOp(Ops.CONTIGUOUS, base.dtype, (reshape(made, shape_of(made)[:-1]),))

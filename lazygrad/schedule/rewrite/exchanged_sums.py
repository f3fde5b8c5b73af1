"""Sums of sums of products whose order is exchanged, where the inner ones are there anyway.

The gradient of a softmax needs for each of its rows i a sum over j of the weights p times what arrives for
them, which is a sum of products itself if the weights are multiplied by a matrix:

    Σⱼ p(i, j) · Σ_d a(i, d)·b(j, d)  =  Σ_d a(i, d) · Σⱼ p(i, j)·b(j, d)

Both sum the same numbers p·a·b, in another order. Where Σⱼ p·b is in the graph before (the result of the
attention), the right side is a short sum of what is known, and nobody needs the inner sum of the left side
for each i and j on its behalf.

Which element is asked for where is compared by index tuples: i and j as the left side walks them, and d, are
put into those of Σⱼ p·b; all places have to be the same.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import NamedTuple

from ...dtype import dtypes
from ...ir.args import AxisType, RangeArg, ReduceArg
from ...ir.index import as_index, const, substitute
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...shape.movement import base_and_tracker, below_movement, permute, reshape, shrink
from ...shape.rules import shape_of
from ...shape.sizes import Shape
from ...shape.view import ranges_over
from ..graph.indices import Indices, free_ranges, through
from ..graph.powers import powers_in


class Term(NamedTuple):
    """A factor, or what the others are divided by."""

    value: UOp
    divides: bool


class SumsOfPowers:
    """The sums Σⱼ p·b of a graph that were met so far, by p: a value that is made of powers."""

    def __init__(self) -> None:
        self.found: dict[UOp, dict[UOp, None]] = {}

    def note(self, node: UOp) -> None:
        """Remember a node if it is such a sum."""
        if not _is_plain_sum(node):
            return
        product = node.src[0]
        for factor in product.src if product.op is Ops.MUL else ():
            base = below_movement(factor)
            if powers_in([base], lambda other: False):
                self.found.setdefault(base, {})[node] = None

    def exchanged(self, node: UOp) -> UOp | None:
        """A sum of sums of products in the other order, where that is one of a known sum."""
        if not self.found or not _is_plain_sum(node):
            return None
        negative, terms = _terms(node.src[0], self.found)
        for p in terms:
            for known in self.found.get(below_movement(p.value), ()) if not p.divides else ():
                for inner in terms:
                    base = below_movement(inner.value)
                    if inner is p or inner.divides or not _is_plain_sum(base):
                        continue
                    rest = [term for term in terms if term is not p and term is not inner]
                    made = _in_other_order(node, p.value, inner.value, known, rest)
                    if made is not None:
                        made = UOp(Ops.NEG, made.dtype, (made,)) if negative else made
                        # stored: where the inner sum is computed, one for each j too would be as long
                        return UOp(Ops.CONTIGUOUS, made.dtype, (made,))
        return None


def _is_plain_sum(node: UOp) -> bool:
    """Whether a node sums floats along one axis, all of its sizes known."""
    if node.op is not Ops.REDUCE_AXIS or node.arg.op is not Ops.ADD or len(node.arg.axes) != 1:
        return False
    known = all(isinstance(size, int) for size in shape_of(node.src[0]))
    return known and node.dtype in (dtypes.float32, dtypes.float64)


def _terms(node: UOp, known: Container[UOp]) -> tuple[bool, list[Term]]:
    """A value as a product: whether it is negative, and its factors, down to those that are known."""
    if node not in known:
        if node.op is Ops.NEG:
            negative, terms = _terms(node.src[0], known)
            return not negative, terms
        if node.op is Ops.MUL:
            (first, some), (second, others) = [_terms(factor, known) for factor in node.src]
            return first != second, [*some, *others]
        if node.op is Ops.FDIV:
            negative, terms = _terms(node.src[0], known)
            return negative, [*terms, Term(node.src[1], True)]
    return False, [Term(node, False)]


def _in_other_order(node: UOp, p: UOp, inner: UOp, known: UOp, rest: list[Term]) -> UOp | None:
    """Σ_d a·Σⱼ p·b times what does not depend on j, for node = Σⱼ p·(inner = Σ_d a·b)·rest."""
    shape, (axis,) = shape_of(node.src[0]), node.arg.axes
    walk = ranges_over(shape)
    j = walk[axis]
    deep = below_movement(inner)
    product = deep.src[0]
    if product.op is not Ops.MUL or j.op is not Ops.RANGE:
        return None
    if any(map(_has_zeros, (inner, p, *product.src, *known.src[0].src, *[term.value for term in rest]))):
        return None
    d = _range(shape_of(product)[deep.arg.axes[0]], 1)
    places = list(_indices(inner, tuple(walk)))
    places[deep.arg.axes[0]] = d
    where = {r: at for r, at in zip(ranges_over(shape_of(product)), places, strict=True) if r.op is Ops.RANGE}
    for a, b in (product.src, product.src[::-1]):
        base, at = below_movement(b), _put(_indices(b, tuple(ranges_over(shape_of(product)))), where)
        if j in free_ranges(_put(_indices(a, tuple(ranges_over(shape_of(product)))), where)):
            continue
        out = _out_of(known, p, tuple(walk), (base, at), j, d)
        if out is None:
            continue
        # along the axes of the product, that of j of size 1
        across = [n for n, place in enumerate(places) if place is j]
        if len(across) != 1:
            return None
        order = _order(out, [const(0) if place is j else place for place in places])
        if order is None:
            return None
        size = tuple(1 if n in across else each for n, each in enumerate(shape_of(product)))
        factor = shrink(a, [(0, each) for each in size])
        summed = UOp(Ops.MUL, a.dtype, (factor, _arranged(known, order, size)))
        made = UOp(Ops.REDUCE_AXIS, node.dtype, (summed,), ReduceArg(Ops.ADD, deep.arg.axes))
        kept = [const(0) if place in (j, d) else place for place in places]
        order = _order(kept, [const(0) if r is j else r for r in walk])
        if order is None:
            return None
        made = _arranged(made, order, shape_of(node))
        for term in rest:
            if j in free_ranges(_walked(term.value, tuple(walk))):
                return None
            value = shrink(term.value, [(0, each) for each in shape_of(node)])
            made = UOp(Ops.FDIV if term.divides else Ops.MUL, node.dtype, (made, value))
        return made
    return None


def _out_of(known: UOp, p: UOp, walk: Indices, b: tuple[UOp, Indices], j: UOp, d: UOp) -> list[UOp] | None:
    """Where `known` has the sum over j of p and b, p as it is walked; None if it is not that sum."""
    own = tuple(ranges_over(shape_of(known.src[0])))
    for mine, other in (known.src[0].src, known.src[0].src[::-1]):
        if below_movement(mine) is not below_movement(p) or below_movement(other) is not b[0]:
            continue
        means: dict[UOp, UOp] = {}
        of_p = list(zip(_indices(mine, own), _indices(p, walk), strict=True))
        for at, wanted in of_p:
            if at.op is Ops.RANGE:
                means.setdefault(at, wanted)
        left = [r for r in own if r.op is Ops.RANGE and r not in means]
        if len(left) != 1 or left[0].src != d.src:
            continue
        means[left[0]] = d
        of_b = list(zip(_indices(other, own), b[1], strict=True))
        if any(_put((at,), means) != (wanted,) for at, wanted in (*of_p, *of_b)):
            continue
        (axis,) = known.arg.axes
        if means.get(own[axis]) is not j or own[axis].src != j.src:
            continue
        return [const(0) if n == axis else means.get(r, r) for n, r in enumerate(own)]
    return None


def _indices(value: UOp, walk: Indices) -> Indices:
    base, tracker = base_and_tracker(value)
    return through(tracker, walk, shape_of(base))


def _has_zeros(value: UOp) -> bool:
    """Whether a value is seen with zeros around it: places alone do not say what is there."""
    return any(view.mask is not None for view in base_and_tracker(value)[1].views)


def _walked(value: UOp, walk: Indices) -> Indices:
    """The places of all values that one is computed from."""
    return _indices(value, walk) if below_movement(value) is not value else walk


def _put(places: Indices, means: dict[UOp, UOp]) -> Indices:
    done = substitute(places, means)
    return tuple([done[at] for at in places])


def _order(have: Sequence[UOp], want: Sequence[UOp]) -> list[int] | None:
    """The axes with the ranges that are wanted, in their order; None where others, or not all, are there."""
    ranges = [at for at in want if at.op is not Ops.CONST]
    found = [n for n, at in enumerate(have) if at.op is not Ops.CONST]
    if (
        len(found) != len(ranges)
        or {have[n] for n in found} != set(ranges)
        or len(set(ranges)) != len(ranges)
    ):
        return None
    return [next(n for n in found if have[n] is r) for r in ranges]


def _arranged(value: UOp, order: list[int], shape: Shape) -> UOp:
    """The axes in this order, and axes of size 1 where the shape has them."""
    ones = [n for n in range(len(shape_of(value))) if n not in order]
    return reshape(permute(value, [*order, *ones]), shape)


def _range(size: int, number: int) -> UOp:
    return UOp(Ops.RANGE, const(0).dtype, (as_index(size),), RangeArg(-number, AxisType.REDUCE))

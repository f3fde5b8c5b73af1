"""A stack of views: any sequence of movements of a flat buffer, without a copy.

The last view is the one that is indexed. The number it gives counts in row-major order through the shape of
the view before it, and so on; the first view gives the number of the element in the buffer. Two neighbours
become one view wherever we see that their composition is one.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

from ..ir import index
from ..ir.index import sint
from ..ir.ops import Ops
from ..ir.uop import UOp, toposort
from ..ir.walks import has_op
from .sizes import (
    Shape,
    add,
    as_size,
    at_most,
    mul,
    prod,
    quotient,
    remainder,
    resolve_equal,
    smax,
    smin,
    sub,
    vmax,
    vmin,
)
from .view import CACHED, Mask, View, conditions_within, hidden, number_at, ranges_over

Span = tuple[sint, sint]


class ShapeTracker:
    """Where each element of a shape is found in a flat buffer. Never changes."""

    __slots__ = ("_hash", "views")
    views: tuple[View, ...]
    _hash: int

    def __init__(self, views: Iterable[View]) -> None:
        self.views = tuple(views)
        if not self.views:
            raise ValueError(
                "a ShapeTracker has at least one View; ShapeTracker.from_shape makes the plain one"
            )
        self._hash = hash(self.views)

    @staticmethod
    def from_shape(shape: Sequence[sint], strides: Sequence[sint] | None = None) -> ShapeTracker:
        """All of a buffer in row-major order (or with other strides)."""
        if strides is None:
            return _in_order(tuple(shape))
        return ShapeTracker((View.create(shape, strides),))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, ShapeTracker) and self._hash == other._hash and self.views == other.views
        )

    def __repr__(self) -> str:
        return f"ShapeTracker(views={self.views!r})"

    def __reduce__(self) -> Any:
        return ShapeTracker, (self.views,)

    def __add__(self, other: ShapeTracker) -> ShapeTracker:
        """`other` on top of this one: the buffer it looks at is this one's shape in row-major order."""
        if self.contiguous:
            return other
        views = self.views
        for view in other.views:
            views = _stacked(views, view)
        return ShapeTracker(views)

    # *** questions

    @property
    def shape(self) -> Shape:
        return self.views[-1].shape

    @property
    def size(self) -> sint:
        return self.views[-1].size

    @property
    def contiguous(self) -> bool:
        """Whether it is all of the buffer, in order."""
        return len(self.views) == 1 and self.views[0].contiguous

    def indexed(self, indices: Sequence[UOp]) -> tuple[UOp, UOp]:
        """(the number of the element in the buffer, whether there is one) at these indices of the shape."""
        top = self.views[-1]
        number, conditions = top.index_of(indices), top.validity_of(indices)
        for view in reversed(self.views[:-1]):
            number, more = _through(view, number)
            conditions += more
        return number, index.all_of(conditions)

    def to_indexed_uops(self) -> tuple[UOp, UOp]:
        """`indexed` with fresh ranges `ridx0`, `ridx1`, ... for the axes."""
        return self.indexed(ranges_over(self.shape))

    def real_size(self) -> int:
        """How many elements the buffer must have; with several views or Variables, enough for all cases."""
        if any(view.is_empty or view.is_hidden for view in self.views):
            return 0
        size = max(vmax(self.views[0].real_size()), 0)
        if len(self.views) > 1:
            size = min(size, index.bounds(self.to_indexed_uops()[0])[1] + 1)
        return size

    def real_strides(self, ignore_valid: bool = False) -> tuple[sint | None, ...]:
        """How many elements of the buffer one step along each axis moves; None where that varies.

        An axis that decides whether there is an element has None too, unless `ignore_valid`.
        """
        return _real_strides(self, ignore_valid)

    def unit_stride_axes(self, ignore_valid: bool = False) -> list[int]:
        """The axes along which neighbours are neighbours in the buffer."""
        return [axis for axis, stride in enumerate(self.real_strides(ignore_valid)) if stride == 1]

    def unbind(self) -> tuple[ShapeTracker, dict[UOp, int]]:
        """The tracker with Variables in place of bound ones, and the values that these were bound to."""
        tracker, values = _unbind(self)
        return tracker, dict(values)

    # *** movement

    def permute(self, order: Sequence[int]) -> ShapeTracker:
        """Axis i of the result is axis `order[i]` of this one."""
        return self._with(self.views[-1].permute(order))

    def expand(self, shape: Sequence[sint]) -> ShapeTracker:
        """Axes of size 1 repeat to their new size."""
        return self._with(self.views[-1].expand(shape))

    def pad(self, amounts: Sequence[Span]) -> ShapeTracker:
        """(before, after) masked places around each axis."""
        return self._with(self.views[-1].pad(amounts))

    def shrink(self, spans: Sequence[Span]) -> ShapeTracker:
        """Only [begin, end) of each axis."""
        return self._with(self.views[-1].shrink(spans))

    def flip(self, axes: Sequence[int]) -> ShapeTracker:
        """The axes run backwards: their numbers, or a bool for each axis of the shape."""
        return self._with(self.views[-1].flip(axes))

    def reshape(self, shape: Sequence[sint]) -> ShapeTracker:
        """The same elements in the same row-major order, in a shape of the same size."""
        view = self.views[-1].reshape(shape)
        if view is None:
            return ShapeTracker(_stacked(self.views, View.create(shape)))
        return self._with(view)

    def simplify(self) -> ShapeTracker:
        """The same in as few views as we see. Movements do this themselves; not so the constructor."""
        views = self.views[:1]
        for view in self.views[1:]:
            views = _stacked(views, view)
        return self if views == self.views else ShapeTracker(views)

    def _with(self, view: View) -> ShapeTracker:
        """The tracker with another last view."""
        if len(self.views) == 1:
            return ShapeTracker((view,))
        return ShapeTracker(_stacked(self.views[:-1], view))


@functools.lru_cache(CACHED)
def _in_order(shape: Shape) -> ShapeTracker:
    return ShapeTracker((View.create(shape),))


# *** through a view by the number of an element


def _indices(number: sint, sizes: Sequence[sint]) -> list[sint]:
    """The row-major digits of a number; the first is not wrapped: no number reaches the product of sizes."""
    indices: list[sint] = []
    step: sint = 1
    for axis in range(len(sizes) - 1, -1, -1):
        place = quotient(number, step)
        indices.append(remainder(place, sizes[axis]) if axis else place)
        step = mul(step, sizes[axis])
    indices.reverse()
    return indices


def _through(view: View, number: UOp) -> tuple[UOp, list[UOp]]:
    """The element with this row-major number: its number in the buffer, the conditions that there is one."""
    if view.contiguous:
        return number, []
    runs, offset = view.runs()
    sizes = [run.size for run in runs]
    places = [index.as_index(p) for p in _indices(index.as_sint(number), sizes)]
    spans = tuple([(run.begin, run.end) for run in runs])
    moved = number_at(places, [run.stride for run in runs], offset)
    return moved, conditions_within(places, spans, sizes)


# *** two views as one


def _stacked(views: tuple[View, ...], top: View) -> tuple[View, ...]:
    """The views with `top` on them, joined with those below as far as possible."""
    while views:
        joined = _joined(views[-1], top)
        if joined is None:
            return (*views, top)
        views, top = views[:-1], joined
    return (top,)


@functools.lru_cache(CACHED)
def _joined(lower: View, upper: View) -> View | None:
    """One view that says what `upper` on `lower` says; None where we find none.

    Only the places that `upper` leaves valid count, so these are cut out, joined, and padded again.
    """
    if upper.is_empty or lower.contiguous:
        return upper
    if upper.is_hidden or lower.is_hidden:
        return hidden(upper.shape)
    if upper.mask is None:
        whole = (
            lower.reshape(upper.shape) if upper.contiguous and resolve_equal(upper.size, lower.size) else None
        )
        return whole or _joined_unmasked(lower, upper)
    sizes = [sub(end, begin) for begin, end in upper.mask]
    begins = [begin for begin, _ in upper.mask]
    cut = View.create(sizes, upper.strides, add(upper.offset, _dot(begins, upper.strides)))
    joined = _joined(lower, cut)
    if joined is None:
        return None
    amounts = tuple(
        (begin, sub(size, end)) for (begin, end), size in zip(upper.mask, upper.shape, strict=True)
    )
    return joined.pad(amounts)


def _joined_unmasked(lower: View, upper: View) -> View | None:
    """The same, where `upper` has no mask.

    A step along an axis of `upper` moves some way along each run of `lower`. If all steps together never
    leave a run, the row-major digits of an element's number are linear in the index, and so is its place.
    """
    runs, offset = lower.runs()
    sizes = [run.size for run in runs]
    origin = _indices(upper.offset, sizes)
    ways = []  # for each axis of `upper`: how far one step moves along each run
    for size, stride in zip(upper.shape, upper.strides, strict=True):
        stepped = origin if size == 1 or stride == 0 else _indices(add(upper.offset, stride), sizes)
        ways.append([sub(after, before) for after, before in zip(stepped, origin, strict=True)])
    moves = [[way[r] for way in ways] for r in range(len(runs))]
    whole: Mask = tuple((0, size) for size in upper.shape)
    for r, size in enumerate(sizes):
        if not _inside(_extent(origin[r], moves[r], whole), 0, size):
            return None
    mask = whole
    # runs that one axis moves along come first: it is narrowed by their masks, and others may then pass
    for r in sorted(range(len(runs)), key=lambda r: sum(move != 0 for move in moves[r])):
        run = runs[r]
        if run.masked and not _inside(_extent(origin[r], moves[r], mask), run.begin, run.end):
            narrowed = _narrowed(sub(run.begin, origin[r]), sub(run.end, origin[r]), moves[r], mask)
            if narrowed is None:
                return None
            mask = narrowed
            if mask == _nowhere(mask):
                break
    steps = [run.stride for run in runs]
    strides = [_dot(way, steps) for way in ways]
    return View.create(
        upper.shape, strides, add(offset, _dot(origin, steps)), None if mask is whole else mask
    )


def _dot(a: Sequence[sint], b: Sequence[sint]) -> sint:
    total: sint = 0
    for x, y in zip(a, b, strict=True):
        total = add(total, mul(x, y))
    return total


def _extent(origin: sint, moves: Sequence[sint], spans: Sequence[Span]) -> Span | None:
    """The least and greatest `origin + moves · index` in the intervals; None where a sign is unknown."""
    low = high = origin
    for move, (begin, end) in zip(moves, spans, strict=True):
        if move == 0:
            continue
        first, last = mul(move, begin), mul(move, sub(end, 1))
        if vmin(move) >= 0:
            low, high = add(low, first), add(high, last)
        elif vmax(move) <= 0:
            low, high = add(low, last), add(high, first)
        else:
            return None
    return low, high


def _inside(extent: Span | None, begin: sint, end: sint) -> bool:
    """Whether all from the least to the greatest are certainly in [begin, end)."""
    return extent is not None and at_most(begin, extent[0]) and at_most(add(extent[1], 1), end)


def _narrowed(low: sint, high: sint, moves: Sequence[sint], spans: Mask) -> Mask | None:
    """The intervals of the index where `low <= moves · index < high`; None where we see no such box.

    The axis with the largest step decides. Where it stands at one place only, the next decides, and so on.
    """
    axes = [axis for axis, move in enumerate(moves) if move != 0]
    if not axes:
        return _nowhere(spans) if spans and (at_most(1, low) or at_most(high, 0)) else None
    if len(axes) == 1 and isinstance(step := moves[axes[0]], int):
        return _with_span(spans, axes[0], _between(low, high, step))
    axes.sort(key=lambda axis: -abs(vmax(moves[axis])))
    while axes:
        axis = axes.pop(0)
        step = moves[axis]
        rest = _extent(0, [moves[a] for a in axes], [spans[a] for a in axes])
        if not isinstance(step, int) or rest is None:
            return None
        least, most = rest
        some = _with_span(spans, axis, _between(sub(low, most), sub(high, least), step))
        every = _with_span(spans, axis, _between(sub(low, least), sub(high, most), step))
        if some == every:
            return some
        begin, end = some[axis]
        if sub(end, begin) != 1:
            return None
        spans, low, high = some, sub(low, mul(step, begin)), sub(high, mul(step, begin))
    return None


def _between(low: sint, high: sint, step: int) -> Span:
    """The whole numbers i with `low <= step*i < high`, as an interval; it may end before it begins."""
    if step > 0:
        return quotient(add(low, step - 1), step), quotient(add(high, step - 1), step)
    return add(quotient(sub(0, high), -step), 1), add(quotient(sub(0, low), -step), 1)


def _with_span(spans: Mask, axis: int, span: Span) -> Mask:
    """The intervals, that of one axis cut to `span`; all empty where nothing is left."""
    low, high = smax(span[0], spans[axis][0]), smin(span[1], spans[axis][1])
    if at_most(high, low):
        return _nowhere(spans)
    return (*spans[:axis], (low, smax(low, high)), *spans[axis + 1 :])


def _nowhere(spans: Mask) -> Mask:
    return tuple((0, 0) for _ in spans)


# *** cached questions


@functools.lru_cache(CACHED)
def _real_strides(tracker: ShapeTracker, ignore_valid: bool) -> tuple[sint | None, ...]:
    view = tracker.views[0]
    if len(tracker.views) == 1 and (ignore_valid or view.mask is None):
        return view.strides
    ranges = ranges_over(tracker.shape)
    number, valid = tracker.indexed(ranges)
    checked = set() if ignore_valid else set(valid.toposort())
    return tuple(None if place in checked else _step_of(place, number) for place in ranges)


def _step_of(place: UOp, number: UOp) -> sint | None:
    """What the number grows by where the place, a range or a constant, grows by 1; None where that varies."""
    total: sint = 0
    if place.op is not Ops.RANGE:
        return total
    for monomial, coefficient in index.terms_of(number)[0].items():
        below = [atom for atom in monomial if place in atom.toposort()]
        if not below:
            continue
        others = [atom for atom in monomial if atom is not place]
        if len(below) > 1 or below[0] is not place or has_op(toposort(others), Ops.RANGE):
            return None
        total = add(total, mul(coefficient, prod(map(index.as_sint, others))))
    return total


@functools.lru_cache(CACHED)
def _unbind(tracker: ShapeTracker) -> tuple[ShapeTracker, dict[UOp, int]]:
    values: dict[UOp, int] = {}
    views = []
    for view in tracker.views:
        spans = view.mask or ()
        mask = tuple((unbound(begin, values), unbound(end, values)) for begin, end in spans) or None
        shape = tuple(unbound(size, values) for size in view.shape)
        strides = tuple(unbound(stride, values) for stride in view.strides)
        views.append(View.create(shape, strides, unbound(view.offset, values), mask))
    return (ShapeTracker(views), values) if values else (tracker, values)


def unbound(value: sint, values: dict[UOp, int]) -> sint:
    """A size with each bound Variable replaced by the Variable, whose value is noted in `values`."""
    if isinstance(value, int):
        return value
    bound = [node for node in value.toposort() if node.op is Ops.BIND]
    for node in bound:
        variable, number = node.unbind()
        if values.setdefault(variable, number) != number:
            raise ValueError(
                f"Variable {variable.arg[0]} is bound to {values[variable]} and to {number} at once"
            )
    if not bound:
        return value
    mapping = {node: node.src[0] for node in bound}
    return as_size(index.substitute((value,), mapping)[value])

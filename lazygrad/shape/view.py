"""One view of memory: which element of a flat buffer stands at each index of a shape.

The element at (i, j, ...) is number `offset + i*strides[0] + j*strides[1] + ...` of the buffer. An index
outside of the `mask` has no element: it reads zero. The movements are methods; `reshape` answers None where
one view can not say it, and then a ShapeTracker stacks a second view on the first.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..dtype import dtypes
from ..ir import index
from ..ir.args import AxisType, RangeArg
from ..ir.index import sint
from ..ir.ops import Ops
from ..ir.uop import UOp
from .sizes import Shape, add, mul, prod, quotient, remainder, resolve_equal, smax, smin, sub, vmax

Mask = tuple[tuple[sint, sint], ...]
#: How many results each of the caches below keeps.
CACHED = 8192


class Run(NamedTuple):
    """Neighbouring axes that are walked as one: its size, its stride, and the valid interval [begin, end)."""

    size: sint
    stride: sint
    begin: sint
    end: sint

    @property
    def masked(self) -> bool:
        return not (resolve_equal(self.begin, 0) and resolve_equal(self.end, self.size))


class View:
    """One way to look at flat memory. Make it with `View.create`; it never changes.

    shape       the size of each axis
    strides     how many elements one step along each axis moves; 0 repeats
    offset      the element at index (0, 0, ...)
    mask        the interval [begin, end) of each axis that has elements; None where all do
    contiguous  whether it is all of the memory, in order
    """

    __slots__ = ("_hash", "contiguous", "mask", "offset", "shape", "strides")
    shape: Shape
    strides: Shape
    offset: sint
    mask: Mask | None
    contiguous: bool
    _hash: int

    @staticmethod
    def create(
        shape: Sequence[sint],
        strides: Sequence[sint] | None = None,
        offset: sint = 0,
        mask: Mask | None = None,
    ) -> View:
        """The canonical view: an axis that never steps has stride 0, a mask that hides nothing is None."""
        return _create(tuple(shape), None if strides is None else tuple(strides), offset, mask)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, View) and self._hash == other._hash and self._fields() == other._fields()

    def _fields(self) -> tuple[Shape, Shape, sint, Mask | None]:
        return self.shape, self.strides, self.offset, self.mask

    def __repr__(self) -> str:
        return (
            f"View(shape={self.shape!r}, strides={self.strides!r}, offset={self.offset!r}, "
            f"mask={self.mask!r}, contiguous={self.contiguous!r})"
        )

    def __reduce__(self) -> Any:
        return _create, self._fields()

    # *** questions

    @property
    def size(self) -> sint:
        return prod(self.shape)

    @property
    def is_empty(self) -> bool:
        """Whether the shape has no index at all."""
        return 0 in self.shape

    @property
    def is_hidden(self) -> bool:
        """Whether the mask hides every element."""
        return self.mask is not None and any(begin == end for begin, end in self.mask)

    def real_size(self) -> sint:
        """The number of elements that the memory must have: one more than the last that is read."""
        if self.is_empty or self.is_hidden:
            return 0
        last = self.offset
        for axis, (stride, size) in enumerate(zip(self.strides, self.shape, strict=True)):
            begin, end = (0, size) if self.mask is None else self.mask[axis]
            if vmax(stride) <= 0:
                last = add(last, mul(stride, begin))
            else:
                last = add(last, mul(stride, sub(end, 1)))
        return add(last, 1)

    def index_of(self, indices: Sequence[UOp]) -> UOp:
        """The number of the element at these indices."""
        return number_at(indices, self.strides, self.offset)

    def validity_of(self, indices: Sequence[UOp]) -> list[UOp]:
        """The conditions under which these indices (inside of the shape) have an element."""
        if self.mask is None:
            return []
        return conditions_within(indices, self.mask, self.shape)

    def to_indexed_uops(self, indices: Sequence[UOp] | None = None) -> tuple[UOp, UOp]:
        """(the element's number, whether there is one) at these indices, or at fresh ranges."""
        indices = ranges_over(self.shape) if indices is None else indices
        return self.index_of(indices), index.all_of(self.validity_of(indices))

    # *** movement

    def permute(self, order: Sequence[int]) -> View:
        """Axis i of the result is axis `order[i]` of this one."""
        return _create(
            tuple(self.shape[axis] for axis in order),
            tuple(self.strides[axis] for axis in order),
            self.offset,
            None if self.mask is None else tuple(self.mask[axis] for axis in order),
        )

    def expand(self, shape: Sequence[sint]) -> View:
        """Axes of size 1 repeat to their new size."""
        mask = self.mask
        if mask is not None:
            pairs = zip(self.shape, shape, mask, strict=True)
            mask = tuple(
                (begin, end) if resolve_equal(old, new) else (0, mul(sub(end, begin), new))
                for old, new, (begin, end) in pairs
            )
        return _create(tuple(shape), self.strides, self.offset, mask)

    def pad(self, amounts: Sequence[tuple[sint, sint]]) -> View:
        """(before, after) masked places around each axis."""
        spans = tuple(
            (sub(0, before), add(size, after))
            for size, (before, after) in zip(self.shape, amounts, strict=True)
        )
        inside = tuple(
            (before, add(before, size)) for size, (before, _) in zip(self.shape, amounts, strict=True)
        )
        return self._window(spans, inside)

    def shrink(self, spans: Sequence[tuple[sint, sint]]) -> View:
        """Only [begin, end) of each axis."""
        return self._window(tuple(spans), None)

    def _window(self, spans: Mask, inside: Mask | None) -> View:
        """The part [begin, end) of each axis, which may reach out of it; then `inside` says where it is."""
        offset = self.offset
        for (begin, _), stride in zip(spans, self.strides, strict=True):
            if begin != 0 and stride != 0:
                offset = add(offset, mul(begin, stride))
        shape = tuple(sub(end, begin) for begin, end in spans)
        mask = inside
        if self.mask is not None:
            moved = []
            for axis, ((begin, _), (low, high)) in enumerate(zip(spans, self.mask, strict=True)):
                first, last = (0, shape[axis]) if inside is None else inside[axis]
                low, high = smax(sub(low, begin), first), smin(sub(high, begin), last)
                moved.append((low, smax(low, high)))
            mask = tuple(moved)
        return _create(shape, self.strides, offset, mask)

    def flip(self, axes: Sequence[int]) -> View:
        """The axes run backwards: their numbers, or a bool for each axis of the shape."""
        if axes and all(isinstance(axis, bool) for axis in axes):
            axes = [place for place, backwards in enumerate(axes) if backwards]
        offset, strides = self.offset, list(self.strides)
        mask = None if self.mask is None else list(self.mask)
        for axis in axes:
            size = self.shape[axis]
            offset = add(offset, mul(sub(size, 1), strides[axis]))
            strides[axis] = mul(strides[axis], -1)
            if mask is not None:
                begin, end = mask[axis]
                mask[axis] = (sub(size, end), sub(size, begin))
        return _create(self.shape, tuple(strides), offset, None if mask is None else tuple(mask))

    def reshape(self, shape: Sequence[sint]) -> View | None:
        """The same elements in row-major order, in a shape of the same size; None where one view can not."""
        shape = tuple(shape)
        if shape == self.shape:
            return self
        if self.contiguous:
            return _create(shape)
        return _reshape(self, shape)

    def runs(self) -> tuple[tuple[Run, ...], sint]:
        """The axes, joined with neighbours where they are walked as one; the offset that goes with these."""
        return _runs(self)


def number_at(places: Sequence[UOp], strides: Sequence[sint], offset: sint) -> UOp:
    """The number of an element: a step along each axis for each place, from the offset on."""
    steps = [index.mul(p, index.as_index(step)) for p, step in zip(places, strides, strict=True) if step != 0]
    return index.add(*steps, index.as_index(offset))


def conditions_within(places: Sequence[UOp], spans: Mask, sizes: Sequence[sint]) -> list[UOp]:
    """The conditions under which places, inside of the sizes, are in the intervals."""
    conditions = []
    for place, (begin, end), size in zip(places, spans, sizes, strict=True):
        if not resolve_equal(begin, 0):
            conditions.append(index.logical_not(index.less(place, index.as_index(begin))))
        if not resolve_equal(end, size):
            conditions.append(index.less(place, index.as_index(end)))
    return conditions


def ranges_over(shape: Sequence[sint]) -> list[UOp]:
    """A fresh index for each axis, `ridx0`, `ridx1`, ...; plain 0 for an axis of size 1."""
    return [
        index.const(0)
        if size == 1
        else UOp(Ops.RANGE, dtypes.index, (index.as_index(size),), RangeArg(axis, AxisType.REDUCE))
        for axis, size in enumerate(shape)
    ]


def strides_of(shape: Shape) -> Shape:
    """The strides of row-major order; 0 for an axis of size 1."""
    strides: list[sint] = []
    step: sint = 1
    for size in reversed(shape):
        strides.append(0 if size == 1 else step)
        step = mul(step, size)
    return tuple(reversed(strides))


def hidden(shape: Shape) -> View | None:
    """The view whose mask hides everything; None for a scalar, which has no axis that could say so."""
    return _create(shape, None, 0, ((0, 0),) * len(shape)) if shape else None


@functools.lru_cache(CACHED)
def _create(shape: Shape, strides: Shape | None = None, offset: sint = 0, mask: Mask | None = None) -> View:
    if 0 in shape:  # no index at all: nothing to tell apart
        return _new(shape, (0,) * len(shape), 0, None, True)
    rows = strides_of(shape)
    if strides is None:
        strides = rows
    elif 1 in shape:
        strides = tuple(0 if size == 1 else stride for size, stride in zip(shape, strides, strict=True))
    if mask is not None:
        if any(begin == end for begin, end in mask):
            return _new(shape, (0,) * len(shape), 0, ((0, 0),) * len(shape), False)
        if all(
            resolve_equal(begin, 0) and resolve_equal(end, size)
            for (begin, end), size in zip(mask, shape, strict=True)
        ):
            mask = None
        else:
            # along an axis with one valid place nothing ever steps
            once = tuple(sub(end, begin) == 1 for begin, end in mask)
            for (begin, _), stride, one in zip(mask, strides, once, strict=True):
                if one and stride != 0:
                    offset = add(offset, mul(begin, stride))
            strides = tuple(0 if one else stride for stride, one in zip(strides, once, strict=True))
    return _new(shape, strides, offset, mask, mask is None and offset == 0 and strides == rows)


def _new(shape: Shape, strides: Shape, offset: sint, mask: Mask | None, contiguous: bool) -> View:
    view = object.__new__(View)
    view.shape, view.strides, view.offset, view.mask, view.contiguous = (
        shape,
        strides,
        offset,
        mask,
        contiguous,
    )
    view._hash = hash((shape, strides, offset, mask))
    return view


# *** reshape


@functools.lru_cache(CACHED)
def _runs(view: View) -> tuple[tuple[Run, ...], sint]:
    offset = view.offset
    runs: list[Run] = []
    mask = view.mask or tuple((0, size) for size in view.shape)
    for size, stride, (begin, end) in zip(view.shape, view.strides, mask, strict=True):
        if size == 1 and begin == 0 and end == 1:
            continue
        run = Run(size, stride, begin, end)
        if runs:
            joined = _joined(runs[-1], run)
            if joined is not None:
                outer, run = runs.pop(), joined
                if outer.stride == 0 and stride != 0:
                    # one valid row, whose place the offset held: now the stride steps to it
                    offset = sub(offset, mul(mul(outer.begin, size), stride))
        runs.append(run)
    return tuple(runs), offset


def _joined(outer: Run, inner: Run) -> Run | None:
    """The two neighbours as one, if stepping off the inner's end is a step of the outer, in the mask too."""
    size = mul(outer.size, inner.size)
    if sub(outer.end, outer.begin) == 1:
        # only one row of the outer is valid: the interval of the inner, inside of that row
        if outer.stride != 0:
            return None
        row = mul(outer.begin, inner.size)
        return Run(size, inner.stride, add(row, inner.begin), add(row, inner.end))
    if inner.masked or outer.stride != mul(inner.stride, inner.size):
        return None
    return Run(size, inner.stride, mul(outer.begin, inner.size), mul(outer.end, inner.size))


def merge_dims(shape: Shape, strides: Shape, mask: Mask | None = None) -> tuple[tuple[sint, sint, sint], ...]:
    """The axes joined where they are walked as one: (size, stride, size again or 0 where it only repeats)."""
    runs, _ = View.create(shape, strides, 0, mask).runs()
    return tuple((run.size, run.stride, run.size if run.stride != 0 else 0) for run in runs)


@functools.lru_cache(CACHED)
def _reshape(view: View, shape: Shape) -> View | None:
    """Each run, from the last, is cut into the new sizes whose product it is."""
    if view.is_empty or 0 in shape:
        return _create(shape)
    if view.is_hidden:
        return hidden(shape)
    runs, offset = view.runs()
    strides: list[sint] = []
    mask: list[tuple[sint, sint]] = []
    left = len(shape)  # the new axes before this one are not done yet
    for run in reversed(runs):
        if run.size == 1:  # hidden under some value of a Variable only; an axis of its own must say that
            return None
        size: sint = 1
        first = left
        while not resolve_equal(size, run.size):
            if first == 0 or (isinstance(size, int) and isinstance(run.size, int) and size > run.size):
                return None
            first -= 1
            size = mul(size, shape[first])
        cut = _cut(run, shape[first:left])
        if cut is None:
            return None
        strides.extend(reversed([stride for stride, _, _ in cut]))
        mask.extend(reversed([(begin, end) for _, begin, end in cut]))
        left = first
    if any(size != 1 for size in shape[:left]):
        return None
    strides.extend([0] * left)
    mask.extend([(0, 1)] * left)
    return _create(shape, tuple(reversed(strides)), offset, tuple(reversed(mask)))


def _cut(run: Run, shape: Shape) -> list[tuple[sint, sint, sint]] | None:
    """(stride, begin, end) of each axis of `shape`, cut from the run; None where the mask forbids that."""
    begin, end = run.begin, run.end
    masked = run.masked
    axes: list[tuple[sint, sint, sint]] = []
    inner = run.size
    for axis, size in enumerate(shape):
        inner = prod(shape[axis + 1 :])
        stride = mul(run.stride, inner)
        if not masked:
            axes.append((stride, 0, size))
        elif resolve_equal(remainder(begin, inner), 0) and resolve_equal(remainder(end, inner), 0):
            # whole rows are valid, and the axes below are not masked
            axes.append((stride, quotient(begin, inner), quotient(end, inner)))
            masked = False
        else:
            row = quotient(begin, inner)
            if not resolve_equal(row, quotient(sub(end, 1), inner)):
                return None
            axes.append((stride, row, add(row, 1)))
            begin, end = sub(begin, mul(row, inner)), sub(end, mul(row, inner))
    return axes

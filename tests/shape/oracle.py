"""What the tests of shapes share: movements of numpy arrays and of trackers, and what a tracker shows."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from lazygrad.ir import Ops, UOp
from lazygrad.ir.index import evaluate
from lazygrad.ir.uop import toposort
from lazygrad.shape import ShapeTracker, View
from lazygrad.shape.view import ranges_over

#: A movement: its name and what it is given.
Step = tuple[str, Any]


def move(array: np.ndarray, step: Step) -> np.ndarray:
    """The movement as numpy does it."""
    name, arg = step
    if name == "reshape":
        return array.reshape(arg)
    if name == "permute":
        return array.transpose(arg)
    if name == "expand":
        return np.broadcast_to(array, arg)
    if name == "pad":
        return np.pad(array, arg) if array.ndim else array
    if name == "shrink":
        return array[tuple(slice(*span) for span in arg)]
    assert name == "flip"
    return np.flip(array, arg)


def apply(tracker: ShapeTracker, step: Step) -> ShapeTracker:
    return getattr(tracker, step[0])(step[1])


def numbers(tracker: ShapeTracker | View, bound: dict[UOp, int] | None = None) -> np.ndarray:
    """The buffer's element at each place of the shape, -1 where masked: by evaluating the expressions."""
    bound = bound or {}
    shape = tuple(s if isinstance(s, int) else evaluate(s, bound) for s in tracker.shape)
    ranges = ranges_over(tracker.shape)
    number, valid = tracker.to_indexed_uops()
    found = np.full(shape, -1)
    for place in itertools.product(*map(range, shape)):
        values = {**dict(zip(ranges, place, strict=True)), **bound}
        if evaluate(valid, values):
            found[place] = evaluate(number, values)
    return found


_VECTOR = {
    Ops.ADD: np.add, Ops.MUL: np.multiply, Ops.IDIV: np.floor_divide, Ops.MOD: np.mod, Ops.MAX: np.maximum,
    Ops.MIN: np.minimum, Ops.CMPLT: np.less, Ops.CMPNE: np.not_equal, Ops.CMPEQ: np.equal,
    Ops.AND: np.logical_and,
}  # fmt: skip


def numbers_at_once(tracker: ShapeTracker) -> np.ndarray:
    """`numbers` where sizes are ints: numpy does each operation for all places at once."""
    ranges = ranges_over(tracker.shape)
    number, valid = tracker.indexed(ranges)
    done: dict[UOp, Any] = dict(zip(ranges, np.indices(tracker.shape), strict=True))
    for node in toposort((number, valid)):
        if node.op is Ops.CONST:
            done[node] = node.arg
        elif node not in done:
            done[node] = _VECTOR[node.op](*(done[s] for s in node.src))
    return np.where(np.broadcast_to(done[valid], tracker.shape), done[number], -1)


def walk(tracker: ShapeTracker) -> np.ndarray:
    """The same by plain arithmetic on the views, without any expression. Sizes are ints."""
    total = int(np.prod(tracker.shape, dtype=int))
    flat, valid = np.arange(total), np.ones(total, bool)
    for view in reversed(tracker.views):
        number = np.full(total, view.offset)
        mask = view.mask or tuple((0, size) for size in view.shape)
        for size, stride, (begin, end) in list(zip(view.shape, view.strides, mask, strict=True))[::-1]:
            flat, place = np.divmod(flat, max(size, 1))
            number += place * stride
            valid &= (begin <= place) & (place < end)
        flat = number
    return np.where(valid, flat, -1).reshape(tracker.shape)


def factorings(size: int, ranks: int = 3) -> list[tuple[int, ...]]:
    """Every shape of up to `ranks` axes above 1 with this many elements; and one with an axis of size 1."""
    found: list[tuple[int, ...]] = [(size,)]
    for rank in range(2, ranks + 1):
        sizes = range(2, size)
        found += [s for s in itertools.product(sizes, repeat=rank) if int(np.prod(s)) == size]
    return [*found, (1, size)]


def steps(shape: tuple[int, ...]) -> Iterator[Step]:
    """A set of movements of this shape that has every kind, and the corner cases of each."""
    rank, size = len(shape), int(np.prod(shape, dtype=int))
    if 0 < size <= 12:
        yield from (("reshape", s) for s in factorings(size) if s != shape)
    elif size:
        yield "reshape", (size,)
    if rank > 1:
        yield "permute", tuple(range(rank))[::-1]
    if rank > 2:
        yield "permute", (1, 0, *range(2, rank))
    if 1 in shape:
        yield "expand", tuple(2 if s == 1 else s for s in shape)
    if rank:
        yield "flip", (rank - 1,)
        yield "pad", ((1, 0), *((0, 0) for _ in shape[1:]))
        yield "pad", (*((0, 0) for _ in shape[1:]), (1, 1))
        yield "flip", tuple(range(rank))
    if rank and shape[0] > 1:
        yield "shrink", ((1, shape[0]), *((0, s) for s in shape[1:]))
    if rank and shape[-1] > 2:
        yield "shrink", (*((0, s) for s in shape[:-1]), (1, 2))


def fits_one_view(found: np.ndarray) -> bool:
    """Whether some single view shows these: the valid places form a box in which steps are constant."""
    places = np.argwhere(found >= 0)
    if not len(places):
        return True
    box = tuple(slice(a, b + 1) for a, b in zip(places.min(0), places.max(0), strict=True))
    inside = found[box]
    if (inside < 0).any():
        return False
    origin = inside[(0,) * inside.ndim]
    expected = np.full(inside.shape, origin)
    for axis, size in enumerate(inside.shape):
        if size > 1:
            stride = inside[tuple(int(a == axis) for a in range(inside.ndim))] - origin
            expected = (
                expected
                + np.arange(size).reshape([-1 if a == axis else 1 for a in range(inside.ndim)]) * stride
            )
    return bool((inside == expected).all())

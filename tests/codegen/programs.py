"""Random kernel ASTs for tests: elementwise values, reductions, views with masks, gathers, several stores."""

from __future__ import annotations

import random
from typing import Any

from lazygrad.dtype import DType, dtypes
from lazygrad.ir.ops import Ops
from lazygrad.ir.uop import UOp
from lazygrad.shape import ShapeTracker

from .kernels import const, gather, load, move, plain, reduce, sink, spread, store, view

Shape = tuple[int, ...]
BINARY = (Ops.ADD, Ops.MUL, Ops.SUB, Ops.MAX, Ops.MIN)
REDUCTIONS = (Ops.ADD, Ops.ADD, Ops.MAX, Ops.MIN)


class Programs:
    """Makes one kernel from a seed. Values are small whole numbers in double and int: sums are exact.

    real  the float in the place of double, for what has none
    """

    #: How long the axes of an output are.
    SIZES: tuple[int, ...] = (1, 2, 3, 4)

    def __init__(self, seed: int, real: DType = dtypes.double) -> None:
        self.real = real
        self.rng = random.Random(seed)
        self.made: dict[tuple[Shape, DType], list[UOp]] = {}
        self.buffers = 0

    def kernel(self) -> UOp:
        rng = self.rng
        shape = tuple(rng.choice(self.SIZES) for _ in range(rng.randint(1, 3)))
        count = rng.choice((1, 1, 2, 3))
        self.buffers = count
        stores = []
        for number in range(count):
            own = shape if number == 0 else tuple(s if rng.random() < 0.6 else 1 for s in shape)
            stores.append(store(number, self.value(own, self.dtype(), rng.randint(1, 5))))
        return sink(*stores)

    def dtype(self) -> DType:
        return self.rng.choice((self.real, dtypes.int))

    def value(self, shape: Shape, dtype: DType, depth: int) -> UOp:
        """A value; now and then one that is there already."""
        known = self.made.setdefault((shape, dtype), [])
        if known and self.rng.random() < 0.25:
            return self.rng.choice(known)
        made = self._value(shape, dtype, depth)
        known.append(made)
        return made

    def _value(self, shape: Shape, dtype: DType, depth: int) -> UOp:
        rng = self.rng
        if depth <= 0:
            return self.leaf(shape, dtype)
        kind = rng.choice(("binary", "binary", "where", "cast", "view", "reduce", "reduce", "leaf", "gather"))
        if kind == "binary":
            left, right = self.value(shape, dtype, depth - 1), self.value(shape, dtype, depth - 1)
            return left.alu(rng.choice(BINARY), right)
        if kind == "where":
            a, b = self.value(shape, dtype, depth - 1), self.value(shape, dtype, depth - 2)
            return (a < b).where(b, self.value(shape, dtype, depth - 2))
        if kind == "cast":
            other = dtypes.int if dtype is self.real else self.real
            inner = self.value(shape, other, depth - 1)
            return (inner if other is dtypes.int else self.small(inner)).cast(dtype)
        if kind == "view":
            tracker, below = self.tracker(shape)
            return move(self.value(below, dtype, depth - 1), tracker)
        if kind == "reduce":
            return self.reduction(shape, dtype, depth - 1)
        if kind == "gather":
            number, size = self.fresh(), rng.randint(1, 9)
            return gather(number, size, self.value(shape, dtypes.int, depth - 1), dtype)
        return self.leaf(shape, dtype)

    def small(self, value: UOp) -> UOp:
        """Clamped to what an int holds."""
        return value.alu(Ops.MAX, const(-100.0, value)).alu(Ops.MIN, const(100.0, value))

    def reduction(self, shape: Shape, dtype: DType, depth: int) -> UOp:
        axes = [axis for axis in range(len(shape)) if self.rng.random() < 0.5] or [len(shape) - 1]
        wide = tuple(
            self.rng.choice((1, 2, 3, 4)) if axis in axes and size == 1 else size
            for axis, size in enumerate(shape)
        )
        reduced = reduce(self.value(wide, dtype, depth), self.rng.choice(REDUCTIONS), *axes)
        narrow = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
        return reduced if narrow == shape else spread(reduced, *shape)

    def fresh(self) -> int:
        self.buffers += 1
        return self.buffers - 1

    def leaf(self, shape: Shape, dtype: DType) -> UOp:
        tracker, _ = self.tracker(shape)
        kind = self.rng.choice(("load", "load", "load", "const", "iota"))
        if kind == "load":
            return load(self.fresh(), tracker, dtype, max(tracker.real_size(), 1))
        if kind == "const":
            return UOp(Ops.CONST, dtype, (view(tracker),), self.rng.randint(-3, 3))
        number = UOp(Ops.IOTA, dtypes.int, (view(tracker),))
        return number if dtype is dtypes.int else number.cast(dtype)

    def tracker(self, shape: Shape) -> tuple[ShapeTracker, Shape]:
        """Some movements that end in this shape, and the shape they start from."""
        steps: list[tuple[str, Any]] = []
        below = shape
        for _ in range(self.rng.randint(0, 3)):
            name, argument, below = self.step_before(below)
            steps.append((name, argument))
        tracker = plain(*below)
        for name, argument in reversed(steps):
            tracker = getattr(tracker, name)(argument)
        assert tracker.shape == shape
        return tracker, below

    def step_before(self, shape: Shape) -> tuple[str, Any, Shape]:
        """A movement that makes this shape: (its name, its argument, the shape it starts from)."""
        rng, rank = self.rng, range(len(shape))
        kind = rng.choice(("permute", "expand", "pad", "shrink", "flip", "reshape"))
        if kind == "permute":
            order = list(rank)
            rng.shuffle(order)
            before = [0] * len(shape)
            for axis, source in enumerate(order):
                before[source] = shape[axis]
            return "permute", tuple(order), tuple(before)
        if kind == "expand":
            return "expand", shape, tuple(1 if rng.random() < 0.5 else size for size in shape)
        if kind == "pad":
            amounts = []
            for size in shape:
                before = rng.randint(0, min(size - 1, 2))
                amounts.append((before, rng.randint(0, min(size - 1 - before, 2))))
            return "pad", tuple(amounts), tuple(s - b - a for s, (b, a) in zip(shape, amounts, strict=True))
        if kind == "shrink":
            spans = tuple((b, b + size) for size in shape for b in (rng.randint(0, 2),))
            return "shrink", spans, tuple(end + rng.randint(0, 1) for _, end in spans)
        if kind == "flip":
            return "flip", tuple(axis for axis in rank if rng.random() < 0.5), shape
        total = 1
        for size in shape:
            total *= size
        if total == 12:
            return "reshape", shape, rng.choice(((2, 6), (3, 4), (6, 2), (12,), (2, 3, 2)))
        cut = rng.choice([d for d in range(1, total + 1) if total % d == 0])
        return "reshape", shape, (cut, total // cut)

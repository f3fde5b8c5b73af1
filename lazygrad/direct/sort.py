"""Sorts, kernels of their own kind: keys (form 2) become a linear program (form 7) that sorts rows by digits.

The keys are unsigned integers, and the result is their order: the places of the least key, of the next, and
so on; equal keys stay in order. (What makes a key of a float, and what reads the values in that order, are
kernels like any other.) Least significant digit first, every pass puts the elements in order by one digit:

    for each row:
      count how often each digit of each place occurs          (one walk over the keys)
      for each place:
        running sums of its counts: where the elements with that digit begin
        for each element, in the order so far: next place of its digit, and move it there

All in counted loops: nothing depends on a comparison, and the time depends on the number of elements alone.
An element travels as one word, key and place; the last pass stores the place only.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ..codegen.direct_kernels import DIRECT_KERNELS, DirectKernel, DirectProgram
from ..dtype import DType, dtypes
from ..ir.args import Array, AxisType, RangeArg, SortRecord
from ..ir.ops import Ops
from ..ir.rewrite import resolve
from ..ir.uop import UOp
from ..renderer import Estimates, Renderer
from ..shape import shape_of

#: Bits of a digit; measured with a million keys: more make too many places to write to for the caches.
DIGIT = 8
#: Rows up to this size have digits of half the bits: clearing and summing the counts would outweigh the rest.
SHORT_ROW = 64
#: Bits of a place in the word that it shares with its key.
PLACE_BITS = 32
WORD, PLACE = dtypes.uint64, dtypes.int32


class SortPlan(NamedTuple):
    """How rows of keys are sorted: the digits, and what is where in the working memory (in words)."""

    rows: int
    size: int
    digit: int
    passes: int
    packed: bool  # key and place in one word

    @staticmethod
    def of(shape: tuple[int, ...], keys: DType) -> SortPlan:
        size, bits = shape[-1], keys.itemsize * 8
        digit = DIGIT // 2 if size <= SHORT_ROW else DIGIT
        return SortPlan(math.prod(shape[:-1]), size, digit, -(-bits // digit), bits <= 64 - PLACE_BITS)

    @property
    def counts(self) -> int:
        return self.passes << self.digit

    def elements(self, number: int) -> int:
        """Where the elements are after pass `number`, which is not the last."""
        return self.counts + (number % 2) * self.size

    def positions(self, number: int) -> int:
        """Where their places are, if these are words of their own."""
        return self.counts + (2 + number % 2) * self.size

    @property
    def words(self) -> int:
        """The size of the working memory."""
        moved = min(self.passes - 1, 2) if self.packed else 4
        return self.counts + moved * self.size


def _keys(ast: UOp) -> UOp:
    """The LOAD of the keys that a kernel sorts."""
    return ast.src[0].src[2].src[0]


def plan_of(keys: UOp) -> SortPlan:
    """How keys are sorted."""
    return SortPlan.of(shape_of(keys), keys.dtype)  # type: ignore[arg-type]


def sort_name(ast: UOp) -> str:
    plan = plan_of(_keys(ast))
    return f"sort_{plan.rows}_{plan.size}"


def sort_estimate(ast: UOp) -> Estimates:
    """A few operations for each element and pass; the keys are read twice, the working memory once a pass."""
    keys = _keys(ast)
    plan = plan_of(keys)
    elements = plan.rows * plan.size
    moved = elements * (2 * keys.dtype.itemsize + PLACE.itemsize + 2 * (plan.passes - 1) * WORD.itemsize)
    return Estimates(elements * plan.passes * 8, moved)


def sort_program(ast: UOp, renderer: Renderer) -> DirectProgram:
    """The linear program of a kernel that sorts: outputs are the order and the working memory."""
    keys = _keys(ast)
    order, working = (store.src[0] for store in ast.src)
    return DirectProgram(_Program(order, working, keys.src[0], plan_of(keys)).program(), [])


class _Program:
    """The list while it is written. A node is emitted after its sources, in the innermost open loop."""

    def __init__(self, order: UOp, working: UOp, keys: UOp, plan: SortPlan) -> None:
        self.order, self.working, self.keys, self.plan = order, working, keys, plan
        self.list: dict[UOp, UOp] = {node: node for node in (order, working, keys)}
        self.ranges = 0
        self.mask = (1 << plan.digit) - 1

    def program(self) -> list[UOp]:
        plan = self.plan
        row = self.open(plan.rows)
        first = self.emit(self.word(row) * self.const(plan.size))
        self.clear()
        self.count(first)
        for number in range(plan.passes):
            self.begin_of_digits(number)
        for number in range(plan.passes):
            self.move(number, first)
        self.close(row)
        return sorted(self.list, key=lambda node: node.op not in (Ops.CONST, Ops.DEFINE_GLOBAL))

    # *** the steps

    def clear(self) -> None:
        i = self.open(self.plan.counts)
        self.store(self.working, self.word(i), self.const(0))
        self.close(i)

    def count(self, first: UOp) -> None:
        i = self.open(self.plan.size)
        key = self.emit(self.load(self.keys, first + self.word(i)).cast(WORD))
        for number in range(self.plan.passes):
            place = self.emit(self.count_of(key, number, 0))
            self.store(self.working, place, self.load(self.working, place) + self.const(1))
        self.close(i)

    def begin_of_digits(self, number: int) -> None:
        """The counts of one place become running sums of those before."""
        loop = self.range(1 << self.plan.digit)
        begin = self.emit(UOp(Ops.DEFINE_ACC, WORD, (self.const(0), loop), (number,)))
        self.emit(loop)
        place = self.emit(self.word(loop) + self.const(number << self.plan.digit))
        count = self.emit(self.load(self.working, place))
        self.store(self.working, place, begin)
        self.emit(UOp(Ops.ASSIGN, WORD, (begin, begin + count)))
        self.close(loop)

    def move(self, number: int, first: UOp) -> None:
        """Put the elements behind each other by one digit."""
        plan = self.plan
        last = number == plan.passes - 1
        i = self.open(plan.size)
        element, place = self.element(number, self.emit(self.word(i)), first)
        at = self.emit(self.count_of(element, number, PLACE_BITS if plan.packed else 0))
        target = self.emit(self.load(self.working, at))
        self.store(self.working, at, target + self.const(1))
        if last:
            if plan.packed:
                place = element & self.const((1 << PLACE_BITS) - 1)
            self.store(self.order, first + target, place.cast(PLACE))
        else:
            self.store(self.working, target + self.const(plan.elements(number)), element)
            if not plan.packed:
                self.store(self.working, target + self.const(plan.positions(number)), place)
        self.close(i)

    def element(self, number: int, i: UOp, first: UOp) -> tuple[UOp, UOp]:
        """The element at `i` after the passes so far, and its place (in the element itself, if packed)."""
        plan = self.plan
        if number == 0:
            key = self.emit(self.load(self.keys, first + i).cast(WORD))
            return (self.emit(key << self.const(PLACE_BITS) | i) if plan.packed else key), i
        element = self.emit(self.load(self.working, i + self.const(plan.elements(number - 1))))
        if plan.packed:
            return element, i
        return element, self.emit(self.load(self.working, i + self.const(plan.positions(number - 1))))

    def count_of(self, element: UOp, number: int, shift: int) -> UOp:
        """Where the count of an element's digit is."""
        shift += number * self.plan.digit
        digit = (element >> self.const(shift) if shift else element) & self.const(self.mask)
        return digit + self.const(number << self.plan.digit) if number else digit

    # *** writing

    def const(self, value: int) -> UOp:
        return UOp.const(WORD, value)

    def word(self, counter: UOp) -> UOp:
        return counter.cast(WORD)

    def emit(self, root: UOp) -> UOp:
        """Write a node, after those of its sources that are not written yet."""
        return resolve(root, _read_by, lambda node: node, self.list)

    def range(self, size: int) -> UOp:
        """A loop that is not opened yet."""
        kind = dtypes.int32 if size <= int(dtypes.max(dtypes.int32)) else dtypes.int64
        start, end = UOp.const(kind, 0), UOp.const(kind, size)
        self.emit(start), self.emit(end)
        self.ranges += 1
        return UOp(Ops.RANGE, kind, (start, end), RangeArg(self.ranges - 1, AxisType.LOOP))

    def open(self, size: int) -> UOp:
        return self.emit(self.range(size))

    def close(self, loop: UOp) -> None:
        self.emit(UOp(Ops.ENDRANGE, dtypes.void, (loop,)))

    def load(self, memory: UOp, place: UOp) -> UOp:
        index = UOp(Ops.INDEX, memory.dtype, (memory, place))
        return UOp(Ops.LOAD, memory.dtype.base, (index,))

    def store(self, memory: UOp, place: UOp, value: UOp) -> None:
        index = UOp(Ops.INDEX, memory.dtype, (memory, place))
        self.emit(UOp(Ops.STORE, dtypes.void, (index, value)))


def _read_by(node: UOp) -> tuple[UOp, ...]:
    """What is written before a node: of an accumulator its start, but not its loop."""
    return node.src[:1] if node.op is Ops.DEFINE_ACC else node.src


DIRECT_KERNELS[SortRecord.kind] = DirectKernel(
    "a sort",
    sort_name,
    sort_program,
    sort_estimate,
    working=lambda kernel, given: Array(WORD, (SortPlan.of(given[0].shape, given[0].dtype).words,)),
)

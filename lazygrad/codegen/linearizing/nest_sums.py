"""Long float sums as sums of sums (form 5), so that their error grows with the logarithm of their length.

A running sum is read after each addition, so its terms cannot be summed in blocks: `compensate` (form 7).

    for r in 0..2048:  acc += f(r)
becomes
    for i in 0..16:
      acc1 = 0
      for j in 0..8:
        acc2 = 0
        for k in 0..16:  acc2 += f(128*i + 16*j + k)
        acc1 += acc2
      acc += acc1

Each addition is rounded in the last place of what it makes. Where terms are alike these errors point in one
direction: those of n additions in a row come to as much as n/2 half units, those of blocks, and of blocks of
blocks, to as much as the few of each level. It costs one addition more for each block, and nothing where a
loop is no longer than one. What is nested is the loop that Opts, lanes and registers leave, whichever Opts;
but not what tensor cores add up, many products at a time: registers are full of their sums.

Where blocks do not divide a loop, the last one is shorter: the end of its loop is computed.

Some sums of sums are added up half a block later than the others (`end_late`, form 7).

Where a tile of sums fills the registers, the totals of their blocks are in memory. If all sums ended their
blocks in one turn, all would begin anew at once, and little could be multiplied and added until their totals
are stored. So half of them end their blocks in the middle of those of the others. A block has two loops then:

    for i in 0..16:                                    acc1 = 0
      acc0 = acc1 = 0                                  for i in 0..16:
      for h in 0..2:  for k in 0..16:                    acc0 = 0
        acc0 += f(i, h, k)                  becomes      for h in 0..2:
        acc1 += g(i, h, k)                                 for k in 0..16:  acc0 += ...; acc1 += ...
      total0 += acc0                                       if h == 0:  total1 += acc1; acc1 = 0
      total1 += acc1                                     total0 += acc0
                                                       total1 += acc1

The same holds for blocks of blocks. Measured with matmuls of 512 on a Zen 3, in blocks of 32 turns: they take
3 % longer than undivided, and 7 to 15 % without this.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ...dtype import DType, dtypes
from ...ir import index
from ...ir.args import RangeArg
from ...ir.linear import LinearWriter, in_loops, is_declared, iterations_of
from ...ir.nest import free_numbers
from ...ir.ops import Ops
from ...ir.rewrite import transform
from ...ir.uop import UOp
from ...ir.walks import of_op
from ...target import Target
from ..expressions.narrow import NARROW
from ..legalizing.products import is_masked_product, is_of_warps

#: How many turns of a loop add to one accumulator, and how many of its totals to the next one.
BLOCK, BLOCKS = 16, 8
#: The same where products are added to so many accumulators that their totals are in memory (`end_late`):
#: a block is a quarter of the sum within these limits, and a sum within the upper one a whole block.
CROWDED_BLOCK, CROWDED_BLOCKS = (36, 72), 16


class Piece(NamedTuple):
    """A loop in the place of a range. `separate`: what is inside of it is a sum of its own."""

    loop: UOp
    separate: bool


def nest_sums(sink: UOp, target: Target) -> UOp:
    """The kernel in which no float sum adds many times in a row to one accumulator.

    Other reductions that share a loop with such a sum go through the same blocks.
    """
    nodes = sink.toposort()
    nest = _Nest(nodes)
    beside = Counter(node.src[1:] for node in of_op(nodes, Ops.REDUCE))
    for node in nodes:
        if node.op is Ops.REDUCE and is_float_sum(node) and not is_of_warps(node.src[0]):
            nest.cut(node.src[1:], fill_registers(node.src[0], beside[node.src[1:]], target))
    return nest.rebuilt(nodes) if nest.changed else sink


def is_float_sum(node: UOp) -> bool:
    """Whether a REDUCE or SCAN adds floats."""
    return node.arg is Ops.ADD and dtypes.is_float(node.dtype.scalar_type)


def fill_registers(value: UOp, sums: int, target: Target) -> bool:
    """Whether a loop adds products to so many accumulators that no registers are left for their totals."""
    product = value.src[1] if is_masked_product(value) else value
    return product.op in (Ops.MUL, Ops.DOT) and not target.grid and 2 * sums >= target.vector_registers > 0


class _Nest:
    """The loops that take the places of ranges, and what they count together."""

    def __init__(self, nodes: Sequence[UOp]) -> None:
        self.fresh = free_numbers(nodes)[0]
        self.segments: dict[UOp, list[Piece]] = {}  # outermost first
        self.offsets: dict[UOp, UOp] = {}
        self.changed = False

    def cut(self, loops: Sequence[UOp], crowded: bool) -> None:
        """Cut the loops of one sum, the innermost first, into blocks of so many turns as may be.

        Inner loops that are walked whole are in a block as often as comes nearest to its turns: a window of
        3 x 3 twice. In a crowded loop the innermost block is two loops, so that it has a middle.
        """
        room, many = float(BLOCK), BLOCKS
        if crowded:
            turns = math.prod(index.bounds(r.src[0])[1] for r in loops)
            shortest, longest = CROWDED_BLOCK
            whole = turns <= longest
            room = float(turns if whole else min(max(turns // 4, shortest), longest))
            many = CROWDED_BLOCKS
        halved, apart = crowded, False
        for r in reversed(loops):
            if r in self.segments:  # cut with another sum
                room = 1.0
                continue
            size, blocks, aparts = r.src[0], [], []
            left = int(room + 0.5)
            while (most := index.bounds(size)[1]) > (
                left + left // 2 if apart else left
            ):  # a few are no level
                half = halved and left > 3
                if left > 1:
                    blocks.append((size, _length(size, left // 2 if half else left, crowded)))
                    aparts.append(apart)
                    size = index.floordiv(size + (blocks[-1][1] - 1), index.const(blocks[-1][1]))
                left, apart = (2, False) if half else (many, True)
                halved, room = False, float(left)
            room /= max(most, 1)
            self._replace(r, size, blocks[::-1], [apart, *aparts[::-1]])
            self.changed |= apart
            apart = False

    def _replace(self, r: UOp, size: UOp, blocks: Sequence[tuple[UOp, int]], aparts: Sequence[bool]) -> None:
        """A loop of `size` turns and loops within blocks, in each of which so many places are counted."""
        place = r if not blocks else r.replace(src=(size,))
        found = [place]
        for count, length in blocks:
            begin = place * length
            inside = index.minimum(index.const(length), index.sub(count, begin))
            found.append(UOp(Ops.RANGE, dtypes.index, (inside,), RangeArg(self.fresh, r.arg.kind)))
            self.fresh += 1
            place = begin + found[-1]
        self.segments[r] = [Piece(loop, apart) for loop, apart in zip(found, aparts, strict=True)]
        if blocks:
            self.offsets[r] = place

    def rebuilt(self, nodes: Sequence[UOp]) -> UOp:
        """The kernel with the loops in the places of the ranges, and a REDUCE for each level."""
        done = dict(self.offsets)
        return transform(nodes[-1], self.reduce, "nest sums", rebuild=index.rebuild, order=nodes, done=done)

    def reduce(self, node: UOp, src: tuple[UOp, ...]) -> UOp | None:
        """A REDUCE level by level. Between them narrow floats are as wide as in accumulators."""
        if node.op is not Ops.REDUCE or self.segments.keys().isdisjoint(node.src[1:]):
            return None
        value = src[0]
        pieces = [piece for r in node.src[1:] for piece in self.segments.get(r, [Piece(r, False)])]
        if value.dtype.scalar_type in NARROW and any(piece.separate for piece in pieces):
            value = value.cast(dtypes.float32.vec(value.dtype.count))
        loops: list[UOp] = []
        for loop, apart in reversed(pieces):
            if apart and loops:
                value = UOp(Ops.REDUCE, value.dtype, (value, *loops), node.arg)
                loops = []
            loops.insert(0, loop)
        value = UOp(Ops.REDUCE, value.dtype, (value, *loops), node.arg)
        return value if value.dtype is node.dtype else value.cast(node.dtype)


def _length(size: UOp, most: int, crowded: bool) -> int:
    """How many turns a block has: as many as may be, rather fewer where these divide the loop.

    A loop whose end is computed is not unrolled, which costs most where registers are full.
    """
    if size.op is not Ops.CONST:
        return most
    least = most // 2 if crowded else 2 * most // 3
    return next((length for length in range(most, least, -1) if size.arg % length == 0), most)


# *** in a list


class _Rewriting(LinearWriter):
    """A list made of another: `made` has what its nodes became. Declarations stand in the order of their
    first use, and accumulators are numbered in theirs.
    """

    def __init__(self, program: Iterable[UOp]) -> None:
        super().__init__()
        self.head.update(dict.fromkeys(of_op(program, Ops.DEFINE_GLOBAL)))  # those that nothing reads, too
        self.made: dict[UOp, UOp] = {}
        self.accumulators = 0

    def read(self, *nodes: UOp) -> tuple[UOp, ...]:
        return tuple([self.made.get(node, node) for node in nodes])

    def step(self, op: Ops, dtype: DType, *src: UOp, arg: object = None) -> UOp:
        for source in src:
            self.declare(source)
        self.add(node := UOp(op, dtype, src, arg))
        return node

    def declare(self, node: UOp) -> None:
        """Enter what a step needs of the head; of a loop that it stands before, the loop's ends."""
        if is_declared(node):
            self.add(node)
        elif node not in self.visible:
            for source in node.src:
                self.declare(source)

    def start(self, accumulator: UOp) -> UOp:
        self.accumulators += 1
        src = self.read(*accumulator.src)
        return self.step(accumulator.op, accumulator.dtype, *src, arg=(self.accumulators - 1,))

    def copy(self, node: UOp) -> None:
        if not is_declared(node):
            self.made[node] = self.step(node.op, node.dtype, *self.read(*node.src), arg=node.arg)


# *** running sums


def compensate(program: Sequence[UOp]) -> list[UOp]:
    """The list with three accumulators for each running sum of floats.

    They are the sum; what its last addition rounded up, which the next one takes back (Kahan); and the plain
    sum, which the running sum is where the exact one met infinities.
    """
    running = {read: read.src[0] for read in of_op(program, Ops.SCAN)}
    sums = set(running.values())
    carried = {node: node.src[1] for node in of_op(program, Ops.ASSIGN) if node.src[0] in sums}
    plain_sums = set(carried.values())
    accumulators: dict[UOp, list[UOp]] = {node: [] for node in of_op(program, Ops.DEFINE_ACC)}
    written = _Rewriting(program)
    add, made = written.step, written.made
    for node in program:
        dtype = node.dtype
        if node in plain_sums:
            continue
        if node in accumulators:
            accumulators[node] = [written.start(node) for _ in range(3 if node in sums else 1)]
            made[node] = accumulators[node][0]
        elif node in running:
            total, _, plain = accumulators[running[node]]
            away = add(Ops.SUB, dtype, total, total)
            finite = add(Ops.CMPEQ, dtypes.bool.vec(dtype.count), away, total.src[0])
            made[node] = add(Ops.WHERE, dtype, finite, total, plain)
        elif node in carried:
            total, error, plain = accumulators[node.src[0]]
            (value,) = written.read(carried[node].src[1])
            term = add(Ops.SUB, dtype, value, error)
            after = add(Ops.ADD, dtype, total, term)
            rounded = add(Ops.SUB, dtype, add(Ops.SUB, dtype, after, total), term)
            simple = add(Ops.ADD, dtype, plain, value)
            for accumulator, result in ((total, after), (error, rounded), (plain, simple)):
                add(Ops.ASSIGN, dtype, accumulator, result)
        else:
            written.copy(node)
    return written.listed()


# *** which end late


#: The accumulators of one sum, each of the totals of the one before, with the outermost loop that adds to it.
Levels = dict[UOp, UOp]


def end_late(program: list[UOp], target: Target) -> list[UOp]:
    """The list in which half of the sums that fill the registers end their blocks half a block later.

    All levels of such a sum start before its loops, and behind these it is the sum of what each has.
    """
    assigns = {node.src[0]: node for node in of_op(program, Ops.ASSIGN)}
    late = _late_sums(program, assigns, target)
    if not late:
        return program
    accumulators = set(of_op(program, Ops.DEFINE_ACC))
    end_of = {node.src[0]: node for node in of_op(program, Ops.ENDRANGE)}
    started, finished, moved = dict[UOp, Levels](), dict[UOp, list[Levels]](), set[UOp]()
    ending: dict[UOp, list[tuple[UOp, UOp]]] = {}  # the end of a loop → in its middle (a sum, its next level)
    for levels in late:
        total, outermost = list(levels.items())[-1]
        started[total] = levels
        finished.setdefault(end_of[outermost], []).append(levels)
        for (inner, loop), (outer, _) in itertools.pairwise(levels.items()):
            ending.setdefault(end_of[loop], []).append((inner, outer))
            moved.update((inner, assigns[outer], assigns[outer].src[1]))
    written = _Rewriting(program)
    add, made = written.step, written.made
    for node in program:
        if node in moved:
            continue
        if node in accumulators:
            made.update({level: written.start(node) for level in started.get(node, (node,))})
            continue
        if node in ending:
            (loop,) = node.src
            middle = UOp(Ops.CONST, loop.dtype, (), iterations_of(loop) // 2 - 1)
            opened = add(Ops.IF, dtypes.void, add(Ops.CMPEQ, dtypes.bool, made[loop], middle))
            for accumulator, total in (written.read(*pair) for pair in ending[node]):
                add(Ops.ASSIGN, total.dtype, total, add(Ops.ADD, total.dtype, total, accumulator))
                add(Ops.ASSIGN, total.dtype, accumulator, accumulator.src[0])
            add(Ops.ENDIF, dtypes.void, opened)
        written.copy(node)
        for levels in finished.get(node, ()):
            value, *others = written.read(*levels)
            for other in others:
                value = add(Ops.ADD, value.dtype, value, other)
            made[list(levels)[-1]] = value
    return written.listed()


def _late_sums(program: Sequence[UOp], assigns: dict[UOp, UOp], target: Target) -> list[Levels]:
    """Half of the sums of each loop whose sums fill the registers, if their blocks have a middle: outside of
    the innermost loop. `assigns`: accumulator → where it is added to.
    """
    values = {  # of sums
        accumulator: total.src[1]
        for accumulator, total in (node.src for node in assigns.values())
        if total.op is Ops.ADD and dtypes.is_float(total.dtype.scalar_type) and total.src[0] is accumulator
    }
    for node in of_op(program, Ops.SCAN):
        values.pop(node.src[0], None)
    if values.keys().isdisjoint(values.values()):
        return []
    own = {part for accumulator in values for part in (assigns[accumulator], assigns[accumulator].src[1])}
    uses = Counter([source for node in program if node not in own for source in node.src])
    uses.update(values.values())
    outer = {value: sum for sum, value in values.items() if value in values and uses[value] == 1}
    wanted = {*assigns, *assigns.values()}
    around = {node: list(loops) for node, loops in in_loops(program) if node in wanted}
    loops = {accumulator: around[node][len(around[accumulator]) :] for accumulator, node in assigns.items()}
    beside: dict[UOp, list[UOp]] = {}  # loop → what is added to at its end
    for accumulator, closed in loops.items():
        beside.setdefault(closed[-1], []).append(accumulator)
    late: list[Levels] = []
    for accumulators in beside.values():
        innermost = [sum for sum in accumulators if sum in outer and values[sum] not in outer]
        if innermost and fill_registers(values[innermost[0]], len(accumulators), target):
            for inner in innermost[len(innermost) // 2 :]:
                levels, level = {inner: loops[inner][0]}, inner
                while level in outer:
                    level = outer[level]
                    levels[level] = loops[level][0]
                if len(loops[inner]) > 1 and all(iterations_of(loop) > 1 for loop in levels.values()):
                    late.append(levels)
    return late

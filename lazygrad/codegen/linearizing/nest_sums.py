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

Some sums of sums are added up half a block later than the others (between nest and list, `late_sums`).

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

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from ...dtype import DType, dtypes
from ...ir import index
from ...ir.args import RangeArg
from ...ir.linear import LinearWriter
from ...ir.nest import Block, free_numbers
from ...ir.ops import Ops
from ...ir.rewrite import transform
from ...ir.uop import UOp
from ...ir.walks import of_op
from ...target import Target
from ..expressions.narrow import NARROW
from ..legalizing.products import is_masked_product, is_of_warps

#: How many turns of a loop add to one accumulator, and how many of its totals to the next one.
BLOCK, BLOCKS = 16, 8
#: The same where products are added to so many accumulators that their totals are in memory (`late_sums`):
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
    written, made, count = LinearWriter(), dict[UOp, UOp](), 0

    def add(op: Ops, dtype: DType, *src: UOp, arg: object = None) -> UOp:
        written.add(node := UOp(op, dtype, src, arg))
        return node

    for node in program:
        dtype, src = node.dtype, tuple([made.get(source, source) for source in node.src])
        if node in plain_sums:
            continue
        if node in accumulators:  # they are numbered in the order of the list
            each = accumulators[node]
            for _ in range(3 if node in sums else 1):
                each.append(add(node.op, dtype, *src, arg=(count,)))
                count += 1
            made[node] = each[0]
        elif node in running:
            total, _, plain = accumulators[running[node]]
            away = add(Ops.SUB, dtype, total, total)
            finite = add(Ops.CMPEQ, dtypes.bool.vec(dtype.count), away, total.src[0])
            made[node] = add(Ops.WHERE, dtype, finite, total, plain)
        elif node in carried:
            total, error, plain = accumulators[node.src[0]]
            value = carried[node].src[1]
            value = made.get(value, value)
            term = add(Ops.SUB, dtype, value, error)
            after = add(Ops.ADD, dtype, total, term)
            rounded = add(Ops.SUB, dtype, add(Ops.SUB, dtype, after, total), term)
            simple = add(Ops.ADD, dtype, plain, value)
            for accumulator, result in ((total, after), (error, rounded), (plain, simple)):
                add(Ops.ASSIGN, dtype, accumulator, result)
        else:
            made[node] = node if src == node.src else node.replace(src=src)
            written.add(made[node])
    return written.listed()


# *** which end late

#: Levels of one sum, the innermost first: each is the sum of the one before.
Chain = tuple[UOp, ...]


def late_sums(body: Block, nodes: Sequence[UOp], target: Target) -> list[Chain]:
    """The sums that end their blocks late: half of those of a loop whose sums fill the registers."""
    outer = _sums_of_sums(nodes)
    if not outer:
        return []
    found = []
    for block in body.walk():
        first = [reduce for reduce in block.closes if reduce in outer and reduce.src[0] not in outer]
        chains = [_chain(reduce, outer) for reduce in first]
        if chains and fill_registers(chains[0][0].src[0], len(block.closes), target):
            found += [chain for chain in chains[len(chains) // 2 :] if _has_middles(chain)]
    return found


def _sums_of_sums(nodes: Sequence[UOp]) -> dict[UOp, UOp]:
    """The sum that adds up the results of another, and is all that uses them."""
    sums = [node for node in of_op(nodes, Ops.REDUCE) if is_float_sum(node)]
    asked = set(sums)
    uses = Counter(source for node in nodes for source in node.src if source in asked)
    return {
        node.src[0]: node
        for node in sums
        if node.src[0].op is Ops.REDUCE and node.src[0] in asked and uses[node.src[0]] == 1
    }


def _chain(reduce: UOp, outer: dict[UOp, UOp]) -> Chain:
    levels = [reduce]
    while levels[-1] in outer:
        levels.append(outer[levels[-1]])
    return tuple(levels)


def _has_middles(chain: Chain) -> bool:
    """Whether each level has turns before and after its middle, which is outside of the innermost loop."""
    return len(chain[0].src) > 2 and all(index.bounds(level.src[1].src[0])[1] > 1 for level in chain)

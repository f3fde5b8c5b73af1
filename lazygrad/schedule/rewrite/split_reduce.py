"""Long reductions to few results in parts, so that all of a machine works: one reduction becomes two.

    out = sum over 67,108,863 places k of a[k]
becomes
    part[block] = sum over 1,048,320 places k of a[block, k]                      for 64 blocks
    out = sum over 64 blocks of part[block] + sum over the 16,383 places k that are left of a[k]

The parts are stored (a reduction inside of another is, where there is work), and their kernel has an axis to
cut into pieces. What is left and the parts are summed by their reader's kernel, or by one of their own where
that would keep many elements waiting (`placement.py`). Sizes alone decide, so results are equal to the bit
for every THREADS.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from ...decisions import decide
from ...ir.args import ReduceArg
from ...ir.index import sint
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...shape import permute, reshape, shape_of, shrink
from ...target import Target
from ..graph.requested import near

# These are choices, the same for every processor: where a sum is cut decides its last bits.

#: Reductions of fewer steps in all stay whole.
LONG = 1 << 20
#: A part has at least so many steps: some 10 µs of one core of today, beside which starting it is little.
PART = 1 << 16
#: From so many independent results on a kernel has pieces enough; fewer are made about so many parts in all.
#: A grid wants many more.
ENOUGH, PARTS = 16, 64
ENOUGH_ON_A_GRID, PARTS_ON_A_GRID = 256, 2048
#: Neighbouring results that one piece holds where they are next to each other in memory.
STRIP = 256
#: The length of long parts is a multiple of this: vectors fill them.
WHOLE = 256


#: Axis → how many blocks, and how long.
Blocks = Mapping[int, tuple[int, int]]


def split_reduce(node: UOp, target: Target) -> UOp:
    """A reduction in parts where it is long and has few results, or where OPTS says so; else itself."""
    if target.vector_bytes == 0 and not target.grid:
        return node
    sizes = [size for size in shape_of(node.src[0]) if isinstance(size, int)]
    if len(sizes) != len(shape_of(node.src[0])):
        return node
    predicted = chunks_of(node, target)
    count = decide("split_reduce", near(node), predicted, lambda rng: _other_chunks(node, predicted, target))
    return node if count < 2 else _in_so_many(node, sizes, count)


def chunks_of(node: UOp, target: Target) -> int:
    """In about how many parts a reduction of known sizes is predicted to be fastest; 1 = whole."""
    axes, shape = node.arg.axes, shape_of(node.src[0])
    sizes = [size for size in shape if isinstance(size, int)]
    if len(sizes) != len(shape) or math.prod(sizes) <= LONG or (target.vector_bytes == 0 and not target.grid):
        return 1
    enough, parts = (ENOUGH_ON_A_GRID, PARTS_ON_A_GRID) if target.grid else (ENOUGH, PARTS)
    results = math.prod(size for axis, size in enumerate(sizes) if axis not in axes)
    pieces = results if target.grid else -(-results // min(beside(sizes, axes), STRIP))
    if pieces >= enough:
        return 1
    return max(min(-(-parts // pieces), math.prod(sizes) // (pieces * PART)), 1)


#: Other numbers of parts that are legal, if each has so many steps: OPTS takes them.
OTHERS, STEPS = (1, 2, 3, 7, 16), 8


def _other_chunks(node: UOp, predicted: int, target: Target) -> Iterator[int]:
    """A grid keeps what it cuts: whole, a few of its threads would do all."""
    sizes = [size for size in shape_of(node.src[0]) if isinstance(size, int)]
    steps = math.prod(sizes[axis] for axis in node.arg.axes)
    for count in OTHERS:
        if count != predicted and count * STEPS <= steps and (count > 1 or not target.grid):
            yield count


def _in_so_many(node: UOp, sizes: Sequence[int], count: int) -> UOp:
    source, axes = node.src[0], node.arg.axes
    blocks, rest = _cut([sizes[axis] for axis in axes], count)
    if math.prod(number for number, _ in blocks) < 2:
        return node
    whole = sum_of_sums(node, dict(zip(axes, blocks, strict=True)))
    if rest is None:
        return whole
    place, begin = rest
    spans: list[tuple[sint, sint]] = [(0, size) for size in sizes]
    spans[axes[place]] = (begin, sizes[axes[place]])
    left = UOp(Ops.REDUCE_AXIS, node.dtype, (shrink(source, tuple(spans)),), node.arg)
    return UOp(node.arg.op, node.dtype, (whole, left))


def beside(sizes: Sequence[int], axes: Sequence[int]) -> int:
    """How many results are neighbours on the fastest axes, up to the first that is reduced."""
    return math.prod(sizes[max(axis for axis in axes if sizes[axis] > 1) + 1 :])


def _cut(sizes: Sequence[int], count: int) -> tuple[list[tuple[int, int]], tuple[int, int] | None]:
    """(how many blocks, how long each) for each axis, about `count` of them in all, the slowest cut first;
    and the axis that something is left of, with where that begins.
    """
    found: list[tuple[int, int]] = []
    rest = None
    for place, size in enumerate(sizes):
        if count < 2:
            found.append((1, size))
            continue
        number, length = _blocks(size, count)
        if number * length < size:
            rest = place, number * length
        count = -(-count // number) if length == 1 else 1
        found.append((number, length))
    return found, rest


def _blocks(size: int, count: int) -> tuple[int, int]:
    """About `count` blocks of an axis and their length, with little or nothing left over."""
    if size <= 2 * count:
        return size, 1
    number = min(range(count, 2 * count), key=lambda number: size % number)
    length = size // number
    if size % number and length >= 16 * WHOLE:
        length = size // count // WHOLE * WHOLE
        number = size // length
    return number, length


def sum_of_sums(node: UOp, blocks: Blocks) -> UOp:
    """The reduction, first within blocks and then over them: axis → how many, and how long.

    What the blocks leave at the end of an axis is left out. The blocks' axes are the slowest.
    """
    return over_blocks(node, within_blocks(node, blocks), blocks)


def within_blocks(node: UOp, blocks: Blocks) -> UOp:
    """The reduction within blocks: the shape of `cut_into`, 1 along what is reduced."""
    count = _outer(blocks)
    within = tuple(count + axis for axis in node.arg.axes)
    cut = cut_into(node.src[0], blocks)
    return UOp(Ops.REDUCE_AXIS, node.dtype, (cut,), ReduceArg(node.arg.op, within))


def over_blocks(node: UOp, parts: UOp, blocks: Blocks) -> UOp:
    """What a reduction makes of the results of its blocks."""
    outer = tuple(range(_outer(blocks)))
    over = UOp(Ops.REDUCE_AXIS, node.dtype, (parts,), ReduceArg(node.arg.op, outer))
    return reshape(over, shape_of(node))


def cut_into(source: UOp, blocks: Blocks) -> UOp:
    """A value in blocks: an axis for the number of blocks of each axis that is cut, then its own axes."""
    shape: list[sint] = []
    outer: list[int] = []
    whole = shape_of(source)
    spans: list[tuple[sint, sint]] = [(0, size) for size in whole]
    for axis, size in enumerate(whole):
        number, length = blocks.get(axis, (1, size))
        if number > 1:
            spans[axis] = (0, number * length)
            outer.append(len(shape))
            shape += [number, length]
        else:
            shape.append(size)
    rest = [axis for axis in range(len(shape)) if axis not in outer]
    return permute(reshape(shrink(source, tuple(spans)), tuple(shape)), (*outer, *rest))


def _outer(blocks: Blocks) -> int:
    return sum(number > 1 for number, _ in blocks.values())

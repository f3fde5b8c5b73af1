"""Long sums of products in blocks: one reduction becomes two, and the second sums what the first made.

A contraction packs panels as long as its reduction (`codegen/opt/cpu/contraction.py`). One that outgrows the
second cache is read from beyond it, once for every few rows. The gradient of a convolution's weights sums
over every place of every image:

    out[i, j] = sum over 73,728 places k of a[i, k] * b[k, j]
becomes
    part[block, i, j] = sum over 1,152 places k of a[i, block, k] * b[block, k, j]
    out[i, j] = sum over 64 blocks of part[block, i, j]

A sum of values that depend on other reductions over its axis (softmax times a matrix) may be computed in one
pass, by blocks of its own (`direct/one_pass/`), and is left as it is.

The parts are stored (a reduction inside of another is, where there is work), by a kernel whose panels stay in
the cache, and whose blocks are one more axis for pieces. The outer sum is left to its reader's kernel.

This computes the same in another order of summation.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from ...decisions import yes_or_no
from ...dtype import dtypes
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...shape import base_and_tracker, prod, shape_of, vmax
from ...shape.tracker import ShapeTracker
from ...shape.view import View, ranges_over
from ...target import Target
from ..graph.powers import is_shifted
from ..graph.requested import near
from .split_reduce import sum_of_sums

#: Vectors side by side in a panel that has to fit half of the second cache: sums longer than the fewer allow
#: are cut, into blocks that fit the more, or at least the fewer.
FEWER, MORE = 2, 4
#: What is stored for the blocks may be this share of what the products are made of.
STORED = 0.5
#: A block is at least this share of what would fit.
SHORTEST = 4


def in_blocks(node: UOp, target: Target) -> UOp:
    """A reduction (REDUCE_AXIS) in blocks where it is a long sum of products; else itself."""
    if node.arg.op is not Ops.ADD or not dtypes.is_float(node.dtype):
        return node
    if target.grid or target.vector_bytes == 0 or len(target.memory.caches) < 2:
        return node
    source, axes = node.src[0], node.arg.axes
    shape = shape_of(source)
    sizes = [size for size in shape if isinstance(size, int)]
    if len(sizes) != len(shape):
        return node
    longest = target.memory.second // (2 * FEWER * target.vector_bytes)
    steps = math.prod(sizes[axis] for axis in axes)
    predicted = _blocks_of(node, sizes, longest, STORED) if steps > longest else None
    # where a sum is short, its blocks are halves, or thirds
    other = functools.partial(_blocks_of, node, sizes, max(steps // 3, 1), 1.0)
    if not yes_or_no("split_products", near(node), predicted is not None, lambda: bool(predicted or other())):
        return node
    blocks = predicted or other()
    if blocks is None:
        return node
    lengths = [sizes[axis] // number for axis, number in zip(axes, blocks, strict=True)]
    return sum_of_sums(node, dict(zip(axes, zip(blocks, lengths, strict=True), strict=True)))


def _blocks_of(node: UOp, sizes: Sequence[int], longest: int, stored: float) -> list[int] | None:
    """Into how many blocks each axis of a sum of products is cut, of at most so many steps; None where there
    are none, or more than such a share of what the products are made of would be stored.
    """
    axes = node.arg.axes
    read = _read_for_products(node.src[0], axes)
    outputs = math.prod(size for axis, size in enumerate(sizes) if axis not in axes)
    reduced = [sizes[axis] for axis in axes]
    for vectors in (MORE, FEWER) if read else ():
        most = max(longest * FEWER // vectors, 1)
        blocks = _cut(reduced, most)
        count = math.prod(blocks)
        if count < 2:
            continue
        if count * outputs <= stored * read and math.prod(reduced) * SHORTEST >= count * most:
            return blocks
    return None


def _read_for_products(source: UOp, axes: Sequence[int]) -> int:
    """How many elements the factors of products have; 0 unless each moves along an output axis of its own."""
    product, views = _converted(source)
    if product.op is not Ops.MUL or any(is_shifted(factor) for factor in product.src):
        return 0
    ranges = ranges_over(shape_of(source))
    outputs = {r for axis, r in enumerate(ranges) if axis not in axes}
    moved, elements = [], 0
    for factor in product.src:
        below, own = _converted(factor)
        place, _ = ShapeTracker((*own, *views)).indexed(ranges)
        moved.append(outputs.intersection(place.toposort()))
        elements += vmax(prod(shape_of(below)))
    first, second = moved
    return elements if first - second and second - first else 0


def _converted(node: UOp) -> tuple[UOp, tuple[View, ...]]:
    """What is below movements and conversions, and the views through which its elements are seen."""
    below, tracker = base_and_tracker(node)
    views = tracker.views
    while below.op is Ops.CAST:
        below, tracker = base_and_tracker(below.src[0])
        views = (*tracker.views, *views)
    return below, views


def _cut(sizes: Sequence[int], most: int) -> list[int]:
    """Into how many blocks each axis is cut, so that what is left of all has at most so many places.

    The slowest axes are cut first, into single places as long as the rest has too many.
    """
    blocks = []
    for axis, size in enumerate(sizes):
        inner = math.prod(sizes[axis + 1 :])
        parts = range(min(size, most // inner), 0, -1)
        blocks.append(size // next((part for part in parts if size % part == 0), 1))
    return blocks

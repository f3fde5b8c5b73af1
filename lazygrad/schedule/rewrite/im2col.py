"""Windows of small images in memory: a contraction of overlapping windows becomes one of plain matrices.

A convolution reads each element once for every place of its windows, behind a condition at the borders. Lanes
along a row of a large image do that in place. A row of a small image fills no vector, and what its lanes need
is apart. There each element of the windows is stored once, in the order of the sum and then of the lanes:

    out[o, p] = sum over k of w[o, k] * (p, k is inside ? x[place(p, k)] : 0)
becomes
    windows[k, p] = p, k is inside ? x[place(p, k)] : 0
    out[o, p] = sum over k of w[o, k] * windows[k, p]

The gradients of a convolution are such sums too: that of the input is one of windows of what arrives, and in
that of the weights k are the places p, and p the elements of a window.

Rows that fill vectors are read in place. A kernel copies each image of a batch with its border of zeros, so
that none of them is behind a condition; one image alone is stored with its border.

This computes the same products, in the same order.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

from ...decisions import only_predicted, yes_or_no
from ...dtype import dtypes
from ...ir.ops import MOVEMENT, Ops
from ...ir.uop import UOp
from ...shape import base_and_tracker, expand, permute, shape_of, shrink
from ...shape.movement import moved, movements_on
from ...target import Target
from ..graph.requested import near
from .reduces_of_broadcasts import repeated_axes

#: Each element that is stored is for at least so many products.
USES = 16
#: Where the second cache does not hold them, writing and reading an element takes as long as some hundred
#: products. Windows are several times as large as their images, so there is a bound, in second caches.
USES_FROM_MEMORY, MOST = 256, 8
#: The same of windows whose places are summed, as a gradient of weights does: otherwise it sums short rows.
USES_OF_PLACES = 128
#: Rows of several vectors are read in place if vectors are at most so many times as long: 64 channels of
#: 28 x 28 to 64 took 505 us of windows, 427 of rows of 32 (a Xeon with AVX-512).
ROUNDED = 8 / 7


def is_worth_storing(
    count: int, itemsize: int, products: int, target: Target, uses: int = USES_FROM_MEMORY
) -> bool:
    """Whether so many elements of windows, of `itemsize` bytes each, are stored for all these products.

    uses  how many each is for at least, where the second cache does not hold them
    """
    caches = count * itemsize / target.memory.second
    return caches <= MOST and products >= (USES if caches <= 1 else uses) * count


def im2col(node: UOp, target: Target) -> UOp | None:
    """A sum (REDUCE_AXIS) of products with overlapping windows, of windows in memory; None of another one."""
    if node.arg.op is not Ops.ADD or not dtypes.is_float(node.dtype):
        return None
    if target.grid or target.vector_bytes == 0 or len(target.memory.caches) < 2:
        return None
    product = node.src[0]
    if product.op is not Ops.MUL or not all(isinstance(size, int) for size in shape_of(product)):
        return None
    for place, factor in enumerate(product.src):
        found = windows_of(factor, node.arg.axes, target)
        if found is None:
            continue
        legal = functools.partial(bool, found.is_legal)
        if yes_or_no("im2col", near(node, factor), found.pays, legal):
            return _with_factor(node, place, _stored(factor, found.axes))
    for place, factor in enumerate(product.src):
        bordered = _with_border(factor, node.arg.axes, target)
        if bordered is not None and yes_or_no("im2col", near(node, factor), True, lambda: True):
            return _with_factor(node, place, bordered)
    return None


def _with_factor(node: UOp, place: int, factor: UOp) -> UOp:
    """The sum of products with another factor at this place."""
    product = node.src[0]
    src = (factor, product.src[1]) if place == 0 else (product.src[0], factor)
    return node.replace(src=(product.replace(src=src),))


class Windows(NamedTuple):
    """Windows that overlap.

    axes      in the order in which they are to be stored: those of the sum, then the others
    pays      whether storing them is predicted to be faster than reading them in place
    is_legal  whether they may be stored otherwise: each element is for several products, and they are few
    """

    axes: list[int]
    pays: bool
    is_legal: bool


def windows_of(factor: UOp, summed: Sequence[int], target: Target) -> Windows | None:
    """The windows that a factor is; None of other factors."""
    _, tracker = base_and_tracker(factor)
    if len(tracker.views) == 1 and tracker.views[0].mask is None and tracker.contiguous:
        return None
    sizes = [size for size in shape_of(factor) if isinstance(size, int)]
    still = repeated_axes(factor)
    own = [axis for axis, size in enumerate(sizes) if size != 1 and axis not in still]
    count, products = math.prod(sizes[axis] for axis in own), math.prod(sizes)
    itemsize = factor.dtype.itemsize
    if only_predicted() and not is_worth_storing(count, itemsize, products, target, USES_OF_PLACES):
        return None
    strides = tracker.real_strides(ignore_valid=True)
    steps = [(abs(step), sizes[axis]) for axis in own if isinstance(step := strides[axis], int)]
    if len(steps) < len(own) or not _overlap(steps):  # axes that were made of others are no windows
        return None
    rows = [(sizes[axis], axis in summed) for axis in own if strides[axis] == 1]
    row, is_summed = max(rows, default=(1, False))
    uses = USES_OF_PLACES if is_summed else USES_FROM_MEMORY
    lanes = target.vector_bytes // itemsize
    in_place = _fills(row, lanes) and not (is_summed and row <= lanes)  # rows of whole vectors are read so
    axes = [*(axis for axis in own if axis in summed), *(axis for axis in own if axis not in summed)]
    pays = not in_place and is_worth_storing(count, itemsize, products, target, uses)
    return Windows(axes, pays, bool(count) and products >= 2 * count and is_worth(count * itemsize, target))


def is_worth(nbytes: int, target: Target) -> bool:
    """Whether so many bytes are few enough to be stored in another order."""
    return nbytes <= MOST * target.memory.second


def _overlap(axes: list[tuple[int, int]]) -> bool:
    """Whether axes of these strides and sizes reach an element in several ways."""
    reach = 0
    for stride, size in sorted(axes):
        if stride <= reach:
            return True
        reach += stride * (size - 1)
    return False


def _fills(size: int, lanes: int) -> bool:
    """Whether vectors of so many lanes walk a row with few lanes left over."""
    return size % lanes == 0 or (size > lanes and -(-size // lanes) * lanes <= ROUNDED * size)


def _with_border(factor: UOp, summed: Sequence[int], target: Target) -> UOp | None:
    """Windows of one image, on that image with its border of zeros in memory; None of other factors.

    Of several images each is copied with its border when its turn comes (STAGE), in the kernel of the sum.
    """
    moves, padded = movements_on(factor, MOVEMENT - {Ops.PAD})
    sizes = [size for size in shape_of(factor) if isinstance(size, int)]
    count = math.prod(size for size in shape_of(padded) if isinstance(size, int))
    if padded.op is not Ops.PAD or not moves or not count:
        return None
    if not is_worth_storing(count, factor.dtype.itemsize, math.prod(sizes), target):
        return None
    bordered = moved(UOp(Ops.CONTIGUOUS, factor.dtype, (padded,)), moves)
    strides = base_and_tracker(bordered)[1].real_strides()
    still = repeated_axes(bordered)
    own = [axis for axis, size in enumerate(sizes) if size != 1 and axis not in still]
    steps = {axis: abs(step) for axis in own if isinstance(step := strides[axis], int)}
    taps = [(steps[axis], sizes[axis]) for axis in steps if axis in summed]
    places = [steps[axis] for axis in steps if axis not in summed]
    overlap = all(any(least <= step < least * size for least, size in taps) for step in places)
    return bordered if places and overlap and len(steps) == len(own) else None


def _stored(factor: UOp, axes: Sequence[int]) -> UOp:
    """A factor that is stored with these of its axes, outermost first; along the others it repeats."""
    sizes = shape_of(factor)
    once = shrink(factor, tuple([(0, size if axis in axes else 1) for axis, size in enumerate(sizes)]))
    rest = [axis for axis in range(len(sizes)) if axis not in axes]
    order = (*rest, *axes)
    stored = UOp(Ops.CONTIGUOUS, factor.dtype, (permute(once, order),))
    back = permute(stored, tuple([order.index(axis) for axis in range(len(sizes))]))
    return expand(back, sizes)

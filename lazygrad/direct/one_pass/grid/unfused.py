"""What the kernels of a grid take that one pass stands for, one for each reduction.

Those are the sums of products in x, which store it; what stores the powers of x, reading it; and the sum of
products of these. How long the products take is predicted as for any kernel, with the Opts that are chosen
for it (`grid_time.py`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from ....codegen.expressions.ranges import make_range, substitute_ranges
from ....codegen.opt import Loops, OptOps, apply_opt, choose
from ....codegen.opt.facts import Facts
from ....dtype import DType, dtypes
from ....gpu.grid_time import predict_on_grid
from ....ir.args import AxisType
from ....ir.index import const
from ....ir.index.division import add
from ....ir.index.polynomials import mul
from ....ir.ops import Ops
from ....ir.uop import UOp
from ....target import Target
from ..rule import OnePass
from ..sizes import size_of
from .grid_blocks import block_of

#: The share of the bandwidth that a kernel reaches which reads x and stores its powers: what is predicted of
#: softmax on sm_90 and on a common GPU (tests/golden/renderer/test_expert_texts).
REACHED = 0.7
#: Memory of a kernel, behind its own, that stands for what another one stored.
STORED = 1 << 20


def pays_on_grid(parts: OnePass, target: Target) -> bool:
    """Whether one pass is predicted to be faster than a kernel for each reduction."""
    found = block_of(parts, target)
    return found is not None and found.prediction.seconds < unfused_seconds(parts, target)


def family_pays_on_grid(family: Sequence[OnePass], products: int, powers: int, target: Target) -> bool:
    """Whether kernels that compute the same values again are predicted to be faster than storing those.

    products, powers   how many sums of products, and values made of them, would be stored
    """
    blocks = [block_of(parts, target) for parts in family]
    if None in blocks:
        return False
    again = sum(found.prediction.seconds for found in blocks if found is not None)
    once = products * max(seconds for parts in family for seconds in _products(parts, target))
    once += powers * max(_powers(parts, target) for parts in family)
    return again < once + sum(_sum(parts, target) for parts in family)


@functools.lru_cache(256)
def unfused_seconds(parts: OnePass, target: Target) -> float:
    """How long a kernel for each reduction would take."""
    return sum(_products(parts, target)) + _powers(parts, target) + _sum(parts, target)


@functools.lru_cache(256)
def _products(parts: OnePass, target: Target) -> list[float]:
    """How long each sum of products in x takes that is stored."""
    newest = max(node.arg.id for node in parts.store.toposort() if node.op is Ops.RANGE)
    key = make_range(size_of(parts.key), newest + 1, AxisType.GLOBAL)
    values = [substitute_ranges(product.total, {parts.key: key}) for product in parts.products]
    return [_seconds(_stored(value, [*_rows(parts), key]), target) for value in values]


def _powers(parts: OnePass, target: Target) -> float:
    """How long it takes to read x and to store what it is made into."""
    elements = math.prod(map(size_of, (*_rows(parts), parts.key)))
    read = parts.total.dtype.itemsize * (len(parts.products) or 1)
    moved = elements * (read + _weights_dtype(parts).itemsize)
    return target.launch.begun + moved / (REACHED * target.launch.bandwidth)


@functools.lru_cache(256)
def _sum(parts: OnePass, target: Target) -> float:
    """How long the sum takes of what was stored."""
    return _seconds(_summed(parts, _weights_dtype(parts)), target)


def _rows(parts: OnePass) -> list[UOp]:
    return [*parts.batch, *parts.groups, parts.row]


def _access(ranges: Sequence[UOp], dtype: DType, number: int) -> UOp:
    """An element of memory that has one for each place of some ranges."""
    place, size = const(0), 1
    for r in reversed(ranges):
        place, size = add(mul(r, const(size)), place), size * size_of(r)
    memory = UOp(Ops.DEFINE_GLOBAL, dtype.ptr(size), (), number)
    return UOp(Ops.INDEX, memory.dtype, (memory, place))


def _stored(value: UOp, ranges: Sequence[UOp]) -> UOp:
    """A kernel that stores a value for each place of some ranges."""
    store = UOp(Ops.STORE, dtypes.void, (_access(ranges, value.dtype, STORED), value))
    outputs = {r: r.replace(arg=r.arg._replace(kind=AxisType.GLOBAL)) for r in ranges}
    return substitute_ranges(UOp.sink(store), outputs)


def _weights_dtype(parts: OnePass) -> DType:
    """What the powers would be stored in: as wide as the values that they are multiplied by."""
    found = {node.dtype for value in parts.values for node in value.toposort() if node.op is Ops.LOAD}
    floats = [dtype for dtype in found if dtypes.is_float(dtype)]
    return min(floats, key=lambda dtype: dtype.itemsize, default=parts.total.dtype)


def _summed(parts: OnePass, item: DType) -> UOp:
    """The kernel that reads the powers."""
    product = UOp(Ops.LOAD, item, (_access([*_rows(parts), *parts.outer, parts.key], item, STORED + 1),))
    product = product if item is parts.total.dtype else product.cast(parts.total.dtype)
    for value in parts.values:
        product = UOp(Ops.MUL, product.dtype, (product, value))
    total = UOp(Ops.REDUCE, product.dtype, (product, parts.key, *parts.outer), Ops.ADD)
    return _stored(total, [*_rows(parts), parts.column])


def _seconds(sink: UOp, target: Target) -> float:
    """How long a kernel takes with the Opts that are chosen for it."""
    loops = Loops.of(sink)
    opts = choose(loops, target)
    for opt in opts:
        if opt.op is OptOps.INLINE:
            loops = apply_opt(loops, opt, target)
    found = predict_on_grid(Facts.of(loops), opts, target) if loops.axes else None
    return target.launch.begun if found is None else found.seconds

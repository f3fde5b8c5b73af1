"""What a kernel in one pass takes, in operations on elements: for whoever chooses between it and others."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...ir.index import evaluate
from ...ir.nest import ranges_of
from ...ir.ops import OPS, SUMS_TO_PRODUCTS, Ops
from ...ir.uop import UOp
from ...target import Target
from .rule import OnePass
from .sizes import size_of, sizes_of

#: Measured on Zen 3 with 8 heads of 128 to 1,024, causal and not: operations for a row, beside those of its
#: keys; and how much longer those take than in kernels that read what is summed.
ROW, LONGER = 10_000, 1.3
#: The same of sums that are joined, on a server of the Emerald Rapids kind, with 8 heads of 128 to 1,024,
#: causal and not.
JOINED_LONGER = 1.15
#: Rows that are asked for how many keys they see.
SAMPLES = 64


def pays_on_processor(parts: OnePass, target: Target) -> bool:
    """Whether one pass is faster than a kernel for each reduction.

    Those write and read x and the powers of it, a trip through memory each. One pass copies the operands of a
    block of keys once for each block of rows, a number at a time.
    """
    sizes = sizes_of(parts, target)
    rows = sizes.rows * math.prod(map(size_of, parts.groups))
    copied = sum(size_of(product.depth) for product in parts.products) + sizes.columns
    return copied * target.memory.hit < 2 * target.memory.trip * rows


def pays_of_rows(parts: OnePass, target: Target) -> bool:
    """Whether one pass is faster than storing x and reading it again, where only statistics are left of it.

    x makes no trips through memory where it stays in the second cache.
    """
    pairs = math.prod([size_of(r) for r in (*parts.batch, *parts.groups, parts.row)]) * size_of(parts.key)
    if pairs * parts.total.dtype.itemsize <= target.memory.second or not pays_on_processor(parts, target):
        return False
    each = sum(size_of(product.depth) for product in parts.products) + 2 * target.memory.trip
    each += sum(OPS[node.op].cost for node in parts.total.toposort() if node.op in SUMS_TO_PRODUCTS)
    return _operations(parts, 0, LONGER) < pairs * each


def are_joined(every: Sequence[OnePass], target: Target) -> bool:
    """Whether kernels without a power would be joined, as far as their batches tell: a core does a batch."""
    turns = [math.prod(map(size_of, parts.batch)) for parts in every]
    return not target.grid and len(every) > 1 and min(turns) >= target.threads


def joined_operations(every: Sequence[OnePass]) -> float:
    """The operations of such kernels, as one: each term is computed once."""
    most = max(every, key=lambda parts: len(parts.products))
    columns = sum(size_of(parts.column) for parts in every)
    return _operations(most, columns, JOINED_LONGER)


def operations(parts: OnePass) -> float:
    """The operations of a kernel in one pass."""
    return _operations(parts, size_of(parts.column), LONGER)


def _operations(parts: OnePass, columns: int, longer: float) -> float:
    rows = math.prod([size_of(r) for r in (*parts.batch, *parts.groups, *parts.outer, parts.row)])
    each = sum(size_of(product.depth) for product in parts.products) + columns
    each += sum(OPS[node.op].cost for node in parts.x.toposort() if node.op in SUMS_TO_PRODUCTS)
    return rows * (unmasked_share(parts) * size_of(parts.key) * each * longer + ROW)


def unmasked_share(parts: OnePass) -> float:
    """The share of rows times keys that the limits leave, of those limits that the row alone decides."""
    rows, keys = size_of(parts.row), size_of(parts.key)
    limits = [limit for limit in parts.limits if _is_of_row(parts, limit.rest)]
    count = min(rows, SAMPLES)
    total = 0.0
    for sample in range(count):
        first, last = 0, keys - 1
        for limit in limits:
            rest = evaluate(limit.rest, {parts.row: sample * rows // count})
            if limit.slope < 0:
                last = min(last, rest)
            else:
                first = max(first, -rest)
        total += max(last + 1 - first, 0) / keys
    return total / count


def _is_of_row(parts: OnePass, place: UOp) -> bool:
    """Whether a place is known once the row is."""
    return ranges_of(place) <= {parts.row} and all(n.op is not Ops.DEFINE_VAR for n in place.toposort())

"""What one run of a kernel costs, read off its loops (form 3): arithmetic operations, and bytes touched."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from ...dtype import dtypes
from ...ir import index
from ...ir.index import sint
from ...ir.linear import in_loops
from ...ir.nest import ranges_of
from ...ir.ops import ELEMENTWISE, Ops
from ...ir.uop import UOp, toposort
from ...ir.walks import of_op
from ...renderer import Estimates
from ...shape import smin
from ...shape.sizes import vmax
from .predict import iterations_of

#: Elementwise ops that do not count as arithmetic: they choose, convert or watch.
_FREE = frozenset((Ops.CAST, Ops.BITCAST, Ops.WHERE, Ops.CHECK))


def estimate(sink: UOp) -> Estimates:
    """Arithmetic counts as often as its loops run; the bytes of a buffer once, as far as it is walked."""
    operations: sint = 0
    touched: dict[UOp, sint] = {}
    iterations: dict[Any, sint] = {}
    for node in sink.toposort():
        op = node.op
        if op is Ops.REDUCE:
            operations += _iterations(ranges_of(node) | set(node.src[1:]), iterations)
        elif op in ELEMENTWISE:
            if _is_arithmetic(node):
                operations += _iterations(ranges_of(node), iterations)
        elif op is Ops.INDEX and node.src[0].op is Ops.DEFINE_GLOBAL:
            buffer = node.src[0]
            touched[buffer] = touched.get(buffer, 0) + _iterations(ranges_of(node.src[1]), iterations)
    total: sint = 0
    for buffer, elements in touched.items():
        total += smin(elements, buffer.dtype.size) * buffer.dtype.base.itemsize  # type: ignore[attr-defined]
    return Estimates(_plain(operations), _plain(total))


def executed(uops: Sequence[UOp]) -> int:
    """The arithmetic of a linear program as often as it runs, of vectors each lane, but for addresses.

    More than `estimate` says where a program computes something again that it could have kept.
    """
    addresses = toposort(
        [index for node in of_op(uops, Ops.INDEX) for index in node.src[1:]],
        lambda node: () if node.op is Ops.LOAD else node.src,
    )
    beside = set(addresses)
    operations, threads = 0, 1
    for node, around in in_loops(uops):
        if node.op is Ops.SPECIAL:
            threads *= vmax(node.arg[1])
        elif node not in beside and _is_arithmetic(node):
            times = threads * math.prod(map(iterations_of, around))
            operations += times * node.dtype.count * (2 if node.op is Ops.MULACC else 1)
    return operations


def _is_arithmetic(node: UOp) -> bool:
    if node.op not in ELEMENTWISE or node.op in _FREE:
        return False
    return node.src[-1].dtype is not dtypes.index and node.dtype is not dtypes.index


def _iterations(ranges: Iterable[UOp], known: dict[Any, sint]) -> sint:
    """How often the body of these loops runs."""
    key = frozenset(ranges)
    found = known.get(key)
    if found is None:
        found = 1
        for r in key:
            found = found * index.as_sint(r.src[0])
        known[key] = found
    return found


def _plain(number: sint) -> sint:
    return index.as_sint(number) if isinstance(number, UOp) else number

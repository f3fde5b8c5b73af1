"""On a grid a sum of products of matrices is a kernel for each product: each adds to what the last one made.

    sum over k of a[i,k] b[k,j] + c[i,k] d[k,j]
        is   (sum over k of a[i,k] b[k,j]) + (sum over k of c[i,k] d[k,j])

Gradients make such sums, where a value has several readers. A product alone is computed in blocks that
workgroups share, by tensor cores where the target has them (`gpu/blocks.py`), which is worth more
than the trip of the result through memory. Sums of few steps stay: there the trip is most of it. What is
added is in the type of the sum, so nothing is rounded more often.
"""

from __future__ import annotations

import math

from ...decisions import yes_or_no
from ...dtype import dtypes
from ...ir.args import ReduceArg
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...shape.rules import shape_of
from ..graph.requested import near
from .reduces_of_broadcasts import repeated_axes

#: From so many steps on a product is a kernel of its own.
STEPS = 32


def split_products(node: UOp) -> UOp:
    """A reduction, or the sum of those of its products."""
    terms = _terms(node.src[0])
    if node.arg.op is not Ops.ADD or not dtypes.is_float(node.dtype) or len(terms) < 2:
        return node
    sizes = [shape_of(node.src[0])[axis] for axis in node.arg.axes]
    steps = math.prod(size for size in sizes if isinstance(size, int))
    if not all(_is_contraction(term, node.arg) for term in terms):
        return node
    if not yes_or_no("products_apart", near(node), steps >= STEPS, lambda: True):
        return node
    first, *others = (UOp(Ops.REDUCE_AXIS, node.dtype, (term,), node.arg) for term in terms)
    for other in others:
        first = UOp(Ops.ADD, node.dtype, (first, other))
    return first


def _terms(value: UOp) -> list[UOp]:
    if value.op is not Ops.ADD:
        return [value]
    return [term for source in value.src for term in _terms(source)]


def _is_contraction(term: UOp, arg: ReduceArg) -> bool:
    """Whether a value is a product of two of which each repeats along an axis that the other one has."""
    if term.op is not Ops.MUL:
        return False
    left, right = (repeated_axes(source) - set(arg.axes) for source in term.src)
    shape = shape_of(term)
    return any(shape[axis] != 1 for axis in left - right) and any(shape[axis] != 1 for axis in right - left)

"""Products that are added: MULACC and DOT, formed where a target has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ...dtype import dtypes
from ...ir.linear import LinearWriter
from ...ir.nest import operands
from ...ir.ops import Ops
from ...ir.rewrite import transform
from ...ir.uop import UOp, toposort
from ...ir.walks import of_op
from ...renderer import Renderer
from ..expressions.constants import fold, is_zero, lane_values
from .decompose import decomposed


def form_multiply_add(sink: UOp, renderer: Renderer) -> UOp:
    """`a*b + c` becomes MULACC where the target has it, if that sum is the product's only use.

    Of two products the left one is taken; `a*b - c` and `c - a*b` take a negation, which is exact. Within
    the terms of a REDUCE a product may be masked: there `where(m, a*b, 0) + c` is `where(m, a*b + c, c)`.
    """
    order = sink.toposort()
    uses = Counter([s for node in order for s in node.src if s.op in (Ops.MUL, Ops.WHERE, Ops.ADD)])
    native = {node.dtype.scalar_type: False for node in uses}
    native = {dtype: renderer.supports(Ops.MULACC, dtype) for dtype in native}
    terms = _terms_of_reductions(order, uses)

    def fused(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
        if (
            node.op not in (Ops.ADD, Ops.SUB)
            or node.arg is not None
            or not native.get(node.dtype.scalar_type)
        ):
            return None
        single = [
            uses[s] == 1
            and (s.op is Ops.MUL or (node in terms and is_masked_product(s) and uses[s.src[1]] == 1))
            for s in node.src
        ]
        return _fused(node.op, src, single)

    return transform(sink, fused, "multiply and add", order=order)


def _terms_of_reductions(order: Sequence[UOp], uses: Counter[UOp]) -> set[UOp]:
    """The sums that only a REDUCE adds up: of a zero in them the sign does not matter."""
    found: set[UOp] = set()
    for node in reversed(order):
        if node in found or (node.op is Ops.REDUCE and node.arg is Ops.ADD):
            found.update([term for term in operands(node) if term.op is Ops.ADD and uses[term] == 1])
    return found


def _fused(op: Ops, src: tuple[UOp, ...], single: list[bool]) -> UOp | None:
    left, right = src
    if single[0]:
        return _multiplied_and_added(left, _negative(right) if op is Ops.SUB else right)
    if single[1]:
        if op is Ops.SUB:
            a, b = right.src
            return UOp(Ops.MULACC, right.dtype, (_negative(a), b, left))
        return _multiplied_and_added(right, left)
    return None


def _multiplied_and_added(product: UOp, other: UOp) -> UOp:
    """`product + other`, where the product may be masked."""
    if product.op is Ops.MUL:
        return UOp(Ops.MULACC, product.dtype, (*product.src, other))
    condition, inner, _ = product.src
    added = UOp(Ops.MULACC, inner.dtype, (*inner.src, other))
    return UOp(Ops.WHERE, product.dtype, (condition, added, other))


def _negative(x: UOp) -> UOp:
    return fold(Ops.NEG, x.dtype, (x,)) or -x


def is_masked_product(value: UOp) -> bool:
    """Whether a value is a product where a condition holds, and 0 elsewhere."""
    if value.op is not Ops.WHERE or value.src[1].op is not Ops.MUL:
        return False
    zero = value.src[2]
    while zero.op is Ops.VECTORIZE:
        zero = zero.src[0]
    return zero.op is Ops.CONST and not any(lane_values(zero))


# *** sums of products of packed numbers


#: Sums of products of packed numbers.
DOTS = (Ops.DOT, Ops.DP4A)


def is_of_warps(value: UOp) -> bool:
    """Whether a value is a WMMA, or a sum of such, lane by lane or not."""
    while value.op in (Ops.ADD, Ops.VECTORIZE, Ops.GEP):
        value = value.src[0]
    return value.op is Ops.WMMA


def is_first_dot(value: UOp) -> bool:
    """Whether a value is a DOT or a DP4A that adds to nothing yet: a sum of such may be added to instead."""
    return value.op in DOTS and is_zero(value.src[2])


def accumulate(op: Ops, accumulator: UOp, value: UOp, renderer: Renderer, *, shared: bool = False) -> UOp:
    """`accumulator op value`, for who turns a REDUCE into its loop: an unshared product is fused in.

    A product that counts where a condition holds is fused there: elsewhere the accumulator stays as it is.
    """
    if op is Ops.ADD and not shared and is_first_dot(value):
        return UOp(value.op, value.dtype, (*value.src[:2], accumulator), value.arg)
    if op is Ops.ADD and not shared and renderer.supports(Ops.MULACC, value.dtype.scalar_type):
        if value.op is Ops.MUL or is_masked_product(value):
            return _multiplied_and_added(value, accumulator)
    if op in (Ops.MAX, Ops.MIN) or value.dtype.scalar_type is dtypes.bool:
        return decomposed(UOp(op, value.dtype, (accumulator, value)), renderer, kept=(accumulator, value))
    return UOp(op, value.dtype, (accumulator, value))


# *** in a list


def form_sums(program: list[UOp], renderer: Renderer) -> list[UOp]:
    """The linear program whose accumulators are assigned what its target has.

        alu0 = val0 * val1
        acc0 = acc0 + alu0           becomes      acc0 = mulacc(val0, val1, acc0)

    where nothing else needs the product. For MAX and MIN, and for bools, what stands for them is written.
    """
    assigned = [node.src for node in of_op(program, Ops.ASSIGN) if len(node.src[1].src) == 2]
    if not assigned:
        return program
    uses = Counter([source for node in program for source in node.src])
    formed: dict[UOp, UOp] = {}  # what is assigned → what is instead
    known: dict[UOp, set[UOp]] = {}  # the same → what that is made of, which stands there
    merged: set[UOp] = set()  # products that are in it
    for accumulator, total in assigned:
        other, value = total.src if total.src[0] is accumulator else total.src[::-1]
        product = {value, value.src[1]} if is_masked_product(value) else {value}
        alone = all(uses[part] == 1 for part in (total, *product))
        made = accumulate(total.op, other, value, renderer, shared=not alone)
        if made.op is total.op and set(made.src) == set(total.src):
            continue
        formed[total] = made
        known[total] = {other, value, *(source for part in product for source in part.src)}
        if total.op is Ops.ADD and value not in made.src:
            merged |= product
    if not formed:
        return program
    written = LinearWriter()
    for node in program:
        steps = [node]
        if node in formed:
            steps = toposort((formed[node],), done=known[node] | written.visible)
        elif node.op is Ops.ASSIGN and node.src[1] in formed:
            steps = [node.replace(src=(node.src[0], formed[node.src[1]]))]
        elif node in merged:
            continue
        for step in steps:
            written.add(step)
    return written.listed()

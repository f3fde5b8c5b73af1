"""The expressions of a kernel in one pass, apart from its reductions, as they are written for elements."""

from __future__ import annotations

from typing import NamedTuple

from ...codegen.expressions.ranges import substitute_ranges
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...renderer import Renderer
from .lanes import legal, placeholder
from .rule import OnePass

#: Which placeholder stands for what.
SHIFTED, MOST, SUM, TOTAL, PRODUCTS = range(5)


class Expressions(NamedTuple):
    """The expressions of a kernel in the ops of the target, placeholders in the place of what is summed."""

    power: UOp | None
    x: UOp
    shift: UOp | None
    late: list[UOp]
    value: UOp
    access: UOp
    sides: list[tuple[UOp, UOp]]
    values: UOp | None
    weights: UOp | None
    limits: list[UOp]
    beside: list[UOp]


def expressions_of(parts: OnePass, renderer: Renderer) -> Expressions:
    known = {reduction: placeholder(MOST, parts.total) for reduction in parts.most}
    known.update((reduction, placeholder(SUM, parts.total)) for reduction in parts.sums)
    known.setdefault(parts.total, placeholder(TOTAL, parts.total))
    known.update(
        (product.total, placeholder(PRODUCTS + n, parts.total)) for n, product in enumerate(parts.products)
    )
    zero = UOp.const(parts.total.dtype, 0.0)
    power = parts.power
    exact = parts.shift is None or parts.shift in parts.most  # then the last correction is 1
    wanted = [
        zero if power is None else UOp(power.op, power.dtype, (placeholder(SHIFTED, power),)),
        parts.x,
        zero if exact or parts.shift is None else parts.shift,
        parts.store,
        product_of(parts.values, zero),
        product_of(parts.weights, zero),
    ]
    count = len(wanted)
    wanted += [factor.value for factor in parts.late]
    wanted += [side for product in parts.products for side in (product.left, product.right)]
    wanted += [limit.rest for limit in parts.limits]
    wanted += parts.beside
    replaced = substitute_ranges(UOp.sink(*wanted), known).src
    made, x, shift, store, values, weights, *more = legal(replaced, renderer)
    access, value = store.src
    late, more = more[: len(parts.late)], more[len(parts.late) :]
    assert len(replaced) == count + len(late) + len(more)
    sides = list(
        zip(more[0 : 2 * len(parts.products) : 2], more[1 : 2 * len(parts.products) : 2], strict=True)
    )
    more = more[2 * len(sides) :]
    return Expressions(
        None if power is None else made, x, None if exact and parts.shift is not None else shift, late,
        value, access, sides,
        values if parts.values else None, weights if parts.weights else None,
        more[: len(parts.limits)], more[len(parts.limits) :],
    )  # fmt: skip


def product_of(factors: tuple[UOp, ...], none: UOp) -> UOp:
    """The factors multiplied."""
    if not factors:
        return none
    made = factors[0]
    for factor in factors[1:]:
        made = UOp(Ops.MUL, made.dtype, (made, factor))
    return made

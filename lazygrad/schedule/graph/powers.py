"""Powers in the tensor graph: values f(x - m), where f turns a sum into a product.

`direct/one_pass/rule.py` says what follows from that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ...ir.ops import ELEMENTWISE, SUMS_TO_PRODUCTS, Ops
from ...ir.uop import UOp
from ...ir.walks import noted
from ...shape.movement import below_movement


def powers_in(values: Iterable[UOp], is_stored: Callable[[UOp], bool]) -> set[UOp]:
    """The powers that values are made of, without those inside of reductions and of what is stored."""
    found, seen, stack = set[UOp](), set[UOp](), list(values)
    while stack:
        node = below_movement(stack.pop())
        if node in seen or not _has_powers(node) or is_stored(node):
            continue
        seen.add(node)
        if node.op in SUMS_TO_PRODUCTS:
            found.add(node)
        stack += node.src
    return found


def _has_powers(node: UOp) -> bool:
    """Whether powers are among what a value is made of, if nothing is stored; cached on it."""
    if node.op not in ELEMENTWISE:
        return False
    found: bool | None = node.facts.get("has_powers")
    return noted(node, "has_powers", _made_of_powers, _computed_from) if found is None else found


def _computed_from(node: UOp) -> list[UOp]:
    return [base for base in map(below_movement, node.src) if base.op in ELEMENTWISE]


def _made_of_powers(node: UOp) -> bool:
    return node.op in SUMS_TO_PRODUCTS or any(base.facts["has_powers"] for base in _computed_from(node))


def is_shifted(value: UOp) -> bool:
    """Whether a value is made of powers f(x - m), where m is a reduction."""
    for power in powers_in([value], lambda node: False):
        shifted = below_movement(power.src[0])
        if shifted.op is Ops.SUB and _is_reduced(shifted.src[1]):
            return True
    return False


def _is_reduced(value: UOp) -> bool:
    """Whether a value is made of a greatest one, with few steps between."""
    stack = [value]
    for _ in range(8):
        if not stack:
            return False
        node = below_movement(stack.pop())
        if node.op is Ops.REDUCE_AXIS:
            return node.arg.op is Ops.MAX
        if node.op in ELEMENTWISE:
            stack += node.src
    return False

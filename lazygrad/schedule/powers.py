"""Powers in the tensor graph: values f(x - m), where f turns a sum into a product.

`codegen/one_pass/rule.py` says what follows from that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..codegen.one_pass.limits import SUMS_TO_PRODUCTS
from ..ir.ops import ELEMENTWISE, Ops
from ..ir.uop import UOp
from ..shape.movement import below_movement


def powers_in(values: Iterable[UOp], is_stored: Callable[[UOp], bool]) -> set[UOp]:
    """The powers that values are made of, without those inside of reductions and of what is stored."""
    found, seen, stack = set[UOp](), set[UOp](), list(values)
    while stack:
        node = below_movement(stack.pop())
        if node in seen or node.op not in ELEMENTWISE or is_stored(node):
            continue
        seen.add(node)
        if node.op in SUMS_TO_PRODUCTS:
            found.add(node)
        stack += node.src
    return found


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

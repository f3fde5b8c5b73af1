"""One walk over the graph, users first: the gradients of a node's users, summed up, go on to its sources."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Sequence
from typing import NamedTuple

from ..dtype import dtypes
from ..ir.ops import ELEMENTWISE, MOVEMENT, Ops
from ..ir.uop import UOp
from ..shape import movement
from ..shape.rules import shape_of
from .joins import condition_of, is_choice_of_two
from .nodes import filled, like
from .rules import GRADIENTS, NO_GRADIENT
from .tiles import total

# *** masks: what `where` did not take must not answer


class _Mask(NamedTuple):
    """Where the gradient of a node may be other than zero.

    `where(x > 0, log(x), 0)` sends a gradient of 0 to log(x) at x = 0, and 0/0 would be NaN. So the
    condition travels with the gradient, and every product on the way is cut with it again. (Comparing the
    gradient with 0 instead would be wrong for second derivatives.) `near` until a reduction is passed:
    products inside a contraction are not cut.
    """

    condition: UOp
    near: bool


def _negated(condition: UOp) -> UOp:
    return condition.ne(filled(shape_of(condition), dtypes.bool, True))


def _both(mask: _Mask | None, condition: UOp) -> _Mask:
    return _Mask(condition, True) if mask is None else _Mask(mask.condition & condition, mask.near)


def _either(a: _Mask | None, b: _Mask | None) -> _Mask | None:
    if a is None or b is None:
        return None
    return a if a.condition is b.condition else _Mask(a.condition | b.condition, a.near and b.near)


def _mask_of_source(mask: _Mask | None, node: UOp, position: int) -> _Mask | None:
    """The mask of the gradient that a node sends to one of its sources."""
    op = node.op
    if op is Ops.WHERE and is_choice_of_two(node):
        return mask  # both parts are all there
    if op is Ops.WHERE:
        condition = condition_of(node)
        return _both(mask, condition if position == 1 else _negated(condition))
    if mask is None or op in ELEMENTWISE or op is Ops.CONTIGUOUS:
        return mask
    condition, shape = mask.condition, shape_of(node.src[0])
    if op is Ops.REDUCE_AXIS:
        return _Mask(movement.expand(condition, shape), False)
    if op is Ops.EXPAND:
        # only a condition that is itself constant along the axes needs no reduction
        if condition.op is Ops.EXPAND and shape_of(condition.src[0]) == shape:
            return _Mask(condition.src[0], mask.near)
        return None
    if op in MOVEMENT:
        moved = GRADIENTS[op](condition, node)[0]
        return None if moved is None else _Mask(moved, mask.near)
    return None


#: Their slopes may be infinite or NaN where the value is not used.
_PRODUCTS = frozenset(
    (Ops.FDIV, Ops.RECIP, Ops.POW, Ops.SQRT, Ops.EXP, Ops.LOG, Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.COS, Ops.TANH)
    + (Ops.ERF, Ops.FMOD)
)


def _must_cut(mask: _Mask | None, node: UOp, position: int) -> bool:
    if mask is None:
        return False
    if node.op in (Ops.MUL, Ops.MULACC):
        return mask.near and position < 2 and not _is_finite_constant(node.src[1 - position])
    if node.op is Ops.FDIV and position == 0 and _is_finite_constant(node.src[1]):
        return False
    return node.op in _PRODUCTS


def _is_finite_constant(node: UOp) -> bool:
    base = movement.below_movement(node)
    return base.op is Ops.CONST and math.isfinite(base.arg)


# *** the walk


def gradient(
    root: UOp,
    grad: UOp,
    targets: Iterable[UOp],
    order: Sequence[UOp] | None = None,
    leaves: Container[UOp] = (),
) -> dict[UOp, UOp]:
    """The gradient of each target that `root` depends on smoothly.

    Target → a graph of the target's shape and dtype.

    root     what is differentiated, of a float dtype
    grad     the gradient of root's elements, of its shape and dtype (ones, for the gradient of its sum)
    targets  nodes below root (or root itself); one that root does not depend on is missing in the answer
    order    `root.toposort()`, for those who have it
    leaves   nodes that count as given: nothing flows through them to what they are made of
    """
    wanted = set(targets)
    order = root.toposort() if order is None else order
    on_path = _between(order, wanted)
    if root not in on_path:
        return {}
    grads: dict[UOp, list[UOp]] = {root: [grad]}
    masks: dict[UOp, _Mask | None] = {root: None}
    found: dict[UOp, UOp] = {}
    for node in reversed(order):
        parts = grads.pop(node, None)
        if parts is None:
            continue
        grad = parts[0] if len(parts) == 1 else total(parts, node)
        if node in wanted:
            found[node] = grad
        mask = masks.pop(node)
        if node in leaves or on_path.isdisjoint(node.src):
            continue
        rule = GRADIENTS.get(node.op)
        if rule is None:
            raise NotImplementedError(f"the gradient of {node.op} is not implemented yet")
        for position, (source, part) in enumerate(zip(node.src, rule(grad, node), strict=True)):
            if part is None or source not in on_path:
                continue
            if mask is not None and _must_cut(mask, node, position):
                part = mask.condition.where(part, like(part, 0.0))
            unmasked = mask is None and node.op is not Ops.WHERE
            source_mask = None if unmasked else _mask_of_source(mask, node, position)
            if source in grads:
                grads[source].append(part)
                masks[source] = _either(masks[source], source_mask)
            else:
                grads[source], masks[source] = [part], source_mask
    return found


def _between(order: Sequence[UOp], wanted: set[UOp]) -> set[UOp]:
    """The nodes of floats that depend smoothly on a wanted one; of an order that has sources first."""
    found: set[UOp] = set()
    for node in order:
        if node in wanted or not found.isdisjoint(node.src):
            smooth = node in wanted or GRADIENTS.get(node.op) is not NO_GRADIENT
            if smooth and dtypes.is_float(node.dtype):
                found.add(node)
    return found

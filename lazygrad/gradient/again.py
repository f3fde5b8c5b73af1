"""The gradients of a graph whose structure was differentiated before: from a `Recipe`.

The rules look at a graph's structure alone: ops, dtypes, arguments, which node reads which. So a loop that
differentiates the same graph of other memory in each turn gets its gradients, from some turn on, node by node
from a list; no rule runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..config import flags_state
from ..dtype import const_bits
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..shape.movement import below_movement
from ..shape.recipe import MOST_ROWS, ONE_OF_A_KIND, Recipe, learned
from .walk import gradient


def gradient_again(root: UOp, grad: UOp, targets: Iterable[UOp], order: Sequence[UOp]) -> dict[UOp, UOp]:
    """What `gradient` gives. `order` is `root.toposort()`."""
    targets = list(targets)
    key = _structure(grad, targets, order)
    if key is None:
        return gradient(root, grad, targets, order)
    known = learned.get(key, _ABSENT)
    if known is _ABSENT:
        found = gradient(root, grad, targets, order)
        if learned.is_due(key):
            _keep(key, found, grad, order)
        return found
    if known is None:
        return gradient(root, grad, targets, order)
    recipe, places = known
    made = recipe.on([*order, grad])
    return {order[place]: made[result] for place, result in zip(places, recipe.results, strict=True)}


_ABSENT: Any = object()
#: Their gradients may follow from more than structure.
_REFUSED = (ONE_OF_A_KIND - {Ops.BUFFER, Ops.UNIQUE}) | {Ops.FUNCTION}


def _structure(grad: UOp, targets: Sequence[UOp], order: Sequence[UOp]) -> tuple[Any, ...] | None:
    """What the gradients follow from; None where that is not known."""
    overlay, changes = flags_state()
    if overlay or len(order) > MOST_ROWS or below_movement(grad).op is not Ops.CONST:
        return None
    number: dict[UOp, int] = {}
    rows: list[Any] = [gradient_again, changes]
    describe = rows.extend
    for node in (*order, *grad.toposort()):
        if node in number:
            continue
        op, arg, src = node.op, node.arg, node.src
        if op in _REFUSED or (op is Ops.PROGRAM and arg.kernel.is_unique):
            return None
        if op is Ops.CONST:
            arg = arg if type(arg) is not float else const_bits(arg, node.dtype)
        elif op is Ops.UNIQUE or op is Ops.DETACH:
            arg = None  # which memory or whose leaf it is
        describe((op, node.dtype, arg, len(src)))
        for source in src:
            rows.append(number[source])
        number[node] = len(number)
    describe([number[node] for node in (grad, *targets) if node in number])
    return tuple(rows)


def _keep(key: Any, found: dict[UOp, UOp], grad: UOp, order: Sequence[UOp]) -> None:
    recipe = Recipe.of(list(found.values()), [*order, grad])
    if recipe is None or recipe.checks:
        learned.keep(key, None)
        return
    number = {node: place for place, node in enumerate(order)}
    learned.keep(key, (recipe, [number[target] for target in found]))

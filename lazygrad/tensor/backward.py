"""Gradients of a tensor: handed back (`gradient`), or added to `grad` of every leaf (`backward`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Self

from ..gradient import gradient_again
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..schedule.extensions import sharding
from ..schedule.graph.versions import latest, placed
from ..shape.movement import broadcast_to
from ..shape.rules import shape_of
from .computing import live_tensors
from .face import Tensor
from .observer import observing
from .sources import constant
from .storage import base_of, is_marked, rebase

#: What an error adds where the tensor was not said to need a gradient.
RECORDED = "; what was realized on the way, and what was computed in memory, needs requires_grad=True on it"


class Backward(Tensor):
    """Methods that differentiate."""

    def gradient(self, *targets: Tensor, gradient: Tensor | None = None) -> list[Tensor]:
        """The gradients of this scalar with respect to the targets; they can be differentiated again.

        gradient  what flows in from above, of this tensor's shape; needed if this tensor is not a scalar

        >>> (lambda x: (x * x).sum().gradient(x))(Tensor([3.0], requires_grad=True))[0].tolist()
        [6.0]
        """
        if observing.by is not None:
            observing.by.makes_gradients()
        if gradient is None:
            if self.numel() != 1:
                raise ValueError(
                    f"the gradient of a tensor of shape {self.shape} needs gradient=, of that shape"
                )
            seed = broadcast_to(constant(1.0, self.dtype, self.device), self.shape)
        else:
            if gradient.shape != self.shape:
                raise ValueError(f"gradient= has shape {gradient.shape}, this tensor {self.shape}")
            seed = gradient.uop.cast(self.dtype)
        order = self.uop.toposort()
        places = Positions(order)
        wanted = [places.of(target) for target in targets]
        found = gradient_again(self.uop, seed, [node for nodes in wanted for node in nodes], order)
        results: list[Tensor] = []
        for target, nodes in zip(targets, wanted, strict=True):
            total = _sum_of(found, nodes)
            if total is None and 0 in target.shape:  # nothing flows to no elements
                zero = constant(0.0, target.dtype, target.device)
                results.append(type(self)._make(broadcast_to(zero, target.shape)))
                continue
            if total is None:
                hint = "" if target._requires_grad else RECORDED
                raise ValueError(
                    f"the result does not depend (differentiably) on the tensor of shape {target.shape}{hint}"
                )
            parents = [t for t in (self, gradient) if t is not None]
            results.append(type(self)._make(placed(total, target.device), *parents))
        return results

    def backward(self, gradient: Tensor | None = None) -> Self:
        """Add this scalar's gradient to `grad` of every tensor that it depends on and that requires it.

        >>> (lambda x: ((x * x).sum().backward(), x.grad.tolist()))(Tensor([3.0], requires_grad=True))[1]
        [6.0]
        """
        if observing.by is not None:
            observing.by.makes_gradients()
        if not self._requires_grad:
            raise RuntimeError(
                "backward() on a tensor that requires no gradient: no tensor it depends on has requires_grad"
            )
        if gradient is None and self.numel() != 1:
            raise ValueError(f"backward() of a tensor of shape {self.shape} needs gradient=, of that shape")
        if gradient is not None and gradient.shape != self.shape and gradient.numel() != 1:
            raise ValueError(f"gradient= has shape {gradient.shape}, this tensor {self.shape}")
        one = constant(1.0, self.dtype, self.device) if gradient is None else gradient.uop.cast(self.dtype)
        seed = broadcast_to(one, self.shape)
        order = self.uop.toposort()
        places = Positions(order)
        leaves: list[tuple[Tensor, list[UOp]]] = []
        for tensor in live_tensors():
            if tensor._leaf and tensor._requires_grad and (nodes := places.of(tensor)):
                leaves.append((tensor, nodes))
        found = gradient_again(self.uop, seed, [node for _, nodes in leaves for node in nodes], order)
        for tensor, nodes in leaves:
            total = _sum_of(found, nodes)
            if total is not None:
                if isinstance(tensor.device, tuple):
                    total = sharding().placed_as_leaf(total, tensor.uop)
                total = placed(total, tensor.device)
                grad = type(self)._make(UOp(Ops.DETACH, total.dtype, (total,)))
                tensor.grad = grad if tensor.grad is None else tensor.grad + grad
        return self


def _sum_of(found: dict[UOp, UOp], nodes: list[UOp]) -> UOp | None:
    """The sum of the gradients of several nodes; None where none has one."""
    total: UOp | None = None
    for node in nodes:
        if node in found:
            total = found[node] if total is None else total + found[node]
    return total


class Positions:
    """Where tensors are in a graph."""

    def __init__(self, nodes: Iterable[UOp]) -> None:
        self.nodes = set(nodes)
        self.marked: dict[int, list[UOp]] = {}
        for node in self.nodes:
            if node.op is Ops.DETACH and is_marked(node):
                self.marked.setdefault(node.arg, []).append(node)

    def of(self, tensor: Tensor) -> list[UOp]:
        """The nodes that a tensor is: several, where it was used before it was computed and after."""
        node = tensor.uop
        if is_marked(node):
            return self.marked.get(node.arg, [])
        found = [node] if node in self.nodes else []
        found += [other for other in self._recorded_as(node) if other not in found]
        if len(found) > 1:  # what is made of another one passes on to it
            below = {other: set(other.toposort()) for other in found}
            found = [a for a in found if not any(b in below[a] for b in found if b is not a)]
        return found

    def _recorded_as(self, node: UOp) -> Iterator[UOp]:
        """The nodes under which a value that has been realized since stands here."""
        base = base_of(node)
        for ref in base.facts.get("values", ()):
            recorded = ref()
            # the result of a Function is another value than the one that it equals
            if recorded is None or recorded not in self.nodes or recorded.op is Ops.FUNCTION:
                continue
            if latest(recorded) is node:
                yield recorded
                continue
            seen = rebase(node, base, recorded) if shape_of(recorded) == shape_of(base) else recorded
            if seen in self.nodes and latest(seen) is node:
                yield seen

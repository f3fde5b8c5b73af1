"""Gradients of a tensor: handed back (`gradient`), or added to `grad` of every leaf (`backward`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from ..gradient import gradient as gradient_of
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..schedule.versions import latest
from ..shape.movement import broadcast_to
from ..shape.rules import shape_of
from .storage import base_of, rebase

if TYPE_CHECKING:
    from . import Tensor

from .base import TensorBase
from .live import live_tensors
from .sources import constant


class BackwardMixin(TensorBase):
    """Methods that differentiate."""

    __slots__ = ()

    def gradient(self, *targets: TensorBase, gradient: TensorBase | None = None) -> list[Tensor]:
        """The gradients of this scalar with respect to the targets; they can be differentiated again.

        gradient  what flows in from above, of this tensor's shape; needed where this tensor is no scalar

        >>> (lambda x: (x * x).sum().gradient(x))(Tensor([3.0], requires_grad=True))[0].tolist()
        [6.0]
        """
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
        below = set(self.uop.toposort())
        wanted = [_place_in(below, target) for target in targets]
        found = gradient_of(self.uop, seed, wanted)
        results = []
        for target, node in zip(targets, wanted, strict=True):
            if node not in found and 0 in target.shape:  # nothing flows to no elements
                zero = constant(0.0, node.dtype, target.device)
                results.append(type(self)._make(broadcast_to(zero, target.shape)))
                continue
            if node not in found:
                raise ValueError(
                    f"the result does not depend (differentiably) on the tensor of shape {target.shape}"
                )
            parents = [t for t in (self, gradient) if t is not None]
            results.append(type(self)._make(found[node], *parents))
        return results

    def backward(self, gradient: TensorBase | None = None) -> Self:
        """Add this scalar's gradient to `grad` of every tensor that it depends on and that requires it.

        >>> (lambda x: ((x * x).sum().backward(), x.grad.tolist()))(Tensor([3.0], requires_grad=True))[1]
        [6.0]
        """
        if not self._requires_grad:
            raise RuntimeError(
                "backward() on a tensor that requires no gradient: no tensor it depends on has requires_grad"
            )
        if gradient is None and self.numel() != 1:
            raise ValueError(f"backward() of a tensor of shape {self.shape} needs gradient=, of that shape")
        if gradient is not None and gradient.shape != self.shape and gradient.numel() != 1:
            raise ValueError(f"gradient= has shape {gradient.shape}, this tensor {self.shape}")
        seed = (
            broadcast_to(constant(1.0, self.dtype, self.device), self.shape)
            if gradient is None
            else broadcast_to(gradient.uop.cast(self.dtype), self.shape)
        )
        below = set(self.uop.toposort())
        leaves: dict[UOp, list[TensorBase]] = {}
        for tensor in live_tensors():
            if tensor._leaf and tensor._requires_grad:
                leaves.setdefault(_place_in(below, tensor), []).append(tensor)
        found = gradient_of(self.uop, seed, list(leaves))
        for node, tensors in leaves.items():
            if node not in found:
                continue
            for tensor in tensors:
                grad = type(self)._make(UOp(Ops.DETACH, node.dtype, (found[node],)))
                tensor.grad = grad if tensor.grad is None else tensor.grad + grad
        return self


def _place_in(graph: set[UOp], tensor: TensorBase) -> UOp:
    """The node that a tensor is in a graph, which may have been recorded before it was computed."""
    node = tensor.uop
    return node if node in graph else _recorded_as(node, graph) or node


def _recorded_as(node: UOp, graph: set[UOp]) -> UOp | None:
    """The node under which a value that has been realized since stands in an older graph."""
    base = base_of(node)
    for ref in base.facts.get("values", ()):
        recorded = ref()
        if recorded is None or recorded not in graph:
            continue
        if latest(recorded) is node:
            return recorded  # type: ignore[no-any-return]
        seen = rebase(node, base, recorded) if shape_of(recorded) == shape_of(base) else recorded
        if seen in graph and latest(seen) is node:
            return seen
    return None

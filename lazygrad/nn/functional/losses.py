"""Losses whose arguments PyTorch's functions have in another order than the methods."""

from __future__ import annotations

from collections.abc import Callable

from ...tensor import Tensor


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The cross entropy of logits with class numbers or probabilities; see `Tensor.cross_entropy`.

    >>> nn.functional.cross_entropy(Tensor([[0.0, 0.0]]), Tensor([1])).item()
    0.6931471824645996
    """
    return input.cross_entropy(target, reduction, label_smoothing, weight=weight, ignore_index=ignore_index)


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """Minus the log probability of the class that the target names; see `Tensor.nll_loss`.

    >>> nn.functional.nll_loss(Tensor([[-1.0, -2.0]]), Tensor([1])).item()
    2.0
    """
    return input.nll_loss(target, weight, ignore_index, reduction)


def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, *, reduction: str = "mean"
) -> Tensor:
    """The cross entropy of probabilities with probabilities; logarithms are limited to -100.

    >>> nn.functional.binary_cross_entropy(Tensor([0.5]), Tensor([1.0])).item()
    0.6931471824645996
    """
    losses = input.binary_crossentropy(target, "none")
    return (losses if weight is None else losses * weight)._reduced(reduction)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """The cross entropy of logits with probabilities, without overflow.

    >>> nn.functional.binary_cross_entropy_with_logits(Tensor([0.0]), Tensor([1.0])).item()
    0.6931471824645996
    """
    losses = input.binary_crossentropy_logits(target, "none", pos_weight)
    return (losses if weight is None else losses * weight)._reduced(reduction)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] = Tensor.pairwise_distance,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """max(0, margin + d(anchor, positive) - d(anchor, negative)) by any distance.

    >>> loss = nn.functional.triplet_margin_with_distance_loss
    >>> apart = lambda a, b: (a - b).abs().sum(-1)
    >>> loss(Tensor([[0.0]]), Tensor([[3.0]]), Tensor([[1.0]]), distance_function=apart).item()
    3.0
    """
    near, far = distance_function(anchor, positive), distance_function(anchor, negative)
    if swap:
        far = far.minimum(distance_function(positive, negative))
    return (near - far + margin).clamp(min=0.0)._reduced(reduction)

"""Losses."""

from __future__ import annotations

from typing import Any

from ....tensor import Tensor
from ..table import op
from ..values import shape_of


@op("NegativeLogLikelihoodLoss")
def nll_loss(
    x: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Tensor:
    """-weight[target] · x[target] along axis 1; `mean` divides by the weights that counted."""
    classes = shape_of(x)[1]
    hidden = None if ignore_index is None else target == ignore_index
    safe = target if hidden is None else hidden.where(0, target)
    safe = safe._class_checked(classes)
    picked = x.gather(1, safe.unsqueeze(1)).squeeze(1)
    counts = weight[safe] if weight is not None else picked.ones_like()
    if hidden is not None:
        counts = hidden.where(0.0, counts).cast(x.dtype)
        picked = hidden.where(0.0, picked).cast(x.dtype)
    loss = -picked * counts
    if reduction == "none":
        return loss
    return loss.sum() / counts.sum() if reduction == "mean" else loss.sum()


@op("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy_loss(
    scores: Tensor,
    labels: Tensor,
    weights: Tensor | None = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
    outputs: int,
) -> Any:
    logs = scores.log_softmax(1)
    return (nll_loss(logs, labels, weights, ignore_index=ignore_index, reduction=reduction), logs)[:outputs]

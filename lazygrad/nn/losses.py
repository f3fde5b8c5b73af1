"""Losses as layers: what they are given stays in them, `loss(prediction, target)` computes.

`reduction` is "mean", "sum" or "none".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..tensor import Tensor
from . import functional

Lengths = Tensor | Sequence[int]


@dataclass(eq=False)
class MSELoss:
    """The squared distance to the target.

    >>> nn.MSELoss()(Tensor([1.0]), Tensor([3.0])).item()
    4.0
    """

    reduction: str = "mean"

    def __call__(self, x: Tensor, target: Tensor) -> Tensor:
        return x.mse_loss(target, self.reduction)


@dataclass(eq=False)
class L1Loss:
    """The distance to the target.

    >>> nn.L1Loss()(Tensor([1.0]), Tensor([3.0])).item()
    2.0
    """

    reduction: str = "mean"

    def __call__(self, x: Tensor, target: Tensor) -> Tensor:
        return x.l1_loss(target, self.reduction)


@dataclass(eq=False)
class SmoothL1Loss:
    """Squared within `beta` of the target, linear beyond.

    >>> nn.SmoothL1Loss()(Tensor([1.0]), Tensor([3.0])).item()
    1.5
    """

    reduction: str = "mean"
    beta: float = 1.0

    def __call__(self, x: Tensor, target: Tensor) -> Tensor:
        return x.smooth_l1_loss(target, self.reduction, self.beta)


@dataclass(eq=False)
class HuberLoss:
    """Squared within `delta` of the target, linear beyond.

    >>> nn.HuberLoss()(Tensor([1.0]), Tensor([3.0])).item()
    1.5
    """

    reduction: str = "mean"
    delta: float = 1.0

    def __call__(self, x: Tensor, target: Tensor) -> Tensor:
        return x.huber_loss(target, self.reduction, self.delta)


@dataclass(eq=False)
class CrossEntropyLoss:
    """The cross entropy of logits with class numbers or probabilities; see `Tensor.cross_entropy`.

    >>> nn.CrossEntropyLoss()(Tensor([[0.0, 0.0]]), Tensor([1])).item()
    0.6931471824645996
    """

    weight: Tensor | None = None
    ignore_index: int = -100
    reduction: str = "mean"
    label_smoothing: float = 0.0

    def __call__(self, x: Tensor, target: Tensor) -> Tensor:
        return x.cross_entropy(
            target, self.reduction, self.label_smoothing, weight=self.weight, ignore_index=self.ignore_index
        )


@dataclass(eq=False)
class NLLLoss:
    """Minus the log probability of the class that the target names.

    >>> nn.NLLLoss()(Tensor([[-1.0, -2.0]]), Tensor([1])).item()
    2.0
    """

    weight: Tensor | None = None
    ignore_index: int = -100
    reduction: str = "mean"

    def __call__(self, x: Tensor, target: Tensor) -> Tensor:
        return x.nll_loss(target, self.weight, self.ignore_index, self.reduction)


@dataclass(eq=False)
class BCELoss:
    """The cross entropy of probabilities with probabilities.

    >>> nn.BCELoss()(Tensor([0.5]), Tensor([1.0])).item()
    0.6931471824645996
    """

    weight: Tensor | None = None
    reduction: str = "mean"

    def __call__(self, x: Tensor, target: Tensor) -> Tensor:
        return functional.binary_cross_entropy(x, target, self.weight, reduction=self.reduction)


@dataclass(eq=False)
class BCEWithLogitsLoss:
    """The cross entropy of logits with probabilities, without overflow.

    >>> nn.BCEWithLogitsLoss()(Tensor([0.0]), Tensor([1.0])).item()
    0.6931471824645996
    """

    weight: Tensor | None = None
    reduction: str = "mean"
    pos_weight: Tensor | None = None

    def __call__(self, x: Tensor, target: Tensor) -> Tensor:
        return functional.binary_cross_entropy_with_logits(
            x, target, self.weight, reduction=self.reduction, pos_weight=self.pos_weight
        )


@dataclass(eq=False)
class KLDivLoss:
    """target · (log target - x), where x holds log probabilities.

    >>> nn.KLDivLoss()(Tensor([0.0]), Tensor([1.0])).item()
    0.0
    """

    reduction: str = "mean"
    log_target: bool = False

    def __call__(self, x: Tensor, target: Tensor) -> Tensor:
        return x.kl_div(target, self.reduction, self.log_target)


@dataclass(eq=False)
class PoissonNLLLoss:
    """Minus the log probability of counts by a Poisson distribution.

    >>> nn.PoissonNLLLoss()(Tensor([0.0]), Tensor([2.0])).item()
    1.0
    """

    log_input: bool = True
    full: bool = False
    eps: float = 1e-8
    reduction: str = "mean"

    def __call__(self, x: Tensor, target: Tensor) -> Tensor:
        return x.poisson_nll_loss(target, self.log_input, self.full, self.eps, self.reduction)


@dataclass(eq=False)
class GaussianNLLLoss:
    """Minus the log probability by normal distributions.

    >>> nn.GaussianNLLLoss()(Tensor([1.0]), Tensor([3.0]), Tensor([1.0])).item()
    2.0
    """

    full: bool = False
    eps: float = 1e-6
    reduction: str = "mean"

    def __call__(self, x: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        return x.gaussian_nll_loss(target, var, self.full, self.eps, self.reduction)


@dataclass(eq=False)
class SoftMarginLoss:
    """log(1 + e^(-target·x)), where the target is 1 or -1.

    >>> nn.SoftMarginLoss()(Tensor([0.0]), Tensor([1.0])).item()
    0.6931471824645996
    """

    reduction: str = "mean"

    def __call__(self, x: Tensor, target: Tensor) -> Tensor:
        return x.soft_margin_loss(target, self.reduction)


@dataclass(eq=False)
class HingeEmbeddingLoss:
    """x where the target is 1, max(0, margin - x) where it is -1.

    >>> nn.HingeEmbeddingLoss()(Tensor([0.25]), Tensor([-1.0])).item()
    0.75
    """

    margin: float = 1.0
    reduction: str = "mean"

    def __call__(self, x: Tensor, target: Tensor) -> Tensor:
        return x.hinge_embedding_loss(target, self.margin, self.reduction)


@dataclass(eq=False)
class MarginRankingLoss:
    """max(0, margin - target·(x1 - x2)).

    >>> nn.MarginRankingLoss()(Tensor([1.0]), Tensor([3.0]), Tensor([1.0])).item()
    2.0
    """

    margin: float = 0.0
    reduction: str = "mean"

    def __call__(self, x1: Tensor, x2: Tensor, target: Tensor) -> Tensor:
        return x1.margin_ranking_loss(x2, target, self.margin, self.reduction)


@dataclass(eq=False)
class CosineEmbeddingLoss:
    """1 - cos where the target is 1, max(0, cos - margin) where it is -1.

    >>> nn.CosineEmbeddingLoss()(Tensor([1.0]), Tensor([3.0]), Tensor(-1)).item()
    1.0
    """

    margin: float = 0.0
    reduction: str = "mean"

    def __call__(self, x1: Tensor, x2: Tensor, target: Tensor) -> Tensor:
        return x1.cosine_embedding_loss(x2, target, self.margin, self.reduction)


@dataclass(eq=False)
class TripletMarginLoss:
    """max(0, margin + |anchor - positive| - |anchor - negative|).

    >>> nn.TripletMarginLoss()(Tensor([[0.0]]), Tensor([[3.0]]), Tensor([[1.0]])).item()
    3.0
    """

    margin: float = 1.0
    p: float = 2.0
    eps: float = 1e-6
    swap: bool = False
    reduction: str = "mean"

    def __call__(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return anchor.triplet_margin_loss(
            positive, negative, self.margin, self.p, self.eps, self.swap, self.reduction
        )


@dataclass(eq=False)
class MultiMarginLoss:
    """Σ max(0, margin - x[y] + x[i])^p over all classes i but y, divided by their number.

    >>> nn.MultiMarginLoss()(Tensor([[0.0, 1.0]]), Tensor([0])).item()
    1.0
    """

    p: int = 1
    margin: float = 1.0
    weight: Tensor | None = None
    reduction: str = "mean"

    def __call__(self, x: Tensor, target: Tensor) -> Tensor:
        return x.multi_margin_loss(target, self.p, self.margin, self.weight, self.reduction)


@dataclass(eq=False)
class MultiLabelMarginLoss:
    """Hinges between all wanted classes and all others; see `Tensor.multilabel_margin_loss`.

    >>> nn.MultiLabelMarginLoss()(Tensor([[0.0, 1.0]]), Tensor([[0, -1]])).item()
    1.0
    """

    reduction: str = "mean"

    def __call__(self, x: Tensor, target: Tensor) -> Tensor:
        return x.multilabel_margin_loss(target, self.reduction)


@dataclass(eq=False)
class MultiLabelSoftMarginLoss:
    """The mean over classes of the cross entropy of logits with 0 or 1.

    >>> nn.MultiLabelSoftMarginLoss()(Tensor([[0.0]]), Tensor([[1.0]])).item()
    0.6931471824645996
    """

    weight: Tensor | None = None
    reduction: str = "mean"

    def __call__(self, x: Tensor, target: Tensor) -> Tensor:
        return x.multilabel_soft_margin_loss(target, self.weight, self.reduction)


@dataclass(eq=False)
class CTCLoss:
    """Minus the log probability of texts, over all their alignments; see `Tensor.ctc_loss`.

    >>> round(nn.CTCLoss()(Tensor([[[0.5, 0.5]], [[0.5, 0.5]]]).log(), Tensor([[1]]), [2], [1]).item(), 4)
    0.2877
    """

    blank: int = 0
    reduction: str = "mean"
    zero_infinity: bool = False

    def __call__(self, x: Tensor, targets: Tensor, input_lengths: Lengths, target_lengths: Lengths) -> Tensor:
        return x.ctc_loss(
            targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )


@dataclass(eq=False)
class CosineSimilarity:
    """The cosine of the angle between lines along an axis.

    >>> nn.CosineSimilarity()(Tensor([[1.0, 0.0]]), Tensor([[0.0, 1.0]])).tolist()
    [0.0]
    """

    dim: int = 1
    eps: float = 1e-8

    def __call__(self, x1: Tensor, x2: Tensor) -> Tensor:
        return x1.cosine_similarity(x2, self.dim, self.eps)


@dataclass(eq=False)
class PairwiseDistance:
    """The p-norm of x1 - x2 + eps along the last axis.

    >>> nn.PairwiseDistance(eps=0.0)(Tensor([[3.0, 4.0]]), Tensor([[0.0, 0.0]])).tolist()
    [5.0]
    """

    p: float = 2.0
    eps: float = 1e-6
    keepdim: bool = False

    def __call__(self, x1: Tensor, x2: Tensor) -> Tensor:
        return x1.pairwise_distance(x2, self.p, self.eps, self.keepdim)

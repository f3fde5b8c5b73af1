"""Losses as layers: `loss(prediction, target)` computes, what they are given stays in them.

`reduction` is "mean", "sum" or "none".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from ..tensor import Tensor
from . import functional
from .function_layer import FunctionLayer

Lengths = Tensor | Sequence[int]


class _Reduced(FunctionLayer):
    """A loss of which the mean or the sum is taken, or neither: one of its options is the `reduction`."""

    reductions: ClassVar[tuple[str, ...]] = ("mean", "sum", "none")

    def __post_init__(self) -> None:
        reduction = vars(self)["reduction"]
        if reduction not in self.reductions:
            raise ValueError(f"reduction must be one of {', '.join(self.reductions)}, not {reduction!r}")


class _Loss(_Reduced):
    """What is lost by a prediction instead of the target."""

    def __call__(self, x: Tensor, target: Tensor) -> Tensor:
        return self._called(x, target)


class _PlainLoss(_Loss):
    """A loss whose first option is the reduction."""

    reduction: str = "mean"


class _PairLoss(_Reduced):
    """What is lost by two tensors where they should be near, or far, or in order."""

    def __call__(self, x1: Tensor, x2: Tensor, target: Tensor) -> Tensor:
        return self._called(x1, x2, target)


class _TripletLoss(_Reduced):
    """What is lost where an anchor is not nearer to one tensor than to another."""

    def __call__(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return self._called(anchor, positive, negative)


class MSELoss(_PlainLoss, function=Tensor.mse_loss):
    """The squared difference from the target.

    >>> nn.MSELoss()(Tensor([1.0]), Tensor([3.0])).item()
    4.0
    """


class L1Loss(_PlainLoss, function=Tensor.l1_loss):
    """The absolute difference from the target.

    >>> nn.L1Loss()(Tensor([1.0]), Tensor([3.0])).item()
    2.0
    """


class SmoothL1Loss(_PlainLoss, function=Tensor.smooth_l1_loss):
    """Squared within `beta` of the target, linear beyond.

    >>> nn.SmoothL1Loss()(Tensor([1.0]), Tensor([3.0])).item()
    1.5
    """

    beta: float = 1.0


class HuberLoss(_PlainLoss, function=Tensor.huber_loss):
    """Squared within `delta` of the target, linear beyond.

    >>> nn.HuberLoss()(Tensor([1.0]), Tensor([3.0])).item()
    1.5
    """

    delta: float = 1.0


class CrossEntropyLoss(_Loss, function=functional.cross_entropy):
    """The cross entropy of logits with class numbers or probabilities; see `Tensor.cross_entropy`.

    >>> nn.CrossEntropyLoss()(Tensor([[0.0, 0.0]]), Tensor([1])).item()
    0.6931471824645996
    """

    weight: Tensor | None = None
    ignore_index: int = -100
    reduction: str = "mean"
    label_smoothing: float = 0.0


class NLLLoss(_Loss, function=functional.nll_loss):
    """Minus the log probability of the class that the target names.

    >>> nn.NLLLoss()(Tensor([[-1.0, -2.0]]), Tensor([1])).item()
    2.0
    """

    weight: Tensor | None = None
    ignore_index: int = -100
    reduction: str = "mean"


class BCELoss(_Loss, function=functional.binary_cross_entropy):
    """The cross entropy of probabilities with probabilities.

    >>> nn.BCELoss()(Tensor([0.5]), Tensor([1.0])).item()
    0.6931471824645996
    """

    weight: Tensor | None = None
    reduction: str = "mean"


class BCEWithLogitsLoss(_Loss, function=functional.binary_cross_entropy_with_logits):
    """The cross entropy of logits with probabilities, without overflow.

    >>> nn.BCEWithLogitsLoss()(Tensor([0.0]), Tensor([1.0])).item()
    0.6931471824645996
    """

    weight: Tensor | None = None
    reduction: str = "mean"
    pos_weight: Tensor | None = None


class KLDivLoss(_Loss, function=Tensor.kl_div):
    """target · (log target - x), where x holds log probabilities.

    >>> nn.KLDivLoss()(Tensor([0.0]), Tensor([1.0])).item()
    0.0
    """

    reductions = ("mean", "sum", "none", "batchmean")

    reduction: str = "mean"
    log_target: bool = False


class PoissonNLLLoss(_Loss, function=Tensor.poisson_nll_loss):
    """Minus the log probability of counts by a Poisson distribution.

    >>> nn.PoissonNLLLoss()(Tensor([0.0]), Tensor([2.0])).item()
    1.0
    """

    log_input: bool = True
    full: bool = False
    eps: float = 1e-8
    reduction: str = "mean"


class GaussianNLLLoss(_Reduced, function=Tensor.gaussian_nll_loss):
    """Minus the log probability by normal distributions.

    >>> nn.GaussianNLLLoss()(Tensor([1.0]), Tensor([3.0]), Tensor([1.0])).item()
    2.0
    """

    full: bool = False
    eps: float = 1e-6
    reduction: str = "mean"

    def __call__(self, x: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        return self._called(x, target, var)


class SoftMarginLoss(_PlainLoss, function=Tensor.soft_margin_loss):
    """log(1 + e^(-target·x)), where the target is 1 or -1.

    >>> nn.SoftMarginLoss()(Tensor([0.0]), Tensor([1.0])).item()
    0.6931471824645996
    """


class HingeEmbeddingLoss(_Loss, function=Tensor.hinge_embedding_loss):
    """x where the target is 1, max(0, margin - x) where it is -1.

    >>> nn.HingeEmbeddingLoss()(Tensor([0.25]), Tensor([-1.0])).item()
    0.75
    """

    margin: float = 1.0
    reduction: str = "mean"


class MarginRankingLoss(_PairLoss, function=Tensor.margin_ranking_loss):
    """max(0, margin - target·(x1 - x2)).

    >>> nn.MarginRankingLoss()(Tensor([1.0]), Tensor([3.0]), Tensor([1.0])).item()
    2.0
    """

    margin: float = 0.0
    reduction: str = "mean"


class CosineEmbeddingLoss(_PairLoss, function=Tensor.cosine_embedding_loss):
    """1 - cos where the target is 1, max(0, cos - margin) where it is -1.

    >>> nn.CosineEmbeddingLoss()(Tensor([1.0]), Tensor([3.0]), Tensor(-1)).item()
    1.0
    """

    margin: float = 0.0
    reduction: str = "mean"


class TripletMarginLoss(_TripletLoss, function=Tensor.triplet_margin_loss):
    """max(0, margin + |anchor - positive| - |anchor - negative|).

    >>> nn.TripletMarginLoss()(Tensor([[0.0]]), Tensor([[3.0]]), Tensor([[1.0]])).item()
    3.0
    """

    margin: float = 1.0
    p: float = 2.0
    eps: float = 1e-6
    swap: bool = False
    reduction: str = "mean"


class TripletMarginWithDistanceLoss(_TripletLoss, function=functional.triplet_margin_with_distance_loss):
    """max(0, margin + d(anchor, positive) - d(anchor, negative)) by any distance d.

    >>> nn.TripletMarginWithDistanceLoss()(Tensor([[0.0]]), Tensor([[3.0]]), Tensor([[1.0]])).item()
    3.0
    """

    distance_function: Callable[[Tensor, Tensor], Tensor] = functional.pairwise_distance
    margin: float = 1.0
    swap: bool = False
    reduction: str = "mean"


class MultiMarginLoss(_Loss, function=Tensor.multi_margin_loss):
    """Σ max(0, margin - x[y] + x[i])^p over all classes i but y, divided by their number.

    >>> nn.MultiMarginLoss()(Tensor([[0.0, 1.0]]), Tensor([0])).item()
    1.0
    """

    p: int = 1
    margin: float = 1.0
    weight: Tensor | None = None
    reduction: str = "mean"


class MultiLabelMarginLoss(_PlainLoss, function=Tensor.multilabel_margin_loss):
    """Hinges between all wanted classes and all others; see `Tensor.multilabel_margin_loss`.

    >>> nn.MultiLabelMarginLoss()(Tensor([[0.0, 1.0]]), Tensor([[0, -1]])).item()
    1.0
    """


class MultiLabelSoftMarginLoss(_Loss, function=Tensor.multilabel_soft_margin_loss):
    """The mean over classes of the cross entropy of logits with 0 or 1.

    >>> nn.MultiLabelSoftMarginLoss()(Tensor([[0.0]]), Tensor([[1.0]])).item()
    0.6931471824645996
    """

    weight: Tensor | None = None
    reduction: str = "mean"


class CTCLoss(_Reduced, function=Tensor.ctc_loss):
    """Minus the log probability of texts, over all their alignments; see `Tensor.ctc_loss`.

    >>> round(nn.CTCLoss()(Tensor([[[0.5, 0.5]], [[0.5, 0.5]]]).log(), Tensor([[1]]), [2], [1]).item(), 4)
    0.2877
    """

    blank: int = 0
    reduction: str = "mean"
    zero_infinity: bool = False

    def __call__(self, x: Tensor, targets: Tensor, input_lengths: Lengths, target_lengths: Lengths) -> Tensor:
        return self._called(x, targets, input_lengths, target_lengths)


class _OfTwo(FunctionLayer):
    """What two tensors have in common."""

    def __call__(self, x1: Tensor, x2: Tensor) -> Tensor:
        return self._called(x1, x2)


class CosineSimilarity(_OfTwo, function=Tensor.cosine_similarity):
    """The cosine of the angle between lines along an axis.

    >>> nn.CosineSimilarity()(Tensor([[1.0, 0.0]]), Tensor([[0.0, 1.0]])).tolist()
    [0.0]
    """

    dim: int = 1
    eps: float = 1e-8


class PairwiseDistance(_OfTwo, function=Tensor.pairwise_distance):
    """The p-norm of x1 - x2 + eps along the last axis.

    >>> nn.PairwiseDistance(eps=0.0)(Tensor([[3.0, 4.0]]), Tensor([[0.0, 0.0]])).tolist()
    [5.0]
    """

    p: float = 2.0
    eps: float = 1e-6
    keepdim: bool = False

"""Losses of numbers and distances: how far predictions are from a target.

`reduction` is "mean", "sum" or "none". Argument names are PyTorch's.
"""

from __future__ import annotations

import math
from typing import Any

from ...shape import shape_text
from ..face import Tensor


class Losses(Tensor):
    """Losses of numbers and distances."""

    def mse_loss(self, target: Any, reduction: str = "mean") -> Tensor:
        """The squared difference from the target.

        >>> Tensor([1.0, 4.0]).mse_loss(Tensor([1.0, 2.0])).item()
        2.0
        """
        x, y = self._distance(target, "mse_loss", True)
        return ((x - y) * (x - y))._reduced(reduction)

    def l1_loss(self, target: Any, reduction: str = "mean") -> Tensor:
        """The absolute difference from the target.

        >>> Tensor([1.0, 4.0]).l1_loss(Tensor([1.0, 2.0])).item()
        1.0
        """
        x, y = self._distance(target, "l1_loss", True)
        return (x - y).abs()._reduced(reduction)

    def smooth_l1_loss(self, target: Any, reduction: str = "mean", beta: float = 1.0) -> Tensor:
        """Squared near the target, within `beta`, and linear beyond: d²/(2·beta), d - beta/2.

        >>> Tensor([0.5, 3.0]).smooth_l1_loss(Tensor([0.0, 0.0]), "none").tolist()
        [0.125, 2.5]
        """
        if beta < 0:
            raise ValueError(f"smooth_l1_loss needs a beta of at least 0, not {beta}")
        if beta == 0:
            return self.l1_loss(target, reduction)
        x, y = self._distance(target, "smooth_l1_loss", True)
        away = (x - y).abs()
        return (away < beta).where(away * away * (0.5 / beta), away - 0.5 * beta)._reduced(reduction)

    def huber_loss(self, target: Any, reduction: str = "mean", delta: float = 1.0) -> Tensor:
        """Squared near the target, within `delta`, and linear beyond: d²/2, delta·(d - delta/2) (Huber 1964).

        >>> Tensor([0.5, 3.0]).huber_loss(Tensor([0.0, 0.0]), "none").tolist()
        [0.125, 2.5]
        """
        if delta <= 0:
            raise ValueError(f"huber_loss needs a positive delta, not {delta}")
        x, y = self._distance(target, "huber_loss", True)
        away = (x - y).abs()
        return (away <= delta).where(away * away * 0.5, (away - 0.5 * delta) * delta)._reduced(reduction)

    def kl_div(self, target: Any, reduction: str = "mean", log_target: bool = False) -> Tensor:
        """target · (log target - self), where self holds log probabilities.

        reduction   also "batchmean": the sum divided by the size of the first axis
        log_target  whether the target holds logarithms too

        >>> print(Tensor([[0.5, 0.5]]).log().kl_div(Tensor([[0.0, 1.0]]), "batchmean").numpy())
        0.6931472
        """
        right = self._operand(target)
        x = self._float()
        if log_target:
            losses = right.exp() * (right - x)
        else:
            positive = right > 0
            logs = positive.where(right, 1.0).log()
            losses = (right == 0).where(0.0, right * positive.where(logs, math.nan)) - right * x
        if reduction == "batchmean":
            return losses.sum() / (losses.shape[0] if losses.ndim else 1)
        return losses._reduced(reduction)

    def poisson_nll_loss(
        self,
        target: Any,
        log_input: bool = True,
        full: bool = False,
        eps: float = 1e-8,
        reduction: str = "mean",
    ) -> Tensor:
        """Minus the log probability of counts by a Poisson distribution, without its constant.

        log_input  whether self is the logarithm of the rate
        full       add Stirling's approximation of log(target!), where target is greater than 1

        >>> Tensor([0.0]).poisson_nll_loss(Tensor([2.0])).item()
        1.0
        """
        x, y = self._distance(target, "poisson_nll_loss", True)
        losses = x.exp() - y * x if log_input else x - y * (x + eps).log()
        if full:
            large = y > 1
            safe = large.where(y, 2.0)
            losses = losses + large.where(safe * safe.log() - safe + (safe * (2 * math.pi)).log() * 0.5, 0.0)
        return losses._reduced(reduction)

    def gaussian_nll_loss(
        self, target: Any, var: Tensor | float, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
    ) -> Tensor:
        """Minus the log probability by normal distributions of this mean and variance (Nix, Weigend 1994).

        var   of the shape of self, or one for each vector along the last axis, or a number; at least `eps`
        full  add the constant log(2π)/2

        >>> Tensor([1.0]).gaussian_nll_loss(Tensor([3.0]), Tensor([1.0])).item()
        2.0
        """
        x, y = self._distance(target, "gaussian_nll_loss")
        spread = x._operand(var) if isinstance(var, Tensor) else x._filled(var)
        if spread.ndim == x.ndim - 1 and spread.shape == x.shape[:-1]:
            spread = spread.unsqueeze(-1)
        # the limit is no part of the slope, as in PyTorch
        spread = spread + (spread.clamp(min=eps) - spread).detach()
        losses = (spread.log() + (x - y) * (x - y) / spread) * 0.5
        return (losses + 0.5 * math.log(2 * math.pi) if full else losses)._reduced(reduction)

    def soft_margin_loss(self, target: Any, reduction: str = "mean") -> Tensor:
        """log(1 + e^(-target·self)), where the target is 1 or -1.

        >>> Tensor([0.0]).soft_margin_loss(Tensor([1.0])).item()
        0.6931471824645996
        """
        x, y = self._distance(target, "soft_margin_loss", True)
        return (-(x * y)).softplus()._reduced(reduction)

    def hinge_embedding_loss(self, target: Any, margin: float = 1.0, reduction: str = "mean") -> Tensor:
        """self where the target is 1, max(0, margin - self) where it is -1.

        >>> Tensor([0.25, 0.25]).hinge_embedding_loss(Tensor([1.0, -1.0]), reduction="none").tolist()
        [0.25, 0.75]
        """
        x, y = self._distance(target, "hinge_embedding_loss", True)
        far = (y != 1).where((margin - x).clamp(min=0.0), 0.0)
        return (far + (y != -1).where(x, 0.0))._reduced(reduction)

    def margin_ranking_loss(
        self, input2: Any, target: Any, margin: float = 0.0, reduction: str = "mean"
    ) -> Tensor:
        """max(0, margin - target·(self - input2)): 1 says that self ranks higher, -1 that input2 does.

        >>> Tensor([1.0]).margin_ranking_loss(Tensor([3.0]), Tensor([1.0])).item()
        2.0
        """
        x, y = self._distance(input2, "margin_ranking_loss")
        return (margin - self._operand(target) * (x - y)).clamp(min=0.0)._reduced(reduction)

    def cosine_embedding_loss(
        self, input2: Any, target: Any, margin: float = 0.0, reduction: str = "mean"
    ) -> Tensor:
        """1 - cos where the target is 1, max(0, cos - margin) where it is -1.

        self, input2  (batch, n) or (n,)      target  (batch,) or ()

        >>> Tensor([3.0, 4.0]).cosine_embedding_loss(Tensor([3.0, 4.0]), Tensor(-1)).item()
        1.0
        """
        x, y = self._distance(input2, "cosine_embedding_loss")
        if x.ndim not in (1, 2):
            raise ValueError(f"cosine_embedding_loss takes (batch, n) or (n,), not {shape_text(x.shape)}")
        wanted = self._operand(target)
        tiny = 1e-12  # PyTorch's, under the root
        cosine = (x * y).sum(-1) / (((x * x).sum(-1) + tiny) * ((y * y).sum(-1) + tiny)).sqrt()
        near = (wanted == 1).where(1.0 - cosine, 0.0)
        return (near + (wanted == -1).where((cosine - margin).clamp(min=0.0), 0.0))._reduced(reduction)

    def triplet_margin_loss(
        self,
        positive: Any,
        negative: Any,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        reduction: str = "mean",
    ) -> Tensor:
        """max(0, margin + |self - positive| - |self - negative|), distances along the last axis.

        swap  take |positive - negative| where that is smaller than |self - negative| (Balntas et al. 2016)

        >>> Tensor([[0.0]]).triplet_margin_loss(Tensor([[3.0]]), Tensor([[1.0]])).item()
        3.0
        """
        if margin <= 0:
            raise ValueError(f"triplet_margin_loss needs a positive margin, not {margin}")
        x, near = self._distance(positive, "triplet_margin_loss")
        _, far = self._distance(negative, "triplet_margin_loss")
        to_near, to_far = x.pairwise_distance(near, p, eps), x.pairwise_distance(far, p, eps)
        if swap:
            to_far = to_far.minimum(near.pairwise_distance(far, p, eps))
        return (to_near - to_far + margin).clamp(min=0.0)._reduced(reduction)

"""Stochastic gradient descent that averages where it has been: ASGD."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from ...tensor import Tensor
from .optimizer import Common, Optimizer, Params, common


class ASGD(Optimizer):
    """Averaged stochastic gradient descent (Polyak, Juditsky 1992).

        g = grad + weight_decay · p
        p = p · (1 - lambd · η) - η · g         η = lr / (1 + lambd · lr · t)^alpha, lr in the first step
        a = a + (p - a) / max(1, t - t0)        the average, `optimizer.ax`: of p from step t0 on

    >>> weight = Tensor([3.0], requires_grad=True)
    >>> optimizer = nn.optim.ASGD([weight], lr=0.25, lambd=0.0, t0=0)
    >>> with Tensor.train():
    ...     for _ in range(2):
    ...         optimizer.zero_grad()
    ...         _ = (weight * weight).sum().backward()
    ...         optimizer.step()
    >>> weight.tolist(), optimizer.ax[0].tolist()
    ([0.75], [0.75])
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 0.01,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0.0,
        **more: Unpack[Common],
    ) -> None:
        super().__init__(
            params, lr, lambd=lambd, alpha=alpha, t0=t0, weight_decay=weight_decay, **common(more)
        )

    def _remember(self) -> None:
        self.ax = self._moments()
        #: the steps made; for each group η of the next, 0 before the first
        self.t = self._number(0.0)
        self.eta = [self._number(0.0) for _ in self.param_groups]

    def _eta(self, i: int) -> Tensor:
        number = next(n for n, group in enumerate(self.param_groups) if group is self._group_of[i])
        eta: Tensor = self.eta[number]
        return eta

    def _moved(self, i: int, p: Tensor, g: Tensor, lr: Tensor, **options: Any) -> Any:
        if options["weight_decay"]:
            g = g + options["weight_decay"] * p
        kept = self._eta(i)
        eta = (kept == 0).where(lr, kept)
        moved = p * (1.0 - options["lambd"] * eta) - eta * g
        share = 1.0 / (self.t - options["t0"]).maximum(1.0)
        self._write(self.ax[i], (share == 1.0).where(moved, self.ax[i] + (moved - self.ax[i]) * share))
        return moved

    def _step(self, grads: Sequence[Tensor]) -> None:
        super()._step(grads)
        t = self.t + 1.0  # behind the moves, which read what it was
        for group, eta in zip(self.param_groups, self.eta, strict=True):
            lr = group["lr"]
            self._write(eta, lr / (1.0 + group["lambd"] * lr * t) ** group["alpha"])
        self._write(self.t, t)

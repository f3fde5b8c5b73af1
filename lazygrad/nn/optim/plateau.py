"""The schedule that looks at a metric."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from .optimizer import Optimizer


class ReduceLROnPlateau:
    """Multiplied by `factor` when a metric has not become better for more than `patience` steps.

    mode            whether less ("min") or more ("max") is better
    threshold       by how much it has to be better: a share ("rel") or an amount ("abs")
    cooldown        how many steps to wait behind a change        min_lr  the least rate

    >>> optimizer = nn.optim.SGD([Tensor([1.0], requires_grad=True)], lr=0.5)
    >>> schedule = nn.optim.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
    >>> for loss in (3.0, 3.0, 3.0):
    ...     schedule.step(loss)
    >>> optimizer.lr.item()
    0.25
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float = 0.0,
        eps: float = 1e-8,
    ) -> None:
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ValueError(
                f"mode must be 'min' or 'max' and threshold_mode 'rel' or 'abs', "
                f"not {mode!r} and {threshold_mode!r}"
            )
        if not factor < 1:
            raise ValueError(f"factor must be less than 1, not {factor}")
        self.optimizer, self.mode, self.factor, self.patience = optimizer, mode, factor, patience
        self.threshold, self.relative, self.cooldown = threshold, threshold_mode == "rel", cooldown
        self.min_lr, self.eps = min_lr, eps
        self.rates = [float(group["lr"].item()) for group in optimizer.param_groups]
        self.best = math.inf if mode == "min" else -math.inf
        self.waited = self.cooling = 0

    def step(self, metric: Any) -> None:
        """Look at a metric, a number or a 0-d Tensor, and lower the rates if it is time."""
        value = float(metric)
        if self._is_better(value):
            self.best, self.waited = value, 0
        else:
            self.waited += 1
        if self.cooling:
            self.cooling -= 1
            self.waited = 0
        if self.waited > self.patience:
            self._lower()
            self.cooling, self.waited = self.cooldown, 0

    def _is_better(self, value: float) -> bool:
        sign = 1.0 if self.mode == "max" else -1.0
        if self.relative:
            return value * sign > self.best * (1 + sign * self.threshold) * sign
        return value * sign > (self.best + sign * self.threshold) * sign

    def _lower(self) -> None:
        for i, group in enumerate(self.optimizer.param_groups):
            lower = max(self.rates[i] * self.factor, self.min_lr)
            if self.rates[i] - lower > self.eps:
                self.rates[i] = lower
                group["lr"] = lower

    def state_dict(self) -> dict[str, Any]:
        """Where the schedule is: numbers that `load_state_dict` takes."""
        own = {name: getattr(self, name) for name in ("best", "waited", "cooling")}
        return {"rates": list(self.rates), **own}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from where another schedule of the same kind was, and write its rates."""
        if len(state_dict["rates"]) != len(self.rates):
            raise ValueError(
                f"the state dict is of {len(state_dict['rates'])} groups, the optimizer has {len(self.rates)}"
            )
        self.rates, self.best = list(state_dict["rates"]), state_dict["best"]
        self.waited, self.cooling = state_dict["waited"], state_dict["cooling"]
        for group, rate in zip(self.optimizer.param_groups, self.rates, strict=True):
            group["lr"] = rate

    def get_last_lr(self) -> list[float]:
        """The rates of the groups now."""
        return list(self.rates)

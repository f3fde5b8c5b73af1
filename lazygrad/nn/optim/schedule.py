"""Learning-rate schedules: PyTorch's, as functions of the number of steps.

`schedule.step()` after `optimizer.step()` writes the next rate into the optimizer's memory, as data: nothing
new is planned or compiled.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .optimizer import Optimizer


class LRScheduler:
    """What all schedules share: `last_epoch` counts the steps, `rate` says what the rate is then.

    optimizer  whose groups are scheduled, each from its own rate
    """

    def __init__(self, optimizer: Optimizer) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"a schedule is for an Optimizer, not {type(optimizer).__name__}")
        self.optimizer = optimizer
        self.base_lrs = [float(group["lr"].item()) for group in optimizer.param_groups]
        self.last_epoch = 0
        self._write()

    def rate(self, base: float, step: int) -> float:
        """The rate after so many steps, of a group that began with `base`."""
        raise NotImplementedError(f"{type(self).__name__} does not say what its rates are")

    def rates(self, bases: Sequence[float], step: int) -> list[float]:
        """The rates of all groups after so many steps."""
        return [self.rate(base, step) for base in bases]

    def get_last_lr(self) -> list[float]:
        """The rates of the groups now."""
        return self.rates(self.base_lrs, self.last_epoch)

    def step(self) -> None:
        """Count a step and write the next rates."""
        self.last_epoch += 1
        self._write()

    def state_dict(self) -> dict[str, Any]:
        """Where the schedule is: numbers that `load_state_dict` takes, and JSON."""
        return {"last_epoch": self.last_epoch, "base_lrs": list(self.base_lrs)}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from where another schedule of the same kind was, and write its rates."""
        bases = list(state_dict["base_lrs"])
        if len(bases) != len(self.base_lrs):
            raise ValueError(
                f"the state dict is of {len(bases)} groups, the optimizer has {len(self.base_lrs)}"
            )
        self.last_epoch, self.base_lrs = int(state_dict["last_epoch"]), bases
        self._write()

    def _write(self) -> None:
        for group, rate in zip(self.optimizer.param_groups, self.get_last_lr(), strict=True):
            group["lr"] = rate


class GroupsLR(LRScheduler):
    """A schedule that does not treat all groups alike: it says `rates`, all at once."""

    def rate(self, base: float, step: int) -> float:
        return self.rates([base], step)[0]

    def rates(self, bases: Sequence[float], step: int) -> list[float]:
        raise NotImplementedError(f"{type(self).__name__} does not say what its rates are")


class _FunctionsLR(GroupsLR):
    """A schedule by a function of the step; one for all groups, or one for each."""

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
    ) -> None:
        count = len(optimizer.param_groups)
        self.lambdas = [lr_lambda] * count if callable(lr_lambda) else list(lr_lambda)
        if len(self.lambdas) != count:
            name = type(self).__name__
            raise ValueError(f"{name} takes one function or {count} of them, not {len(self.lambdas)}")
        super().__init__(optimizer)


class LambdaLR(_FunctionsLR):
    """base · lr_lambda(step); one function for all groups, or one for each.

    >>> optimizer = nn.optim.SGD([Tensor([1.0], requires_grad=True)], lr=0.5)
    >>> schedule = nn.optim.LambdaLR(optimizer, lambda step: 1 / (1 + step))
    >>> schedule.step()
    >>> optimizer.lr.item()
    0.25
    """

    def rates(self, bases: Sequence[float], step: int) -> list[float]:
        return [base * function(step) for base, function in zip(bases, self.lambdas, strict=True)]


class MultiplicativeLR(_FunctionsLR):
    """Multiplied by lr_lambda(1), then by lr_lambda(2), ...; one function for all groups, or one for each.

    >>> optimizer = nn.optim.SGD([Tensor([1.0], requires_grad=True)], lr=0.5)
    >>> nn.optim.MultiplicativeLR(optimizer, lambda step: 0.5).rates([0.5], 2)
    [0.125]
    """

    def rates(self, bases: Sequence[float], step: int) -> list[float]:
        return [
            base * math.prod(function(n) for n in range(1, step + 1))
            for base, function in zip(bases, self.lambdas, strict=True)
        ]


class StepLR(LRScheduler):
    """Multiplied by gamma every `step_size` steps.

    >>> optimizer = nn.optim.SGD([Tensor([1.0], requires_grad=True)], lr=0.5)
    >>> schedule = nn.optim.StepLR(optimizer, 1, gamma=0.5)
    >>> schedule.step()
    >>> optimizer.lr.item()
    0.25
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1) -> None:
        if step_size < 1:
            raise ValueError(f"step_size must be at least 1, not {step_size}")
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer)

    def rate(self, base: float, step: int) -> float:
        return base * self.gamma ** (step // self.step_size)


class MultiStepLR(LRScheduler):
    """Multiplied by gamma at each of some numbers of steps.

    >>> optimizer = nn.optim.SGD([Tensor([1.0], requires_grad=True)], lr=0.5)
    >>> nn.optim.MultiStepLR(optimizer, [2, 5], gamma=0.5).rate(0.5, 5)
    0.125
    """

    def __init__(self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1) -> None:
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer)

    def rate(self, base: float, step: int) -> float:
        factor: float = self.gamma ** bisect.bisect_right(self.milestones, step)
        return base * factor


class ExponentialLR(LRScheduler):
    """Multiplied by gamma every step.

    >>> optimizer = nn.optim.SGD([Tensor([1.0], requires_grad=True)], lr=0.5)
    >>> nn.optim.ExponentialLR(optimizer, 0.5).rate(0.5, 2)
    0.125
    """

    def __init__(self, optimizer: Optimizer, gamma: float) -> None:
        self.gamma = gamma
        super().__init__(optimizer)

    def rate(self, base: float, step: int) -> float:
        return base * self.gamma**step


class ConstantLR(LRScheduler):
    """Multiplied by `factor` for the first `total_iters` steps.

    >>> optimizer = nn.optim.SGD([Tensor([1.0], requires_grad=True)], lr=0.5)
    >>> schedule = nn.optim.ConstantLR(optimizer, 0.5, 3)
    >>> schedule.rate(0.5, 2), schedule.rate(0.5, 3)
    (0.25, 0.5)
    """

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5) -> None:
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer)

    def rate(self, base: float, step: int) -> float:
        return base * (self.factor if step < self.total_iters else 1.0)


class LinearLR(LRScheduler):
    """A factor that goes from `start_factor` to `end_factor` in `total_iters` steps: a warm-up.

    >>> optimizer = nn.optim.SGD([Tensor([1.0], requires_grad=True)], lr=0.5)
    >>> schedule = nn.optim.LinearLR(optimizer, 0.5, total_iters=2)
    >>> [schedule.rate(0.5, step) for step in range(3)]
    [0.25, 0.375, 0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
    ) -> None:
        if total_iters < 1:
            raise ValueError(f"total_iters must be at least 1, not {total_iters}")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer)

    def rate(self, base: float, step: int) -> float:
        done = min(step, self.total_iters) / self.total_iters
        return base * (self.start_factor + (self.end_factor - self.start_factor) * done)


class PolynomialLR(LRScheduler):
    """(1 - step / total_iters)^power, and 0 from then on.

    >>> optimizer = nn.optim.SGD([Tensor([1.0], requires_grad=True)], lr=0.5)
    >>> nn.optim.PolynomialLR(optimizer, 4).rate(0.5, 1)
    0.375
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer)

    def rate(self, base: float, step: int) -> float:
        left: float = (1.0 - min(step, self.total_iters) / self.total_iters) ** self.power
        return base * left

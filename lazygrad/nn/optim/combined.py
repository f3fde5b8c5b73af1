"""Schedules made of schedules: one after another, or all at once."""

from __future__ import annotations

import bisect
from collections.abc import Sequence

from .optimizer import Optimizer
from .schedule import GroupsLR, LRScheduler


class _Combined(GroupsLR):
    """Several schedules of one optimizer, whose rates are those from before the first of them."""

    def __init__(self, optimizer: Optimizer, schedulers: Sequence[LRScheduler]) -> None:
        if any(schedule.optimizer is not optimizer for schedule in schedulers):
            raise ValueError(f"{type(self).__name__} takes schedules of one optimizer")
        self.schedulers = list(schedulers)
        super().__init__(optimizer)
        self.base_lrs = list(schedulers[0].base_lrs)
        self._write()


class SequentialLR(_Combined):
    """One schedule after another: `milestones` says where each but the first begins, counting anew.

    >>> optimizer = nn.optim.SGD([Tensor([1.0], requires_grad=True)], lr=0.5)
    >>> warm, cold = nn.optim.LinearLR(optimizer, 0.5, total_iters=2), nn.optim.ExponentialLR(optimizer, 0.5)
    >>> schedule = nn.optim.SequentialLR(optimizer, [warm, cold], [2])
    >>> [schedule.rate(0.5, step) for step in range(4)]
    [0.25, 0.375, 0.5, 0.25]
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int]
    ) -> None:
        if len(schedulers) != len(milestones) + 1:
            raise ValueError(
                f"SequentialLR takes one schedule more than milestones, not {len(schedulers)} and "
                f"{len(milestones)}"
            )
        self.milestones = list(milestones)
        super().__init__(optimizer, schedulers)

    def rates(self, bases: Sequence[float], step: int) -> list[float]:
        which = bisect.bisect_right(self.milestones, step)
        return self.schedulers[which].rates(bases, step - (self.milestones[which - 1] if which else 0))


class ChainedScheduler(_Combined):
    """Several schedules at once: the base times the share that each of them leaves of it.

    >>> optimizer = nn.optim.SGD([Tensor([1.0], requires_grad=True)], lr=0.5)
    >>> warm, cold = nn.optim.ConstantLR(optimizer, 0.5, 1), nn.optim.ExponentialLR(optimizer, 0.5)
    >>> schedule = nn.optim.ChainedScheduler([warm, cold])
    >>> [schedule.rate(0.5, step) for step in range(3)]
    [0.25, 0.25, 0.125]
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        if not schedulers:
            raise ValueError("ChainedScheduler takes at least one schedule")
        super().__init__(schedulers[0].optimizer if optimizer is None else optimizer, schedulers)

    def rates(self, bases: Sequence[float], step: int) -> list[float]:
        found = list(bases)
        for schedule in self.schedulers:
            moved = schedule.rates(bases, step)
            found = [f * (m / base) if base else m for f, m, base in zip(found, moved, bases, strict=True)]
        return found

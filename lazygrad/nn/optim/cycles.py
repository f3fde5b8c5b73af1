"""Schedules that go up and down: cosines, one cycle, triangles."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from .optimizer import Optimizer
from .schedule import GroupsLR, LRScheduler


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the rate down to eta_min in T_max steps (Loshchilov, Hutter 2016).

    >>> optimizer = nn.optim.SGD([Tensor([1.0], requires_grad=True)], lr=0.5)
    >>> round(nn.optim.CosineAnnealingLR(optimizer, 4).rate(0.5, 2), 6)
    0.25
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0) -> None:
        if T_max < 1:
            raise ValueError(f"T_max must be at least 1, not {T_max}")
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer)

    def rate(self, base: float, step: int) -> float:
        return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * step / self.T_max)) / 2


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half cosines one after another, the first of T_0 steps, each T_mult times as long as the one before.

    >>> optimizer = nn.optim.SGD([Tensor([1.0], requires_grad=True)], lr=0.5)
    >>> nn.optim.CosineAnnealingWarmRestarts(optimizer, 2).rate(0.5, 4)
    0.5
    """

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0) -> None:
        if T_0 < 1 or T_mult < 1:
            raise ValueError(f"T_0 and T_mult must be at least 1, not {T_0} and {T_mult}")
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        super().__init__(optimizer)

    def rate(self, base: float, step: int) -> float:
        length = self.T_0
        while step >= length:
            step -= length
            length *= self.T_mult
        return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * step / length)) / 2


class OneCycleLR(LRScheduler):
    """Up from max_lr / div_factor to max_lr, then down to 1 / final_div_factor of the start (Smith 2017).

    total_steps      how many steps there are; epochs · steps_per_epoch, if not given
    pct_start        the share of the steps that go up
    anneal_strategy  "cos" or "linear"
    three_phase      down to the start as fast as up, and then further down
    cycle_momentum   move the momentum (Adam's b1) the other way, from max_momentum to base_momentum and back;
                     if not given, where the optimizer has one

    >>> optimizer = nn.optim.SGD([Tensor([1.0], requires_grad=True)], lr=0.5)
    >>> schedule = nn.optim.OneCycleLR(optimizer, 1.0, 11, pct_start=0.5, div_factor=4.0)
    >>> round(schedule.rate(0.5, 0), 4), round(max(schedule.rate(0.5, step) for step in range(11)), 2)
    (0.25, 0.98)
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool | None = None,
        base_momentum: float = 0.85,
        max_momentum: float = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
    ) -> None:
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError("OneCycleLR takes total_steps, or epochs and steps_per_epoch")
            total_steps = epochs * steps_per_epoch
        if total_steps < 1:
            raise ValueError(f"total_steps must be at least 1, not {total_steps}")
        if not 0 <= pct_start <= 1:
            raise ValueError(f"pct_start must be a share, in [0, 1], not {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be 'cos' or 'linear', not {anneal_strategy!r}")
        self.total_steps, self.linear = total_steps, anneal_strategy == "linear"
        start, low = max_lr / div_factor, max_lr / div_factor / final_div_factor
        up = pct_start * total_steps - 1
        if three_phase:
            self.phases = [(up, start, max_lr), (2 * up, max_lr, start), (total_steps - 1, start, low)]
        else:
            self.phases = [(up, start, max_lr), (total_steps - 1, max_lr, low)]
        #: the same for the momentum: (last step, from, to)
        ways = [(max_momentum, base_momentum), (base_momentum, max_momentum), (max_momentum, max_momentum)]
        self.momenta = [(end, *way) for (end, _, _), way in zip(self.phases, ways, strict=False)]
        self.cycles = _cycles_momentum(optimizer, cycle_momentum)
        super().__init__(optimizer)

    def rate(self, base: float, step: int) -> float:
        return self._within(self.phases, step)

    def momentum(self, step: int) -> float:
        """The momentum after so many steps, where it is cycled."""
        return self._within(self.momenta, step)

    def _write(self) -> None:
        super()._write()
        if self.cycles:
            self.optimizer.write_momentum(self.momentum(self.last_epoch))

    def _within(self, phases: Sequence[tuple[float, float, float]], step: int) -> float:
        if step > self.total_steps:
            raise ValueError(f"OneCycleLR has {self.total_steps} steps, and was asked for one more")
        step = min(step, self.total_steps - 1)  # a loop's last step() is after its last use of the rate
        begin = 0.0
        for end, low, high in phases:
            if step <= end or end == phases[-1][0]:
                done = (step - begin) / (end - begin) if end != begin else 1.0
                if self.linear:
                    return low + (high - low) * done
                return high + (low - high) / 2 * (1 + math.cos(math.pi * done))
            begin = end
        raise RuntimeError("the last phase takes all steps")


def _cycles_momentum(optimizer: Optimizer, wanted: bool | None) -> bool:
    has = isinstance(optimizer, Optimizer) and optimizer.has_momentum()
    if wanted and not has:
        raise ValueError(
            f"{type(optimizer).__name__} has no momentum to cycle: give it one, or cycle_momentum=False"
        )
    return has if wanted is None else wanted


class CyclicLR(GroupsLR):
    """Up from base_lr to max_lr and down again, for ever (Smith 2015).

    step_size_up, step_size_down   how many steps a way takes; down as many as up, if not given
    mode      "triangular"; "triangular2" halves the height with each cycle; "exp_range" multiplies it by
              gamma each step
    scale_fn  by what to multiply the height instead: a function of the cycle, counted from 1, or, with
              scale_mode="iterations", of the step
    cycle_momentum   move the momentum (Adam's b1) the other way, from max_momentum to base_momentum and back;
                     if not given, where the optimizer has one

    >>> optimizer = nn.optim.SGD([Tensor([1.0], requires_grad=True)], lr=0.5)
    >>> schedule = nn.optim.CyclicLR(optimizer, 0.25, 1.25, step_size_up=2)
    >>> [schedule.rate(0.25, step) for step in range(5)]
    [0.25, 0.75, 1.25, 0.75, 0.25]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | Sequence[float],
        max_lr: float | Sequence[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[int], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool | None = None,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
    ) -> None:
        down = step_size_up if step_size_down is None else step_size_down
        if step_size_up < 1 or down < 1:
            raise ValueError(f"the ways of a cycle take at least 1 step, not {step_size_up} and {down}")
        if mode not in ("triangular", "triangular2", "exp_range") or scale_mode not in (
            "cycle",
            "iterations",
        ):
            raise ValueError(
                "mode must be triangular, triangular2 or exp_range, and scale_mode cycle or iterations, not "
                f"{mode!r} and {scale_mode!r}"
            )
        self.up, self.length = step_size_up, step_size_up + down
        self.by_cycle = scale_mode == "cycle" if scale_fn is not None else mode != "exp_range"
        shapes: dict[str, Callable[[int], float]] = {
            "triangular": lambda cycle: 1.0,
            "triangular2": lambda cycle: 0.5 ** (cycle - 1),
            "exp_range": lambda step: gamma**step,
        }
        self.scale_fn = scale_fn or shapes[mode]
        self.base_momentum, self.max_momentum = base_momentum, max_momentum
        self.cycles = _cycles_momentum(optimizer, cycle_momentum)
        super().__init__(optimizer)
        self.base_lrs, self.max_lrs = self._each(base_lr, "base_lr"), self._each(max_lr, "max_lr")
        self._write()

    def _each(self, given: float | Sequence[float], name: str) -> list[float]:
        count = len(self.optimizer.param_groups)
        values = [given] * count if isinstance(given, (int, float)) else list(given)
        if len(values) != count:
            raise ValueError(f"{name} must be one rate or {count} of them, not {len(values)}")
        return values

    def _height(self, step: int) -> float:
        """How far up a step is, from 0 to 1, times what the cycle is scaled by."""
        cycle, within = divmod(step, self.length)
        way = within / self.up if within <= self.up else (self.length - within) / (self.length - self.up)
        return way * self.scale_fn(cycle + 1 if self.by_cycle else step)

    def rates(self, bases: Sequence[float], step: int) -> list[float]:
        height = self._height(step)
        return [base + (most - base) * height for base, most in zip(bases, self.max_lrs, strict=False)]

    def momentum(self, step: int) -> float:
        """The momentum after so many steps, where it is cycled."""
        return self.max_momentum - (self.max_momentum - self.base_momentum) * self._height(step)

    def _write(self) -> None:
        if not hasattr(self, "max_lrs"):
            return  # the rates it begins with are not the optimizer's
        super()._write()
        if self.cycles:
            self.optimizer.write_momentum(self.momentum(self.last_epoch))

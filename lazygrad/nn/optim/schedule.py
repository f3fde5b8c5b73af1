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


class LambdaLR(LRScheduler):
    """base · lr_lambda(step); one function for all groups, or one for each.

    >>> optimizer = nn.optim.SGD([Tensor([1.0], requires_grad=True)], lr=0.5)
    >>> schedule = nn.optim.LambdaLR(optimizer, lambda step: 1 / (1 + step))
    >>> schedule.step()
    >>> optimizer.lr.item()
    0.25
    """

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
    ) -> None:
        self.lambdas = _for_each_group(optimizer, lr_lambda, "LambdaLR")
        super().__init__(optimizer)

    def rates(self, bases: Sequence[float], step: int) -> list[float]:
        return [base * function(step) for base, function in zip(bases, self.lambdas, strict=True)]


class MultiplicativeLR(LRScheduler):
    """Multiplied by lr_lambda(1), then by lr_lambda(2), ...; one function for all groups, or one for each.

    >>> optimizer = nn.optim.SGD([Tensor([1.0], requires_grad=True)], lr=0.5)
    >>> nn.optim.MultiplicativeLR(optimizer, lambda step: 0.5).rates([0.5], 2)
    [0.125]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
    ) -> None:
        self.lambdas = _for_each_group(optimizer, lr_lambda, "MultiplicativeLR")
        super().__init__(optimizer)

    def rates(self, bases: Sequence[float], step: int) -> list[float]:
        return [
            base * math.prod(function(n) for n in range(1, step + 1))
            for base, function in zip(bases, self.lambdas, strict=True)
        ]


def _for_each_group(optimizer: Optimizer, given: Any, name: str) -> list[Callable[[int], float]]:
    count = len(optimizer.param_groups)
    functions = [given] * count if callable(given) else list(given)
    if len(functions) != count:
        raise ValueError(f"{name} takes one function or {count} of them, not {len(functions)}")
    return functions


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
            raise ValueError(f"step_size is at least 1, not {step_size}")
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
            raise ValueError(f"total_iters is at least 1, not {total_iters}")
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


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the rate down to eta_min in T_max steps (Loshchilov, Hutter 2016).

    >>> optimizer = nn.optim.SGD([Tensor([1.0], requires_grad=True)], lr=0.5)
    >>> round(nn.optim.CosineAnnealingLR(optimizer, 4).rate(0.5, 2), 6)
    0.25
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0) -> None:
        if T_max < 1:
            raise ValueError(f"T_max is at least 1, not {T_max}")
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
            raise ValueError(f"T_0 and T_mult are at least 1, not {T_0} and {T_mult}")
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
        total_steps: int,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        cycle_momentum: bool | None = None,
        base_momentum: float = 0.85,
        max_momentum: float = 0.95,
    ) -> None:
        if total_steps < 1:
            raise ValueError(f"total_steps is at least 1, not {total_steps}")
        if not 0 <= pct_start <= 1:
            raise ValueError(f"pct_start is a share, in [0, 1], not {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy is 'cos' or 'linear', not {anneal_strategy!r}")
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
        if step >= self.total_steps:
            raise ValueError(f"OneCycleLR has {self.total_steps} steps, and was asked for one more")
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


class CyclicLR(LRScheduler):
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
                "mode is triangular, triangular2 or exp_range, and scale_mode cycle or iterations, not "
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
            raise ValueError(f"{name} is one rate or {count} of them, not {len(values)}")
        return values

    def _height(self, step: int) -> float:
        """How far up a step is, from 0 to 1, times what the cycle is scaled by."""
        cycle, within = divmod(step, self.length)
        way = within / self.up if within <= self.up else (self.length - within) / (self.length - self.up)
        return way * self.scale_fn(cycle + 1 if self.by_cycle else step)

    def rate(self, base: float, step: int) -> float:
        return self.rates([base], step)[0]

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


class SequentialLR(LRScheduler):
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
        self.schedulers, self.milestones = list(schedulers), list(milestones)
        super().__init__(optimizer)
        self.base_lrs = list(schedulers[0].base_lrs)  # before the first of them changed it
        self._write()

    def rate(self, base: float, step: int) -> float:
        return self.rates([base], step)[0]

    def rates(self, bases: Sequence[float], step: int) -> list[float]:
        which = bisect.bisect_right(self.milestones, step)
        return self.schedulers[which].rates(bases, step - (self.milestones[which - 1] if which else 0))


class ChainedScheduler(LRScheduler):
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
        self.schedulers = list(schedulers)
        owner = self.schedulers[0].optimizer if optimizer is None else optimizer
        if any(schedule.optimizer is not owner for schedule in self.schedulers):
            raise ValueError("ChainedScheduler takes schedules of one optimizer")
        super().__init__(owner)
        self.base_lrs = list(self.schedulers[0].base_lrs)  # before the first of them changed it
        self._write()

    def rate(self, base: float, step: int) -> float:
        return self.rates([base], step)[0]

    def rates(self, bases: Sequence[float], step: int) -> list[float]:
        found = list(bases)
        for schedule in self.schedulers:
            moved = schedule.rates(bases, step)
            found = [f * (m / base) if base else m for f, m, base in zip(found, moved, bases, strict=True)]
        return found


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
                f"mode is 'min' or 'max' and threshold_mode 'rel' or 'abs', not {mode!r}, {threshold_mode!r}"
            )
        if not factor < 1:
            raise ValueError(f"factor is less than 1, not {factor}")
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

    def get_last_lr(self) -> list[float]:
        """The rates of the groups now."""
        return list(self.rates)

"""How far to go along a direction: a step that satisfies the strong Wolfe conditions.

    f(t) ≤ f(0) + C1 · t · f'(0)        |f'(t)| ≤ C2 · |f'(0)|

Nocedal and Wright, Numerical Optimization (2006), algorithms 3.5 (first bracket such a step) and 3.6 (then
narrow the bracket), with trial steps by cubic interpolation (their equation 3.59).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

C1, C2 = 1e-4, 0.9
#: A trial step lies so far from the ends of a bracket, as a part of its length ...
MARGIN = 0.1
#: ... and before there is a bracket it grows by a factor between these.
GROWS = (1.01, 10.0)


class Trial(NamedTuple):
    """A step, and the value and slope of the function there."""

    t: float
    value: float
    slope: float


def strong_wolfe(
    evaluate: Callable[[float], Trial], start: Trial, first: float, most: int, shortest: float
) -> Trial:
    """A step along a direction in which the function falls.

    evaluate  what the function is at a step; the last that it was asked for need not be the result
    start     step 0, whose slope is negative
    first     the step to try first
    most      so many evaluations at most: then the best step that was tried
    shortest  a bracket shorter than this is narrowed no more
    """
    low, trial = start, evaluate(first)
    for count in range(1, most):
        if (
            not math.isfinite(trial.value)
            or _too_high(trial, start)
            or (count > 1 and trial.value >= low.value)
        ):
            return _narrowed(evaluate, start, low, trial, most - count, shortest)
        if abs(trial.slope) <= -C2 * start.slope:
            return trial
        if trial.slope >= 0:
            return _narrowed(evaluate, start, trial, low, most - count, shortest)
        wanted = _lowest_of_cubic(low, trial)
        least, greatest = trial.t + (GROWS[0] - 1.0) * (trial.t - low.t), trial.t * GROWS[1]
        low, trial = trial, evaluate(min(max(wanted, least), greatest) if math.isfinite(wanted) else greatest)
    return trial if trial.value < low.value else low


def _narrowed(
    evaluate: Callable[[float], Trial], start: Trial, low: Trial, high: Trial, most: int, shortest: float
) -> Trial:
    """`low` is the lowest that satisfies the first condition so far, and slopes down towards `high`."""
    for _ in range(most):
        length = high.t - low.t
        if abs(length) < shortest:
            break
        wanted = _lowest_of_cubic(low, high)
        ends = sorted((low.t + MARGIN * length, high.t - MARGIN * length))
        middle = low.t + 0.5 * length
        trial = evaluate(min(max(wanted, ends[0]), ends[1]) if math.isfinite(wanted) else middle)
        if not math.isfinite(trial.value) or _too_high(trial, start) or trial.value >= low.value:
            high = trial
            continue
        if abs(trial.slope) <= -C2 * start.slope:
            return trial
        if trial.slope * length >= 0:
            high = low
        low = trial
    return low


def _too_high(trial: Trial, start: Trial) -> bool:
    return trial.value > start.value + C1 * trial.t * start.slope


def _lowest_of_cubic(a: Trial, b: Trial) -> float:
    """Where the cubic through two values and slopes is lowest; NaN where it has no lowest point."""
    if not all(map(math.isfinite, (*a, *b))) or a.t == b.t:
        return math.nan
    d1 = a.slope + b.slope - 3.0 * (a.value - b.value) / (a.t - b.t)
    inside = d1 * d1 - a.slope * b.slope
    if inside < 0:
        return math.nan
    d2 = math.copysign(math.sqrt(inside), b.t - a.t)
    below = b.slope - a.slope + 2.0 * d2
    return b.t - (b.t - a.t) * (b.slope + d2 - d1) / below if below else math.nan

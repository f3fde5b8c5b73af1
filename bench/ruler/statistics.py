"""Ratios of medians, and how far two measurements of the same thing are apart."""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence

#: Times that samples are drawn again.
DRAWS = 1000


def ratio(a: Sequence[float], b: Sequence[float]) -> float:
    """The median of a over that of b."""
    return statistics.median(a) / max(statistics.median(b), 1e-12)


def interval(a: Sequence[float], b: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of the ratio of medians, by the bootstrap (Efron 1979), with the same draws."""
    draw = random.Random(0)
    ratios = sorted(ratio(draw.choices(a, k=len(a)), draw.choices(b, k=len(b))) for _ in range(DRAWS))
    return ratios[int(0.025 * DRAWS)], ratios[int(0.975 * DRAWS) - 1]


def spread(a: Sequence[float], b: Sequence[float]) -> float:
    """By which factor two series of the same thing may differ: the far end of their interval, at least 1."""
    low, high = interval(a, b)
    return max(high, 1 / max(low, 1e-12), 1.0)

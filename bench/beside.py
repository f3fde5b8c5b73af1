"""Cases that lazygrad and PyTorch compute in turn on one core, and the table of their times.

Both run in one process on one thread, in turn, until the seconds are over; the table shows the least time of
each, and how many times PyTorch's the time of lazygrad is. What is above 1 is marked. lazygrad runs as a jit,
PyTorch eagerly. Results are compared first.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

#: What takes more than so many times PyTorch's time is marked.
MARK = 1.0


class Case(NamedTuple):
    """One computation: `ours` and `theirs` are given the tensors that `arrays` makes."""

    name: str
    arrays: Callable[[np.random.Generator], Sequence[np.ndarray]]
    ours: Callable[..., Any]
    theirs: Callable[..., Any]


def measure(case: Case, seconds: float) -> tuple[float, float]:
    """Seconds of lazygrad and of PyTorch."""
    import torch

    from lazygrad import Tensor, TinyJit

    arrays = case.arrays(np.random.default_rng(0))
    mine, others = [Tensor(a).realize() for a in arrays], [torch.from_numpy(a) for a in arrays]
    jitted = TinyJit(lambda *given: case.ours(*given).realize())
    calls = [lambda: jitted(*mine), lambda: case.theirs(*others)]
    for _ in range(3):  # a jit captures on its second call
        calls[0]()
    found, expected = calls[0]().numpy(), calls[1]().numpy()
    far = np.abs(found - expected) > 2e-3 * (1 + np.abs(expected))
    if far.mean() > 1e-4:  # a place between two pixels is rounded to the one or to the other
        raise AssertionError(f"{case.name}: {far.mean():.1%} of the results are not PyTorch's")
    best = [math.inf, math.inf]
    turns, end = 0, time.perf_counter() + seconds
    while turns < 3 or time.perf_counter() < end:
        turns += 1
        for number, call in enumerate(calls):
            start = time.process_time()
            call()
            best[number] = min(best[number], time.process_time() - start)
    return best[0], best[1]


def table(name: str, about: str | None, cases: Callable[[], Sequence[Case]], arguments: list[str]) -> int:
    """Measure the cases that the arguments choose, and print their table."""
    parser = argparse.ArgumentParser(prog=f"python -m bench {name}", description=about)
    parser.add_argument("--cases", default="", help="words; only cases with one of them in their names")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each case")
    parsed = parser.parse_args(arguments)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-1:])
    import torch

    from lazygrad import Context

    torch.set_num_threads(1)
    words = [word for word in parsed.cases.split(",") if word]
    print(f"{'':34}  lazygrad   PyTorch")
    for case in cases():
        if words and not any(word in case.name for word in words):
            continue
        with Context(THREADS=1):
            ours, theirs = measure(case, parsed.seconds)
        mark = "  <" if ours > MARK * theirs else ""
        print(
            f"{case.name:34}{ours * 1e3:7.2f} ms{theirs * 1e3:7.2f} ms{ours / theirs:7.2f}{mark}", flush=True
        )
    return 0

"""The least time that a case could take on these cores, from what they were measured to do in the same run.

Operations and caches are those of lazygrad's roofline (`lazygrad/report/roofline.py`). What the last cache
does not hold comes from memory, whose speed is measured with arrays of BEYOND times that cache, a part for
each core:

- reading: `numpy.dot` of two arrays, and a sum of one by lazygrad;
- reading and writing: `numpy.copyto` from one array to another, and `numpy.negative` of an array in its
  place, where no line is fetched only to be overwritten. Bytes count in both directions.

The better one of each counts, of all turns: these take turns with the libraries that compute a case which
needs memory, and have as much time.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from lazygrad.report.roofline import Roofline, best

from .cases import Case

#: So many times the last cache is an array.
BEYOND = 6
#: How often each way is gone at least in a turn, and how many ways there are.
TIMES, WAYS = 3, 4


class Limit(NamedTuple):
    """What cores can do at most.

    read  bytes per second of reading memory
    both  bytes per second of reading and writing it, half of them each
    """

    roofline: Roofline
    read: float
    both: float

    def seconds(self, case: Case) -> float:
        """The least time of a case: of its operations or of its bytes, whichever takes longer."""
        return max(case.flops / self.roofline.ops, self._moving(case))

    def needs_memory(self, case: Case) -> bool:
        """Whether no cache holds what a case moves."""
        return case.read + case.written > max((held for held, _ in self.roofline.caches), default=0)

    def _moving(self, case: Case) -> float:
        moved = case.read + case.written
        if not self.needs_memory(case):
            return moved / self.roofline.bytes_per_second(int(moved))
        both = 2 * min(case.read, case.written)  # the rest is only read, or only written
        return both / self.both + (moved - both) / (self.read if case.read > case.written else self.both)

    def or_better(self, other: Limit) -> Limit:
        """The higher numbers of two measurements: other work makes what is measured too low."""
        ops, caches, memory = best(list(self.roofline), list(other.roofline))
        roofline = Roofline(ops, tuple(map(tuple, caches)), memory)
        return Limit(roofline, max(self.read, other.read), max(self.both, other.both))

    def __str__(self) -> str:
        ops, read, both = (rate * 1e-9 for rate in (self.roofline.ops, self.read, self.both))
        return (
            f"{ops:.0f} GFLOP/s; memory is read with {read:.1f} GB/s, read and written with {both:.1f} GB/s"
        )


class Memory:
    """Two arrays of the host, far larger than its caches, and ways to go through them on so many cores."""

    def __init__(self, nbytes: int, cores: int) -> None:
        size = nbytes // 4
        self.x, self.y = np.ones(size, np.float32), np.ones(size, np.float32)
        ends = [size * core // cores for core in range(cores + 1)]
        self._parts = [slice(*pair) for pair in itertools.pairwise(ends)]
        self._pool = ThreadPoolExecutor(cores)

    def rates(self, total: Callable[[], Any], budget: float) -> tuple[float, float]:
        """Bytes per second read; and read and written, both counted. `total` reads as much as x has."""
        x, y, size = self.x, self.y, self.x.nbytes

        def rate(moved: int, run: Callable[[], Any]) -> float:
            return moved / _shortest(run, budget / WAYS)

        def on_all(work: Callable[[slice], Any]) -> Callable[[], Any]:
            return lambda: list(self._pool.map(work, self._parts))

        return (
            max(rate(size, total), rate(2 * size, on_all(lambda part: np.dot(x[part], y[part])))),
            max(
                rate(2 * size, on_all(lambda part: np.copyto(y[part], x[part]))),
                rate(2 * size, on_all(lambda part: np.negative(x[part], out=x[part]))),
            ),
        )


def _shortest(run: Callable[[], Any], budget: float) -> float:
    times: list[float] = []
    end = time.perf_counter() + budget
    while len(times) < TIMES or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)

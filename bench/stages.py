"""Where time goes: trace, schedule, the passes of the compiler, compile, load, run.

The passes keep their own times (`lazygrad.codegen.compile.stage_times`). This module puts clocks around
planning and around running while it measures; what is left is `trace`: Python that builds the Tensor graph.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from lazygrad.codegen import compile as codegen
from lazygrad.codegen.compile import stage_times
from lazygrad.codegen.passes import PASSES
from lazygrad.config import Context
from lazygrad.device import GlobalCounters
from lazygrad.engine import realize as engine
from lazygrad.programs import runners
from lazygrad.programs.runners import clear_programs
from lazygrad.tensor import computing

#: The columns of the table, in the order in which a value passes through them.
STAGES = ["trace", "schedule", *(step.name for step in PASSES), "render", "compile", "load", "run"]


@dataclass
class Sample:
    """One repeat: seconds in all and per stage, and the kernels that ran."""

    total: float
    stages: dict[str, float]
    kernels: int


@dataclass
class Result:
    """The repeats of one case. `per` divides the seconds: operations in one repeat."""

    name: str
    samples: list[Sample] = field(default_factory=list)
    per: int = 1
    mark: float | None = None
    goal: float | None = None
    unit: str = "ms"
    note: str = ""

    @property
    def best(self) -> Sample:
        return min(self.samples, key=lambda sample: sample.total)

    @property
    def fastest(self) -> float:
        return self.best.total / self.per

    @property
    def median(self) -> float:
        return statistics.median(sample.total for sample in self.samples) / self.per

    def as_json(self) -> dict[str, Any]:
        best = self.best
        return {
            "case": self.name,
            "note": self.note,
            "repeats": len(self.samples),
            "seconds_min": self.fastest,
            "seconds_median": self.median,
            "mark_seconds": self.mark,
            "goal_seconds": self.goal,
            "kernels": best.kernels,
            "stages_seconds": {stage: seconds / self.per for stage, seconds in best.stages.items()},
        }


class _Clock:
    """The clock that everything is measured with: wall time, or the processor time of this process."""

    now: Callable[[], float] = staticmethod(time.perf_counter)


def use_processor_time() -> None:
    """Measure processor time from now on: steadier on a busy machine, and the wall time of one idle core."""
    _Clock.now = staticmethod(time.process_time)
    for module in (codegen, runners):  # the passes read the same clock
        module.time = SimpleNamespace(perf_counter=time.process_time)  # type: ignore[attr-defined]


def clock_name() -> str:
    """The name of the clock in the module `time`."""
    return _Clock.now.__name__


class _Clocks:
    """Seconds inside some functions, each without what other clocked functions below it took."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._inner = [0.0]  # of each clocked call that is open: what was measured inside it

    def around(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def clocked(*args: Any, **kwargs: Any) -> Any:
            self._inner.append(0.0)
            start = _Clock.now()
            try:
                return function(*args, **kwargs)
            finally:
                spent = _Clock.now() - start
                own = spent - self._inner.pop()
                self._inner[-1] += spent
                self.seconds[stage] = self.seconds.get(stage, 0.0) + own

        return clocked


@contextlib.contextmanager
def clocks() -> Iterator[_Clocks]:
    """Within the block, planning and running are clocked."""
    clock = _Clocks()
    places = [
        (engine, "kernelize", "schedule"),
        (engine, "create_schedule", "schedule"),
        (computing, "kernelize_nodes", "schedule"),
        (computing, "create_schedule", "schedule"),
        (engine, "run_schedule", "run"),
    ]
    before = [(module, name, getattr(module, name)) for module, name, _ in places]
    for module, name, stage in places:
        setattr(module, name, clock.around(stage, getattr(module, name)))
    try:
        yield clock
    finally:
        for module, name, function in before:
            setattr(module, name, function)


def measure(work: Callable[[], Any]) -> Sample:
    """Run `work` once; what it returns is dropped after the clock has stopped."""
    gc.collect()
    stage_times.clear()
    kernels = GlobalCounters.kernel_count
    with clocks() as clock, Context(CACHELEVEL=1):  # nothing comes from disk
        start = _Clock.now()
        result = work()
        total = _Clock.now() - start
    kernels = GlobalCounters.kernel_count - kernels
    del result
    stages = dict.fromkeys(STAGES, 0.0)
    stages.update(stage_times)
    stages["schedule"] = clock.seconds.get("schedule", 0.0)
    stages["run"] = clock.seconds.get("run", 0.0) - sum(stage_times.values())
    stages["trace"] = total - sum(stages.values())
    return Sample(total, stages, kernels)


def forget() -> None:
    """Empty the caches of schedules and programs, so that everything is done again."""
    clear_programs()

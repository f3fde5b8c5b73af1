"""Probes in turn, again and again, and the row that comes of it: the best of each, and how far it varied."""

from __future__ import annotations

import datetime
import itertools
import math
import statistics
import time
from dataclasses import replace

from ..device import Device
from ..runtime._measured import processor_name
from ..runtime._native import host_description
from ..runtime.cpu import host_compiler
from ..target import Target
from ..target.measured import GROUPS, Figure, Row
from ..target.processors import dots_of
from .probes import Bench, Probe

#: How long probes have their turns; what comes before takes some 3 s.
SECONDS = 10.0
#: A sample takes so many seconds at least: short ones fall between what else the machine does. A turn has as
#: many samples as fit into TURN_S.
SAMPLE_S, TURN_S = 0.4e-3, 4e-3


def measure(seconds: float = SECONDS, far: int | None = None) -> Row:
    """The row of this machine's processor.

    seconds  that samples are taken. All figures have their turns one after the other, so that what else the
             machine does for a while touches all a little, and none wholly. The first turn always ends
    far      bytes that stand for memory, unless as many as this machine's caches ask for
    """
    # with all instructions that the processor has: its row may have left some out
    target = replace(Device["CPU"].renderer.target, dots=dots_of(host_compiler().features))
    bench = Bench(target, far)
    found: dict[tuple[str, str], list[float]] = {}
    try:
        probes = bench.probes()
        times = [_times(probe) for probe in probes]
        start = time.perf_counter()
        for turn in itertools.count(1):
            for probe, count in zip(probes, times, strict=True):
                found.setdefault((probe.group, probe.key), []).extend(_samples(probe, count))
            if (time.perf_counter() - start) * (turn + 1) / turn > seconds:
                break
    finally:
        bench.close()
    today = datetime.date.today().isoformat()
    return Row(processor_name(), _machine(target), today, bench.threads, _figures(found))


def _times(probe: Probe) -> int:
    """How often a sample runs a probe. The first run, which warms it up, does not count."""
    probe.run(1)
    return max(1, min(probe.most, math.ceil(SAMPLE_S / max(probe.run(1), 1e-9))))


def _samples(probe: Probe, times: int) -> list[float]:
    """Nanoseconds for each byte, operation or load, in the samples of a turn."""
    if probe.warm:
        probe.run(probe.warm)
    taken: list[float] = []
    until = time.perf_counter() + TURN_S
    while not taken or (time.perf_counter() < until and not probe.once):
        taken.append(probe.run(times) * 1e9 / (probe.amount * times))
    return taken


def _figures(found: dict[tuple[str, str], list[float]]) -> dict[str, dict[str, Figure]]:
    """The samples of all turns → figures in the units of their groups."""
    figures: dict[str, dict[str, Figure]] = {}
    for (group, key), all_taken in found.items():
        taken = [each for each in all_taken if math.isfinite(each)]
        if not taken:  # the machine was too busy
            continue
        best, spread = min(taken), _spread(taken)
        if group == "page_walk":
            if key == "sparse":
                best = max(0.0, best - min(found[group, "dense"]))
                figures[group] = {"load": Figure(best, spread)}
        elif best > 0:
            rate = GROUPS[group].unit != "ns"
            figures.setdefault(group, {})[key] = Figure(1 / best if rate else best, spread)
    return figures


def _spread(taken: list[float]) -> float:
    """How much longer the median took than the best; of one sample, which says nothing of that, 1."""
    if len(taken) == 1:
        return 1.0
    best = min(taken)
    return statistics.median(taken) / best - 1 if best > 0 else 0.0


def _machine(target: Target) -> str:
    """Which machine this is, as a contributed row says it: nothing of its owner."""
    caches = ", ".join(_size(size) for size in target.memory.sizes)
    return f"{host_description()}; caches of {caches}; {target.threads} cores"


def _size(nbytes: int) -> str:
    return f"{nbytes >> 20} MB" if nbytes >= 1 << 20 else f"{nbytes >> 10} KB"

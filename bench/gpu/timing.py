"""Times on a GPU: calls are given one after another, and waited for together, so that starting them hides.

A side is measured by turns with the others: batches of calls, each some milliseconds long; the median of
the batches counts, as seconds of one call. `spread` is (largest - least) / median of its batches.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lazygrad import Device
from lazygrad.codegen.compile import prediction_of
from lazygrad.engine.realize import observe_kernels
from lazygrad.ir.ops import Ops
from lazygrad.programs.runners import get_runner
from lazygrad.schedule.kernels.items import ScheduleItem

from .machine import Machine
from .stages import Missing
from .summary import OURS

Call = Callable[[], Any]
#: Batches of a side, seconds of one, calls in one at most, and seconds that a side may take in all.
BATCHES, BATCH, CALLS, WHOLE = 7, 0.01, 500, 1.5
#: Calls before the clock starts: a jit captures in its second and runs a graph from the third on.
WARM = 4


class Side(NamedTuple):
    """One library's way: what is called, what waits for all calls, and its answer as an array."""

    call: Call
    wait: Call
    answer: Callable[[Any], np.ndarray]


def ours(call: Call) -> Side:
    """A function that gives a Tensor, or several, on the default device."""
    device = Device[Device.DEFAULT]
    return Side(call, device.synchronize, lambda found: _first(found).float().numpy())


def _first(found: Any) -> Any:
    return found[0] if isinstance(found, list | tuple) else found


def theirs(machine: Machine, call: Call) -> Side:
    """A function that gives a tensor of PyTorch's, or several."""
    import torch

    wait = torch.cuda.synchronize if machine.is_real else lambda: None
    return Side(call, wait, lambda found: _first(found).detach().float().cpu().numpy())


def torch_of(machine: Machine) -> Any:
    """PyTorch; Missing where it is not there, or has no GPU."""
    try:
        import torch
    except ImportError as error:
        raise Missing(f"PyTorch is not installed: {error}") from None
    if machine.is_real and not torch.cuda.is_available():
        raise Missing("this PyTorch finds no GPU")
    return torch


def measured(machine: Machine, sides: dict[str, Side]) -> dict[str, dict[str, Any]]:
    """`seconds` and `spread` of each side, by turns; nothing is timed where nothing runs."""
    counts: dict[str, int] = {}
    for name, side in sides.items():
        for _ in range(WARM):
            side.call()
        side.wait()
        counts[name] = _calls(side) if machine.is_real else 1
    times: dict[str, list[float]] = {name: [] for name in sides}
    end = time.perf_counter() + WHOLE * len(sides)
    for _ in range(BATCHES if machine.is_real else 1):
        for name, side in sides.items():
            times[name].append(_batch(side, counts[name]))
        if time.perf_counter() > end and len(times[name]) > 2:
            break
    if not machine.is_real:
        return {name: {} for name in sides}
    return {
        name: {
            "seconds": statistics.median(found),
            "spread": round((max(found) - min(found)) / statistics.median(found), 3),
            "calls": counts[name] * len(found),
        }
        for name, found in times.items()
    }


def _calls(side: Side) -> int:
    once = min(_batch(side, 1), _batch(side, 1))
    return max(1, min(CALLS, int(BATCH / max(once, 1e-6))))


def _batch(side: Side, count: int) -> float:
    side.wait()
    start = time.perf_counter()
    for _ in range(count):
        side.call()
    side.wait()
    return (time.perf_counter() - start) / count


def compared(
    machine: Machine, call: Call, peers: dict[str, Callable[[], Side]], tolerance: float
) -> dict[str, Any]:
    """Our time and the peers', and how far our answer is from the first one's, as a part of its largest
    number.

    ValueError if that is more than `tolerance`: what is wrong has no time. A peer that fails is in the
    result; a dry run must not meet one.
    """
    if not machine.runs:
        for _ in range(2):  # the second is captured
            call()
        return {}
    sides, failed = {OURS: ours(call)}, {}
    for name, make in peers.items():
        try:
            sides[name] = make()
            sides[name].call()
        except (ImportError, Missing) as error:
            sides.pop(name, None)
            failed[name] = {"missing": str(error)}
        except Exception as error:
            if not machine.is_real:
                raise
            sides.pop(name, None)
            failed[name] = {"error": f"{type(error).__name__}: {error}"[:300]}
    found: dict[str, Any] = {}
    if len(sides) > 1:
        ours_, other, *_ = (side.answer(side.call()) for side in sides.values())
        found["difference"] = apart(ours_, other, tolerance)
    return {**found, "sides": {**measured(machine, sides), **failed}}


def apart(found: np.ndarray, expected: np.ndarray, tolerance: float) -> float:
    """The largest difference, as a part of the largest number; ValueError beyond the tolerance."""
    if found.shape != expected.shape:
        raise ValueError(f"the answer has the shape {found.shape}, the peer's {expected.shape}")
    largest = float(np.abs(expected).max(initial=0.0)) or 1.0
    difference = float(np.abs(found - expected).max(initial=0.0)) / largest
    if not difference <= tolerance:
        at = np.unravel_index(int(np.abs(found - expected).argmax()), found.shape)
        raise ValueError(
            f"the answer is wrong by {difference:.2e} of its largest number: {found[at]} instead of "
            f"{expected[at]} at {tuple(map(int, at))}"
        )
    return difference


def kernels_of(machine: Machine, call: Call, times: int = 3) -> list[dict[str, Any]]:
    """What one call runs, by name: seconds by the GPU's own events, the least of some runs; and what the
    model of time believed.
    """
    runs: list[list[tuple[ScheduleItem, str, float]]] = []
    for _ in range(times if machine.is_real else 1):
        runs.append([])
        with observe_kernels(
            lambda item, name, seconds, ops, n: runs[-1].append((item, name, seconds or 0.0))
        ):
            call()
    found = []
    for same in zip(*runs, strict=True):
        item, name, _ = same[0]
        if item.ast.op is not Ops.SINK:
            continue
        opts: Sequence[Any] = get_runner(item.bufs[0].device, item.ast).spec.applied_opts
        believed = prediction_of(item.ast, Device["CUDA"].renderer.target, opts)
        row: dict[str, Any] = {"name": name, "opts": [str(opt) for opt in opts]}
        if believed is not None:
            row["believed"] = believed.seconds
        if machine.is_real:
            row["seconds"] = min(run[2] for run in same)
        found.append(row)
    return found

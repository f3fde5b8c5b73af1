"""Stage 5: BEAM over the ten slowest: what it finds beside the default choice, and what was believed of both.

The ten are those of products, attention and bandwidth that lose most to their peer, as the results on disk
say; where there are none, ten that are named here. Of each its slowest kernel is searched, some seconds long.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from lazygrad import Context, Device
from lazygrad.codegen.compile import compile_kernel, prediction_of
from lazygrad.engine.realize import observe_kernels
from lazygrad.ir.ops import Ops
from lazygrad.schedule.kernels.items import ScheduleItem
from lazygrad.tuning.beam import tune

from .machine import PLAY, Machine
from .speed import program_of
from .stages import Case, Missing
from .summary import OURS, timed

#: Cases, seconds of a search, and how many lists it keeps.
COUNT, SECONDS, WIDTH = 10, 3.0, 2
PARTS = ("products", "attention", "bandwidth")
NAMED = [
    ("products", "float32 2048"),
    ("products", "tf32 4096"),
    ("products", "bfloat16 8192"),
    ("products", "float16 1024"),
    ("products", "fp8e4m3 4096"),
    ("bandwidth", "softmax"),
    ("bandwidth", "layer norm"),
    ("bandwidth", "column sums"),
    ("bandwidth", "row sums"),
    ("bandwidth", "transposed"),
]


def cases(machine: Machine) -> dict[str, Case]:
    chosen = slowest(Path(machine.folder)) or NAMED
    if machine.mode == PLAY:
        chosen = [("products", "float16 512")]
    return {
        f"{part}: {name}": lambda part=part, name=name: _searched(machine, part, name)
        for part, name in chosen
    }


def slowest(folder: Path) -> list[tuple[str, str]]:
    """(stage, case): those whose time is the most of their peer's, by the results in a folder."""
    found = []
    for part in PARTS:
        path = folder / f"{part}.json"
        result = json.loads(path.read_text(encoding="utf-8")).get("real") if path.exists() else None
        for name, sides in timed(result).items() if result else ():
            others = [side["seconds"] for peer, side in sides.items() if peer != OURS]
            if OURS in sides and others:
                found.append((sides[OURS]["seconds"] / min(others), part, name.partition(": ")[2]))
    return [(part, name) for _, part, name in sorted(found, reverse=True)[:COUNT]]


def _searched(machine: Machine, part: str, name: str) -> dict[str, Any]:
    program = program_of(machine, part, name)
    with Context(**program.flags):
        item = _slowest_kernel(program.call())
        if not machine.runs:
            compile_kernel(item.ast, Device["CUDA"].renderer)
            return {}
        until = time.monotonic() + machine.size(SECONDS, 20.0)
        found = tune(Device["CUDA"], item.ast, WIDTH, until)
        if "not searched" in found.note:
            raise ValueError(f"{found.name} was {found.note}")
        target = Device["CUDA"].renderer.target
        believed = [prediction_of(item.ast, target, opts) for opts in (found.usual, found.opts)]
    return {
        "kernel": found.name,
        "tried": found.tried,
        "note": found.note,
        "regret": found.usual_seconds / found.seconds if found.seconds and machine.is_real else None,
        "usual": _choice(machine, found.usual, found.usual_seconds, believed[0]),
        "best": _choice(machine, found.opts, found.seconds, believed[1]),
    }


def _choice(machine: Machine, opts: Any, seconds: float, believed: Any) -> dict[str, Any]:
    row: dict[str, Any] = {"opts": [str(opt) for opt in opts]}
    if machine.is_real:
        row["seconds"] = seconds
    if believed is not None:
        row |= {"believed": believed.seconds, "bound": believed.bound, "occupancy": believed.occupancy}
    return row


def _slowest_kernel(call: Any) -> ScheduleItem:
    seen: list[tuple[float, int, ScheduleItem]] = []

    def see(item: ScheduleItem, name: str, seconds: float | None, ops: int, nbytes: int) -> None:
        if item.ast.op is Ops.SINK:
            seen.append((seconds or 0.0, ops + nbytes, item))

    call()
    with observe_kernels(see):
        call()
    if not seen:
        raise Missing("it runs no kernel")
    return max(seen, key=lambda each: each[:2])[2]

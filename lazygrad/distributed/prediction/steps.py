"""A script on devices that only count: what the first of them does in a step, and how long that takes.

The script runs as rank 0 of a world of that many ranks on device NULL, planned for the target: what all other
ranks do is the same, on other parts. Its step is what a jit has captured; of several, the longest.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from ...codegen.cost.predict import predict
from ...commands.script import run_script
from ...config import PLAN_FOR, Context
from ...device.world import World, set_world
from ...engine.actions import Action
from ...engine.collectives import text_of
from ...engine.replay import Replay
from ...events import listeners
from ...inspection.kernels import inspect
from ...inspection.targets import Target
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...target import Launch
from .. import starting
from ..world_mesh import Sizes
from .links import Links
from .timeline import Memory, Timeline, timeline

#: Cycles of a processor's core in a second: a choice, of which predictions for CPUs are as good as it is.
CLOCK = 3e9


class Step(NamedTuple):
    """What a device does in a step on one mesh.

    mesh        name of an axis → its size, as the script made it; empty where it made none with `world_mesh`
    timeline    when what runs
    resident    bytes that stay from step to step: parameters, an optimizer's state, the batch, results
    passing     bytes that are needed in between, at most
    level_bytes bytes that the device receives over each level of links
    ops         operations on numbers of the kernels
    """

    mesh: dict[str, int]
    timeline: Timeline
    resident: int
    passing: int
    level_bytes: tuple[float, ...]
    ops: int


class NoStep(Exception):
    """The script captured no step, or did not come to its end."""


class _Captures:
    """Notes what jits capture."""

    def __init__(self) -> None:
        self.found: list[Replay] = []

    def happened(self, kind: str, begin: float, end: float, what: Any) -> None:
        if kind == "capture" and what[1] is not None:
            self.found.append(what[1])


@contextlib.contextmanager
def _world_of(devices: int, sizes: dict[str, int] | None) -> Iterator[None]:
    """Within the block this process takes itself for rank 0 of so many."""
    before = set_world(World(0, devices, None))
    started = starting._Started
    had = started.done, started.size
    started.done, started.size = False, devices
    Sizes.requested, Sizes.made = sizes, None
    try:
        yield
    finally:
        started.done, started.size = had
        Sizes.requested = None
        set_world(before)


def predict_step(
    given: argparse.Namespace, devices: int, target: Target, links: Links, sizes: dict[str, int] | None = None
) -> Step:
    """The step of a script on so many devices.

    given  the script, as `run_script` takes it     sizes  of the axes of a mesh that `world_mesh` makes

    NoStep where the script fails or captures nothing.
    """
    captures = _Captures()
    listeners.append(captures)
    try:
        with _world_of(devices, sizes), Context(DEV="NULL", PLAN_FOR=_planned_for(target)):
            status = run_script(given)
            made = dict(Sizes.made or {})
    finally:
        listeners.remove(captures)
    if status:
        raise NoStep(f"the script ended with status {status}")
    if not captures.found:
        raise NoStep(
            "the script captured no step: let a function with lazygrad.jit make it, and call that three times"
        )
    found = max(captures.found, key=lambda replay: replay.accessed)
    return _step(found, target, links, made)


def _planned_for(target: Target) -> str:
    return target.name if target.renderer.target.grid else str(PLAN_FOR.value)


def _step(replay: Replay, target: Target, links: Links, mesh: dict[str, int]) -> Step:
    actions = [action for batch in replay.batches for action in batch.actions]
    times = _Times(target, links)

    def level_of(action: Action) -> int:
        return links.level_of(numbers_of(action.item.ast.arg.group))

    moved = [0.0] * len(links.levels)
    for action in actions:
        if action.kind == "collective":
            ast = action.item.ast
            received = links.received(ast.arg, ast.dtype.itemsize, numbers_of(ast.arg.group))
            moved = [total + nbytes for total, nbytes in zip(moved, received, strict=True)]
    found = timeline(actions, lambda place: _memory_of(replay, place), times.of, level_of)
    changing: dict[int, int] = {}
    for action in actions:
        for place, buffer in zip(action.slots, action.bufs, strict=True):
            if place < replay.changing:
                changing[place] = max(changing.get(place, 0), buffer.nbytes)
    kept = sum(base.nbytes for base in replay.external) + sum(changing.values())
    return Step(mesh, found, kept, replay.taken_bytes, tuple(moved), replay.ops)


def _memory_of(replay: Replay, place: int) -> Memory:
    held = replay.buffers.get(place)
    if held is None:
        return ("place", place), 0, 1
    return held.base, held.offset, held.offset + max(1, held.nbytes)


def numbers_of(group: tuple[str, ...]) -> list[int]:
    """The numbers of devices: of NULL:3, 3."""
    return [int(name.partition(":")[2] or 0) for name in group]


class _Times:
    """How long each thing of a step takes; kernels that are alike are predicted once."""

    def __init__(self, target: Target, links: Links) -> None:
        self.target, self.links = target, links
        self._kernels: dict[UOp, tuple[str, float]] = {}

    def of(self, action: Action) -> tuple[str, float, int]:
        """The name, seconds and bytes of an action."""
        ast = action.item.ast
        if ast.op is Ops.COLLECTIVE:
            about = ast.arg, ast.dtype.itemsize, numbers_of(ast.arg.group)
            return text_of(ast.arg), self.links.seconds(*about), round(sum(self.links.received(*about)))
        launch = self.target.renderer.target.launch
        if action.kind != "kernel":
            return action.kind, _moved(action.accessed, launch), action.accessed
        if ast not in self._kernels:
            self._kernels[ast] = self._kernel(action)
        name, seconds = self._kernels[ast]
        return name, seconds, action.accessed

    def _kernel(self, action: Action) -> tuple[str, float]:
        [kernel] = inspect([action.item], self.target.name)
        prediction = kernel.prediction
        if prediction is not None:
            return kernel.name, prediction.seconds
        target = self.target.renderer.target
        if not target.grid and kernel.spec.uops:
            return kernel.name, predict(kernel.spec.uops, target) / CLOCK
        # What has no prediction of its own (a sort, a running sum, a loop over time) is taken for the time of
        # its bytes.
        return kernel.name, _moved(action.accessed, target.launch)


def _moved(nbytes: int, launch: Launch) -> float:
    """Seconds to start something that moves so many bytes, and to move them."""
    return launch.begun + nbytes / launch.bandwidth

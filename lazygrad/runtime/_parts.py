"""A recorded list in parts: kernels of a device that follow each other run as one, and between them what
Python runs (a loop over time).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..device import Graph, Launch, Program


def in_parts(
    launches: Sequence[Launch], is_kernel: Callable[[Program], bool], as_one: Callable[[list[Launch]], Graph]
) -> Graph:
    """What runs a list: `as_one` of the kernels between two programs that are none."""
    parts: list[Graph] = []
    run: list[Launch] = []
    for launch in [*launches, None]:
        if launch is not None and is_kernel(launch[0]):
            run.append(launch)
            continue
        if run:
            parts.append(as_one(run))
            run = []
        if launch is not None:
            parts.append(_called(launch))
    if len(parts) == 1:
        return parts[0]

    def run_parts(handles: Sequence[Any], integers: Sequence[int]) -> None:
        for part in parts:
            part(handles, integers)

    return run_parts


def _called(launch: Launch) -> Graph:
    program, places, values = launch
    own = program.another()  # type: ignore[attr-defined]

    def run(handles: Sequence[Any], integers: Sequence[int]) -> None:
        own(tuple([handles[n] for n in places]), tuple([integers[n] for n in values]))

    return run

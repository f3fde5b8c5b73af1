"""A recorded list in parts: kernels of a device that follow each other run as one, and between them what
Python runs (a loop over time).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..device import Graph, Launch, Program


def in_segments(
    launches: Sequence[Launch], is_kernel: Callable[[Program], bool], as_one: Callable[[list[Launch]], Graph]
) -> Graph:
    """What runs a list: `single_call` of the kernels between two programs that are none."""
    segments: list[Graph] = []
    run: list[Launch] = []
    for launch in [*launches, None]:
        if launch is not None and is_kernel(launch[0]):
            run.append(launch)
            continue
        if run:
            segments.append(as_one(run))
            run = []
        if launch is not None:
            segments.append(_called(launch))
    if len(segments) == 1:
        return segments[0]

    def run_segments(handles: Sequence[Any], integers: Sequence[int]) -> None:
        for part in segments:
            part(handles, integers)

    return run_segments


def _called(launch: Launch) -> Graph:
    program, places, values = launch
    own = program.another()  # type: ignore[attr-defined]

    def run(handles: Sequence[Any], integers: Sequence[int]) -> None:
        own(tuple([handles[n] for n in places]), tuple([integers[n] for n in values]))

    return run

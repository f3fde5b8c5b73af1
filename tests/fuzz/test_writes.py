"""Random programs that write in place agree with a plain model of memory (writes.py), however they run."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lazygrad import Tensor
from lazygrad.config import Context
from lazygrad.engine import launch_cache
from lazygrad.shape.recipe import learned

from ..helpers import needs
from .harness import fuzzed
from .writes import Player, Program, programs

#: How a program is run; a failure that all share is shown without flags.
FLAGS: list[dict[str, Any]] = [{}] * 12
FLAGS += [dict(FUSE=0), dict(NOOPT=1), dict(THREADS=1), dict(CHECK=1)]
SEVERAL = ("CPU", "CPU:1")


@fuzzed(quick=200, sweep=10_000)
@given(programs(12), st.sampled_from(FLAGS))
def test_writes(program: Program, flags: dict[str, Any]) -> None:
    with Context(**flags):
        Player("CPU", program.shapes).play(program)


@fuzzed(quick=40, sweep=1500)
@given(programs(8), st.sampled_from(FLAGS))
def test_writes_on_python(program: Program, flags: dict[str, Any]) -> None:
    with Context(**flags):
        Player("PYTHON", program.shapes).play(program)


@fuzzed(quick=20, sweep=2000)
@given(programs(10))
def test_writes_again_and_again(program: Program) -> None:
    """What is played often makes no nodes any more: methods have recipes, graphs of calls have lists."""
    due = learned.due, launch_cache._ready.due
    learned.due = launch_cache._ready.due = 2
    try:
        for _ in range(6):
            Player("CPU", program.shapes).play(program)
    finally:
        learned.due, launch_cache._ready.due = due


@needs("clang")
@fuzzed(quick=10, sweep=500)
@given(programs(6), st.sampled_from(FLAGS))
def test_writes_on_clang(program: Program, flags: dict[str, Any]) -> None:
    with Context(**flags):
        Player("CLANG", program.shapes).play(program)


@needs("cl")
@fuzzed(quick=3, sweep=100)
@given(programs(6), st.sampled_from(FLAGS))
def test_writes_on_cl(program: Program, flags: dict[str, Any]) -> None:
    with Context(**flags):
        Player("CL", program.shapes).play(program)


def sharded(tensor: Tensor, number: int) -> Tensor:
    """Over two devices: copies, or parts along an axis."""
    axes = [None, *(axis for axis, size in enumerate(tensor.shape) if size >= len(SEVERAL))]
    return tensor.shard(SEVERAL, axes[number % len(axes)])


@fuzzed(quick=47, sweep=2000)
@given(programs(8), st.sampled_from(FLAGS))
def test_writes_on_two_devices(program: Program, flags: dict[str, Any]) -> None:
    with Context(**flags):
        Player(SEVERAL, program.shapes, sharded).play(program)

"""Opts that are drawn at random are legal ones."""

from __future__ import annotations

import random
from dataclasses import replace

from lazygrad import Tensor
from lazygrad.codegen.drawn import _price, drawn
from lazygrad.codegen.lowering.lower import lower
from lazygrad.codegen.opt import Loops, Opt, OptOps
from lazygrad.renderer.cstyle import MetalRenderer


def test_what_the_driver_would_end_is_not_drawn() -> None:
    """Of 4,096 turns it makes 1,000: a workgroup shares them."""
    (item,) = Tensor.empty(4, 4096).realize().sum(1).schedule()
    loops, shared = Loops.of(lower(item.ast)), [Opt(OptOps.GROUP, 0, 64)]
    grid = replace(MetalRenderer().target, loop_iterations=1000)
    found = [drawn(loops, grid, shared, random.Random(seed)) for seed in range(30)]
    assert all(_price(loops, opts, grid)[0] < float("inf") for opts in found)
    assert len({repr(opts) for opts in found}) > 3
    assert _price(loops, [], grid)[0] == float("inf")

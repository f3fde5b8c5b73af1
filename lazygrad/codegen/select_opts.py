"""The Opts chosen for kernels, remembered for a while.

The plan asks how long short kernels take (`schedule/horizontal_fusion/side_by_side.py`) just before they are
compiled.
"""

from __future__ import annotations

import functools

from ..config import OPTS
from ..decisions import decide, observers
from ..ir.uop import UOp
from ..structure import structure_of
from ..target import Target
from .drawn import drawn
from .lowering.lower import REMEMBERED
from .opt import Choice, Loops, choose, choose_on_cores
from .opt.text import parse_opts


def select_opts(sink: UOp, target: Target) -> Choice:
    """The Opts for the loops of a kernel, and on a processor the cycles that it is predicted to take."""
    if observers:  # who looks on is told each time
        return _select_opts.__wrapped__(sink, target, OPTS.value)
    return _select_opts(sink, target, OPTS.value)


@functools.lru_cache(REMEMBERED)
def _select_opts(sink: UOp, target: Target, answers: str) -> Choice:
    loops = Loops.of(sink)
    found = Choice(choose(loops, target), 0.0) if target.grid else choose_on_cores(loops, target)
    opts = decide(
        "opts",
        lambda: structure_of((sink,)),
        found.opts,
        lambda rng: [drawn(loops, target, found.opts, rng)],
        parse_opts,
    )
    return found if opts is found.opts else Choice(list(opts), found.cycles)


def launch_cycles(target: Target) -> float:
    """The cycles of a core that starting one more kernel takes."""
    lanes = max(target.vector_bytes // 4, 1)
    return target.launch.kernel / (lanes * target.core.arithmetic)

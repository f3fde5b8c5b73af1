"""What kernels are lowered to, and the Opts chosen for them on a processor, remembered for a while.

The plan asks how long short kernels take (`schedule/side_by_side.py`) just before they are compiled.
"""

from __future__ import annotations

import functools

from ..ir.rewrite import watched
from ..ir.uop import UOp
from ..target import Target
from .lower import lower
from .opt import Choice, Loops, choose_on_cores

#: As many kernels as long plans have.
REMEMBERED = 256

_lowered = functools.lru_cache(REMEMBERED)(lower)


def lowered(ast: UOp) -> UOp:
    """The loops of a kernel AST (form 3). Who watches rewrites sees them each time."""
    return lower(ast) if watched() else _lowered(ast)


@functools.lru_cache(REMEMBERED)
def chosen(sink: UOp, target: Target) -> Choice:
    """The Opts for the loops of a kernel, and the cycles that it takes with them."""
    return choose_on_cores(Loops.of(sink), target)


def launch_cycles(target: Target) -> float:
    """The cycles of a core that starting one more kernel takes."""
    lanes = max(target.vector_bytes // 4, 1)
    return target.launch.kernel / (lanes * target.core.arithmetic)

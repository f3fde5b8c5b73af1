"""Kernel ASTs (form 2) in, linear programs (form 7) and their text out; `passes` has the list of passes."""

from .compile import compile_kernel, stage_times, stages
from .cost.estimate import estimate
from .linearizing.linearize import linearize
from .lowering.lower import lower
from .passes import PASSES, Pass, legalize

__all__ = [
    "PASSES",
    "Pass",
    "compile_kernel",
    "estimate",
    "legalize",
    "linearize",
    "lower",
    "stage_times",
    "stages",
]

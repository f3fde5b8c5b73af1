"""Kernel ASTs (form 2) in, linear programs (form 7) and their text out; `compile` has the list of passes.

`evaluate` says what an AST means, slowly and obviously.
"""

from .compile import PASSES, Pass, compile_kernel, stage_times, stages
from .cost.estimate import estimate
from .legalizing.legalize import legalize
from .linearizing.linearize import linearize
from .lowering.lower import lower
from .oracle.evaluate import evaluate

__all__ = [
    "PASSES",
    "Pass",
    "compile_kernel",
    "estimate",
    "evaluate",
    "legalize",
    "linearize",
    "lower",
    "stage_times",
    "stages",
]

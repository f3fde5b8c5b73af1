"""The loop optimizer, form 3 to form 4: which moves are legal (`actions`), what they change (`loops`), and which to make
(`heuristic`). What comes out is the same kernel with its ranges split and typed, and the list of `Opt`s that did it.
"""

from .actions import ACTIONS, KernelOptError, Opt, OptOps, apply_opt, apply_opts
from .heuristic import choose
from .loops import Axis, Loops

__all__ = ["ACTIONS", "Axis", "KernelOptError", "Loops", "Opt", "OptOps", "apply_opt", "apply_opts", "choose"]

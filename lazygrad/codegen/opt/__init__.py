"""The loop optimizer, form 3 to form 4: the same kernel, its ranges split and typed by a list of `Opt`s.

`actions` says which moves are legal, `loops` what they change, `heuristic` which to make.
"""

from .heuristic import Choice, choose, choose_on_cores
from .moves.actions import ACTIONS, KernelOptError, Opt, OptOps, apply_opt, apply_opts
from .moves.groups import Group, GroupTop
from .moves.inline import Inline
from .moves.k_blocks import KBlocks
from .moves.loops import Axis, Loops
from .moves.stage import Stage
from .moves.tensor_core import TensorCore
from .moves.tile import Tile

__all__ = [
    "ACTIONS",
    "Axis",
    "Choice",
    "Group",
    "GroupTop",
    "Inline",
    "KBlocks",
    "KernelOptError",
    "Loops",
    "Opt",
    "OptOps",
    "Stage",
    "TensorCore",
    "Tile",
    "apply_opt",
    "apply_opts",
    "choose",
    "choose_on_cores",
]

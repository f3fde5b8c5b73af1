"""The loop optimizer, form 3 to form 4: the same kernel, its ranges split and typed by a list of `Opt`s.

`actions` says which moves are legal, `loops` what they change, `heuristic` and `threads` which to make.
"""

from .actions import ACTIONS, KernelOptError, Opt, OptOps, apply_opt, apply_opts
from .groups import Group, GroupTop
from .heuristic import Choice
from .inline import Inline
from .k_blocks import KBlocks
from .loops import Axis, Loops
from .multi_buffer import MultiBuffer
from .stage import Stage
from .tensor_core import TensorCore
from .threads import choose, choose_on_cores
from .tile import Tile

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
    "MultiBuffer",
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

"""The loop optimizer, form 3 to form 4: the same kernel, its ranges split and typed by a list of `Opt`s.

`actions` says which moves are legal, `loops` what they change, `heuristic` and `threads` which to make.
"""

from .actions import ACTIONS, KernelOptError, Opt, OptOps, apply_opt, apply_opts
from .ahead import Ahead
from .groups import Group, GroupTop
from .heuristic import Choice
from .inline import Inline
from .loops import Axis, Loops
from .rounds import Rounds
from .stage import Stage
from .tensor_core import TensorCore
from .threads import choose, choose_on_cores
from .tile import Tile

__all__ = [
    "ACTIONS",
    "Ahead",
    "Axis",
    "Choice",
    "Group",
    "GroupTop",
    "Inline",
    "KernelOptError",
    "Loops",
    "Opt",
    "OptOps",
    "Rounds",
    "Stage",
    "TensorCore",
    "Tile",
    "apply_opt",
    "apply_opts",
    "choose",
    "choose_on_cores",
]

"""The gradient of every operation of the tensor graph: graph in, graph out.

`gradient(root, grad, targets)` walks the graph below `root` once, users first, and returns for each target
the graph of its gradient. That graph is made of the same operations, so it can be differentiated again,
fused, and printed. `GRADIENTS` has a cell for every op that may stand in a tensor graph: a rule, or
NO_GRADIENT.
"""

from .again import gradient_again
from .joins import MAX_CHOICES, choice, in_memory
from .nodes import filled, gather, reduce_axes, scan, scan_winner, scatter
from .rules import GRADIENTS, NO_GRADIENT
from .walk import gradient

__all__ = [
    "GRADIENTS",
    "MAX_CHOICES",
    "NO_GRADIENT",
    "choice",
    "filled",
    "gather",
    "gradient",
    "gradient_again",
    "in_memory",
    "reduce_axes",
    "scan",
    "scan_winner",
    "scatter",
]

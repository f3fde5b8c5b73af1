"""What planning asks the registry of decisions: about which value, and whether an answer is legal."""

from __future__ import annotations

from collections.abc import Callable

from ...ir.ops import DIRECT, TRANSFERS, Ops
from ...ir.uop import UOp
from ...structure import NEAR, structure_of
from ..graph.in_memory import is_materialized

#: What is in memory before anything reads it, whether it is computed in this plan or was in another one.
_STORED = frozenset((Ops.CONTIGUOUS, Ops.SCATTER, *DIRECT, *TRANSFERS))


def near(*values: UOp) -> Callable[[], str]:
    """Gives the structure of values: what they are made of, down to memory, as far as it is near.

    A jit's arguments are in memory when it is called; without a jit they may be copied in the same plan.
    """

    def is_memory(node: UOp) -> bool:
        return is_materialized(node) or (node.op in _STORED and node not in values)

    return lambda: structure_of(values, is_memory, NEAR)

"""What planning asks the registry of decisions: about which value, and whether an answer is legal."""

from __future__ import annotations

from collections.abc import Callable

from ..ir.uop import UOp
from ..structure import NEAR, structure_of
from .in_memory import is_held


def near(*values: UOp) -> Callable[[], str]:
    """Gives the structure of values: what they are made of, as far as it is near."""
    return lambda: structure_of(values, is_held, NEAR)

"""The table of ATen operations: each as a function of lazygrad tensors.

A row is for an overload (`add.Tensor`) or for all overloads of a name (`abs`). It gets the arguments that
the graph has, with lazygrad tensors for PyTorch's, and gives a tensor, or a tuple of them. What it gives is
cast to the dtype that PyTorch says the result has, and must have the shape that PyTorch says (graph.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: Name, or name and overload → the function.
ATEN: dict[str, Callable[..., Any]] = {}
#: Those that draw random numbers.
RANDOM: set[str] = set()


def aten(*names: str, random: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add a function to the table under these names."""

    def add(fn: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            if name in ATEN:
                raise ValueError(f"the table has two rows of {name}")
            ATEN[name] = fn
            if random:
                RANDOM.add(name)
        return fn

    return add


def row_of(target: Any) -> Callable[..., Any] | None:
    """The row of an operation of a graph; None if there is none."""
    return ATEN.get(_overload(target)) or ATEN.get(_name(target))


def is_random(target: Any) -> bool:
    """Whether an operation draws random numbers."""
    return _overload(target) in RANDOM or _name(target) in RANDOM


def name_of(target: Any) -> str:
    """What errors call it: `aten.add.Tensor`."""
    return str(target)


def _overload(target: Any) -> str:
    return str(target).removeprefix("aten.")


def _name(target: Any) -> str:
    return _overload(target).partition(".")[0]

"""What there is: the public methods of Tensor, with their other names."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from lazygrad import Tensor
from lazygrad.tensor import FAMILIES, in_place
from lazygrad.tensor.core import TensorCore


def function_of(name: str) -> Any:
    """The function that a public name of Tensor stands for; None for properties and attributes."""
    member = inspect.getattr_static(Tensor, name)
    found = inspect.unwrap(getattr(member, "__func__", member))
    return found if inspect.isfunction(found) else None


@functools.cache
def methods() -> dict[str, tuple[Any, list[str]]]:
    """Name → (function, its other names), in the order of the families and of their classes.

    Those that write in place are left out: they are other methods with an underscore.
    """
    groups: dict[Any, list[str]] = {}
    for name in dir(Tensor):
        function = None if name.startswith("_") else function_of(name)
        if function is not None and function.__module__ != in_place.__name__:
            groups.setdefault(function, []).append(name)
    rows = {}
    for function, names in groups.items():
        own = function.__name__ if function.__name__ in names else names[0]
        rows[own] = (function, sorted(n for n in names if n != own))
    order = [name for family in (TensorCore, *FAMILIES) for name in vars(family) if name in rows]
    return {name: rows[name] for name in order}


def methods_of(module: str) -> dict[str, tuple[Any, list[str]]]:
    """Those that one file of lazygrad/tensor/ holds, `shape.movement`."""
    home = f"lazygrad.tensor.{module}"
    return {name: row for name, row in methods().items() if row[0].__module__ == home}

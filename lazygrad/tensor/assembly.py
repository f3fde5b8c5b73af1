"""How Tensor gets its methods: from the families, under other names, in place, each wrapped (trace.py)."""

from __future__ import annotations

import types
from collections.abc import Iterable

from .in_place import add_in_place
from .names import add_other_names
from .recipes import by_recipe
from .trace import trace_methods

#: What a family may define.
MEMBERS = (types.FunctionType, classmethod, staticmethod, property)


def assemble(tensor: type, families: Iterable[type]) -> None:
    """Let the class have what each family defines; what two define is an error."""
    homes: dict[str, type] = {}
    for family in families:
        for name, member in vars(family).items():
            if isinstance(member, MEMBERS):
                other = homes.setdefault(name, family)
                if other is not family:
                    raise TypeError(f"{name} is defined by {other.__module__} and by {family.__module__}")
                setattr(tensor, name, member)
    add_other_names(tensor)
    add_in_place(tensor)
    trace_methods(tensor, by_recipe)

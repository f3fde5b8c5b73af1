"""Tensors in tuples, lists and dicts: taken out, and put back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

#: (where it stands, as `[1]['h']`; what is there)
Leaf = tuple[str, Any]


def leaves_of(value: Any, where: str = "") -> list[Leaf]:
    """What is in a nest, in order: dicts by their keys as they stand, None is nothing."""
    if value is None:
        return []
    if isinstance(value, dict):
        return [leaf for key, part in value.items() for leaf in leaves_of(part, f"{where}[{key!r}]")]
    if isinstance(value, (tuple, list)):
        names = getattr(value, "_fields", None)
        places = [f"[{n}]" for n in range(len(value))] if names is None else [f".{name}" for name in names]
        return [
            leaf for place, part in zip(places, value, strict=True) for leaf in leaves_of(part, where + place)
        ]
    return [(where, value)]


def rebuilt(value: Any, leaves: Sequence[Any]) -> Any:
    """The same nest of other leaves."""
    left = iter(leaves)

    def part(value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, dict):
            return {key: part(inner) for key, inner in value.items()}
        if isinstance(value, (tuple, list)):
            parts = [part(inner) for inner in value]
            return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
        return next(left)

    return part(value)


def aligned(value: Any, like: Any) -> Any:
    """A nest with the keys of its dicts in the order of another's, where they have the same."""
    if isinstance(value, dict) and isinstance(like, dict) and value.keys() == like.keys():
        return {key: aligned(value[key], like[key]) for key in like}
    same = isinstance(value, (tuple, list)) and isinstance(like, (tuple, list)) and len(value) == len(like)
    if not same:
        return value
    parts = [aligned(a, b) for a, b in zip(value, like, strict=True)]
    return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)


def form_of(value: Any, leaf: Callable[[Any], str] = lambda leaf: "*") -> str:
    """A nest as text: what contains what."""
    if value is None:
        return "None"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {form_of(part, leaf)}" for key, part in value.items()) + "}"
    if isinstance(value, (tuple, list)):
        inner = ", ".join(form_of(part, leaf) for part in value)
        if hasattr(value, "_fields"):
            return f"{type(value).__name__}({inner})"
        if isinstance(value, list):
            return f"[{inner}]"
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return leaf(value)

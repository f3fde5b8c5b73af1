"""What is said of a method or attribute that a Tensor does not have."""

from __future__ import annotations

import difflib
import functools


@functools.lru_cache(256)
def unknown_name(cls: type, name: str) -> str:
    """The nearest names that exist, for one that does not."""
    if name.startswith("_"):
        return f"type object {cls.__name__!r} has no attribute {name!r}"
    known = [n for n in dir(cls) if not n.startswith("_")]
    near = difflib.get_close_matches(name, known, 3, 0.6)
    hint = f"; did you mean {' or '.join(near)}?" if near else "; docs/tensor.md lists all methods"
    return f"a Tensor has no attribute {name!r}{hint}"

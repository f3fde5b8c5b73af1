"""What is said of a method or attribute that a Tensor does not have."""

from __future__ import annotations

from ..locks import WeakKeys

#: What was said of names by class: the search is slow, and some programs ask in a loop.
_said: WeakKeys[type, dict[str, str]] = WeakKeys()
#: Of so many names it is remembered.
MOST = 256


def unknown_name(cls: type, name: str) -> str:
    """The nearest names that exist, for one that does not."""
    if name.startswith("_"):
        return f"type object {cls.__name__!r} has no attribute {name!r}"
    said = _said.get(cls)
    if said is None:
        said = _said.put(cls, {})
    text = said.get(name)
    if text is None:
        if len(said) >= MOST:
            said.clear()
        text = said[name] = f"a Tensor has no attribute {name!r}{_hint(cls, name)}"
    return text


def _hint(cls: type, name: str) -> str:
    import difflib

    known = [n for n in dir(cls) if not n.startswith("_")]
    near = difflib.get_close_matches(name, known, 3, 0.6)
    return f"; did you mean {' or '.join(near)}?" if near else "; docs/tensor/README.md lists all methods"

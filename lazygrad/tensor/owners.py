"""Which attribute of which object holds a tensor: `Network.first.weight`."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from typing import Any

from .face import Tensor

#: A name has at most so many parts.
DEEPEST = 8
#: In a list or dict of an attribute so many items are looked at.
MOST_ITEMS = 4096


def attributes_of(tensors: Iterable[Tensor]) -> dict[int, str]:
    """id of a tensor → the attribute that holds it, for those that objects of classes hold.

    A name begins with the class of the outermost object that leads to the tensor. What an optimizer keeps in
    a list and a layer as an attribute is the layer's.
    """
    wanted = {id(tensor): tensor for tensor in tensors}
    #: id of what is held → (who holds it, by what name)
    holders: dict[int, tuple[Any, str]] = {}
    for owner in gc.get_objects():
        for name, value in _attributes(owner):
            if id(value) in wanted or _is_instance(value):
                known = holders.get(id(value))
                if known is None or (known[1].endswith("]") and not name.endswith("]")):
                    holders[id(value)] = owner, name
    for tensor in wanted.values():
        if tensor.grad is not None:
            holders.setdefault(id(tensor.grad), (tensor, ".grad"))
    return {key: _name(key, holders) for key in wanted if key in holders}


def _is_instance(value: Any) -> bool:
    """Whether it is an object of a Python class with attributes: a layer, a model, an optimizer."""
    kind = type(value)
    heap_type = kind.__flags__ & (1 << 9)  # Py_TPFLAGS_HEAPTYPE
    return bool(heap_type and kind.__dictoffset__) and not issubclass(kind, (type, Tensor))


def _attributes(owner: Any) -> Iterator[tuple[str, Any]]:
    """The attributes of an object with their names, and what lies in lists and dicts of these."""
    if not _is_instance(owner):
        return
    try:
        attributes = list(object.__getattribute__(owner, "__dict__").items())
    except Exception:  # an object that is being made, or hides its attributes
        return
    for name, value in attributes:
        if issubclass(type(value), (list, tuple)):
            for place, item in enumerate(value[:MOST_ITEMS]):
                yield f".{name}[{place}]", item
        elif type(value) is dict:
            for key in list(value)[:MOST_ITEMS]:
                yield f".{name}[{key!r}]", value.get(key)
        else:
            yield f".{name}", value


def _name(key: int, holders: dict[int, tuple[Any, str]]) -> str:
    names: list[str] = []
    kind = ""
    seen = set()
    while key in holders and key not in seen and len(names) < DEEPEST:
        seen.add(key)
        owner, name = holders[key]
        names.append(name)
        kind, key = type(owner).__name__, id(owner)
    if kind == Tensor.__name__:  # the gradient of a tensor that nothing holds
        return ""
    return kind + "".join(reversed(names))

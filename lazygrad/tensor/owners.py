"""Which attribute of which model holds a tensor: `Network.first.weight`.

A model is any object, so nobody but its owner knows where it is. Those are looked into that lazygrad was
shown: whose state or parameters somebody asked for or loaded, every optimizer, and what the report is given.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

from .face import Tensor

#: A name has at most so many parts.
DEEPEST = 8
#: In a list or dict of an attribute so many items are looked at, and lists in lists so deep.
MOST_ITEMS, DEEPEST_LIST = 4096, 4

#: id → a model or an optimizer that lives
_shown: dict[int, weakref.ref[Any]] = {}


def show_model(model: Any) -> None:
    """Let the tensors of a model be named from now on, as long as it lives."""
    key = id(model)
    if key not in _shown and _is_instance(model):
        with contextlib.suppress(TypeError):  # of some objects nobody can tell whether they live
            _shown[key] = weakref.ref(model, lambda _: _shown.pop(key, None))


def attributes_of(tensors: Iterable[Tensor], models: Iterable[Any] = ()) -> dict[int, str]:
    """id of a tensor → the attribute that holds it, for those that these models hold, or others that were
    shown.

    A name begins with the class of the outermost object that leads to the tensor. What an optimizer keeps in
    a list and a layer as an attribute is the layer's.
    """
    wanted = {id(tensor): tensor for tensor in tensors}
    shown = [model() for model in list(_shown.values())]
    #: id of what is held → (who holds it, by what name)
    holders: dict[int, tuple[Any, str]] = {}
    todo = [part for model in (*models, *shown) for _, part in _members(model, "", 0)]
    met: dict[int, Any] = {}
    while todo:
        owner = todo.pop()
        if id(owner) in met or not _is_instance(owner):
            continue
        met[id(owner)] = owner
        for name, value in _attributes(owner):
            if id(value) in wanted or _is_instance(value):
                known = holders.get(id(value))
                if known is None or (known[1].endswith("]") and not name.endswith("]")):
                    holders[id(value)] = owner, name
                todo.append(value)
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
    try:
        attributes = list(object.__getattribute__(owner, "__dict__").items())
    except Exception:  # an object that is being made, or hides its attributes
        return
    for name, value in attributes:
        yield from _members(value, f".{name}", 0)


def _members(value: Any, name: str, depth: int) -> Iterator[tuple[str, Any]]:
    """An attribute, or what lies in it if it is a list or a dict."""
    if depth < DEEPEST_LIST and issubclass(type(value), (list, tuple)):
        for place, item in enumerate(value[:MOST_ITEMS]):
            yield from _members(item, f"{name}[{place}]", depth + 1)
    elif depth < DEEPEST_LIST and type(value) is dict:
        for key in list(value)[:MOST_ITEMS]:
            yield from _members(value.get(key), f"{name}[{key!r}]", depth + 1)
    else:
        yield name, value


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

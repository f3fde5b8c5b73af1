"""What a captured function can reach: objects below the names in its code, attributes, functions, tensors.

A walk from each name through containers, instances, classes, closures and references. What it meets is noted
once; each attribute is a place, found by its name, so that a function that mentions the name later is known
to read it, whatever way it came to the object.
"""

from __future__ import annotations

import collections
import functools
import threading
import types
from collections.abc import Callable, Set, ValuesView
from typing import Any, NamedTuple

from ..tensor import Tensor
from .bytecode import in_own_mode, is_user_code, reads_of
from .guard import AttributeSlot, Guard, ItemGuard, KeysGuard, SlotGuard, cell_value
from .python_values import (
    MISSING,
    PLAIN,
    fields_of,
    how_to_ask,
    is_closed_module,
    is_instance,
    is_library,
)
from .specs import SameSpec

#: So many objects are looked at, and of a container so many items.
MOST_OBJECTS = 50_000
MOST_ITEMS = 4096

Way = tuple[Guard, ...]


class Found(NamedTuple):
    """A tensor inside an object that a name leads to, and the guards on the way to it."""

    tensor: Tensor
    way: Way


class Reach:
    """What was met so far.

    on_tensor    called with each tensor when it is found, before the function uses it
    on_place     called with each attribute, and whether it counts whoever asks for it
    on_function  called with each function that may be called: not with methods, before they are named
    on_instance  called with each object that may be the one that a method is called of
    """

    def __init__(
        self,
        on_tensor: Callable[[Tensor], None],
        on_place: Callable[[AttributeSlot, bool], None],
        on_function: Callable[[types.FunctionType], None],
        on_instance: Callable[[Any], None],
    ) -> None:
        self.inside: dict[int, Found] = {}
        self.modules: dict[int, types.ModuleType] = {}
        self.classes: dict[type, types.MappingProxyType[str, Any]] = {}
        self._known: dict[int, Any] = {}  # objects, by id
        self._on_tensor, self._on_slot = on_tensor, on_place
        self._on_function, self._on_instance = on_function, on_instance

    def walk(self, value: Any, name: str, way: Way = (), passed: bool = False) -> None:
        """Meet a value and all that is below it.

        passed  it is an argument: another in each call, so that only classes and functions below it count
        """
        todo: list[tuple[Any, str, Way]] = [(value, name, way)]
        while todo and len(self._known) < MOST_OBJECTS:
            each, name, way = todo.pop()
            if isinstance(each, Tensor):
                if not passed and way and id(each) not in self.inside:
                    self.inside[id(each)] = Found(each, way)
                    self._on_tensor(each)
                continue
            if type(each) in PLAIN or self._known.get(id(each)) is each:
                continue
            if isinstance(each, types.ModuleType):
                if not is_closed_module(each.__name__):
                    self.modules[id(each)] = each
            elif isinstance(each, type):
                self._class(each, todo)
            elif isinstance(each, _CALLABLES):
                self._function(each, todo)
            elif isinstance(each, _DESCRIPTORS):
                todo += [(function, name, ()) for function in functions_of(each)]
            elif is_instance(each) or isinstance(each, threading.local):
                if not passed:
                    self._known[id(each)] = each
                    self._on_instance(each)
                todo.append((type(each), type(each).__name__, ()))
                todo += self._instance(each, name, way, passed)
            elif isinstance(each, _CONTAINERS):
                self._known[id(each)] = each
                todo += _items(each, name, way)
            elif is_library(each) and hasattr(each, "fxn"):  # another jit
                todo.append((each.fxn, name, ()))
            else:
                ask = how_to_ask(each)
                if ask is not None:
                    self._known[id(each)] = each
                    todo.append((ask(each), name, ()))

    def dict_of(self, kind: type) -> types.MappingProxyType[str, Any]:
        """A class's attributes: one object, so that its identity is that of the class."""
        return self.classes.setdefault(kind, vars(kind))

    # *** kinds of objects

    def _instance(self, value: Any, name: str, way: Way, passed: bool) -> list[tuple[Any, str, Way]]:
        held = None if isinstance(value, threading.local) else getattr(value, "__dict__", None)
        ours = is_library(value)
        if held is not None and not passed:
            self._on_slot(AttributeSlot(KeysGuard, held, MISSING, tuple(held), f"{name}.__dict__"), False)
        found: list[tuple[Any, str, Way]] = []
        met = set()
        for key, part in fields_of(value):
            met.add(key)
            text = f"{name}.{key}"
            kind = Guard if held is not None and key in held else SlotGuard
            holder = held if kind is Guard else value
            if not passed:
                always = ours and type(part) in PLAIN and kind is Guard
                self._on_slot(AttributeSlot(kind, holder, key, part, text), always)
            if type(part) not in PLAIN:
                step = kind(holder, key, part, SameSpec(f"`{text}`", part))
                found.append((part, text, (*way, step)))
        if held is not None and not passed and not ours:
            for base in type(value).__mro__:
                for key, part in self.dict_of(base).items():
                    if key not in met and not key.startswith("__") and not _is_data_descriptor(part):
                        met.add(key)  # it may be given to the instance later
                        self._on_slot(AttributeSlot(Guard, held, key, MISSING, f"{name}.{key}"), False)
        if isinstance(value, _CONTAINERS):
            found += _items(value, name, way)
        return found

    def _class(self, kind: type, todo: list[tuple[Any, str, Way]]) -> None:
        if is_closed_module(kind.__module__):
            return
        self._known[id(kind)] = kind
        ours = self.dict_of(kind)
        for key, part in list(ours.items()):
            is_method = isinstance(part, (types.FunctionType, *_DESCRIPTORS))
            if (key.startswith("__") and not is_method) or isinstance(part, _OF_SLOTS):
                continue
            name = f"{kind.__name__}.{key}"
            self._on_slot(AttributeSlot(Guard, ours, key, part, name), False)
            if not is_method or (key not in _FOR_PEOPLE and _is_called_unnamed(kind, key)):
                todo.append((part, name, ()))
        if type(kind) is not type and isinstance(type(kind).__module__, str):
            todo.append((type(kind), type(kind).__name__, ()))
        for base in kind.__mro__[1:-1]:  # what a base has may be given to this class later
            for key in self.dict_of(base).keys() - self.dict_of(kind).keys():
                if not key.startswith("__") and not is_closed_module(base.__module__):
                    self._on_slot(
                        AttributeSlot(Guard, self.dict_of(kind), key, MISSING, f"{kind.__name__}.{key}"),
                        False,
                    )
        todo += [(base, base.__name__, ()) for base in kind.__bases__]

    def _function(self, value: Any, todo: list[tuple[Any, str, Way]]) -> None:
        self._known[id(value)] = value
        if isinstance(value, types.MethodType):
            todo += [(value.__self__, "self", ()), (value.__func__, value.__func__.__name__, ())]
            return
        if isinstance(value, functools._lru_cache_wrapper):
            todo.append((value.__wrapped__, "cached", ()))
            return
        if is_user_code(value.__code__):
            self._on_function(value)
            for key, part in value.__dict__.items():
                name = f"{value.__name__}.{key}"
                self._on_slot(AttributeSlot(Guard, value.__dict__, key, part, name), False)
                todo.append((part, name, ()))
        for part in (*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()):
            todo.append((part, f"{value.__name__}'s default", ()))
        for cell in value.__closure__ or ():
            todo.append((cell_value(cell), "closure", ()))


def functions_of(attribute: Any) -> list[Any]:
    """The functions that an attribute of a class runs when it is called, asked for or set."""
    if isinstance(attribute, types.FunctionType):
        return [attribute]
    if isinstance(attribute, property):
        return [each for each in (attribute.fget, attribute.fset) if each is not None]
    if isinstance(attribute, functools.cached_property):
        return [attribute.func]
    return [attribute.__func__] if isinstance(attribute, (staticmethod, classmethod)) else []


def _is_called_unnamed(kind: type, name: str) -> bool:
    """Whether a method is called by what names it nowhere: the interpreter, or a library that has a base."""
    if name.startswith("__"):
        return True
    return any(
        name in _names_of_library(base) for base in kind.__mro__[1:-1] if is_closed_module(base.__module__)
    )


@functools.lru_cache(1024)
def _names_of_library(base: type) -> frozenset[str]:
    """What a class of a library has, and what its methods ask for: who derives from it may give another."""
    names = set(vars(base))
    for part in vars(base).values():
        for function in functions_of(part):
            inner = in_own_mode(function)
            if isinstance(inner, types.FunctionType):
                names |= reads_of(inner.__code__).names
    return frozenset(names)


#: Methods that show, copy or store an object, which is not what a captured function asks.
_FOR_PEOPLE = frozenset(("__repr__", "__str__", "__del__", "__getstate__", "__setstate__", "__reduce__"))
_DESCRIPTORS = (property, functools.cached_property, staticmethod, classmethod)
_OF_SLOTS = (types.MemberDescriptorType, types.GetSetDescriptorType)
_CALLABLES = (types.FunctionType, types.MethodType, functools._lru_cache_wrapper)
_CONTAINERS = (list, tuple, dict, Set, ValuesView, collections.deque, types.MappingProxyType)


def _items(container: Any, name: str, way: Way) -> list[tuple[Any, str, Way]]:
    """The items of a container, the way to them through it."""
    found: list[tuple[Any, str, Way]] = []
    if isinstance(container, (dict, types.MappingProxyType)):
        pairs = list(container.items())[:MOST_ITEMS]
        found += [(key, name, ()) for key, _ in pairs if type(key) not in PLAIN]
    else:
        pairs = list(enumerate(container))[:MOST_ITEMS]
    keyed = isinstance(container, (dict, types.MappingProxyType))
    indexed = isinstance(container, (list, tuple, collections.deque))
    for key, part in pairs:
        if type(part) in PLAIN:
            continue
        text = f"{name}[{key!r}]"
        if not keyed and not indexed:
            found.append((part, text, way))
            continue
        kind = Guard if keyed else ItemGuard
        found.append((part, text, (*way, kind(container, key, part, SameSpec(f"`{text}`", part)))))
    return found


def _is_data_descriptor(value: Any) -> bool:
    """Whether an attribute of a class counts before the instance's of that name."""
    kind = type(value)
    return hasattr(kind, "__set__") or hasattr(kind, "__delete__")

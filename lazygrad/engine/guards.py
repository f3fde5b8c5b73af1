"""What a captured function reads besides its arguments: closure cells, globals, attributes of these.

The names come from the bytecode of the function and of the user's functions that run during the capture; the
first time one is met, the values it can see are noted. Every later call compares them. Attribute chains are
taken apart: `self.config.rate` is three keys of three dicts, each compared by identity first, which takes a
tenth of a microsecond.
"""

from __future__ import annotations

import builtins
import functools
import gc
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from ..ir.uop import UOp
from . import tensors
from .bytecode import chains_of, is_user_code, names_of, parameters_of
from .structure import (
    MISSING,
    PLAIN,
    Call,
    HeldSpec,
    PlainSpec,
    SameSpec,
    Spec,
    Watcher,
    fields_of,
    is_instance,
    is_library,
)


class Entry:
    """One name: a key of a dict, with what was found there."""

    __slots__ = ("holder", "key", "spec", "value")

    def __init__(self, holder: Any, key: Any, value: Any, spec: Spec) -> None:
        self.holder, self.key, self.value, self.spec = holder, key, value, spec

    def now(self) -> Any:
        return self.holder.get(self.key, MISSING)


class CellEntry(Entry):
    """A closure cell."""

    __slots__ = ()

    def now(self) -> Any:
        return cell_value(self.holder)


class ItemEntry(Entry):
    """An item of a list or tuple of modules."""

    __slots__ = ()

    def now(self) -> Any:
        return self.holder[self.key] if self.key < len(self.holder) else MISSING


class SlotEntry(Entry):
    """An attribute that is a slot."""

    __slots__ = ()

    def now(self) -> Any:
        return getattr(self.holder, self.key, MISSING)


def cell_value(cell: types.CellType) -> Any:
    """What is in a closure cell."""
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


class Found(NamedTuple):
    """A tensor inside an object that a name leads to, and the entries on the way to it."""

    tensor: Any
    way: tuple[Entry, ...]


class Watch:
    """The values that one capture could see, besides its arguments; `check` compares them with those of now.

    on_tensor  called with each tensor when it is found, before the function uses it
    """

    def __init__(self, on_tensor: Callable[[Any], None]) -> None:
        self.entries: dict[tuple[int, Any], Entry] = {}
        self.names: set[str] = set()
        self._on_tensor = on_tensor
        self._watcher = Watcher()
        self._inside: dict[int, Found] = {}
        self._known: dict[int, Any] = {}  # objects that can be reached, by id
        self._functions: dict[types.CodeType, list[types.FunctionType]] = {}
        self._seen: set[Any] = set()
        self._fast: list[tuple[Any, Any, Any, Entry]] = []
        self._held: list[tuple[Any, Any, Any, Any, Entry]] = []
        self._items: list[tuple[Any, Any, Any, Any, Entry]] = []
        self._rest: list[Entry] = []

    # *** noting

    def function(self, fxn: Any) -> None:
        """Begin with the function that is captured: its cells, globals, and the object it is a method of."""
        owner: Any = MISSING
        while True:
            if isinstance(fxn, functools.partial):
                for value in (*fxn.args, *fxn.keywords.values()):
                    self._look_into(value, type(value).__name__, ())
                fxn = fxn.func
            elif isinstance(fxn, types.MethodType):
                owner, fxn = fxn.__self__, fxn.__func__
            elif isinstance(fxn, types.FunctionType) or not is_instance(fxn):
                break
            else:
                owner, fxn = fxn, getattr(type(fxn), "__call__", None)  # noqa: B004  the function is wanted
        if owner is not MISSING:
            self._look_into(owner, "self", ())
        if isinstance(fxn, types.FunctionType):
            self._reach(fxn)
            if not is_user_code(fxn.__code__):
                return  # a decorator of a library: what it calls is seen when it runs
            bound = dict.fromkeys(parameters_of(fxn.__code__)[:1], owner) if owner is not MISSING else {}
            self._chains(fxn.__code__, fxn.__globals__, [fxn], bound)

    @contextmanager
    def functions_that_run(self) -> Iterator[None]:
        """Within the block, the user's functions that are called in this thread are noted too."""
        outer = sys.getprofile()
        if outer is not None and not isinstance(outer, types.FunctionType):
            yield  # a profiler written in C cannot be shared: only the function itself is looked at
            return

        # what the garbage collector calls runs at any time and is no part of the function
        collectors = {f.__code__ for f in gc.callbacks if isinstance(f, types.FunctionType)}

        def profile(frame: types.FrameType, event: str, arg: Any) -> None:
            if event == "call" and is_user_code(frame.f_code) and frame.f_code not in collectors:
                self._called(frame)
            if outer is not None:
                outer(frame, event, arg)

        sys.setprofile(profile)
        try:
            yield
        finally:
            sys.setprofile(outer)

    def _called(self, frame: types.FrameType) -> None:
        code = frame.f_code
        local = frame.f_locals
        bound = {}
        for name in parameters_of(code):
            value = local.get(name)
            if value is not None and self._known.get(id(value)) is value:
                bound[name] = value
        key = (code, tuple(map(id, bound.values())))
        if key not in self._seen:
            self._seen.add(key)
            self._chains(code, frame.f_globals, self._functions.get(code, ()), bound)

    def _chains(
        self, code: types.CodeType, scope: dict[str, Any], functions: Any, bound: dict[str, Any]
    ) -> None:
        self.names |= names_of(code)
        for chain in chains_of(code):
            if chain.kind == "global":
                if chain.root in scope or not hasattr(builtins, chain.root):
                    self._follow(self._key(scope, chain.root, chain.root), chain.root, chain.attributes)
            elif chain.kind == "free":
                for function in functions:
                    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
                    if chain.root in cells:
                        value = self._cell(cells[chain.root], chain.root)
                        self._follow(value, chain.root, chain.attributes)
            elif chain.root in bound:
                self._follow(bound[chain.root], chain.root, chain.attributes)

    def _follow(self, value: Any, name: str, attributes: tuple[str, ...]) -> None:
        for attribute in attributes:
            if _is_leaf(value):
                return
            name = f"{name}.{attribute}"
            if isinstance(value, types.ModuleType):
                value = self._key(vars(value), attribute, name)
            elif isinstance(value, type):
                value = self._of_class(value, attribute, name)
            else:
                value = self._of_instance(value, attribute, name)
            if value is MISSING:
                return

    def _of_class(self, cls: type, attribute: str, name: str) -> Any:
        for base in cls.__mro__:
            if attribute in vars(base):
                if isinstance(vars(base)[attribute], (property, staticmethod, classmethod)):
                    return MISSING  # what it runs is seen when it runs
                return self._key(vars(base), attribute, name)
        return MISSING

    def _of_instance(self, value: Any, attribute: str, name: str) -> Any:
        held = getattr(value, "__dict__", None)
        if held is not None and attribute in held:
            return self._key(held, attribute, name)
        for base in type(value).__mro__:
            if attribute in vars(base):
                found = vars(base)[attribute]
                if isinstance(found, types.MemberDescriptorType):
                    return self._note(SlotEntry, value, attribute, getattr(value, attribute, MISSING), name)
                if held is not None and not isinstance(found, property):
                    self._key(held, attribute, name)  # it may be given to the instance later
                return self._of_class(type(value), attribute, name)
        return self._key(held, attribute, name) if held is not None else MISSING

    def _key(self, holder: Any, key: str, name: str) -> Any:
        return self._note(Entry, holder, key, holder.get(key, MISSING), name)

    def _cell(self, cell: types.CellType, name: str) -> Any:
        return self._note(CellEntry, cell, "", cell_value(cell), name)

    def _note(self, kind: type[Entry], holder: Any, key: Any, value: Any, name: str) -> Any:
        place = (id(holder), key)
        if place not in self.entries:
            count = len(self._watcher.held)
            self.entries[place] = kind(holder, key, value, self._watcher.describe(value, f"`{name}`"))
            for spec in self._watcher.held[count:]:
                self._on_tensor(spec.tensor)
            self._reach(value)
            self._look_into(value, name, ())
        return self.entries[place].value

    # *** what can be reached

    def _reach(self, value: Any) -> None:
        """Functions: those of the user that can be reached are known by their code; what closures hold."""
        todo = [value]
        while todo:
            each = todo.pop()
            if isinstance(each, types.MethodType):
                self._look_into(each.__self__, "self", ())
                each = each.__func__
            elif isinstance(each, functools.partial):
                for part in (*each.args, *each.keywords.values()):
                    self._look_into(part, type(part).__name__, ())
                each = each.func
            elif is_library(each) and hasattr(each, "fxn"):  # another jit
                each = each.fxn
            if isinstance(each, types.MethodType):
                todo.append(each)
            if not isinstance(each, types.FunctionType) or self._known.get(id(each)) is each:
                continue
            self._known[id(each)] = each
            if is_user_code(each.__code__):
                self._functions.setdefault(each.__code__, []).append(each)
            for cell in each.__closure__ or ():
                todo.append(cell_value(cell))
                self._look_into(todo[-1], "closure", ())

    def _look_into(self, value: Any, name: str, way: tuple[Entry, ...]) -> None:
        """Note the instances below a value, the tensors they hold, the numbers in lazygrad's own layers."""
        todo: list[tuple[Any, str, tuple[Entry, ...]]] = [(value, name, way)]
        while todo and len(self._known) < 50_000:
            each, name, way = todo.pop()
            if isinstance(each, tensors.layer.kind):
                if way and id(each) not in self._inside:
                    self._inside[id(each)] = Found(each, way)
                    self._on_tensor(each)
                continue
            container = isinstance(each, (list, tuple, dict))
            if not (container or is_instance(each)) or self._known.get(id(each)) is each:
                continue
            self._known[id(each)] = each
            if isinstance(each, dict):
                held, parts = each, list(each.items())
            elif container:
                parts, held = list(enumerate(each)), None
            else:
                held, parts = getattr(each, "__dict__", None), list(fields_of(each))
            for key, part in parts[: 1024 if container else None]:
                if type(part) in PLAIN:
                    if is_library(each) and held is not None:
                        spec: Spec = PlainSpec(f"`{name}.{key}`", part)
                        self.entries.setdefault((id(held), key), Entry(held, key, part, spec))
                    continue
                text = f"{name}[{key!r}]" if container else f"{name}.{key}"
                kind = Entry if held is not None and key in held else ItemEntry if container else SlotEntry
                holder = held if kind is Entry else each
                todo.append((part, text, (*way, kind(holder, key, part, SameSpec(f"`{text}`", part)))))

    # *** comparing

    def close(self, is_used: Callable[[Any], bool]) -> None:
        """The capture is done: of the tensors inside objects, those whose memory it used are held.

        How tensors are now is how they must be later.
        """
        for found in self._inside.values():
            if is_used(found.tensor):
                for entry in found.way:
                    self.entries.setdefault((id(entry.holder), entry.key), entry)
                last = found.way[-1]
                held = self.entries[id(last.holder), last.key]
                if isinstance(held.spec, SameSpec):
                    spec = HeldSpec(held.spec.name, found.tensor)
                    self._watcher.held.append(spec)
                    held.spec = spec
        for spec in self._watcher.held:
            spec.hold()
        for entry in self.entries.values():
            if _is_leaf(entry.value) and isinstance(entry.value, (types.ModuleType, type)):
                continue  # lazygrad's, numpy's: nobody replaces them
            if isinstance(entry.spec, HeldSpec) and type(entry) in (Entry, ItemEntry):
                kept = self._held if type(entry) is Entry else self._items
                kept.append((entry.holder, entry.key, entry.spec.tensor, entry.spec.storage, entry))
                continue
            compared = not isinstance(entry.spec, (PlainSpec, SameSpec))
            if compared or type(entry) is not Entry or isinstance(entry.value, (list, dict, set)):
                self._rest.append(entry)
            else:
                self._fast.append((entry.holder, entry.key, entry.value, entry))
        self._on_tensor = lambda tensor: None  # the session of the capture is over
        self._inside.clear()
        self._known.clear()
        self._functions.clear()
        self._seen.clear()

    def binds(self) -> list[UOp]:
        """The bound Variables that names lead to."""
        return self._watcher.binds

    def tensors(self) -> list[Any]:
        """The tensors that names lead to."""
        return [spec.tensor for spec in self._watcher.held]

    def check(self, call: Call) -> None:
        """Raise Changed where something is not as it was."""
        for holder, key, value, entry in self._fast:
            now = holder.get(key, MISSING)
            if now is not value:
                entry.spec.read(now, call)
        for holder, key, tensor, storage, entry in self._held:
            if storage is None or holder.get(key) is not tensor or tensor._storage is not storage:
                entry.spec.read(holder.get(key, MISSING), call)
        for holder, key, tensor, storage, entry in self._items:
            if key >= len(holder) or holder[key] is not tensor or tensor._storage is not storage:
                entry.spec.read(entry.now(), call)
        for entry in self._rest:
            entry.spec.read(entry.now(), call)


def _is_leaf(value: Any) -> bool:
    """Whether a value's attributes are not looked at: numbers, containers, functions, what libraries hold."""
    if isinstance(value, (tensors.layer.kind, list, tuple, dict, set, frozenset, types.FunctionType)):
        return True
    if type(value) in PLAIN or isinstance(value, (types.BuiltinFunctionType, types.MethodType)):
        return True
    if isinstance(value, (types.ModuleType, type)):
        name = value.__name__ if isinstance(value, types.ModuleType) else value.__module__
        return is_closed_module(name)
    return False


@functools.lru_cache(4096)
def is_closed_module(name: str) -> bool:
    """Whether a module is lazygrad's, the standard library's or numpy's: its contents do not change."""
    first = name.partition(".")[0]
    return first in (
        "numpy",
        "llvmlite",
        __package__.partition(".")[0],
    ) or first in sys.stdlib_module_names - {"__main__"}

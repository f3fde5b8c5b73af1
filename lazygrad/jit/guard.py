"""What each call compares of what a captured function read besides its arguments, in little time.

A guard is a name and what was found there. Most are a key of a dict whose value is the same object as before,
a twentieth of a microsecond.
"""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Any, NamedTuple

from .python_values import MISSING
from .specs import Call, PlainSpec, SameSpec, Spec
from .tensor_specs import CapturedSpec


class Guard:
    """One name: a key of a dict, with what was found there."""

    __slots__ = ("holder", "key", "spec", "value")

    def __init__(self, holder: Any, key: Any, value: Any, spec: Spec) -> None:
        self.holder, self.key, self.value, self.spec = holder, key, value, spec

    def now(self) -> Any:
        return self.holder.get(self.key, MISSING)


class CellGuard(Guard):
    """A closure cell."""

    __slots__ = ()

    def now(self) -> Any:
        return cell_value(self.holder)


class ItemGuard(Guard):
    """An item of a list or tuple of modules."""

    __slots__ = ()

    def now(self) -> Any:
        return self.holder[self.key] if self.key < len(self.holder) else MISSING


class SlotGuard(Guard):
    """An attribute that is a slot."""

    __slots__ = ()

    def now(self) -> Any:
        return getattr(self.holder, self.key, MISSING)


class KeysGuard(Guard):
    """Which attributes an object has: those that all of them were asked of."""

    __slots__ = ()

    def now(self) -> Any:
        return tuple(self.holder)


class SizeGuard(Guard):
    """How many attributes an object has, where each of them is compared."""

    __slots__ = ()

    def now(self) -> Any:
        return len(self.holder)


def cell_value(cell: types.CellType) -> Any:
    """What is in a closure cell."""
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


class AttributeSlot(NamedTuple):
    """Where an attribute is, what it was when it was met, and what errors call it."""

    kind: type[Guard]
    holder: Any
    key: Any
    value: Any
    name: str


class Compared:
    """The guards, sorted once; `check` raises Changed where something is not as it was.

    Most say that a place holds the very same object: these are compared in one short loop. Where it finds
    another object, each of them is looked at alone.

    gradients  whether it counts which tensors require one: the function makes gradients, or asks
    """

    def __init__(self, guards: Iterable[Guard], gradients: bool) -> None:
        guards = list(guards)
        #: lists whose items are compared with them
        whole = {id(guard.value) for guard in guards if getattr(guard.spec, "same", None) is not None}
        self._same: list[Guard] = []
        self._rest: list[Guard] = []
        for guard in guards:
            if type(guard) is not ItemGuard or id(guard.holder) not in whole:
                (self._same if _is_identity(guard) else self._rest).append(guard)
        sizes = [guard for guard in self._same if type(guard) is SizeGuard]
        self._sizes = [(guard.holder, guard.value) for guard in sizes]
        places = [guard for guard in self._same if type(guard) is not SizeGuard]
        held = [guard for guard in places if guard.value is not MISSING]
        self._found = [(guard.holder, guard.key, guard.value) for guard in held]
        self._missing = [(guard.holder, guard.key) for guard in places if guard.value is MISSING]
        specs = [guard.spec for guard in held if isinstance(guard.spec, CapturedSpec)]
        self._tensors = [(spec.tensor, spec.storage, spec.grad) for spec in specs]
        self._gradients = gradients

    def check(self, call: Call) -> None:
        """Raise Changed where something is not as it was."""
        if not self._is_same():
            for guard in self._same:
                now, spec = guard.now(), guard.spec
                if now is not guard.value or (isinstance(spec, CapturedSpec) and not self._is_unmoved(spec)):
                    spec.read(now, call)
        for guard in self._rest:
            guard.spec.read(guard.now(), call)

    def _is_same(self) -> bool:
        try:
            for holder, key, value in self._found:
                if holder[key] is not value:
                    return False
        except LookupError:
            return False
        for holder, key in self._missing:
            if key in holder:
                return False
        for holder, size in self._sizes:
            if len(holder) != size:
                return False
        if self._gradients:
            for tensor, storage, required in self._tensors:
                if tensor._storage is not storage or tensor._requires_grad is not required:
                    return False
        else:
            for tensor, storage, _ in self._tensors:
                if tensor._storage is not storage:
                    return False
        return True

    def _is_unmoved(self, spec: CapturedSpec) -> bool:
        tensor = spec.tensor
        return tensor._storage is spec.storage and (not self._gradients or tensor._requires_grad is spec.grad)


def _is_identity(guard: Guard) -> bool:
    """Whether it is enough that a place has the same object, and no method of the user's says which."""
    if type(guard) is SizeGuard:
        return True
    if type(guard) not in (Guard, ItemGuard) or type(guard.holder) not in (dict, list, tuple):
        return False
    spec = guard.spec
    if isinstance(spec, CapturedSpec):
        return spec.storage is not None
    return isinstance(spec, (PlainSpec, SameSpec)) and not isinstance(guard.value, (list, dict, set))

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

    gradients  whether it counts which tensors require one: the function makes gradients, or asks
    """

    def __init__(self, guards: Iterable[Guard], gradients: bool) -> None:
        self._fast: list[tuple[Any, Any, Any, Guard]] = []
        self._captured: list[tuple[Any, Any, Any, Any, Guard]] = []
        self._items: list[tuple[Any, Any, Any, Any, Guard]] = []
        self._grads: list[tuple[Any, Any, Guard]] = []
        self._rest: list[Guard] = []
        for guard in guards:
            spec = guard.spec
            if (
                isinstance(spec, CapturedSpec)
                and type(guard) in (Guard, ItemGuard)
                and spec.storage is not None
            ):
                kept = self._captured if type(guard) is Guard else self._items
                kept.append((guard.holder, guard.key, spec.tensor, spec.storage, guard))
                if gradients:
                    self._grads.append((spec.tensor, spec.grad, guard))
                continue
            compared = not isinstance(spec, (PlainSpec, SameSpec))
            if compared or type(guard) is not Guard or isinstance(guard.value, (list, dict, set)):
                self._rest.append(guard)
            else:
                self._fast.append((guard.holder, guard.key, guard.value, guard))

    def check(self, call: Call) -> None:
        """Raise Changed where something is not as it was."""
        for holder, key, value, guard in self._fast:
            now = holder.get(key, MISSING)
            if now is not value:
                guard.spec.read(now, call)
        for holder, key, tensor, storage, guard in self._captured:
            if holder.get(key) is not tensor or tensor._storage is not storage:
                guard.spec.read(holder.get(key, MISSING), call)
        for holder, key, tensor, storage, guard in self._items:
            if key >= len(holder) or holder[key] is not tensor or tensor._storage is not storage:
                guard.spec.read(guard.now(), call)
        for tensor, grad, guard in self._grads:
            if tensor._requires_grad is not grad:
                guard.spec.read(guard.now(), call)
        for guard in self._rest:
            guard.spec.read(guard.now(), call)

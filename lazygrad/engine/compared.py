"""What each call compares: the entries of a capture (reach.py), by how fast that can be done.

Most are a key of a dict whose value is the same object as before, a twentieth of a microsecond.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .reach import Entry, ItemEntry
from .structure import Call, HeldSpec, PlainSpec, SameSpec
from .values import MISSING


class Compared:
    """The entries, sorted once; `check` raises Changed where something is not as it was.

    gradients  whether it counts which tensors require one: the function makes gradients, or asks
    """

    def __init__(self, entries: Iterable[Entry], gradients: bool) -> None:
        self._fast: list[tuple[Any, Any, Any, Entry]] = []
        self._held: list[tuple[Any, Any, Any, Any, Entry]] = []
        self._items: list[tuple[Any, Any, Any, Any, Entry]] = []
        self._grads: list[tuple[Any, Any, Entry]] = []
        self._rest: list[Entry] = []
        for entry in entries:
            spec = entry.spec
            if isinstance(spec, HeldSpec) and type(entry) in (Entry, ItemEntry) and spec.storage is not None:
                kept = self._held if type(entry) is Entry else self._items
                kept.append((entry.holder, entry.key, spec.tensor, spec.storage, entry))
                if gradients:
                    self._grads.append((spec.tensor, spec.grad, entry))
                continue
            compared = not isinstance(spec, (PlainSpec, SameSpec))
            if compared or type(entry) is not Entry or isinstance(entry.value, (list, dict, set)):
                self._rest.append(entry)
            else:
                self._fast.append((entry.holder, entry.key, entry.value, entry))

    def check(self, call: Call) -> None:
        """Raise Changed where something is not as it was."""
        for holder, key, value, entry in self._fast:
            now = holder.get(key, MISSING)
            if now is not value:
                entry.spec.read(now, call)
        for holder, key, tensor, storage, entry in self._held:
            if holder.get(key) is not tensor or tensor._storage is not storage:
                entry.spec.read(holder.get(key, MISSING), call)
        for holder, key, tensor, storage, entry in self._items:
            if key >= len(holder) or holder[key] is not tensor or tensor._storage is not storage:
                entry.spec.read(entry.now(), call)
        for tensor, grad, entry in self._grads:
            if tensor._requires_grad is not grad:
                entry.spec.read(entry.now(), call)
        for entry in self._rest:
            entry.spec.read(entry.now(), call)

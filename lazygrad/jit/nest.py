"""What a function returns, or takes: tensors nested in containers, built anew with others."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from ..tensor import Tensor
from .python_values import fields_of, is_instance

#: Puts tensors in the places of those that were returned.
Build = Callable[[Sequence[Tensor]], Any]


class Nest:
    """A value: its `tensors`, each once, and `build`, which puts others in their places.

    existed      whether a tensor is older than the call: an object that holds only such stays as it is
    has_objects  whether there are tensors inside of objects that are no containers
    """

    def __init__(self, value: Any, existed: Callable[[Tensor], bool]) -> None:
        self.tensors: list[Tensor] = []
        self.has_objects = False
        self._met = 0  # tensors, as often as they were met
        self._existed = existed
        self._open: set[int] = set()
        self.build: Build = self._part(value)

    def _part(self, value: Any) -> Build:
        if isinstance(value, Tensor):
            self._met += 1
            number = next((n for n, t in enumerate(self.tensors) if t is value), len(self.tensors))
            if number == len(self.tensors):
                self.tensors.append(value)
            return lambda found: found[number]
        if id(value) in self._open:
            return lambda found: value
        self._open.add(id(value))
        try:
            return self._inner(value)
        finally:
            self._open.discard(id(value))

    def _inner(self, value: Any) -> Build:
        kind = type(value)
        if isinstance(value, dict):
            pairs = [(key, self._part(part)) for key, part in value.items()]
            if kind is dict:
                return lambda found: {key: part(found) for key, part in pairs}
            return lambda found: _refilled(value, {key: part(found) for key, part in pairs})
        if isinstance(value, (list, tuple)):
            parts = [self._part(part) for part in value]
            if hasattr(value, "_fields"):
                return lambda found: kind(*[part(found) for part in parts])
            return lambda found: kind([part(found) for part in parts])
        if isinstance(value, set):
            return lambda found: set(value)
        if is_instance(value):
            before, met = len(self.tensors), self._met
            fields = [(name, self._part(part)) for name, part in fields_of(value)]
            self.has_objects |= self._met > met
            if not all(map(self._existed, self.tensors[before:])):
                return lambda found: _with_fields(value, {name: part(found) for name, part in fields})
        return lambda found: value


def _refilled(value: dict[Any, Any], items: dict[Any, Any]) -> Any:
    made = copy.copy(value)
    made.update(items)
    return made


def _with_fields(value: Any, fields: dict[str, Any]) -> Any:
    made = copy.copy(value)
    for name, part in fields.items():
        object.__setattr__(made, name, part)  # a frozen dataclass too
    return made

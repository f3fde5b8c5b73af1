"""What a function returns, or takes: tensors nested in containers, built anew with others."""

from __future__ import annotations

import collections
import copy
from collections.abc import Callable, Sequence
from typing import Any

from ..tensor import Tensor
from .python_values import PLAIN, fields_of, is_instance

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
        #: what was met and is not looked into, in which nothing is put
        self.opaque: list[Any] = []
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
        build = self._container(value)
        if not is_instance(value):
            if build is None and type(value) not in PLAIN:
                self.opaque.append(value)
            return build or (lambda found: value)
        before, met = len(self.tensors), self._met
        fields = [(name, self._part(part)) for name, part in fields_of(value)]
        if build is not None:
            items = build
            return lambda found: _with_fields(items(found), fields, found)
        self.has_objects |= self._met > met
        if all(map(self._existed, self.tensors[before:])):
            return lambda found: value
        return lambda found: _with_fields(copy.copy(value), fields, found)

    def _container(self, value: Any) -> Build | None:
        """Makes a container of the same kind, with other items; None of what is none."""
        kind = type(value)
        if isinstance(value, dict):
            pairs = [(key, self._part(part)) for key, part in value.items()]
            if kind is dict:
                return lambda found: {key: part(found) for key, part in pairs}
            return lambda found: _refilled(value, {key: part(found) for key, part in pairs})
        if not isinstance(value, (list, tuple, set, frozenset, collections.deque)):
            return None
        parts = [self._part(part) for part in value]
        if kind is list:
            return lambda found: [part(found) for part in parts]
        if isinstance(value, tuple):
            return lambda found: tuple.__new__(kind, [part(found) for part in parts])
        if isinstance(value, frozenset):
            return lambda found: frozenset.__new__(kind, [part(found) for part in parts])
        return lambda found: _refilled(value, [part(found) for part in parts])


def _refilled(value: Any, items: Any) -> Any:
    """A copy with other items. What is no item (the length of a deque, what a defaultdict makes) stays."""
    made = copy.copy(value)
    if isinstance(made, list):
        made[:] = items
        return made
    if not isinstance(made, dict):
        made.clear()
    (made.extend if isinstance(made, collections.deque) else made.update)(items)
    return made


def _with_fields(made: Any, fields: list[tuple[str, Build]], found: Sequence[Tensor]) -> Any:
    for name, part in fields:
        object.__setattr__(made, name, part(found))  # of a frozen dataclass too
    return made

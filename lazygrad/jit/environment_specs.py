"""What a function finds outside of its arguments, as specs: tensors are held, all else is compared."""

from __future__ import annotations

import collections
import types
from collections.abc import Set, ValuesView
from typing import Any

from ..tensor import Tensor
from .describer import Describer
from .errors import Changed, JitError
from .python_values import (
    MAX_ITEMS,
    fields_of,
    is_array,
    is_closed_inside,
    is_instance,
    is_library,
    kind_text,
)
from .specs import ArraySpec, Call, ObjectSpec, SameSpec, Spec
from .tensor_specs import CapturedSpec

#: Larger containers are not compared: each call would spend more than some 50 us on them.
MAX_COMPARED_ITEMS = 4096
#: The same for the bytes of arrays.
MAX_COMPARED_BYTES = 1 << 20

_INSTEAD = "more than each call would compare; make it a Tensor, or pass what is needed of it as an argument"


class LengthSpec(Spec):
    """A large container that the function may never look at: the same object, of the same length."""

    __slots__ = ("length", "value")

    def __init__(self, name: str, value: Any) -> None:
        super().__init__(name)
        self.value, self.length = value, len(value)

    def read(self, value: Any, call: Call) -> None:
        if value is not self.value or len(value) != self.length:
            raise Changed(self.name, f"{self.length} items", kind_text(value))


class EnvironmentDescriber(Describer):
    """Makes specs of what was found besides the arguments.

    certain  whether the function surely reads what is described; if not, what is too large is only measured
    """

    def __init__(self) -> None:
        super().__init__()
        self.captured: list[CapturedSpec] = []
        self.certain = True
        self._items = 0  # described below one name

    def describe(self, value: Any, name: str) -> Spec:
        if not self._open:
            self._items = 0
        if is_array(value) and value.nbytes > MAX_COMPARED_BYTES:
            return self._too_large(value, f"{name} is a numpy array of {value.size} elements", name)
        if is_array(value):
            return ArraySpec(name, value)
        return super().describe(value, name)

    def _inner(self, value: Any, name: str) -> Spec:
        if isinstance(value, _CONTAINERS):
            self._items += len(value)
            if self._items > MAX_COMPARED_ITEMS and len(value) > MAX_ITEMS:
                return self._too_large(value, f"{name} has {len(value)} items", name)
        try:
            return super()._inner(value, name)
        except JitError:
            if self.certain:
                raise
            return SameSpec(name, value)

    def _too_large(self, value: Any, what: str, name: str) -> Spec:
        if self.certain:
            raise JitError(f"{what}, {_INSTEAD}")
        return SameSpec(name, value) if is_array(value) else LengthSpec(name, value)

    def _instance(self, value: Any, name: str) -> Spec:
        """The attributes of the user's objects are names of their own; a library's are all compared."""
        if is_instance(value) and is_closed_inside(type(value)) and not is_library(value):
            fields = {key: self.describe(part, f"{name}.{key}") for key, part in fields_of(value)}
            return IdenticalSpec(name, value, fields)
        return SameSpec(name, value)

    def _tensor(self, value: Tensor, name: str) -> Spec:
        spec = CapturedSpec(name, value)
        self.captured.append(spec)
        return spec


class IdenticalSpec(ObjectSpec):
    """An object of a library: the same one, and all that it holds as it was."""

    __slots__ = ("value",)

    def __init__(self, name: str, value: Any, fields: dict[str, Spec]) -> None:
        super().__init__(name, value, fields)
        self.value = value

    def read(self, value: Any, call: Call) -> None:
        if value is not self.value:
            raise Changed(self.name, kind_text(self.value), f"another {type(value).__name__}")
        super().read(value, call)


_CONTAINERS = (list, tuple, dict, Set, ValuesView, types.MappingProxyType, collections.deque)

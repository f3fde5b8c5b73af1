"""What Python values were in a capture, a class for each kind: `spec.read(value, call)` compares one of now.

Tensors are gathered in `call` (tensor_specs.py), everything else must be as it was. A `Describer` makes the
specs, of arguments and of what a function reads besides them.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable
from operator import is_
from typing import Any

from ..device import Buffer
from ..ir.index import sint, substitute
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..tensor import Tensor
from .errors import Changed, JitError, Mismatch
from .python_values import (
    MISSING,
    Exactly,
    bytes_and_form,
    is_array,
    is_closed_inside,
    is_fixed,
    kind_text,
    plain_part,
    same_fixed,
    same_plain,
)


class Call:
    """What the arguments of one call hold: tensors and their Buffers, values of Variables by name."""

    __slots__ = ("binds", "buffers", "mismatch", "tensors")

    def __init__(self) -> None:
        self.mismatch: Mismatch | None = None  # the first; what else has changed counts more
        self.tensors: list[Tensor] = []
        self.buffers: list[Buffer] = []
        self.binds: dict[str, int] = {}


class Spec:
    """What one value was. `read` raises Changed where it is no longer so."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def read(self, value: Any, call: Call) -> None:
        raise NotImplementedError

    def members(self) -> list[Spec]:
        """The specs of what lies inside."""
        return []


class BoundSpec(Spec):
    """A Variable with a value: the value is an integer of the kernels, and may change."""

    __slots__ = ("variable",)

    def __init__(self, name: str, bind: UOp) -> None:
        super().__init__(name)
        self.variable = bind.src[0]

    def read(self, value: Any, call: Call) -> None:
        if not isinstance(value, UOp) or value.op is not Ops.BIND or value.src[0] is not self.variable:
            raise Changed(self.name, self.variable.arg, value)
        note_bind(call, value, self.name)


class PlainSpec(Spec):
    """A number, a text, None: part of what was captured."""

    __slots__ = ("value",)

    def __init__(self, name: str, value: Any) -> None:
        super().__init__(name)
        self.value = value

    def read(self, value: Any, call: Call) -> None:
        if value is not self.value and not same_plain(value, self.value):
            raise Changed(self.name, self.value, value)


class SameSpec(Spec):
    """Anything else: it must be the very same object."""

    __slots__ = ("value",)

    def __init__(self, name: str, value: Any) -> None:
        super().__init__(name)
        self.value = value

    def read(self, value: Any, call: Call) -> None:
        known = self.value
        if value is known:
            return
        if isinstance(known, types.MethodType) and isinstance(value, types.MethodType):
            if known.__func__ is value.__func__ and known.__self__ is value.__self__:
                return
        elif type(value) is type(known) and is_fixed(known) and same_fixed(value, known):
            return
        raise Changed(self.name, kind_text(known), kind_text(value))


class ArraySpec(Spec):
    """A numpy array, by its contents."""

    __slots__ = ("content",)

    def __init__(self, name: str, value: Any) -> None:
        super().__init__(name)
        self.content = bytes_and_form(value)

    def read(self, value: Any, call: Call) -> None:
        if not is_array(value) or bytes_and_form(value) != self.content:
            raise Changed(self.name, "an array of other values", kind_text(value))


class ManySpec(Spec):
    """Many numbers and texts, in a list, a tuple, a deque or a set."""

    __slots__ = ("items", "kind")

    def __init__(self, name: str, value: Any) -> None:
        super().__init__(name)
        self.kind, self.items = type(value), Exactly(value)

    def read(self, value: Any, call: Call) -> None:
        if type(value) is not self.kind:
            raise Changed(self.name, self.kind.__name__, kind_text(value))
        if not self.items.fits(list(value)):
            raise Changed(self.name, f"{len(self.items.items)} items", f"{len(value)} others")


class ManyPairsSpec(Spec):
    """A dict of many numbers and texts."""

    __slots__ = ("keys", "kind", "values")

    def __init__(self, name: str, value: Any) -> None:
        super().__init__(name)
        self.kind, self.keys, self.values = type(value), Exactly(value), Exactly(value.values())

    def read(self, value: Any, call: Call) -> None:
        if type(value) is not self.kind:
            raise Changed(self.name, self.kind.__name__, kind_text(value))
        if not self.keys.fits(list(value)):
            raise Changed(self.name, f"{len(self.keys.items)} keys", f"{len(value)} others")
        if not self.values.fits(list(value.values())):
            raise Changed(self.name, f"{len(self.values.items)} values", "others")


class QueriedSpec(Spec):
    """An object that is the same and may hold something else: a reference, a context variable, a partial.

    ask  says what it holds now
    """

    __slots__ = ("ask", "holds", "value")

    def __init__(self, name: str, value: Any, ask: Callable[[Any], Any], holds: Spec) -> None:
        super().__init__(name)
        self.value, self.ask, self.holds = value, ask, holds

    def read(self, value: Any, call: Call) -> None:
        if value is not self.value:
            raise Changed(self.name, kind_text(self.value), kind_text(value))
        self.holds.read(self.ask(value), call)

    def members(self) -> list[Spec]:
        return [self.holds]


class SequenceSpec(Spec):
    """A list, a tuple, or what else gives its items in an order: a deque, a set, the view of a dict."""

    __slots__ = ("items", "kind", "same")

    def __init__(self, name: str, kind: Any, items: list[Spec]) -> None:
        super().__init__(name)
        self.kind, self.items = kind, items
        #: the items, where it is enough that they are the same objects
        known = [item.value for item in items if isinstance(item, (PlainSpec, SameSpec))]
        self.same = known if len(known) == len(items) else None

    def read(self, value: Any, call: Call) -> None:
        if type(value) is not self.kind:
            raise Changed(self.name, self.kind.__name__, kind_text(value))
        if len(value) != len(self.items):
            raise Changed(self.name, f"{len(self.items)} items", f"{len(value)} items")
        if self.same is not None and all(map(is_, value, self.same)):
            return
        for spec, item in zip(self.items, value, strict=True):
            spec.read(item, call)

    def members(self) -> list[Spec]:
        return self.items


class DictSpec(Spec):
    """A dict: the same keys in the same order."""

    __slots__ = ("_keys", "items", "keys", "kind")

    def __init__(self, name: str, kind: Any, keys: list[Any], items: list[Spec]) -> None:
        super().__init__(name)
        self.kind, self.keys, self.items = kind, keys, items
        self._keys = Exactly(keys)

    def read(self, value: Any, call: Call) -> None:
        if type(value) is not self.kind:
            raise Changed(self.name, self.kind.__name__, kind_text(value))
        if not self._keys.fits(list(value)):
            raise Changed(self.name, f"the keys {self.keys}", f"the keys {list(value)}")
        for spec, item in zip(self.items, value.values(), strict=True):
            spec.read(item, call)

    def members(self) -> list[Spec]:
        return self.items


class ObjectSpec(Spec):
    """An instance of a plain class or a dataclass: what it holds that matters.

    whole  all of it matters: a dataclass, or one of lazygrad's own layers
    plain  the number or text that it is besides, if its class is derived from theirs
    """

    __slots__ = ("fields", "keys", "kind", "names", "plain", "whole")

    def __init__(self, name: str, value: Any, fields: dict[str, Spec]) -> None:
        super().__init__(name)
        self.kind, self.fields = type(value), fields
        self.whole = dataclasses.is_dataclass(self.kind) or is_closed_inside(self.kind)
        self.plain = plain_part(value)
        self.keys = list(getattr(value, "__dict__", ()))
        #: the attributes that the function may ask for; None: all
        self.names: set[str] | None = None

    def read(self, value: Any, call: Call) -> None:
        if type(value) is not self.kind:
            raise Changed(self.name, self.kind.__name__, kind_text(value))
        if self.plain is not None and not same_plain(plain_part(value), self.plain):
            raise Changed(self.name, self.plain, plain_part(value))
        for name, spec in self.fields.items():
            spec.read(getattr(value, name, MISSING), call)
        if list(getattr(value, "__dict__", ())) != self.keys:
            for name in vars(value):
                if name not in self.keys and (self.names is None or name in self.names):
                    raise Changed(f"{self.name}.{name}", MISSING, kind_text(vars(value)[name]))

    def members(self) -> list[Spec]:
        return list(self.fields.values())


class DerivedSpec(Spec):
    """An instance of a class that is derived from a container, and holds attributes besides its items."""

    __slots__ = ("fields", "items")

    def __init__(self, name: str, items: Spec, fields: ObjectSpec) -> None:
        super().__init__(name)
        self.items, self.fields = items, fields

    def read(self, value: Any, call: Call) -> None:
        self.items.read(value, call)
        self.fields.read(value, call)

    def members(self) -> list[Spec]:
        return [self.items, self.fields]


# *** Variables


def binds_in(shape: tuple[sint, ...]) -> list[UOp]:
    """The bound Variables in a shape."""
    found: dict[UOp, None] = {}
    for size in shape:
        if isinstance(size, UOp):
            found.update((n, None) for n in size.toposort() if n.op is Ops.BIND)
    return list(found)


def unbound(shape: tuple[sint, ...]) -> tuple[sint, ...]:
    """A shape with its Variables free, whatever their values are."""
    mapping = {bind: bind.src[0] for bind in binds_in(shape)}
    return tuple(substitute([s], mapping)[s] if isinstance(s, UOp) else s for s in shape)


def note_bind(call: Call, bind: UOp, name: str) -> None:
    """A Variable has one value in a call."""
    variable, value = bind.unbind()
    if call.binds.setdefault(variable.arg[0], value) != value:
        raise JitError(
            f"{name}: Variable {variable.arg[0]} is bound to {value}, and to {call.binds[variable.arg[0]]} "
            "elsewhere in this call; a captured call takes one value of each Variable"
        )

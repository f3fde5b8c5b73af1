"""What a call is made of: arguments in containers, dataclasses, modules, compared with those of the capture.

`describe` makes a tree of specs from the values of the capture. `spec.read(value, call)` compares a value of
a later call: tensors are gathered in `call`, everything else must be as it was. The same specs guard what a
function read besides its arguments (guards.py); there a tensor must be the very one it was.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
import types
from collections.abc import Callable, Set, ValuesView
from typing import Any

from ..device import Buffer
from ..dtype import DType
from ..ir.index import sint, substitute
from ..ir.ops import Ops
from ..ir.uop import UOp
from . import tensors
from .capture import Changed, JitError, Mismatch
from .values import (
    MAX_ITEMS,
    MISSING,
    PLAIN,
    bytes_and_form,
    fields_of,
    how_to_ask,
    is_array,
    is_closed_inside,
    is_fixed,
    is_instance,
    is_true,
    kind_text,
    same_plain,
    why_not_compared,
)


class Call:
    """What the arguments of one call hold: tensors and their Buffers, values of Variables by name."""

    __slots__ = ("binds", "buffers", "mismatch", "tensors")

    def __init__(self) -> None:
        self.mismatch: Mismatch | None = None  # the first; what else has changed counts more
        self.tensors: list[Any] = []
        self.buffers: list[Buffer] = []
        self.binds: dict[str, int] = {}


class Spec:
    """What one value was. `read` raises Changed where it is no longer so."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def read(self, value: Any, call: Call) -> None:
        raise NotImplementedError

    def parts(self) -> list[Spec]:
        """The specs of what lies inside."""
        return []


class TensorSpec(Spec):
    """A tensor argument: its memory is replaced in every call.

    first  the number of the same tensor, where it was met before     own  its own number
    """

    __slots__ = ("device", "dtype", "first", "grad", "number", "shape", "size", "symbolic", "written")

    def __init__(self, name: str, number: int, first: int | None) -> None:
        super().__init__(name)
        self.number, self.first = number, first
        self.shape: tuple[sint, ...] = ()
        self.symbolic = False
        self.dtype: DType
        self.device, self.size, self.grad, self.written = "", 0, False, False

    def read(self, value: Any, call: Call) -> None:
        kind: Any = tensors.layer.kind
        if not isinstance(value, kind):
            raise Changed(self.name, "a Tensor", kind_text(value))
        if self.first is not None:
            if call.tensors[self.first] is not value:
                raise Changed(self.name, "the tensor of another argument", "one of its own")
            return
        call.tensors.append(value)
        try:
            call.buffers.append(tensors.layer.argument(value, self))
        except Mismatch as mismatch:
            call.mismatch = call.mismatch or mismatch
            return
        if self.symbolic:
            for bind in binds_in(value.shape):
                note_bind(call, bind, self.name)


class HeldSpec(Spec):
    """A tensor that was found outside: it must be the same tensor, in the same memory."""

    __slots__ = ("grad", "node", "storage", "tensor")

    def __init__(self, name: str, tensor: Any) -> None:
        super().__init__(name)
        self.tensor, self.storage, self.node, self.grad = tensor, None, None, False

    def hold(self) -> None:
        """What it is when the capture is done counts."""
        self.storage = tensors.layer.storage(self.tensor)
        self.grad = self.tensor._requires_grad
        self.node = None if self.storage is not None else self.tensor.uop

    def read(self, value: Any, call: Call) -> None:
        kind: Any = tensors.layer.kind
        if isinstance(value, kind) and value._requires_grad is not self.grad:
            raise Changed(f"{self.name}.requires_grad", self.grad, value._requires_grad)
        if value is self.tensor and value._storage is self.storage:
            if self.storage is not None or value._uop is self.node or value.uop is self.node:
                return
        if isinstance(value, tensors.layer.kind) and self.storage is not None:
            same = tensors.layer.storage(value) is self.storage
            if same and value.uop is self.tensor.uop:
                return
        raise Changed(
            self.name, "one tensor", "another" if isinstance(value, tensors.layer.kind) else kind_text(value)
        )


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
        elif type(value) is type(known) and is_fixed(known) and is_true(value == known):
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
    """Many numbers and texts, in a list, a tuple or a deque.

    Equality of lists looks at the items' identity first: a nanosecond for each that is the same object. What
    it takes for equal and we do not, 1 and 1.0 or 0.0 and -0.0, is looked at besides.
    """

    __slots__ = ("items", "kind", "kinds", "zeros")

    def __init__(self, name: str, value: Any) -> None:
        super().__init__(name)
        self.kind, self.items = type(value), list(value)
        self.kinds = list(map(type, self.items))
        self.zeros = [n for n, item in enumerate(self.items) if type(item) is float and item == 0]

    def read(self, value: Any, call: Call) -> None:
        if type(value) is not self.kind:
            raise Changed(self.name, self.kind.__name__, kind_text(value))
        now = list(value)
        same = now == self.items and list(map(type, now)) == self.kinds
        if not same or any(not same_plain(now[n], self.items[n]) for n in self.zeros):
            raise Changed(self.name, f"{len(self.items)} items", f"{len(now)} others")


class ManyPairsSpec(Spec):
    """A dict of many numbers and texts."""

    __slots__ = ("keys", "kind", "values")

    def __init__(self, name: str, value: Any) -> None:
        super().__init__(name)
        self.kind, self.keys, self.values = type(value), list(value), ManySpec(name, list(value.values()))

    def read(self, value: Any, call: Call) -> None:
        if type(value) is not self.kind:
            raise Changed(self.name, self.kind.__name__, kind_text(value))
        if list(value) != self.keys:
            raise Changed(self.name, f"{len(self.keys)} keys", f"{len(value)} others")
        self.values.read(list(value.values()), call)


class AskedSpec(Spec):
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

    def parts(self) -> list[Spec]:
        return [self.holds]


class SequenceSpec(Spec):
    """A list, a tuple, or what else gives its items in an order: a deque, a set, the view of a dict."""

    __slots__ = ("items", "kind")

    def __init__(self, name: str, kind: Any, items: list[Spec]) -> None:
        super().__init__(name)
        self.kind, self.items = kind, items

    def read(self, value: Any, call: Call) -> None:
        if type(value) is not self.kind:
            raise Changed(self.name, self.kind.__name__, kind_text(value))
        if len(value) != len(self.items):
            raise Changed(self.name, f"{len(self.items)} items", f"{len(value)} items")
        for spec, item in zip(self.items, value, strict=True):
            spec.read(item, call)

    def parts(self) -> list[Spec]:
        return self.items


class DictSpec(Spec):
    """A dict: the same keys in the same order."""

    __slots__ = ("items", "keys", "kind")

    def __init__(self, name: str, kind: Any, keys: list[Any], items: list[Spec]) -> None:
        super().__init__(name)
        self.kind, self.keys, self.items = kind, keys, items

    def read(self, value: Any, call: Call) -> None:
        if type(value) is not self.kind:
            raise Changed(self.name, self.kind.__name__, kind_text(value))
        if list(value) != self.keys:
            raise Changed(self.name, f"the keys {self.keys}", f"the keys {list(value)}")
        for spec, item in zip(self.items, value.values(), strict=True):
            spec.read(item, call)

    def parts(self) -> list[Spec]:
        return self.items


class ObjectSpec(Spec):
    """An instance of a plain class or a dataclass: what it holds that matters.

    whole  all of it matters: a dataclass, or one of lazygrad's own layers
    """

    __slots__ = ("fields", "keys", "kind", "names", "whole")

    def __init__(self, name: str, value: Any, fields: dict[str, Spec]) -> None:
        super().__init__(name)
        self.kind, self.fields = type(value), fields
        self.whole = dataclasses.is_dataclass(self.kind) or is_closed_inside(self.kind)
        self.keys = list(getattr(value, "__dict__", ()))
        #: the attributes that the function may ask for; None: all
        self.names: set[str] | None = None

    def read(self, value: Any, call: Call) -> None:
        if type(value) is not self.kind:
            raise Changed(self.name, self.kind.__name__, kind_text(value))
        for name, spec in self.fields.items():
            spec.read(getattr(value, name, MISSING), call)
        if list(getattr(value, "__dict__", ())) != self.keys:
            for name in vars(value):
                if name not in self.keys and (self.names is None or name in self.names):
                    raise Changed(f"{self.name}.{name}", MISSING, kind_text(vars(value)[name]))

    def parts(self) -> list[Spec]:
        return list(self.fields.values())


class Describer:
    """Makes the specs of a call's arguments. `tensors`: those found, each once, with its first spec."""

    def __init__(self) -> None:
        self.tensors: list[tuple[Any, TensorSpec]] = []
        self.binds: list[UOp] = []
        self._number: dict[int, int] = {}
        self._open: set[int] = set()

    def describe(self, value: Any, name: str) -> Spec:
        if isinstance(value, tensors.layer.kind):
            return self._tensor(value, name)
        if type(value) in PLAIN:
            return PlainSpec(name, value)
        if isinstance(value, UOp):
            if value.op is Ops.BIND:
                self.binds.append(value)
                return BoundSpec(name, value)
            return SameSpec(name, value)
        if is_array(value):
            if value.size > MAX_ITEMS:
                raise JitError(
                    f"{name} is a numpy array of {value.size} elements, whose values a capture would freeze; "
                    "pass Tensor(array)"
                )
            return ArraySpec(name, value)
        if id(value) in self._open:  # a part that knows the whole
            return SameSpec(name, value)
        self._open.add(id(value))
        try:
            return self._inner(value, name)
        finally:
            self._open.discard(id(value))

    def _inner(self, value: Any, name: str) -> Spec:
        kind = type(value)
        if isinstance(value, (list, tuple, collections.deque)):
            if len(value) > MAX_ITEMS and all(type(part) in PLAIN for part in value):
                return ManySpec(name, value)
            return self._sequence(value, name)
        if isinstance(value, (dict, types.MappingProxyType)):
            keys = list(value)
            if len(value) > MAX_ITEMS and all(type(part) in PLAIN for part in value.values()):
                return ManyPairsSpec(name, value)
            return DictSpec(name, kind, keys, [self.describe(value[k], f"{name}[{k!r}]") for k in keys])
        if isinstance(value, (set, frozenset)) and all(type(part) in PLAIN for part in value):
            return PlainSpec(name, set(value) if isinstance(value, set) else value)
        if isinstance(value, (Set, ValuesView)):
            return self._sequence(value, name)
        if isinstance(value, (range, slice)):
            return PlainSpec(name, value)
        ask = how_to_ask(value)
        if ask is not None:
            return AskedSpec(name, value, ask, self.describe(ask(value), name))
        why = why_not_compared(value)
        if why is not None:
            raise JitError(f"{name} {why}")
        return self._instance(value, name)

    def _sequence(self, value: Any, name: str) -> Spec:
        fields = getattr(value, "_fields", None)
        names = [f"{name}.{f}" for f in fields] if fields else [f"{name}[{n}]" for n in range(len(value))]
        parts = [self.describe(v, n) for v, n in zip(value, names, strict=True)]
        return SequenceSpec(name, type(value), parts)

    def _instance(self, value: Any, name: str) -> Spec:
        if is_instance(value) and not isinstance(value, enum.Enum):
            return ObjectSpec(name, value, {k: self.describe(v, f"{name}.{k}") for k, v in fields_of(value)})
        return SameSpec(name, value)

    def _tensor(self, value: Any, name: str) -> Spec:
        first = self._number.get(id(value))
        spec = TensorSpec(name, len(self.tensors), first)
        if first is None:
            self._number[id(value)] = len(self.tensors)
            self.tensors.append((value, spec))
        return spec


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

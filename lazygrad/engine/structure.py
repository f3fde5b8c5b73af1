"""What a call is made of: arguments in containers, dataclasses, modules, compared with those of the capture.

`describe` makes a tree of specs from the values of the capture. `spec.read(value, call)` compares a value of
a later call: tensors are gathered in `call`, everything else must be as it was. The same specs guard what a
function read besides its arguments (guards.py); there a tensor must be the very one it was.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import types
from collections.abc import Iterator, Set
from typing import Any

from ..device import Buffer
from ..dtype import DType
from ..ir.index import sint, substitute
from ..ir.ops import Ops
from ..ir.uop import UOp
from . import tensors
from .capture import Changed, JitError, Mismatch

#: Containers of Python values are compared up to this many items, and no further.
MAX_ITEMS = 64
_OWN = __package__.partition(".")[0] + "."
MISSING = type("Missing", (), {"__repr__": lambda self: "nothing"})()
PLAIN = (bool, int, float, str, bytes, complex, type(None))


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

    __slots__ = ("node", "storage", "tensor")

    def __init__(self, name: str, tensor: Any) -> None:
        super().__init__(name)
        self.tensor, self.storage, self.node = tensor, None, None

    def hold(self) -> None:
        """What it is when the capture is done counts."""
        self.storage = tensors.layer.storage(self.tensor)
        self.node = None if self.storage is not None else self.tensor.uop

    def read(self, value: Any, call: Call) -> None:
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
        elif type(value) is type(known) and has_own_equality(type(known)) and is_true(value == known):
            return
        raise Changed(self.name, kind_text(known), kind_text(value))


class ArraySpec(Spec):
    """A small numpy array, by its contents."""

    __slots__ = ("content",)

    def __init__(self, name: str, value: Any) -> None:
        super().__init__(name)
        self.content = _content(value)

    def read(self, value: Any, call: Call) -> None:
        if not is_array(value) or _content(value) != self.content:
            raise Changed(self.name, "an array of other values", kind_text(value))


class LengthSpec(Spec):
    """A long container of Python values, outside of the arguments: the same object, of the same length."""

    __slots__ = ("length", "value")

    def __init__(self, name: str, value: Any) -> None:
        super().__init__(name)
        self.value, self.length = value, len(value)

    def read(self, value: Any, call: Call) -> None:
        if value is not self.value or len(value) != self.length:
            raise Changed(self.name, f"{self.length} items", kind_text(value))


class SequenceSpec(Spec):
    """A list or a tuple."""

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

    __slots__ = ("fields", "kind", "whole")

    def __init__(self, name: str, kind: Any, fields: dict[str, Spec]) -> None:
        super().__init__(name)
        self.whole = dataclasses.is_dataclass(kind) or kind.__module__.startswith(_OWN)
        self.kind, self.fields = kind, fields

    def read(self, value: Any, call: Call) -> None:
        if type(value) is not self.kind:
            raise Changed(self.name, self.kind.__name__, kind_text(value))
        for name, spec in self.fields.items():
            spec.read(getattr(value, name, MISSING), call)

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
        if kind in (list, tuple) and len(value) > MAX_ITEMS and all(type(part) in PLAIN for part in value):
            return PlainSpec(name, list(value) if kind is list else value)
        if isinstance(value, (list, tuple)):
            fields = getattr(value, "_fields", None)
            names = [f"{name}.{f}" for f in fields] if fields else [f"{name}[{n}]" for n in range(len(value))]
            return SequenceSpec(name, kind, [self.describe(v, n) for v, n in zip(value, names, strict=True)])
        if isinstance(value, dict):
            keys = list(value)
            return DictSpec(name, kind, keys, [self.describe(value[k], f"{name}[{k!r}]") for k in keys])
        if isinstance(value, (Set, range, slice)):
            return PlainSpec(name, set(value) if isinstance(value, set) else value)
        if is_instance(value):
            return ObjectSpec(name, kind, {k: self.describe(v, f"{name}.{k}") for k, v in fields_of(value)})
        return SameSpec(name, value)

    def _tensor(self, value: Any, name: str) -> Spec:
        first = self._number.get(id(value))
        spec = TensorSpec(name, len(self.tensors), first)
        if first is None:
            self._number[id(value)] = len(self.tensors)
            self.tensors.append((value, spec))
        return spec


class Watcher(Describer):
    """Makes specs of what was found besides the arguments: tensors are held, long containers measured."""

    def __init__(self) -> None:
        super().__init__()
        self.held: list[HeldSpec] = []

    def _inner(self, value: Any, name: str) -> Spec:
        if isinstance(value, (list, tuple, dict, Set)):
            return LengthSpec(name, value) if len(value) > MAX_ITEMS else super()._inner(value, name)
        if isinstance(value, (range, slice)):
            return PlainSpec(name, value)
        return SameSpec(name, value)

    def _tensor(self, value: Any, name: str) -> Spec:
        spec = HeldSpec(name, value)
        self.held.append(spec)
        return spec

    def describe(self, value: Any, name: str) -> Spec:
        if is_array(value) and value.size > MAX_ITEMS:
            return SameSpec(name, value)
        return super().describe(value, name)


# *** what values are


def is_array(value: Any) -> bool:
    """Whether it is a numpy array or number; numpy itself is not imported for that."""
    return type(value).__module__ == "numpy" and hasattr(value, "tobytes") and hasattr(value, "shape")


def _content(array: Any) -> tuple[Any, ...]:
    return (array.dtype, array.shape, array.tobytes())


def same_plain(a: Any, b: Any) -> bool:
    """Equal and of one type; NaN equals itself, 0.0 and -0.0 differ."""
    if type(a) is not type(b):
        return False
    if type(a) is float:
        return (a == b and math.copysign(1.0, a) == math.copysign(1.0, b)) or (a != a and b != b)
    return is_true(a == b)


def is_true(value: Any) -> bool:
    """Whether a comparison said a plain True."""
    return value is True


def has_own_equality(kind: Any) -> bool:
    """Whether a class says when two of it are equal."""
    return kind.__eq__ is not object.__eq__


def is_instance(value: Any) -> bool:
    """Whether a value is an instance of a class that someone wrote: it is looked into."""
    kind = type(value)
    if isinstance(
        value, (type, types.ModuleType, types.FunctionType, types.MethodType, types.BuiltinFunctionType)
    ):
        return False
    return _is_written(kind)


def _is_written(kind: Any) -> bool:
    """Whether a class comes from a class statement of the user's, or is one of our layers."""
    made_by_a_class_statement = kind.__flags__ & (1 << 9)  # Py_TPFLAGS_HEAPTYPE
    return bool(made_by_a_class_statement) and _is_looked_into(kind.__module__)


@functools.lru_cache(4096)
def _is_looked_into(module: str) -> bool:
    if module.startswith(_OWN):
        return module.startswith(f"{_OWN}nn")
    return module.partition(".")[0] not in _CLOSED


#: Instances of classes of these are not looked into.
_CLOSED = frozenset(
    ("builtins", "numpy", "torch", "threading", "enum", "re", "pathlib", "functools", "typing", "logging")
)


def fields_of(value: Any) -> Iterator[tuple[str, Any]]:
    """What an instance holds: its attributes and its slots."""
    yield from list(getattr(value, "__dict__", {}).items())
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            if not slot.startswith("__") and hasattr(value, slot):
                yield slot, getattr(value, slot)


def is_library(value: Any) -> bool:
    """Whether an instance's class is one of lazygrad's own."""
    return type(value).__module__.startswith(_OWN)


def kind_text(value: Any) -> str:
    """A value as an error says it."""
    if type(value) in PLAIN:
        return repr(value)
    return "nothing" if value is MISSING else f"a {type(value).__name__}"


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

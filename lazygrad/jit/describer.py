"""From the values of a capture to their specs: arguments in containers, dataclasses, modules."""

from __future__ import annotations

import collections
import enum
import types
from collections.abc import Set, ValuesView
from typing import Any

from ..ir.members import Member
from ..ir.ops import Ops
from ..ir.uop import UOp
from ..tensor import Tensor
from .errors import JitError
from .impure_calls import reads_outside, refusal
from .python_values import (
    MAX_ITEMS,
    PLAIN,
    fields_of,
    how_to_ask,
    is_array,
    is_instance,
    why_not_compared,
)
from .specs import (
    ArraySpec,
    BoundSpec,
    DerivedSpec,
    DictSpec,
    ManyPairsSpec,
    ManySpec,
    ObjectSpec,
    PlainSpec,
    QueriedSpec,
    SameSpec,
    SequenceSpec,
    Spec,
)
from .tensor_specs import TensorSpec, spec_for


class Describer:
    """Makes the specs of a call's arguments. `tensors`: those found, each once, with its first spec."""

    def __init__(self) -> None:
        self.tensors: list[tuple[Tensor, TensorSpec]] = []
        self.binds: list[UOp] = []
        self._number: dict[int, int] = {}
        self._open: set[int] = set()

    def describe(self, value: Any, name: str) -> Spec:
        if isinstance(value, Tensor):
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
        items = self._container(value, name)
        if items is None:
            return self._other(value, name)
        return DerivedSpec(name, items, self._object(value, name)) if is_instance(value) else items

    def _container(self, value: Any, name: str) -> Spec | None:
        """What it holds as a container; None of what is none."""
        kind = type(value)
        if isinstance(value, (list, tuple, collections.deque, set)):
            if len(value) > MAX_ITEMS and all(type(part) in PLAIN for part in value):
                return ManySpec(name, value)
            return self._sequence(value, name)
        if isinstance(value, (dict, types.MappingProxyType)):
            keys = list(value)
            if len(value) > MAX_ITEMS and all(type(part) in PLAIN for part in value.values()):
                return ManyPairsSpec(name, value)
            return DictSpec(name, kind, keys, [self.describe(value[k], f"{name}[{k!r}]") for k in keys])
        if isinstance(value, frozenset) and all(type(part) in PLAIN for part in value):
            return PlainSpec(name, value)
        if isinstance(value, (Set, ValuesView)):
            return self._sequence(value, name)
        return None

    def _other(self, value: Any, name: str) -> Spec:
        if isinstance(value, (range, slice)):
            return PlainSpec(name, value)
        what = reads_outside(value)
        if what is not None:
            raise JitError(refusal(f"{name} is {value.__name__}(), which", what))
        ask = how_to_ask(value)
        if ask is not None:
            return QueriedSpec(name, value, ask, self.describe(ask(value), name))
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
        if is_instance(value) and not isinstance(value, (enum.Enum, Member)):
            return self._object(value, name)
        return SameSpec(name, value)

    def _object(self, value: Any, name: str) -> ObjectSpec:
        return ObjectSpec(name, value, {k: self.describe(v, f"{name}.{k}") for k, v in fields_of(value)})

    def _tensor(self, value: Tensor, name: str) -> Spec:
        first = self._number.get(id(value))
        spec = spec_for(value, name, len(self.tensors), first)
        if first is None:
            self._number[id(value)] = len(self.tensors)
            self.tensors.append((value, spec))
        return spec


def without_unnamed(spec: Spec, names: set[str]) -> bool:
    """Leave out attributes of modules that hold no tensor and that no function of the user names.

    Says whether anything is left that changes from call to call.
    """
    matters = isinstance(spec, TensorSpec) or not isinstance(spec, (PlainSpec, SameSpec, ObjectSpec))
    if isinstance(spec, ObjectSpec):
        kept = {}
        for name, part in spec.fields.items():
            inside = without_unnamed(part, names)
            if inside or spec.whole or name in names:
                kept[name] = part
        spec.fields = kept
        spec.names = None if spec.whole else names
        return bool(kept) or spec.plain is not None
    for part in spec.members():
        matters = without_unnamed(part, names) or matters
    return matters

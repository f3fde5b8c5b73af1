"""What an argument may be, read off its annotation: `int | Sequence[int]` is an int, or several ints.

The annotations are the contract: a type checker holds it before a program runs, `Contract.check` at the call.
What an annotation cannot say (`Any`, a dtype, an array) is left to the method.
"""

from __future__ import annotations

import inspect
import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any, NamedTuple

from ..device import Devices
from ..ir.uop import UOp
from ..ir.walks import device_of
from .same_device import ANYWHERE, devices_text, meeting

#: Where an object without words of its own lies; that it is one says enough.
ADDRESS = re.compile(r"(?<= object) at 0x[0-9a-f]+")


class Kind(NamedTuple):
    """A set of values: what an error calls it, the types whose every value is in it, and who else is."""

    says: str
    types: frozenset[type]
    holds: Callable[[Any], bool]


def is_tensor(value: Any) -> bool:
    return hasattr(type(value), "_uop")


def is_int(value: Any) -> bool:
    """An int of any library, an integer tensor of one element, or a Variable."""
    if isinstance(value, UOp):
        return True
    return hasattr(value, "__index__") and math.prod(getattr(value, "shape", ())) == 1


def is_number(value: Any) -> bool:
    """A real number of any library, a tensor, or a Variable."""
    if isinstance(value, UOp) or is_tensor(value):
        return True
    if type(value).__module__.partition(".")[0] == "numpy":
        return value.shape == () and value.dtype.kind in "biuf"
    return hasattr(value, "__float__") or hasattr(value, "__index__")


def is_truth(value: Any) -> bool:
    """A bool of Python or numpy; 0 and 1 pass for one."""
    return type(value).__name__ in ("bool", "bool_") or (isinstance(value, int) and value in (0, 1))


def _several(one: Callable[[Any], bool]) -> Callable[[Any], bool]:
    def holds(value: Any) -> bool:
        if isinstance(value, (str, bytes, Mapping, Set)) or is_tensor(value) or not hasattr(value, "__len__"):
            return False
        return all(map(one, value))

    return holds


def _is_int_or_none(value: Any) -> bool:
    return value is None or is_int(value)


_INT = Kind("an int", frozenset((int,)), is_int)
_NUMBER = Kind("a number", frozenset((int, float)), is_number)
_TENSOR = Kind("a Tensor", frozenset(), is_tensor)
_INTS = Kind("a sequence of ints", frozenset(), _several(is_int))
_STRINGS = Kind("a sequence of strings", frozenset(), _several(lambda value: isinstance(value, str)))
#: A part of an annotation → its kind.
KINDS = {
    "Tensor": _TENSOR,
    "int": _INT,
    "sint": _INT,
    "float": _NUMBER,
    "ConstType": _NUMBER,
    "bool": Kind("True or False", frozenset((bool,)), is_truth),
    "str": Kind("a string", frozenset((str,)), lambda value: isinstance(value, str)),
    "None": Kind("None", frozenset((type(None),)), lambda value: value is None),
    "Sequence[int]": _INTS,
    "Sequence[sint]": _INTS,
    "Sequence[int | None]": Kind("a sequence of ints", frozenset(), _several(_is_int_or_none)),
    "Sequence[str]": _STRINGS,
    "tuple[str, ...]": _STRINGS,
    "Sequence[Any]": Kind("a sequence", frozenset(), _several(lambda value: True)),
    "Sequence[Callable[[Any], Any]]": Kind(
        "a sequence of functions and modules", frozenset(), _several(callable)
    ),
    "Sequence[tuple[sint, sint] | None]": Kind(
        "a sequence of pairs (begin, end)", frozenset(), _several(lambda value: True)
    ),
    "Sequence[Tensor]": Kind("a sequence of Tensors", frozenset(), _several(is_tensor)),
    "Sequence[float]": Kind("a sequence of numbers", frozenset(), _several(is_number)),
}


def kind_of(annotation: str, names: Mapping[str, Any]) -> Kind | None:
    """The kind that an annotation means, in a module that has these names; None where it leaves it open."""
    parts = _members(annotation)
    for name in parts:
        alias = names.get(name)
        if name not in KINDS and alias is not None and type(alias).__name__ == "UnionType":
            whole = str(alias).replace("collections.abc.", "")
            return kind_of(" | ".join([whole, *(p for p in parts if p != name)]), names)
    found = [KINDS.get(part) for part in parts]
    kinds = [kind for kind in found if kind is not None]
    if len(kinds) < len(found):
        return None
    says = [kind.says for kind in kinds]
    tests = [kind.holds for kind in kinds]
    types = frozenset().union(*(kind.types for kind in kinds))
    # without what goes without saying: that None, the default, may be given
    stated = [text for text in dict.fromkeys(says) if text != "None"] or says
    return Kind(" or ".join(stated), types, lambda value: any(test(value) for test in tests))


def _members(annotation: str) -> list[str]:
    """The members of a union, split where no bracket is open."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(annotation):
        depth += (letter == "[") - (letter == "]")
        if letter == "|" and depth == 0:
            parts.append(annotation[start:place].strip())
            start = place + 1
    return [*parts, annotation[start:].strip()]


_SAME = (("dim", "axis"), ("keepdim", "keepdims"))
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Contract:
    """What a function takes: looked at when it is first called with arguments, held at each call."""

    __slots__ = (
        "anywhere",
        "by_name",
        "by_position",
        "is_method",
        "more",
        "name",
        "order",
        "rest",
        "signature",
        "unchecked",
    )

    def __init__(self, function: Callable[..., Any]) -> None:
        self.name = function.__name__.replace("__init__", "Tensor")
        self.signature = inspect.signature(function)
        self.is_method = next(iter(self.signature.parameters), "") == "self" and self.name != "Tensor"
        self.anywhere = ANYWHERE.get(self.name)
        names = getattr(inspect.unwrap(function), "__globals__", {})
        self.by_name: dict[str, Kind] = {}
        positional: list[tuple[str, Kind] | None] = []
        self.order: list[str] = []
        self.rest: tuple[str, Kind] | None = None
        self.more: Kind | None = None
        for name, parameter in self.signature.parameters.items():
            kind = None if name in ("self", "cls") else kind_of(str(parameter.annotation), names)
            row = None if kind is None else (name, kind)
            if parameter.kind is not parameter.KEYWORD_ONLY:
                self.order.append(name)
            if parameter.kind is parameter.VAR_POSITIONAL:
                self.rest = row
            elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
                positional.append(row)
            if parameter.kind is parameter.VAR_KEYWORD:
                self.more = kind
            if kind is not None and parameter.kind in _NAMED:
                self.by_name[name] = kind
        while positional and positional[-1] is None and self.rest is None:
            positional.pop()
        self.by_position = tuple(positional)
        self.unchecked = 1 if positional or self.rest is not None else sys.maxsize
        for new, old in getattr(function, "also_named", {}).items():
            if old in self.by_name:
                self.by_name[new] = self.by_name[old]

    def check(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """TypeError where an argument is none of what its annotation says."""
        if (
            self.is_method
            and args
            and not hasattr(args[0], "_uop_or_call")
            and not isinstance(args[0], (list, tuple))
        ):
            raise TypeError(f"{self.name} is a method of Tensors, not of {shown(args[0])}")
        for value, row in zip(args, self.by_position):  # noqa: B905 - either may be the longer
            if row is not None and type(value) not in row[1].types and not row[1].holds(value):
                raise self.wrong(row[0], row[1], value)
        if self.rest is not None:
            for value in args[len(self.by_position) :]:
                if not self.rest[1].holds(value):
                    raise self.wrong(f"each of {self.rest[0]}", self.rest[1], value)
        if len(kwargs) > 1:
            for one, other in _SAME:
                if one in kwargs and other in kwargs:
                    raise TypeError(f"{self.name}: give {one} or {other}, which are the same, not both")
        for name, value in kwargs.items():
            kind = self.by_name.get(name, self.more)
            if kind is not None and type(value) not in kind.types and not kind.holds(value):
                raise self.wrong(name, kind, value)
        if len(args) > self.unchecked or kwargs:  # operands of all kinds look themselves where they meet
            values = (*args, *kwargs.values()) if kwargs else args
            if self.anywhere is not None or not _on_one_device(values):
                self._check_devices(args, kwargs)

    def _check_devices(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """ValueError where tensors of a call, or in sequences of it, are on devices that do not meet."""
        rest = len(args) - len(self.order)
        names = [*self.order[: len(args)], *self.order[-1:] * rest, *kwargs]
        first: tuple[str, Devices] | None = None
        for name, value in zip(names, (*args, *kwargs.values()), strict=True):
            if name == self.anywhere or (name == "self" and not self.is_method):
                continue
            for one in value if type(value) in (list, tuple) else (value,):
                device = device_of(one._uop_or_call) if is_tensor(one) else None
                if device is None:
                    continue
                if first is None:
                    first = name, device
                elif device != first[1]:
                    raise ValueError(self._devices_differ(*first, name, device))

    def _devices_differ(self, one: str, first: Devices, other: str, second: Devices) -> str:
        """`gather: index is on PYTHON, the tensor on CPU; move one with .to('CPU')`."""
        places = devices_text(second), devices_text(first)
        if one == other:
            where = f"tensors of {one} are on {places[1]} and on {places[0]}"
        else:
            where = f"{other} is on {places[0]}, {'the tensor' if one == 'self' else one} on {places[1]}"
        return f"{self.name}: {where}; {meeting(first, second)}"

    def wrong(self, name: str, kind: Kind, value: Any) -> TypeError:
        return TypeError(f"{self.name}: {name} must be {kind.says}, not {shown(value)}")


def _on_one_device(values: Iterable[Any]) -> bool:
    """Whether a glance tells: tensors are on one device, or on none yet, and none is in a sequence."""
    known: Devices | None = None
    for value in values:
        kind = type(value)
        if hasattr(kind, "_uop"):
            device = device_of(value._uop_or_call)
            if device is not known and device is not None:
                if known is not None and device != known:
                    return False
                known = device
        elif kind is list or kind is tuple:
            for one in value:
                if hasattr(type(one), "_uop"):
                    return False
    return True


def shown(value: Any) -> str:
    """A value as an error shows it: tensors by their shape, what is long by its beginning."""
    if is_tensor(value):
        return f"a Tensor of shape {value.shape}"
    if isinstance(value, (tuple, list)) and any(map(is_tensor, value)):
        return f"a {type(value).__name__} of {len(value)} tensors"
    if type(value).__module__.partition(".")[0] == "numpy" and getattr(value, "ndim", False):
        return f"an array of shape {value.shape}"
    text = ADDRESS.sub("", repr(value))
    return text if len(text) <= 60 else f"{text[:57]}..."

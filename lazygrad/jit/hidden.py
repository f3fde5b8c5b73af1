"""Tensors in a returned object where no later call can put others: in a function, an iterator, a view."""

from __future__ import annotations

import collections
import functools
import operator
import types
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..tensor import Tensor
from .errors import JitError, describe_fn
from .guard import cell_value
from .python_values import PLAIN, fields_of, is_array

#: So many objects are looked at for each that is returned.
MOST = 10_000


def refuse_hidden(fxn: Any, opaque: Iterable[Any], existed: Callable[[Tensor], bool]) -> None:
    """An error if one of the objects that a function returned, into which nobody sees, holds a tensor of this
    call, or gives items only once.
    """
    for value in opaque:
        once = isinstance(value, Iterator)
        if once or _holds_new(value, existed):
            what = "gives its items once" if once else "holds a tensor that it computed"
            raise JitError(
                f"{describe_fn(fxn)} returns a {type(value).__name__} that {what}, and later calls would "
                "return the same one; return tensors in a list, a tuple, a dict or an object with attributes"
            )


def _holds_new(value: Any, existed: Callable[[Tensor], bool]) -> bool:
    found, seen = [value], dict[int, Any]()
    while found and len(seen) < MOST:
        one = found.pop()
        if isinstance(one, Tensor):
            if not existed(one):
                return True
        elif id(one) not in seen and type(one) not in PLAIN:
            seen[id(one)] = one  # and kept: another that is made meanwhile could be at its address
            found += vars(value).values() if one is value and isinstance(one, type) else _inside(one)
    return False


def _inside(value: Any) -> list[Any]:
    """What an object holds, but not what all functions of a module, and all instances of a class, share.

    Of what is not written in Python it is what `_CONTENTS` knows; an extension's objects keep theirs to
    themselves.
    """
    if isinstance(value, (type, types.ModuleType, types.CodeType)):
        return []
    held = [part for _, part in fields_of(value)]
    for kind, parts in _CONTENTS:
        if isinstance(value, kind):
            held += parts(value)
    if is_array(value) and value.dtype.hasobject:
        held += value.reshape(-1).tolist()
    return held


def _in_function(fxn: types.FunctionType) -> list[Any]:
    return [fxn.__defaults__, fxn.__kwdefaults__, *map(cell_value, fxn.__closure__ or ())]


def _in_error(error: BaseException) -> list[Any]:
    return [error.args, error.__cause__, error.__context__, error.__traceback__]


def _in_frame(frame: types.FrameType | None) -> list[Any]:
    return [] if frame is None else list(frame.f_locals.values())


#: What objects hold besides attributes and slots: of which kinds, and how to see it.
_CONTENTS: tuple[tuple[Any, Callable[[Any], Iterable[Any]]], ...] = (
    ((dict, types.MappingProxyType), lambda mapping: [*mapping, *mapping.values()]),
    ((list, tuple, set, frozenset, collections.deque), list),
    (collections.defaultdict, lambda mapping: [mapping.default_factory]),
    ((type({}.keys()), type({}.values()), type({}.items())), list),
    (slice, lambda part: [part.start, part.stop, part.step]),
    (types.FunctionType, _in_function),
    (types.MethodType, lambda method: [method.__self__, method.__func__]),
    ((types.BuiltinMethodType, types.MethodWrapperType), lambda method: [method.__self__]),
    ((functools.partial, functools.partialmethod), lambda part: [part.func, part.args, part.keywords]),
    (functools._lru_cache_wrapper, lambda fxn: [fxn.__wrapped__]),
    ((operator.itemgetter, operator.attrgetter, operator.methodcaller), lambda get: get.__reduce__()),
    ((staticmethod, classmethod), lambda method: [method.__func__]),
    (property, lambda made: [made.fget, made.fset, made.fdel]),
    (types.CellType, lambda cell: [cell_value(cell)]),
    (memoryview, lambda memory: [memory.obj]),
    (weakref.ref, lambda reference: [reference.__callback__]),
    (BaseException, _in_error),
    (types.TracebackType, lambda traceback: [traceback.tb_frame, traceback.tb_next]),
    (types.FrameType, _in_frame),
    (types.CoroutineType, lambda routine: _in_frame(routine.cr_frame)),
    (types.AsyncGeneratorType, lambda generator: _in_frame(generator.ag_frame)),
)

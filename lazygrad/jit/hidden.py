"""Tensors in a returned object where no later call can put others: in a function, an iterator, a view."""

from __future__ import annotations

import gc
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..tensor import Tensor
from .errors import JitError, describe_fn
from .guard import cell_value
from .python_values import PLAIN

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
    found, seen = [value], set[int]()
    while found and len(seen) < MOST:
        one = found.pop()
        if isinstance(one, Tensor):
            if not existed(one):
                return True
        elif id(one) not in seen and type(one) not in PLAIN:
            seen.add(id(one))
            found += vars(value).values() if one is value and isinstance(one, type) else _inside(one)
    return False


def _inside(value: Any) -> Iterable[Any]:
    """What an object holds, but not what all functions of a module, and all instances of a class, share."""
    if isinstance(value, (type, types.ModuleType, types.CodeType)):
        return ()
    if isinstance(value, types.FunctionType):
        cells = [cell_value(cell) for cell in value.__closure__ or ()]
        return (value.__defaults__, value.__kwdefaults__, vars(value), *cells)
    return [each for each in gc.get_referents(value) if each is not type(value)]

"""What the bytecode of a function says: the names that it reads, and chains of attributes from them.

Whose code it is tells its file: the user's functions are looked at, a library's are not.
"""

from __future__ import annotations

import dis
import functools
import os
import types
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from ..locks import WeakKeys
from .capture import PACKAGE


class Chain(NamedTuple):
    """`root.attribute.attribute`: the root is a name of kind global, free (a closure cell) or param."""

    kind: str
    root: str
    attributes: tuple[str, ...]


T = TypeVar("T")


def _remembered(question: Callable[[types.CodeType], T]) -> Callable[[types.CodeType], T]:
    """The function, asked once of each code; the answer goes soon after the code does."""
    known: WeakKeys[types.CodeType, T] = WeakKeys()

    @functools.wraps(question)
    def answer(code: types.CodeType) -> T:
        found = known.get(code)
        return known.put(code, question(code)) if found is None else found

    return answer


_KEEPS = frozenset(("COPY", "PUSH_NULL", "NOP", "CACHE", "EXTENDED_ARG", "RESUME", "PRECALL"))


@_remembered
def chains_of(code: types.CodeType) -> tuple[Chain, ...]:
    """The chains that a function and the functions written in it read or set."""
    found: dict[Chain, None] = {}
    roots = {name: ("param", name) for name in parameters_of(code)}
    roots.update({name: ("free", name) for name in code.co_freevars})
    todo = [(code, roots)]
    while todo:
        current, known = todo.pop()
        _scan(current, known, found)
        for inner in current.co_consts:
            if isinstance(inner, types.CodeType):
                todo.append((inner, {name: known[name] for name in inner.co_freevars if name in known}))
    return tuple(found)


def parameters_of(code: types.CodeType) -> tuple[str, ...]:
    """The names of a function's parameters, without *args and **kwargs."""
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _scan(code: types.CodeType, roots: Mapping[str, tuple[str, str]], found: dict[Chain, None]) -> None:
    current: Chain | None = None
    for step in dis.get_instructions(code):
        op, name = step.opname, step.argval
        if op in _KEEPS:
            continue
        if isinstance(name, tuple) and name:  # two loads in one instruction: the last is on top
            name = name[-1]
        if op in ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL"):
            current = Chain("global", name, ())
        elif op.startswith("LOAD_FAST") or op in _CELLS:
            current = Chain(*roots[name], ()) if name in roots else None
        elif op in ("LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR", "DELETE_ATTR") and current is not None:
            current = current._replace(attributes=(*current.attributes, name))
        else:
            current = None
        if current is not None and (current.kind != "param" or current.attributes):
            found[current] = None
        if op.startswith(("STORE_", "DELETE_")):
            current = None


_CELLS = frozenset(
    ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF", "STORE_DEREF", "DELETE_DEREF")
)


@_remembered
def names_of(code: types.CodeType) -> frozenset[str]:
    """Every name in a function's bytecode, and in that of the functions written in it."""
    found = set(code.co_names)
    todo = [code]
    while todo:
        for inner in todo.pop().co_consts:
            if isinstance(inner, types.CodeType):
                found.update(inner.co_names)
                todo.append(inner)
    return frozenset(found)


_STDLIB = os.path.dirname(os.__file__) + os.sep
_SITE = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)


def is_user_code(code: types.CodeType) -> bool:
    """Whether a function is the user's: not lazygrad's, the standard library's, numpy's or llvmlite's."""
    return _is_user_file(code.co_filename)


@functools.lru_cache(4096)
def _is_user_file(file: str) -> bool:
    if file.startswith((PACKAGE, "<frozen", "<__array_function__")):
        return False
    if any(part in file for part in _SITE):
        return not any(f"{part}{name}{os.sep}" in file for part in _SITE for name in ("numpy", "llvmlite"))
    return not file.startswith(_STDLIB)

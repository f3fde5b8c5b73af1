"""What the bytecode of a function says: the names that it reads, and chains of attributes from them.

Whose code it is tells its file: the user's functions are looked at, a library's are not.
"""

from __future__ import annotations

import dis
import functools
import itertools
import os
import re
import types
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from ..engine.frames import PACKAGE
from ..locks import WeakKeys


class Chain(NamedTuple):
    """`root.attribute.attribute`: the root is a name of kind global, free (a closure cell) or param.

    EVERY as the last attribute stands for all that the object has, as `vars(root)` gives it.
    """

    kind: str
    root: str
    attributes: tuple[str, ...]


EVERY = "*"


class Reads(NamedTuple):
    """What a function and the functions written in it read or set.

    names    every name of an attribute or a global, whoever it is asked of
    every    whether all attributes are asked for of an object that no chain leads to
    imports  (name, level) of the modules imported inside
    """

    chains: tuple[Chain, ...]
    names: frozenset[str]
    every: bool
    imports: tuple[tuple[str, int], ...]


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


class Step(NamedTuple):
    """An instruction, and what it names: a variable, an attribute, a constant."""

    op: str
    name: Any


def steps_of(code: types.CodeType) -> list[Step]:
    """The instructions in order, without those that neither name anything nor move what is on the stack.

    Python 3.13 loads and stores two variables with one instruction: those are two steps, as before.
    """
    steps: list[Step] = []
    for each in dis.get_instructions(code):
        op, name = each.opname, each.argval
        if op.startswith(("LOAD_FAST", "STORE_FAST")) and isinstance(name, tuple):
            steps.append(Step("LOAD_FAST" if op.startswith("LOAD") else "STORE_FAST", name[0]))
            op, name = "STORE_FAST" if op.endswith("_STORE_FAST") else "LOAD_FAST", name[1]
        if op not in _KEEPS:
            steps.append(Step(op, name))
    return steps


@_remembered
def reads_of(code: types.CodeType) -> Reads:
    """What bytecode says of a function and of the functions written in it."""
    scan = _Scan()
    roots = {name: ("param", name) for name in parameters_of(code)}
    roots.update({name: ("free", name) for name in code.co_freevars})
    todo = [(code, roots)]
    while todo:
        current, known = todo.pop()
        scan.read(current, known)
        for inner in current.co_consts:
            if isinstance(inner, types.CodeType):
                todo.append((inner, {name: known[name] for name in inner.co_freevars if name in known}))
    return Reads(tuple(scan.chains), frozenset(scan.names), scan.every, tuple(scan.imports))


def parameters_of(code: types.CodeType) -> tuple[str, ...]:
    """The names of a function's parameters, without *args and **kwargs."""
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


class _Scan:
    """Reads instructions one by one: which chain is on top of the stack, and which call takes it."""

    def __init__(self) -> None:
        self.chains: dict[Chain, None] = {}
        self.names: set[str] = set()
        self.imports: dict[tuple[str, int], None] = {}
        self.every = False

    def read(self, code: types.CodeType, roots: Mapping[str, tuple[str, str]]) -> None:
        steps = steps_of(code)
        given = _given_to_a_new_object(code, steps)
        self.names.update(set(code.co_names) - given)
        if any(step.op == "MATCH_CLASS" for step in steps):
            self._texts(code)
            self.names.add("__match_args__")
        if "globals" in code.co_names:
            self.chains.update((Chain("global", name, ()), None) for name in self._texts(code))
        current: Chain | None = None
        asks = ""  # the function that is about to be called, where it takes an object to ask
        for number, (op, name) in enumerate(steps):
            if op in ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL"):
                current = Chain("global", name, ())
            elif op.startswith("LOAD_FAST") or op in _CELLS:
                current = self._root(name, roots)
            elif op in _ATTRIBUTES and current is not None:
                current = current._replace(attributes=(*current.attributes, name))
            elif op not in _ATTRIBUTES:
                if asks:
                    self._note_call(asks, current, steps[number : number + 3])
                    asks = ""
                current = None
            if op == "IMPORT_NAME":
                level = steps[number - 2].name
                self.imports[name, level if isinstance(level, int) else 0] = None
            if op in _ATTRIBUTES and name == "__dict__":
                self._all_of(current._replace(attributes=current.attributes[:-1]) if current else None)
            if current is not None and (current.kind != "param" or current.attributes):
                self.chains[current] = None
            if op.startswith(("STORE_", "DELETE_")):
                current = None
            elif name in _ASKING and (op in _ATTRIBUTES or op in ("LOAD_GLOBAL", "LOAD_NAME")):
                asks, current = name, None
                if name in _BY_NAME:
                    self._texts(code)

    def _root(self, name: Any, roots: Mapping[str, tuple[str, str]]) -> Chain | None:
        return Chain(*roots[name], ()) if name in roots else None

    def _texts(self, code: types.CodeType) -> list[str]:
        """The constants that may be names of attributes count as such."""
        found: list[str] = []
        todo = list(code.co_consts)
        while todo:
            each = todo.pop()
            if isinstance(each, tuple):
                todo.extend(each)
            elif isinstance(each, str):
                found += [part for part in each.split(".") if part.isidentifier()]
        self.names.update(found)
        return found

    def _note_call(self, function: str, owner: Chain | None, following: Sequence[Step]) -> None:
        """A call of `function` with the owner as its first argument; `following` begins with the second."""
        ops = [step.op for step in following]
        if function in _BY_NAME:
            texts = [step.name for step in following if step.op == "LOAD_CONST"]
            called = "CALL" in ops and all(op.startswith("LOAD_") for op in ops[: ops.index("CALL")])
            if texts and ops[0] == "LOAD_CONST" and isinstance(texts[0], str) and called:
                if owner is not None:
                    self.chains[owner._replace(attributes=(*owner.attributes, texts[0]))] = None
                return
        elif owner is None and ops and ops[0] in ("CALL", "STORE_FAST", "RETURN_VALUE"):
            return  # vars() or dir() of the function itself, or another variable of that name
        self._all_of(owner)

    def _all_of(self, owner: Chain | None) -> None:
        if owner is None:
            self.every = True
        else:
            self.chains[owner._replace(attributes=(*owner.attributes, EVERY))] = None


def _given_to_a_new_object(code: types.CodeType, steps: Sequence[Step]) -> set[str]:
    """The attributes that `__init__` gives to its object and never asks for: nobody had them before."""
    if code.co_name != "__init__" or not code.co_argcount:
        return set()
    given, asked = set[str](), set[str]()
    for before, step in itertools.pairwise(steps):
        of_new = step.op == "STORE_ATTR" and before.name == code.co_varnames[0]
        if isinstance(step.name, str):
            (given if of_new else asked).add(step.name)
    return given - asked


_ATTRIBUTES = frozenset(("LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR", "DELETE_ATTR"))
_CELLS = frozenset(
    ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF", "STORE_DEREF", "DELETE_DEREF")
)
#: Functions that ask an object for attributes: for one that is called by its name, or for all of them.
_BY_NAME = frozenset(("getattr", "hasattr", "__getattribute__", "attrgetter"))
_ASKING = _BY_NAME | {"vars", "dir", "asdict", "astuple", "getmembers", "copy", "deepcopy", "replace"}


_STDLIB = os.path.dirname(os.__file__) + os.sep
#: What lazygrad itself calls; they ask for the time when they compile a kernel, for one.
_OWN_LIBRARIES = ("numpy", "llvmlite", "pyopencl", "pytools")


#: As they are outside of a capture, which exchanges what reads the disk.
_listdir, _open = os.listdir, open


@functools.lru_cache(4096)
def _recorded_in(folder: str) -> frozenset[str]:
    """What installers have put into a folder, by the records that they leave there
    (https://packaging.python.org/specifications/recording-installed-packages).
    """
    names = set[str]()
    with suppress(OSError):
        for entry in _listdir(folder):
            record = os.path.join(folder, entry, "RECORD")
            if entry.endswith(".dist-info"):
                with suppress(OSError), _open(record, encoding="utf-8", errors="replace") as lines:
                    names.update(re.split("[/,]", line, maxsplit=1)[0] for line in lines)
    return frozenset(names)


@functools.lru_cache(4096)
def _package_of(file: str) -> str | None:
    """The installed package that has a file; None where it is of none, as what stands beside packages is."""
    below, folder = file, os.path.dirname(file)
    while folder != below:
        name, is_site = os.path.basename(below), os.path.basename(folder) in _SITES
        if is_site or name in _recorded_in(folder):
            return name
        below, folder = folder, os.path.dirname(folder)
    return None


#: Whose files are all installed ones: no record is read.
_SITES = ("site-packages", "dist-packages")


def is_user_code(code: types.CodeType) -> bool:
    """Whether a function is the user's: not lazygrad's, the standard library's or of what lazygrad calls."""
    return _is_user_file(code.co_filename)


def is_installed(file: str) -> bool:
    """Whether it is a file of an installed package."""
    return _package_of(file) is not None


def in_own_mode(call: Any) -> Any:
    """The `__call__` of a class, without what lets an nn.Module be called in its own mode."""
    inner = getattr(call, "__wrapped__", None)
    return call if inner is None or is_user_code(call.__code__) else inner


@functools.lru_cache(4096)
def is_own_file(file: str) -> bool:
    """Whether it is a file of lazygrad."""
    return file.startswith(PACKAGE)


@functools.lru_cache(4096)
def _is_user_file(file: str) -> bool:
    if file.startswith((PACKAGE, "<frozen", "<__array_function__")):
        return False
    package = _package_of(file)
    return not file.startswith(_STDLIB) if package is None else package not in _OWN_LIBRARIES

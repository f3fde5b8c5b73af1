"""What a kernel's function was traced to, kept: a second call with the same shapes puts its tensors in.

A trace depends on the shapes and dtypes of the tensors, on the other arguments, and on what the function
and those that it calls read of their closures and globals. All of that is the key (`key_of`), by value; a
function that reads what has no key (an object that may change) is traced at each call, as is one that does
more than compute (`print`, `import`), so a kept trace is never stale.
"""

from __future__ import annotations

import builtins
import dis
import enum
import functools
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ...dtype import DType, default_float, default_int
from ...ir.members import Member
from ...ir.uop import UOp, toposort
from ...memo import Memo
from .language import Language

#: Longer lists and larger arrays are no keys.
LONGEST = 256


class NoKey(Exception):
    """A value that may change without a trace of it."""


# *** what a function reads


class _Reads(NamedTuple):
    """The globals that a code object reads by name, and all attributes that it asks for."""

    names: tuple[str, ...]
    attributes: frozenset[str]


#: Code that does one of these is run at each call.
_ACTS = frozenset(
    ("print", "input", "open", "exec", "eval", "compile", "globals", "locals", "vars", "dir", "getattr")
    + ("setattr", "delattr", "hasattr", "__import__", "id", "next", "iter", "breakpoint")
)
_CHANGES = frozenset(
    ("IMPORT_NAME", "STORE_GLOBAL", "DELETE_GLOBAL", "STORE_ATTR", "DELETE_ATTR", "STORE_NAME")
)


@functools.lru_cache(4096)
def _reads(code: types.CodeType) -> _Reads | None:
    """What code reads; None of such that does more than compute."""
    names: dict[str, None] = {}
    attributes: set[str] = set()
    for step in dis.get_instructions(code):
        if step.opname in _CHANGES or (step.opname == "STORE_DEREF" and step.argval in code.co_freevars):
            return None
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            names[step.argval] = None
        elif step.opname in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR"):
            attributes.add(step.argval)
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            below = _reads(inner)
            if below is None:
                return None
            names |= dict.fromkeys(below.names)
            attributes |= below.attributes
    if not _ACTS.isdisjoint(names):
        return None
    return _Reads(tuple(names), frozenset(attributes))


_PACKAGE = __name__.partition(".")[0]
_MISSING = object()
_BUILTINS = vars(builtins)


def environment(function: types.FunctionType, seen: tuple[Any, ...] = ()) -> tuple[Any, ...]:
    """All that a function reads beside its arguments, by value."""
    reads = _reads(function.__code__)
    if reads is None or function.__dict__:
        raise NoKey
    around, inside = function.__globals__, (*seen, function)
    found: list[Any] = [function.__code__]
    for name in reads.names:
        value = around.get(name, _MISSING)
        if value is _MISSING:
            value = _BUILTINS.get(name)
            found.append(
                value if value is None or callable(value) else frozen(value, reads.attributes, inside)
            )
        else:
            found.append(frozen(value, reads.attributes, inside))
    for cell in function.__closure__ or ():
        try:
            found.append(frozen(cell.cell_contents, reads.attributes, inside))
        except ValueError:  # it has no value yet
            found.append(_MISSING)
    for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
        found.append(frozen(value, reads.attributes, inside))
    return tuple(found)


_NONE: frozenset[str] = frozenset()
_PLAIN = frozenset((int, str, bool, bytes, type(None), type(Ellipsis)))
#: Modules whose functions give the same for the same.
_PURE = frozenset(("math", "operator", "builtins", "_operator", "cmath"))


def frozen(value: Any, attributes: frozenset[str] = _NONE, seen: tuple[Any, ...] = ()) -> Any:
    """A value as a key: equal keys mean the same to a function that asks for these attributes."""
    kind = type(value)
    if kind in _PLAIN:
        return kind, value
    if kind is float:
        return value.hex()
    if kind is types.FunctionType:
        if (value.__module__ or "").partition(".")[0] == _PACKAGE:
            return value
        return None if value in seen else environment(value, seen)
    if isinstance(value, (DType, Language, enum.Enum, Member)):
        return value
    if kind in (tuple, list):
        return kind, _all(value, attributes, seen)
    if kind is dict:
        return kind, _all(value, attributes, seen), _all(value.values(), attributes, seen)
    if kind is types.ModuleType:
        return value, _of_module(value, attributes, seen)
    if isinstance(value, type) and value.__module__.partition(".")[0] in (*_PURE, _PACKAGE):
        return value
    if isinstance(value, types.BuiltinFunctionType) and value.__module__ in _PURE:
        return value
    if kind.__module__ == "numpy":
        return _of_numpy(value)
    raise NoKey


def _all(values: Iterable[Any], attributes: frozenset[str], seen: tuple[Any, ...]) -> tuple[Any, ...]:
    listed = tuple(values)
    if len(listed) > LONGEST:
        raise NoKey
    return tuple([frozen(value, attributes, seen) for value in listed])


def _of_module(module: types.ModuleType, attributes: frozenset[str], seen: tuple[Any, ...]) -> Any:
    """A module by what is asked of it."""
    name = module.__name__.partition(".")[0]
    if name in _PURE or name == _PACKAGE:
        return None
    if name == "numpy" and not attributes & {"random", "load", "loadtxt", "fromfile", "memmap"}:
        return None
    own = sorted(attributes & vars(module).keys())
    return tuple([(each, frozen(vars(module)[each], attributes, seen)) for each in own])


def _of_numpy(value: Any) -> Any:
    if getattr(value, "size", LONGEST + 1) > LONGEST or value.dtype.hasobject:
        raise NoKey
    return type(value), value.shape, value.dtype.str, value.tobytes()


def key_of(function: Any, arguments: Sequence[Any]) -> tuple[Any, ...]:
    """The key of a call; raises NoKey. Tensors are given as what a trace knows of them, in a `Given`."""
    if type(function) is not types.FunctionType:
        raise NoKey
    values = tuple([value if type(value) is Given else frozen(value) for value in arguments])
    return values, environment(function), default_float(), default_int()


class Given(NamedTuple):
    """What a trace knows of a tensor."""

    shape: tuple[int, ...]
    dtype: DType


# *** what it became


class Trace:
    """The nodes of a kernel's results, as steps that make them anew on other inputs.

    results  which node each result is
    several  whether the function gives a tuple
    """

    def __init__(self, inputs: Sequence[UOp], results: Sequence[UOp], several: bool) -> None:
        self.several = several
        index: dict[UOp, int] = {node: number for number, node in enumerate(inputs)}
        fixed: list[UOp] = []
        made: list[UOp] = []
        moves = set(index)
        nodes = toposort(results, done=set(inputs))
        for node in nodes:
            if moves.isdisjoint(node.src):
                fixed.append(node)
            else:
                moves.add(node)
                made.append(node)
        used = {s for node in made for s in node.src} | set(results)
        self.fixed = [node for node in fixed if node in used]
        for number, node in enumerate((*self.fixed, *made), len(inputs)):
            index[node] = number
        self.steps = [(n.op, n.dtype, tuple([index[s] for s in n.src]), n.arg) for n in made]
        self.results = [index[node] for node in results]

    def on(self, inputs: Sequence[UOp]) -> list[UOp]:
        """The results' nodes on these inputs."""
        values = [*inputs, *self.fixed]
        for op, dtype, src, arg in self.steps:
            values.append(UOp(op, dtype, tuple([values[s] for s in src]), arg))
        return [values[place] for place in self.results]


class Traces:
    """The traces of one kernel."""

    def __init__(self) -> None:
        self.cached: Memo[Any, Trace | None] = Memo(256)

    def get(self, key: Any, make: Callable[[], Trace | None]) -> Trace | None:
        """The trace under a key; None: the rules say nothing of its gradient."""
        found = self.cached.get(key, _MISSING)
        if found is _MISSING:
            found = self.cached.keep(key, make())
        return found  # type: ignore[return-value]

"""What reads the world outside: random numbers, clocks, files. A replay could not know what they would give.

While a function is captured, others stand where it finds these (`patched`): where the user's code calls one,
itself or through the standard library or numpy, the capture is told. A log line that asks for the time, or a
warning for its line, does not count.
"""

from __future__ import annotations

import builtins
import gc
import io
import os
import random
import sys
import threading
import time
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from ..engine.frames import PACKAGE
from ..tensor.arguments import COMPUTING
from .bytecode import is_own_file, is_user_code

_RANDOM = (
    "draws a random number",
    "draw it outside and pass it as an argument, or use Tensor.rand",
)
CLOCK = "reads a clock", "read it outside and pass the time as an argument"
_FILE = "reads a file or the disk", "read it outside and pass what it gives as an argument"
_INPUT = "reads what somebody types", "read it outside and pass what it gives as an argument"

_CLOCKS = frozenset(("time", "monotonic", "perf_counter", "process_time", "thread_time", "clock_gettime"))
_CLOCKS |= {f"{name}_ns" for name in _CLOCKS}
_CLOCKS |= {"localtime", "gmtime", "ctime", "asctime", "strftime"}
_DISK = ("open", "read", "pread", "stat", "lstat", "fstat", "listdir", "scandir", "readlink", "access")
#: Those by which a generator draws; `gauss` may give what it has drawn for an earlier call.
_DRAWS = ("random", "getrandbits", "gauss")

#: (module, function) → what it does, and what to do instead.
_FUNCTIONS = {("time", name): CLOCK for name in _CLOCKS}
_FUNCTIONS |= {(system, name): _FILE for name in _DISK for system in ("posix", "nt")}
_FUNCTIONS |= {(system, name): _RANDOM for name in ("urandom", "getrandom") for system in ("posix", "nt")}
_FUNCTIONS |= {("io", "open"): _FILE, ("_io", "open"): _FILE, ("builtins", "input"): _INPUT}

_ENVIRONMENT = type(os.environ)

#: Modules that look at clocks and files for purposes of their own.
_HARMLESS = frozenset(("logging", "warnings", "linecache", "traceback", "tokenize", "threading", "queue"))


def reads_outside(function: Any) -> tuple[str, str] | None:
    """What a function reads of the world outside, and what to do instead; None for most functions."""
    if not isinstance(function, (types.BuiltinFunctionType, types.MethodType)):
        return None
    owner, name = function.__self__, function.__name__
    if owner is None or isinstance(owner, types.ModuleType):
        return _FUNCTIONS.get((getattr(function, "__module__", None) or "", name))
    return _RANDOM if isinstance(owner, random.Random) and name in _DRAWS else None


def is_clock_method(kind: Any, name: str) -> bool:
    """Whether it is the time that a class of `datetime` tells: that class takes nothing in their place."""
    return name in ("now", "utcnow", "today") and getattr(kind, "__module__", "") == "datetime"


def refusal(name: str, what: tuple[str, str]) -> str:
    """Why what a function reads outside cannot be captured."""
    return f"{name} {what[0]}, and every later call would use the same value again; {what[1]}"


class Patch(NamedTuple):
    """Where the user's code finds a function: a key of a dict, a closure cell, a method of a class."""

    holder: Any
    key: str

    def get(self) -> Any:
        """The function; None where a class has it from a base alone."""
        if isinstance(self.holder, types.CellType):
            return self.holder.cell_contents
        return (vars(self.holder) if isinstance(self.holder, type) else self.holder).get(self.key)

    def put(self, function: Any) -> None:
        if isinstance(self.holder, types.CellType):
            self.holder.cell_contents = function
        elif not isinstance(self.holder, type):
            self.holder[self.key] = function
        elif function is None:
            delattr(self.holder, self.key)
        else:
            setattr(self.holder, self.key, function)


@contextmanager
def patched(
    found: Iterable[Patch], refuse: Callable[[str], None], reads_environment: Callable[[], None]
) -> Iterator[None]:
    """Within the block, functions that read the world outside say so where this thread's user calls them.

    found              where the user's names lead to one at once
    refuse             takes why; what it raises, the user's code meets
    reads_environment  `os.environ` is read
    """
    thread = threading.get_ident()

    def reporting(function: Any, tell: Callable[[types.FrameType], None]) -> Any:
        def instead(*args: Any, **kwargs: Any) -> Any:
            if threading.get_ident() == thread:
                caller = user_who_called(sys._getframe(1))
                if caller is not None:
                    tell(caller)
            return function(*args, **kwargs)

        return instead

    def refusing(function: Any, what: tuple[str, str]) -> Any:
        def tell(caller: types.FrameType) -> None:
            line = f"{caller.f_code.co_filename}:{caller.f_lineno}"
            refuse(refusal(f"{line}: {function.__qualname__}()", what))

        return reporting(function, tell)

    patches = {(id(place.holder), place.key): place for place in (*_patches(), *found)}
    with ExitStack() as stack:
        for place in patches.values():
            before = place.get()
            if place.holder is _ENVIRONMENT:
                new = reporting(before, lambda caller: reads_environment())
            elif isinstance(place.holder, type):
                new = refusing(getattr(place.holder, place.key), _RANDOM)
            else:
                what = reads_outside(before)
                if what is None:  # it is patched already, by others
                    continue
                new = refusing(before, what)
            stack.callback(place.put, before)
            place.put(new)
        yield


def _patches() -> list[Patch]:
    """Where modules and classes have these functions."""
    found = [Patch(random.Random, name) for name in _DRAWS]
    found += [Patch(vars(random), name) for name in (*_DRAWS, "_urandom")]
    found.append(Patch(_ENVIRONMENT, "__getitem__"))
    for module, names in ((time, _CLOCKS), (os, (*_DISK, "urandom", "getrandom")), (io, ("open",))):
        found += [Patch(vars(module), name) for name in names if hasattr(module, name)]
    return [*found, *[Patch(vars(builtins), name) for name in ("open", "input")]]


def user_who_called(frame: types.FrameType) -> types.FrameType | None:
    """The frame of the user's code that this is, or that called it through libraries only.

    What lazygrad calls where it computes, a device or an observer of the user's, is part of no function.
    """
    at: types.FrameType | None = frame
    collectors = codes_of_collectors()
    while at is not None:
        if at.f_code in collectors:
            return None
        if is_user_code(at.f_code):
            return None if _is_of_the_engine(at) else at
        file = at.f_code.co_filename
        module = at.f_globals.get("__name__", "").partition(".")[0]
        if is_own_file(file) or file.startswith("<frozen importlib") or module in _HARMLESS:
            return None
        at = at.f_back
    return None


#: The folders that compute: none of them calls the function that is captured.
_ENGINE = (COMPUTING | {"device"}) - {"jit"}


def _is_of_the_engine(frame: types.FrameType) -> bool:
    """Whether lazygrad called this code where it computes."""
    at = frame.f_back
    while at is not None:
        file = at.f_code.co_filename
        if is_own_file(file):
            return file.removeprefix(PACKAGE).partition(os.sep)[0] in _ENGINE
        at = at.f_back
    return False


def codes_of_collectors() -> set[types.CodeType]:
    """What the garbage collector calls: that runs at any time and is no part of a function."""
    return {f.__code__ for f in gc.callbacks if isinstance(f, types.FunctionType)}


class NumpyRandom:
    """The states of numpy's generators before the capture: their methods cannot be patched."""

    def __init__(self) -> None:
        self._states: list[tuple[str, Any, Any]] = []
        module = sys.modules.get("numpy.random.mtrand")
        if module is not None:
            self.note(module._rand, "numpy.random")

    def note(self, value: Any, name: str) -> None:
        """Note a generator's state, if the value is one."""
        state = _state_of(value)
        if state is not None:
            self._states.append((name, value, repr(state)))

    def drawn(self) -> str | None:
        """Which of them has drawn since, and what to do instead."""
        for name, value, state in self._states:
            if repr(_state_of(value)) != state:
                return (
                    f"{name} {_RANDOM[0]}, and every later call would use the same value again; {_RANDOM[1]}"
                )
        return None


def _state_of(value: Any) -> Any:
    """The state of one of numpy's generators, in short; None for everything else."""
    if not type(value).__module__.startswith("numpy.random"):
        return None
    bits = getattr(value, "_bit_generator", None) or getattr(value, "bit_generator", value)
    state = getattr(bits, "state", None)
    if not isinstance(state, dict):
        return None
    return {key: _brief(part) for key, part in state.items()}


def _brief(part: Any) -> Any:
    if isinstance(part, dict):
        return {key: _brief(each) for key, each in part.items()}
    return part.tobytes() if hasattr(part, "tobytes") else part

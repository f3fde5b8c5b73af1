"""What reads the world outside: random numbers, clocks, files. A replay could not know what they would give.

The profiler of a capture (environment.py) shows each function that is called. One of these counts where the
user's code called it, itself or through the standard library or numpy, and not where a log line asks for the
time or a warning for its line.
"""

from __future__ import annotations

import gc
import os
import random
import sys
import types
from typing import Any

from ..engine.frames import PACKAGE
from .bytecode import is_own_file, is_user_code

_RANDOM = (
    "draws a random number",
    "draw it outside and pass it as an argument, or use Tensor.rand",
)
_CLOCK = "reads a clock", "read it outside and pass the time as an argument"
_FILE = "reads a file or the disk", "read it outside and pass what it gives as an argument"
_INPUT = "reads what somebody types", "read it outside and pass what it gives as an argument"

_CLOCKS = frozenset(("time", "monotonic", "perf_counter", "process_time", "thread_time", "clock_gettime"))
_CLOCKS |= {f"{name}_ns" for name in _CLOCKS}
_CLOCKS |= {"localtime", "gmtime", "ctime", "asctime", "strftime"}
_DISK = ("open", "read", "pread", "stat", "lstat", "fstat", "listdir", "scandir", "readlink", "access")
_READS = ("read", "read1", "readline", "readlines", "readinto", "readall", "getvalue", "peek")

#: (module, function) → what it does, and what to do instead.
_FUNCTIONS = {("time", name): _CLOCK for name in _CLOCKS}
_FUNCTIONS |= {(system, name): _FILE for name in _DISK for system in ("posix", "nt")}
_FUNCTIONS |= {(system, name): _RANDOM for name in ("urandom", "getrandom") for system in ("posix", "nt")}
_FUNCTIONS |= {("io", "open"): _FILE, ("_io", "open"): _FILE, ("builtins", "input"): _INPUT}

#: Modules that look at clocks and files for purposes of their own.
_HARMLESS = frozenset(("logging", "warnings", "linecache", "traceback", "tokenize", "threading", "queue"))


def reads_outside(function: Any, frame: types.FrameType) -> str | None:
    """What a C function that a frame calls would freeze, and what to do instead; None for most functions."""
    what = _of_function(function)
    if what is None:
        return None
    caller = user_who_called(frame)
    if caller is None:
        return None
    name = getattr(function, "__qualname__", function.__name__)
    line = f"{caller.f_code.co_filename}:{caller.f_lineno}"
    return f"{line}: {name}() {what[0]}, and every later call would use the same value again; {what[1]}"


def user_who_called(frame: types.FrameType) -> types.FrameType | None:
    """The frame of the user's code that this is, or that called it through libraries only."""
    at: types.FrameType | None = frame
    collectors = codes_of_collectors()
    while at is not None:
        if at.f_code in collectors:
            return None
        if is_user_code(at.f_code):
            return at
        file = at.f_code.co_filename
        module = at.f_globals.get("__name__", "").partition(".")[0]
        if is_own_file(file) or file.startswith("<frozen importlib") or module in _HARMLESS:
            return None
        at = at.f_back
    return None


#: Layers of lazygrad that call no function of a user.
_LAYERS = [
    "codegen",
    "device",
    "direct",
    "engine",
    "gpu",
    "oracle",
    "programs",
    "report",
    "runtime",
    "schedule",
    "sharding",
]
_ENGINE = tuple([f"{PACKAGE}{layer}{os.sep}" for layer in _LAYERS])


def is_of_the_engine(frame: types.FrameType) -> bool:
    """Whether lazygrad's own engine called this code, such as a library that it asks for the place of the
    cache, or a hook of the first import of one. That is no part of a captured function.
    """
    at = frame.f_back
    while at is not None:
        file = at.f_code.co_filename
        if is_own_file(file):
            return file.startswith(_ENGINE)
        at = at.f_back
    return False


def codes_of_collectors() -> set[types.CodeType]:
    """What the garbage collector calls: that runs at any time and is no part of a function."""
    return {f.__code__ for f in gc.callbacks if isinstance(f, types.FunctionType)}


def _of_function(function: Any) -> tuple[str, str] | None:
    owner = getattr(function, "__self__", None)
    name = getattr(function, "__name__", "")
    if owner is None or isinstance(owner, types.ModuleType):
        return _FUNCTIONS.get((getattr(function, "__module__", None) or "", name))
    if isinstance(owner, random.Random):
        return _RANDOM if name in ("random", "getrandbits") else None
    if isinstance(owner, type):
        return _CLOCK if name in ("now", "utcnow", "today") and owner.__module__ == "datetime" else None
    if name in _READS and hasattr(type(owner), "readable"):
        return _FILE
    return None


class NumpyRandom:
    """The states of numpy's generators before the capture: a profiler does not see their functions."""

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

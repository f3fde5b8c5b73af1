"""Every flag: name, type, default and one sentence; and `Context`, which changes flags for a while.

A flag is read from the environment when first asked, compares like its value, and is overridden per thread by
`with Context(DEBUG=2): ...`.
"""

from __future__ import annotations

import functools
import os
import re
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class _Overlay(threading.local):
    """What this thread's open `Context`s say; an empty dict in a new thread."""

    def __init__(self) -> None:
        self.values: dict[str, int | str] = {}


_overlay = _Overlay()


class ContextVar:
    """A flag. `int(FLAG)`, `FLAG >= 2`, `if FLAG:` and `FLAG.value` read what holds in this thread now."""

    all: dict[str, ContextVar] = {}

    #: How often a flag, or another setting of the whole process, was changed.
    changes = 0
    #: The flags with which the same kernel becomes other code: a part of the keys of programs.
    of_code: list[ContextVar] = []
    #: The flags with which the same call becomes other kernels, or runs them otherwise.
    of_graphs: list[ContextVar] = []

    def __init__(
        self,
        name: str,
        default: int | str,
        doc: str,
        changes_code: bool = False,
        words: tuple[str, ...] = (),
        default_text: str = "",
        changes_graphs: bool = False,
    ) -> None:
        self.name, self.default, self.doc = name, default, doc
        self.default_text = default_text or str(default)  #: where the default is another on every machine
        self.words = words  #: what a number may be besides a number
        self._process = self._parse(os.environ.get(name))
        ContextVar.all[name] = self
        if changes_code:
            ContextVar.of_code.append(self)
        if changes_graphs:
            ContextVar.of_graphs.append(self)

    @property
    def value(self) -> Any:
        values = _overlay.values
        return values.get(self.name, self._process) if values else self._process

    def set_default(self, value: int | str) -> None:
        """Change the flag for the whole process (threads inside a `Context` keep theirs)."""
        self._process = self._parse(str(value))
        setting_changed()

    def accepts(self, value: int | str) -> bool:
        """Whether the flag can have this value."""
        return isinstance(value, type(self.default)) or value in self.words

    @property
    def allowed(self) -> str:
        """What the flag can be, in words."""
        return "a string" if isinstance(self.default, str) else " or ".join(["a whole number", *self.words])

    def _parse(self, text: str | None) -> int | str:
        if text is None:
            return self.default
        if isinstance(self.default, str) or text in self.words:
            return text
        try:
            return int(text) if text.strip() else self.default
        except ValueError:
            raise ValueError(
                f"{self.name} must be {self.allowed}, not {text!r}; the default is {self.default}"
            ) from None

    def converted(self, value: int | str) -> int | str:
        """A value that is accepted, as `value` gives it."""
        return value

    def __bool__(self) -> bool:
        return bool(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __index__(self) -> int:
        return int(self.value)

    def __eq__(self, other: object) -> bool:
        return bool(self.value == other)

    def __hash__(self) -> int:
        return id(self)

    def __ge__(self, other: int) -> bool:
        return bool(self.value >= other)

    def __gt__(self, other: int) -> bool:
        return bool(self.value > other)

    def __le__(self, other: int) -> bool:
        return bool(self.value <= other)

    def __lt__(self, other: int) -> bool:
        return bool(self.value < other)

    def __repr__(self) -> str:
        return f"{self.name}={self.value!r}"


#: What a number of bytes may end in.
_UNITS = {
    **{f"{letter}B": 1000**power for power, letter in enumerate("KMGT", 1)},
    **{f"{letter}iB": 1024**power for power, letter in enumerate("KMGT", 1)},
    "B": 1,
    "": 1,
}


class SizeVar(ContextVar):
    """A flag that is a number of bytes; it may be given with a unit, as `600MB` or `2.5GiB`."""

    def accepts(self, value: int | str) -> bool:
        """Whether the flag can have this value."""
        return self._bytes(value) is not None

    @property
    def allowed(self) -> str:
        """What the flag can be, in words."""
        return "a number of bytes, with a unit or without, as 600MB or 2.5GiB"

    def converted(self, value: int | str) -> int | str:
        """The bytes."""
        found = self._bytes(value)
        return self.default if found is None else found

    def _parse(self, text: str | None) -> int | str:
        if text is None or not text.strip():
            return self.default
        found = self._bytes(text)
        if found is None:
            raise ValueError(
                f"{self.name} must be {self.allowed}, not {text!r}; the default is {self.default_text}"
            )
        return found

    @staticmethod
    def _bytes(value: int | str) -> int | None:
        if isinstance(value, int):
            return value if value >= 0 and not isinstance(value, bool) else None
        match = (
            re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", value) if isinstance(value, str) else None
        )
        if match is None:
            return None
        by_name = {name.lower(): size for name, size in _UNITS.items()}
        unit = by_name.get(match[2].lower())
        return None if unit is None else round(float(match[1]) * unit)


class AnswersVar(ContextVar):
    """A flag that says how decisions are answered (`decisions/`), in parts with `;` between them."""

    #: `random:SEED`, for all decisions or for those that are named; and one answer.
    RANDOM = re.compile(r"random:(-?\d+)(?::(\w+(?:,\w+)*))?")
    ANSWER = re.compile(r"(\w+)@([0-9a-f]+)=(.+)")

    def accepts(self, value: int | str) -> bool:
        """Whether the flag can have this value."""
        if not isinstance(value, str):
            return False
        parts = [part.strip() for part in value.split(";")] if value.strip() else []
        randoms = sum(self.RANDOM.fullmatch(part) is not None for part in parts)
        answers = sum(self.ANSWER.fullmatch(part) is not None for part in parts)
        return randoms <= 1 and randoms + answers == len(parts)

    @property
    def allowed(self) -> str:
        """What the flag can be, in words."""
        return "empty, or random:SEED, as random:1, or NAME@STRUCTURE=ANSWER, or such parts with `;` between"

    def _parse(self, text: str | None) -> int | str:
        if text is None or not text.strip():
            return self.default
        if not self.accepts(text):
            raise ValueError(f"{self.name} must be {self.allowed}, not {text!r}")
        return text


def setting_changed() -> None:
    """Tell those who remember what followed from the settings: a setting of the whole process is another."""
    ContextVar.changes += 1


def flags_state() -> tuple[dict[str, int | str], int]:
    """Two things that are the same as before only where no flag has changed in this thread, nor another
    setting of the whole process (the default dtypes)."""
    return _overlay.values, ContextVar.changes


_Known = TypeVar("_Known")


class Decided(Generic[_Known]):
    """What follows from flags alone: worked out again only where one of them may have changed."""

    __slots__ = ("_changes", "_decide", "_known")

    def __init__(self, decide: Callable[[], _Known]) -> None:
        self._decide, self._changes = decide, -1
        self._known: Any = None

    def __call__(self) -> _Known:
        if _overlay.values:  # within a `Context`, which is of this thread alone
            return self._decide()
        changes = ContextVar.changes
        if self._changes != changes:
            self._known = self._decide()
            self._changes = changes  # last: another thread sees what belongs to it
        known: _Known = self._known
        return known


def getenv(name: str, default: Any = 0) -> Any:
    """An environment variable, converted to the type of `default`; a text that does not convert raises."""
    text = os.environ.get(name)
    if text is None:
        return default
    try:
        return type(default)(text)
    except ValueError:
        raise ValueError(f"{name} must be a {type(default).__name__}, not {text!r}") from None


def usable_cores() -> int:
    """How many cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


DEBUG = ContextVar(
    "DEBUG",
    0,
    "what is printed; each level adds to those below: 1 devices, 2 kernels and their times, 3 the reason for "
    "each kernel, 4 source code, 5 AST and UOps, 6 the output of every pass, 7 assembly",
)
NOOPT = ContextVar(
    "NOOPT",
    0,
    "1 turns off all kernel optimizations, so that the generated code is the plain loops",
    changes_code=True,
)
BEAM = ContextVar(
    "BEAM",
    0,
    "the width of the beam search for each kernel's optimizations; 0 uses a heuristic instead of a search",
    changes_code=True,
)
BEAM_KEEPS_ORDER = ContextVar(
    "BEAM_KEEPS_ORDER",
    0,
    "1 lets a search try only what adds up each float sum in the order of the heuristic's choice: no bit of "
    "a result changes",
    changes_code=True,
)
OPTS = AnswersVar(
    "OPTS",
    "",
    "how decisions that rest on predictions are answered: `random:SEED` takes any of the legal answers, "
    "another for each SEED, and `random:SEED:NAME,NAME` does so for these decisions; `NAME@STRUCTURE=ANSWER` "
    "gives one; empty takes what is predicted to be fastest",
    changes_code=True,
)
BEAM_TIMEOUT_SEC = ContextVar(
    "BEAM_TIMEOUT_SEC", 10, "seconds after which a search gives up a candidate, compiling included"
)
DEV = ContextVar("DEV", "", "the default device, for example CPU, CLANG or PYTHON", changes_graphs=True)
CHECK = ContextVar(
    "CHECK",
    0,
    "1 compares the result of every kernel with the interpreter's, and checks the output of every pass; "
    "nan reports the first kernel that computes a NaN or an infinity",
    changes_code=True,
    words=("nan",),
)
TRACEMETA = ContextVar(
    "TRACEMETA",
    1,
    "what a kernel records about your code: 0 nothing, 1 the method, 2 the method and its line",
)
TRACEBACK = ContextVar("TRACEBACK", 0, "1 shows the frames of lazygrad in tracebacks too (as DEBUG=1 does)")
CACHEDB = ContextVar(
    "CACHEDB",
    "",
    "path of the disk cache, in a folder that only you can write to; empty means `lazygrad/cache.db` in your "
    "cache folder",
)
CACHELEVEL = ContextVar(
    "CACHELEVEL",
    2,
    "what is cached: 2 compiled programs and captured models, in memory and on disk; 1 the same, but on disk "
    "only the results of searches; 0 nothing",
)
CC = ContextVar("CC", "", "the C compiler that device CLANG uses; empty tries clang, then gcc, then cc")
CPU_TARGET = ContextVar(
    "CPU_TARGET",
    "native",
    "the processor that CPU and CLANG generate code for: `native`, or one whose instructions this machine "
    "has, for example `x86-64-v3`",
)
DEBUG_STYLE = ContextVar(
    "DEBUG_STYLE", "", "how UOps are printed; `classic` prints trees and tables as tinygrad 0.9 did"
)
JIT = ContextVar(
    "JIT", 1, "0 turns TinyJit off, 1 replays a capture as one native call, 2 replays it kernel by kernel"
)
JIT_NESTED = ContextVar(
    "JIT_NESTED",
    "",
    "`error` raises an error where a jit is called inside the capture of another; empty inlines it",
)
POISON = ContextVar(
    "POISON",
    0,
    "1 fills memory that is uninitialized or no longer used with 0xFF, so that reading it gives NaN",
    changes_graphs=True,
)
THREADS = ContextVar(
    "THREADS",
    usable_cores(),
    "how many threads run a large kernel; results are the same for any number",
    default_text="your cores",
)
CHECK_INDEX = ContextVar(
    "CHECK_INDEX",
    1,
    "1 raises an error where an index or a class number is out of range; 0 reads 0 there and writes nothing",
    changes_graphs=True,
)
FUSE = ContextVar(
    "FUSE", 1, "0 turns fusion off: every operation is a kernel of its own", changes_graphs=True
)
MEMORY_BUDGET = SizeVar(
    "MEMORY_BUDGET",
    0,
    "how much memory a schedule may take for what it computes, on each device, for example `600MB` or "
    "`2.5GiB`: above it, values are computed again instead of kept; 0 sets no limit",
    changes_graphs=True,
)
PLAN_FOR = ContextVar(
    "PLAN_FOR",
    "",
    "what kernels are planned for where they run on another device: `cl`, `cuda`, `cuda:sm_90`, `metal` or "
    "`webgpu`, as `kernels(target=...)` does and, for a page, `lazygrad.export`; empty plans for the device",
    changes_code=True,
)
TF32 = ContextVar(
    "TF32",
    0,
    "1 lets NVIDIA's tensor cores multiply float32 numbers of which they read 10 bits after the point",
    changes_code=True,
)
FFT = ContextVar(
    "FFT",
    1,
    "0 computes all Fourier transforms as products with small matrices, as a GPU does",
    changes_graphs=True,
)
SCAN = ContextVar("SCAN", 1, "0 unrolls `Tensor.scan` instead of generating a loop", changes_graphs=True)
GRAPH = ContextVar("GRAPH", 0, "1 prints the graph of each computation before it is cut into kernels")
VIZ = ContextVar(
    "VIZ",
    0,
    "1 records what the process does, writes it to a file at the end and, on a terminal, shows it in a "
    "browser (`python -m lazygrad viz`); without a terminal it also prints graphs, as GRAPH does",
)
VIZ_SAVE = ContextVar(
    "VIZ_SAVE",
    "",
    "a file (.json or .json.gz) to which the process writes what it did at its end, as VIZ=1 does; "
    "each of the processes that MPI, Slurm or torchrun started adds its rank to the name",
)
NO_COLOR = ContextVar("NO_COLOR", "", "any value turns colours off")


class Context:
    """Set flags for a block, or for a function as a decorator: `with Context(DEBUG=2, NOOPT=1): ...`.

    The values hold in this thread only, nest, and are restored at the end. An unknown flag raises ValueError.
    """

    def __init__(self, **flags: int | str) -> None:
        for name, value in flags.items():
            flag = ContextVar.all.get(name)
            if flag is None:
                import difflib

                near = difflib.get_close_matches(name, ContextVar.all, 1)
                hint = f"; did you mean {near[0]}?" if near else ""
                raise ValueError(f"{name} is not a flag{hint}; known: {', '.join(sorted(ContextVar.all))}")
            if not flag.accepts(value):
                raise ValueError(f"{name} must be {flag.allowed}, not {value!r}")
        self.flags = {name: ContextVar.all[name].converted(value) for name, value in flags.items()}
        self._outer: list[dict[str, int | str]] = []

    @staticmethod
    def here() -> Context:
        """What the open Contexts of this thread say, for another thread."""
        return Context(**_overlay.values)

    def __enter__(self) -> Context:
        self._outer.append(_overlay.values)
        _overlay.values = {**_overlay.values, **self.flags}
        return self

    def __exit__(self, *exc: object) -> None:
        _overlay.values = self._outer.pop()

    def __call__(self, function: F) -> F:
        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with Context(**self.flags):
                return function(*args, **kwargs)

        return inside  # type: ignore[return-value]

"""What is noted while a jit captures: the kernels that run, their memory, the random numbers drawn."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from ..config import JIT_NESTED
from ..device import Buffer
from ..engine.frames import PACKAGE
from ..engine.realize import recording
from ..ir import uop as graph
from ..ir.uop import UOp, readers
from ..schedule.kernels.items import ScheduleItem
from ..tensor.observer import Observer, observing
from .errors import JitError


class Draws:
    """The random numbers of one call: counted from where it begins, until it sets the state itself."""

    def __init__(self) -> None:
        self.start: tuple[int, int] | None = None
        self.offset: dict[tuple[int, int], int] = {}  # (seed, base) → numbers since the start
        self.read: dict[tuple[int, int], int | None] = {}  # states that were read → numbers since the start
        self.total = 0
        self.relative = True
        self.final: tuple[int, int] | None = None  # the state at the end, where the call set it

    def drew(self, seed: int, base: int, count: int) -> None:
        if self.relative:
            if self.start is None:
                self.start = seed, base
            self.offset[seed, base] = self.total
            self.total += count
        else:
            if (seed, base) in self.offset:
                raise JitError(
                    "the function draws random numbers, and then sets the seed they began with: "
                    "a capture cannot tell the two apart; set the seed first, or outside"
                )
            self.final = seed, base + count

    def was_read(self, seed: int, base: int) -> None:
        self.read[seed, base] = self.total if self.relative else None

    def was_set(self, seed: int, base: int) -> None:
        known = self.read.get((seed, base))
        if known is not None:  # back to where this call has been, as fork_random does
            self.relative, self.total, self.final = True, known, None
        else:
            self.relative, self.final = False, (seed, base)

    def source(self, name: str, value: int) -> Hashable | None:
        """What an integer of a kernel is: the seed, a base counted from the start, or none of these."""
        if self.start is None:
            return None
        if name == "base":
            offset = self.offset.get((self.start[0], value))
            return None if offset is None else ("base", offset)
        return "seed" if name == "seed" and value == self.start[0] else None


class Capture(Observer):
    """One capture: the items that ran in this thread, in order, and what their memory was before they did.

    It is what observes the thread (tensor/observer.py). Errors call it `owner`.
    """

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.items: list[ScheduleItem] = []
        self.fresh: set[Buffer] = set()
        self.zeroed: set[Buffer] = set()
        self.draws = Draws()
        self.read_values: dict[str, int] = {}  # what Python read of bound Variables, by name
        self.limits: dict[UOp, None] = {}  # index expressions that must not be negative
        self._known: set[Buffer] = set()
        self._made: dict[int, weakref.ref[Any]] = {}
        self._assigned: dict[int, weakref.ref[Any]] = {}

    def note(self, item: ScheduleItem) -> None:
        """About to run: memory that has none yet is new in this call."""
        for buffer in item.inputs:
            base = buffer.base
            if base not in self._known and not base.is_allocated:
                self.zeroed.add(base)
            self._known.add(base)
        for buffer in item.outputs:
            base = buffer.base
            if base not in self._known and not base.is_allocated:
                self.fresh.add(base)
            self._known.add(base)
        self.items.append(item)

    def note_value(self, bind: UOp, decides: bool = False) -> None:
        """Somebody asks for the value of a bound Variable.

        It counts where that is the function, or where the graph is another for another value: `decides`.
        """
        frame = sys._getframe(1)
        while frame.f_code.co_filename == graph.__file__ and frame.f_back is not None:
            frame = frame.f_back
        if decides or not frame.f_code.co_filename.startswith(PACKAGE):
            variable, number = bind.src
            self.read_values[variable.arg[0]] = number.arg

    def note_limit(self, room: UOp) -> None:
        """What was done is right only where this expression over Variables is 0 or more."""
        self.limits[room] = None

    # *** as an Observer

    def made(self, tensor: Any) -> None:
        self._made[id(tensor)] = weakref.ref(tensor)

    def wrote(self, written: Any) -> None:
        self._assigned[id(written)] = weakref.ref(written)

    def is_made(self, tensor: Any) -> bool:
        """Whether the function has made this tensor."""
        ref = self._made.get(id(tensor))
        return ref is not None and ref() is tensor

    def was_assigned(self, written: Any) -> bool:
        """Whether the function has written this memory, or this tensor."""
        ref = self._assigned.get(id(written))
        return ref is not None and ref() is written

    def value_is_read(self) -> None:
        """A value read by Python in a capture would be frozen: every replay would go on with it."""
        frame: FrameType | None = sys._getframe(1)
        inner = ""
        while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
            name = frame.f_code.co_name
            if name != "wrapper":
                inner = name
            frame = frame.f_back
        line = f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else "?"
        raise JitError(
            f"{line}: {_SPOKEN.get(inner, f'.{inner}()')} reads a tensor's value while {self.owner} is "
            "captured, and every later call would use that value; return the tensor and read it "
            "outside, or decide with where()"
        )

    def drew(self, seed: int, base: int, count: int) -> None:
        self.draws.drew(seed, base, count)

    def random_state_is_read(self, seed: int, base: int) -> None:
        self.draws.was_read(seed, base)

    def random_state_is_set(self, seed: int, base: int) -> None:
        self.draws.was_set(seed, base)


#: How a method is written by who calls it.
_SPOKEN = {
    "__bool__": "if/bool()",
    "__float__": "float()",
    "__int__": "int()",
    "__index__": "using it as an index",
}
_SPOKEN |= {"__format__": "formatting it", "__array__": "numpy", "__dlpack__": "DLPack"}


class _Capturing(threading.local):
    """The captures that are open in this thread: one, since inner jits are inlined."""

    now: Capture | None = None


capturing = _Capturing()


@contextmanager
def recorded(capture: Capture) -> Iterator[None]:
    """Within the block, what this thread runs is noted in the capture."""
    capturing.now = observing.by = capture
    recording.note, readers.note, readers.limit = capture.note, capture.note_value, capture.note_limit
    try:
        yield
    finally:
        capturing.now = observing.by = recording.note = readers.note = readers.limit = None


@contextmanager
def unrecorded() -> Iterator[None]:
    """Within the block, what this thread runs is no part of a capture."""
    capture, note = capturing.now, recording.note
    capturing.now = observing.by = recording.note = None
    try:
        yield
    finally:
        capturing.now = observing.by = capture
        recording.note = note


def refuse_nested(capture: Capture) -> None:
    """Under JIT_NESTED=error, a jit that is called in the capture of another is an error."""
    if JIT_NESTED == "error":
        open_jits = f"[{capture.owner}]"
        raise JitError(
            f"having TinyJit inside another TinyJit is not supported len(capturing)=1 capturing={open_jits}"
        )

"""What must not be torn apart, by another thread, by a fork, by Ctrl-C; and threads of our own, which nobody
waits for in vain.
"""

from __future__ import annotations

import _thread
import atexit
import ctypes
import mmap
import os
import queue
import threading
import weakref
from collections import deque
from collections.abc import Callable
from types import FrameType
from typing import Any, Generic, TypeVar

try:  # below the module `signal`, whose functions make enums: 0.2 µs a call, not 3
    import _signal as signal  # type: ignore[import-not-found]
except ImportError:
    import signal

K = TypeVar("K")
V = TypeVar("V")

# *** locks that a fork must not tear

_fork_locks: list[Any] = []
_locked_by_fork: list[Any] = []


def lock_across_fork() -> Any:
    """A new re-entrant lock that stays usable in a forked child, and that no fork finds half-way through."""
    lock = threading.RLock()
    _fork_locks.append(lock)
    return lock


def _before_fork() -> None:
    """Take every lock, so that a child never inherits half-done work or a lock whose owner it does not have.

    Threads nest them in orders of their own, so none is waited for while others are held.
    """
    first = None
    while True:
        held = []
        if first is not None:
            first.acquire()
            held.append(first)
        for lock in [each for each in _fork_locks if each is not first]:
            if not lock.acquire(blocking=False):
                break
            held.append(lock)
        else:
            _locked_by_fork.extend(held)
            return
        for taken in held:
            taken.release()
        first = lock


def _after_fork() -> None:
    while _locked_by_fork:
        _locked_by_fork.pop().release()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)

#: Guards what the garbage collector may change at any allocation: the table of nodes, free lists, counts; and
#: what nodes have become. One lock for all of it, since whoever holds it may at any point be made to drop a
#: node or a Buffer. Held for microseconds, never while something is planned, compiled or run.
table_lock = lock_across_fork()

# *** work that Ctrl-C must not tear


def in_main_thread() -> bool:
    """Whether this thread is the one that has signals."""
    return _this_thread() == _main_thread


_this_thread = threading.get_ident
_main_thread = threading.main_thread().ident


def _note_main_thread() -> None:
    """In a forked child the thread that forked is the main one."""
    global _main_thread
    _main_thread = threading.get_ident()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_main_thread)


class uninterrupted:
    """Within it Ctrl-C waits for the end of the block; pressed a second time, it no longer does.

    For steps that belong together: a kernel that writes in place, and the note that it ran.
    """

    __slots__ = ("_handler", "_pending")

    def __enter__(self) -> None:
        self._handler: Any = None
        self._pending: tuple[int, FrameType | None] | None = None
        if _this_thread() == _main_thread:  # no other has signals
            handler = signal.getsignal(signal.SIGINT)
            if callable(handler):
                self._handler = handler
                signal.signal(signal.SIGINT, self._postpone)

    def _postpone(self, number: int, frame: FrameType | None) -> None:
        if self._pending is not None:
            self._handler(number, frame)
        self._pending = (number, frame)

    def __exit__(self, *exc: object) -> None:
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)
            if self._pending is not None:
                self._handler(*self._pending)


# *** the end of an object, where Ctrl-C would be lost


def left_to(queue: deque[Any]) -> Any:
    """A `__del__` that puts the object onto a queue, for whoever comes next to end it.

    Nothing written in Python runs at an object's end: there Python drops a KeyboardInterrupt, with a note on
    the screen. Nor is there a lock to wait for. (PyInstanceMethod binds a function of C as a method.)
    """
    as_method = ctypes.pythonapi.PyInstanceMethod_New
    as_method.restype, as_method.argtypes = ctypes.py_object, [ctypes.py_object]
    return as_method(queue.append)


class WeakKeys(Generic[K, V]):
    """A dict by objects' identity that does not keep them alive; a dead one's value goes with the next `put`.

    (The end of a key of `weakref.WeakKeyDictionary` runs a function written in Python.)
    """

    def __init__(self) -> None:
        self._values: dict[int, tuple[weakref.ref[K], V]] = {}
        self._dead: deque[weakref.ref[K]] = deque()
        #: identity of a reference → that of its object, also when that has ended
        self._keys: dict[int, int] = {}

    def get(self, key: K) -> V | None:
        """The value of a key, if it has one."""
        found = self._values.get(id(key))
        return found[1] if found is not None and found[0]() is key else None

    def put(self, key: K, value: V) -> V:
        """Give a key its value, unless another thread was faster; returns the one that it has."""
        with table_lock:
            found = self.get(key)
            if found is None:
                self.set(key, value)
                return value
            return found

    def set(self, key: K, value: V) -> None:
        """Give a key this value, whether it has one or not."""
        with table_lock:
            while self._dead:
                gone = self._dead.popleft()
                number = self._keys.pop(id(gone), 0)
                if number in self._values and self._values[number][0] is gone:
                    del self._values[number]
            reference = weakref.ref(key, self._dead.append)
            self._keys[id(reference)] = id(key)
            before = self._values.get(id(key))
            if before is not None:
                self._keys.pop(id(before[0]), None)
            self._values[id(key)] = (reference, value)


# *** threads of our own

# `threading.Thread.start` waits until the new thread says that it runs, and waits for ever where there is no
# memory left to say so. Here whoever waits looks whether the thread is there.

#: How often whoever waits looks whether the thread is still there, should nothing have told it.
LOOK_S = 0.2
#: Bytes of address space without which none is begun: a stack, and what libraries keep for each thread. Where
#: the system has none for those it ends the process.
ROOM = 24 << 20


class NoThread(Exception):
    """The system has no thread left, or no memory for one."""


class _Life:
    """Its thread alone has it, so that it ends when the thread does, wherever that was."""

    __slots__ = ("__weakref__",)


class Working:
    """`work()` on a thread that has begun; NoThread where none can be started."""

    def __init__(self, work: Callable[[], object]) -> None:
        try:
            mmap.mmap(-1, ROOM).close()
            self._ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
            life = _Life()
            self._life = weakref.ref(life, self._ended.put)
            with table_lock:
                _all[:] = [*(each for each in _all if each.is_alive()), self]
            _thread.start_new_thread(_run, (work, life))
        except (RuntimeError, MemoryError, OSError) as error:
            raise NoThread(str(error)) from None

    def is_alive(self) -> bool:
        """Whether the thread is there; one that could not even begin its work is not."""
        return self._life() is not None

    def wait(self) -> None:
        """Wait for the thread's end. Ctrl-C ends the waiting."""
        while self._life() is not None:
            try:
                self._ended.get(timeout=LOOK_S)
            except queue.Empty:
                continue


def _run(work: Callable[[], object], life: _Life) -> None:
    del life  # the system's call of this alone has it now: an error that is kept keeps this frame
    work()


#: Those that may be there.
_all: list[Working] = []
#: What is to be done before the threads are waited for when the interpreter ends.
before_exit: list[Callable[[], None]] = []


def _wait_for_all() -> None:
    """A thread must not come back from native code into an interpreter that is gone."""
    for prepare in before_exit:
        prepare()
    for each in _all:
        each.wait()


atexit.register(_wait_for_all)

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_all.clear)  # threads stay with the parent

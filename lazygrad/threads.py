"""A thread of our own for a piece of work, whose start and end are never waited for in vain.

`threading.Thread.start` waits until the new thread says that it runs, and waits for ever where there is no
memory left to say so. Here whoever waits looks whether the thread is there.
"""

from __future__ import annotations

import _thread
import atexit
import mmap
import os
import queue
import weakref
from collections.abc import Callable
from typing import Any

from .locks import table_lock

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

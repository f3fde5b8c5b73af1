"""The compile thread: it compiles a kernel while the thread that asked lowers the next one of a schedule.

LLVM compiles outside of Python's lock, and only one thread at a time may be in LLVM, so there is one such
thread. It exists as long as there is work: nothing is to be stopped at exit, and a forked child has none.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from typing import Protocol

from ..locks import LOOK_S, NoThread, Working, before_exit, lock_across_fork

#: How long one thread keeps Python's lock while the other wants it. A compile takes it about 15 times; with
#: Python's own 5 ms it waits longer than it works.
SWITCH_S = 5e-5

#: Python keeps the interval in whole microseconds and cuts off what is more: 15 of them are read as
#: 1.4999999999999999e-05, which would be written back as 14.
HALF_A_MICROSECOND = 5e-7


class Job(Protocol):
    """Something to do on the thread. One of the two is called, and raises nothing."""

    def run(self) -> None: ...

    def drop(self) -> None: ...


class Background:
    """Runs jobs one after the other on a thread of its own."""

    def __init__(self) -> None:
        self._lock = lock_across_fork()
        self._jobs: deque[Job] = deque()
        self._thread: Working | None = None
        self._interval = 0.0

    def submit(self, job: Job) -> None:
        """Have a job done soon; at once, where no thread can be started."""
        with self._lock:
            self._jobs.append(job)
            if self.is_working():
                return
            self._end()  # of a thread that had no memory to go on
            self._interval = sys.getswitchinterval()
            try:
                self._thread = Working(self._run)
                sys.setswitchinterval(min(SWITCH_S, self._interval))
                return
            except NoThread:
                pass
        self._run()

    def is_working(self) -> bool:
        """Whether there is a thread: else nobody does what waits, until the next `submit`."""
        thread = self._thread
        return thread is not None and thread.is_alive()

    def wait_for(self, done: threading.Event) -> bool:
        """Wait for what a job sets at its end; False where the thread ended before."""
        while not done.wait(LOOK_S):
            if not self.is_working():
                return done.is_set()
        return True

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._jobs:
                    self._end()
                    return
                job = self._jobs.popleft()
            job.run()

    def _end(self) -> None:
        if self._thread is not None:
            sys.setswitchinterval(self._interval + HALF_A_MICROSECOND)
            self._thread = None

    def drop_all(self) -> None:
        """When Python ends it waits for the thread; it need not wait for what nobody will run."""
        with self._lock:
            while self._jobs:
                self._jobs.popleft().drop()

    def after_fork_in_child(self) -> None:
        """The thread was the parent's, and so is what it was to do."""
        self._jobs.clear()
        self._end()


background = Background()
before_exit.append(background.drop_all)

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=background.after_fork_in_child)

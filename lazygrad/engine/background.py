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

from ..locks import lock_across_fork

#: How long one thread keeps Python's lock while the other wants it. A compile takes it about 15 times; with
#: Python's own 5 ms it waits longer than it works.
SWITCH_S = 5e-5


class Job(Protocol):
    """Something to do on the thread. One of the two is called, and raises nothing."""

    def run(self) -> None: ...

    def drop(self) -> None: ...


class Background:
    """Runs jobs one after the other on a thread of its own."""

    def __init__(self) -> None:
        self._lock = lock_across_fork()
        self._jobs: deque[Job] = deque()
        self._thread: threading.Thread | None = None
        self._interval = 0.0

    def submit(self, job: Job) -> None:
        """Have a job done soon; at once, where no thread can be started."""
        with self._lock:
            self._jobs.append(job)
            if self._thread is not None:
                return
            self._thread = threading.Thread(target=self._work, name="lazygrad compile")
            self._interval = sys.getswitchinterval()
            sys.setswitchinterval(min(SWITCH_S, self._interval))
            try:
                self._thread.start()
                return
            except RuntimeError:  # the interpreter ends, or the system has no threads left
                self._thread = None
                sys.setswitchinterval(self._interval)
        self._work()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._jobs:
                    self._end()
                    return
                job = self._jobs.popleft()
            # Python waits for this thread when it ends; it need not wait for what nobody will run.
            if threading.main_thread().is_alive():
                job.run()
            else:
                job.drop()

    def _end(self) -> None:
        if self._thread is not None:
            self._thread = None
            sys.setswitchinterval(self._interval)

    def after_fork_in_child(self) -> None:
        """The thread was the parent's, and so is what it was to do."""
        self._jobs.clear()
        self._end()


background = Background()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=background.after_fork_in_child)

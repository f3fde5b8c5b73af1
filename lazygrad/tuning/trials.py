"""Programs tried in a child process, which is killed where it hangs and started anew where it died."""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
import threading
from pathlib import Path
from typing import Any

from ..codegen.records import record_of
from ..config import THREADS
from ..renderer import ProgramSpec

Memory = list[tuple[str, int]]


class TrialError(RuntimeError):
    """A candidate that gave no answer: it was refused, crashed, or took too long."""


class Trials:
    """The child that tries programs of one device. `memory` is the (dtype, size) of each buffer."""

    def __init__(self, device: str) -> None:
        self.device = device
        self._child: Any = None

    def time(
        self, spec: ProgramSpec, memory: Memory, values: tuple[int, ...], limit: float, best: float | None
    ) -> float:
        """Seconds of one run. TrialError where there is none within `limit` seconds, compiling included."""
        seconds: float = self._ask("time", memory, limit, record_of(spec, b""), values, best)
        return seconds

    def outputs(
        self, spec: ProgramSpec, memory: Memory, values: tuple[int, ...], limit: float
    ) -> list[bytes]:
        """What the program leaves in the buffers it writes, after one run on numbers that never change."""
        contents: list[bytes] = self._ask(
            "outputs", memory, limit, record_of(spec, b""), values, list(spec.outs)
        )
        return contents

    def close(self) -> None:
        """End the child."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.wait()
            for stream in (child.stdin, child.stdout):
                with contextlib.suppress(OSError):
                    stream.close()

    def _ask(self, what: str, memory: Memory, limit: float, *rest: Any) -> Any:
        if self._child is None:
            self._start()
            limit += START_S
        child, killed = self._child, threading.Event()

        def kill() -> None:
            killed.set()
            child.kill()

        alarm = threading.Timer(limit, kill)
        alarm.daemon = True
        try:
            alarm.start()
            pickle.dump((what, memory, limit + 1, *rest), child.stdin)
            child.stdin.flush()
            state, answer = pickle.load(child.stdout)
        except (EOFError, OSError, pickle.UnpicklingError):
            code = child.wait()
            self.close()
            reason = f"takes more than {limit:g} s" if killed.is_set() else f"ends its process ({code})"
            raise TrialError(reason) from None
        except BaseException:  # Ctrl-C: an answer that nobody read would be taken for the next
            self.close()
            raise
        finally:
            alarm.cancel()
        if state == "error":
            raise TrialError(answer)
        return answer

    def _start(self) -> None:
        import subprocess

        if not sys.executable:  # inside another program
            raise TrialError("no process can be started to time it in (there is no Python program)")
        try:
            self._child = subprocess.Popen(
                command(self.device),
                env=environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except OSError as error:
            raise TrialError(f"no process can be started to time it in ({error})") from None


def command(device: str) -> list[str]:
    """What starts a child: it imports from the places that this process imports from, in their order.

    Not from the folder it happens to run in, which is the first place with `-m` and with `-c`; nor from
    places relative to it, which lead elsewhere once the process has changed its folder.
    """
    package = str(Path(__file__).parents[2])
    places = [place for place in sys.path if isinstance(place, str) and os.path.isabs(place)]
    if package not in places:
        places.append(package)
    start = f"import sys; sys.path[:] = {places!r}; from lazygrad.tuning.time_kernels import main; main()"
    return [sys.executable, "-P", "-c", start, device]


def environment() -> dict[str, str]:
    """The variables of a child. The places that PYTHONPATH names are in its command."""
    found = {name: value for name, value in os.environ.items() if name not in _NOT_FOR_CHILDREN}
    flags = dict.fromkeys(("BEAM", "DEBUG", "CHECK", "NOOPT"), "0")
    return {**found, "PYTHONSAFEPATH": "1", "THREADS": str(THREADS.value), **flags}


#: With these Python imports from elsewhere before it runs the command, or waits at its end for a person.
_NOT_FOR_CHILDREN = frozenset(("PYTHONPATH", "PYTHONSTARTUP", "PYTHONINSPECT"))
#: What the child may take to start: Python, lazygrad, the device.
START_S = 30.0
#: (device, number of threads) → the child.
_open: dict[tuple[str, int], Trials] = {}


def trials_on(device: str) -> Trials:
    """The child for a device and as many threads as kernels now have, the same for every such search."""
    return _open.setdefault((device, THREADS.value), Trials(device))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_open.clear)  # they answer the parent

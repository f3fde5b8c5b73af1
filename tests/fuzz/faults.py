"""What `test_faults.py` runs in a process of its own: small programs, each while a fault is injected.

    python -m tests.fuzz.faults '[["interrupt", 7, 0.5], ["space", 8, 0.1]]'

Each fault is (kind, seed, amount from 0 to 1). After each everything must be as if nothing had happened: the
same process computes right numbers, writes that were recorded are done once. The last line says how many
errors of which type were met, all of them documented ones.
"""

from __future__ import annotations

import _thread
import contextlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from lazygrad import Tensor
from lazygrad.device import DeviceError

#: What a program may raise under a fault: Ctrl-C, no memory, a file or a device that refuses.
DOCUMENTED = (KeyboardInterrupt, MemoryError, OSError, DeviceError)

#: A process that leaves its programs in the cache, and says what it computed.
OTHER = """
import sys
from lazygrad import Tensor
for n in range(int(sys.argv[1]), int(sys.argv[1]) + int(sys.argv[2])):
    assert (Tensor.arange(n).contiguous() * 3).sum().item() == 3 * n * (n - 1) // 2
print("right")
"""


class Lost(Exception):
    """An interrupt that nobody heard of."""


class World:
    """Tensors that live through all faults, and what they must hold."""

    def __init__(self) -> None:
        self.met: Counter[str] = Counter()
        self.state = Tensor.zeros(1000, dtype="int64").contiguous().realize()
        self.expected = np.zeros(1000, np.int64)
        self.heard = self.sent = 0

    # *** programs

    def record(self, rng: random.Random) -> list[tuple[Tensor, Any]]:
        """A program that is not run yet: values, and what they must be. One of them is written in place."""
        step, first = rng.randrange(1, 9), rng.randrange(0, 900)
        self.state[first : first + 100] += step
        self.expected[first : first + 100] += step
        values: list[tuple[Tensor, Any]] = [(self.state, self.expected.copy())]
        n = rng.randrange(2, 600)
        line = np.random.default_rng(rng.randrange(1 << 30)).integers(-50, 50, n)
        x = Tensor(line)
        for kind in rng.sample(["sum", "sort", "running", "product", "where", "softmax"], 3):
            if kind == "sum":
                values.append(((x * step + n).sum(), (line * step + n).sum()))
            elif kind == "sort":
                values.append((x.sort()[0], np.sort(line)))
            elif kind == "running":
                values.append(((x * 2).cumsum(), (line * 2).cumsum()))
            elif kind == "product":
                values.append((x.reshape(1, n) @ x.reshape(n, 1), line.reshape(1, n) @ line.reshape(n, 1)))
            elif kind == "where":
                values.append(((x > step).where(x, -x), np.where(line > step, line, -line)))
            else:
                values.append(((x.cast("float32").softmax().sum() * 1000).round().cast("int64"), 1000))
        return values

    def check(self, values: list[tuple[Tensor, Any]]) -> None:
        for number, (value, right) in enumerate(values):
            found = value.numpy()
            assert np.array_equal(found, right), f"value {number} is {found}, and {right} is right"

    def under(self, fault: Callable[[], Any], rng: random.Random) -> None:
        """Run a program in the fault's `with` block, then look at all of its values without it."""
        values = self.record(rng)
        try:
            with fault():
                Tensor.realize(*[value for value, _ in values])
                self.check(values)
        except DOCUMENTED as error:
            self.met[type(error).__name__] += 1
        self.check(values)
        self.check(self.record(rng))

    # *** faults

    def interrupt(self, rng: random.Random, amount: float) -> None:
        """Ctrl-C at some time of a program, or twice."""

        def note(number: int, frame: Any) -> None:
            self.sent += 1
            raise KeyboardInterrupt

        @contextlib.contextmanager
        def timer() -> Iterator[None]:
            signal.setitimer(signal.ITIMER_REAL, 1e-4 + amount * 0.15)
            yield
            signal.setitimer(signal.ITIMER_REAL, 0)

        signal.signal(signal.SIGINT, note)
        signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
        before, sent = self.met["KeyboardInterrupt"], self.sent
        try:
            self.under(timer, rng)
        except KeyboardInterrupt:  # it came when all was done
            self.met["KeyboardInterrupt"] += 1
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        if self.met["KeyboardInterrupt"] - before != self.sent - sent:
            raise Lost(f"{self.sent - sent} interrupts were sent")

    def fork(self, rng: random.Random, amount: float) -> None:
        """Children made while a thread of the parent plans, compiles and runs."""
        values, errors = self.record(rng), []

        def work() -> None:
            try:
                Tensor.realize(*[value for value, _ in values])
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        time.sleep(amount * 0.05)
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                assert (Tensor.arange(50 + int(amount * 100)) * 2).sum().item() > 0
                code = 0
            finally:
                os._exit(code)
        thread.join()
        assert os.waitpid(pid, 0)[1] == 0, "a forked child failed"
        if errors:
            raise errors[0]
        self.check(values)

    def spawn(self, rng: random.Random, amount: float) -> None:
        """A process that uses the cache at the same time, and finds it usable."""
        command = [sys.executable, "-c", OTHER, str(rng.randrange(2, 300)), "2"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as other:
            self.under(contextlib.nullcontext, rng)
            out, err = other.communicate()
        assert out == "right\n", err

    def kill(self, rng: random.Random, amount: float) -> None:
        """A process that is killed while it uses the cache."""
        command = [sys.executable, "-c", OTHER, str(rng.randrange(2, 300)), "200"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as other:
            self.under(contextlib.nullcontext, rng)
            time.sleep(amount * 1.5)
            other.kill()
        self.under(contextlib.nullcontext, rng)

    def disk(self, rng: random.Random, amount: float) -> None:
        """No file may grow beyond some size: as a full disk."""

        @contextlib.contextmanager
        def full() -> Iterator[None]:
            _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (int(amount * 50_000), hard))
            try:
                yield
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))

        self.under(full, rng)

    def space(self, rng: random.Random, amount: float) -> None:
        """Little address space is left."""

        @contextlib.contextmanager
        def little() -> Iterator[None]:
            with open("/proc/self/statm") as file:
                used = int(file.read().split()[0]) * resource.getpagesize()
            _, hard = resource.getrlimit(resource.RLIMIT_AS)
            resource.setrlimit(resource.RLIMIT_AS, (used + int(amount**3 * (100 << 20)), hard))
            try:
                yield
            finally:
                resource.setrlimit(resource.RLIMIT_AS, (hard, hard))

        self.under(little, rng)

    def threads(self, rng: random.Random, amount: float) -> None:
        """No thread can be started, or each ends before it begins."""

        @contextlib.contextmanager
        def none() -> Iterator[None]:
            start = _thread.start_new_thread

            def refuse(*_: Any) -> int:
                if amount < 0.5:
                    raise RuntimeError("can't start new thread")
                return 1

            _thread.start_new_thread = refuse
            try:
                yield
            finally:
                _thread.start_new_thread = start

        self.under(none, rng)

    def damage(self, rng: random.Random, amount: float) -> None:
        """Something writes into the cache, or removes it."""
        path = os.environ["CACHEDB"]
        with contextlib.suppress(FileNotFoundError):
            if amount < 0.2:
                os.unlink(path)
            else:
                with open(path, "r+b") as file:
                    file.seek(int(os.fstat(file.fileno()).st_size * (amount - 0.2)))
                    file.write(rng.randbytes(200))
        self.under(contextlib.nullcontext, rng)

    def clock(self, rng: random.Random, amount: float) -> None:
        """The clock jumps by years."""

        @contextlib.contextmanager
        def jump() -> Iterator[None]:
            now = time.time
            time.time = lambda: now() + (amount - 0.5) * 1e9
            try:
                yield
            finally:
                time.time = now

        self.under(jump, rng)


FAULTS = ("interrupt", "fork", "spawn", "kill", "disk", "space", "threads", "damage", "clock")


def main(faults: list[tuple[str, int, float]]) -> None:
    world = World()
    for kind, seed, amount in faults:
        print(f"{kind} {seed} {amount}", flush=True)
        getattr(world, kind)(random.Random(seed), amount)
    print("right", json.dumps(dict(sorted(world.met.items()))))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))

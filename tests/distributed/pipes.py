"""A world of processes on this machine that reach each other by pipes: what tests run instead of MPI.

`python pipes.py FOLDER RANK SIZE SCRIPT` is one rank; `run_ranks` starts them all.
"""

from __future__ import annotations

import functools
import os
import queue
import runpy
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any

import numpy as np

from lazygrad.device.world import World, set_world
from lazygrad.dtype import DType

COMBINE = {"ADD": np.add, "MUL": np.multiply, "MAX": np.maximum, "MIN": np.minimum}


class Done:
    """A transfer that a thread makes."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self.error: BaseException | None = None

    def wait(self) -> None:
        if not self.event.wait(60):
            raise TimeoutError("a transfer did not end in 60 s")
        if self.error is not None:
            raise self.error

    def test(self) -> bool:
        return self.event.is_set()


class Pipes:
    """A transport: a pipe to each other rank, and a thread that makes one transfer after another.

    log  what was started: (kind, the bytes of what is sent and received)
    """

    def __init__(self, folder: str, rank: int, size: int) -> None:
        self.rank, self.size = rank, size
        self.log: list[tuple[Any, ...]] = []
        self.peers: dict[int, Connection] = {}
        with Listener(f"{folder}/{rank}") as listener:
            for other in range(rank):
                self.peers[other] = _connected(f"{folder}/{other}")
                self.peers[other].send(rank)
            for _ in range(rank + 1, size):
                accepted = listener.accept()
                self.peers[accepted.recv()] = accepted
        self.work: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=self._run, daemon=True).start()

    def prepare(self, *of: Any) -> Callable[[], Done]:
        return functools.partial(self.start, *of)

    def start(
        self,
        kind: str,
        ranks: tuple[int, ...],
        op: str | None,
        sends: Sequence[memoryview],
        receives: Sequence[memoryview],
        dtype: DType,
    ) -> Done:
        self.log.append((kind, [len(s) for s in sends], [len(r) for r in receives]))
        done = Done()
        if kind == "broadcast":
            sends, receives = self._from_the_first(ranks, sends, receives)
        self.work.put((done, ranks, op, sends, receives, dtype))
        return done

    def _from_the_first(self, ranks: Any, sends: Any, receives: Any) -> tuple[list[Any], list[Any]]:
        """What each sends to each, and gets from each, of what the first one sends."""
        none = memoryview(bytearray())
        into = [none] * len(ranks) if self.rank == ranks[0] else [*receives, *[none] * (len(ranks) - 1)]
        out = [none, *[sends[0]] * (len(ranks) - 1)] if self.rank == ranks[0] else [none] * len(ranks)
        return out, into

    def _run(self) -> None:
        while True:
            done, *transfer = self.work.get()
            try:
                self._transfer(*transfer)
            except BaseException as error:
                done.error = error
            done.event.set()

    def _transfer(self, ranks: Any, op: Any, sends: Any, receives: Any, dtype: DType) -> None:
        each = sends if len(sends) == len(ranks) else [sends[0]] * len(ranks)
        mine = bytes(each[ranks.index(self.rank)])
        others = [(self.peers[r], bytes(s)) for r, s in zip(ranks, each, strict=True) if r != self.rank]
        sender = threading.Thread(target=lambda: [peer.send_bytes(s) for peer, s in others])
        sender.start()
        found = [mine if r == self.rank else self.peers[r].recv_bytes() for r in ranks]
        sender.join()
        if op is None:
            for target, data in zip(receives, found, strict=True):
                target.cast("B")[:] = data
        else:
            kind = np.dtype(dtype.fmt)
            total = np.frombuffer(found[0], kind)
            for data in found[1:]:
                total = COMBINE[op](total, np.frombuffer(data, kind))
            receives[0].cast("B")[:] = total.tobytes()


def _connected(address: str) -> Connection:
    end = time.monotonic() + 60
    while True:
        try:
            return Client(address)
        except (FileNotFoundError, ConnectionRefusedError):
            if time.monotonic() > end:
                raise
            time.sleep(0.01)


def run_ranks(folder: Path, size: int, script: str) -> list[str]:
    """What each of `size` ranks prints that run a script; `transport` in it is the rank's Pipes."""
    path = folder / "script.py"
    path.write_text(script)
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": root, "THREADS": "1"}
    started = []
    for rank in range(size):
        command = [sys.executable, __file__, str(folder), str(rank), str(size), str(path)]
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(command, env=environment, text=True, stdout=pipe, stderr=pipe))
    try:
        found = [process.communicate(timeout=240) for process in started]
    finally:
        for process in started:
            process.kill()
    errors = [error for process, (_, error) in zip(started, found, strict=True) if process.returncode]
    assert not errors, "\n".join(errors)
    return [out for out, _ in found]


if __name__ == "__main__":
    folder, rank, size, script = sys.argv[1:]
    transport = Pipes(folder, int(rank), int(size))
    set_world(World(transport.rank, transport.size, transport))
    runpy.run_path(script, {"transport": transport})

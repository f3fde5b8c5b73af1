"""The child process of a search: it compiles and times candidates, so that one which crashes or hangs takes
nothing with it.

`trials.py` starts it and talks to it. It reads pickled requests from stdin and answers each on stdout: ("ok",
result) or ("error", text). When stdin ends, so does it; a job that takes too long ends it too.
"""

from __future__ import annotations

import faulthandler
import os
import pickle
import signal
import sys
import time
from typing import Any, BinaryIO

from ..codegen.records import spec_of
from ..device import Buffer, Device
from ..dtype import DTYPES_BY_NAME, DType, dtypes

#: A candidate so much slower than the best so far runs once.
HOPELESS = 2.0
#: Otherwise until it ran so long, and so often.
ENOUGH_S, LEAST, MOST = 0.03, 3, 50
#: Elements of the random pattern that fills a buffer.
PATTERN = 1 << 20


class Timer:
    """The memory of the kernel that is being searched, and what can be done with a program on it."""

    def __init__(self, device: str) -> None:
        self.device = Device[device]
        self.memory: list[tuple[str, int]] = []
        self.buffers: list[Buffer] = []
        self.loaded: dict[tuple[str, int], Any] = {}  #: (source, pieces) → what may be asked again

    def prepare(self, memory: list[tuple[str, int]]) -> None:
        """Have a buffer of each (dtype, size), filled with numbers that are the same every time."""
        if memory == self.memory:
            return
        self.memory, self.buffers = [], []
        self.loaded.clear()
        for name, size in memory:
            buffer = Buffer(self.device.name, size, DTYPES_BY_NAME[name])
            self.buffers.append(buffer.allocate_uncleared())
        self.memory = memory
        self.fill()

    def fill(self) -> None:
        import numpy as np

        for number, buffer in enumerate(self.buffers):
            if buffer.size:
                pattern = example(buffer.dtype, min(buffer.size, PATTERN), number)
                buffer.copyin(np.resize(pattern, buffer.size))

    def load(self, record: dict[str, Any]) -> Any:
        spec, _ = spec_of(record)
        key = spec.src, spec.thread_chunks
        if key not in self.loaded:
            self.loaded[key] = self.device.load(spec, self.device.compile(spec))
        return self.loaded[key]

    def time(self, record: dict[str, Any], values: tuple[int, ...], best: float | None) -> float:
        """Seconds of one run, the shortest of some; of a single run where that is hopeless beside `best`."""
        program = self.load(record)
        handles = tuple([buffer._buf for buffer in self.buffers])
        shortest = program(handles, values, wait=True)
        begin, runs = time.perf_counter(), 1
        if best is not None and shortest > HOPELESS * best and shortest > 1e-3:
            return float(shortest)
        while runs < LEAST or (runs < MOST and time.perf_counter() - begin < ENOUGH_S):
            shortest = min(shortest, program(handles, values, wait=True))
            runs += 1
        return float(shortest)

    def outputs(self, record: dict[str, Any], values: tuple[int, ...], numbers: list[int]) -> list[bytes]:
        """What one run leaves in these buffers."""
        program = self.load(record)
        self.fill()
        program(tuple([buffer._buf for buffer in self.buffers]), values, wait=True)
        return [self.buffers[number].tobytes() for number in numbers]


def example(dtype: DType, size: int, seed: int) -> Any:
    """Numbers of an ordinary size: floats between -1 and 1, integers that may be indices."""
    import numpy as np

    random = np.random.default_rng(seed)
    if dtype is dtypes.bool:
        return random.integers(0, 2, size).astype(np.bool_)
    if dtypes.is_int(dtype):
        return random.integers(0, 100, size).astype(
            f"{'u' if dtypes.is_unsigned(dtype) else 'i'}{dtype.itemsize}"
        )
    floats = random.uniform(-1, 1, size).astype(np.float32)
    if dtype is dtypes.bfloat16:
        return (floats.view(np.uint32) >> 16).astype(np.uint16)
    if dtype.fmt is None:  # fp8, as its bits: all of these are finite
        return random.integers(0, 0x60, size).astype(np.uint8)
    return floats.astype(dtype.fmt)


def serve(device: str, requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer until there is nothing more to read."""
    timer: Timer | None = None
    nowhere = open(os.devnull, "w")  # noqa: SIM115  open as long as the process
    while True:
        try:
            what, memory, limit, *rest = pickle.load(requests)
        except EOFError:
            return
        faulthandler.dump_traceback_later(limit, exit=True, file=nowhere)
        try:
            timer = timer or Timer(device)
            timer.prepare(memory)
            answer = ("ok", getattr(timer, what)(*rest))
        except Exception as error:
            answer = ("error", f"{type(error).__name__}: {error}".splitlines()[0])
        faulthandler.cancel_dump_traceback_later()
        pickle.dump(answer, answers)
        answers.flush()


def main() -> None:
    """Serve a device. Answers go where stdout went; what anything here prints goes to stderr."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(sys.argv[1], sys.stdin.buffer, answers)

"""What the disk cache and further cores are worth: a process's first step, large kernels in pieces, a region.

    python -m bench cores           all of it
    python -m bench cores --quick   once each: that it runs, not how fast

Wall times, the fastest of several: on a machine that others use too, they say little.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from .compile import _aligned, busy, machine

FIRST_STEP = """
from time import perf_counter as now
start = now()
from lazygrad import Tensor
from lazygrad.nn import demo
from lazygrad.nn.optim import AdamW
from lazygrad.nn.state import get_parameters
Tensor.manual_seed(0)
images, labels, _, _ = demo.digits()
batches, network = demo.Batches(images, labels), demo.Network()
optimizer = AdamW(get_parameters(network), lr=1e-2)
with Tensor.train():
    demo.train_step(network, optimizer, batches).item()
print(now() - start)
"""


def first_step(cores: set[int], repeats: int) -> list[str]:
    """The demo's first step, import included: with an empty disk cache, then with what that left."""
    seconds: dict[str, list[float]] = {"cold": [], "warm": []}
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "PYTHONPYCACHEPREFIX": os.path.join(folder, "bytecode"), "CACHELEVEL": "2"}
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        for repeat in range(repeats + 1):  # the first leaves compiled Python
            env["CACHEDB"] = os.path.join(folder, f"cache{repeat}", "cache.db")
            for found in seconds.values():
                command = [sys.executable, "-c", FIRST_STEP]
                done = subprocess.run(
                    command,
                    capture_output=True,
                    text=True,
                    env=env,
                    check=True,
                    preexec_fn=lambda: os.sched_setaffinity(0, cores),
                )
                if repeat:
                    found.append(float(done.stdout))
    cold, warm = min(seconds["cold"]), min(seconds["warm"])
    return [f"{len(cores)}", f"{cold:.2f} s", f"{warm:.2f} s", f"{warm / cold:.0%}"]


def kernels() -> dict[str, Callable[[], Any]]:
    """Large kernels; each call gives a value that is not computed yet."""
    from lazygrad import Tensor

    def floats(*shape: int) -> Tensor:
        return Tensor.rand(*shape).realize()

    x, y, rows = floats(1 << 20), floats(1 << 20), floats(1000, 1000)
    a, b = floats(512, 512), floats(512, 512)
    image, weight = floats(16, 16, 64, 64), floats(32, 16, 3, 3)
    return {
        "add of 2^20": lambda: x + y,
        "exp of 2^20": lambda: x.exp(),
        "sum of rows, 1000 x 1000": lambda: rows.sum(1),
        "softmax, 1000 x 1000": lambda: rows.softmax(),
        "matmul, 512 x 512 x 512": lambda: a @ b,
        "convolution, 16 x 16 x 64 x 64 by 32 x 16 x 3 x 3": lambda: image.conv2d(weight),
    }


def in_pieces(threads: list[int], repeats: int) -> list[list[str]]:
    """Each kernel for each number of threads, and whether all results are equal to the bit."""
    from lazygrad import Context
    from lazygrad.programs.runners import get_runner

    table = []
    for name, make in kernels().items():
        fastest, results = [], set()
        value = make()
        (*_, item) = value.schedule()
        value.realize()
        runner = get_runner("CPU", item.ast)
        handles = tuple([buffer._buf for buffer in item.bufs])
        for count in threads:
            with Context(THREADS=count):
                for _ in range(3):  # workers start, and find cores
                    runner.program(handles, (), wait=True)
                    time.sleep(0.05)
                fastest.append(min(runner.program(handles, (), wait=True) or 0.0 for _ in range(repeats)))
            results.add(bytes(item.bufs[0].as_buffer()))
        times = [f"{seconds * 1e6:.0f} us" for seconds in fastest]
        gain = f"{fastest[0] / fastest[-1]:.2f}"
        equal = "yes" if len(results) == 1 else "NO"
        table.append([name, str(runner.spec.thread_chunks), *times, gain, equal])
    return table


EMPTY = """
define void @empty_entry(ptr %bufs, ptr %vals, i32 %piece, i32 %pieces) nounwind {
  ret void
}
"""


def region(threads: int, repeats: int) -> list[list[str]]:
    """What a region costs whose pieces do nothing, from Python: at once after another, and after a pause."""
    from lazygrad import Device
    from lazygrad.runtime._pool import pool

    compiler: Any = Device["CPU"].compiler
    if not pool.start(lambda: compiler):
        return []
    entry, _code = compiler.link(compiler.compile(EMPTY), "empty_entry", EMPTY)
    bufs, vals = struct.pack("P", ctypes.addressof(ctypes.c_int64())), b""
    table = []
    for name, count, pause in (
        ("a call without workers", 1, 0.0),
        ("a region", threads, 0.0),
        ("a region after 1 ms: workers sleep", threads, 1e-3),
    ):
        found = []
        for _ in range(repeats):
            time.sleep(pause)
            start = time.perf_counter()
            pool.run(entry, bufs, vals, 8, count)
            found.append(time.perf_counter() - start)
        found.sort()
        table.append([name, f"{found[len(found) // 2] * 1e6:.2f} us"])
    return table


def main(arguments: list[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench cores", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="once each: that it runs, not how fast")
    options = parser.parse_args(arguments)
    if not hasattr(os, "sched_setaffinity"):
        print("this needs a system on which a process chooses its cores")
        return 1
    about = {**machine(), "busy": f"{busy():.2f}"}
    print(", ".join(f"{key} {value}" for key, value in about.items()) + "\n")
    usable = sorted(os.sched_getaffinity(0))
    rows = [["cores", "cold", "from disk", "share"]]
    for count in sorted({1, min(2, len(usable))}):
        rows.append(first_step(set(usable[:count]), 1 if options.quick else 5))
    print("the demo's first step, from the start of its process\n\n" + _aligned(rows) + "\n")
    threads = sorted({1, *(n for n in (2, 4, 8, 16, 32, 64) if n <= len(usable)), len(usable)})
    head = ["kernel", "pieces", *(f"THREADS={n}" for n in threads), "gain", "equal"]
    print(_aligned([head, *in_pieces(threads, 2 if options.quick else 100)]) + "\n")
    print(_aligned([["8 empty pieces", ""], *region(len(usable), 10 if options.quick else 500)]))
    return 0

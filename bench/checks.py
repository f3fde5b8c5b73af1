"""What checking indices costs: lookups, scatters and losses with CHECK_INDEX=1 and 0, in turns.

    python -m bench checks

Each line is one kernel, or the jitted call of a loss, on one core; times are the least of all turns.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator

import numpy as np

from lazygrad import Context, Tensor, TinyJit

TURNS = 300
#: Seconds of one turn, at least.
LEAST_S = 2e-4


def cases() -> Iterator[tuple[str, Callable[[], Tensor]]]:
    """(name, computation)."""
    rng = np.random.default_rng(0)

    def floats(*shape: int) -> Tensor:
        return Tensor(rng.standard_normal(shape, np.float32)).realize()

    def ints(most: int, *shape: int) -> Tensor:
        return Tensor(rng.integers(0, most, shape).astype(np.int32)).realize()

    table, rows = floats(50_000, 256), ints(50_000, 8192)
    yield "gather 8192 of 50k x 256", lambda: table[rows]
    words, text = floats(32_000, 64), ints(32_000, 8, 128)
    yield "embedding 1024 of 32k x 64", lambda: text.embedding(words)
    line, places = floats(4096), ints(4096, 16_384)
    yield "take 16384 of 4096", lambda: line[places]
    square, along = floats(1024, 1024), ints(1024, 1024, 1024)
    yield "gather(1) 1024 x 1024", lambda: square.gather(1, along)
    zeros, into, amounts = floats(65_536), ints(65_536, 262_144), floats(262_144)
    yield "scatter_add 262144 to 65536", lambda: zeros.scatter_add(0, into, amounts)
    logits, classes = floats(4096, 1000), ints(1000, 4096)
    yield "cross_entropy 4096 x 1000", lambda: logits.cross_entropy(classes)
    small, few = floats(512, 10), ints(10, 512)
    yield "cross_entropy 512 x 10", lambda: small.cross_entropy(few)
    yield "one_hot 4096 x 1000", lambda: classes.one_hot(1000)
    yield "one_hot 512 x 64", lambda: few.one_hot(64)


def compared(computation: Callable[[], Tensor]) -> tuple[float, float]:
    """Seconds of a jitted call with checks and without."""
    jits = []
    for flag in (1, 0):
        with Context(CHECK_INDEX=flag):
            jits.append(TinyJit(lambda: computation().realize()))
            for _ in range(3):
                jits[-1]()
    best = [float("inf"), float("inf")]
    start = time.perf_counter()
    jits[0]()
    calls = max(1, int(LEAST_S / (time.perf_counter() - start)))
    for _ in range(TURNS):
        for number, flag in enumerate((1, 0)):
            with Context(CHECK_INDEX=flag):
                jits[number]()  # which notices the flag
                start = time.perf_counter()
                for _ in range(calls):
                    jits[number]()
                best[number] = min(best[number], (time.perf_counter() - start) / calls)
    return best[0], best[1]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("python -m bench checks", description=__doc__)
    parser.add_argument(
        "--cases", nargs="*", default=[], help="only those with one of these words in their names"
    )
    words = parser.parse_args(arguments).cases
    print(f"{'':30}{'checked':>12}{'unchecked':>12}")
    with Context(THREADS=1):
        for name, computation in cases():
            if words and not any(word in name for word in words):
                continue
            checked, unchecked = compared(computation)
            print(
                f"{name:30}{checked * 1e6:9.2f} us{unchecked * 1e6:9.2f} us{checked / unchecked - 1:+8.1%}",
                flush=True,
            )
    return 0

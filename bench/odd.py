"""Odd and prime sizes beside their round neighbours: the cost of an element, or of a product, in turns.

    python -m bench odd                     all
    python -m bench odd --cases matmul      those with one of these words in their names

Each computation runs on one core, in lazygrad alone, at a round size and at odd ones; the table shows
nanoseconds for each element (for each thousand products where there are some) and how many times that of the
round size they are. What is above 1.5 is marked. Times are processor times, the least of all turns.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

#: Odd sizes may cost so many times what round ones do.
MARK = 1.5


class Size(NamedTuple):
    """A computation at one size: what makes its inputs, and how many elements or products it has."""

    name: str
    shapes: tuple[tuple[int, ...], ...]
    count: float


class Group(NamedTuple):
    """One computation at a round size and at others; `function` is given tensors."""

    name: str
    function: Callable[..., Any]
    round: Size
    odd: list[Size]


def _matmuls(name: str, function: Callable[..., Any], shapes: Callable[..., Any]) -> Iterator[Group]:
    def size(b: int, m: int, k: int, n: int) -> Size:
        text = "x".join(map(str, (m, k, n) if b == 1 else (b, m, k, n)))
        return Size(text, shapes(b, m, k, n), b * m * k * n / 1000)

    if name != "batched":
        yield Group(name, function, size(1, 128, 128, 128), [size(1, 127, 127, 127), size(1, 131, 131, 131)])
        yield Group(
            name, function, size(1, 1024, 1024, 1024), [size(1, 1000, 1000, 1000), size(1, 1021, 1021, 1021)]
        )
        yield Group(name, function, size(1, 320, 80, 320), [size(1, 333, 77, 333), size(1, 331, 79, 337)])
    else:
        yield Group(name, function, size(64, 64, 64, 64), [size(61, 63, 63, 63), size(64, 67, 61, 71)])
        yield Group(name, function, size(3, 320, 80, 320), [size(3, 333, 77, 333)])
        yield Group(name, function, size(1024, 16, 16, 16), [size(1021, 17, 15, 17), size(1021, 13, 13, 13)])


def _plain(name: str, function: Callable[..., Any], whole: tuple[int, ...], *odd: tuple[int, ...]) -> Group:
    sizes = [Size("x".join(map(str, s)), (s,), math.prod(s)) for s in (whole, *odd)]
    return Group(name, function, sizes[0], sizes[1:])


def _convolution(name: str, function: Callable[..., Any], *shapes: tuple[int, ...]) -> Group:
    """Shapes of batch, channels, height, width, channels of the result, and the filter's side."""
    sizes = []
    for b, c, h, w, o, k in shapes:
        places = (h - k + 1) * (w - k + 1)
        sizes.append(
            Size(f"{b}x{c}x{h}x{w}-{o}", ((b, c, h, w), (o, c, k, k)), b * o * places * c * k * k / 1000)
        )
    return Group(name, function, sizes[0], sizes[1:])


#: What is done to each matrix.
ROWS: dict[str, Callable[..., Any]] = {
    "exp of rows": lambda a: a.exp() + a[:, :1],
    "softmax": lambda a: a.softmax(-1),
    "softmax of columns": lambda a: a.softmax(0),
    "layernorm": lambda a: a.layernorm(),
    "row sums": lambda a: a.sum(1),
    "column sums": lambda a: a.sum(0),
    "transpose": lambda a: a.T.contiguous(),
    "cumsum": lambda a: a.cumsum(1),
}


def groups() -> list[Group]:
    """All of them."""
    found: list[Group] = []
    found += _matmuls("matmul", lambda a, b: a @ b, lambda b, m, k, n: ((m, k), (k, n)))
    found += _matmuls("matmul A.T", lambda a, b: a.T @ b, lambda b, m, k, n: ((k, m), (k, n)))
    found += _matmuls("matmul B.T", lambda a, b: a @ b.T, lambda b, m, k, n: ((m, k), (n, k)))
    found += _matmuls("matmul A.T B.T", lambda a, b: a.T @ b.T, lambda b, m, k, n: ((k, m), (n, k)))
    found += _matmuls("batched", lambda a, b: a @ b, lambda b, m, k, n: ((b, m, k), (b, k, n)))
    for name, function in ROWS.items():
        found.append(_plain(name, function, (1024, 1024), (1021, 1021), (1000, 1000)))
        found.append(_plain(name, function, (1024, 80), (999, 77), (1021, 79)))
        found.append(_plain(name, function, (4096, 128), (4001, 127), (4093, 131)))
    found += [
        _plain("matvec", lambda a: a @ a[0], (2048, 2048), (2039, 2039), (2047, 2047)),
        _plain("vector-matrix", lambda a: a[0] @ a, (2048, 2048), (2039, 2039), (2047, 2047)),
        _plain("elementwise", lambda a: (a * 2 + 1).relu(), (1 << 20,), ((1 << 20) - 3,), (1021, 1021)),
        _plain("sum", lambda a: a.sum(), (1 << 22,), ((1 << 22) - 3,), (2039, 2053)),
        _plain("sums of the middle", lambda a: a.sum(1), (64, 256, 256), (61, 251, 253)),
        _plain("sums of the middle", lambda a: a.sum(1), (4, 320, 80), (3, 333, 77)),
        _plain("swap of two axes", lambda a: a.transpose(0, 1).contiguous(), (64, 256, 64), (61, 251, 67)),
        _convolution(
            "conv 3x3",
            lambda x, w: x.conv2d(w),
            (8, 64, 34, 34, 64, 3),
            (8, 61, 33, 33, 61, 3),
            (7, 67, 37, 35, 59, 3),
        ),
        _convolution(
            "conv 3x3 padded",
            lambda x, w: x.conv2d(w, padding=1),
            (8, 64, 32, 32, 64, 3),
            (8, 61, 31, 31, 61, 3),
            (7, 67, 37, 35, 59, 3),
        ),
        _convolution("conv 5x5", lambda x, w: x.conv2d(w), (16, 16, 36, 36, 32, 5), (16, 17, 37, 37, 31, 5)),
    ]
    return found


def measure(group: Group, seconds: float) -> list[float]:
    """Seconds of the round size and of each odd one."""
    from lazygrad import Tensor, TinyJit

    rng = np.random.default_rng(0)
    calls = []
    for size in (group.round, *group.odd):
        inputs = [Tensor(rng.standard_normal(shape, np.float32)).realize() for shape in size.shapes]
        jitted = TinyJit(lambda *given: group.function(*given).realize())
        calls.append(lambda jitted=jitted, inputs=inputs: jitted(*inputs))
    for call in calls:
        for _ in range(3):  # a jit captures on its second call
            call()
    best = [math.inf] * len(calls)
    turns, end = 0, time.perf_counter() + seconds * len(calls)
    while turns < 2 or time.perf_counter() < end:
        turns += 1
        for number, call in enumerate(calls):
            start = time.process_time()
            call()
            best[number] = min(best[number], time.process_time() - start)
    return best


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        "python -m bench odd", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", nargs="*", default=[], help="words: those with one of them in their names")
    parser.add_argument("--seconds", type=float, default=0.3, help="for each size")
    parser.add_argument("--quick", action="store_true", help="two turns each")
    given = parser.parse_args(arguments)
    chosen = [
        group
        for group in groups()
        if not given.cases or any(word.lower() in group.name.lower() for word in given.cases)
    ]
    if not chosen:
        parser.error(f"no such case: there are {', '.join(dict.fromkeys(group.name for group in groups()))}")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    print(f"{'case':24} {'size':>16} {'us':>10} {'ns each':>9} {'times':>6}")
    for group in chosen:
        best = measure(group, 0.0 if given.quick else given.seconds)
        each = [t / size.count for t, size in zip(best, (group.round, *group.odd), strict=True)]
        for size, t, cost in zip((group.round, *group.odd), best, each, strict=True):
            mark = "  <- beyond" if cost > MARK * each[0] else ""
            text = f"{group.name:24} {size.name:>16} {t * 1e6:10.1f} {cost * 1e9:9.3f} {cost / each[0]:6.2f}"
            print(text + mark, flush=True)
    return 0

"""What WMMA and SHUFFLE mean, for the interpreter, which has the threads of a workgroup before it.

Of a WMMA, the matrices that the threads of a warp hold in parts are put together, multiplied, and taken apart
again ("Matrix Fragments for mma", PTX ISA; codegen/opt/warp_matrices.py).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

from ..dtype import DTYPES_BY_NAME, DType, truncation
from ..ir.ops import from_bits
from ..target import TensorCore

WARP = 32


def described(core: TensorCore) -> str:
    """What `products_of_warps` must know of an instruction, as Python text."""
    return f"{core.element.name!r}, {core.steps}, {core.total.name!r}, {core.unread}"


def products_of_warps(stopped: Sequence[Any], sizes: Sequence[int]) -> list[Any]:
    """Of each thread its new sums. `stopped`: (place, what `described` gives, sums, words) of each, as
    the places of a workgroup of these sizes are counted: those along x, the first, the slowest.
    """
    order = sorted(range(len(stopped)), key=lambda n: _place_in_launch(n, sizes))
    answers: list[Any] = [None] * len(stopped)
    for begin in range(0, len(order), WARP):
        warp = order[begin : begin + WARP]
        for thread, sums in zip(warp, _product([stopped[n] for n in warp]), strict=True):
            answers[thread] = sums
    return answers


def exchanged(stopped: Sequence[Any], sizes: Sequence[int]) -> list[Any]:
    """What a SHUFFLE gives each thread. `stopped`: (place, in which bit threads' numbers differ, value)."""
    numbers = [_place_in_launch(n, sizes) for n in range(len(stopped))]
    values = {number: stop[2] for number, stop in zip(numbers, stopped, strict=True)}
    others = [number ^ stop[1] for number, stop in zip(numbers, stopped, strict=True)]
    for number, other in zip(numbers, others, strict=True):
        if other not in values:
            raise RuntimeError(f"thread {number} exchanges with thread {other}, and there is none")
    return [values[other] for other in others]


def _place_in_launch(number: int, sizes: Sequence[int]) -> int:
    """A thread's number in the launch, where x is the fastest."""
    places = []
    for size in reversed(sizes):
        number, place = divmod(number, size)
        places.append(place)
    found = 0
    for place, size in zip(places, reversed(sizes), strict=True):
        found = found * size + place
    return found


def _product(threads: Sequence[Any]) -> list[list[Any]]:
    _, element, steps, total, unread, _, _ = threads[0]
    core = TensorCore(DTYPES_BY_NAME[element], steps, DTYPES_BY_NAME[total], unread=unread)
    rows = [[0] * steps for _ in range(16)]
    columns = [[0] * steps for _ in range(8)]
    for number, (*_, words) in enumerate(threads):
        g, t = divmod(number, 4)
        parts = [_unpacked(word & ~((1 << unread) - 1), core.element) for word in words]
        for half in range(core.halves):
            begin = (4 * half + t) * core.packed
            for u in range(2):
                rows[g + 8 * u][begin : begin + core.packed] = parts[2 * half + u]
            columns[g][begin : begin + core.packed] = parts[2 * core.halves + half]
    found = []
    for number, (*_, sums, _words) in enumerate(threads):
        g, t = divmod(number, 4)
        own = []
        for place, (u, v) in enumerate(itertools.product(range(2), repeat=2)):
            products = (a * b for a, b in zip(rows[g + 8 * u], columns[2 * t + v], strict=True))
            own.append(_rounded(sums[place] + sum(products), core.total))
        found.append(own)
    return found


@functools.cache
def _unpacked(word: int, element: DType) -> list[Any]:
    bits = 8 * element.itemsize
    return [from_bits(word >> bits * n & (1 << bits) - 1, element) for n in range(32 // bits)]


def _rounded(value: Any, dtype: DType) -> Any:
    """One rounding for all products: as exact as a tensor core may be."""
    return truncation(dtype)(value)

"""What WMMA and SHUFFLE mean, for the interpreter, which has the threads of a workgroup before it.

Of a WMMA, the matrices that the threads of a warp hold in parts, or that lie in the memory of their
workgroup, are put together, multiplied, and taken apart again ("Matrix Fragments for mma" and "Register
Fragments" of `wgmma`, PTX ISA; gpu/moves/warp_matrices.py, gpu/passes/warp_groups.py).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import astuple, replace
from typing import Any

from ..dtype import DTYPES_BY_NAME, DType, truncation
from ..ir.ops import from_bits, to_bits
from ..target import PackedTile, TensorCore

WARP = 32
#: Rows of factors, or columns: of each the numbers in its steps.
Factor = Sequence[Sequence[Any]]


def described(core: TensorCore) -> str:
    """What `products_of_warps` must know of an instruction, as Python text."""
    panels = [panel and astuple(panel) for panel in core.tiles] if core.columns else [None, None]
    names = f"{core.element.name!r}, {core.total.name!r}"
    return f"({names}, {core.steps}, {core.unread}, {core.warps}, {core.columns}, {core.turned}, *{panels})"


@functools.cache
def _core(
    element: str, total: str, steps: int, unread: int, warps: int, columns: int, turned: Any, *panels: Any
) -> TensorCore:
    rows, other = (PackedTile(*panel) if panel else None for panel in panels)
    types = DTYPES_BY_NAME[element], DTYPES_BY_NAME[total]
    made = TensorCore(types[0], steps, types[1], unread=unread, warps=warps, columns=columns)
    return replace(made, tiles=(rows, other), turned=turned)


def products_of_warps(stopped: Sequence[Any], sizes: Sequence[int]) -> list[Any]:
    """Of each thread its new sums. `stopped`: (place, what `described` gives, sums, factors) of each, as the
    places of a workgroup of these sizes are counted: those along x, the first, the slowest. The factors are a
    thread's words, or of each matrix (memory, place of the first element, whether the memory holds bits); or
    of a row of 16 bytes, another one for each thread.
    """
    order = sorted(range(len(stopped)), key=lambda n: _launch_index(n, sizes))
    core = _core(*stopped[0][1])
    together = WARP * (core.warps if core.columns else 1)
    answers: list[Any] = [None] * len(stopped)
    for begin in range(0, len(order), together):
        threads = [stopped[n] for n in order[begin : begin + together]]
        found = _fragments if not core.columns else _read if core.turned is None else _loaded
        rows, columns = found(threads, core)
        for number, thread in enumerate(order[begin : begin + together]):
            answers[thread] = _sums(number, stopped[thread][2], rows, columns, core)
    return answers


def exchanged(stopped: Sequence[Any], sizes: Sequence[int]) -> list[Any]:
    """What a SHUFFLE gives each thread. `stopped`: (place, in which bit threads' numbers differ, value)."""
    numbers = [_launch_index(n, sizes) for n in range(len(stopped))]
    values = {number: stop[2] for number, stop in zip(numbers, stopped, strict=True)}
    others = [number ^ stop[1] for number, stop in zip(numbers, stopped, strict=True)]
    for number, other in zip(numbers, others, strict=True):
        if other not in values:
            raise RuntimeError(f"thread {number} exchanges with thread {other}, and there is none")
    return [values[other] for other in others]


def _launch_index(number: int, sizes: Sequence[int]) -> int:
    """A thread's number in the launch, where x is the fastest."""
    places = []
    for size in reversed(sizes):
        number, place = divmod(number, size)
        places.append(place)
    found = 0
    for place, size in zip(places, reversed(sizes), strict=True):
        found = found * size + place
    return found


def _fragments(threads: Sequence[Any], core: TensorCore) -> tuple[Factor, Factor]:
    """The rows and the columns whose words the threads of a warp hold."""
    rows = [[0] * core.steps for _ in range(16)]
    columns = [[0] * core.steps for _ in range(8)]
    for number, (*_, words) in enumerate(threads):
        g, t = divmod(number, 4)
        parts = [_unpacked(word & ~((1 << core.unread) - 1), core.element) for word in words]
        for half in range(core.halves):
            begin = (4 * half + t) * core.packed
            for u in range(2):
                rows[g + 8 * u][begin : begin + core.packed] = parts[2 * half + u]
            columns[g][begin : begin + core.packed] = parts[2 * core.halves + half]
    return rows, columns


def _read(threads: Sequence[Any], core: TensorCore) -> tuple[Factor, Factor]:
    """The rows and the columns that lie in memory; all threads of the warps name the same place."""
    found = []
    for which, count in enumerate((16 * core.warps, core.columns)):
        (memory, place, as_bits), panel = threads[0][-1][which], core.tiles[which]
        assert panel is not None  # a product that is read from memory has both
        if len(threads) != WARP * core.warps or any(each[-1][which][1] != place for each in threads):
            raise RuntimeError("the threads of a group of warps multiply different matrices")
        places = [[place + panel.element(n, step) for step in range(core.steps)] for n in range(count)]
        found.append([[_read_at(memory[at], as_bits, core) for at in line] for line in places])
    return found[0], found[1]


def _loaded(threads: Sequence[Any], core: TensorCore) -> tuple[Factor, Factor]:
    """The rows and the columns made of matrices of 8 rows of 16 bytes, which begin where the threads say:
    thread 8m + r has row r of matrix m ("ldmatrix", PTX ISA).
    """
    assert core.turned is not None
    found = []
    whole = 16 // core.element.itemsize
    for which, own in enumerate((2, 1)):
        factor = [[0] * core.steps for _ in range(8 * own)]
        for m, r in itertools.product(range(own * core.halves), range(8)):
            memory, place, as_bits = threads[8 * m + r][-1][which]
            if place % whole:
                raise RuntimeError("a row of a matrix does not begin at a multiple of 16 bytes")
            begin, step = 8 * (m % own), whole * (m // own)
            for n in range(whole):
                at = (begin + n, step + r) if core.turned[which] else (begin + r, step + n)
                factor[at[0]][at[1]] = _read_at(memory[place + n], as_bits, core)
        found.append(factor)
    return found[0], found[1]


def _sums(number: int, sums: Sequence[Any], rows: Factor, columns: Factor, core: TensorCore) -> list[Any]:
    """What a thread adds to its sums, which are rounded after each instruction."""
    warp, lane = divmod(number, WARP)
    g, t = divmod(lane, 4)
    own = []
    for place, (c, u, v) in enumerate(itertools.product(range(len(columns) // 8), range(2), range(2))):
        row, column, total = rows[16 * warp + g + 8 * u], columns[8 * c + 2 * t + v], sums[place]
        for begin in range(0, core.steps, core.at_once):
            steps = slice(begin, begin + core.at_once)
            total = _rounded(
                total + sum(a * b for a, b in zip(row[steps], column[steps], strict=True)), core.total
            )
        own.append(total)
    return own


@functools.cache
def _unpacked(word: int, element: DType) -> list[Any]:
    bits = 8 * element.itemsize
    return [from_bits(word >> bits * n & (1 << bits) - 1, element) for n in range(32 // bits)]


def _read_at(value: Any, as_bits: bool, core: TensorCore) -> Any:
    """A factor: of a value in memory, or of its bits."""
    if not as_bits and not core.unread:
        return value
    bits = value if as_bits else to_bits(value, core.element)
    return from_bits(bits & ~((1 << core.unread) - 1), core.element)


def _rounded(value: Any, dtype: DType) -> Any:
    """One rounding for all products of an instruction: as exact as a tensor core may be."""
    return truncation(dtype)(value)

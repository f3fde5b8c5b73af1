"""Where the rows of a matrix are in a routine's memory, and how many lanes of it are worked on at once."""

from __future__ import annotations

from typing import NamedTuple

from ...target import Target


class Rows(NamedTuple):
    """Rows of `size` numbers, each `stride` behind the one before; `columns` of them are worked on.

    columns  a multiple of `group`, a power of two: what is behind `size` is 0
    stride   more than that where rows would lie on the same lines of a cache
    """

    size: int
    columns: int
    stride: int
    group: int

    @staticmethod
    def of(size: int) -> Rows:
        group = next((g for least, g in ((64, 32), (9, 16), (5, 8), (2, 4)) if size >= least), 1)
        columns = -(-size // group) * group
        return Rows(size, columns, columns + (16 if columns >= 128 else 0), group)


class Lanes(NamedTuple):
    """How a target works on rows: `lanes` in a vector, `beside` vectors side by side, `rows` at once."""

    lanes: int
    beside: int
    rows: int

    @staticmethod
    def of(target: Target, itemsize: int, group: int) -> Lanes:
        lanes = max(1, min(target.vector_bytes // itemsize, group))
        count = min(2, group // lanes)
        return Lanes(lanes, count, 8 if target.vector_registers >= 32 or count == 1 else 4)

    @property
    def width(self) -> int:
        return self.lanes * self.beside

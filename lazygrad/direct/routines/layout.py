"""How many lanes of the rows of a matrix are worked on at once."""

from __future__ import annotations

from typing import NamedTuple

from ...target import Target


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

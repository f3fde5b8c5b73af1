"""Panels: how a matrix lies in the memory of a workgroup for tensor cores that read it there themselves.

A panel has lines of 32, 64 or 128 bytes, one after the other; a matrix is as many panels as its width takes.
In a line the chunks of 16 bytes are swapped by the line's number, so that those of the same place in 8 lines
lie in all banks: what PTX ISA calls 32-, 64- and 128-byte swizzling ("Matrix Descriptor", "Strides",
"Canonical Layouts" of `wgmma.mma_async`). There the bits of an address from the fifth on are combined
(exclusive or) with those from the eighth on, so a panel begins at a multiple of 8 lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

#: Bytes of a chunk, and lines after which the swapping begins anew.
CHUNK, LINES = 16, 8
#: Bytes of a line → the mode in a descriptor.
MODES = {128: 1, 64: 2, 32: 3}


@dataclass(frozen=True)
class PackedTile:
    """Panels of a matrix whose elements have `itemsize` bytes.

    along_steps  whether lines go along the steps of the sum (PTX: K-major), and not along rows or columns
    line         elements of a line
    lines        how many a panel has
    itemsize     bytes of an element
    """

    along_steps: bool
    line: int
    lines: int
    itemsize: int

    @property
    def alignment(self) -> int:
        """Elements that a product's first one is a multiple of: lines after which swapping begins anew."""
        return LINES * self.line

    def index(self, line: Any, across: Any) -> Any:
        """Where element `across` of a row lies, the row being `line` of each panel: integers, or indices."""
        chunk, chunks = CHUNK // self.itemsize, self.line * self.itemsize // CHUNK
        own, turned = across // chunk % chunks, line // (LINES // chunks)
        swapped, bit = 0, 1
        while bit < chunks:  # exclusive or, bit by bit
            swapped = swapped + (own // bit + turned // bit) % 2 * bit
            bit *= 2
        return (
            across // self.line * (self.lines * self.line)
            + line * self.line
            + swapped * chunk
            + across % chunk
        )

    def element(self, outer: int, step: int) -> int:
        """Where a row or column has a step of the sum, from the first element of both on."""
        return int(self.index(outer, step) if self.along_steps else self.index(step, outer))

    def after(self, steps: int) -> int:
        """How many bytes further on, to a descriptor, begins a product that is so many steps further on."""
        return steps * self.itemsize * (1 if self.along_steps else self.line)

    @property
    def form(self) -> int:
        """A descriptor without the address: both offsets, in units of 16 bytes, and the mode."""
        leading = CHUNK if self.along_steps else self.lines * self.line * self.itemsize
        stride = LINES * self.line * self.itemsize
        return leading // 16 << 16 | stride // 16 << 32 | MODES[self.line * self.itemsize] << 62

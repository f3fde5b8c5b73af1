"""How large the blocks and tiles of a kernel in one pass are: from its sizes and the target alone."""

from __future__ import annotations

import math
from typing import NamedTuple

from ...ir.uop import UOp
from ...target import Target
from .rule import OnePass

#: Vectors side by side in a tile of registers.
BESIDE = 2
#: The shares of the second cache that are for a block of keys and for a block of rows.
KEYS, ROWS = 1 / 8, 3 / 8
#: There are so many batches and blocks of rows for the cores to share, where a block has so many tiles.
UNITS, TILES = 16, 16


class Sizes(NamedTuple):
    """How large blocks and tiles are.

    lanes   of a vector        width    of a panel: BESIDE vectors
    tile    rows of a tile     rows     of a block, of each group
    keys    of a block         columns  of the values, up to whole vectors
    """

    lanes: int
    width: int
    tile: int
    rows: int
    keys: int
    columns: int


def size_of(r: UOp) -> int:
    size: int = r.src[0].arg
    return size


def tile_of(target: Target) -> int:
    """Rows of a tile: their sums, a row of the right factors and one of the left fit registers."""
    return max((target.vector_registers - BESIDE - 1) // BESIDE, 1)


def sizes_of(parts: OnePass, target: Target) -> Sizes:
    """Blocks that fit the second cache; none depends on how many cores there are."""
    itemsize = parts.total.dtype.itemsize
    lanes = target.vector_bytes // itemsize
    width = BESIDE * lanes
    tile = tile_of(target)
    columns = -(-size_of(parts.column) // lanes) * lanes
    depth = sum(size_of(product.depth) for product in parts.products)
    room = target.memory.second * KEYS / itemsize / (depth + columns)
    keys = width
    while keys * 2 <= min(room, size_of(parts.key)):
        keys *= 2
    room = target.memory.second * ROWS / itemsize / (depth + columns + lanes + 1)
    most = max(int(room / math.prod(map(size_of, parts.groups))) // tile, 1) * tile
    blocks = -(-size_of(parts.row) // most)
    wanted = -(-UNITS // math.prod(map(size_of, parts.batch)))
    blocks = max(blocks, min(wanted, size_of(parts.row) // (TILES * tile)))
    rows = -(-size_of(parts.row) // (blocks * tile)) * tile
    return Sizes(lanes, width, tile, rows, keys, columns)


class Shape(NamedTuple):
    """How many units of work there are: batches times blocks of rows."""

    batches: int
    blocks: int

    @property
    def units(self) -> int:
        return self.batches * self.blocks


def shape_of_cost(parts: OnePass, target: Target) -> Shape:
    rows = sizes_of(parts, target).rows
    return Shape(math.prod(map(size_of, parts.batch)), -(-size_of(parts.row) // rows))

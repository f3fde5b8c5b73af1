"""How large the blocks of a kernel of several sums are (`joined.py`): from its sizes and the target alone."""

from __future__ import annotations

from ...target import Target
from .joined import Joined
from .sizes import BESIDE, KEYS, Sizes, size_of, tile_of

#: Tiles of rows whose terms are in memory at once: so many terms are added up for each load and store of a
#: sum of keys.
TILES = 4


def joined_sizes(parts: Joined, target: Target) -> Sizes:
    """Blocks that fit the second cache; `rows` are those of a block, of each group. None depends on how many
    cores there are."""
    itemsize = parts.products[0].total.dtype.itemsize
    lanes = target.vector_bytes // itemsize
    tile = tile_of(target)
    rows = TILES * tile
    depth = sum(size_of(product.depth) for product in parts.products)
    room = target.memory.second * KEYS / itemsize / (depth + len(parts.terms) * rows)
    keys = BESIDE * lanes
    while keys * 2 <= min(room, size_of(parts.key)):
        keys *= 2
    return Sizes(lanes, BESIDE * lanes, tile, rows, keys, 0)


def chunks_of(parts: Joined, sizes: Sizes) -> int:
    """How many blocks of keys are units of their own: none are where rows have sums over all of them."""
    return 1 if parts.of_rows else -(-size_of(parts.key) // sizes.keys)


def units_of(parts: Joined, target: Target) -> int:
    """What cores share."""
    return parts.batches() * chunks_of(parts, joined_sizes(parts, target))

"""The keys and values of what was read so far, for every block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..dtype import DType, dtypes
from ..jit.tensor_memory import put_into_memory
from ..tensor import Tensor
from ..tensor.sharding import in_shards
from .blocks import sizes


class Cache:
    """Keys and values of `slots` sequences, of up to `length` positions.

    keys, values  for each block a tensor (slots, kv_heads, length, head_dim)
    spans         which heads each of several devices has; None: all

    What stands behind a sequence's last position is never looked at: masks hide it.
    """

    def __init__(
        self,
        blocks: int,
        slots: int,
        kv_heads: int,
        length: int,
        head_dim: int,
        device: Any = None,
        dtype: DType = dtypes.float32,
        spans: Sequence[tuple[int, int]] | None = None,
    ) -> None:
        self.slots, self.length, self.spans = slots, length, spans
        shape = (slots, kv_heads, length, head_dim)
        # zeros would be one node, and one memory that the first write of each tensor copies
        made = [Tensor.empty(*shape, dtype=dtype, device=device) for _ in range(2 * blocks)]
        if isinstance(device, tuple) and spans is not None:
            parts = [Tensor.zeros(*shape, dtype=dtype, device=device[0]) for _ in made]
            made = [in_shards(part, device, 1, spans) for part in parts]
            Tensor.realize(*made)
        elif isinstance(made[0].device, tuple):
            Tensor.realize(*[memory.assign(0) for memory in made])
        else:
            for memory in made:
                put_into_memory(memory)  # which reads zeros, without a kernel
        self.keys, self.values = made[:blocks], made[blocks:]

    def longer(self, length: int) -> Cache:
        """A cache of more positions with the same contents."""
        first = self.keys[0]
        slots, kv_heads, old, head_dim = sizes(first)
        cache = Cache(
            len(self.keys), slots, kv_heads, length, head_dim, first.device, first.dtype, self.spans
        )
        for new, filled in zip(cache.keys + cache.values, self.keys + self.values, strict=True):
            new[:, :, :old] = filled
        Tensor.realize(*cache.keys, *cache.values)
        return cache


class Rows:
    """The part of a cache that one forward pass reads and writes.

    cache   the Cache
    row     its first row, an int or a bound Variable
    starts  for each row the position of its first new token, ints or bound Variables
    length  how many positions are read, those that are new included
    """

    def __init__(self, cache: Cache, row: Any, starts: list[Any], length: int) -> None:
        self.cache, self.row, self.starts, self.length = cache, row, starts, length

    def remember(self, block: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Write new keys and values (rows, kv_heads, tokens, head_dim) of a block; all that it has now."""
        rows, _, tokens, _ = keys.shape
        found = []
        for memory, new in ((self.cache.keys[block], keys), (self.cache.values[block], values)):
            new = new.cast(memory.dtype)
            for i, start in enumerate(self.starts):
                place = memory[self.row + i : self.row + i + 1, :, start : start + tokens]
                place.assign(new[i : i + 1])
            found.append(memory[self.row : self.row + rows, :, : self.length])
        return found[0], found[1]

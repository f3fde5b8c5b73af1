"""Forward passes under capture: a step over rows of a cache, captured once for each shape that comes.

Positions are bound Variables and a tensor, so one capture serves all of them. How many positions of the cache
a step reads is a power of two, which grows with the texts: what a fixed length computes is fast, and a longer
one is captured when it is first needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..dtype import dtypes
from ..ir import Variable
from ..jit import TinyJit, asks_nothing
from ..tensor import Tensor
from .cache import Cache, Rows
from .decoder import Decoder

#: The fewest positions that a token's step reads, and a prompt's: one capture more costs more than positions
#: that are read and hidden.
SHORTEST, SHORTEST_OF_PROMPT = 128, 512
#: The shortest cache: one that grows is copied, and what was captured is captured again.
SHORTEST_CACHE = 512
#: How many tokens of a prompt are read at once: the smallest of these that holds what is left.
PIECES = (1, 8, 32, 128)


def power_of_two(count: int, least: int = 1) -> int:
    """The smallest power of two from `least` on that is not below a count."""
    return max(least, 1 << max(count - 1, 0).bit_length())


class Stepper:
    """A decoder, a cache of `slots` rows, and the captures of steps over them.

    slots  rows of the cache        piece  the most tokens of a prompt that are read at once
    """

    def __init__(self, decoder: Decoder, slots: int, piece: int) -> None:
        self.decoder, self.slots = decoder, slots
        self.sizes = (*(size for size in PIECES if size < piece), piece)
        self.cache: Cache | None = None
        self.shortest = min(SHORTEST_CACHE, power_of_two(decoder.description.context, SHORTEST))
        self.captures: dict[tuple[Any, ...], Callable[..., Any]] = {}
        self._rates: list[Tensor] | None = None

    def padded(self, count: int) -> int:
        """How many tokens are computed where `count` are to be read."""
        return next((size for size in self.sizes if size >= count), self.sizes[-1])

    def read(self, row: int, tokens: Sequence[int], start: int) -> np.ndarray:
        """Read tokens of one row from a position on; the logits after the last, (vocabulary,).

        tokens  at most the largest piece; what they are filled up with to a known size is overwritten later
        """
        count, size = len(tokens), self.padded(len(tokens))
        self.reserve(start + size)
        given = np.zeros((1, size + 1), np.int32)
        given[0, :count], given[0, size] = tokens, start
        last = Variable("last", 0, size - 1).bind(count - 1) if size > 1 else 0
        at = Variable("row", 0, self.slots - 1).bind(row) if self.slots > 1 else 0
        run = self._captured(1, size, power_of_two(start + size, SHORTEST_OF_PROMPT))
        logits = run(*self._inputs(given, [start + count]), at, self._starts([start], size), last)
        found: np.ndarray = logits.numpy()[0, 0]
        return found

    def decode(self, tokens: Sequence[int], starts: Sequence[int], reach: int) -> np.ndarray:
        """One token more of the first rows: their logits, (rows, vocabulary).

        starts  where each row's token stands        reach  the positions that are read, at least
        """
        self.reserve(max(starts) + 1)
        given = np.array([tokens, starts], np.int32).T
        run = self._captured(len(tokens), 1, power_of_two(reach, SHORTEST))
        inputs = self._inputs(given, [start + 1 for start in starts])
        found: np.ndarray = run(*inputs, 0, self._starts(starts, 1), 0).numpy()[:, 0]
        return found

    def reserve(self, length: int) -> None:
        """Have room for so many positions of each row."""
        if self.cache is None:
            self.cache = self.decoder.cache(self.slots, power_of_two(length, self.shortest))
        elif self.cache.length < length:
            self.cache = self.cache.longer(power_of_two(length))
            self.captures.clear()  # they hold the memory of the old one

    def _inputs(self, given: np.ndarray, lengths: list[int]) -> tuple[Tensor, list[Tensor]]:
        """Tokens with their rows' first positions behind them, and the rates of texts of these lengths."""
        changing = any(rotary.depends_on_length for rotary in self.decoder.description.rotaries)
        if changing or self._rates is None:
            self._rates = self.decoder.rates(lengths if changing else [1])
        return Tensor(given, device=self.decoder.device), self._rates

    def _starts(self, starts: Sequence[int], size: int) -> list[Any]:
        assert self.cache is not None  # reserved
        top = self.cache.length - size
        return [Variable(f"start{i}", 0, top).bind(start) if top else 0 for i, start in enumerate(starts)]

    def _captured(self, rows: int, size: int, reach: int) -> Callable[..., Any]:
        """The step over so many rows and tokens that reads `reach` positions, or all that there are."""
        cache, decoder = self.cache, self.decoder
        assert cache is not None  # reserved
        length = min(reach, cache.length)
        key = (rows, size, length)
        if key not in self.captures:

            @asks_nothing
            def step(given: Tensor, rates: list[Tensor], row: Any, starts: list[Any], last: Any) -> Tensor:
                part = Rows(cache, row, starts, length)
                hidden = decoder.hidden(given[:, :size], given[:, size], rates, part)
                return decoder.logits(hidden[:, last : last + 1].contiguous()).cast(dtypes.float32).realize()

            self.captures[key] = TinyJit(step)
        return self.captures[key]

"""The decoder: tokens to logits, as a Description says.

Blocks are alike, so what one compiles the others use.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ..dtype import dtypes
from ..tensor import Tensor
from .blocks import Angles, Block, Linear, Norm, sizes
from .cache import Cache, Rows
from .description import Description


class Decoder:
    """A decoder with its weights.

    embedding  (vocabulary, width), a Tensor or a QuantizedTensor
    positions  (context, width) where positions have weights, else None
    blocks     the layers          norm  behind the last
    head       a Linear to logits
    """

    def __init__(
        self,
        description: Description,
        embedding: Any,
        positions: Tensor | None,
        blocks: list[Block],
        norm: Norm,
        head: Linear,
    ) -> None:
        self.description, self.embedding, self.positions = description, embedding, positions
        self.blocks, self.norm, self.head = blocks, norm, head
        self.device = norm.weight.device
        self.head_spans: list[tuple[int, int]] | None = None  # which key heads each of several devices has

    def cache(self, slots: int, length: int) -> Cache:
        """An empty cache."""
        d = self.description
        return Cache(d.layers, slots, d.kv_heads, length, d.head_dim, self.device, spans=self.head_spans)

    def rates(self, lengths: list[int]) -> list[Tensor]:
        """For each way to turn positions the rates of texts of these lengths, (texts, dim / 2)."""
        return [
            Tensor(np.stack([rotary.rates(length) for length in lengths]), device=self.device)
            for rotary in self.description.rotaries
        ]

    def hidden(
        self,
        tokens: Tensor,
        starts: Tensor | None = None,
        rates: list[Tensor] | None = None,
        rows: Rows | None = None,
    ) -> Tensor:
        """What the blocks make of tokens, (batch, tokens, width) float32, before the last norm.

        tokens  integers (batch, tokens)
        starts  (batch,) the position of each text's first token; 0 if not given
        rates   as `rates` gives them
        rows    the part of a cache where the tokens before stand
        """
        d = self.description
        batch, count = sizes(tokens)[:2]
        places = Tensor.arange(count, device=self.device).reshape(1, count)
        places = places.expand(batch, count) if starts is None else places + starts.reshape(batch, 1)
        x = self._embedded(tokens, places)
        angles = self._angles(places, self.rates([count] * batch) if rates is None else rates)
        masks = self._masks(places, count if rows is None else rows.length)
        x = _now(x)
        for i, block in enumerate(self.blocks):
            turn = d.rotary_of[i]
            x = block(
                x,
                None if turn is None else angles[turn],
                masks[d.windows[i]],
                None if rows is None else functools.partial(rows.remember, i),
            )
            x = _now(x)
        return x

    def logits(self, hidden: Tensor) -> Tensor:
        """(..., width) → (..., vocabulary), float32."""
        d = self.description
        y = self.head(self.norm(hidden))
        y = y * d.logit_scale if d.logit_scale != 1 else y
        return y if d.logit_cap is None else (y / d.logit_cap).tanh() * d.logit_cap

    def _embedded(self, tokens: Tensor, places: Tensor) -> Tensor:
        d = self.description
        table = self.embedding
        x = (
            tokens.embedding(table)
            if isinstance(table, Tensor)
            else table.take(tokens._class_checked(table.shape[0]))
        ).cast(dtypes.float32)
        if d.embed_scale != 1:
            x = x * d.embed_scale
        if self.positions is None:
            return x
        # what a piece of a text is filled up with may stand beyond them, and does not count
        places = places.minimum(self.positions.shape[0] - 1)
        return x + places.embedding(self.positions).cast(dtypes.float32)

    def _angles(self, places: Tensor, rates: list[Tensor]) -> list[Angles]:
        """Computed once for all blocks."""
        found = []
        for rotary, rate in zip(self.description.rotaries, rates, strict=True):
            angle = places.cast(dtypes.float32).unsqueeze(-1) * rate.unsqueeze(1)
            cos, sin = angle.cos() * rotary.scale, angle.sin() * rotary.scale
            found.append(Angles(_now(cos), _now(sin), rotary.interleaved))
        return found

    def _masks(self, places: Tensor, keys: Any) -> dict[int | None, Tensor]:
        """Window → (batch, 1, 1, tokens, keys): which keys a query sees."""
        place = places.reshape(places.shape[0], 1, 1, places.shape[1], 1)
        key = Tensor.arange(keys, device=self.device)
        masks = {}
        for window in set(self.description.windows):
            mask = key <= place
            masks[window] = mask if window is None else mask & (key > place - window)
        return masks


def _now(x: Tensor) -> Tensor:
    """Blocks are planned one by one, and those that are alike once; a training step is one graph."""
    return x if Tensor.training else x.realize()

"""A language model whose activations are rounded to 8 bits where weights in blocks multiply them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..nn.integer_weights import BLOCK, IntegerWeights
from ..nn.quantized import QuantizedTensor
from .blocks import Block, FeedForward, Linear

if TYPE_CHECKING:
    from .decoder import Decoder

#: What activations may be: as they are, or rounded.
ACTIVATIONS = ("float32", "int8")


def round_activations(decoder: Decoder) -> None:
    """Have the projections of a decoder multiply by sums of integers (`IntegerWeights`): it is changed.

    Weights that are plain numbers, and experts of which each token has its own, go on as they are. ValueError
    where no weight is in blocks.
    """
    made: dict[int, IntegerWeights] = {}
    for linear in _linears(decoder):
        weight = linear.weight
        if isinstance(weight, QuantizedTensor) and weight.shape[1] % BLOCK == 0:
            linear.weight = made[id(weight)] = IntegerWeights(weight)
    if not made:
        raise ValueError(
            "activations are rounded for weights in blocks, and this model has plain numbers: its weights as "
            "GGUF (Q4_1, Q8_0, ...) have them"
        )
    decoder.embedding = made.get(id(decoder.embedding), decoder.embedding)  # where it is the head too


def _linears(decoder: Decoder) -> Iterator[Linear]:
    yield decoder.head
    for block in decoder.blocks:
        yield from (*block.attention.projections, block.attention.out, *_feed_forward(block))


def _feed_forward(block: Block) -> tuple[Linear, ...]:
    layer = block.feed_forward
    shared = layer if isinstance(layer, FeedForward) else layer.shared
    return () if shared is None else (*shared.ins, shared.down)

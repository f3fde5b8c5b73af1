"""A language model on several devices: each has a part of every projection, split along its outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..device import Device
from ..nn.integer_weights import IntegerWeights
from ..nn.quantized import QuantizedTensor
from .blocks import Block, FeedForward, Linear, Norm
from .language_model import LanguageModel


def device_list(device: str | None, count: int) -> tuple[str, ...]:
    """So many devices of one kind: `CPU`, `CPU:1`, ..."""
    kind = (device or Device.DEFAULT).partition(":")[0].upper()
    return tuple(kind if number == 0 else f"{kind}:{number}" for number in range(count))


def shard(model: LanguageModel, devices: Sequence[str]) -> LanguageModel:
    """The model, its weights now on these devices: `model` itself is changed.

    Projections are split along their outputs, the head along the words; all else (norms, biases, the table of
    embeddings, the cache) is copied. Each device computes its outputs of a projection, and what the next one
    reads is brought together by itself (docs/sharding.md).

    Weights in blocks stay in blocks. NotImplementedError for experts; ValueError where a projection has fewer
    outputs than there are devices.
    """
    places, decoder = tuple(devices), model.decoder
    linears = [decoder.head, *(linear for block in decoder.blocks for linear in _linears(block))]
    for linear in linears:
        if linear.weight.shape[0] < len(places):
            raise ValueError(f"a projection to {linear.weight.shape[0]} outputs on {len(places)} devices")
    for linear in linears:
        linear.weight = _laid(linear.weight, places, 0)
        linear.bias = _laid(linear.bias, places)
    for norm in [decoder.norm, *(norm for block in decoder.blocks for norm in _norms(block))]:
        norm.weight, norm.bias = _laid(norm.weight, places), _laid(norm.bias, places)
    decoder.embedding = _laid(decoder.embedding, places)
    decoder.positions = _laid(decoder.positions, places)
    decoder.device = places  # where inputs and the cache are made
    return model


def _laid(weight: Any, places: tuple[str, ...], axis: int | None = None) -> Any:
    """A Tensor, a QuantizedTensor or None in parts along an axis, or with a copy on each device."""
    if isinstance(weight, IntegerWeights):
        raise NotImplementedError(
            "sharding of weights that multiply rounded activations (activations='int8')"
        )
    if isinstance(weight, QuantizedTensor):
        planes = {name: plane.shard(places, axis).realize() for name, plane in weight.planes.items()}
        return QuantizedTensor.of_planes(planes, weight.format)
    return None if weight is None else weight.shard(places, axis).realize()


def _linears(block: Block) -> Iterator[Linear]:
    if not isinstance(block.feed_forward, FeedForward):
        raise NotImplementedError("sharding of experts")
    yield from (*block.attention.projections, block.attention.out)
    yield from (*block.feed_forward.ins, block.feed_forward.down)


def _norms(block: Block) -> Iterator[Norm]:
    own = (block.attention.q_norm, block.attention.k_norm)
    yield from (norm for norm in (*block.norms, *block.after, *own) if norm is not None)

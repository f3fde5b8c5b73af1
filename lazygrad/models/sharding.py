"""A language model on several devices: each has some of the heads and of the features of every layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..device import Device
from ..nn.integer_weights import IntegerWeights
from ..nn.quantized import QuantizedTensor
from ..schedule.graph.layouts import even_spans
from ..tensor.sharding import in_shards
from .blocks import Attention, Block, FeedForward, Linear, Norm
from .language_model import LanguageModel

#: Where the part of each device begins and ends.
Spans = list[tuple[int, int]]


def device_list(device: str | None, count: int) -> tuple[str, ...]:
    """So many devices of one kind: `CPU`, `CPU:1`, ..."""
    kind = (device or Device.DEFAULT).partition(":")[0].upper()
    return tuple(kind if number == 0 else f"{kind}:{number}" for number in range(count))


def shard(model: LanguageModel, devices: Sequence[str]) -> LanguageModel:
    """The model, its weights now on these devices: `model` itself is changed.

    A device has some of the key heads, with the queries that read them and the cache of both, and some of the
    features between the layers of a feed-forward: what comes in is split along its outputs (`q`, `k`, `v`,
    `gate`, `up`), what goes out along its inputs (`out`, `down`), whose sums are combined. So a block has two
    all-reduces of a line of its width, and nothing else crosses (Shoeybi et al. 2019, arXiv:1909.08053). The
    head is split along the words; all else (norms, biases, the table of embeddings) is copied.

    Where the heads or the features do not divide so (fewer key heads than devices, one weight for q, k and v,
    a block of a quantised weight in two parts), projections are split along their outputs alone, and what the
    next one reads is brought together by itself (docs/sharding.md).

    Weights in blocks stay in blocks. NotImplementedError for experts; ValueError where a projection has fewer
    outputs than there are devices.
    """
    places, decoder = tuple(devices), model.decoder
    linears = [decoder.head, *(linear for block in decoder.blocks for linear in _linears(block))]
    for linear in linears:
        if linear.weight.shape[0] < len(places):
            raise ValueError(
                f"a projection with {linear.weight.shape[0]} outputs cannot be divided among "
                f"{len(places)} devices"
            )
    heads = _head_spans(decoder.blocks, len(places))
    for block in decoder.blocks:
        _lay_attention(block.attention, places, heads)
        if isinstance(block.feed_forward, FeedForward):
            _lay_feed_forward(block.feed_forward, places)
    _lay(decoder.head, places, 0)
    for norm in [decoder.norm, *(norm for block in decoder.blocks for norm in _norms(block))]:
        norm.weight, norm.bias = _laid(norm.weight, places), _laid(norm.bias, places)
    decoder.embedding = _laid(decoder.embedding, places)
    decoder.positions = _laid(decoder.positions, places)
    decoder.device, decoder.head_spans = places, heads  # where inputs and the cache are made
    return model


def _head_spans(blocks: Sequence[Block], count: int) -> Spans | None:
    """Which key heads each device has; None where attention does not fall into such parts."""
    for attention in (block.attention for block in blocks):
        if len(attention.projections) != 3 or attention.kv_heads < count:
            return None
        size = attention.heads // attention.kv_heads * attention.head_dim
        if not _divides(attention.out.weight, _times(even_spans(attention.kv_heads, count), size)):
            return None
    return even_spans(blocks[0].attention.kv_heads, count) if blocks else None


def _lay_attention(attention: Attention, places: tuple[str, ...], heads: Spans | None) -> None:
    if heads is None:
        for linear in (*attention.projections, attention.out):
            _lay(linear, places, 0)
        return
    of_keys = _times(heads, attention.head_dim)
    of_queries = _times(of_keys, attention.heads // attention.kv_heads)
    for linear, spans in zip(attention.projections, (of_queries, of_keys, of_keys), strict=True):
        _lay(linear, places, 0, spans)
    _lay(attention.out, places, 1, of_queries)


def _lay_feed_forward(layer: FeedForward, places: tuple[str, ...]) -> None:
    for linear in layer.ins:
        _lay(linear, places, 0)
    features = layer.down.weight.shape[1]
    spans = even_spans(features, len(places))
    if features >= len(places) and _divides(layer.down.weight, spans):
        _lay(layer.down, places, 1, spans)
    else:
        _lay(layer.down, places, 0)


def _times(spans: Spans, factor: int) -> Spans:
    return [(begin * factor, end * factor) for begin, end in spans]


def _divides(weight: Any, spans: Spans) -> bool:
    """Whether a weight's inputs can be cut where these spans end: not within a block."""
    size = weight.format.elements if isinstance(weight, QuantizedTensor) else 1
    return all(end % size == 0 for _, end in spans)


def _lay(linear: Linear, places: tuple[str, ...], axis: int, spans: Spans | None = None) -> None:
    """Split a projection along its outputs (axis 0) or its inputs (1); a bias goes with the outputs."""
    outputs = axis == 0
    linear.weight = _laid(linear.weight, places, axis, spans)
    linear.bias = _laid(linear.bias, places, 0 if outputs else None, spans if outputs else None)


def _laid(weight: Any, places: tuple[str, ...], axis: int | None = None, spans: Spans | None = None) -> Any:
    """A Tensor, a QuantizedTensor or None in parts along an axis, or with a copy on each device."""
    if isinstance(weight, IntegerWeights):
        raise NotImplementedError(
            "sharding of weights that multiply rounded activations (activations='int8') is not supported"
        )
    if isinstance(weight, QuantizedTensor):
        size = weight.format.elements if axis == weight.ndim - 1 else 1
        blocks = spans and [(begin // size, end // size) for begin, end in spans]
        planes = {name: _laid(plane, places, axis, blocks) for name, plane in weight.planes.items()}
        return QuantizedTensor.of_planes(planes, weight.format)
    if weight is None:
        return None
    if axis is None or spans is None:
        return weight.shard(places, axis).realize()
    return in_shards(weight, places, axis, spans).realize()


def _linears(block: Block) -> Iterator[Linear]:
    if not isinstance(block.feed_forward, FeedForward):
        raise NotImplementedError("sharding of experts is not supported")
    yield from (*block.attention.projections, block.attention.out)
    yield from (*block.feed_forward.ins, block.feed_forward.down)


def _norms(block: Block) -> Iterator[Norm]:
    own = (block.attention.q_norm, block.attention.k_norm)
    yield from (norm for norm in (*block.norms, *block.after, *own) if norm is not None)

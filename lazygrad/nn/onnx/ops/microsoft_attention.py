"""com.microsoft: attention with its projections, caches of keys and values, rotary positions."""

from __future__ import annotations

import math
from typing import Any

from ....tensor import Tensor
from ..table import MICROSOFT, op
from ..values import scalar, shape_of
from .attention import grouped_scores, grouped_values, heads, merged, rotated
from .microsoft_quantized import matmul_integer_to_float


def _key_mask(mask: Tensor, batch: int, m: int, n: int) -> Tensor:
    """True where a key is seen, broadcast to (batch, heads, m, n), of the forms of a mask that are allowed.

    (batch,): how many keys; (2·batch,): ends, then begins; (3·batch + 2,): lengths first; (batch, n); (batch,
    m, n); (batch, 1, longest, longest)
    """
    shape = shape_of(mask)
    places = Tensor.arange(n, dtype="int32").reshape(1, 1, 1, n)
    if mask.ndim == 1:
        ends = mask[:batch].cast("int32").reshape(batch, 1, 1, 1)
        seen = places < ends
        if shape[0] == 2 * batch and batch:
            seen = seen.logical_and(places >= mask[batch:].cast("int32").reshape(batch, 1, 1, 1))
        return seen
    if mask.ndim == 2:
        return (mask != 0).reshape(shape[0], 1, 1, n)
    if mask.ndim == 3:
        return (mask != 0).unsqueeze(1)
    return (mask != 0)[:, :, n - m : n, :n]


def _attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    scale: float | None,
    seen: Tensor | None,
    bias: Tensor | None,
    hidden: float,
    causal: bool,
) -> tuple[Tensor, Tensor]:
    """softmax(q kᵀ · scale + bias) v, and the scores; `hidden` is added where a key is not seen."""
    m, n = shape_of(q)[2], shape_of(k)[2]
    scores = grouped_scores(q, k) * (scale or 1 / math.sqrt(shape_of(q)[3]))
    if causal:
        past = Tensor.arange(n, dtype="int32").reshape(1, n) <= Tensor.arange(m, dtype="int32").reshape(
            m, 1
        ) + (n - m)
        seen = past if seen is None else seen.logical_and(past)
    if seen is not None:
        scores = seen.where(scores, scores + hidden)
    if bias is not None:
        scores = scores + bias
    return grouped_values(scores.softmax(-1), v), scores


@op("Attention", domain=MICROSOFT)
def attention(
    x: Tensor,
    weights: Tensor,
    bias: Tensor | None = None,
    mask_index: Tensor | None = None,
    past: Tensor | None = None,
    attention_bias: Tensor | None = None,
    past_sequence_length: Tensor | None = None,
    *,
    num_heads: int,
    mask_filter_value: float = -10000.0,
    qkv_hidden_sizes: Any = None,
    scale: float = 0.0,
    unidirectional: int = 0,
    do_rotary: int = 0,
    past_present_share_buffer: int = 0,
    rotary_embedding_dim: int = 0,
    outputs: int,
) -> Any:
    """x @ weights + bias are queries, keys and values beside each other."""
    if do_rotary or past_present_share_buffer:
        raise NotImplementedError(
            "com.microsoft.Attention with do_rotary or past_present_share_buffer is not supported"
        )
    joined = x.matmul(weights)
    joined = joined if bias is None else joined + bias
    parts = list(qkv_hidden_sizes or [shape_of(joined)[-1] // 3] * 3)
    return _of_joined(
        joined,
        parts,
        mask_index,
        past,
        attention_bias,
        num_heads,
        mask_filter_value,
        scale,
        unidirectional,
        outputs,
    )


def _of_joined(
    joined: Tensor,
    parts: list[int],
    mask_index: Tensor | None,
    past: Tensor | None,
    attention_bias: Tensor | None,
    num_heads: int,
    mask_filter_value: float,
    scale: float,
    unidirectional: int,
    outputs: int,
) -> Any:
    q, k, v = (heads(part, num_heads) for part in joined.split(parts, -1))
    if past is not None:
        k, v = past[0].cat(k, dim=2), past[1].cat(v, dim=2)
    seen = None
    if mask_index is not None:
        seen = _key_mask(mask_index, shape_of(q)[0], shape_of(q)[2], shape_of(k)[2])
    y, _ = _attend(q, k, v, scale or None, seen, attention_bias, mask_filter_value, bool(unidirectional))
    present = Tensor.stack(k, v) if outputs > 1 else None
    return (merged(y), present)[:outputs]


@op("QAttention", domain=MICROSOFT)
def qattention(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    input_scale: Tensor,
    weight_scale: Tensor,
    mask_index: Tensor | None = None,
    input_zero_point: Tensor | None = None,
    weight_zero_point: Tensor | None = None,
    past: Tensor | None = None,
    *,
    num_heads: int,
    mask_filter_value: float = -10000.0,
    scale: float = 0.0,
    unidirectional: int = 0,
    do_rotary: int = 0,
    past_present_share_buffer: int = 0,
    outputs: int,
) -> Any:
    """`Attention` whose projection is of 8-bit numbers."""
    if do_rotary or past_present_share_buffer:
        raise NotImplementedError(
            "com.microsoft.QAttention with do_rotary or past_present_share_buffer is not supported"
        )
    joined = matmul_integer_to_float(
        x, weight, input_scale, weight_scale, input_zero_point, weight_zero_point, bias
    )
    parts = [shape_of(joined)[-1] // 3] * 3
    return _of_joined(
        joined, parts, mask_index, past, None, num_heads, mask_filter_value, scale, unidirectional, outputs
    )


@op("MultiHeadAttention", domain=MICROSOFT)
def multi_head_attention(
    query: Tensor,
    key: Tensor | None = None,
    value: Tensor | None = None,
    bias: Tensor | None = None,
    key_padding_mask: Tensor | None = None,
    attention_bias: Tensor | None = None,
    past_key: Tensor | None = None,
    past_value: Tensor | None = None,
    *,
    num_heads: int,
    mask_filter_value: float = -10000.0,
    scale: float = 0.0,
    unidirectional: int = 0,
    outputs: int,
) -> Any:
    """Queries, keys and values flat, split into heads, or packed: (b, n, heads, 3 or 2, size)."""
    if query.ndim == 5:
        q, k, v = (query[:, :, :, part].permute(0, 2, 1, 3) for part in range(3))
    else:
        size = shape_of(query)[2]
        lines = [None] * 3 if bias is None else [bias[:size], bias[size : 2 * size], bias[2 * size :]]
        q = heads(_plus(query, lines[0]), num_heads)
        if key is None:
            raise NotImplementedError("MultiHeadAttention without keys is not supported")
        if key.ndim == 5:
            k, v = (key[:, :, :, part].permute(0, 2, 1, 3) for part in range(2))
        elif key.ndim == 4 or value is None:
            if value is None:
                raise NotImplementedError("MultiHeadAttention without values is not supported")
            k, v = key, value
        else:
            k, v = heads(_plus(key, lines[1]), num_heads), heads(_plus(value, lines[2]), num_heads)
    if past_key is not None and past_value is not None:
        k, v = past_key.cat(k, dim=2), past_value.cat(v, dim=2)
    seen = None
    if key_padding_mask is not None:
        seen = _key_mask(key_padding_mask, shape_of(q)[0], shape_of(q)[2], shape_of(k)[2])
    y, scores = _attend(q, k, v, scale or None, seen, attention_bias, mask_filter_value, bool(unidirectional))
    return (merged(y), k, v, scores)[:outputs]


def _plus(x: Tensor, bias: Tensor | None) -> Tensor:
    return x if bias is None else x + bias


@op("RotaryEmbedding", domain=MICROSOFT)
def rotary_embedding(
    x: Tensor,
    position_ids: Tensor,
    cos_cache: Tensor,
    sin_cache: Tensor,
    *,
    interleaved: int = 0,
    is_packed_batching: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
    scale: float = 1.0,
) -> Tensor:
    """`position_ids` are those of all words, or the first one's alone."""
    half = shape_of(cos_cache)[1]
    size = rotary_embedding_dim or 2 * half
    flat = x.ndim == 3
    if flat:
        count = num_heads if num_heads else shape_of(x)[2] // (2 * half)
        inner = heads(x, count)
    else:
        inner = x
    length = shape_of(inner)[2]
    places = position_ids
    if places.ndim == 1:
        places = places.reshape(1, 1) + Tensor.arange(length, dtype=places.dtype).reshape(1, length)
    cos, sin = cos_cache[places].unsqueeze(1), sin_cache[places].unsqueeze(1)
    y = rotated(inner, cos, sin, bool(interleaved), size).cast(x.dtype)
    return merged(y) if flat else y


@op("GroupQueryAttention", domain=MICROSOFT, host=("total_sequence_length",))
def group_query_attention(
    query: Tensor,
    key: Tensor | None,
    value: Tensor | None,
    past_key: Tensor | None,
    past_value: Tensor | None,
    seqlens_k: Tensor,
    total_sequence_length: Any,
    cos_cache: Tensor | None = None,
    sin_cache: Tensor | None = None,
    position_ids: Tensor | None = None,
    attention_bias: Tensor | None = None,
    head_sink: Tensor | None = None,
    *,
    num_heads: int,
    kv_num_heads: int,
    do_rotary: int = 0,
    local_window_size: int = -1,
    rotary_interleaved: int = 0,
    scale: float = 0.0,
    smooth_softmax: int = 0,
    softcap: float = 0.0,
    outputs: int,
) -> Any:
    """Causal attention with a cache: new keys are written behind those that each sequence has already.

    seqlens_k  (batch,) how many keys each sequence has with the new ones, minus 1
    """
    batch, m, width = shape_of(query)
    if key is None or value is None:
        size = width // (num_heads + 2 * kv_num_heads)
        query, key, value = query.split([num_heads * size, kv_num_heads * size, kv_num_heads * size], -1)
    q, k, v = heads(query, num_heads), heads(key, kv_num_heads), heads(value, kv_num_heads)
    total = int(scalar(total_sequence_length))
    lengths = seqlens_k.cast("int32").reshape(batch, 1, 1, 1) + 1
    # Of a prompt nothing is there before, whatever its padding behind.
    before = lengths * 0 if m == total else lengths - m
    steps = Tensor.arange(m, dtype="int32")
    if do_rotary and cos_cache is not None and sin_cache is not None:
        places = before.reshape(batch, 1) + steps if position_ids is None else position_ids
        cos, sin = cos_cache[places].unsqueeze(1), sin_cache[places].unsqueeze(1)
        turned = 2 * shape_of(cos_cache)[1]
        q = rotated(q, cos, sin, bool(rotary_interleaved), turned).cast(query.dtype)
        k = rotated(k, cos, sin, bool(rotary_interleaved), turned).cast(query.dtype)
    n = max(total, shape_of(past_key)[2] if past_key is not None else 0)
    k, v = _appended(past_key, k, before, n), _appended(past_value, v, before, n)
    scores = grouped_scores(q, k).float() * (scale or 1 / math.sqrt(shape_of(q)[3]))
    scores = (scores / softcap).tanh() * softcap if softcap else scores
    if attention_bias is not None:
        bias = attention_bias[..., :n]
        missing = n - shape_of(bias)[-1]
        scores = scores + (bias.pad((0, missing)) if missing else bias)
    here = before + steps.reshape(1, 1, m, 1)
    behind = Tensor.arange(n, dtype="int32").reshape(1, 1, 1, n)
    seen = behind <= here
    if local_window_size > 0:
        seen = seen.logical_and(behind > here - local_window_size)
    scores = seen.where(scores, -math.inf)
    if smooth_softmax or head_sink is not None:
        sink = Tensor.zeros(num_heads) if head_sink is None else head_sink.float()
        extra = sink.reshape(1, num_heads, 1, 1).expand(batch, num_heads, m, 1)
        weights = scores.cat(extra, dim=-1).softmax(-1)[..., :n]
    else:
        weights = scores.softmax(-1)
    y = grouped_values(weights.cast(v.dtype), v)
    return (merged(y).cast(query.dtype), k, v)[:outputs]


def _appended(past: Tensor | None, new: Tensor, before: Tensor, n: int) -> Tensor:
    """A cache of n places with the new rows behind the `before` that each sequence has."""
    b, g, m, size = shape_of(new)
    places = Tensor.arange(n, dtype="int32").reshape(1, 1, n, 1) - before
    inside = (places >= 0).logical_and(places < m)
    rows = new.gather(2, places.clamp(0, m - 1).expand(b, g, n, size))
    if past is None:
        return inside.where(rows, 0.0).cast(new.dtype)
    old = past.pad([(0, 0), (0, 0), (0, n - shape_of(past)[2]), (0, 0)])
    return inside.where(rows, (places < 0).where(old, 0.0)).cast(new.dtype)

"""Attention and what goes with it: rotary positions, gated units, linear attention."""

from __future__ import annotations

import math
from typing import Any

from ....dtype import dtypes
from ....tensor import Tensor
from ..table import op
from ..values import DTYPE_OF, shape_of


def heads(x: Tensor, count: int) -> Tensor:
    """(batch, length, heads · size) → (batch, heads, length, size)"""
    return x.reshape(*shape_of(x)[:2], count, shape_of(x)[2] // count).permute(0, 2, 1, 3)


def merged(x: Tensor) -> Tensor:
    """(batch, heads, length, size) → (batch, length, heads · size)"""
    return x.permute(0, 2, 1, 3).reshape(shape_of(x)[0], shape_of(x)[2], -1)


def grouped_scores(q: Tensor, k: Tensor) -> Tensor:
    """q @ kᵀ, where several heads of queries share one of keys: (b, h, m, d), (b, g, n, d) → (b, h, m, n)"""
    b, h, m, d = shape_of(q)
    g = shape_of(k)[1]
    if g == h:
        return q.matmul(k.transpose(-1, -2))
    return q.reshape(b, g, h // g * m, d).matmul(k.transpose(-1, -2)).reshape(b, h, m, shape_of(k)[2])


def grouped_values(weights: Tensor, v: Tensor) -> Tensor:
    """weights @ v: (b, h, m, n), (b, g, n, e) → (b, h, m, e)"""
    b, h, m, n = shape_of(weights)
    g = shape_of(v)[1]
    if g == h:
        return weights.matmul(v)
    return weights.reshape(b, g, h // g * m, n).matmul(v).reshape(b, h, m, shape_of(v)[3])


def softmax_or_zeros(scores: Tensor, masked: bool) -> Tensor:
    """Softmax along the last axis; where a mask hides everything zeros."""
    if not masked:
        return scores.softmax(-1)
    top = scores.max(-1, keepdim=True)
    top = (top == -math.inf).where(0.0, top)
    powers = (scores - top).exp()
    total = powers.sum(-1, keepdim=True)
    return powers / (total == 0).where(1.0, total)


@op("Attention")
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    attn_mask: Tensor | None = None,
    past_key: Tensor | None = None,
    past_value: Tensor | None = None,
    nonpad_kv_seqlen: Tensor | None = None,
    *,
    is_causal: int = 0,
    kv_num_heads: int = 0,
    q_num_heads: int = 0,
    qk_matmul_output_mode: int = 0,
    scale: float | None = None,
    softcap: float = 0.0,
    softmax_precision: int | None = None,
    left_window_size: int = -1,
    right_window_size: int = -1,
    outputs: int,
) -> Any:
    flat = q.ndim == 3
    if flat:
        q, k, v = heads(q, q_num_heads), heads(k, kv_num_heads), heads(v, kv_num_heads)
    if past_key is not None and past_value is not None:
        k, v = past_key.cat(k, dim=2), past_value.cat(v, dim=2)
    m, n = shape_of(q)[2], shape_of(k)[2]
    # Half of the scale to each side, so that half precision does not overflow.
    factor = math.sqrt(1 / math.sqrt(shape_of(q)[3]) if scale is None else scale)
    scores = grouped_scores((q * factor).cast(q.dtype), (k * factor).cast(k.dtype))
    shown = [scores]
    if softcap:
        scores = ((scores / softcap).tanh() * softcap).cast(q.dtype)
    shown.append(scores)
    offset: Any = shape_of(past_key)[2] if past_key is not None else 0
    allowed: Tensor | None = None
    if nonpad_kv_seqlen is not None:
        lengths = nonpad_kv_seqlen.cast("int32").reshape(-1, 1, 1, 1)
        offset = lengths - m if past_key is None else offset
        allowed = Tensor.arange(n, dtype="int32").reshape(1, 1, 1, n) < lengths
    behind = Tensor.arange(n, dtype="int32").reshape(1, 1, 1, n) - (
        Tensor.arange(m, dtype="int32").reshape(1, 1, m, 1) + offset
    )
    limits = [behind <= 0] if is_causal else []
    limits += [behind >= -left_window_size] if left_window_size >= 0 else []
    limits += [behind <= right_window_size] if right_window_size >= 0 else []
    if attn_mask is not None:
        mask = attn_mask
        if shape_of(mask)[-1] < n:
            missing = [(0, 0)] * (mask.ndim - 1) + [(0, n - shape_of(mask)[-1])]
            mask = mask.pad(missing, value=False if mask.dtype is dtypes.bool else -math.inf)
        if mask.dtype is dtypes.bool:
            limits.append(mask)
        else:
            scores = scores + mask
    for limit in limits:
        allowed = limit if allowed is None else allowed.logical_and(limit)
    if allowed is not None:
        scores = allowed.where(scores, -math.inf)
    shown.append(scores)
    masked = allowed is not None or attn_mask is not None
    wide = scores if softmax_precision is None else scores.cast(DTYPE_OF[softmax_precision])
    weights = softmax_or_zeros(wide, masked).cast(q.dtype)
    shown.append(weights)
    y = grouped_values(weights, v).cast(q.dtype)
    return (merged(y) if flat else y, k, v, shown[qk_matmul_output_mode].cast(q.dtype))[:outputs]


def rotated(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool, size: int) -> Tensor:
    """The first `size` places of the last axis turned in pairs; cos and sin broadcast to (..., size / 2)."""
    turned = x[..., :size] if size < shape_of(x)[-1] else x
    if interleaved:
        pairs = turned.reshape(*shape_of(turned)[:-1], size // 2, 2)
        a, b = pairs[..., 0], pairs[..., 1]
        turned = Tensor.stack(cos * a - sin * b, sin * a + cos * b, dim=-1).reshape(*shape_of(turned))
    else:
        a, b = turned[..., : size // 2], turned[..., size // 2 :]
        turned = (cos * a - sin * b).cat(sin * a + cos * b, dim=-1)
    return turned.cat(x[..., size:], dim=-1) if size < shape_of(x)[-1] else turned


@op("RotaryEmbedding")
def rotary_embedding(
    x: Tensor,
    cos_cache: Tensor,
    sin_cache: Tensor,
    position_ids: Tensor | None = None,
    *,
    interleaved: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
) -> Tensor:
    flat = x.ndim == 3
    inner = heads(x, num_heads) if flat else x
    size = rotary_embedding_dim or shape_of(inner)[-1]
    if position_ids is not None:
        cos_cache, sin_cache = cos_cache[position_ids], sin_cache[position_ids]
    y = rotated(inner, cos_cache.unsqueeze(1), sin_cache.unsqueeze(1), bool(interleaved), size).cast(x.dtype)
    return merged(y) if flat else y


@op("SwiGLU")
def swiglu(a: Tensor, b: Tensor, *, alpha: float = 1.0) -> Tensor:
    return a * (a * alpha).sigmoid() * b


@op("LinearAttention")
def linear_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    past_state: Tensor | None = None,
    decay: Tensor | None = None,
    beta: Tensor | None = None,
    *,
    chunk_size: int = 64,
    kv_num_heads: int,
    q_num_heads: int,
    scale: float = 0.0,
    update_rule: str = "gated_delta",
) -> Any:
    """A state (d_k, d_v) for each head, written and read once a step (Yang et al. 2024 for the delta
    rule).
    """
    kind = query.dtype
    q, k, v = heads(query, q_num_heads), heads(key, kv_num_heads), heads(value, kv_num_heads)
    q, k, v = q.float(), k.float(), v.float()
    batch, _, length, size = shape_of(q)
    group = q_num_heads // kv_num_heads
    factor = scale or 1 / math.sqrt(size)
    state = (
        Tensor.zeros(batch, kv_num_heads, shape_of(k)[-1], shape_of(v)[-1])
        if past_state is None
        else past_state.float()
    )
    gate = None if decay is None or "gated" not in update_rule else heads(decay.float(), kv_num_heads).exp()
    rate = None
    if beta is not None and "delta" in update_rule:
        rate = beta.float().permute(0, 2, 1).expand(batch, kv_num_heads, length)
    steps = []
    for step in range(length):
        if gate is not None:
            state = state * gate[:, :, step].unsqueeze(-1)
        k_now, v_now = k[:, :, step].unsqueeze(-1), v[:, :, step].unsqueeze(-2)
        if "delta" in update_rule:
            v_now = v_now - (state * k_now).sum(-2, keepdim=True)
        if rate is not None:
            v_now = v_now * rate[:, :, step].reshape(batch, kv_num_heads, 1, 1)
        state = state + k_now * v_now
        q_now = q[:, :, step].reshape(batch, kv_num_heads, group, size)
        steps.append((q_now.matmul(state) * factor).reshape(batch, q_num_heads, -1))
    y = Tensor.stack(*steps, dim=2)
    return merged(y).cast(kind), state.cast(kind if past_state is None else past_state.dtype)

"""Attention, with the gradient that PyTorch has an operation for."""

from __future__ import annotations

import math
from typing import Any

from ...dtype import dtypes
from ...tensor import Tensor
from ..table import aten
from .layers import layer_norm


def _scores(q: Tensor, k: Tensor, causal: bool, mask: Tensor | None, scale: float | None) -> Tensor:
    """Before the softmax, in float32."""
    width: Any = q.shape[-1]
    factor = 1 / math.sqrt(width) if scale is None else scale
    made = (q.matmul(k.transpose(-2, -1)).cast(dtypes.float32)) * factor
    if causal:
        seen = Tensor.ones(q.shape[-2], k.shape[-2], dtype="bool").tril()
        made = seen.where(made, -math.inf)
    if mask is not None:
        made = mask.where(made, -math.inf) if mask.dtype is dtypes.bool else made + mask
    return made


@aten("_scaled_dot_product_flash_attention_for_cpu")
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """The result, and the logarithm of each row's sum of exponentials, which the gradient reads."""
    if dropout_p:
        raise NotImplementedError("attention with dropout inside")
    grouped = _is_grouped(q, k)
    out = q.scaled_dot_product_attention(
        k, v, attn_mask, is_causal=is_causal, scale=scale, enable_gqa=grouped
    )
    keys = k.repeat_interleave(q.shape[-3] // k.shape[-3], -3) if grouped else k
    return out, _scores(q, keys, is_causal, attn_mask, scale).logsumexp(-1)


def _is_grouped(q: Tensor, k: Tensor) -> bool:
    """Whether several heads of queries have one of keys."""
    return q.shape[-3] != k.shape[-3]


@aten("_scaled_dot_product_flash_attention_for_cpu_backward")
def attention_backward(
    slope: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Of queries, keys and values."""
    if dropout_p:
        raise NotImplementedError("attention with dropout inside")
    leaves = [x.detach().requires_grad_() for x in (q, k, v)]
    made = leaves[0].scaled_dot_product_attention(
        leaves[1], leaves[2], attn_mask, is_causal=is_causal, scale=scale, enable_gqa=_is_grouped(q, k)
    )
    of_q, of_k, of_v = made.gradient(*leaves, gradient=slope)
    # each in its own shape: a product whose axes a later reshape merges is no tile of rows and columns
    return of_q.contiguous(), of_k.contiguous(), of_v.contiguous()


def _heads(x: Tensor, count: int) -> Tensor:
    """(batch, length, width) as (batch, head, length, width of a head)."""
    batch, length, width = x.shape
    return x.reshape(batch, length, count, width // count).transpose(1, 2)


def _hidden(mask: Tensor, kind: int | None) -> Tensor:
    """Which scores a mask takes away, for (batch, head, query, key).

    kind  0: the mask is of (query, key), 1: of (batch, key), 2: of all four axes
    """
    if kind not in (0, 1, 2):
        raise NotImplementedError(f"a mask of kind {kind}")
    wide = mask.reshape(mask.shape[0], 1, 1, mask.shape[1]) if kind == 1 else mask
    return wide if wide.dtype is dtypes.bool else wide != 0


@aten("_native_multi_head_attention")
def multi_head_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    width: int,
    heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Tensor, Tensor | None]:
    """What PyTorch's layers compute where no gradient is wanted: projections of queries, keys and values,
    attention, and the projection of its result; and the weights of the keys.
    """
    of_each = zip((query, key, value), qkv_weight.split(width), qkv_bias.split(width), strict=True)
    q, k, v = [_heads(x.linear(weight.transpose(), bias), heads) for x, weight, bias in of_each]
    seen = None if mask is None else ~_hidden(mask, mask_type)
    made = q.scaled_dot_product_attention(k, v, seen).transpose(1, 2).reshape(query.shape)
    weights = None
    if need_weights:
        weights = _scores(q, k, False, seen, None).softmax(-1)
        weights = weights.mean(1) if average_attn_weights else weights
    return made.linear(proj_weight.transpose(), proj_bias), weights


@aten("_transformer_encoder_layer_fwd")
def encoder_layer(
    x: Tensor,
    width: int,
    heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    weight_1: Tensor,
    bias_1: Tensor,
    weight_2: Tensor,
    bias_2: Tensor,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Tensor:
    """A layer of `TransformerEncoder`, as it is computed where no gradient is wanted."""

    def attended(y: Tensor) -> Tensor:
        projections = qkv_weight, qkv_bias, proj_weight, proj_bias
        return multi_head_attention(
            y, y, y, width, heads, *projections, mask, need_weights=False, mask_type=mask_type
        )[0]

    def fed(y: Tensor) -> Tensor:
        inner = y.linear(weight_1.transpose(), bias_1)
        return (inner.gelu() if use_gelu else inner.relu()).linear(weight_2.transpose(), bias_2)

    def first(y: Tensor) -> Tensor:
        return layer_norm(y, [width], norm_weight_1, norm_bias_1, eps)[0]

    def second(y: Tensor) -> Tensor:
        return layer_norm(y, [width], norm_weight_2, norm_bias_2, eps)[0]

    if norm_first:
        x = x + attended(first(x))
        return x + fed(second(x))
    x = first(x + attended(x))
    return second(x + fed(x))

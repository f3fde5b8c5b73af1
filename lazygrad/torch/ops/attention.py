"""Attention, with the gradient that PyTorch has an operation for."""

from __future__ import annotations

import math
from typing import Any

from ...dtype import dtypes
from ...tensor import Tensor
from ..table import aten


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

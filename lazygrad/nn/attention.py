"""Attention in several heads.

Weights have PyTorch's names, masks its meaning: in `attn_mask` and `key_padding_mask` True *hides* a key (in
`Tensor.scaled_dot_product_attention` it shows one), and numbers are added to the scores.
"""

from __future__ import annotations

import math
from typing import Any

from ..device import Devices
from ..dtype import dtypes
from ..shape import shape_text
from ..tensor import Tensor
from ..tensor.signatures import DTypeLike, Numbers
from .layers import Linear
from .module import Module
from .parameters import count, need_tensors, parameter, probability


class MultiheadAttention(Module):
    """Attention in several heads, each on a part of the features (Vaswani et al. 2017).

    in_proj_weight  (3·embed_dim, embed_dim), or q_proj_weight, k_proj_weight and v_proj_weight where `kdim`
                    or `vdim` differ        in_proj_bias  (3·embed_dim,), or None
    out_proj        a Linear
    generator       what its first weights and its dropout draw from

    >>> x = Tensor.ones(2, 5, 8)
    >>> attended, weights = nn.MultiheadAttention(8, 2, batch_first=True)(x, x, x)
    >>> attended.shape, weights.shape
    ((2, 5, 8), (2, 5, 5))
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        *,
        device: Devices | None = None,
        dtype: DTypeLike = None,
        generator: Numbers | None = None,
    ) -> None:
        self.generator = generator
        made: Any = {"device": device, "dtype": dtype, "generator": generator}
        self.embed_dim, self.num_heads = count("embed_dim", embed_dim), count("num_heads", num_heads)
        if embed_dim % num_heads:
            raise ValueError(f"{num_heads} heads do not divide embed_dim={embed_dim}")
        self.kdim, self.vdim = kdim or embed_dim, vdim or embed_dim
        probability("dropout", dropout)
        self.dropout, self.batch_first, self.add_zero_attn = dropout, batch_first, add_zero_attn
        if self.kdim == self.vdim == embed_dim:
            self.in_proj_weight = parameter(Tensor.glorot_uniform(3 * embed_dim, embed_dim, **made))
        else:
            self.q_proj_weight = parameter(Tensor.glorot_uniform(embed_dim, embed_dim, **made))
            self.k_proj_weight = parameter(Tensor.glorot_uniform(embed_dim, self.kdim, **made))
            self.v_proj_weight = parameter(Tensor.glorot_uniform(embed_dim, self.vdim, **made))
        self.in_proj_bias = (
            parameter(Tensor.zeros(3 * embed_dim, device=device, dtype=dtype)) if bias else None
        )
        self.out_proj = Linear(embed_dim, embed_dim, bias=bias, **made)
        if self.out_proj.bias is not None:
            self.out_proj.bias.assign(Tensor.zeros(embed_dim, device=device, dtype=dtype))
        added = [
            parameter(Tensor.randn(1, 1, embed_dim, **made) * embed_dim**-0.5) if add_bias_kv else None
            for _ in range(2)
        ]
        self.bias_k, self.bias_v = added

    def __call__(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """(the attended values, the weights or None).

        query             (targets, batch, embed_dim); batch first with `batch_first`, or without batch
        key, value        (sources, batch, kdim) and (sources, batch, vdim)
        key_padding_mask  (batch, sources)
        attn_mask         (targets, sources), or (batch · heads, targets, sources)
        is_causal         a hint only, as in PyTorch: give the mask too
        """
        need_tensors(self, query, key, value)
        if query.ndim not in (2, 3) or query.shape[-1] != self.embed_dim:
            raise ValueError(
                f"MultiheadAttention({self.embed_dim}, {self.num_heads}) needs queries of shape "
                f"(..., ..., {self.embed_dim}), not {shape_text(query.shape)}"
            )
        alone, batch = query.ndim == 2, int(not self.batch_first)
        for name, tensor, width in (("keys", key, self.kdim), ("values", value, self.vdim)):
            if tensor.ndim != query.ndim or tensor.shape[-1] != width:
                axes = "" if alone else "..., "
                raise ValueError(
                    f"MultiheadAttention needs {name} of shape (..., {axes}{width}), "
                    f"not {shape_text(tensor.shape)}"
                )
        if key.shape[:-1] != value.shape[:-1] or (not alone and key.shape[batch] != query.shape[batch]):
            raise ValueError(
                "MultiheadAttention needs a value for each key, in one batch with the queries, not shapes "
                f"{shape_text(query.shape)}, {shape_text(key.shape)} and {shape_text(value.shape)}"
            )
        self._check_masks(attn_mask, key_padding_mask, query, key)
        if is_causal and attn_mask is None:
            raise ValueError("is_causal needs the attn_mask that it is a hint for")
        if alone:
            q, k, v = (t.unsqueeze(0) for t in (query, key, value))
            if key_padding_mask is not None:
                key_padding_mask = key_padding_mask.unsqueeze(0)
        elif self.batch_first:
            q, k, v = query, key, value
        else:
            q, k, v = (t.transpose(0, 1) for t in (query, key, value))
        q, k, v = self._projections(q, k, v)
        added = 0
        if self.bias_k is not None and self.bias_v is not None:
            wide = (k.shape[0], 1, self.embed_dim)
            k, v = k.cat(self.bias_k.expand(wide), dim=1), v.cat(self.bias_v.expand(wide), dim=1)
            added += 1
        if self.add_zero_attn:
            line = Tensor.zeros(k.shape[0], 1, self.embed_dim, dtype=k.dtype, device=k.device)
            k, v = k.cat(line, dim=1), v.cat(line, dim=1)
            added += 1
        heads = [t.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for t in (q, k, v)]
        mask = self._mask(heads[0], attn_mask, key_padding_mask, added)
        if need_weights:
            scores = heads[0].dot(heads[1].transpose(-2, -1)) * (self.embed_dim // self.num_heads) ** -0.5
            weights = scores.softmax(-1) if mask is None else (scores + mask).softmax(-1)
            weights = weights.dropout(self.dropout, generator=self.generator)
            mixed = weights.dot(heads[2])
        else:
            weights = None
            mixed = heads[0].scaled_dot_product_attention(
                heads[1], heads[2], mask, self.dropout, generator=self.generator
            )
        result = self.out_proj(mixed.transpose(1, 2).flatten(-2))
        if weights is not None and average_attn_weights:
            weights = weights.mean(1)
        if alone:
            return result.squeeze(0), None if weights is None else weights.squeeze(0)
        return (result if self.batch_first else result.transpose(0, 1)), weights

    def _check_masks(
        self, attn_mask: Tensor | None, key_padding_mask: Tensor | None, query: Tensor, key: Tensor
    ) -> None:
        alone = query.ndim == 2
        where = 0 if alone else int(self.batch_first)
        targets, sources = query.shape[where], key.shape[where]
        lead = () if alone else (query.shape[1 - where],)
        heads = self.num_heads * lead[0] if lead else self.num_heads
        if attn_mask is not None and attn_mask.shape not in (
            (targets, sources),
            (heads, targets, sources),
        ):
            raise ValueError(
                f"attn_mask has shape {shape_text((targets, sources))} or "
                f"{shape_text((heads, targets, sources))}, not {shape_text(attn_mask.shape)}"
            )
        if key_padding_mask is not None and key_padding_mask.shape != (*lead, sources):
            raise ValueError(
                f"key_padding_mask has shape {shape_text((*lead, sources))}, "
                f"not {shape_text(key_padding_mask.shape)}"
            )

    def _projections(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        if hasattr(self, "in_proj_weight"):
            w = self.in_proj_weight.chunk(3)
        else:
            w = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        b = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        made = [t.linear(w.transpose(0, 1), b) for t, w, b in zip((q, k, v), w, b, strict=True)]
        return made[0], made[1], made[2]

    def _mask(
        self, q: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None, added: int
    ) -> Tensor | None:
        """What is added to the scores (batch, heads, targets, sources); keys added behind are seen by all."""
        total: Tensor | None = None
        if attn_mask is not None:
            total = _added(attn_mask, q)
            if total.ndim == 3:
                total = total.unflatten(0, (-1, self.num_heads))
        if key_padding_mask is not None:
            hidden = _added(key_padding_mask, q).unsqueeze(1).unsqueeze(1)
            total = hidden if total is None else total + hidden
        return total.pad((0, added)) if total is not None and added else total


def _added(mask: Tensor, like: Tensor) -> Tensor:
    """A mask as numbers that are added to scores."""
    return mask.where(-math.inf, 0.0).cast(like.dtype) if dtypes.is_bool(mask.dtype) else mask


def causal_mask(size: int, device: Devices | None = None) -> Tensor:
    """-inf above the diagonal, 0 elsewhere: each place sees itself and those before it.

    >>> nn.causal_mask(2).tolist()
    [[0.0, -inf], [0.0, 0.0]]
    """
    return Tensor.full((size, size), -math.inf, device=device).triu(1)

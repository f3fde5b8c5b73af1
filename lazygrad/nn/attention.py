"""Attention layers: several heads, transformer blocks, rotary positions.

Weights have PyTorch's names, masks its meaning: in `attn_mask` and `key_padding_mask` True *hides* a key (in
`Tensor.scaled_dot_product_attention` it shows one), and numbers are added to the scores.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

from ..dtype import dtypes
from ..shape import shape_text
from ..tensor import Tensor
from .activation import Dropout
from .init import xavier_uniform_
from .layers import Linear, count, parameter
from .normalization import LayerNorm
from .state import get_parameters


class MultiheadAttention:
    """Attention in several heads, each on a part of the features (Vaswani et al. 2017).

    in_proj_weight  (3·embed_dim, embed_dim), or q_proj_weight, k_proj_weight and v_proj_weight where `kdim`
                    or `vdim` differ        in_proj_bias  (3·embed_dim,), or None
    out_proj        a Linear

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
    ) -> None:
        self.embed_dim, self.num_heads = count("embed_dim", embed_dim), count("num_heads", num_heads)
        if embed_dim % num_heads:
            raise ValueError(f"{num_heads} heads do not divide embed_dim={embed_dim}")
        self.kdim, self.vdim = kdim or embed_dim, vdim or embed_dim
        self.dropout, self.batch_first, self.add_zero_attn = dropout, batch_first, add_zero_attn
        if self.kdim == self.vdim == embed_dim:
            self.in_proj_weight = parameter(Tensor.glorot_uniform(3 * embed_dim, embed_dim))
        else:
            self.q_proj_weight = parameter(Tensor.glorot_uniform(embed_dim, embed_dim))
            self.k_proj_weight = parameter(Tensor.glorot_uniform(embed_dim, self.kdim))
            self.v_proj_weight = parameter(Tensor.glorot_uniform(embed_dim, self.vdim))
        self.in_proj_bias = parameter(Tensor.zeros(3 * embed_dim)) if bias else None
        self.out_proj = Linear(embed_dim, embed_dim, bias=bias)
        if self.out_proj.bias is not None:
            self.out_proj.bias.assign(Tensor.zeros(embed_dim))
        self.bias_k = parameter(Tensor.randn(1, 1, embed_dim) * embed_dim**-0.5) if add_bias_kv else None
        self.bias_v = parameter(Tensor.randn(1, 1, embed_dim) * embed_dim**-0.5) if add_bias_kv else None

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
        if query.ndim not in (2, 3) or query.shape[-1] != self.embed_dim:
            raise ValueError(
                f"MultiheadAttention({self.embed_dim}, {self.num_heads}) needs queries of shape "
                f"(..., ..., {self.embed_dim}), not {shape_text(query.shape)}"
            )
        alone = query.ndim == 2
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
            weights = weights.dropout(self.dropout)
            mixed = weights.dot(heads[2])
        else:
            weights = None
            mixed = heads[0].scaled_dot_product_attention(heads[1], heads[2], mask, self.dropout)
        result = self.out_proj(mixed.transpose(1, 2).flatten(-2))
        if weights is not None and average_attn_weights:
            weights = weights.mean(1)
        if alone:
            return result.squeeze(0), None if weights is None else weights.squeeze(0)
        return (result if self.batch_first else result.transpose(0, 1)), weights

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


def causal_mask(size: int, device: str | None = None) -> Tensor:
    """-inf above the diagonal, 0 elsewhere: each place sees itself and those before it.

    >>> nn.causal_mask(2).tolist()
    [[0.0, -inf], [0.0, 0.0]]
    """
    return Tensor.full((size, size), -math.inf, device=device).triu(1)


Activation = str | Callable[[Tensor], Tensor]


def _function(activation: Activation) -> Callable[[Tensor], Tensor]:
    if callable(activation):
        return activation
    known: dict[str, Callable[[Tensor], Tensor]] = {
        "relu": Tensor.relu,
        "gelu": lambda x: x.gelu("none"),
    }
    if activation not in known:
        raise ValueError(f"activation is relu, gelu or a function, not {activation!r}")
    return known[activation]


class TransformerEncoderLayer:
    """Self-attention and a network of two products, each with a residual and a normalization.

    norm_first  normalize before each of the two instead of behind

    >>> nn.TransformerEncoderLayer(8, 2, 16)(Tensor.ones(5, 2, 8)).shape
    (5, 2, 8)
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
    ) -> None:
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias=bias, batch_first=batch_first)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias)
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias)
        self.dropout = Dropout(dropout)
        self.norm_first, self.activation = norm_first, _function(activation)

    def __call__(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        def attend(x: Tensor) -> Tensor:
            attended, _ = self.self_attn(
                x, x, x, src_key_padding_mask, need_weights=False, attn_mask=src_mask
            )
            return self.dropout(attended)

        if self.norm_first:
            x = src + attend(self.norm1(src))
            return x + self._feed(self.norm2(x))
        x = self.norm1(src + attend(src))
        return self.norm2(x + self._feed(x))

    def _feed(self, x: Tensor) -> Tensor:
        return self.dropout(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerDecoderLayer:
    """Self-attention, attention to a memory, and a network of two products, each with a residual.

    >>> layer = nn.TransformerDecoderLayer(8, 2, 16)
    >>> layer(Tensor.ones(5, 2, 8), Tensor.ones(7, 2, 8)).shape
    (5, 2, 8)
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
    ) -> None:
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias=bias, batch_first=batch_first)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, bias=bias, batch_first=batch_first)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias)
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias)
        self.norm3 = LayerNorm(d_model, layer_norm_eps, bias=bias)
        self.dropout = Dropout(dropout)
        self.norm_first, self.activation = norm_first, _function(activation)

    def __call__(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
    ) -> Tensor:
        def attend(x: Tensor) -> Tensor:
            attended, _ = self.self_attn(
                x, x, x, tgt_key_padding_mask, need_weights=False, attn_mask=tgt_mask
            )
            return self.dropout(attended)

        def look(x: Tensor) -> Tensor:
            seen, _ = self.multihead_attn(
                x, memory, memory, memory_key_padding_mask, need_weights=False, attn_mask=memory_mask
            )
            return self.dropout(seen)

        if self.norm_first:
            x = tgt + attend(self.norm1(tgt))
            x = x + look(self.norm2(x))
            return x + self._feed(self.norm3(x))
        x = self.norm1(tgt + attend(tgt))
        x = self.norm2(x + look(x))
        return self.norm3(x + self._feed(x))

    def _feed(self, x: Tensor) -> Tensor:
        return self.dropout(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoder:
    """Copies of an encoder layer in a row, and a normalization if given.

    >>> encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2)
    >>> encoder(Tensor.ones(5, 2, 8)).shape
    (5, 2, 8)
    """

    def __init__(
        self, encoder_layer: TransformerEncoderLayer, num_layers: int, norm: LayerNorm | None = None
    ) -> None:
        self.layers = [copy.deepcopy(encoder_layer) for _ in range(count("num_layers", num_layers))]
        self.norm = norm

    def __call__(
        self, src: Tensor, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None
    ) -> Tensor:
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder:
    """Copies of a decoder layer in a row, and a normalization if given.

    >>> decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16), 2)
    >>> decoder(Tensor.ones(5, 2, 8), Tensor.ones(7, 2, 8)).shape
    (5, 2, 8)
    """

    def __init__(
        self, decoder_layer: TransformerDecoderLayer, num_layers: int, norm: LayerNorm | None = None
    ) -> None:
        self.layers = [copy.deepcopy(decoder_layer) for _ in range(count("num_layers", num_layers))]
        self.norm = norm

    def __call__(self, tgt: Tensor, memory: Tensor, *masks: Tensor | None, **more: Any) -> Tensor:
        for layer in self.layers:
            tgt = layer(tgt, memory, *masks, **more)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer:
    """An encoder, and a decoder that looks at what the encoder gives (Vaswani et al. 2017).

    encoder, decoder  six layers each if not said otherwise, and a normalization behind the last
    custom_encoder    called as encoder(src, src_mask, src_key_padding_mask) instead
    custom_decoder    called as decoder(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask,
                      memory_key_padding_mask) instead

    Matrices begin as `nn.init.xavier_uniform_`.

    >>> model = nn.Transformer(8, 2, 1, 1, dim_feedforward=16)
    >>> model(Tensor.ones(7, 2, 8), Tensor.ones(5, 2, 8)).shape
    (5, 2, 8)
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
    ) -> None:
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        options: tuple[Any, ...] = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps)
        options += (batch_first, norm_first, bias)
        self.encoder: Any = custom_encoder
        if self.encoder is None:
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias)
            self.encoder = TransformerEncoder(TransformerEncoderLayer(*options), num_encoder_layers, norm)
        self.decoder: Any = custom_decoder
        if self.decoder is None:
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias)
            self.decoder = TransformerDecoder(TransformerDecoderLayer(*options), num_decoder_layers, norm)
        for weight in get_parameters(self):
            if weight.ndim > 1:
                xavier_uniform_(weight)

    def __call__(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
    ) -> Tensor:
        """What the decoder gives for each of the targets.

        src  (sources, batch, d_model), tgt (targets, batch, d_model); batch first with `batch_first`, or
             both without batch
        """
        for name, x in (("src", src), ("tgt", tgt)):
            if x.ndim not in (2, 3) or x.shape[-1] != self.d_model:
                raise ValueError(
                    f"Transformer({self.d_model}, {self.nhead}) needs {name} of shape "
                    f"(..., ..., {self.d_model}), not {shape_text(x.shape)}"
                )
        batch = 0 if self.batch_first else 1
        if src.ndim != tgt.ndim or (src.ndim == 3 and src.shape[batch] != tgt.shape[batch]):
            raise ValueError(
                f"Transformer needs src and tgt of one batch size, not shapes {shape_text(src.shape)} and "
                f"{shape_text(tgt.shape)}"
            )
        memory = self.encoder(src, src_mask, src_key_padding_mask)
        result: Tensor = self.decoder(
            tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask
        )
        return result

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: str | None = None) -> Tensor:
        """`nn.causal_mask` by PyTorch's name.

        >>> nn.Transformer.generate_square_subsequent_mask(2).tolist()
        [[0.0, -inf], [0.0, 0.0]]
        """
        return causal_mask(sz, device)


class RotaryEmbedding:
    """Positions as angles: turns pairs of features of queries and keys (RoPE, Su et al. 2021).

    dim          features of a head, even       base  how slowly the last pair turns
    interleaved  pairs are neighbours (2i, 2i + 1); else the two halves

    Nothing in it is trained or stored: the angles are computed where they are used.

    >>> nn.RotaryEmbedding(8)(Tensor.ones(1, 2, 5, 8)).shape
    (1, 2, 5, 8)
    """

    def __init__(self, dim: int, base: float = 10000.0, interleaved: bool = False) -> None:
        if count("dim", dim) % 2:
            raise ValueError(f"RotaryEmbedding turns pairs: dim is even, not {dim}")
        self.dim, self.base, self.interleaved = dim, base, interleaved

    def angles(self, positions: Tensor) -> Tensor:
        """(..., positions, dim / 2): position · base^(-2i / dim)."""
        counter = Tensor.arange(self.dim // 2, dtype=dtypes.float32, device=positions.device)
        rates = (counter * (-2.0 * math.log(self.base) / self.dim)).exp()
        return positions.cast(dtypes.float32).unsqueeze(-1) * rates

    def __call__(self, x: Tensor, offset: Any = 0) -> Tensor:
        """x of shape (..., positions, dim), whose first position is `offset`."""
        if x.ndim < 2 or x.shape[-1] != self.dim:
            raise ValueError(
                f"RotaryEmbedding({self.dim}) needs shape (..., positions, {self.dim}), "
                f"not {shape_text(x.shape)}"
            )
        positions = Tensor.arange(x.shape[-2], device=x.device) + offset
        angle = self.angles(positions)
        return x.rotary_embedding(angle.cos().cast(x.dtype), angle.sin().cast(x.dtype), self.interleaved)

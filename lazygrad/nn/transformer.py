"""Transformer blocks, and stacks of them.

Weights have PyTorch's names and masks its meaning (see `attention`). Arguments that say that a mask is causal
are hints, as in PyTorch: the mask decides.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from ..device import Devices
from ..shape import shape_text
from ..tensor import Tensor
from ..tensor.signatures import DTypeLike, Numbers
from .attention import MultiheadAttention, causal_mask
from .dropout import Dropout
from .init import xavier_uniform_
from .layers import Linear
from .module import Module
from .normalization import LayerNorm
from .parameters import count
from .state import get_parameters

Activation = str | Callable[[Tensor], Tensor]


def _function(activation: Activation) -> Callable[[Tensor], Tensor]:
    if callable(activation):
        return activation
    known: dict[str, Callable[[Tensor], Tensor]] = {
        "relu": Tensor.relu,
        "gelu": lambda x: x.gelu("none"),
    }
    if activation not in known:
        raise ValueError(f"activation must be relu, gelu or a function, not {activation!r}")
    return known[activation]


class _TransformerLayer(Module):
    """What an encoder's layer and a decoder's have in common: all parts, and what stands around each.

    norm_first  normalize before each part instead of behind it
    """

    #: whether there is attention to a memory too
    decodes = False

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
        *,
        device: Devices | None = None,
        dtype: DTypeLike = None,
        generator: Numbers | None = None,
    ) -> None:
        plain: Any = {"bias": bias, "device": device, "dtype": dtype}
        made = plain | {"generator": generator}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first, **made)
        if self.decodes:
            self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first, **made)
        self.linear1 = Linear(d_model, dim_feedforward, **made)
        self.linear2 = Linear(dim_feedforward, d_model, **made)
        self.norm1 = LayerNorm(d_model, layer_norm_eps, **plain)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, **plain)
        if self.decodes:
            self.norm3 = LayerNorm(d_model, layer_norm_eps, **plain)
        self.dropout = Dropout(dropout, generator=generator)
        self.generator = generator
        self.norm_first, self.activation = norm_first, _function(activation)

    def _added(self, x: Tensor, norm: LayerNorm, part: Callable[[Tensor], Tensor]) -> Tensor:
        """x and what a part makes of it, normalized."""
        if self.norm_first:
            return x + self.dropout(part(norm(x)))
        return norm(x + self.dropout(part(x)))

    def _feed(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_TransformerLayer):
    """Self-attention and a network of two products, each with a residual and a normalization.

    norm_first  normalize before each of the two instead of behind

    >>> nn.TransformerEncoderLayer(8, 2, 16)(Tensor.ones(5, 2, 8)).shape
    (5, 2, 8)
    """

    def __call__(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        def attend(x: Tensor) -> Tensor:
            return self.self_attn(x, x, x, src_key_padding_mask, need_weights=False, attn_mask=src_mask)[0]

        x = self._added(src, self.norm1, attend)
        return self._added(x, self.norm2, self._feed)


class TransformerDecoderLayer(_TransformerLayer):
    """Self-attention, attention to a memory, and a network of two products, each with a residual.

    >>> layer = nn.TransformerDecoderLayer(8, 2, 16)
    >>> layer(Tensor.ones(5, 2, 8), Tensor.ones(7, 2, 8)).shape
    (5, 2, 8)
    """

    decodes = True

    def __call__(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        def attend(x: Tensor) -> Tensor:
            return self.self_attn(x, x, x, tgt_key_padding_mask, need_weights=False, attn_mask=tgt_mask)[0]

        def heads_view(x: Tensor) -> Tensor:
            return self.multihead_attn(
                x, memory, memory, memory_key_padding_mask, need_weights=False, attn_mask=memory_mask
            )[0]

        x = self._added(tgt, self.norm1, attend)
        x = self._added(x, self.norm2, heads_view)
        return self._added(x, self.norm3, self._feed)


class _Stack(Module):
    """Copies of a layer in a row, and a normalization if given."""

    def __init__(self, layer: Any, num_layers: int, norm: LayerNorm | None) -> None:
        shared = getattr(layer, "generator", None)  # one stream for all copies: each draws other numbers
        number = range(count("num_layers", num_layers))
        self.layers = [copy.deepcopy(layer, {id(shared): shared}) for _ in number]
        self.num_layers, self.norm = num_layers, norm

    def _through(self, x: Tensor, *more: Any, **masks: Any) -> Tensor:
        for layer in self.layers:
            x = layer(x, *more, **masks)
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(_Stack):
    """Copies of an encoder layer in a row, and a normalization if given.

    >>> encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2)
    >>> encoder(Tensor.ones(5, 2, 8)).shape
    (5, 2, 8)
    """

    def __init__(
        self, encoder_layer: TransformerEncoderLayer, num_layers: int, norm: LayerNorm | None = None
    ) -> None:
        super().__init__(encoder_layer, num_layers, norm)

    def __call__(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        return self._through(src, mask, src_key_padding_mask)


class TransformerDecoder(_Stack):
    """Copies of a decoder layer in a row, and a normalization if given.

    >>> decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16), 2)
    >>> decoder(Tensor.ones(5, 2, 8), Tensor.ones(7, 2, 8)).shape
    (5, 2, 8)
    """

    def __init__(
        self, decoder_layer: TransformerDecoderLayer, num_layers: int, norm: LayerNorm | None = None
    ) -> None:
        super().__init__(decoder_layer, num_layers, norm)

    def __call__(self, tgt: Tensor, memory: Tensor, *masks: Tensor | None, **more: Any) -> Tensor:
        return self._through(tgt, memory, *masks, **more)


class Transformer(Module):
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
        *,
        device: Devices | None = None,
        dtype: DTypeLike = None,
        generator: Numbers | None = None,
    ) -> None:
        plain: Any = {"bias": bias, "device": device, "dtype": dtype}
        made = plain | {"generator": generator}
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        options: tuple[Any, ...] = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps)
        options += (batch_first, norm_first)
        self.encoder: Any = custom_encoder
        if self.encoder is None:
            norm = LayerNorm(d_model, layer_norm_eps, **plain)
            self.encoder = TransformerEncoder(
                TransformerEncoderLayer(*options, **made), num_encoder_layers, norm
            )
        self.decoder: Any = custom_decoder
        if self.decoder is None:
            norm = LayerNorm(d_model, layer_norm_eps, **plain)
            self.decoder = TransformerDecoder(
                TransformerDecoderLayer(*options, **made), num_decoder_layers, norm
            )
        for weight in get_parameters(self):
            if weight.ndim > 1:
                xavier_uniform_(weight, generator=generator)

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
    def generate_square_subsequent_mask(sz: int, device: Devices | None = None) -> Tensor:
        """`nn.causal_mask` by PyTorch's name.

        >>> nn.Transformer.generate_square_subsequent_mask(2).tolist()
        [[0.0, -inf], [0.0, 0.0]]
        """
        return causal_mask(sz, device)

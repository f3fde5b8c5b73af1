"""The network of Whisper (Radford et al. 2022): what files call its weights, and what it does with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..tensor import Tensor
from .encoder_weights import Dense, Norm, Weights, join_heads, split_heads

# ---- what files call things ----


class Naming(NamedTuple):
    """How one kind of file names its tensors.

    norm   the two tensors of a normalization        parts  the others; several are one behind the other
    """

    norm: tuple[str, str]
    separator: str
    names: dict[str, tuple[str, ...]]

    def of(self, prefix: str, part: str) -> list[str]:
        return [self.separator.join(filter(None, (prefix, name))) for name in self.names[part]]


# fmt: off
HUGGING_FACE = Naming(("weight", "bias"), ".", {
    "encoder":        ("model.encoder",),
    "decoder":        ("model.decoder",),
    "layer":          ("layers.{}",),
    "heard":          ("embed_positions.weight",),
    "words":          ("embed_tokens.weight",),
    "norm":           ("layer_norm",),
    "self.norm":      ("self_attn_layer_norm",),
    "self.qkv":       ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "self.out":       ("self_attn.out_proj",),
    "cross.norm":     ("encoder_attn_layer_norm",),
    "cross.q":        ("encoder_attn.q_proj",),
    "cross.kv":       ("encoder_attn.k_proj", "encoder_attn.v_proj"),
    "cross.out":      ("encoder_attn.out_proj",),
    "mlp.norm":       ("final_layer_norm",),
    "mlp.up":         ("fc1",),
    "mlp.down":       ("fc2",),
})
CTRANSLATE2 = Naming(("gamma", "beta"), "/", {
    "encoder":        ("encoder",),
    "decoder":        ("decoder",),
    "layer":          ("layer_{}",),
    "heard":          ("position_encodings/encodings",),
    "words":          ("embeddings/weight",),
    "norm":           ("layer_norm",),
    "self.norm":      ("self_attention/layer_norm",),
    "self.qkv":       ("self_attention/linear_0",),
    "self.out":       ("self_attention/linear_1",),
    "cross.norm":     ("attention/layer_norm",),
    "cross.q":        ("attention/linear_0",),
    "cross.kv":       ("attention/linear_1",),
    "cross.out":      ("attention/linear_2",),
    "mlp.norm":       ("ffn/layer_norm",),
    "mlp.up":         ("ffn/linear_0",),
    "mlp.down":       ("ffn/linear_1",),
})
# fmt: on


class Sizes(NamedTuple):
    """bins of the spectrogram, features of a place, symbols, places that are heard and that are written."""

    bins: int
    width: int
    inner: int
    symbols: int
    heard: int
    length: int
    encoder_heads: int
    decoder_heads: int
    encoder_layers: int
    decoder_layers: int


class Source:
    """Weights of one file, by the names of `Naming.names`."""

    def __init__(self, weights: Weights, naming: Naming, prefix: str = "") -> None:
        self.weights, self.naming, self.prefix = weights, naming, prefix

    def inside(self, part: str, number: int | None = None) -> Source:
        (name,) = self.naming.of(self.prefix, part)
        return Source(self.weights, self.naming, name.format(number))

    def dense(self, part: str, out: int, width: int) -> Dense:
        names, sep = self.naming.of(self.prefix, part), self.naming.separator
        each = out // len(names)
        weight = self.weights.take(
            *[f"{name}{sep}weight" for name in names], shape=(each, width), turned=True
        )
        biases = [f"{name}{sep}bias" for name in names]
        # keys have none: it would change all scores of a query alike, which softmax takes no notice of
        keys = [name for name in biases if name.endswith("k_proj.bias")]
        bias = self.weights.take(*biases, shape=(each,), or_zero=keys)
        return Dense(weight, bias)

    def norm(self, part: str, width: int) -> Norm:
        (name,) = self.naming.of(self.prefix, part)
        weight, bias = [
            self.weights.take(f"{name}{self.naming.separator}{end}", shape=(width,))
            for end in self.naming.norm
        ]
        return Norm(weight, bias, 1e-5)

    def table(self, part: str, *shape: int) -> Tensor:
        (name,) = self.naming.of(self.prefix, part)
        return self.weights.take(name, shape=shape)

    def convolution(self, name: str, out: int, channels: int) -> tuple[Tensor, Tensor]:
        path = f"{self.prefix}{self.naming.separator}{name}{self.naming.separator}"
        weight = self.weights.take(f"{path}weight", shape=(out, channels, 3))
        return weight, self.weights.take(f"{path}bias", shape=(out,))


# ---- the network ----


class Attention:
    """Attention of a place to others of its own sequence, after a norm, added to what came in."""

    def __init__(self, source: Source, width: int, heads: int) -> None:
        self.heads = heads
        self.norm = source.norm("self.norm", width)
        self.qkv, self.out = (
            source.dense("self.qkv", 3 * width, width),
            source.dense("self.out", width, width),
        )

    def projections(self, x: Tensor) -> list[Tensor]:
        """Queries, keys and values, each (n, heads, length, d)."""
        return [split_heads(part, self.heads) for part in self.qkv(self.norm(x)).chunk(3, -1)]


class Mlp:
    """Two products with a GELU between, after a norm, added to what came in."""

    def __init__(self, source: Source, width: int, inner: int) -> None:
        self.norm = source.norm("mlp.norm", width)
        self.up, self.down = source.dense("mlp.up", inner, width), source.dense("mlp.down", width, inner)

    def __call__(self, x: Tensor) -> Tensor:
        return x + self.down(self.up(self.norm(x)).gelu("none"))


class EncoderLayer:
    def __init__(self, source: Source, width: int, inner: int, heads: int) -> None:
        self.attention, self.mlp = Attention(source, width, heads), Mlp(source, width, inner)

    def __call__(self, x: Tensor) -> Tensor:
        q, k, v = self.attention.projections(x)
        return self.mlp(x + self.attention.out(join_heads(q.scaled_dot_product_attention(k, v))))


class DecoderLayer:
    """Attention to what was written before, attention to what was heard, and the two products."""

    def __init__(self, source: Source, width: int, inner: int, heads: int) -> None:
        self.attention, self.mlp = Attention(source, width, heads), Mlp(source, width, inner)
        self.heads = heads
        self.cross_norm = source.norm("cross.norm", width)
        self.cross_q = source.dense("cross.q", width, width)
        self.cross_kv = source.dense("cross.kv", 2 * width, width)
        self.cross_out = source.dense("cross.out", width, width)

    def heard(self, sound: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of what was heard, (n, heads, places, d): once for all that is written of it."""
        k, v = (split_heads(part, self.heads).contiguous() for part in self.cross_kv(sound).chunk(2, -1))
        return k, v

    def behind(self, x: Tensor, mixed: Tensor, heard: Sequence[Tensor]) -> Tensor:
        """What follows the first attention, whose mixed values are (n, heads, length, d).

        heard  keys and values (m, heads, places, d): of one sound for each of the n texts, or for all
        """
        x = x + self.attention.out(join_heads(mixed))
        q, (k, v) = split_heads(self.cross_q(self.cross_norm(x)), self.heads), heard
        texts, heads, length, d = q.shape
        if k.shape[0] != texts:  # the texts of one sound are rows of one product
            q = q.transpose(0, 1).reshape(1, heads, texts * length, d)
        seen = q.scaled_dot_product_attention(k, v)
        if k.shape[0] != texts:
            seen = seen.reshape(heads, texts, length, d).transpose(0, 1)
        return self.mlp(x + self.cross_out(join_heads(seen)))


class SoundEncoder:
    """A spectrogram to what was heard."""

    def __init__(self, source: Source, sizes: Sizes) -> None:
        width = sizes.width
        self.first = source.convolution("conv1", width, sizes.bins)
        self.second = source.convolution("conv2", width, width)
        self.positions = source.table("heard", sizes.heard, width)
        self.layers = [
            EncoderLayer(source.inside("layer", i), width, sizes.inner, sizes.encoder_heads)
            for i in range(sizes.encoder_layers)
        ]
        self.norm = source.norm("norm", width)

    def __call__(self, mel: Tensor) -> Tensor:
        """(n, bins, 2 · places) → (n, places, width)."""
        x = mel.conv1d(*self.first, padding=1).gelu("none")
        x = x.conv1d(*self.second, stride=2, padding=1).gelu("none").transpose(1, 2)
        x = x + self.positions
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class TextDecoder:
    """What was heard, and tokens, to the logits of the tokens behind each."""

    def __init__(self, source: Source, sizes: Sizes) -> None:
        width = sizes.width
        self.words = source.table("words", sizes.symbols, width)
        self.positions = source.table("heard", sizes.length, width)
        self.layers = [
            DecoderLayer(source.inside("layer", i), width, sizes.inner, sizes.decoder_heads)
            for i in range(sizes.decoder_layers)
        ]
        self.norm = source.norm("norm", width)

    def heard(self, sound: Tensor) -> list[tuple[Tensor, Tensor]]:
        return [layer.heard(sound) for layer in self.layers]

    def logits(self, x: Tensor) -> Tensor:
        return self.norm(x) @ self.words.transpose(0, 1)

    def whole(
        self, tokens: Tensor, heard: Sequence[Sequence[Tensor]], caches: Sequence[Tensor] = ()
    ) -> Tensor:
        """What stands behind each of the tokens (n, length), before the logits.

        caches  of each layer, (2, n, heads, written, d): their first places are written
        """
        length = tokens.shape[1]
        x = tokens.embedding(self.words) + self.positions[:length]
        for i, layer in enumerate(self.layers):
            q, k, v = layer.attention.projections(x)
            if caches:
                caches[i][0, :, :, :length], caches[i][1, :, :, :length] = k, v
            x = layer.behind(x, q.scaled_dot_product_attention(k, v, is_causal=True), heard[i])
        return x

    def next(
        self, tokens: Tensor, position: Any, heard: Sequence[Sequence[Tensor]], caches: Sequence[Tensor]
    ) -> Tensor:
        """The same behind one token of each text (n, 1), at a position, by the caches of those before."""
        x = tokens.embedding(self.words) + self.positions[position : position + 1]
        for i, layer in enumerate(self.layers):
            q, k, v = layer.attention.projections(x)
            cache = caches[i]
            cache[0, :, :, position : position + 1], cache[1, :, :, position : position + 1] = k, v
            keys, values = (cache[j, :, :, : position + 1] for j in (0, 1))
            x = layer.behind(x, q.scaled_dot_product_attention(keys, values), heard[i])
        return x

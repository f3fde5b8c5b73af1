"""Whisper (Radford et al. 2022): speech to text, by a transformer that hears 30 seconds and writes.

    model = Whisper.load("whisper-tiny.en")              # a folder of CTranslate2 or Hugging Face
    print(model.transcribe("speech.wav").text)

How text is searched for, and one window after another, is in `transcription`.
"""

from __future__ import annotations

import os
import pathlib
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..ir import Variable
from ..jit import TinyJit
from ..nn.state import Hidden
from ..shape import shape_text
from ..tensor import Tensor
from .audio import HOP, log_mel
from .ctranslate2 import read_ctranslate2
from .encoder_weights import (
    Dense,
    Norm,
    RandomWeights,
    Weights,
    join_heads,
    load_folder,
    open_tokenizer,
    read_json,
    split_heads,
    whole_number,
)
from .transcription import Speech, Transcript, transcribe

# ---- what files call things ----


class Naming(NamedTuple):
    """How one kind of file names its tensors.

    norm   the two tensors of a normalization        parts  the others; several are one behind the other
    """

    norm: tuple[str, str]
    separator: str
    parts: dict[str, tuple[str, ...]]

    def of(self, prefix: str, part: str) -> list[str]:
        return [self.separator.join(filter(None, (prefix, name))) for name in self.parts[part]]


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
    written: int
    encoder_heads: int
    decoder_heads: int
    encoder_layers: int
    decoder_layers: int


class Source:
    """Weights of one file, by the names of `Naming.parts`."""

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
        self.positions = source.table("heard", sizes.written, width)
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


class Writing:
    """Texts that are written of one sound, token after token: the caches of the decoder, and its captures.

    count  how many texts at once: the beams of a search
    """

    #: Lengths that the beginnings of texts are padded to.
    LENGTHS = (4, 16, 64, 256)

    def __init__(self, decoder: TextDecoder, sizes: Sizes, count: int) -> None:
        self.decoder, self.sizes, self.count = decoder, sizes, count
        shape = (2, count, sizes.decoder_heads, sizes.written, sizes.width // sizes.decoder_heads)
        self.caches = [Tensor.zeros(*shape).contiguous() for _ in decoder.layers]
        Tensor.realize(*self.caches)
        self.position = 0
        self.heard: list[tuple[Tensor, Tensor]] = []
        self._begin: dict[int, Any] = {}
        self._next, self._order = TinyJit(self._step), TinyJit(self._reorder)

    def begin(self, heard: list[tuple[Tensor, Tensor]], tokens: Sequence[int], also: int) -> tuple[Any, Any]:
        """The logits behind the tokens, and those behind number `also` of them: each (symbols,) in numpy.

        All texts begin with these tokens.
        """
        import numpy as np

        length = next((n for n in self.LENGTHS if len(tokens) <= n <= self.sizes.written), self.sizes.written)
        ids = np.zeros((self.count, length), np.int32)
        ids[:, : len(tokens)] = tokens
        if length not in self._begin:
            self._begin[length] = TinyJit(self._prompt)
        places = Tensor(np.array([len(tokens) - 1, also], np.int32))
        last, other = self._begin[length](Tensor(ids), places, heard).numpy()
        self.heard, self.position = heard, len(tokens)
        return last, other

    def next(self, tokens: Sequence[int]) -> Any:
        """The logits (count, symbols) in numpy behind one more token of each text."""
        import numpy as np

        ids = Tensor(np.array(tokens, np.int32).reshape(self.count, 1))
        place = Variable("position", 1, self.sizes.written - 1).bind(self.position)
        self.position += 1
        return self._next(ids, place, self.heard).numpy()

    def reorder(self, order: Sequence[int]) -> None:
        """Text i goes on from what text order[i] has so far."""
        import numpy as np

        if list(order) != list(range(self.count)):
            size = Variable("length", 1, self.sizes.written).bind(self.position)
            Tensor.realize(*self._order(Tensor(np.array(order, np.int32)), size))

    def _prompt(self, ids: Tensor, places: Tensor, heard: list[tuple[Tensor, Tensor]]) -> Tensor:
        x = self.decoder.whole(ids, heard, self.caches)
        Tensor.realize(*self.caches)
        return self.decoder.logits(x[0][places])

    def _step(self, ids: Tensor, place: Any, heard: list[tuple[Tensor, Tensor]]) -> Tensor:
        return self.decoder.logits(self.decoder.next(ids, place, heard, self.caches)[:, 0])

    def _reorder(self, order: Tensor, size: Any) -> list[Tensor]:
        for cache in self.caches:
            cache[:, :, :, :size] = cache[:, order, :, :size].contiguous()
        return self.caches


class Whisper:
    """Speech to text. `Whisper.load(folder)` makes one.

    sizes      of the network        speech  what the tokens mean; None without a tokenizer
    """

    def __init__(self, sizes: Sizes, source: Source, speech: Speech | None = None) -> None:
        self.sizes, self.speech = sizes, speech
        self.encoder = SoundEncoder(source.inside("encoder"), sizes)
        self.decoder = TextDecoder(source.inside("decoder"), sizes)
        source.weights.read()
        self._captured = Captured(self)

    @staticmethod
    def load(folder: str | os.PathLike[str]) -> Whisper:
        """The model of a folder, on the default device in float32.

        folder  of CTranslate2 (model.bin, config.json) or of Hugging Face (config.json, model.safetensors,
                generation_config.json); with tokenizer.json, without which only logits can be asked for

        FileNotFoundError and ValueError say what is missing and what is wrong.
        """
        place = pathlib.Path(folder)
        if not place.is_dir():
            raise FileNotFoundError(f"no folder {place}")
        sizes, source, settings = (
            _of_ctranslate2(place) if (place / "model.bin").is_file() else _of_hugging_face(place)
        )
        path = place / "tokenizer.json"
        speech = Speech(open_tokenizer(path), settings, sizes.symbols) if path.is_file() else None
        return Whisper(sizes, source, speech)

    @staticmethod
    def random(sizes: Sizes) -> Whisper:
        """A model that never learned anything, for trying out."""
        _check(sizes, "the sizes")
        return Whisper(sizes, Source(RandomWeights(), HUGGING_FACE))

    def encode(self, mel: Tensor) -> Tensor:
        """What is heard, (n, places, width), of spectrograms (n, bins, 2 · places)."""
        wanted = (self.sizes.bins, 2 * self.sizes.heard)
        if mel.ndim != 3 or mel.shape[1:] != wanted:
            raise ValueError(
                f"this model hears spectrograms (n, {wanted[0]}, {wanted[1]}), not {shape_text(mel.shape)}"
            )
        return self.encoder(mel)

    def logits(self, mel: Tensor, tokens: Tensor) -> Tensor:
        """What may stand behind each token, (n, length, symbols), of spectrograms and tokens (n, length)."""
        length = tokens.shape[-1]
        if tokens.ndim != 2 or not isinstance(length, int) or not 1 <= length <= self.sizes.written:
            raise ValueError(
                f"tokens have shape (n, length) with length up to {self.sizes.written}, "
                f"not {shape_text(tokens.shape)}"
            )
        heard = self.decoder.heard(self.encode(mel))
        return self.decoder.logits(self.decoder.whole(tokens, heard))

    def transcribe(self, audio: Any, **options: Any) -> Transcript:
        """The text of speech, and its segments with their times in seconds: see `transcription.transcribe`.

        audio  samples, at 16,000 a second unless `rate=` says otherwise, or the path of a WAV file

        Threads take turns: what is being written lies in the model's caches.
        """
        with self._captured.turn:
            return transcribe(self._captured, audio, **options)


class Turn:
    """A lock that copies and pickles leave out: each copy of a model has its own."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def __reduce__(self) -> Any:
        return Turn, ()


class Captured(Hidden):
    """A model as a search uses it: captures for a sound of 30 seconds, and for so many texts at once."""

    def __init__(self, model: Whisper) -> None:
        self.model, self.turn = model, Turn()
        self.writings: dict[int, Writing] = {}
        self._hear = TinyJit(self._heard)

    @property
    def speech(self) -> Speech:
        if self.model.speech is None:
            raise ValueError("this model has no tokenizer: its folder needs tokenizer.json")
        return self.model.speech

    @property
    def most_tokens(self) -> int:
        return self.model.sizes.written

    @property
    def window(self) -> int:
        """Samples that are heard at once."""
        return 2 * self.model.sizes.heard * HOP

    def hear(self, samples: Tensor) -> list[tuple[Tensor, Tensor]]:
        """What the decoder needs of a window of samples."""
        found: list[tuple[Tensor, Tensor]] = self._hear(samples)
        return found

    def writing(self, count: int) -> Writing:
        if count not in self.writings:
            self.writings[count] = Writing(self.model.decoder, self.model.sizes, count)
        return self.writings[count]

    def _heard(self, samples: Tensor) -> list[tuple[Tensor, Tensor]]:
        model = self.model
        mel = log_mel(samples, model.sizes.bins).unsqueeze(0)
        return model.decoder.heard(model.encode(mel))


# ---- folders ----


def _of_ctranslate2(place: pathlib.Path) -> tuple[Sizes, Source, dict[str, Any]]:
    path = place / "model.bin"
    file = read_ctranslate2(path)
    if file.kind != "WhisperSpec":
        raise ValueError(f"{path} is a {file.kind}, and no model of Whisper")

    def shape(name: str, axes: int) -> tuple[int, ...]:
        if name not in file.tensors or file.tensors[name].ndim != axes:
            raise ValueError(f"{path} has no tensor {name} with {axes} axes")
        return tuple(int(size) for size in file.tensors[name].shape if isinstance(size, int))

    def layers(part: str) -> int:
        return len(
            {
                name.split("/")[1]
                for name in file.tensors
                if name.startswith(f"{part}/layer_") and name.count("/") > 2
            }
        )

    first, second = (int(file.attributes.get(f"{part}/num_heads", 0)) for part in ("encoder", "decoder"))
    width, bins, _ = shape("encoder/conv1/weight", 3)
    inner, _ = shape("encoder/layer_0/ffn/linear_0/weight", 2)
    heard, _ = shape("encoder/position_encodings/encodings", 2)
    written, _ = shape("decoder/position_encodings/encodings", 2)
    symbols, _ = shape("decoder/embeddings/weight", 2)
    sizes = Sizes(
        bins, width, inner, symbols, heard, written, first, second, layers("encoder"), layers("decoder")
    )
    config = read_json(place / "config.json") if (place / "config.json").is_file() else {}
    settings = {"suppress": config.get("suppress_ids"), "suppress_first": config.get("suppress_ids_begin")}
    _check(sizes, path)
    return sizes, Source(Weights(file.tensors, path, file.weight), CTRANSLATE2), settings


def _of_hugging_face(place: pathlib.Path) -> tuple[Sizes, Source, dict[str, Any]]:
    path = place / "config.json"
    config = read_json(path)
    if config.get("model_type") != "whisper":
        raise ValueError(f"{path} is of a {config.get('model_type')!r} model, and no model of Whisper")
    keys = ["num_mel_bins", "d_model", "encoder_ffn_dim", "vocab_size", "max_source_positions"]
    keys += ["max_target_positions", "encoder_attention_heads", "decoder_attention_heads"]
    keys += ["encoder_layers", "decoder_layers"]
    sizes = Sizes(*[whole_number(config, key, path) for key in keys])
    if config.get("decoder_ffn_dim", sizes.inner) != sizes.inner:
        raise NotImplementedError(f"{path}: encoder_ffn_dim and decoder_ffn_dim differ")
    if config.get("activation_function", "gelu") != "gelu" or config.get("scale_embedding"):
        raise NotImplementedError(f"{path}: only gelu, and embeddings that are not scaled, are known")
    _check(sizes, path)
    made = place / "generation_config.json"
    said = {**config, **(read_json(made) if made.is_file() else {})}
    settings = {"suppress": said.get("suppress_tokens"), "suppress_first": said.get("begin_suppress_tokens")}
    settings["multilingual"] = said.get("is_multilingual")
    return sizes, Source(Weights(load_folder(place), place), HUGGING_FACE), settings


def _check(sizes: Sizes, path: object) -> None:
    for heads in (sizes.encoder_heads, sizes.decoder_heads):
        if heads < 1 or sizes.width % heads:
            raise ValueError(f"{path}: {heads} heads do not divide a width of {sizes.width}")

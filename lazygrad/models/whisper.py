"""Whisper (Radford et al. 2022): speech to text, by a transformer that hears 30 seconds and writes.

    model = Whisper.load("whisper-tiny.en")              # a folder of CTranslate2 or Hugging Face
    print(model.transcribe("speech.wav").text)

The network is in `whisper_network`; how text is searched for, one window after another, in `transcription`.
"""

from __future__ import annotations

import os
import pathlib
import threading
from collections.abc import Sequence
from typing import Any

from ..ir import Variable
from ..jit import TinyJit
from ..nn.state import Hidden
from ..shape import shape_text
from ..tensor import Tensor
from .audio import HOP, log_mel
from .ctranslate2 import read_ctranslate2
from .encoder_weights import RandomWeights, Weights, open_tokenizer, whole_number
from .folders import load_folder, read_json
from .transcription import Speech, Transcript, transcribe
from .whisper_network import CTRANSLATE2, HUGGING_FACE, Sizes, SoundEncoder, Source, TextDecoder

# ---- captures ----


class Writing:
    """Texts that are written of one sound, token after token: the caches of the decoder, and its captures.

    count  how many texts at once: the beams of a search
    """

    #: Lengths that the beginnings of texts are padded to.
    LENGTHS = (4, 16, 64, 256)

    def __init__(self, decoder: TextDecoder, sizes: Sizes, count: int) -> None:
        self.decoder, self.sizes, self.count = decoder, sizes, count
        shape = (2, count, sizes.decoder_heads, sizes.length, sizes.width // sizes.decoder_heads)
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

        length = next((n for n in self.LENGTHS if len(tokens) <= n <= self.sizes.length), self.sizes.length)
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
        place = Variable("position", 1, self.sizes.length - 1).bind(self.position)
        self.position += 1
        return self._next(ids, place, self.heard).numpy()

    def reorder(self, order: Sequence[int]) -> None:
        """Text i goes on from what text order[i] has so far."""
        import numpy as np

        if list(order) != list(range(self.count)):
            size = Variable("length", 1, self.sizes.length).bind(self.position)
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
                f"this model takes spectrograms (n, {wanted[0]}, {wanted[1]}), not {shape_text(mel.shape)}"
            )
        return self.encoder(mel)

    def logits(self, mel: Tensor, tokens: Tensor) -> Tensor:
        """What may stand behind each token, (n, length, symbols), of spectrograms and tokens (n, length)."""
        length = tokens.shape[-1]
        if tokens.ndim != 2 or not isinstance(length, int) or not 1 <= length <= self.sizes.length:
            raise ValueError(
                f"tokens have shape (n, length) with length up to {self.sizes.length}, "
                f"not {shape_text(tokens.shape)}"
            )
        heard = self.decoder.heard(self.encode(mel))
        return self.decoder.logits(self.decoder.whole(tokens, heard))

    def transcribe(self, audio: Any, **options: Any) -> Transcript:
        """The text of speech, and its segments with their times in seconds: see `transcription.transcribe`.

        audio  samples, at 16,000 a second unless `rate=` says otherwise, or the path of a WAV file

        Threads take turns: what is being written lies in the model's caches.
        """
        with self._captured.lock:
            return transcribe(self._captured, audio, **options)


class ModelLock:
    """A lock that copies and pickles leave out: each copy of a model has its own."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def __reduce__(self) -> Any:
        return ModelLock, ()


class Captured(Hidden):
    """A model as a search uses it: captures for a sound of 30 seconds, and for so many texts at once."""

    def __init__(self, model: Whisper) -> None:
        self.model, self.lock = model, ModelLock()
        self.writings: dict[int, Writing] = {}
        self._hear = TinyJit(self._heard)

    @property
    def speech(self) -> Speech:
        if self.model.speech is None:
            raise ValueError("this model has no tokenizer: its folder needs tokenizer.json")
        return self.model.speech

    @property
    def most_tokens(self) -> int:
        return self.model.sizes.length

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


#: Attributes of a CTranslate2 file with what they are in every Whisper model: exact GELU, norms before.
_USUAL = {
    "decoder/activation": 3,
    "decoder/alibi": 0,
    "decoder/pre_norm": 1,
    "decoder/scale_embeddings": 0,
    "decoder/start_from_zero_embedding": 0,
}
#: Those of which nothing that is computed depends, or that are asked for by name.
_OTHERS = {"decoder/alignment_heads", "decoder/alignment_layer", "decoder/num_heads", "encoder/num_heads"}


def _of_ctranslate2(place: pathlib.Path) -> tuple[Sizes, Source, dict[str, Any]]:
    path = place / "model.bin"
    file = read_ctranslate2(path)
    if file.kind != "WhisperSpec":
        raise ValueError(f"{path} is a {file.kind}, not a Whisper model")

    for name, value in file.attributes.items():
        usual = _USUAL.get(name, 0)
        is_scale = name.removesuffix("_scale") in file.tensors  # of integers, one for all of a weight
        if value != usual and name not in _OTHERS and not is_scale:
            raise NotImplementedError(f"{path}: {name}={value} is not known, only {usual}")

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
        raise ValueError(f"{path} is of a {config.get('model_type')!r} model, not a Whisper model")
    keys = ["num_mel_bins", "d_model", "encoder_ffn_dim", "vocab_size", "max_source_positions"]
    keys += ["max_target_positions", "encoder_attention_heads", "decoder_attention_heads"]
    keys += ["encoder_layers", "decoder_layers"]
    sizes = Sizes(*[whole_number(config, key, path) for key in keys])
    if config.get("decoder_ffn_dim", sizes.inner) != sizes.inner:
        raise NotImplementedError(f"{path}: encoder_ffn_dim and decoder_ffn_dim differ")
    if config.get("activation_function", "gelu") != "gelu" or config.get("scale_embedding"):
        raise NotImplementedError(f"{path}: only gelu, and embeddings that are not scaled, are known")
    if not config.get("tie_word_embeddings", True):
        raise NotImplementedError(
            f"{path}: tie_word_embeddings=False: only models whose logits come from the embeddings are known"
        )
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

"""A language model that was loaded: tokens to logits, text to text."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterator, Sequence

from ..device import Device
from ..dtype import DType, dtypes, to_dtype
from ..programs.runners import begin
from ..shape import shape_text
from ..tensor import Tensor
from . import gguf_files, huggingface
from .decoder import Decoder
from .description import Description
from .rounding import ACTIVATIONS, round_activations
from .sampling import Sampling
from .session import Session
from .tokenizer import Tokenizer


class LanguageModel:
    """A decoder with its vocabulary.

    decoder    the Decoder
    tokenizer  a Tokenizer, or None where the files hold none
    name       what its files call it
    """

    def __init__(self, decoder: Decoder, tokenizer: Tokenizer | None, name: str) -> None:
        self.decoder, self.tokenizer, self.name = decoder, tokenizer, name
        self._session: Session | None = None

    @property
    def config(self) -> Description:
        """What the model is made of, such as config.context and config.layers."""
        return self.decoder.description

    def __repr__(self) -> str:
        d = self.config
        return f"<LanguageModel {self.name}: {d.architecture}, {d.layers} layers of {d.width}>"

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of whole texts, without a cache.

        tokens  integers (batch, length) → float32 (batch, length, vocabulary)
        """
        if tokens.ndim != 2 or not dtypes.is_int(tokens.dtype):
            raise ValueError(
                f"forward takes integers (batch, length), not {tokens.dtype} of {shape_text(tokens.shape)}"
            )
        positions = self.decoder.positions
        if positions is not None and tokens.shape[1] > positions.shape[0]:
            raise ValueError(
                f"texts of {tokens.shape[1]} tokens, and the model knows {positions.shape[0]} positions"
            )
        return self.decoder.logits(self.decoder.hidden(tokens))

    __call__ = forward

    def generate(
        self,
        prompt: str | Sequence[int],
        max_tokens: int | None = None,
        sampling: Sampling | None = None,
        stop: Sequence[str | int] = (),
    ) -> Iterator[str]:
        """The text that goes on after a prompt, piece by piece.

        prompt      a text, or tokens
        max_tokens  how many are generated at most; up to the end of the context if None
        sampling    greedy if not given
        stop        texts, and tokens, at which it ends; they are not part of the text

        What the prompt has in common with the one before is not read again.
        """
        if self._session is None or self._session.busy:
            self._session = Session(self, slots=1)
        session = self._session
        handle = session.add(prompt, sampling, max_tokens, stop)
        return _texts(session, handle)

    def reset(self) -> None:
        """Forget what `generate` has captured and cached.

        Needed where a weight was replaced by another tensor. One that is written in place is read anew.
        """
        self._session = None


def _texts(session: Session, handle: int) -> Iterator[str]:
    """The pieces of one sequence, which ends where nobody asks for more."""
    try:
        while session.busy:
            for event in session.step():
                if event.error is not None:
                    raise event.error
                if event.piece:
                    yield event.piece
    finally:
        session.cancel(handle)


def load(
    path: str | os.PathLike[str],
    device: str | None = None,
    dtype: str | DType | None = None,
    activations: str = "float32",
) -> LanguageModel:
    """A language model of a GGUF file or of a Hugging Face folder.

    path    a .gguf file, or a folder with config.json, safetensors and tokenizer.json
    device  where the weights go; the default device if not given
    dtype   of the weights that are plain numbers; as in the file if not given. Weights in blocks stay so.
    activations  "int8" rounds what weights in blocks multiply to 8 bits: quicker, and less exact

    NotImplementedError names an architecture that is not known. ValueError says what is wrong with a file.
    """
    if activations not in ACTIVATIONS:
        raise ValueError(f"activations must be {' or '.join(ACTIVATIONS)}, not {activations!r}")
    where = device or Device.DEFAULT
    begin(where)
    model = _loaded(pathlib.Path(path), where, None if dtype is None else to_dtype(dtype))
    if activations == "int8":
        round_activations(model.decoder)
    return model


def _loaded(place: pathlib.Path, where: str, wanted: DType | None) -> LanguageModel:
    if place.is_dir():
        config = huggingface.config_of(place)
        decoder = huggingface.load_decoder(place, where, wanted)
        return LanguageModel(decoder, huggingface.load_tokenizer(place, config), place.resolve().name)
    if not place.is_file():
        raise FileNotFoundError(f"no file or folder {place}")
    return LanguageModel(*gguf_files.load(place, where, wanted))

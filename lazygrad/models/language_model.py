"""A language model that was loaded: tokens to logits, text to text."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from ..dtype import DType
from ..tensor import Tensor
from .sampling import Sampling
from .tokenizer import Tokenizer


class LanguageModel:
    """A decoder with its vocabulary.

    config     a Description: what the model is made of, such as config.context, config.layers
    tokenizer  a Tokenizer, or None where the files hold none
    name       what its files call it
    """

    config: object
    tokenizer: Tokenizer | None
    name: str

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of whole texts, without a cache.

        tokens  integers (batch, length) → float32 (batch, length, vocabulary)
        """
        raise NotImplementedError("the decoder is being written")

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
        """
        raise NotImplementedError("the decoder is being written")


def load(
    path: str | os.PathLike[str], device: str | None = None, dtype: str | DType | None = None
) -> LanguageModel:
    """A language model of a GGUF file or of a Hugging Face folder.

    path    a .gguf file, or a folder with config.json, safetensors and tokenizer.json
    device  where the weights go; the default device if not given
    dtype   of the weights that are plain numbers; as in the file if not given. Weights in blocks stay so.

    NotImplementedError names an architecture that is not known. ValueError says what is wrong with a file.
    """
    raise NotImplementedError("the decoder is being written")

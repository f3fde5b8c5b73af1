"""A language model of one GGUF file: metadata, weights that stay in blocks, vocabulary."""

from __future__ import annotations

import dataclasses
import pathlib
from typing import Any

from ..dtype import DType
from ..nn.formats import read_gguf
from ..tensor import Tensor
from . import gguf_config
from .architectures import describe
from .decoder import Decoder
from .decoder_weights import Weights, build
from .description import Description
from .gguf_vocabulary import tokenizer_of
from .tokenizer import Tokenizer


def load(path: pathlib.Path, device: Any, dtype: DType | None) -> tuple[Decoder, Tokenizer | None, str]:
    """The decoder, the tokenizer, and the model's name."""
    tensors = read_gguf(path)
    metadata = tensors.metadata
    shapes = {
        name: tuple(size for size in tensor.shape if isinstance(size, int))
        for name, tensor in tensors.items()
    }
    description = describe(gguf_config.config_of(metadata, shapes))
    # converters have added it to the weights already
    description = dataclasses.replace(description, norm_shift=0.0)
    description = _with_factors(description, tensors)
    decoder = build(description, Weights(tensors, gguf_config.NAMES, device, dtype))
    name = metadata.get("general.name")
    return decoder, tokenizer_of(metadata), name if isinstance(name, str) and name else path.stem


def _with_factors(description: Description, tensors: dict[str, Any]) -> Description:
    """With what the rotary embedding's rates are divided by, which GGUF has as tensors."""
    found: dict[str, Any] = {}
    for field, name in (
        ("short", "rope_freqs"),
        ("short", "rope_factors_short"),
        ("long", "rope_factors_long"),
    ):
        tensor = tensors.get(f"{name}.weight")
        if isinstance(tensor, Tensor):
            found[field] = tuple(float(each) for each in tensor.numpy().reshape(-1))
    if not found:
        return description
    found["scaling"] = "longrope" if "long" in found else ""
    rotaries = [dataclasses.replace(rotary, **found) for rotary in description.rotaries]
    return dataclasses.replace(description, rotaries=tuple(rotaries))

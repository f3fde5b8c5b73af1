"""The files that scripts of earlier systems load, by the names they have there; `nn.formats` reads them."""

from __future__ import annotations

import pathlib
from typing import Any

from ..nn.formats.gguf import read_gguf
from ..nn.formats.safetensors import read_header, read_safetensors
from ..nn.formats.source import Path
from ..nn.formats.torch_files import read_torch
from ..nn.formats.weights import Weights
from ..nn.quantized import QuantizedTensor
from ..tensor import Tensor
from .archives import tar_extract, zip_extract


def torch_load(source: Path | Tensor) -> Any:
    """What `torch.save` wrote, with Tensors in place of PyTorch's; PyTorch is not needed.

    Only tensors, numbers, texts and containers are read (NotImplementedError names what else there is), and
    nothing of the file is executed. ValueError says what is wrong with a damaged file.
    """
    return read_torch(source)


def gguf_load(source: Path | Tensor) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The metadata of a GGUF file, and its tensors by name; those in blocks are dequantised when they are
    needed."""
    weights = read_gguf(source)
    tensors = {
        name: each.dequantize() if isinstance(each, QuantizedTensor) else each
        for name, each in weights.items()
    }
    return weights.metadata, tensors


def safe_load(source: Path | Tensor) -> Weights:
    """The tensors of a safetensors file, by name."""
    return read_safetensors(source)


def safe_load_metadata(source: Path | Tensor) -> tuple[Tensor, int, dict[str, Any]]:
    """All bytes of a safetensors file, where its data begins, and its header."""
    header, begin = read_header(source)
    return source if isinstance(source, Tensor) else Tensor(pathlib.Path(source)), begin, header


__all__ = ["gguf_load", "safe_load", "safe_load_metadata", "tar_extract", "torch_load", "zip_extract"]

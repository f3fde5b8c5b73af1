"""What lies in a model's folder, as Hugging Face writes it: files of JSON, and weights on disk."""

from __future__ import annotations

import json
import pathlib
from typing import Any

from ..nn.formats import FileFormatError, read_index
from ..nn.state import safe_load
from ..tensor import Tensor


def parse_json(path: pathlib.Path) -> Any:
    """What a file of JSON holds; ValueError says what is wrong with it."""
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # bytes that are no text are a ValueError too
        raise ValueError(f"{path} is not JSON: {error}") from None


def read_json(path: pathlib.Path) -> dict[str, Any]:
    """The JSON object in a file; ValueError says what is wrong with it."""
    found = parse_json(path)
    if not isinstance(found, dict):
        raise ValueError(f"{path} holds a {type(found).__name__}, not a JSON object")
    return found


def load_folder(folder: pathlib.Path) -> dict[str, Tensor]:
    """The tensors of a folder, on disk: several files and an index, or one file of safetensors."""
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        weights = read_index(index)
        tensors = {name: value for name, value in weights.items() if isinstance(value, Tensor)}
        if len(tensors) < len(weights):
            raise FileFormatError(f"{index} names files of weights in blocks: a folder has plain ones")
        return tensors
    found = sorted(folder.glob("*.safetensors"))
    if len(found) != 1:
        names = ", ".join(path.name for path in (*found, *sorted(folder.glob("*.bin")))[:3]) or "none"
        raise FileNotFoundError(
            f"{folder} has no model.safetensors nor an index of several ({names}); save_pretrained of "
            "transformers writes one"
        )
    return safe_load(found[0])

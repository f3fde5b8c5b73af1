"""Weights in several files, and folders of them: what an index names, or the one file that holds weights."""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Mapping
from typing import Any

from ...tensor import Tensor
from .content import INDEX, MOST_INDEX, ONNX, READERS, format_of
from .safetensors import parsed_json, write_safetensors
from .source import Path, Source, shown
from .weights import Weights
from .writing import written_whole

#: What weights are called in the folders that people download, the first that is there.
_USUAL = (
    "model.safetensors.index.json",
    "model.safetensors",
    "pytorch_model.bin.index.json",
    "pytorch_model.bin",
)
_ENDINGS = ("*.index.json", "*.safetensors", "*.gguf", "*.pth", "*.pt", "*.bin", "*.npz", "*.npy")
_INDEX_ENDING = ".index.json"
#: Bytes of a file's name, on every system that we know.
MOST_NAME = 255


def load_weights(path: Path | Tensor) -> Any:
    """What a file or a folder holds, its format told by its content.

    NotImplementedError for an ONNX file, which is a program and not weights.
    """
    path = file_of(path)
    kind = format_of(path)
    if kind == INDEX:
        if isinstance(path, Tensor):
            raise NotImplementedError("an index names files beside it: give its path, not its bytes")
        return read_index(path)
    if kind == ONNX:
        raise NotImplementedError(f"{shown(str(path))} is an ONNX model: OnnxRunner runs it")
    return READERS[kind](path)


def file_of(path: Path | Tensor) -> Path | Tensor:
    """The file of a folder that holds its weights; of a file, itself."""
    if isinstance(path, Tensor) or not pathlib.Path(path).is_dir():
        return path
    place = pathlib.Path(path)
    for name in _USUAL:
        if (place / name).is_file():
            return place / name
    for ending in _ENDINGS:
        found = sorted(place.glob(ending))
        if len(found) > 1:
            names = ", ".join(shown(each.name) for each in found[:5])
            raise ValueError(f"{place} has several files {ending} ({names}): name one of them")
        if found:
            return found[0]
    raise FileNotFoundError(f"{place} has no file of weights: no {', '.join(_ENDINGS)}")


def read_index(path: Path) -> Weights:
    """The tensors of several files, as an index says: {"weight_map": {name: file}, "metadata": {...}}."""
    with Source(path, "index") as source:
        if source.size > MOST_INDEX:
            source.refuse(f"it has {source.size} bytes; at most {MOST_INDEX}")
        index = parsed_json(source, source.read(0, source.size, "the index"), "the index")
        if type(index) is not dict or type(index.get("weight_map")) is not dict:
            source.refuse("it has no weight_map")
        metadata, files = index.get("metadata", {}), index["weight_map"]
        if type(metadata) is not dict:
            source.refuse("its metadata are no mapping")
        folder = pathlib.Path(path).parent
        for file in {str(file): file for file in files.values()}.values():
            if not _is_name(file):
                source.refuse(f"it names the file {shown(str(file))!r}, which is not beside it")
            if not (folder / file).is_file():
                raise FileNotFoundError(f"{source.name} names a file that is not there: {folder / file}")
        weights, parts = Weights(metadata), {}
        for name, file in files.items():
            if file not in parts:
                if format_of(folder / file) in (INDEX, ONNX):
                    source.refuse(f"it names the file {shown(file)}, which holds no weights")
                parts[file] = load_weights(folder / file)
            part = parts[file]
            if not isinstance(part, Mapping) or name not in part:
                source.refuse(
                    f"it says that tensor {shown(name)} is in {shown(file)}, which has none of that name"
                )
            weights[name] = part[name]
        return weights


def _is_name(file: Any) -> bool:
    """Whether this names a file in a folder, and nothing that leads out of it."""
    if type(file) is not str or file in ("", ".", "..") or not file.isprintable():
        return False
    return "/" not in file and "\\" not in file and len(os.fsencode(file)) <= MOST_NAME


def write_sharded(
    tensors: Mapping[str, Tensor],
    folder: Path,
    most_bytes: int = 5 << 30,
    metadata: Mapping[str, str] | None = None,
) -> pathlib.Path:
    """Write tensors to safetensors files of at most so many bytes of tensors each, and their index, whose
    path comes back. A tensor that is larger has a file of its own.

    Each file takes its place when it is complete, the index last.
    """
    if most_bytes < 1:
        raise ValueError(f"most_bytes is how much one file may hold, not {most_bytes}")
    place = pathlib.Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    parts: list[dict[str, Tensor]] = [{}]
    filled = 0
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name}: only Tensors are saved, not {type(tensor).__name__}")
        if parts[-1] and filled + tensor.nbytes() > most_bytes:
            parts.append({})
            filled = 0
        parts[-1][name] = tensor
        filled += tensor.nbytes()
    weight_map: dict[str, str] = {}
    for number, part in enumerate(parts, 1):
        file = f"model-{number:05}-of-{len(parts):05}.safetensors"
        write_safetensors(part, place / file, metadata)
        weight_map |= dict.fromkeys(part, file)
    total = sum(tensor.nbytes() for tensor in tensors.values())
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    target = place / f"model.safetensors{_INDEX_ENDING}"
    with written_whole(target) as written:
        written.write(json.dumps(index, indent=2).encode())
    return target

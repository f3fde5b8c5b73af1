"""Weights in several files: what an index names, the parts of a split model, the weights of a folder."""

from __future__ import annotations

import json
import os
import pathlib
import re
from collections.abc import Mapping
from typing import Any

from ...tensor import Tensor
from .content import INDEX, MOST_INDEX, ONNX, READERS, format_of
from .gguf import read_gguf
from .safetensors import write_safetensors
from .source import FileFormatError, Path, Source, shown
from .weights import Weights
from .writing import atomic_file

#: What weights are called in the folders that people download, the first that is there.
_USUAL = (
    "model.safetensors.index.json",
    "model.safetensors",
    "pytorch_model.bin.index.json",
    "pytorch_model.bin",
)
_ENDINGS = ("*.index.json", "*.safetensors", "*.gguf", "*.pth", "*.pt", "*.bin", "*.npz", "*.npy")
#: How the files of one model are called that llama.cpp has split.
_SPLIT = re.compile(r"(.+)-([0-9]{5})-of-([0-9]{5})\.gguf")
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
    found = READERS[kind](path)
    split = isinstance(found, Weights) and kind == "GGUF" and found.metadata.get("split.count", 1) != 1
    return read_split_gguf(path) if split and not isinstance(path, Tensor) else found


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
        if len(found) > 1 and len({_whole_of(each) for each in found}) > 1:
            names = ", ".join(shown(each.name) for each in found[:5])
            raise ValueError(f"{place} has several files {ending} ({names}): name one of them")
        if found:
            return found[0]
    raise FileNotFoundError(f"{place} has no file of weights: no {', '.join(_ENDINGS)}")


def _whole_of(file: pathlib.Path) -> str:
    """What the files of one split model have in common; of any other, its name."""
    split = _SPLIT.fullmatch(file.name)
    return file.name if split is None else f"{split[1]} of {split[3]}"


def read_split_gguf(path: Path) -> Weights:
    """The tensors of a model that is split into several GGUF files, of which one is named."""
    place = pathlib.Path(path)
    split = _SPLIT.fullmatch(place.name)
    if split is None:
        raise NotImplementedError(
            f"{place} is a part of a model, and its name does not say where the others are: parts are called "
            "NAME-00001-of-00003.gguf"
        )
    whole, total = Weights(), int(split[3])
    for number in range(1, total + 1):
        file = place.with_name(f"{split[1]}-{number:05}-of-{split[3]}.gguf")
        part = read_gguf(file)
        stated = part.metadata.get("split.no"), part.metadata.get("split.count")
        if stated != (number - 1, total):
            raise FileFormatError(f"{file} says that it is part {stated[0]} (counted from 0) of {stated[1]}")
        for name, tensor in part.items():
            if name in whole:
                raise FileFormatError(f"{file} has tensor {shown(name)}, which a part before it has too")
            whole[name] = tensor
        whole.metadata |= part.metadata if number == 1 else {}
    return whole


def read_index(path: Path) -> Weights:
    """The tensors of several files, as an index says: {"weight_map": {name: file}, "metadata": {...}}."""
    with Source(path, "index") as source:
        if source.size > MOST_INDEX:
            source.refuse(f"it has {source.size} bytes; at most {MOST_INDEX}")
        index = source.json(0, source.size, "the index")
        if type(index) is not dict or type(index.get("weight_map")) is not dict:
            source.refuse("it has no weight_map")
        metadata, files = index.get("metadata", {}), index["weight_map"]
        if type(metadata) is not dict:
            source.refuse("its metadata is not a mapping")
        folder = pathlib.Path(path).parent
        for file in {str(file): file for file in files.values()}.values():
            if not _is_name(file):
                source.refuse(f"it names the file {shown(str(file))!r}, which is not in its folder")
            if not (folder / file).is_file():
                raise FileNotFoundError(f"{source.name} names a file that does not exist: {folder / file}")
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
        raise ValueError(f"most_bytes, the size of one file, must be at least 1, not {most_bytes}")
    place = pathlib.Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    shards: list[dict[str, Tensor]] = [{}]
    filled = 0
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name}: only Tensors can be saved, not {type(tensor).__name__}")
        if shards[-1] and filled + tensor.nbytes() > most_bytes:
            shards.append({})
            filled = 0
        shards[-1][name] = tensor
        filled += tensor.nbytes()
    weight_map: dict[str, str] = {}
    for number, part in enumerate(shards, 1):
        file = f"model-{number:05}-of-{len(shards):05}.safetensors"
        write_safetensors(part, place / file, metadata)
        weight_map |= dict.fromkeys(part, file)
    total = sum(tensor.nbytes() for tensor in tensors.values())
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    target = place / _USUAL[0]
    with atomic_file(target) as written:
        written.write(json.dumps(index, indent=2).encode())
    return target

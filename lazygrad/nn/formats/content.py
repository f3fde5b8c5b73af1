"""What a file is, told by its bytes, whatever it is called."""

from __future__ import annotations

import json
from typing import Any

from ...tensor import Tensor
from . import gguf, npy
from .gguf import read_gguf
from .npy import read_npy, read_npz
from .safetensors import read_safetensors
from .source import FileFormatError, Path, Source
from .torch_files import after_magic, read_torch
from .zip_files import Archive

#: What reads a file of each format that holds tensors.
READERS = {
    "GGUF": read_gguf,
    "npy": read_npy,
    "npz": read_npz,
    "safetensors": read_safetensors,
    "torch": read_torch,
}
ONNX, INDEX = "ONNX", "index"

#: Bytes of an index of 100,000 tensors.
MOST_INDEX = 1 << 24

#: What people have that is no file of weights, by how it begins; what to do about it.
_HINTS = (
    (
        b"version https://git-lfs",
        "it is a pointer of Git LFS in place of the file: `git lfs pull` fetches that",
    ),
    (b"<", "it is a page of the web or other text, perhaps what a download answered in place of the file"),
    (b"\x1f\x8b", "it is compressed by gzip: unpack it first"),
    (b"\x89HDF", "it is HDF5, which is not read: load it in the program that wrote it, and save safetensors"),
    (b"\x89LZG", "it is a program that lazygrad.export wrote: lazygrad.load_exported runs such files"),
    (b"\x80", "it is a pickle that torch.save did not write, which is not read: it is a program"),
)

#: The fields of ONNX's ModelProto (onnx.proto): number → wire type.
_MODEL = {1: 0, 2: 2, 3: 2, 4: 2, 5: 0, 6: 2, 7: 2, 8: 2, 14: 2, 20: 2, 25: 2, 26: 2}
_GRAPH = 7
_MOST_FIELDS = 10_000


def format_of(path: Path | Tensor) -> str:
    """The format of a file: a key of READERS, "ONNX", or "index", which says what the files beside it hold.

    FileFormatError where it is none of them.
    """
    with Source(path, "known") as source:
        return _format_of(source)


def _format_of(source: Source) -> str:
    begin = source.read(0, min(source.size, 64), "its beginning")
    if begin.startswith(gguf.MAGIC):
        return "GGUF"
    if begin.startswith(npy.MAGIC):
        return "npy"
    if begin.startswith((b"PK\3\4", b"PK\5\6")):
        return _kind_of_archive(source)
    if after_magic(source) is not None:
        return "torch"
    size = int.from_bytes(begin[:8], "little")
    if len(begin) > 8 and begin[8:9] == b"{" and size < 1 << 40:
        return "safetensors"  # perhaps cut short, which its reader says better
    if begin.lstrip().startswith(b"{") and _is_index(source):
        return INDEX
    if _is_model(source):
        return ONNX
    hint = next((hint for start, hint in _HINTS if begin.startswith(start)), None)
    raise FileFormatError(
        f"{source.name} is not in a format that lazygrad reads ({', '.join(READERS)}, ONNX): "
        + (hint or (f"it begins with {begin[:16]!r}" if begin else "it is empty"))
    )


def _kind_of_archive(source: Source) -> str:
    source.kind = "zip"
    with source.damage():
        names = list(Archive(source).members)
        if any(name == "data.pkl" or name.endswith("/data.pkl") for name in names):
            return "torch"
        if all(name.endswith(".npy") for name in names):
            return "npz"
        raise ValueError("it is an archive that neither torch.save nor numpy.savez wrote: it has no data.pkl")


def _is_index(source: Source) -> bool:
    if source.size > MOST_INDEX:
        return False
    try:
        found: Any = json.loads(source.read(0, source.size, "the index"))
    except (ValueError, RecursionError):
        return False
    return type(found) is dict and "weight_map" in found


def _is_model(source: Source) -> bool:
    """Whether the file is a protobuf message with the fields of an ONNX model, among them a graph."""
    place, seen = 0, set()
    for _ in range(_MOST_FIELDS):
        if place == source.size:
            break
        tag, place = _varint(source, place)
        number = tag >> 3
        if place < 0 or _MODEL.get(number) != tag & 7:
            return False
        value, place = _varint(source, place)
        if place < 0:
            return False
        if tag & 7 == 2:
            place += value
        if place > source.size:
            return number == _GRAPH  # cut short: its reader says so better
        seen.add(number)
    return _GRAPH in seen


def _varint(source: Source, place: int) -> tuple[int, int]:
    """A number of protobuf and where it ends; -1 where there is none."""
    data = source.read(place, min(10, source.size - place), "a number")
    value = 0
    for count, byte in enumerate(data):
        value |= (byte & 127) << (7 * count)
        if byte < 128:
            return value, place + count + 1
    return 0, -1

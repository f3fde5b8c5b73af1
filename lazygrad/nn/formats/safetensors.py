"""safetensors: a length of 8 bytes, a header in JSON that says which tensor lies where, and the tensors'
bytes.

The format is described at github.com/huggingface/safetensors. Tensors fill what follows the header, without
holes and without sharing bytes; a file where they do not is refused, so no byte of it has two meanings or
none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ...device import Device
from ...dtype import DType, dtypes
from ...shape import shape_text
from ...tensor import Tensor
from .source import Path, Source, shown
from .weights import Weights
from .writing import atomic_file

#: A header of so many bytes describes 300,000 tensors.
MOST_HEADER = 1 << 25

DTYPES: dict[str, DType] = {
    "BOOL": dtypes.bool,
    "I8": dtypes.int8,
    "U8": dtypes.uint8,
    "I16": dtypes.int16,
    "U16": dtypes.uint16,
    "I32": dtypes.int32,
    "U32": dtypes.uint32,
    "I64": dtypes.int64,
    "U64": dtypes.uint64,
    "F8_E4M3": dtypes.fp8e4m3,
    "F8_E5M2": dtypes.fp8e5m2,
    "F16": dtypes.float16,
    "BF16": dtypes.bfloat16,
    "F32": dtypes.float32,
    "F64": dtypes.float64,
}
#: What else the format knows.
_OTHERS = {"C64", "F4", "F6_E2M3", "F6_E3M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
_METADATA = "__metadata__"
_INTEGERS = {1: dtypes.uint8, 2: dtypes.uint16}


# ---- reading ----


def read_safetensors(path: Path | Tensor) -> Weights:
    """The tensors of a safetensors file, by name; `.metadata` has the texts that it carries along.

    Each is on device DISK: `.to("CPU")` reads it. FileFormatError says what is wrong with a file,
    NotImplementedError which tensor has a dtype that is not there.
    """
    with Source(path, "safetensors") as source:
        header, begin = _header(source)
        weights = Weights(_texts(source, header.pop(_METADATA, {})))
        end = begin
        for name, entry in sorted(header.items(), key=lambda item: _byte_range(source, *item)):
            end = _add(source, weights, name, entry, begin, end)
        if end != source.size:
            source.refuse(f"its tensors end at byte {end} of {source.size}")
        return weights


def read_metadata(path: Path | Tensor) -> dict[str, str]:
    """The texts that a file carries along; of its tensors nothing is looked at."""
    with Source(path, "safetensors") as source:
        header, _ = _header(source)
        return _texts(source, header.get(_METADATA, {}))


def _texts(source: Source, metadata: Any) -> dict[str, str]:
    if type(metadata) is not dict or not all(type(each) is str for each in metadata.values()):
        source.refuse(f"{_METADATA} holds something other than strings")
    return metadata


def read_header(path: Path | Tensor) -> tuple[dict[str, Any], int]:
    """The header of a file as it is, and at which byte the tensors begin."""
    with Source(path, "safetensors") as source:
        return _header(source)


def _header(source: Source) -> tuple[dict[str, Any], int]:
    size = int.from_bytes(source.read(0, 8, "the size of the header"), "little")
    if size > MOST_HEADER and size <= source.size - 8:
        source.refuse(f"its header has {size} bytes; at most {MOST_HEADER}", 0)
    header = source.json(8, size, "the header")
    if type(header) is not dict:
        source.refuse("the header is not a JSON object", 8)
    return header, 8 + size


def _are_counts(values: Any) -> bool:
    return type(values) is list and all(type(value) is int and value >= 0 for value in values)


def _byte_range(source: Source, name: str, entry: Any) -> tuple[int, int]:
    """Where the bytes of a tensor begin and end."""
    if type(entry) is not dict or not entry.keys() >= {"dtype", "shape", "data_offsets"}:
        source.refuse(f"tensor {shown(name)} is described without one of dtype, shape and data_offsets")
    offsets = entry["data_offsets"]
    if not _are_counts(offsets) or len(offsets) != 2 or not _are_counts(entry["shape"]):
        source.refuse(f"tensor {shown(name)} has a shape or offsets that are not sizes")
    return offsets[0], offsets[1]


def _add(source: Source, weights: Weights, name: str, entry: Any, base: int, last: int) -> int:
    """Add a tensor whose bytes begin at `last`; where they end. Offsets are counted from `base`."""
    what = f"tensor {shown(name)}"
    kind = shown(str(entry["dtype"]))
    if kind in _OTHERS:
        source.cannot(f"{what} has dtype {kind}, which lazygrad does not have")
    dtype = DTYPES.get(kind)
    if dtype is None:
        source.refuse(f"{what} has dtype {kind}, which safetensors does not have")
    shape = tuple(entry["shape"])
    begin, end = _byte_range(source, name, entry)
    begin, end = base + begin, base + end
    nbytes = source.elements(shape, what) * dtype.itemsize
    if end - begin != nbytes:
        source.refuse(f"{what} needs {nbytes} bytes, but should be bytes {begin} to {end}")
    if end > source.size:
        source.refuse(f"{what} should be bytes {begin} to {end}, but there are {source.size}")
    if begin != last:
        source.refuse(f"{what} begins at byte {begin}, and the one before it ends at {last}")
    weights[name] = source.tensor(begin, shape, dtype, what)
    return end


# ---- writing ----


def write_safetensors(
    tensors: Mapping[str, Tensor], path: Path, metadata: Mapping[str, str] | None = None
) -> None:
    """Write tensors to a safetensors file. An older file stays until the new one is complete.

    metadata  texts that the file carries along
    """
    _check(tensors, metadata)
    # Wide elements first, so that each tensor is aligned to its elements.
    order = sorted(tensors, key=lambda name: -tensors[name].dtype.itemsize)
    header: dict[str, Any] = {_METADATA: dict(metadata)} if metadata else {}
    end = 0
    for name in order:
        tensor = tensors[name]
        begin, end = end, end + tensor.nbytes()
        header[name] = {
            "dtype": NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [begin, end],
        }
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > MOST_HEADER:
        raise ValueError(f"the names and shapes of the tensors take {len(text)} bytes; at most {MOST_HEADER}")
    with atomic_file(path) as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in order:
            if tensors[name].numel():
                file.write(_bits(tensors[name]).data())


def _check(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None) -> None:
    for key, text in (metadata or {}).items():
        if not (isinstance(key, str) and isinstance(text, str)):
            raise TypeError(f"metadata must be strings, not {key!r}: {text!r}")
    if not isinstance(tensors, Mapping):
        raise TypeError(f"tensors are saved by name, from a dict, not from a {type(tensors).__name__}")
    for name, tensor in tensors.items():
        if not isinstance(name, str):
            raise TypeError(f"the names of tensors must be strings, not {name!r}")
        if name == _METADATA:
            raise ValueError(f"no tensor can be named {_METADATA}: the file has its metadata there")
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name}: only Tensors can be saved, not {type(tensor).__name__}")
        if not all(isinstance(size, int) for size in tensor.shape):
            raise TypeError(f"{name}: only a shape of numbers is saved, not {shape_text(tensor.shape)}")


def _bits(tensor: Tensor) -> Tensor:
    """The tensor in a dtype that numpy has, not on disk: bfloat16 and fp8 as the integers of their bits."""
    here = tensor.detach()
    if not Device.runs_kernels(here.device):
        here = here.to("CPU")
    return here if here.dtype.fmt is not None else here.bitcast(_INTEGERS[here.dtype.itemsize])

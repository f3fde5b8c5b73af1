"""Archives as state dicts: tar and zip files, and the weights that PyTorch's `torch.save` wrote."""

from __future__ import annotations

import json
import math
import pathlib
import zipfile
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from ..dtype import DType, dtypes
from ..nn import state
from ..nn.state import shown
from ..shape import shape_text
from ..shape.view import strides_of
from ..tensor import Tensor
from ..tensor.sources import MOST_AXES
from .archives import Path, damage_is_an_error, opened, tar_extract, zip_extract, zip_members
from .pickles import Calls, Name, Opaque, read_pickle

# *** torch.save


class _Storage(Opaque):
    """Memory that tensors of the file share: `size` elements of a dtype."""

    def __init__(self, data: Tensor, dtype: DType, size: int) -> None:
        self.data, self.dtype, self.size = data, dtype, size


#: The classes by which a file names the types of its memory.
_STORAGES = {
    Name("torch", f"{name}Storage"): dtype
    for name, dtype in (
        ("Double", dtypes.float64),
        ("Float", dtypes.float32),
        ("Half", dtypes.float16),
        ("BFloat16", dtypes.bfloat16),
        ("Long", dtypes.int64),
        ("Int", dtypes.int32),
        ("Short", dtypes.int16),
        ("Char", dtypes.int8),
        ("Byte", dtypes.uint8),
        ("Bool", dtypes.bool),
    )
}


def _storage(pid: Any, memory: Mapping[str, Tensor]) -> _Storage:
    """What ("storage", its class, its file, the device it was on, how many elements) stands for."""
    if type(pid) is not tuple or len(pid) != 5 or pid[0] != "storage":
        raise ValueError("a persistent id is no description of a storage")
    _, kind, key, _, size = pid
    if type(kind) is not Name or kind not in _STORAGES or type(key) is not str or not _are_sizes((size,)):
        raise ValueError("a persistent id is no description of a storage")
    data, dtype = memory.get(key), _STORAGES[kind]
    if data is None:
        raise ValueError(f"there is no storage {shown(key)} in the archive")
    if size * dtype.itemsize > data.numel():
        raise ValueError(
            f"storage {shown(key)} is said to have {size} elements of {dtype}, and has {data.numel()} bytes"
        )
    return _Storage(data, dtype, size)


def _are_sizes(values: Any) -> bool:
    return type(values) is tuple and all(type(value) is int and 0 <= value < 1 << 63 for value in values)


def _tensor(storage: Any, offset: Any, shape: Any, strides: Any, *others: Any) -> Tensor:
    """Some elements of a storage. The others say whether it requires a gradient, and what hooks it has."""
    if not isinstance(storage, _Storage) or not 2 <= len(others) <= 3:
        raise ValueError("a tensor is made of other things than a storage")
    if not (_are_sizes((offset,)) and _are_sizes(shape) and _are_sizes(strides)):
        raise ValueError("a tensor's offset, shape and strides are no sizes")
    if len(shape) != len(strides) or len(shape) > MOST_AXES:
        raise ValueError(f"a tensor has {len(shape)} axes and {len(strides)} strides; at most {MOST_AXES}")
    count = math.prod(shape)
    if count >= 1 << 63:
        raise ValueError(f"a tensor of shape {shape_text(shape)} has too many elements")
    dtype = storage.dtype
    if count == 0:
        return Tensor.empty(*shape, dtype=dtype, device="CPU")
    last = offset + sum((size - 1) * step for size, step in zip(shape, strides, strict=True))
    if last >= storage.size:
        raise ValueError(
            f"a tensor of shape {shape_text(shape)} has elements {offset} to {last} of {storage.size}"
        )
    here = tuple(0 if size == 1 else step for size, step in zip(shape, strides, strict=True))
    if here == strides_of(shape):
        begin = offset * dtype.itemsize
        return storage.data[begin : begin + count * dtype.itemsize].bitcast(dtype).reshape(shape)
    elements = storage.data[: storage.size * dtype.itemsize].to("CPU").bitcast(dtype)
    return elements.as_strided(shape, strides, offset)


def _parameter(data: Any, *_: Any) -> Tensor:
    if not isinstance(data, Tensor):
        raise ValueError("a parameter is made of something else than a tensor")
    return data


def _size(values: Any) -> tuple[int, ...]:
    if not _are_sizes(values):
        raise ValueError("a torch.Size has other things than sizes")
    return values  # type: ignore[no-any-return]


def _encoded(text: Any, encoding: Any) -> bytes:
    """Bytes, as protocol 2 writes them."""
    if type(text) is not str or encoding != "latin1":
        raise ValueError("bytes are written in another way than by a pickler")
    return text.encode("latin1")


#: What a file may name, and what comes of calling it.
_CALLS: Calls = {
    Name("collections", "OrderedDict"): lambda: OrderedDict(),  # of no arguments
    Name("torch._utils", "_rebuild_tensor_v2"): _tensor,
    Name("torch._utils", "_rebuild_parameter"): _parameter,
    Name("torch", "Size"): _size,
    Name("_codecs", "encode"): _encoded,
    **dict.fromkeys(_STORAGES),
}


def torch_load(source: Path | Tensor) -> Any:
    """What `torch.save` wrote, with Tensors in place of PyTorch's; PyTorch is not needed.

    Only tensors, numbers, texts and containers are read (NotImplementedError names what else there is), and
    nothing of the file is executed. The form before PyTorch 1.6 (no zip) is refused. ValueError says what is
    wrong with a damaged file.
    """
    name, file, whole = archive_file = opened(source)
    with file:
        if not zipfile.is_zipfile(file):
            raise NotImplementedError(
                f"{name} is no zip file, which torch.save writes since PyTorch 1.6: load it there and save "
                "it again"
            )
        with damage_is_an_error(name, "torch"), zipfile.ZipFile(file) as archive:
            places = {}
            for info, begin in zip_members(archive, file, archive_file.size):
                if info.compress_type != zipfile.ZIP_STORED:
                    raise NotImplementedError(
                        f"{shown(info.filename)} is compressed, which torch.save does not do"
                    )
                places[info.filename] = begin, begin + info.file_size
            return _read(file, whole, places)


def _read(file: Any, whole: Tensor, places: Mapping[str, tuple[int, int]]) -> Any:
    """The object whose pickle and memory are members of an archive, at these places."""

    def contents(name: str) -> bytes:
        begin, end = places[name]
        file.seek(begin)
        found: bytes = file.read(end - begin)
        return found

    indices = [name for name in places if name == "data.pkl" or name.endswith("/data.pkl")]
    if len(indices) != 1:
        raise ValueError(f"it has {len(indices) or 'no'} data.pkl: torch.save did not write it")
    root = indices[0].removesuffix("data.pkl")
    if f"{root}byteorder" in places and contents(f"{root}byteorder") != b"little":
        raise NotImplementedError("its numbers are not little-endian: load it there and save it again")
    inside = f"{root}data/"
    memory = {
        name.removeprefix(inside): whole[begin:end]
        for name, (begin, end) in places.items()
        if name.startswith(inside)
    }
    return read_pickle(contents(indices[0]), _CALLS, lambda pid: _storage(pid, memory))


# *** safetensors


def _path_of(source: Path | Tensor) -> Path:
    """The file whose bytes a tensor is."""
    if not isinstance(source, Tensor):
        return source
    if not isinstance(source.device, str) or not source.device.startswith("DISK:"):
        raise NotImplementedError(
            f"safetensors are read from a file, not from a tensor on {source.device}: write it to one, "
            "and pass the path or Tensor(pathlib.Path(path))"
        )
    return source.device.removeprefix("DISK:")


def safe_load(source: Path | Tensor) -> dict[str, Tensor]:
    """The tensors of a safetensors file, by name."""
    return state.safe_load(_path_of(source))


def safe_load_metadata(source: Path | Tensor) -> tuple[Tensor, int, dict[str, Any]]:
    """All bytes of a safetensors file, where its data begins, and its header."""
    path = pathlib.Path(_path_of(source))
    state.safe_load_metadata(path)  # checks the header
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
    return Tensor(path), 8 + size, header


__all__ = ["safe_load", "safe_load_metadata", "tar_extract", "torch_load", "zip_extract"]

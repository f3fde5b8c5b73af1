"""Archives as state dicts: tar and zip files, and the weights that PyTorch's `torch.save` wrote."""

from __future__ import annotations

import io
import json
import math
import os
import pathlib
import pickle
import struct
import tarfile
import zipfile
from collections import OrderedDict
from typing import Any, NamedTuple

from ..dtype import DType, dtypes
from ..nn import state
from ..shape.view import strides_of
from ..tensor import Tensor

Path = str | os.PathLike[str]


def _bytes_and_place(source: Path | Tensor) -> tuple[Any, Tensor]:
    """A file to read from, and all its bytes as a tensor (lazily, where it is a file)."""
    if isinstance(source, Tensor):
        return io.BytesIO(source.data().tobytes()), source
    path = pathlib.Path(source)
    return open(path, "rb"), Tensor(path)


def tar_extract(source: Path | Tensor) -> dict[str, Tensor]:
    """The files of a tar archive by name, as bytes (uint8)."""
    file, whole = _bytes_and_place(source)
    with file, tarfile.open(fileobj=file, mode="r:") as archive:
        members = [m for m in archive.getmembers() if m.isfile()]
        return {m.name: whole[m.offset_data : m.offset_data + m.size] for m in members}


def zip_extract(source: Path | Tensor) -> dict[str, Tensor]:
    """The files of a zip archive by name, as bytes (uint8); only the compressed ones are read."""
    file, whole = _bytes_and_place(source)
    with file, zipfile.ZipFile(file) as archive:
        found = {}
        for info in archive.infolist():
            if info.is_dir():
                continue
            if info.compress_type == zipfile.ZIP_STORED:
                begin = _begin(file, info)
                found[info.filename] = whole[begin : begin + info.file_size]
            else:
                found[info.filename] = Tensor(archive.read(info))
        return found


def _begin(file: Any, info: zipfile.ZipInfo) -> int:
    """Where a member's bytes are: after 30 bytes, its name and an extra field (PKZIP APPNOTE 4.3.7)."""
    file.seek(info.header_offset + 26)
    name, extra = struct.unpack("<HH", file.read(4))
    return info.header_offset + 30 + int(name) + int(extra)


# *** torch.save


class _Storage(NamedTuple):
    """Memory that tensors of the file share."""

    key: str
    dtype: DType


#: The classes by which a file names the types of its memory.
_STORAGES = {
    "DoubleStorage": dtypes.float64,
    "FloatStorage": dtypes.float32,
    "HalfStorage": dtypes.float16,
    "BFloat16Storage": dtypes.bfloat16,
    "LongStorage": dtypes.int64,
    "IntStorage": dtypes.int32,
    "ShortStorage": dtypes.int16,
    "CharStorage": dtypes.int8,
    "ByteStorage": dtypes.uint8,
    "BoolStorage": dtypes.bool,
}


class _Unpickler(pickle.Unpickler):
    """Reads tensors, numbers, texts and containers of them; any other class is refused, and nothing runs."""

    def __init__(self, file: Any, parts: dict[str, Tensor]) -> None:
        super().__init__(file)
        self.parts = parts

    def persistent_load(self, pid: Any) -> _Storage:
        _, kind, key, *_ = pid
        return _Storage(key, kind)

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if module == "torch" and name in _STORAGES:
            return _STORAGES[name]
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return self._tensor
        if (module, name) == ("torch._utils", "_rebuild_parameter"):
            return lambda data, *_: data
        if (module, name) == ("torch", "Size"):
            return tuple
        raise NotImplementedError(
            f"the file holds a {module}.{name}, which is not read: save a state dict of tensors"
        )

    def _tensor(
        self, storage: _Storage, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], *_: Any
    ) -> Tensor:
        data, item = self.parts[storage.key], storage.dtype.itemsize
        if math.prod(shape) == 0:
            return Tensor.empty(*shape, dtype=storage.dtype, device="CPU")
        here = tuple(0 if size == 1 else step for size, step in zip(shape, strides, strict=True))
        if here == strides_of(shape):
            begin = offset * item
            return data[begin : begin + math.prod(shape) * item].bitcast(storage.dtype).reshape(shape)
        return data.to("CPU").bitcast(storage.dtype).as_strided(shape, strides, offset)


def torch_load(source: Path | Tensor) -> Any:
    """What `torch.save` wrote, with Tensors in place of PyTorch's; PyTorch is not needed.

    Only tensors, numbers, texts and containers are read. The form before PyTorch 1.6 (no zip) is refused.
    """
    file, _ = _bytes_and_place(source)
    with file:
        if not zipfile.is_zipfile(file):
            raise NotImplementedError(
                f"{source if not isinstance(source, Tensor) else 'this'} is no zip file, which torch.save "
                "writes since PyTorch 1.6: load it there and save it again"
            )
    parts = zip_extract(source)
    index = next((name for name in parts if name.endswith("data.pkl")), None)
    if index is None:
        raise ValueError("the zip file has no data.pkl: torch.save did not write it")
    root = index.removesuffix("data.pkl")
    memory = {name.removeprefix(f"{root}data/"): part for name, part in parts.items()}
    return _Unpickler(io.BytesIO(parts[index].data().tobytes()), memory).load()


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

"""From bytes to a checked ModelProto with its tensors: what is truncated, lying or hostile is refused
here.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from .values import Array

#: So many elements may one tensor of a file claim that has no data of that size: nothing is allocated before.
_MAX_ELEMENTS = 1 << 40


def onnx_module() -> Any:
    """The `onnx` package; ImportError says how to install it."""
    try:
        import onnx
    except ImportError as error:
        raise ImportError(
            'ONNX files are read by the package `onnx`: pip install "lazygrad[onnx]"'
        ) from error
    return onnx


def read_model(source: Any) -> tuple[Any, Path | None, str]:
    """The ModelProto of a path, of bytes, or itself; the folder of its external data; what to call it."""
    onnx = onnx_module()
    if isinstance(source, onnx.ModelProto):
        return source, None, "the model"
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        try:
            data, folder, name = path.read_bytes(), path.resolve().parent, str(path)
        except IsADirectoryError:
            raise ValueError(f"{path} is a folder; give the .onnx file in it") from None
    elif isinstance(source, (bytes, bytearray, memoryview)):
        data, folder, name = bytes(source), None, f"the {len(source)} bytes"
    else:
        raise TypeError(
            f"OnnxRunner takes a path, the bytes of a file or an onnx.ModelProto, not {type(source).__name__}"
        )
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except Exception as error:  # DecodeError, whose place differs between versions of protobuf
        raise ValueError(f"{name}: not an ONNX file, or it is damaged: {error}") from error
    if not model.HasField("graph"):
        raise ValueError(f"{name}: not an ONNX file, or it is damaged: it has no graph")
    if not model.opset_import:
        raise ValueError(f"{name}: the file does not say which opset it uses")
    return model, folder, name


def array_of_proto(proto: Any, folder: Path | None) -> Array:
    """The array of a TensorProto; external data is mapped from a file inside the model's folder."""
    onnx = onnx_module()
    name = proto.name or "a tensor"
    shape = tuple(proto.dims)
    if any(size < 0 for size in shape) or _count(shape) > _MAX_ELEMENTS:
        raise ValueError(f"{name}: {list(shape)} is not the shape of a tensor")
    if proto.data_location == onnx.TensorProto.EXTERNAL:
        proto = _with_external(proto, name, folder)
    try:
        array = onnx.numpy_helper.to_array(proto)
    except Exception as error:
        raise ValueError(
            f"{name}: its data are not those of a tensor of shape {list(shape)}: {error}"
        ) from error
    return np.asarray(array)


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _with_external(proto: Any, name: str, folder: Path | None) -> Any:
    """The tensor with the bytes that its entry names."""
    onnx = onnx_module()
    entry = {pair.key: pair.value for pair in proto.external_data}
    location = entry.get("location", "")
    if folder is None:
        raise ValueError(
            f"{name}: its data are in another file, {location!r}; give OnnxRunner the path of the model"
        )
    path = (folder / location).resolve()
    if not location or not path.is_relative_to(folder):
        raise ValueError(f"{name}: its data would be read from {location!r}, outside of the model's folder")
    try:
        offset = int(entry.get("offset", "0"))
        size = path.stat().st_size
        length = int(entry.get("length", size - offset))
    except (ValueError, OSError) as error:
        raise ValueError(f"{name}: its data cannot be read from {location!r}: {error}") from error
    if offset < 0 or length < 0 or offset + length > size:
        raise ValueError(
            f"{name}: its data are bytes {offset} to {offset + length} of {location!r}, which has {size}"
        )
    inside = onnx.TensorProto()
    inside.CopyFrom(proto)
    inside.ClearField("external_data")
    inside.data_location = onnx.TensorProto.DEFAULT
    with path.open("rb") as file:
        file.seek(offset)
        inside.raw_data = file.read(length)
    return inside

"""Models in the binary format of CTranslate2: a list of named variables, and names for the same ones again.

    uint32 version of the format        text: the kind of model        uint32 revision of that kind
    uint32 number of variables, each:   text: name, uint8 rank, uint32 for each size,
                                        uint8 type, uint32 number of bytes, the bytes
    uint32 number of aliases, each:     text: the alias, text: the name that it stands for

Integers are little-endian. A text is a uint16 with its length, and its bytes, of which the last is 0. (The
layout is what `ctranslate2.specs.ModelSpec.save` writes.)
"""

from __future__ import annotations

import math
import os
import pathlib
import struct
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

from ..device import Device
from ..dtype import DType, dtypes
from ..nn.formats.source import shown
from ..tensor import Tensor

#: The version of the format that is read: what CTranslate2 has written since its version 2.
VERSION = 6

#: The number of a type in a file, and the format of one element for `struct` (none for bfloat16).
TYPES: dict[int, tuple[DType, str]] = {
    0: (dtypes.float32, "f"),
    1: (dtypes.int8, "b"),
    2: (dtypes.int16, "h"),
    3: (dtypes.int32, "i"),
    4: (dtypes.float16, "e"),
    5: (dtypes.bfloat16, ""),
}

#: Axes that one variable may have; the models of the format have at most three.
MOST_AXES = 8


class CTranslate2File(NamedTuple):
    """What a file holds.

    kind        the name of the model's class, such as `WhisperSpec`
    revision    of that kind
    tensors     by name, on device DISK: a tensor is read when it is used
    attributes  variables without axes, such as `encoder/num_heads`, as numbers
    aliases     other names of variables, which are names of the above too
    """

    kind: str
    revision: int
    tensors: dict[str, Tensor]
    attributes: dict[str, int | float]
    aliases: dict[str, str]

    def weight(self, name: str) -> Tensor:
        """A weight as floats: integers are divided by their scale, which is one number or one for each line.

        KeyError where the file has no such variable.
        """
        value = self.tensors[name]
        if dtypes.is_float(value.dtype):
            return value
        scale = None
        for own in (name, self.aliases.get(name, name)):  # an alias may go without one of its own
            if scale is None:
                scale = self.tensors.get(f"{own}_scale", self.attributes.get(f"{own}_scale"))
        if scale is None:
            raise ValueError(
                f"the weight {shown(name)} has integers, but the file has no {shown(name)}_scale"
            )
        here = value.to(Device.DEFAULT).cast(dtypes.float32)
        if not isinstance(scale, Tensor):
            return here / scale
        if scale.numel() not in (1, value.shape[0]):
            raise ValueError(f"{shown(name)}: {value.shape[0]} lines and {scale.numel()} scales")
        return here / scale.to(Device.DEFAULT).reshape(-1, *[1] * (value.ndim - 1))


@dataclass(slots=True)
class _Reader:
    """A file that is read from its beginning; what is not there raises and says where it should be."""

    file: BinaryIO
    path: pathlib.Path
    size: int

    def error(self, text: str) -> ValueError:
        return ValueError(f"{self.path} is not a CTranslate2 model, or is damaged: {text}")

    def need(self, count: int, what: str) -> int:
        """The place of the next `count` bytes, which are `what`."""
        place = self.file.tell()
        if count > self.size - place:
            raise self.error(
                f"{what} at byte {place} needs {count} bytes, but only {self.size - place} are left"
            )
        return place

    def number(self, form: str, what: str) -> int:
        width = struct.calcsize("<" + form)
        self.need(width, what)
        (value,) = struct.unpack("<" + form, self.file.read(width))
        return int(value)

    def text(self, what: str) -> str:
        count = self.number("H", f"the length of {what}")
        place = self.need(count, what)
        data = self.file.read(count)
        if not data.endswith(b"\0") or b"\0" in data[:-1]:
            raise self.error(f"{what} at byte {place} is not a string that ends with a zero byte")
        try:
            return data[:-1].decode()
        except UnicodeDecodeError:
            raise self.error(f"{what} at byte {place} is not UTF-8") from None


def read_ctranslate2(path: str | os.PathLike[str]) -> CTranslate2File:
    """What a `model.bin` of CTranslate2 holds; ValueError says what is wrong with it, and at which byte.

    An int8 or int16 weight comes with another variable, its name with `_scale` behind it (see
    `CTranslate2File.weight`).
    """
    file = pathlib.Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"no file {file}")
    with open(file, "rb") as opened:
        return _read(_Reader(opened, file, os.fstat(opened.fileno()).st_size))


def _read(reader: _Reader) -> CTranslate2File:
    version = reader.number("I", "the version of the format")
    if version != VERSION:
        if 1 <= version < 100:
            raise NotImplementedError(
                f"{reader.path}: version {version} of CTranslate2's format is not read, only {VERSION}; "
                "convert the model again with a current ctranslate2"
            )
        raise reader.error(f"its first four bytes are {version}, the version should be {VERSION}")
    kind = reader.text("the kind of model")
    revision = reader.number("I", "the revision")
    whole = Tensor(reader.path)
    tensors: dict[str, Tensor] = {}
    attributes: dict[str, int | float] = {}
    aliases: dict[str, str] = {}
    for index in range(reader.number("I", "the number of variables")):
        name = reader.text(f"the name of variable {index}")
        if name in tensors or name in attributes:
            raise reader.error(f"two variables have the name {shown(name)}")
        _read_variable(reader, name, whole, tensors, attributes)
    for index in range(reader.number("I", "the number of aliases")):
        alias = reader.text(f"the name of alias {index}")
        name = reader.text(f"the variable of alias {shown(alias)}")
        if alias in tensors or alias in attributes:
            raise reader.error(f"the alias {shown(alias)} is a name that was given before")
        aliases[alias] = name
        if name in tensors:
            tensors[alias] = tensors[name]
        elif name in attributes:
            attributes[alias] = attributes[name]
        else:
            raise reader.error(f"the alias {shown(alias)} stands for {shown(name)}, which is not a variable")
    if reader.file.tell() != reader.size:
        raise reader.error(f"it ends at byte {reader.file.tell()}, the file has {reader.size}")
    return CTranslate2File(kind, revision, tensors, attributes, aliases)


def _read_variable(
    reader: _Reader, name: str, whole: Tensor, tensors: dict[str, Tensor], attributes: dict[str, int | float]
) -> None:
    """One variable, from behind its name; it goes into one of the two dicts."""
    what = f"variable {shown(name)}"
    rank = reader.number("B", f"the rank of {what}")
    if rank > MOST_AXES:
        raise reader.error(f"{what} has {rank} axes, of at most {MOST_AXES}")
    shape = tuple(reader.number("I", f"the shape of {what}") for _ in range(rank))
    number = reader.number("B", f"the type of {what}")
    if number not in TYPES:
        raise reader.error(f"{what} has type {number}, and types are {min(TYPES)} to {max(TYPES)}")
    dtype, form = TYPES[number]
    bytes_ = reader.number("I", f"the size of {what}")
    if bytes_ != math.prod(shape) * dtype.itemsize:
        raise reader.error(f"{what} of shape {shape} and type {dtype.name} has {bytes_} bytes")
    place = reader.need(bytes_, what)
    if not rank and form:
        (attributes[name],) = struct.unpack("<" + form, reader.file.read(bytes_))
    elif not bytes_:
        tensors[name] = Tensor.empty(*shape, dtype=dtype, device="CPU")
    else:
        tensors[name] = whole[place : place + bytes_].bitcast(dtype).reshape(shape)
        reader.file.seek(bytes_, os.SEEK_CUR)

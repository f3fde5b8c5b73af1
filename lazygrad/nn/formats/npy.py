"""numpy's files: `.npy`, an array, and `.npz`, a zip archive of such.

The format is that of NEP 1: a magic word, a version, the length of a header, and the header, a dict in
Python's syntax with a dtype, an order of axes and a shape. It is taken apart by a pattern and not evaluated.
"""

from __future__ import annotations

import math
import re
import sys
from typing import Any

from ...dtype import DType, dtypes
from ...tensor import Tensor
from .source import Path, Source, Window, shown
from .weights import Weights
from .zip_files import Archive, Member

MAGIC = b"\x93NUMPY"

#: A shape of 64 axes takes 1,300 bytes.
MOST_HEADER = 1 << 16

_DTYPES: dict[str, DType] = {
    "b1": dtypes.bool,
    "i1": dtypes.int8,
    "u1": dtypes.uint8,
    "i2": dtypes.int16,
    "u2": dtypes.uint16,
    "i4": dtypes.int32,
    "u4": dtypes.uint32,
    "i8": dtypes.int64,
    "u8": dtypes.uint64,
    "f2": dtypes.float16,
    "f4": dtypes.float32,
    "f8": dtypes.float64,
}

#: A text, or nested lists of them.
Texts = str | list[Any]

#: An entry of the header: its name, its value, and a comma if another follows.
_ENTRY = re.compile(
    r"\s*'(descr|fortran_order|shape)'\s*:\s*"
    r"('[^'\\]{0,100}'|True|False|\(\s*(?:[0-9]{1,20}L?\s*,\s*)*(?:[0-9]{1,20}L?\s*)?\)|\[.*\])\s*(,\s*|$)",
    re.DOTALL,
)


def read_npy(path: Path | Tensor) -> Tensor:
    """The array of a `.npy` file as a tensor, read when it is needed.

    FileFormatError says what is wrong with a file, NotImplementedError that its dtype is not there: objects,
    texts, records, complex numbers, and numbers of the other byte order.
    """
    with Source(path, "npy") as source:
        found = _array(source, 0, source.size, "the array")
        if not isinstance(found, Tensor):
            source.cannot("the array holds texts, which are no tensor")
        return found


def read_npz(path: Path | Tensor) -> Weights:
    """The arrays of a `.npz` file by name; `.metadata` has those of texts, as texts and lists of them.

    Compressed ones are unpacked at once, the others read when they are needed.
    """
    with Source(path, "npz") as source, source.damage():
        archive = Archive(source)
        archive.check_unpacks()
        weights = Weights()
        for member in archive.members.values():
            if not member.name.endswith(".npy"):
                raise NotImplementedError(f"its member {shown(member.name)} is not a .npy file")
            name, found = member.name.removesuffix(".npy"), _of_member(archive, member)
            if isinstance(found, Tensor):
                weights[name] = found
            else:
                weights.metadata[name] = found
        return weights


def _of_member(archive: Archive, member: Member) -> Tensor | Texts:
    what = shown(member.name)
    if member.packed is None:
        return _array(archive.source, member.begin, member.begin + member.nbytes, what)
    with Source(archive.tensor(member), "npz") as unpacked:
        unpacked.name = archive.source.name
        return _array(unpacked, 0, unpacked.size, what)


def _array(source: Source, begin: int, end: int, what: str) -> Tensor | Texts:
    """The array that lies between two bytes."""
    window = Window(source, begin, end)
    if window.missing(12) or not window.data.startswith(MAGIC):
        source.refuse(f"{what} does not begin with {MAGIC!r}", begin)
    version = window.data[6]
    if version not in (1, 2, 3):
        source.cannot(f"{what} is of version {version} of numpy's format; 1 to 3 are read")
    width = 2 if version == 1 else 4
    window.offset = 8 + width
    size = int.from_bytes(window.data[8 : window.offset], "little")
    if missing := window.missing(size):
        source.refuse(f"the header of {what} ends {missing} bytes after the end", begin + 8)
    if size > MOST_HEADER:
        source.refuse(f"the header of {what} has {size} bytes; at most {MOST_HEADER}", begin + 8)
    header = window.data[window.offset : window.offset + size].decode("utf-8", "replace")
    dtype, turned, shape = _parsed(source, header, what)
    first = begin + window.offset + size
    width = dtype.itemsize if isinstance(dtype, DType) else int(dtype[1:]) * (4 if dtype[0] == "U" else 1)
    nbytes = source.elements(shape, what) * width
    if first + nbytes > end:
        source.refuse(
            f"{what} of {nbytes} bytes should be bytes {first} to {first + nbytes}, but there are {end}"
        )
    if first + nbytes < end:
        source.cannot(f"{end - first - nbytes} bytes follow {what}: files of several arrays are not read")
    if not isinstance(dtype, DType):
        return _texts(source, source.read(first, nbytes, what), dtype, shape, turned, what)
    if not turned:
        return source.tensor(first, shape, dtype, what)
    return source.tensor(first, shape[::-1], dtype, what).permute(*reversed(range(len(shape))))


def _texts(source: Source, data: bytes, kind: str, shape: tuple[int, ...], turned: bool, what: str) -> Texts:
    """Texts of one length each, padded by zeros: of characters of 4 bytes (U) or of bytes (S)."""
    import numpy as np

    if 0 in shape:
        return []
    if not data and math.prod(shape) > source.size:
        source.refuse(f"{what} has shape {shape} of texts without any character")
    if kind[0] == "U" and data and int(np.frombuffer(data, "<u4").max()) > sys.maxunicode:
        source.refuse(f"{what} holds numbers that are not characters")
    array = np.frombuffer(data, f"<{kind}") if data else np.full(shape, "", kind)
    texts = array.reshape(shape, order="F" if turned else "C")
    try:
        return (texts if kind[0] == "U" else np.char.decode(texts, "utf-8")).tolist()  # type: ignore[no-any-return]
    except UnicodeDecodeError as error:
        source.refuse(f"{what} holds bytes that are not text: {error.reason}")


def _parsed(source: Source, header: str, what: str) -> tuple[DType | str, bool, tuple[int, ...]]:
    """The dtype, whether the first axis is the innermost, and the shape."""
    text, found, place = header.strip(), {}, 1
    if not text.startswith("{") or not text.endswith("}"):
        source.refuse(f"the header of {what} is not a dict: {shown(text)}")
    inside = text[:-1]
    while place < len(inside):
        entry = _ENTRY.match(inside, place)
        if entry is None or entry[1] in found:
            source.refuse(f"the header of {what} is not as numpy writes it: {shown(text)}")
        found[entry[1]] = entry[2]
        place = entry.end()
    kind, order, sizes = (found.get(key, "") for key in ("descr", "fortran_order", "shape"))
    if kind.startswith("["):
        source.cannot(f"{what} holds records, which are not read")
    if not kind.startswith("'") or order not in ("True", "False") or not sizes.startswith("("):
        source.refuse(f"the header of {what} lacks a dtype, an order or a shape: {shown(text)}")
    shape = tuple(int(size) for size in re.findall("[0-9]+", sizes))
    return _dtype(source, kind.strip("'"), what), order == "True", shape


def _dtype(source: Source, kind: str, what: str) -> DType | str:
    """The dtype of numbers; of texts, U or S and how many characters each has."""
    byte_order, code = kind[:1], kind[1:]
    if byte_order in "<|" and re.fullmatch("[US][0-9]{1,9}", code):
        return code
    dtype = _DTYPES.get(code)
    if dtype is None or byte_order not in "<>|=":
        source.cannot(f"{what} has dtype {shown(kind)}, which is not read")
    if byte_order == ">" and dtype.itemsize > 1:
        source.cannot(f"{what} has numbers of the other byte order ({kind}), which are not read")
    return dtype

"""GGUF: the files of llama.cpp. Metadata, then tensors, many of them quantised in blocks.

The layout is that of ggml's `docs/gguf.md`: a head, metadata (key, type, value), a description of each
tensor, padding, and the tensors' bytes, each at a multiple of the alignment. Versions 2 and 3, little-endian.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

from ...dtype import DType, dtypes
from ...tensor import Tensor
from ...tensor.sources import MOST_AXES
from ..block_formats import FORMATS, BlockFormat
from ..quantized import QuantizedTensor
from .source import Path, Source, Window, shown
from .weights import Weights

MAGIC = b"GGUF"

#: What stands before the tensors is read as a whole: a vocabulary of 256,000 words with its merges is 12 MB.
MOST_HEADER = 1 << 26
#: Arrays of arrays; nobody has been seen to write deeper ones.
MOST_NESTED = 4
#: The alignment of tensors where the file states none.
ALIGNMENT = 32

_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 10: "Q", 11: "q", 12: "d"}
_BOOL, _TEXT, _ARRAY = 7, 8, 9
#: The fewest bytes that a value of a type takes.
_LEAST = {kind: struct.calcsize(code) for kind, code in _NUMBERS.items()} | {_BOOL: 1, _TEXT: 8, _ARRAY: 12}

_DTYPES: dict[int, DType] = {
    0: dtypes.float32,
    1: dtypes.float16,
    24: dtypes.int8,
    25: dtypes.int16,
    26: dtypes.int32,
    27: dtypes.int64,
    28: dtypes.float64,
    30: dtypes.bfloat16,
}
_BLOCKS: dict[int, BlockFormat] = {row.number: row for row in FORMATS.values()}
#: Names of types that are not read, for messages.
_OTHERS = {
    9: "Q8_1",
    15: "Q8_K",
    16: "IQ2_XXS",
    17: "IQ2_XS",
    18: "IQ3_XXS",
    19: "IQ1_S",
    21: "IQ3_S",
    22: "IQ2_S",
    29: "IQ1_M",
    40: "NVFP4",
}

_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")


class _Header(Window):
    """What stands before the tensors, read from its beginning on."""

    def need(self, count: int, what: str) -> None:
        """Have the next `count` bytes in `data`."""
        if self.offset + count > MOST_HEADER and self.offset + count <= self.size:
            self.source.refuse(f"the part before the tensors has more than {MOST_HEADER} bytes", self.offset)
        if missing := self.missing(count):
            self.source.refuse(f"{what} ends {missing} bytes after the end of the file", self.offset)

    def unpack(self, kind: struct.Struct, what: str) -> Any:
        self.need(kind.size, what)
        (found,) = kind.unpack_from(self.data, self.offset)
        self.offset += kind.size
        return found

    def count(self, least: int, what: str) -> int:
        """A number of things that take at least so many bytes each; as many must follow."""
        begin = self.offset
        found: int = self.unpack(_U64, what)
        if found * least > self.source.size - self.offset:
            self.source.refuse(
                f"{what}: {found} of at least {least} bytes each are more than the file has", begin
            )
        return found

    def bytes(self, what: str) -> bytes:
        size = self.count(1, what)
        self.need(size, what)
        self.offset += size
        return self.data[self.offset - size : self.offset]

    def name(self, what: str) -> str:
        begin = self.offset
        try:
            return self.bytes(what).decode()
        except UnicodeDecodeError as error:
            self.source.refuse(f"{what} is not UTF-8: {error.reason}", begin)

    def value(self, kind: int, what: str, depth: int = 0) -> Any:
        """A value of metadata."""
        if kind == _ARRAY:
            return self.array(what, depth)
        (found,) = self.values(kind, 1, what)
        return found

    def array(self, what: str, depth: int) -> list[Any]:
        begin = self.offset
        kind = self.unpack(_U32, what)
        if kind not in _LEAST:
            self.source.refuse(f"{what} is an array of type {kind}, which GGUF does not have", begin)
        count = self.count(_LEAST[kind], what)
        if kind != _ARRAY:
            return self.values(kind, count, what)
        if depth >= MOST_NESTED:
            self.source.refuse(f"{what} has arrays nested more than {MOST_NESTED} deep", begin)
        return [self.array(what, depth + 1) for _ in range(count)]

    def values(self, kind: int, count: int, what: str) -> list[Any]:
        """Values of one type, one after the other."""
        if kind == _TEXT:
            return self.texts(count, what)
        code = "B" if kind == _BOOL else _NUMBERS.get(kind)
        if code is None:
            self.source.refuse(f"{what} has type {kind}, which GGUF does not have", self.offset)
        size = _LEAST[kind] * count
        self.need(size, what)
        found: list[Any] = list(struct.unpack_from(f"<{count}{code}", self.data, self.offset))
        if kind == _BOOL:
            if any(each > 1 for each in found):
                self.source.refuse(f"{what} is neither true nor false", self.offset)
            found = [each == 1 for each in found]
        self.offset += size
        return found

    def texts(self, count: int, what: str) -> list[str]:
        """Texts, of which a vocabulary has 100,000s.

        A token may be half a character: its bytes are kept, as `surrogateescape` writes them.
        """
        found: list[str] = []
        size_of = _U64.unpack_from
        while len(found) < count:
            data, place = self.data, self.offset
            last = len(data) - 8
            for _ in range(count - len(found)):
                if place > last:
                    break
                (size,) = size_of(data, place)
                end = place + 8 + size
                if end > last + 8:
                    break
                found.append(data[place + 8 : end].decode("utf-8", "surrogateescape"))
                place = end
            self.offset = place
            if len(found) < count:  # the next one is not in `data` as a whole
                self.need(8, what)
                self.need(8 + size_of(self.data, place)[0], what)
        return found


def read_gguf(path: Path | Tensor) -> Weights:
    """The tensors of a GGUF file by name, with its metadata; quantised ones are QuantizedTensors.

    Shapes are as those of numpy, the last axis innermost (the file states them the other way round).
    FileFormatError says what is wrong with a file, NotImplementedError which tensor has a type that is not
    read.
    """
    with Source(path, "GGUF") as source:
        header = _Header(source)
        if source.read(0, min(4, source.size), "its first word") != MAGIC:
            source.refuse("it does not begin with GGUF", 0)
        header.need(4, "its first word")
        header.offset = 4
        version = header.unpack(_U32, "the version")
        if version & 0xFFFF == 0 and version:
            source.cannot("its numbers are big-endian, which is not read")
        if version not in (2, 3):
            source.cannot(f"it is of version {version} of GGUF; 2 and 3 are read")
        tensors = header.count(24, "the number of tensors")
        entries = header.count(13, "the number of metadata")
        weights = Weights(_metadata(header, entries))
        described = [_description(header) for _ in range(tensors)]
        _add_tensors(header, described, weights)
        return weights


def _metadata(header: _Header, count: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(count):
        begin = header.offset
        key = header.name("a key of metadata")
        what = f"metadata {shown(key)}"
        if key in found:
            header.source.refuse(f"{what} is there twice", begin)
        found[key] = header.value(header.unpack(_U32, what), what)
    return found


class _Description(NamedTuple):
    """What a file states of a tensor: where its bytes are is counted from the first tensor's."""

    name: str
    shape: tuple[int, ...]
    kind: int
    offset: int
    nbytes: int


def _description(header: _Header) -> _Description:
    source, begin = header.source, header.offset
    name = header.name("a tensor's name")
    what = f"tensor {shown(name)}"
    axes = header.unpack(_U32, what)
    if axes > MOST_AXES:
        source.refuse(f"{what} has {axes} axes; at most {MOST_AXES}", begin)
    shape = tuple(header.unpack(_U64, what) for _ in range(axes))[::-1]
    kind = header.unpack(_U32, what)
    offset = header.unpack(_U64, what)
    count = source.elements(shape, what)
    row = _BLOCKS.get(kind)
    if row is not None:
        last = shape[-1] if shape else 1
        if last % row.elements:
            source.refuse(
                f"{what}: rows of {last} elements are not whole blocks of {row.elements}, "
                f"as {row.name} needs",
                begin,
            )
        nbytes = count // row.elements * row.nbytes
    elif kind in _DTYPES:
        nbytes = count * _DTYPES[kind].itemsize
    else:
        source.cannot(f"{what} has type {_OTHERS.get(kind, kind)}, which is not read")
    return _Description(name, shape, kind, offset, nbytes)


def _add_tensors(header: _Header, described: list[_Description], weights: Weights) -> None:
    source = header.source
    alignment = weights.metadata.get("general.alignment", ALIGNMENT)
    if type(alignment) is not int or alignment < 1 or alignment & (alignment - 1):
        source.refuse(f"general.alignment is {shown(str(alignment))}, which is not a power of two")
    base = -(-header.offset // alignment) * alignment
    names: set[str] = set()
    last, before = 0, ""
    for each in sorted(described, key=lambda each: (each.offset, each.nbytes)):
        what = f"tensor {shown(each.name)}"
        if each.name in names:
            source.refuse(f"{what} is there twice")
        names.add(each.name)
        begin, end = base + each.offset, base + each.offset + each.nbytes
        if end > source.size:
            source.refuse(f"{what} should be bytes {begin} to {end}, but there are {source.size}")
        if each.offset % alignment:
            source.refuse(f"{what} begins at byte {begin}, which is not aligned to {alignment}")
        if each.nbytes:
            if each.offset < last:
                source.refuse(f"{what} begins at byte {begin}, inside of tensor {shown(before)}")
            last, before = each.offset + each.nbytes, each.name
    for each in described:
        weights[each.name] = _tensor(source, base + each.offset, each)


def _tensor(source: Source, begin: int, each: _Description) -> Tensor | QuantizedTensor:
    what = f"tensor {shown(each.name)}"
    row = _BLOCKS.get(each.kind)
    if row is None:
        return source.tensor(begin, each.shape, _DTYPES[each.kind], what)
    if each.nbytes == 0:
        return Tensor.empty(*each.shape, dtype=dtypes.float32, device="CPU")
    blocks = (*each.shape[:-1], each.shape[-1] // row.elements, row.nbytes)
    return QuantizedTensor(source.tensor(begin, blocks, dtypes.uint8, what), row)

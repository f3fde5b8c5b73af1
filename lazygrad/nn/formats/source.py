"""A file that is read with suspicion: what it states is checked against its size before anything is read or
made.

A file of weights may be cut short, or written by somebody who wishes harm. Readers take bytes through a
`Source`, which gives none beyond the end, and say what is wrong through it: every error names the file, what
it was taken for, and the place.
"""

from __future__ import annotations

import math
import os
import pathlib
from typing import Any, NoReturn

from ...dtype import DType, dtypes
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...tensor import Tensor
from ...tensor.sources import MOST_AXES

Path = str | os.PathLike[str]

#: Elements of a tensor and bytes of a file are counted in integers of 63 bits.
MOST_ELEMENTS = (1 << 63) - 1


class FileFormatError(ValueError):
    """A file that is damaged, cut short or lies: which one, what is wrong with it, and at which byte."""


def shown(text: str) -> str:
    """A name from a file as it may stand in a message: on one line, not too long, nothing for a terminal."""
    short = text if len(text) <= 100 else f"{text[:97]}..."
    return short if short.isprintable() else ascii(short)


class Source:
    """The bytes of a file, or of a tensor of bytes that holds one.

    name   what it is called in messages
    kind   the format it is read as: "GGUF"
    size   how many bytes there are
    whole  all of them as a tensor, in the file until they are needed
    """

    def __init__(self, source: Path | Tensor, kind: str) -> None:
        self.kind = kind
        self._file: Any = None
        self._bytes: bytes | None = None
        if isinstance(source, Tensor):
            if source.dtype is not dtypes.uint8 or source.ndim != 1:
                raise TypeError(f"a file as a tensor is bytes, not {source.dtype} of shape {source.shape}")
            self.name, self.whole = "the tensor", source
            self._bytes = source.data().tobytes()
            self.size = len(self._bytes)
            return
        path = pathlib.Path(source)
        if not path.is_file():
            raise FileNotFoundError(f"no file {path}")
        self.name = shown(str(path))
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115  closed by whoever has the source
        self.size = os.fstat(self._file.fileno()).st_size
        self.whole = Tensor(path)

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def read(self, begin: int, count: int, what: str) -> bytes:
        """Bytes of the file; `what` they are is said where they are not there."""
        if begin < 0 or count < 0 or begin + count > self.size:
            self.refuse(f"{what} is said to be bytes {begin} to {begin + count} of {self.size}")
        if self._bytes is not None:
            return self._bytes[begin : begin + count]
        self._file.seek(begin)
        parts, left = [], count
        while left:
            part = self._file.read(left)
            if not part:
                self.refuse(
                    f"{what} ends {left} bytes too early: the file was made shorter while it was read"
                )
            parts.append(part)
            left -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def tensor(self, begin: int, shape: tuple[int, ...], dtype: DType, what: str) -> Tensor:
        """A tensor whose elements lie in the file from a byte on, one after the other; nothing is read
        yet."""
        count = self.elements(shape, what)
        if begin < 0 or begin + count * dtype.itemsize > self.size:
            self.refuse(
                f"{what} is said to be bytes {begin} to {begin + count * dtype.itemsize} of {self.size}"
            )
        if count == 0:
            return Tensor.empty(*shape, dtype=dtype, device="CPU")
        if self._bytes is not None:
            return self.whole[begin : begin + count * dtype.itemsize].bitcast(dtype).reshape(shape)
        return Tensor(UOp(Ops.BUFFER_VIEW, dtype, (self.whole.uop,), (count, begin))).reshape(shape)

    def elements(self, shape: tuple[int, ...], what: str) -> int:
        """How many elements a shape has that the file states."""
        if len(shape) > MOST_AXES:
            self.refuse(f"{what} has {len(shape)} axes; at most {MOST_AXES}")
        if any(size < 0 for size in shape):
            self.refuse(f"{what} has shape {shape}")
        count = math.prod(shape)
        # Also of an empty tensor: sizes beside a 0 are sizes.
        if count > MOST_ELEMENTS or any(size > MOST_ELEMENTS for size in shape):
            self.refuse(f"{what} has a shape of too many elements, {shown(str(shape))}")
        return count

    def refuse(self, text: str, at: int | None = None) -> NoReturn:
        """FileFormatError: the file is no such file, or a damaged one."""
        place = "" if at is None else f" (byte {at})"
        raise FileFormatError(f"{self.name} is no {self.kind} file, or a damaged one: {text}{place}")

    def cannot(self, text: str) -> NoReturn:
        """NotImplementedError: the file may be right, but holds what is not read here."""
        raise NotImplementedError(f"{self.name}: {text}")

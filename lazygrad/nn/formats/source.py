"""A file that is read with suspicion: what it states is checked before anything is read or made.

A file of weights may be cut short, or written by somebody who wishes harm. Readers take bytes through a
`Source`, which gives none beyond the end, and say what is wrong through it: every error names the file, what
it was taken for, and the place.
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import math
import os
import pathlib
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any, NoReturn

from ...dtype import DType, dtypes, numpy_name
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...runtime.disk import Contents, Region
from ...schedule.graph.versions import buffer_of
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


def _path_if_whole(source: Path | Tensor) -> Path | Tensor:
    """The file whose bytes a tensor is, all of them: they need not be in memory to be read."""
    if isinstance(source, Tensor) and isinstance(source.device, str) and source.dtype is dtypes.uint8:
        kind, _, path = source.device.partition(":")
        if kind == "DISK" and os.path.isfile(path) and source.shape == (os.path.getsize(path),):
            return pathlib.Path(path)
    return source


class Source:
    """The bytes of a file, or of a tensor of bytes that holds one.

    name   what it is called in messages
    kind   the format it is read as: "GGUF"
    size   how many bytes there are
    whole  all of them as a tensor, in the file until they are needed
    """

    def __init__(self, source: Path | Tensor, kind: str) -> None:
        self.kind = kind
        source = _path_if_whole(source)
        self.in_memory = isinstance(source, Tensor)
        self.file: Any  # to be read from
        if isinstance(source, Tensor):
            if source.dtype is not dtypes.uint8 or source.ndim != 1:
                raise TypeError(
                    f"a file as a tensor must be bytes, not {source.dtype} of shape {source.shape}"
                )
            self.name, self.whole = "the tensor", source
            data = source.data().tobytes()
            self.file, self.size = io.BytesIO(data), len(data)
            return
        path = pathlib.Path(source)
        if not path.is_file():
            raise FileNotFoundError(f"no file {path}")
        self.name = str(path) if str(path).isprintable() else ascii(str(path))
        self.file = open(path, "rb", buffering=0)  # noqa: SIM115  closed by whoever has the source
        self.size = os.fstat(self.file.fileno()).st_size
        self.whole = Tensor(path)
        # The header says what lies where: of this file, and of no other that comes to have its name.
        region = Region(os.path.abspath(path), 0, self.size, Contents(self.file.fileno()))
        buffer_of(self.whole.uop).point_to(region)

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def read(self, begin: int, count: int, what: str) -> bytes:
        """Bytes of the file; `what` they are is said where they are not there."""
        if begin < 0 or count < 0 or begin + count > self.size:
            self.refuse(f"{what} should be bytes {begin} to {begin + count}, but there are {self.size}")
        self.file.seek(begin)
        parts, left = [], count
        while left:
            part = self.file.read(left)
            if not part:
                self.refuse(
                    f"{what} ends {left} bytes too early: the file was made shorter while it was read"
                )
            parts.append(part)
            left -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def json(self, begin: int, count: int, what: str) -> Any:
        """What some bytes say in JSON; names that are there twice are refused."""

        def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            found: dict[str, Any] = {}
            for name, value in pairs:
                if name in found:
                    self.refuse(f"{shown(name)} is there twice in {what}")
                found[name] = value
            return found

        text = self.read(begin, count, what)
        try:
            return json.loads(text.decode(), object_pairs_hook=unique)
        except UnicodeDecodeError as error:
            self.refuse(f"{what} is not UTF-8: {error.reason}", begin + error.start)
        except json.JSONDecodeError as error:
            self.refuse(f"{what} is not JSON: {error.msg} at character {error.pos}")
        except FileFormatError:
            raise
        except ValueError as error:  # a number of very many digits
            self.refuse(f"{what} is not JSON: {error}")
        except RecursionError:
            self.refuse(f"{what} is nested too deeply")

    def tensor(self, begin: int, shape: tuple[int, ...], dtype: DType, what: str) -> Tensor:
        """A tensor whose elements lie in the file from a byte on, in order; nothing is read yet."""
        count = self.elements(shape, what)
        if begin < 0 or begin + count * dtype.itemsize > self.size:
            self.refuse(
                f"{what} should be bytes {begin} to {begin + count * dtype.itemsize}, "
                f"but there are {self.size}"
            )
        if count == 0:
            return Tensor.empty(*shape, dtype=dtype, device="CPU")
        if self.in_memory:
            return self._copied(begin, shape, dtype)
        return Tensor(UOp(Ops.BUFFER_VIEW, dtype, (self.whole.uop,), (count, begin))).reshape(shape)

    def _copied(self, begin: int, shape: tuple[int, ...], dtype: DType) -> Tensor:
        """The same of a file in memory: without a kernel, which each shape would need one of."""
        import numpy as np

        raw = self.read(begin, math.prod(shape) * dtype.itemsize, "a tensor")
        values = Tensor.from_numpy(np.frombuffer(bytearray(raw), numpy_name(dtype)).reshape(shape))
        here = values if values.device == self.whole.device else values.to(self.whole.device)
        return here if here.dtype is dtype else here.bitcast(dtype)

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
        an = "an" if self.kind in ("index", "npy", "npz") else "a"
        raise FileFormatError(f"{self.name} is not {an} {self.kind} file, or is damaged: {text}{place}")

    @contextlib.contextmanager
    def damage(self) -> Iterator[None]:
        """What libraries raise for a damaged file, or readers that know no file, becomes FileFormatError."""
        try:
            yield
        except FileFormatError:
            raise
        except NotImplementedError as error:
            if str(error).startswith(f"{self.name}: "):
                raise
            raise NotImplementedError(f"{self.name}: {error}") from error
        except _DAMAGED as error:
            self.refuse(str(error) or type(error).__name__)
        except OSError as error:
            if error.errno != errno.EINVAL:  # a place before the file's beginning
                raise
            self.refuse("it leads outside")

    def cannot(self, text: str) -> NoReturn:
        """NotImplementedError: the file may be right, but holds what is not read here."""
        raise NotImplementedError(f"{self.name}: {text}")


_DAMAGED: tuple[type[Exception], ...] = (zipfile.BadZipFile, zlib.error, struct.error)
_DAMAGED += (EOFError, OverflowError, RecursionError, IndexError, ValueError)


class Window:
    """Some bytes of a source, read from the first on as far as they are needed.

    data   those that have been read; more come at its end
    offset  of what is looked at next
    """

    def __init__(self, source: Source, begin: int = 0, end: int | None = None) -> None:
        self.source, self.begin = source, begin
        self.size = (source.size if end is None else end) - begin
        self.data = b""
        self.offset = 0

    def missing(self, count: int) -> int:
        """Have the next `count` bytes in `data`; if some are behind the end, how many (nothing is read)."""
        end = self.offset + count
        if end > self.size:
            return end - self.size
        if end > len(self.data):
            more = min(max(end, 2 * len(self.data), 1 << 16), self.size) - len(self.data)
            self.data += self.source.read(self.begin + len(self.data), more, "what follows")
        return 0

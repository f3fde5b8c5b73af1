"""Tar and zip files as tensors of bytes, by name; what is damaged, ambiguous or a bomb is refused."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import pathlib
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..dtype import dtypes
from ..nn.state import shown
from ..tensor import Tensor

Path = str | os.PathLike[str]

#: What is compressed is unpacked into memory: at most so many bytes in all, or times the size of the file.
MOST_INFLATED, MOST_RATIO = 1 << 28, 100


class Source(NamedTuple):
    """An archive: what it is called in messages, a file to read from, all its bytes (lazily, of a file)."""

    name: str
    file: Any
    whole: Tensor

    @property
    def size(self) -> int:
        found: Any = self.whole.shape[0]
        return int(found)


def opened(source: Path | Tensor) -> Source:
    if not isinstance(source, Tensor):
        path = pathlib.Path(source)
        return Source(shown(str(path)), open(path, "rb"), Tensor(path))
    if source.dtype is not dtypes.uint8 or source.ndim != 1:
        raise TypeError(f"a file as a tensor is bytes, not {source.dtype} of shape {source.shape}")
    return Source("the tensor", io.BytesIO(source.data().tobytes()), source)


@contextlib.contextmanager
def damage_is_an_error(name: str, kind: str) -> Iterator[None]:
    """What the libraries raise for a damaged file is one ValueError that names it."""
    try:
        yield
    except NotImplementedError as error:
        raise NotImplementedError(f"{name}: {error}") from error
    except _DAMAGED as error:
        raise ValueError(f"{name} is no {kind} file, or a damaged one: {error}") from error
    except OSError as error:
        if error.errno != errno.EINVAL:  # a place before the file's beginning
            raise
        raise ValueError(f"{name} is no {kind} file, or a damaged one: it leads outside") from error


_DAMAGED: tuple[type[Exception], ...] = (zipfile.BadZipFile, tarfile.TarError, zlib.error, struct.error)
_DAMAGED += (EOFError, OverflowError, RecursionError, IndexError, ValueError)


def _check_name(name: str) -> None:
    """A member's name leads nowhere but into the folder it would be unpacked in."""
    parts = name.replace("\\", "/").split("/")
    if ".." in parts or name.startswith(("/", "\\")) or not name.isprintable():
        raise ValueError(f"the name {name!a} leads out of a folder")


# *** tar


def tar_extract(source: Path | Tensor) -> dict[str, Tensor]:
    """The files of a tar archive by name, as bytes (uint8).

    ValueError says what of it is damaged; sparse files raise NotImplementedError.
    """
    found: dict[str, Tensor] = {}
    name, file, whole = archive_file = opened(source)
    with file, damage_is_an_error(name, "tar"), tarfile.open(fileobj=file, mode="r:") as archive:
        place = -1
        while (member := archive.next()) is not None:
            end = member.offset_data + member.size
            if member.offset <= place or member.size < 0 or end > archive_file.size:
                raise ValueError(
                    f"{shown(member.name)} has bytes {member.offset_data} to {end} of {archive_file.size}"
                )
            place = member.offset
            if member.issparse():
                raise NotImplementedError(f"{shown(member.name)} is a sparse file, which is not read")
            if member.isfile():
                _check_name(member.name)
                found[member.name] = whole[member.offset_data : end]
    return found


# *** zip


def zip_extract(source: Path | Tensor) -> dict[str, Tensor]:
    """The files of a zip archive by name, as bytes (uint8); only the compressed ones are read.

    ValueError says what of it is damaged; encryption and other compression than deflate raise
    NotImplementedError.
    """
    name, file, whole = archive_file = opened(source)
    with file, damage_is_an_error(name, "zip"), zipfile.ZipFile(file) as archive:
        members = zip_members(archive, file, archive_file.size)
        inflated = sum(info.file_size for info, _ in members if info.compress_type != zipfile.ZIP_STORED)
        if inflated > max(MOST_INFLATED, MOST_RATIO * archive_file.size):
            raise ValueError(
                f"its {archive_file.size} bytes unpack to {inflated}: unpack it with another program"
            )
        return {
            info.filename: whole[begin : begin + info.file_size]
            if info.compress_type == zipfile.ZIP_STORED
            else Tensor(archive.read(info))
            for info, begin in members
        }


def zip_members(archive: zipfile.ZipFile, file: Any, size: int) -> list[tuple[zipfile.ZipInfo, int]]:
    """The files of an archive of so many bytes, each with where its bytes begin.

    Names are unique, and members lie one behind the other: else an archive has several meanings.
    """
    found, names, last = [], set(), 0
    for info in sorted(archive.infolist(), key=lambda info: info.header_offset):
        name = shown(info.orig_filename)
        if info.orig_filename in names:
            raise ValueError(f"it has two members {name}")
        names.add(info.orig_filename)
        begin = _begin(file, info, size)
        if info.header_offset < last or begin + info.compress_size > size:
            raise ValueError(
                f"{name} has bytes {begin} to {begin + info.compress_size} of {size}, or of another"
            )
        last = begin + info.compress_size
        if info.flag_bits & 1:
            raise NotImplementedError(f"{name} is encrypted, which is not read")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise NotImplementedError(f"{name} has compression {info.compress_type}, which is not read")
        if info.compress_type == zipfile.ZIP_STORED and info.compress_size != info.file_size:
            raise ValueError(f"{name} is not compressed, and has two sizes")
        if not info.is_dir():
            _check_name(info.orig_filename)
            found.append((info, begin))
    return found


def _begin(file: Any, info: zipfile.ZipInfo, size: int) -> int:
    """Where a member's bytes are: after 30 bytes, its name and an extra field (PKZIP APPNOTE 4.3.7)."""
    name = shown(info.orig_filename)
    if not 0 <= info.header_offset <= size - 30:
        raise ValueError(f"{name} is said to begin at byte {info.header_offset} of {size}")
    file.seek(info.header_offset)
    signature, _, flags, method, *_, name_size, extra = struct.unpack("<4s5H3I2H", file.read(30))
    encoded = info.orig_filename.encode("utf-8" if flags & 0x800 else "cp437", "replace")
    if signature != b"PK\3\4" or method != info.compress_type or file.read(name_size) != encoded:
        raise ValueError(f"at byte {info.header_offset} begins something else than {name}")
    return info.header_offset + 30 + int(name_size) + int(extra)

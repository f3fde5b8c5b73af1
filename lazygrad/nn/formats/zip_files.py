"""The members of a zip archive and where their bytes begin; what is ambiguous or a bomb is refused."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterator
from typing import NamedTuple

from ...dtype import dtypes
from ...tensor import Tensor
from .source import Source, shown

#: What is compressed is unpacked into memory: at most so many bytes in all, or times the size of the file.
MOST_INFLATED, MOST_RATIO = 1 << 28, 100


class Member(NamedTuple):
    """A file of an archive: its name, where its bytes are, the library's record of it if they are packed."""

    name: str
    begin: int
    nbytes: int
    packed: zipfile.ZipInfo | None


class Archive:
    """The files of a zip archive, by name. Names are unique, and members lie one behind the other: else an
    archive has several meanings.

    ValueError says what of it is damaged; encryption and other compression than deflate raise
    NotImplementedError.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.library = zipfile.ZipFile(source.file)
        self.members = {member.name: member for member in _members(self.library, source)}

    def check_unpacks(self) -> None:
        """What is compressed does not unpack to more than this machine should be asked for."""
        inflated = sum(member.nbytes for member in self.members.values() if member.packed is not None)
        if inflated > max(MOST_INFLATED, MOST_RATIO * self.source.size):
            raise ValueError(
                f"its {self.source.size} bytes unpack to {inflated}: unpack it with another program"
            )

    def contents(self, member: Member) -> bytes:
        """All bytes of a member."""
        if member.packed is not None:
            return self.library.read(member.packed)
        return self.source.read(member.begin, member.nbytes, shown(member.name))

    def tensor(self, member: Member) -> Tensor:
        """The bytes of a member, uint8: in the file, or unpacked."""
        if member.packed is not None:
            return Tensor(self.library.read(member.packed))
        return self.source.tensor(member.begin, (member.nbytes,), dtypes.uint8, shown(member.name))


def check_name(name: str) -> None:
    """A member's name leads nowhere but into the folder it would be unpacked in."""
    parts = name.replace("\\", "/").split("/")
    if ".." in parts or name.startswith(("/", "\\")) or not name.isprintable():
        raise ValueError(f"the name {name!a} leads out of a folder")


def _members(library: zipfile.ZipFile, source: Source) -> Iterator[Member]:
    names, last = set(), 0
    for info in sorted(library.infolist(), key=lambda info: info.header_offset):
        name = shown(info.orig_filename)
        if info.orig_filename in names:
            raise ValueError(f"it has two members {name}")
        names.add(info.orig_filename)
        begin = _begin(source, info)
        if info.header_offset < last or begin + info.compress_size > source.size:
            raise ValueError(
                f"{name} has bytes {begin} to {begin + info.compress_size} of {source.size}, or of another"
            )
        last = begin + info.compress_size
        if info.flag_bits & 1:
            raise NotImplementedError(f"{name} is encrypted, which is not read")
        stored = info.compress_type == zipfile.ZIP_STORED
        if not stored and info.compress_type != zipfile.ZIP_DEFLATED:
            raise NotImplementedError(f"{name} has compression {info.compress_type}, which is not read")
        if stored and info.compress_size != info.file_size:
            raise ValueError(f"{name} is not compressed, and has two sizes")
        if not info.is_dir():
            check_name(info.orig_filename)
            yield Member(info.orig_filename, begin, info.file_size, None if stored else info)


def _begin(source: Source, info: zipfile.ZipInfo) -> int:
    """Where a member's bytes are: after 30 bytes, its name and an extra field (PKZIP APPNOTE 4.3.7)."""
    name, place = shown(info.orig_filename), info.header_offset
    if not 0 <= place <= source.size - 30:
        raise ValueError(f"{name} should begin at byte {place}, but the file has {source.size}")
    head = struct.unpack("<4s5H3I2H", source.read(place, 30, name))
    signature, flags, method, name_size, extra = head[0], head[2], head[3], head[-2], head[-1]
    encoded = info.orig_filename.encode("utf-8" if flags & 0x800 else "cp437", "replace")
    there = source.read(place + 30, min(name_size, source.size - place - 30), name)
    if signature != b"PK\3\4" or method != info.compress_type or there != encoded:
        raise ValueError(f"at byte {place}, something other than {name} begins")
    return int(place + 30 + name_size + extra)

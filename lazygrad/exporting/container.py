"""The file: a head of 64 bytes, a description in JSON, then sections of bytes, each aligned for memory.

    8 bytes   MAGIC                       8 bytes   length of the description
    4 bytes   version of the layout       8 bytes   length of the file
    4 bytes   0                           32 bytes  BLAKE2b of what stands before, and of the description

The description has the place, length and BLAKE2b of each section. So nothing of a file is used that is not as
it was written: the description and what is asked for by `section` are compared before they are given out.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import mmap
import os
import struct
from typing import Any

from ..nn.formats.writing import atomic_file

#: Not text, and damaged by whoever takes it for text (as PNG's, RFC 2083 section 3.1).
MAGIC = b"\x89LZG\r\n\x1a\n"
#: Another layout, or other meanings in the description, is another version.
VERSION = 1
HEAD = struct.Struct("<8sIIQQ32s")
_SUMMED = HEAD.size - 32
ALIGNMENT = 64
#: A description is texts and numbers: one of more bytes is none of ours.
MAX_DESCRIPTION = 1 << 30


class FileError(ValueError):
    """A file is not what it should be: another kind of file, a damaged one, one of another version."""


def _digest(*parts: Any) -> bytes:
    found = hashlib.blake2b(digest_size=32)
    for part in parts:
        found.update(part)
    return found.digest()


class Sections:
    """The bytes that are to follow the description; equal ones are kept once."""

    def __init__(self) -> None:
        self.sections: list[memoryview] = []
        self.table: list[tuple[int, int, str]] = []
        self._known: dict[str, int] = {}
        self._end = 0

    def add(self, content: Any) -> int:
        """The number of a section with this content, which must stay as it is until the file is written."""
        view = memoryview(content).cast("B")
        digest = _digest(view).hex()
        number = self._known.get(digest)
        if number is None:
            number = self._known[digest] = len(self.sections)
            start = -(-self._end // ALIGNMENT) * ALIGNMENT
            self.sections.append(view)
            self.table.append((start, len(view), digest))
            self._end = start + len(view)
        return number


def write_file(path: str, description: dict[str, Any], sections: Sections) -> None:
    """Write it beside its place and move it there: a file that is in use stays as it is for its users."""
    text = json.dumps({**description, "sections": sections.table}, allow_nan=True).encode()
    start = -(-(HEAD.size + len(text)) // ALIGNMENT) * ALIGNMENT
    total = start + (sections.table[-1][0] + sections.table[-1][1] if sections.table else 0)
    first = HEAD.pack(MAGIC, VERSION, 0, len(text), total, bytes(32))[:_SUMMED]
    with atomic_file(path) as file:
        file.write(first + _digest(first, text) + text)
        for (offset, _, _), content in zip(sections.table, sections.sections, strict=True):
            file.write(bytes(start + offset - file.tell()))
            file.write(content)
        file.write(bytes(total - file.tell()))


class Container:
    """A file that was opened: its `description`, and sections by number, in memory that shows the file.

    What is written to that memory stays in this process.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            head = file.read(HEAD.size)
            if head[:8] != MAGIC:
                raise FileError(f"{path} was not written by lazygrad.export")
            if len(head) < HEAD.size:
                raise FileError(f"{path} ends after {size} bytes, within its header")
            _, version, _, length, total, checksum = HEAD.unpack(head)
            if version != VERSION:
                raise FileError(
                    f"{path} has version {version} of the format, and this lazygrad reads version {VERSION}: "
                    "export it again"
                )
            if size != total:
                raise FileError(f"{path} has {size} bytes and should have {total}: it is not complete")
            if length > min(size - HEAD.size, MAX_DESCRIPTION):
                raise FileError(f"{path} is damaged: its description has {length} of {size} bytes")
            text = file.read(length)
            if _digest(head[:_SUMMED], text) != checksum:
                raise FileError(f"{path} is damaged: the checksum of its description does not match")
            self._memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        self.description: dict[str, Any] = json.loads(text)
        start = -(-(HEAD.size + length) // ALIGNMENT) * ALIGNMENT
        self._ranges: list[tuple[int, int, str]] = []
        for offset, nbytes, digest in self.description["sections"]:
            if offset < 0 or nbytes < 0 or start + offset + nbytes > size:
                raise FileError(f"{path} is damaged: a section lies outside of it")
            self._ranges.append((start + offset, nbytes, digest))
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))

    def check(self, number: int) -> None:
        """Compare a section's contents with its checksum."""
        offset, nbytes, digest = self._ranges[number]
        with memoryview(self._memory) as whole:
            if _digest(whole[offset : offset + nbytes]).hex() != digest:
                raise FileError(
                    f"{self.path} is damaged: bytes {offset} to {offset + nbytes} are not what was written"
                )

    def section(self, number: int) -> bytes:
        """The contents of a section, compared with its checksum."""
        self.check(number)
        offset, nbytes, _ = self._ranges[number]
        return self._memory[offset : offset + nbytes]

    def section_address(self, number: int) -> tuple[int, int]:
        """The address of a section in this process, and its length. It is not compared."""
        offset, nbytes, _ = self._ranges[number]
        return self.address + offset, nbytes

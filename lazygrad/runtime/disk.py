"""DISK: a file as memory. `DISK:/path/to/file` is read when its bytes are asked for.

Nothing is opened until then, and no file stays open; a view of the file costs nothing. What is given out is
always memory of this process, never pages of the file: whoever looks at those when somebody has made the file
shorter ends the process. Reading costs no more: one copy, straight to where the bytes are wanted.
"""

from __future__ import annotations

import os
from typing import Any, NoReturn

from ..device import Allocator, CompiledDevice, DeviceError


class Contents:
    """What tells whether a path still leads to the same file, and nobody else has written it."""

    __slots__ = ("state",)

    def __init__(self, descriptor: int) -> None:
        self.note(descriptor)

    def note(self, descriptor: int) -> None:
        self.state = self._of(descriptor)

    def are_in(self, descriptor: int) -> bool:
        return self._of(descriptor) == self.state

    def _of(self, descriptor: int) -> tuple[int, ...]:
        found = os.fstat(descriptor)
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


class Region:
    """`nbytes` of a file from `offset` on.

    contents  the file that is meant, where what lies there was decided by reading it; None: whatever is there
    """

    __slots__ = ("contents", "nbytes", "offset", "path")

    def __init__(self, path: str, offset: int, nbytes: int, contents: Contents | None = None) -> None:
        self.path, self.offset, self.nbytes, self.contents = path, offset, nbytes, contents

    def __repr__(self) -> str:
        return f"<{self.nbytes} bytes of {self.path} from {self.offset}>"


class DiskAllocator(Allocator):
    """Regions of one file. Allocating touches nothing: what the file holds is what the buffer reads."""

    reads_parts = True

    def __init__(self, name: str, path: str) -> None:
        super().__init__(name)
        self.path = path

    def alloc(self, nbytes: int, options: Any = None, zero: bool = False) -> Region:
        return Region(self.path, 0, nbytes)

    def free(self, handle: Region, options: Any = None, shared: bool = False) -> None:
        pass

    def _copyin(self, handle: Region, source: memoryview) -> None:
        """Write, creating the file or extending it."""
        try:
            # r+b keeps what is there; the file is made first where it is missing.
            with open(
                os.open(handle.path, os.O_RDWR | os.O_CREAT | _BINARY, 0o666), "r+b", buffering=0
            ) as file:
                file.seek(handle.offset)
                written = 0
                while written < len(source):
                    written += file.write(source[written:]) or 0
                if handle.contents is not None:
                    handle.contents.note(file.fileno())
        except OSError as error:
            _refuse("write", handle, error)

    def _copyout(self, target: memoryview, handle: Region) -> None:
        if not handle.nbytes:
            return
        try:
            with open(handle.path, "rb", buffering=0) as file:
                if handle.contents is not None and not handle.contents.are_in(file.fileno()):
                    raise DeviceError(
                        f"{handle.path} was changed or replaced since it was loaded, so the values of this "
                        "tensor are lost: load it again, or move tensors with .to() before the file changes"
                    )
                _check_size(file.fileno(), handle)
                file.seek(handle.offset)
                read = 0
                while read < len(target):
                    count = file.readinto(target[read:])
                    if not count:
                        _check_size(file.fileno(), handle)
                        raise DeviceError(f"{handle.path} ended while it was read")
                    read += count
        except OSError as error:
            _refuse("read", handle, error)

    def _offset(self, handle: Region, nbytes: int, offset: int) -> Region:
        return Region(handle.path, handle.offset + offset, nbytes, handle.contents)


_BINARY = getattr(os, "O_BINARY", 0)  # Windows would translate line ends


def _check_size(descriptor: int, region: Region) -> None:
    size, end = os.fstat(descriptor).st_size, region.offset + region.nbytes
    if end > size:
        raise DeviceError(
            f"{region.path} has {size} bytes, and bytes {region.offset} to {end} were asked for"
        )


def _refuse(what: str, region: Region, error: OSError) -> NoReturn:
    raise DeviceError(f"cannot {what} {region.path}: {error.strerror or error}") from error


class DiskDevice(CompiledDevice):
    """One file. Its path is made absolute when the device opens: a later change of directory is harmless."""

    def __init__(self, name: str) -> None:
        super().__init__(name, DiskAllocator(name, os.path.abspath(name.partition(":")[2])))

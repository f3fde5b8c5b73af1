"""Files that are there as a whole or not at all.

A file is written beside its place, as a part that is locked while its writer lives, and moved there when it
is complete. What a writer left that was killed is taken away by the next one of the same file: its lock is
free.
"""

from __future__ import annotations

import contextlib
import glob
import os
import pathlib
import secrets
from collections.abc import Iterator
from typing import IO, BinaryIO

from .source import Path

try:
    import fcntl
except ImportError:  # Windows, where a file that somebody has open cannot be taken away
    fcntl = None  # type: ignore[assignment]

#: How the name of a part ends, behind that of its file and a number of its own.
ENDING = ".part"


@contextlib.contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write into that takes the place of `path` once all of it is on disk.

    Until then an older file stays, and it stays if writing fails.
    """
    target = pathlib.Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"no folder {target.parent} to write {target.name} into")
    for left in target.parent.glob(f".{glob.escape(target.name)}.????????{ENDING}"):
        if is_left(left):
            left.unlink(missing_ok=True)
    file = _new_part(target)
    part = pathlib.Path(file.name)
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if fcntl is not None:  # moved while it is locked
                os.replace(part, target)
        if fcntl is None:
            os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def _new_part(target: pathlib.Path) -> BinaryIO:
    """A part of a name that nobody has, locked."""
    while True:
        file = open(target.with_name(f".{target.name}.{secrets.token_hex(4)}{ENDING}"), "xb")  # noqa: SIM115
        lock(file)
        if os.path.exists(file.name):
            return file
        file.close()  # another writer took it for left before it was locked


def lock(file: IO[bytes]) -> None:
    """Say that who has opened a file lives: until it is closed, or its process ends, however it does."""
    if fcntl is not None:
        with contextlib.suppress(OSError):  # a file system without locks, where nobody takes parts away
            fcntl.flock(file, fcntl.LOCK_EX)


def is_left(path: Path) -> bool:
    """Whether nobody has locked a file any more."""
    try:
        with open(path, "rb+") as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True

"""Compiled programs on disk, under a key that is the same in every process.

The key is made of a kernel's structure (not of its text: a second process lowers nothing), the target, what
the compiler says of itself, the flags that change code, and the source of lazygrad.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
from pathlib import Path

from ..codegen.records import Unlasting, digest, record_of, spec_of, target_text
from ..config import CACHELEVEL, ContextVar
from ..device import CompiledDevice
from ..ir.uop import UOp
from ..renderer import ProgramSpec
from ..runtime import diskcache_get, diskcache_put

#: The level of CACHELEVEL from which programs are kept on disk.
LEVEL = 2
TABLE = "programs"


def load_program(device: CompiledDevice, ast: UOp) -> tuple[ProgramSpec, bytes] | None:
    """The program and binary of a kernel, if a process left them on disk."""
    key = _key(device, ast)
    record = None if key is None else diskcache_get(TABLE, key, LEVEL)
    return None if record is None else spec_of(record)


def store_program(device: CompiledDevice, ast: UOp, spec: ProgramSpec, lib: bytes) -> None:
    """Leave a program for other processes."""
    key = _key(device, ast)
    if key is not None:
        try:
            diskcache_put(TABLE, key, record_of(spec, lib), LEVEL)
        except Unlasting:
            return


def _key(device: CompiledDevice, ast: UOp) -> str | None:
    """None where the program is not kept: the compiler says so, or the kernel has no lasting description."""
    version = None if device.compiler is None else device.compiler.version()
    if version is None or CACHELEVEL.value < LEVEL:
        return None
    flags = [(flag.name, flag.value) for flag in ContextVar.of_code]
    try:
        target = f"{type(device.renderer).__name__} {target_text(device.target)}"
        return "\n".join((own_source(), version, target, repr(flags), digest(ast)))
    except Unlasting:
        return None


@functools.cache
def own_source() -> str:
    """A digest of lazygrad's source, its version included: an edited compiler finds no program of the old."""
    return source_digest(Path(__file__).parents[1])


def source_digest(package: Path) -> str:
    """A digest of the files of Python in a folder, and of Python itself.

    Reading them takes longer than all else before a first kernel. So the digest is kept for files of the same
    sizes, numbers and times of change, which nobody can choose. (Windows has no such time.)
    """
    files = sorted(_sources(str(package)))
    if not files:
        raise Unlasting("there is no source to tell this version by")
    key = [str(package), sys.version, files]
    known = None if os.name == "nt" else diskcache_get("source", key, LEVEL)
    if isinstance(known, str):
        return known
    found = hashlib.blake2b(sys.version.encode(), digest_size=16)
    for name, *_ in files:
        path = Path(name)
        found.update(path.relative_to(package).as_posix().encode())
        found.update(path.read_bytes())
    made: str = diskcache_put("source", key, found.hexdigest(), LEVEL)
    return made


def _sources(folder: str) -> list[tuple[str, int, int, int, int]]:
    """The files of Python in a folder: path, size, number, and when they were written and changed, in ns."""
    found = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir():
                    found += _sources(entry.path)
                elif entry.name.endswith(".py"):
                    state = entry.stat()
                    times = state.st_mtime_ns, state.st_ctime_ns
                    found.append((entry.path, state.st_size, state.st_ino, *times))
    except NotADirectoryError:  # in an archive
        return []
    return found

"""What tells this lazygrad from others, in the keys of what is kept on disk: a digest of its source."""

from __future__ import annotations

import functools
import hashlib
import os
import sys
from pathlib import Path

from ..device import Device
from ..runtime import diskcache_get, diskcache_put
from ..structure import Unlasting, target_text

#: The level of CACHELEVEL from which programs, plans and captures are kept on disk.
LEVEL = 2


def device_text(name: str) -> str:
    """What code for a device depends on. Raises Unlasting where its compiler does not say what it is."""
    device = Device[name]
    version = None if device.compiler is None else device.compiler.version()
    if version is None:
        raise Unlasting(name)
    return f"{name} {type(device.renderer).__name__} {target_text(device.target)} {version}"


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

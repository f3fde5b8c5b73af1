"""The measured row of a processor: what was measured here, or a row that ships.

What `python -m lazygrad calibrate` measures is a file of its own for each processor, beside the disk cache,
for people to read and to write. A process reads it once, when it first asks: what is measured meanwhile
changes nothing in a program that runs. Numbers are all that is read, so whoever can write the file can at
most make predictions worse.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ..config import CACHEDB, CACHELEVEL, CPU_TARGET, DEBUG
from ..device import DeviceError, lock_across_fork
from ..target import KNOWN
from ..target.measured import BadRow, Row, nearest, shipped_row
from ._cache import default_path
from ._llvm import host_processor, llvmlite_binding
from ._trust import make_private

#: A longer file is none of ours.
MAX_BYTES = 1 << 16

_lock = lock_across_fork()
#: (folder, processor) → what this process goes by.
_rows: dict[tuple[str, str], Row | None] = {}
#: Under MPI, the row of rank 0's processor, if it has one.
_of_rank_0: list[Row | None] = []


def measured_row(arch: str) -> Row | None:
    """What a processor was seen to do, named as a target names it; None where nothing like it was measured.

    Where CPU_TARGET names a processor only rows that ship count: the same on every machine. Under MPI all
    ranks go by rank 0's row, for what runs on their own processors.
    """
    if CPU_TARGET.value not in ("", "native"):
        return _shipped(arch)
    if _of_rank_0:
        return _of_rank_0[0]
    return own_row(processor_name() if arch == "native" else arch)  # as device CLANG calls it


def own_row(name: str) -> Row | None:
    """What was measured of this machine's processor, whose name this is; else a row that ships."""
    key = str(folder()) if CACHELEVEL.value else "", name
    with _lock:
        if key not in _rows:
            found = _read(Path(key[0]) / f"{name}.json") if key[0] else None
            _rows[key] = _shipped(name) if found is None else found
        return _rows[key]


def go_by(row: Row | None) -> None:
    """Have this process go by a row, whatever is measured or ships: that of rank 0."""
    _of_rank_0[:] = [row]


def forget() -> None:
    """As in a new process."""
    _rows.clear()
    _of_rank_0.clear()


def processor_name() -> str:
    """This machine's processor as LLVM calls it, without starting a compiler; "" where there is no LLVM."""
    try:
        return host_processor(llvmlite_binding())[0]
    except DeviceError:
        return ""


def folder() -> Path:
    """Where rows that were measured here are: beside the disk cache."""
    return Path(str(CACHEDB.value) or default_path()).parent / "measured"


def keep(row: Row) -> Path:
    """Write a row for the processes that start from now on, whole or not at all; the file. OSError if that
    fails.
    """
    import tempfile

    path = folder() / f"{row.processor}.json"
    make_private(str(path.parent))
    number, name = tempfile.mkstemp(dir=path.parent, prefix=f"{row.processor}.", suffix=".new")
    try:
        with open(number, "w", encoding="utf-8") as file:
            file.write(row.to_text())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
    return path


def _read(path: Path) -> Row | None:
    """The row of a file; None where there is none, or it is damaged, which is said."""
    try:
        with open(path, "rb") as file:
            text = file.read(MAX_BYTES + 1)
    except OSError:
        return None
    try:
        if len(text) > MAX_BYTES:
            raise BadRow(f"it is longer than {MAX_BYTES} bytes")
        row = Row.from_text(text.decode("utf-8", "replace"))
        if row.processor != path.stem:
            raise BadRow(f"it is a row of {row.processor}")
    except BadRow as problem:
        again = "" if "calibrate" in str(problem) else ": `python -m lazygrad calibrate` writes it anew"
        print(f"lazygrad: the measured row {path} does not count, {problem}{again}", file=sys.stderr)
        return None
    return row


def _shipped(name: str) -> Row | None:
    stands = nearest(name, KNOWN)
    if DEBUG >= 1 and stands not in ("", name) and (name, stands) not in _said:
        _said.add((name, stands))
        print(f"{name} is not known: what is known of {stands} stands for it")
    return shipped_row(stands)


#: Names of which was said which processor stands for them.
_said: set[tuple[str, str]] = set()

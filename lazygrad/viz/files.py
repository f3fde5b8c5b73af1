"""A recording as a file: one JSON object, compressed by gzip where the file's name ends with `.gz`.

"format" is "lazygrad recording", "version" 2 (a reader refuses others); `fields.py` has all the others.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from pathlib import Path
from typing import Any

from ..nn.formats.writing import atomic_file
from .fields import FieldError, check_recording

FORMAT, VERSION = "lazygrad recording", 2
#: Bytes that a recording may have when it is read.
MOST = 1 << 30


class RecordingError(ValueError):
    """A file is no recording that can be read here."""


def write_recording(rows: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a recording; a file of that name is replaced when the new one is complete."""
    where = Path(path)
    where.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"format": FORMAT, "version": VERSION, **rows}, separators=(",", ":")).encode()
    with atomic_file(where) as file:
        file.write(gzip.compress(text, 5) if where.suffix == ".gz" else text)


def read_recording(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a recording. RecordingError says what is wrong with it."""
    try:
        with open(path, "rb") as file:
            begin = file.read(2)
            file.seek(0)
            text = (gzip.GzipFile(fileobj=file) if begin == b"\x1f\x8b" else file).read(MOST + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise RecordingError(f"{path} cannot be read: {error}") from None
    if len(text) > MOST:
        raise RecordingError(f"{path} is larger than {MOST:,} bytes")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RecordingError(f"{path} is no recording: {error}") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise RecordingError(f"{path} is no recording of lazygrad")
    if found.get("version") != VERSION:
        raise RecordingError(f"{path} has version {found.get('version')!r}; this lazygrad reads {VERSION}")
    try:
        check_recording(found)
    except FieldError as error:
        raise RecordingError(f"{path} is damaged: {error}") from None
    return found

"""A recording as a file: one JSON object, compressed by gzip where the file's name ends with `.gz`.

"format"       "lazygrad recording"
"version"      2; a reader refuses others
"made"         script, python, machine, device (the default one), when it began (seconds since 1970), wall
               (seconds), rank (its number among the processes of a launcher, null)
"left_out"     what there was too much of → how much of it is not here
"names"        texts that others refer to by number: devices, layers, labels
"threads"      names of threads, by number
"calls"        [method, file:line, the line's text] of calls of the user, by number; method "": a line
"graphs"       the tensor graphs that were planned: {"at", "nodes", "roots", "left_out"} (`graphs.py`)
"kernels"      what ran, each once: {"number", "name", "kind", "device", "shape", "calls", "runs",
               "seconds", "best", "ops", "accessed", "does", "details"} (`details.py`; not for all)
"items"        kernels where they stand in plans: {"plan", "kernel", "writes", "reads", "sizes", "ends",
               "kept", "place", "without"}; what is written and read is [number of the memory, bytes];
               "ends" says why each output is stored: [reason, kernels that read it again, call]; "place" is
               the kernel's number in its plan, "without" the rows below of its ends (-1: not looked at)
"without"      what plans would be without a boundary: {"wanted", "refused", "kernels", "cycles",
               "operations", "bytes", "seconds"} (`planning.py`); of numbers those now and those then
"plans"        how graphs became kernels: {"graph", "plans", "kernels", "steps", "steps_left_out"}
"events"       [kind, begin, duration, thread, device, what] in microseconds; what: the number of a kernel,
               or -1 minus that of a name; of a capture and of a replay a seventh: the capture's number
"allocations"  [begin, end (null: not freed), bytes, device, kernel that wrote it first (-1), call (-1), what
               it is (a name), the line that took it (a call, -1), when it was last used (null: never), what
               used it last (a kernel, -1: unknown, or -2 minus the number of a capture), the attribute of a
               module that holds it (a name, -1)]
"arenas"       memory that values in between share: {"at", "what", "device", "bytes", "times", "steps",
               "values"}; steps: the kernels in order (-1: unknown); values: [first step, last step, offset,
               bytes, call]; "times": how often an arena was divided like that
"captures"     of jits: {"name" (""), "steps", "replays", "seconds", "best"}, steps as in arenas
"rooflines"    device → {"ops", "caches", "memory"}: the most that it was measured to do in a second
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from pathlib import Path
from typing import Any

FORMAT, VERSION = "lazygrad recording", 2
#: Bytes that a recording may have when it is read.
MOST = 1 << 30
_LISTS = (
    "names", "threads", "calls", "graphs", "kernels", "items", "events", "allocations", "arenas", "captures",
)  # fmt: skip


class RecordingError(ValueError):
    """A file is no recording that can be read here."""


def write_recording(rows: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a recording; a file of that name is replaced when the new one is complete."""
    where = Path(path)
    where.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"format": FORMAT, "version": VERSION, **rows}, separators=(",", ":")).encode()
    part = where.with_name(f"{where.name}.{os.getpid()}.part")
    part.write_bytes(gzip.compress(text, 5) if where.suffix == ".gz" else text)
    os.replace(part, where)


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
    missing = [name for name in _LISTS if not isinstance(found.get(name), list)]
    if missing:
        raise RecordingError(f"{path} has no {', '.join(missing)}")
    return found

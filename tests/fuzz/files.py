"""What holds for every reader of files.

It gives tensors within the file or one of its errors, in bounded time and memory; it runs nothing of the
file, writes nothing, and changes nothing that the process shares.
"""

from __future__ import annotations

import contextlib
import encodings.cp437  # noqa: F401 -- zipfile imports it when it first meets a name that is not UTF-8
import hashlib
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import strategies as st

from lazygrad import Tensor, dtypes
from lazygrad.config import ContextVar
from lazygrad.dtype import DType

#: Processor time of one read: even on a busy machine a small file takes some milliseconds.
MOST_SECONDS = 10.0
#: Kilobytes that the process may grow by in one read; the files are smaller than one of them.
MOST_GROWTH = 200_000

#: What a reader never does: its audit events (docs.python.org, Audit events table), and those it may raise.
FORBIDDEN = (
    "exec",
    "import",
    "pickle.",
    "subprocess.",
    "os.",
    "shutil.",
    "socket.",
    "ctypes.",
    "code.",
    "sys.",
)
FORBIDDEN += ("compile", "builtins.input", "marshal.", "urllib.", "tempfile.")
HARMLESS = (
    "os.listdir",
    "os.scandir",
    "os.getxattr",
    "sys._getframe",
    "ctypes.addressof",
    "ctypes.cdata/buffer",
)
HARMLESS += ("ctypes.get_errno", "ctypes.set_errno", "ctypes.string_at", "ctypes.cdata")

_seen: list[str] | None = None


def _audit(event: str, arguments: Any) -> None:
    if _seen is None:
        return
    writes = event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+")
    if writes or (event.startswith(FORBIDDEN) and event not in HARMLESS):
        _seen.append(f"{event} {arguments!r:.200}")


_hooked = False


@contextlib.contextmanager
def nothing_runs() -> Iterator[None]:
    """No audit event of what a reader never does."""
    global _seen, _hooked
    if not _hooked:  # a hook cannot be taken away
        sys.addaudithook(_audit)
        _hooked = True
    _seen = []
    try:
        yield
        seen, _seen = _seen, None
        assert not seen, f"a file was only to be read, and this happened: {seen[:3]}"
    finally:
        _seen = None


def shared_state() -> Any:
    """What all tensors of the process share, as far as a reader could reach it."""
    kinds = [
        (name, kind, kind.itemsize, kind.name, kind.fmt, kind.count) for name, kind in dtypes.fields().items()
    ]
    classes = [
        {name: id(value) for name, value in vars(kind).items()} for kind in (Tensor, type(dtypes.bool))
    ]
    flags = [(name, flag.value) for name, flag in ContextVar.all.items()]
    return kinds, classes, flags


@contextlib.contextmanager
def in_time() -> Iterator[None]:
    """A read that never ends fails here, and not at the end of the whole run."""

    def stop(*_: Any) -> None:
        raise AssertionError(f"a file took more than {MOST_SECONDS} s of the processor")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_SECONDS)
    begin = time.process_time()
    try:
        yield
        assert time.process_time() - begin < MOST_SECONDS
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


#: How reads ended: for who wants to know how deep a generator comes (`pytest -rP`).
outcomes: Counter[str] = Counter()


def read_safely(read: Callable[[], Any], errors: tuple[type[Exception], ...], size: int) -> Any:
    """What a reader makes of a file of so many bytes, its tensors looked at; None for one of its errors."""
    before, memory = shared_state(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        with in_time(), nothing_runs():
            found = read()
    except errors as error:
        found, message = None, str(error)
        assert 0 < len(message) < 2000, message[:2000]
        outcomes[f"{read.__name__}: {type(error).__name__}"] += 1
    else:
        outcomes[f"{read.__name__}: read"] += 1
        for tensor in tensors_in(found):
            look_at(tensor, size)
    assert shared_state() == before
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < MOST_GROWTH
    return found


def tensors_in(found: Any) -> Iterator[Tensor]:
    """Every tensor in what was read; nothing in it is but data."""
    todo, seen = [found], set()
    while todo:
        value = todo.pop()
        if id(value) in seen:
            continue
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (list, tuple, set, frozenset, dict)):
            seen.add(id(value))
            todo.extend([*value.keys(), *value.values()] if isinstance(value, dict) else value)
        else:
            assert type(value) in (str, bytes, int, float, bool, DType, type(None)), type(value)


def look_at(tensor: Tensor, size: int) -> None:
    """A tensor of a file is no more than the file, and reads as what it says it is."""
    assert tensor.dtype in dtypes.all
    if str(tensor.device).startswith("DISK"):
        assert tensor.numel() * tensor.dtype.itemsize <= size
        values = tensor.numpy()
        assert values.shape == tensor.shape


def changed(data: bytes) -> st.SearchStrategy[bytes]:
    """A file with some of its bits flipped, bytes replaced, cut off, repeated or moved."""
    places = st.integers(0, len(data))
    chunk = st.one_of(st.binary(max_size=8), st.sampled_from([b"\0" * 8, b"\xff" * 8, b"\xff\xff\xff\x7f"]))
    flip = st.tuples(st.just("flip"), places, st.integers(0, 7))
    replace = st.tuples(st.just("replace"), places, chunk)
    splice = st.tuples(st.just("splice"), places, places, places)
    cut = st.tuples(st.just("cut"), places)
    return st.lists(st.one_of(flip, flip, replace, splice, cut), min_size=1, max_size=4).map(
        lambda changes: _apply(data, changes)
    )


def _apply(data: bytes, changes: list[Any]) -> bytes:
    found = bytearray(data)
    for what, place, *how in changes:
        place = min(place, len(found))
        if what == "flip" and place < len(found):
            found[place] ^= 1 << how[0]
        elif what == "replace":
            found[place : place + len(how[0])] = how[0]
        elif what == "splice":
            first, last = sorted(how)
            found[place:place] = found[first:last]
        elif what == "cut":
            del found[place:]
    return bytes(found)


def path_for(folder: Any, data: bytes) -> Any:
    """A file of these bytes, under a name of its own: tensors may still look at another."""
    path = folder / hashlib.blake2b(data, digest_size=8).hexdigest()
    path.write_bytes(data)
    return path

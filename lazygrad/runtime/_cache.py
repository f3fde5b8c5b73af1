"""The disk cache: results that are expensive to compute, kept between processes in one SQLite file.

It never fails a run: a file that is read-only, full, locked, damaged or not ours is worked around, with at
most one line on stderr. A file that is not ours stays as it is. A value is JSON and raw bytes, nothing is
unpickled; one that this user's key did not sign is missing (`_trust.py`).

One connection and one lock serve all threads of a process: an access takes microseconds, and a fork can wait
for it. Other processes may use the file at the same time.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import hmac
import json
import os
import stat
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..config import CACHEDB, CACHELEVEL
from ..device import lock_across_fork
from ._trust import Untrusted, make_private, require_trusted, user_key

if TYPE_CHECKING:
    import sqlite3

__all__ = ["diskcache_clear", "diskcache_get", "diskcache_put"]

#: Of the file's layout; another version is another table.
VERSION = 2
#: What SQLite keeps in the file's head for the program that it belongs to.
APPLICATION = int.from_bytes(b"lzgc", "big")
#: How the files beside it begin, if SQLite made them; the number of shared memory is in the machine's order.
#: While a process opens them they may be shorter: SQLite cuts shared memory that nobody has open to 3 bytes.
BESIDE = {
    "-wal": (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83"),
    "-journal": (b"\xd9\xd5\x05\xf9", bytes(4)),
    "-shm": ((3007000).to_bytes(4, sys.byteorder), bytes(4)),
}
#: Above so many bytes, what was not used for the longest time goes, until three quarters are left.
MAX_BYTES = 1 << 29
#: How long another process may keep the file locked.
BUSY_S = 10.0
#: The time of last use is kept to the day, so that reading rarely writes.
DAY_S = 86400

_lock = lock_across_fork()


# *** what others use


def diskcache_get(table: str, key: Any, level: int = 1) -> Any:
    """The value under a key, which is anything that JSON can say; None if absent or CACHELEVEL < level."""
    if CACHELEVEL.value < level:
        return None
    found = _opened().get(table, _digest(key))
    return None if found is None else _unpack(found)


def diskcache_put(table: str, key: Any, value: Any, level: int = 1) -> Any:
    """Keep a value, made of what JSON can say and of bytes; tuples come back as lists. Returns the value."""
    if CACHELEVEL.value >= level:
        _opened().put(table, _digest(key), _pack(value))
    return value


def diskcache_clear() -> None:
    """Forget everything on disk."""
    _opened().clear()


@functools.cache
def default_path() -> str:
    """Where the file is when CACHEDB does not say: among the user's caches."""
    import platformdirs

    return os.path.join(platformdirs.user_cache_dir("lazygrad", appauthor=False), "cache.db")


# *** the file


class DiskCache:
    """One file of entries: (table, key) → value. Every method works, whatever state the file is in."""

    def __init__(self, path: str, max_bytes: int = MAX_BYTES, private: bool = False) -> None:
        self.path, self.max_bytes = os.path.realpath(path), max_bytes
        self.private = private  #: in a folder of ours, where everything of that name is ours too
        self.readable = self.writable = True
        self.warned = False
        self.repaired = False
        self._connection: sqlite3.Connection | None = None
        self._opened_file: tuple[int, int] | None = None
        self._key = b""

    def get(self, table: str, key: bytes) -> bytes | None:
        """The value, if it is there and whole."""
        with _lock:
            found = self._run(
                f"SELECT value, hash, used FROM entries{VERSION} WHERE kind=? AND key=?", table, key
            )
            if not found:
                return None
            value: Any
            value, check, used = found[0]
            if not self._signed(table, key, value, check):
                self._write(f"DELETE FROM entries{VERSION} WHERE kind=? AND key=?", table, key)
                return None
            now = int(time.time())
            if not isinstance(used, int) or now - used > DAY_S:
                self._write(f"UPDATE entries{VERSION} SET used=? WHERE kind=? AND key=?", now, table, key)
            return bytes(value)

    def put(self, table: str, key: bytes, value: bytes) -> None:
        """Keep a value, unless it alone would fill the cache."""
        if len(value) > self.max_bytes // 4:
            return
        now = int(time.time())
        with _lock:
            if not self._has_key():
                return
            row = (table, key, value, _hash(self._key, table, key, value), now)
            self._write(f"INSERT OR REPLACE INTO entries{VERSION} VALUES (?, ?, ?, ?, ?)", *row)
            self._make_room()

    def clear(self) -> None:
        """Remove all entries."""
        with _lock:
            self._write(f"DELETE FROM entries{VERSION}")

    def close(self) -> None:
        """Let go of the file; the next use opens it again."""
        with _lock:
            if self._connection is not None:
                with contextlib.suppress(_sqlite3().Error):
                    self._connection.close()
            self._connection = None

    def leave_to_parent(self) -> None:
        """In a forked child: SQLite forbids to use the parent's connection, and to close it."""
        if self._connection is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._connection))  # nothing closes it
            self._connection = None

    # *** signatures

    def _has_key(self) -> bool:
        if self.readable and not self._key:
            try:
                self._key = user_key()
            except Untrusted as problem:
                self.readable = False
                self._warn(str(problem))
        return self.readable

    def _signed(self, table: str, key: bytes, value: Any, check: Any) -> bool:
        """Whether a row of the file is one that this user has put there."""
        whole = isinstance(value, bytes) and isinstance(check, bytes)
        return whole and hmac.compare_digest(check, _hash(self._key, table, key, value))

    # *** statements

    def _write(self, statement: str, *values: Any) -> None:
        if self.writable:
            self._run(statement, *values)

    def _run(self, statement: str, *values: Any) -> list[Any]:
        """Run one statement; what goes wrong ends in no rows."""
        if not self._has_key():
            return []
        try:
            if self._connection is None:
                self._connection = self._open()
            return self._connection.execute(statement, values).fetchall()
        except _Unusable as problem:
            self.readable = False
            self._warn(str(problem))
        except (_sqlite3().Error, UnicodeDecodeError) as error:  # the latter of a damaged table's name
            if self._went_wrong(error):
                return self._run(statement, *values)
        return []

    def _went_wrong(self, error: Exception) -> bool:
        """Draw the consequence of an error; whether to try once more."""
        sqlite3 = _sqlite3()
        whole_code = getattr(error, "sqlite_errorcode", 0)
        code = whole_code & 0xFF
        if whole_code == sqlite3.SQLITE_IOERR_SHORT_READ:  # it was cut off
            code = sqlite3.SQLITE_CORRUPT
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            problem = "another process keeps it locked"
        elif code == sqlite3.SQLITE_READONLY:
            problem = "it cannot be written"
        elif code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            problem = "it cannot be written: is the disk full?"
        elif code == sqlite3.SQLITE_CANTOPEN or self.repaired or not self.writable:
            self.readable = False
            problem = f"it cannot be used: {error}"
        else:
            self.repaired = True
            return self._start_anew(error)
        self.writable = False
        self._warn(problem)
        return False

    def _start_anew(self, error: Exception) -> bool:
        """Remove a damaged file, unless another process has just put a new one there."""
        self.close()
        try:
            if _identity(self.path) == self._opened_file:
                if not self._is_ours():
                    raise PermissionError
                self._remove()
        except OSError:
            self.readable = False
            self._warn(f"it cannot be used: {error}")
            return False
        self._warn(f"it was damaged ({error}) and starts anew")
        return True

    def _remove(self) -> None:
        """Remove the file and those beside it: who still has them open shares nothing with the next."""
        for end in ("", *BESIDE):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path + end)

    def _make_room(self) -> None:
        if not self.writable:
            return
        numbers = [self._run(f"PRAGMA {what}") for what in ("page_size", "page_count", "freelist_count")]
        if not all(numbers):
            return
        size, pages, free = (rows[0][0] for rows in numbers)
        excess = size * (pages - free) - self.max_bytes
        if excess <= 0:
            return
        excess += self.max_bytes // 4
        oldest = self._run(f"SELECT rowid, length(value) FROM entries{VERSION} ORDER BY used, rowid")
        for row, length in oldest:
            self._write(f"DELETE FROM entries{VERSION} WHERE rowid=?", row)
            excess -= length
            if excess <= 0:
                break

    # *** opening

    def _open(self) -> sqlite3.Connection:
        folder = os.path.dirname(self.path)
        try:
            _sqlite3()
            _make_own(folder, self.private)
            require_trusted(folder)
            self._take_file()
            self._opened_file = _identity(self.path)
        except Untrusted as problem:
            raise _Unusable(f"{problem}, and programs are run from it") from None
        except (OSError, ImportError) as error:
            raise _Unusable(str(error)) from None
        if self._opened_file is None:
            raise _Unusable("it cannot be made")
        address = Path(self.path).as_uri()
        if not (os.access(self.path, os.W_OK) and os.access(folder, os.W_OK)):
            self.writable = False
            self._warn("it cannot be written")
            return _connect(address + "?mode=ro&immutable=1")
        connection = _connect(address)
        try:
            # What a power cut damages starts anew, so no write waits for the disk.
            connection.execute("PRAGMA synchronous=OFF")
            if os.path.getsize(self.path) == 0:  # its head first: whoever looks at it sees whose it is
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(f"PRAGMA application_id={APPLICATION}")
                connection.execute("COMMIT")
            _use_wal(connection)
            connection.execute(
                f"CREATE TABLE IF NOT EXISTS entries{VERSION} (kind TEXT NOT NULL, key BLOB NOT NULL, "
                "value BLOB NOT NULL, hash BLOB NOT NULL, used INTEGER NOT NULL, PRIMARY KEY (kind, key))"
            )
        except (_sqlite3().Error, UnicodeDecodeError):
            connection.close()
            raise
        return connection

    def _take_file(self) -> None:
        """See that the file is ours, or make it, for this user alone: what SQLite makes, others may read."""
        with contextlib.suppress(FileExistsError):
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        if not stat.S_ISREG(os.stat(self.path).st_mode):
            raise _Unusable("it is no file")
        require_trusted(self.path)
        if not self._is_ours():
            if not self.private:
                raise _Unusable("it is not a disk cache of this version of lazygrad, and is left as it is")
            self._remove()
            self._warn("it was of another version and starts anew")
            self._take_file()
        for end, beginnings in BESIDE.items():
            with contextlib.suppress(FileNotFoundError):
                found = _head(self.path + end, 4)
                if not any(known.startswith(found) for known in beginnings) and not self.private:
                    raise _Unusable(f"{self.path}{end} is not of a disk cache, and is left as it is")

    def _is_ours(self) -> bool:
        """Whether the file is empty or says that it is a disk cache of lazygrad."""
        head = _head(self.path, 72)
        whose = head[:16] == b"SQLite format 3\0" and int.from_bytes(head[68:], "big") == APPLICATION
        return whose or not head

    def _warn(self, problem: str) -> None:
        if not self.warned:
            self.warned = True
            with contextlib.suppress(OSError, ValueError):  # stderr is closed
                print(f"lazygrad: disk cache {self.path}: {problem}; runs do not need it", file=sys.stderr)


class _Unusable(Exception):
    """Why the file is not opened at all."""


def _sqlite3() -> Any:
    import sqlite3

    return sqlite3


def _connect(address: str) -> sqlite3.Connection:
    connection: sqlite3.Connection = _sqlite3().connect(
        address, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA trusted_schema=OFF")
    return connection


def _use_wal(connection: sqlite3.Connection) -> None:
    """Readers and a writer at the same time. Here SQLite does not wait by itself for other processes."""
    sqlite3 = _sqlite3()
    end = time.monotonic() + BUSY_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(0.01)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _head(path: str, count: int) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read(count)


def _make_own(folder: str, ours: bool) -> None:
    """Make the folder, for this user alone; one that is there is left as it is, unless it is our own."""
    if not os.path.isdir(folder):
        make_private(folder)
    elif ours and stat.S_IMODE(os.stat(folder).st_mode) & 0o077:
        with contextlib.suppress(PermissionError):
            os.chmod(folder, 0o700)


# *** values


def _digest(key: Any) -> bytes:
    if isinstance(key, bytes):
        return hashlib.blake2b(key, digest_size=32).digest()
    text = json.dumps(key, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=32, person=b"json").digest()


def _hash(secret: bytes, table: str, key: bytes, value: bytes) -> bytes:
    """The signature of an entry. (BLAKE2's own keyed mode is a message authentication code.)"""
    check = hashlib.blake2b(digest_size=32, key=secret)
    for part in (table.encode(), key, value):
        check.update(len(part).to_bytes(8, "little"))
        check.update(part)
    return check.digest()


#: Stands in JSON for bytes, with their length.
_BYTES = "\0bytes"


def _pack(value: Any) -> bytes:
    """The length of the JSON text, that text, and after it the bytes it speaks of, in order."""
    blobs: list[bytes] = []

    def blob(found: Any) -> dict[str, int]:
        if not isinstance(found, (bytes, bytearray, memoryview)):
            raise TypeError(f"the disk cache keeps what JSON can say and bytes, not {type(found).__name__}")
        blobs.append(bytes(found))
        return {_BYTES: len(blobs[-1])}

    text = json.dumps(value, default=blob, separators=(",", ":")).encode()
    return b"".join((len(text).to_bytes(8, "little"), text, *blobs))


def _unpack(packed: bytes) -> Any:
    start = 8 + int.from_bytes(packed[:8], "little")
    end = start

    def blob(found: dict[str, Any]) -> Any:
        nonlocal end
        if found.keys() != {_BYTES}:
            return found
        first, end = end, end + found[_BYTES]
        return packed[first:end]

    return json.loads(packed[8:start], object_hook=blob)


# *** the process

_caches: dict[str, DiskCache] = {}


def _opened() -> DiskCache:
    asked = str(CACHEDB.value)
    found = _caches.get(asked)
    if found is None:
        with _lock:
            made = DiskCache(asked) if asked else DiskCache(default_path(), private=True)
            # One connection to a file: closing another's descriptor of it would end SQLite's locks.
            same = next((cache for cache in _caches.values() if cache.path == made.path), made)
            found = _caches.setdefault(asked, same)
    return found


def _after_fork_in_child() -> None:
    for cache in _caches.values():
        cache.leave_to_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)

"""The disk cache: what is put is got, and no state of the file ever fails a run."""

from __future__ import annotations

import contextlib
import os
import resource
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from lazygrad.config import Context
from lazygrad.runtime import _cache, diskcache_clear, diskcache_get, diskcache_put
from lazygrad.runtime._cache import DiskCache
from tests.helpers import PATIENCE, ROOT, in_threads, needs

KEY, VALUE = b"k" * 32, b"some value"
NOBODY = 65534


@pytest.fixture
def path(tmp_path) -> str:
    return str(tmp_path / "private" / "cache.db")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user reaches; pytest's own are root's alone, and shared by processes."""
    with tempfile.TemporaryDirectory() as made:
        os.chmod(made, 0o711)
        yield Path(made)


@contextlib.contextmanager
def as_nobody(*paths):
    """As a user to whom permissions apply, and to whom these files belong."""
    if os.geteuid() != 0:
        yield
        return
    for each in paths:
        os.chown(each, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)


def in_processes(count: int, code: str, path: str) -> list[str]:
    """What each of some processes that run at once wrote to stderr."""
    environment = {**os.environ, "CACHEDB": path, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code]
    started = [
        subprocess.Popen([*command, str(n)], env=environment, stderr=subprocess.PIPE, text=True)
        for n in range(count)
    ]
    return [process.communicate(timeout=PATIENCE)[1] for process in started]


# *** values


@pytest.mark.parametrize(
    "value",
    [1, 0.1, "text", True, [], {}, b"", b"\0\xff", [1, [b"a", {"x": b"bb", "y": [b"", 2**70]}]], {"\0x": 1}],
    ids=repr,
)
def test_values_come_back(path, value):
    with Context(CACHEDB=path):
        assert diskcache_put("t", "k", value) == value
        assert diskcache_get("t", "k") == value


def test_tuples_come_back_as_lists(path):
    with Context(CACHEDB=path):
        diskcache_put("t", "k", (1, (2, b"x")))
        assert diskcache_get("t", "k") == [1, [2, b"x"]]


def test_keys_are_structure(path):
    with Context(CACHEDB=path):
        diskcache_put("t", {"a": 1, "b": [2]}, 1)
        assert diskcache_get("t", {"b": [2], "a": 1}) == 1
        assert diskcache_get("t", {"b": [3], "a": 1}) is None
        assert diskcache_get("other", {"b": [2], "a": 1}) is None
        assert diskcache_get("t", '{"a":1,"b":[2]}') is None


def test_what_neither_json_nor_bytes_can_say_is_refused(path):
    with Context(CACHEDB=path), pytest.raises(TypeError, match="JSON can say and bytes, not set"):
        diskcache_put("t", "k", {1, 2})


def test_clear(path):
    with Context(CACHEDB=path):
        diskcache_put("t", "k", 1)
        diskcache_clear()
        assert diskcache_get("t", "k") is None


def test_level(path):
    with Context(CACHEDB=path):
        with Context(CACHELEVEL=0):
            assert diskcache_put("t", "k", 1) == 1
        assert not os.path.exists(path)
        with Context(CACHELEVEL=1):
            diskcache_put("t", "k", 1, level=2)
            assert diskcache_get("t", "k", level=2) is None
            diskcache_put("t", "k", 3)
            assert diskcache_get("t", "k") == 3
        assert diskcache_get("t", "k", level=2) == 3


# *** whose it is


def test_only_the_user_reads_it(path):
    cache = DiskCache(path)
    cache.put("t", KEY, VALUE)
    assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700
    for end in ("", "-wal", "-shm"):
        assert stat.S_IMODE(os.stat(path + end).st_mode) == 0o600


def test_our_own_folder_becomes_private(path):
    os.mkdir(os.path.dirname(path), 0o755)
    DiskCache(path, private=True).put("t", KEY, VALUE)
    assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700


@pytest.mark.parametrize("what", ["folder", "file"])
def test_what_everyone_may_write_is_not_used(path, what, capfd):
    DiskCache(path).put("t", KEY, VALUE)
    os.chmod(path if what == "file" else os.path.dirname(path), 0o777)
    cache = DiskCache(path)
    for _ in range(3):
        assert cache.get("t", KEY) is None
        cache.put("t", KEY, VALUE)
    err = capfd.readouterr().err
    assert "everyone may write" in err
    assert err.count("\n") == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_another_users_file_is_not_used(path, capfd):
    DiskCache(path).put("t", KEY, VALUE)
    os.chown(path, NOBODY, NOBODY)
    assert DiskCache(path).get("t", KEY) is None
    assert "belongs to another user" in capfd.readouterr().err


# *** files that do not work


def test_read_only(open_folder, capfd):
    path = str(open_folder / "private" / "cache.db")
    first = DiskCache(path)
    first.put("t", KEY, VALUE)
    first.close()
    os.chmod(path, 0o400)
    os.chmod(os.path.dirname(path), 0o500)
    with as_nobody(path, os.path.dirname(path)):
        cache = DiskCache(path)
        for _ in range(2):
            assert cache.get("t", KEY) == VALUE
            cache.put("t", b"other", VALUE)
            cache.clear()
        assert cache.get("t", b"other") is None
    err = capfd.readouterr().err
    assert err == f"lazygrad: disk cache {path}: it cannot be written; runs do not need it\n"


def test_no_place_to_make_it(open_folder, capfd):
    folder = open_folder / "closed"
    folder.mkdir(0o500)
    for path in (folder / "cache.db", folder / "deeper" / "cache.db"):
        with as_nobody(folder):
            cache = DiskCache(str(path))
            cache.put("t", KEY, VALUE)
            assert cache.get("t", KEY) is None
        assert capfd.readouterr().err.count("\n") == 1


def test_a_folder_of_that_name(tmp_path, capfd):
    (tmp_path / "cache.db").mkdir()
    cache = DiskCache(str(tmp_path / "cache.db"))
    cache.put("t", KEY, VALUE)
    assert cache.get("t", KEY) is None
    assert capfd.readouterr().err.count("\n") == 1


def test_full(path, capfd):
    """A limit on the size of files stands in for a full disk: the first value fits, the second does not."""
    cache = DiskCache(path)
    cache.put("t", KEY, VALUE)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, before[1]))
    try:
        for n in range(5):
            cache.put("t", bytes([n]), bytes(1_000_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert cache.get("t", b"\0") is None
    assert cache.get("t", KEY) == VALUE
    err = capfd.readouterr().err
    assert "is the disk full?" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("content", [b"", b"no database\n" * 1000, b"SQLite format 3\0" + bytes(4000)])
def test_what_is_no_database_is_put_aside(path, content, capfd):
    os.mkdir(os.path.dirname(path))
    with open(path, "wb") as file:
        file.write(content)
    cache = DiskCache(path)
    assert cache.get("t", KEY) is None
    cache.put("t", KEY, VALUE)
    assert cache.get("t", KEY) == VALUE
    assert DiskCache(path).get("t", KEY) == VALUE
    assert capfd.readouterr().err.count("\n") == (1 if content else 0)
    if content:
        with open(path + ".damaged", "rb") as file:
            assert file.read() == content


def test_another_programs_table_of_our_name(path, capfd):
    os.mkdir(os.path.dirname(path))
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute(f"CREATE TABLE entries{_cache.VERSION} (a, b)")
    cache = DiskCache(path)
    cache.put("t", KEY, VALUE)
    cache.put("t", KEY, VALUE)
    assert cache.get("t", KEY) == VALUE
    assert capfd.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("cut", [0.3, 0.6, 0.95])
def test_truncated(path, cut):
    cache = DiskCache(path)
    for n in range(100):
        cache.put("t", bytes([n]), bytes([n]) * 5000)
    cache.close()
    with open(path, "r+b") as file:
        file.truncate(int(os.path.getsize(path) * cut))
    cache = DiskCache(path)
    for n in range(100):
        assert cache.get("t", bytes([n])) in (None, bytes([n]) * 5000)
        cache.put("t", bytes([n]), VALUE)
        assert cache.get("t", bytes([n])) in (None, VALUE, bytes([n]) * 5000)


def test_damage_anywhere_is_a_miss_or_the_right_value(path):
    cache = DiskCache(path)
    for n in range(20):
        cache.put("t", bytes([n]), bytes([n]) * 3000)
    cache.close()
    with open(path, "rb") as file:
        whole = file.read()
    for place in range(0, len(whole), 1009):
        with open(path, "wb") as file:
            file.write(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        cache = DiskCache(path)
        for n in range(20):
            assert cache.get("t", bytes([n])) in (None, bytes([n]) * 3000)
        cache.close()
        for end in ("-wal", "-shm", ".damaged"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path + end)


def test_a_value_that_was_changed_is_missing_and_goes(path):
    cache = DiskCache(path)
    cache.put("t", KEY, VALUE)
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute(f"UPDATE entries{_cache.VERSION} SET value=?", (b"forged",))
        other.commit()
        assert cache.get("t", KEY) is None
        assert other.execute(f"SELECT count(*) FROM entries{_cache.VERSION}").fetchone() == (0,)


def test_an_entry_that_was_moved_to_another_key_is_missing(path):
    cache = DiskCache(path)
    cache.put("t", KEY, VALUE)
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute(f"UPDATE entries{_cache.VERSION} SET key=?", (b"other",))
        other.commit()
    assert cache.get("t", b"other") is None


def test_locked_by_another(path, monkeypatch, capfd):
    monkeypatch.setattr(_cache, "BUSY_S", 0.05)
    cache = DiskCache(path)
    cache.put("t", KEY, VALUE)
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        for _ in range(3):
            cache.put("t", b"other", VALUE)
            assert cache.get("t", KEY) == VALUE
        late = DiskCache(path)
        late.put("t", b"other", VALUE)
        assert late.get("t", KEY) in (VALUE, None)
        other.rollback()
    assert capfd.readouterr().err.count("\n") <= 2  # a line for each of the two caches


def test_no_sqlite(path, monkeypatch, capfd):
    monkeypatch.setitem(sys.modules, "sqlite3", None)
    cache = DiskCache(path)
    cache.put("t", KEY, VALUE)
    assert cache.get("t", KEY) is None
    assert capfd.readouterr().err.count("\n") == 1


# *** size


def test_the_oldest_make_room(path):
    cache = DiskCache(path, max_bytes=1_000_000)
    for n in range(120):
        cache.put("t", bytes([n]), bytes(20_000))
    there = [n for n in range(120) if cache.get("t", bytes([n]))]
    assert there == list(range(there[0], 120))
    assert 30 <= len(there) <= 50
    cache.close()
    assert os.path.getsize(path) < 1_200_000
    cache.put("t", KEY, bytes(300_000))  # a quarter of the cache and more is not kept
    assert cache.get("t", KEY) is None


# *** several at once

WRITER = """
import sys
from lazygrad.runtime import diskcache_get, diskcache_put
me = int(sys.argv[1])
for n in range(50):
    diskcache_put("t", ["own", me, n], [me, n, bytes(1000)])
    diskcache_put("t", ["shared", n], n)
    assert diskcache_get("t", ["own", me, n]) == [me, n, bytes(1000)]
    assert diskcache_get("t", ["shared", n]) == n
"""


def test_several_processes_at_once(path):
    assert in_processes(4, WRITER, path) == [""] * 4
    with Context(CACHEDB=path):
        for n in range(50):
            assert diskcache_get("t", ["shared", n]) == n
            for me in range(4):
                assert diskcache_get("t", ["own", me, n]) == [me, n, bytes(1000)]


def test_several_threads_at_once(path):
    cache = DiskCache(path)

    def work(me: int) -> None:
        for n in range(50):
            key = bytes([me, n])
            cache.put("t", key, key * 100)
            assert cache.get("t", key) == key * 100

    in_threads(4, work)


@needs("fork")
def test_a_fork_in_the_middle(path):
    """Children get and put through connections of their own while a thread of the parent is at work."""
    code = """
import os, sys, threading
from lazygrad.runtime import _cache, diskcache_get, diskcache_put
stop = threading.Event()
def work():
    n = 0
    while not stop.is_set():
        diskcache_put("t", ["parent", n % 100], bytes(500))
        n += 1
thread = threading.Thread(target=work)
thread.start()
for child in range(20):
    pid = os.fork()
    if pid == 0:
        diskcache_put("t", ["child", child], child)
        os._exit(0 if diskcache_get("t", ["child", child]) == child else 1)
    assert os.waitpid(pid, 0)[1] == 0
stop.set()
thread.join()
assert [diskcache_get("t", ["child", n]) for n in range(20)] == list(range(20))
pid = os.fork()
if pid == 0:
    diskcache_put("t", "last", 1)
    sys.exit()  # an ordinary end, which frees everything
assert os.waitpid(pid, 0)[1] == 0
assert diskcache_get("t", "last") == 1
"""
    assert in_processes(1, code, path) == [""]

"""The disk cache: what is put is got, and no state of the file ever fails a run."""

from __future__ import annotations

import contextlib
import os
import re
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
from lazygrad.runtime import _cache, _trust, diskcache_clear, diskcache_get, diskcache_put
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
    said = [process.communicate(timeout=PATIENCE)[1] for process in started]
    return [
        text or ("" if process.returncode == 0 else f"status {process.returncode}")
        for text, process in zip(said, started, strict=True)
    ]


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


@pytest.mark.parametrize("what", ["folder", "file", "folder above"])
@pytest.mark.parametrize(
    ("mode", "message"), [(0o777, "everyone may write"), (0o770, "others of its group may write")]
)
def test_what_others_may_write_is_not_used(tmp_path, what, mode, message, capfd, monkeypatch):
    monkeypatch.setattr(_trust, "_is_own_group", lambda gid: False)
    path = str(tmp_path / "above" / "folder" / "cache.db")
    DiskCache(path).put("t", KEY, VALUE)
    os.chmod({"file": path, "folder": os.path.dirname(path)}.get(what, tmp_path / "above"), mode)
    cache = DiskCache(path)
    for _ in range(3):
        assert cache.get("t", KEY) is None
        cache.put("t", KEY, VALUE)
    err = capfd.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_where_all_write_but_move_only_their_own(path):
    """As below /tmp. The folder itself must not be such: SQLite makes files beside the cache."""
    DiskCache(path).put("t", KEY, VALUE)
    os.chmod(os.path.dirname(os.path.dirname(path)), 0o1777)
    assert DiskCache(path).get("t", KEY) == VALUE
    os.chmod(os.path.dirname(path), 0o1777)
    assert DiskCache(path).get("t", KEY) is None


def test_a_group_of_one(path):
    """Many systems give each user a group, and let it write what the user makes."""
    import grp
    import pwd

    user = pwd.getpwuid(os.geteuid())
    own = grp.getgrgid(user.pw_gid).gr_name == user.pw_name
    assert _trust._is_own_group(user.pw_gid) == own
    assert not _trust._is_own_group(54321)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_another_users_file_is_not_used(path, capfd):
    DiskCache(path).put("t", KEY, VALUE)
    os.chown(path, NOBODY, NOBODY)
    assert DiskCache(path).get("t", KEY) is None
    assert "belongs to another user" in capfd.readouterr().err


# *** the key


@pytest.fixture
def key(tmp_path, monkeypatch) -> Path:
    """A key of its own."""
    found = tmp_path / "state" / "cache.key"
    monkeypatch.setattr(_trust, "key_path", lambda: str(found))
    return found


def test_a_file_of_another_key_holds_nothing(path, key, tmp_path, monkeypatch):
    """Somebody's cache was copied here: what is in it was not compiled by this user."""
    cache = DiskCache(path)
    cache.put("t", KEY, VALUE)
    assert stat.S_IMODE(os.stat(key).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(key.parent).st_mode) == 0o700
    assert os.listdir(key.parent) == ["cache.key"]
    cache.close()
    monkeypatch.setattr(_trust, "key_path", lambda: str(tmp_path / "other" / "cache.key"))
    other = DiskCache(path)
    assert other.get("t", KEY) is None
    other.put("t", KEY, b"another")
    assert other.get("t", KEY) == b"another"


def test_a_hash_without_the_key_is_none(path):
    import hashlib

    cache = DiskCache(path)
    cache.put("t", KEY, VALUE)
    check = hashlib.blake2b(digest_size=32)
    for part in (b"t", KEY, b"forged"):
        check.update(len(part).to_bytes(8, "little") + part)
    with contextlib.closing(sqlite3.connect(path)) as other:
        for forged in (check.digest(), b"", "text", 5, cache._key):
            other.execute(f"UPDATE entries{_cache.VERSION} SET value=?, hash=?", (b"forged", forged))
            other.commit()
            assert cache.get("t", KEY) is None
            cache.put("t", KEY, VALUE)


def readable(key):
    key.chmod(0o644)


def linked(key):
    key.rename(key.with_name("moved"))
    key.symlink_to(key.with_name("moved"))


def cut(key):
    key.write_bytes(b"short")


def gone_public(key):
    key.parent.chmod(0o777)


def a_folder(key):
    key.unlink()
    key.mkdir()


@pytest.mark.parametrize(
    "harm", [readable, linked, cut, gone_public, a_folder], ids=lambda harm: harm.__name__
)
def test_without_a_good_key_nothing_is_kept(path, key, harm, monkeypatch, capfd):
    _trust.user_key()
    monkeypatch.setattr(_trust, "_keys", {})
    harm(key)
    cache = DiskCache(path)
    for _ in range(2):
        cache.put("t", KEY, VALUE)
        assert cache.get("t", KEY) is None
    assert not os.path.exists(path)
    err = capfd.readouterr().err
    assert str(key.parent) in err
    assert err.count("\n") == 1


def test_where_no_key_can_be_made(path, tmp_path, monkeypatch, capfd):
    (tmp_path / "file").touch()
    monkeypatch.setattr(_trust, "key_path", lambda: str(tmp_path / "file" / "cache.key"))
    cache = DiskCache(path)
    cache.put("t", KEY, VALUE)
    assert cache.get("t", KEY) is None
    assert "cannot be had (" in capfd.readouterr().err


def test_processes_that_make_the_key_at_once_have_the_same(key):
    code = f"""
import sys
from lazygrad.runtime import _trust
_trust.key_path = lambda: {str(key)!r}
sys.stderr.write(_trust.user_key().hex())
"""
    found = in_processes(4, code, "")
    assert set(found) == {key.read_bytes().hex()}
    assert len(key.read_bytes()) == _trust.KEY_BYTES


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


def other_database(path) -> bytes:
    """A database of another program, with a table of our name."""
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute(f"CREATE TABLE entries{_cache.VERSION} (a, b)")
        other.execute(f"INSERT INTO entries{_cache.VERSION} VALUES (1, 2)")
        other.commit()
    return Path(path).read_bytes()


@pytest.mark.parametrize("content", [b"notes\n", b"SQLite format 3\0" + bytes(4000), None], ids=repr)
def test_a_file_that_is_not_ours_stays_as_it_is(path, content, capfd):
    """CACHEDB may name a file by mistake."""
    os.mkdir(os.path.dirname(path))
    if content is None:
        content = other_database(path)
    Path(path).write_bytes(content)
    cache = DiskCache(path)
    for _ in range(2):
        cache.put("t", KEY, VALUE)
        assert cache.get("t", KEY) is None
        cache.clear()
    assert Path(path).read_bytes() == content
    assert os.listdir(os.path.dirname(path)) == ["cache.db"]
    err = capfd.readouterr().err
    assert (
        "it is not a disk cache of this version of lazygrad, and is left as it is; runs do not need it" in err
    )
    assert err.count("\n") == 1


def test_through_a_link_neither(path, tmp_path, capfd):
    (tmp_path / "notes").write_bytes(b"notes\n")
    os.mkdir(os.path.dirname(path))
    os.symlink(tmp_path / "notes", path)
    DiskCache(path).put("t", KEY, VALUE)
    assert (tmp_path / "notes").read_bytes() == b"notes\n"
    assert "notes: it is not a disk cache" in capfd.readouterr().err


@pytest.mark.parametrize("end", _cache.BESIDE)
def test_nor_does_a_file_beside_it_change(path, end, capfd):
    os.mkdir(os.path.dirname(path))
    Path(path + end).write_bytes(b"notes\n")
    DiskCache(path).put("t", KEY, VALUE)
    assert Path(path + end).read_bytes() == b"notes\n"
    assert f"{path}{end} is not of a disk cache, and is left as it is" in capfd.readouterr().err


@pytest.mark.parametrize(("end", "known"), [(e, k) for e, known in _cache.BESIDE.items() for k in known])
def test_a_file_beside_it_that_another_process_is_opening(path, end, known, capfd):
    """SQLite cuts shared memory to 3 bytes while it opens it: zeros where there was none."""
    first = DiskCache(path)
    first.put("t", KEY, VALUE)
    first.close()
    for length in range(4):
        Path(path + end).write_bytes(known[:length])
        cache = DiskCache(path)
        assert cache.get("t", KEY) == VALUE, length
        cache.close()
    assert capfd.readouterr().err == ""


OPENER = """
import os, sys
from lazygrad.runtime._cache import DiskCache

def opened(me):
    failed = 0
    for turn in range(4):
        cache = DiskCache(os.environ["CACHEDB"])
        cache.put("t", b"%d" % me, b"value")
        failed += cache.get("t", b"%d" % me) != b"value" or cache.warned
        cache.close()
    return failed

children = []
for me in range(4):
    children.append(os.fork())
    if children[-1] == 0:
        os._exit(opened(me))
sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
"""


@needs("fork")
def test_processes_that_open_and_close_it_at_once(path):
    """The first one makes it, the last one that lets go of it removes what is beside it, again and again."""
    assert in_processes(1, OPENER, path) == [""]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no such files")
def test_what_is_no_file_is_not_opened(path, capfd):
    os.mkdir(os.path.dirname(path))
    os.mkfifo(path)
    assert DiskCache(path).get("t", KEY) is None
    assert "it is no file" in capfd.readouterr().err


def test_in_our_own_folder_another_version_starts_anew(path, capfd):
    os.mkdir(os.path.dirname(path), 0o700)
    other_database(path)
    cache = DiskCache(path, private=True)
    cache.put("t", KEY, VALUE)
    assert cache.get("t", KEY) == VALUE
    assert "it was of another version and starts anew" in capfd.readouterr().err


def test_another_version_that_is_in_use_shares_nothing(path, capfd):
    os.mkdir(os.path.dirname(path), 0o700)
    other = sqlite3.connect(path)
    other.execute("PRAGMA journal_mode=WAL")
    other.execute("CREATE TABLE entries (value)")
    other.execute("INSERT INTO entries VALUES (1)")
    other.commit()
    DiskCache(path, private=True).put("t", KEY, VALUE)
    other.execute("INSERT INTO entries VALUES (2)")
    other.commit()
    assert DiskCache(path, private=True).get("t", KEY) == VALUE
    assert other.execute("SELECT value FROM entries").fetchall() == [(1,), (2,)]
    other.close()
    assert capfd.readouterr().err.count("\n") == 1  # it was of another version


def test_a_file_that_ends_too_early_is_damaged_and_not_full(path, capfd):
    cache = DiskCache(path, private=True)
    cache.put("t", KEY, VALUE)
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_SHORT_READ
    assert cache._went_wrong(error)  # to be tried again
    assert cache.get("t", KEY) is None
    cache.put("t", KEY, VALUE)
    assert cache.get("t", KEY) == VALUE
    assert "it was damaged (disk I/O error) and starts anew" in capfd.readouterr().err


def test_a_table_whose_name_is_no_text_is_damaged(path, capfd):
    cache = DiskCache(path)
    cache.put("t", KEY, VALUE)
    cache.close()
    contents = Path(path).read_bytes()
    said = []
    for name in re.finditer(b"entries", contents):
        Path(path).write_bytes(contents[: name.start()] + b"entri\x80s" + contents[name.end() :])
        assert DiskCache(path).get("t", KEY) in (None, VALUE)
        said.append(capfd.readouterr().err)
    assert any("it was damaged ('utf-8' codec" in each for each in said)


def test_an_empty_file_becomes_the_cache(path, capfd):
    os.mkdir(os.path.dirname(path))
    Path(path).touch()
    DiskCache(path).put("t", KEY, VALUE)
    assert DiskCache(path).get("t", KEY) == VALUE
    assert capfd.readouterr().err == ""


def test_a_damaged_file_of_ours_starts_anew(path, capfd):
    cache = DiskCache(path)
    cache.put("t", KEY, VALUE)
    cache.close()
    with open(path, "r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 8000)
    cache = DiskCache(path)
    cache.put("t", KEY, VALUE)
    assert cache.get("t", KEY) == VALUE
    assert "it was damaged (" in capfd.readouterr().err


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
        for end in ("-wal", "-shm"):
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

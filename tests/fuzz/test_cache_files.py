"""Databases of the disk cache that are damaged, or that somebody without the key has written to."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazygrad.runtime import _cache
from lazygrad.runtime._cache import DiskCache
from tests.fuzz.files import changed, in_time
from tests.fuzz.harness import fuzzed

VALUES = {bytes([n]) * 32: bytes([n]) * size for n, size in enumerate((0, 1, 40, 5000))}


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    """Where the caches are, and the bytes of a whole one."""
    global _folder, _whole
    _folder = tmp_path_factory.mktemp("caches")
    _whole = written(_folder / "whole.db")


def written(path: Path) -> bytes:
    cache = DiskCache(str(path))
    for key, value in VALUES.items():
        cache.put("t", key, value)
    cache.close()
    return path.read_bytes()


def emptied() -> Path:
    """The path of a cache, with nothing there."""
    for each in _folder.glob("changed.db*"):
        each.unlink()
    return Path(_folder, "changed.db")


def check(path: Path) -> None:
    """Every value that is there is the right one; what is not ours stays as it is, and is not used."""
    before = path.read_bytes()
    cache = DiskCache(str(path))
    ours = cache._is_ours()
    with in_time():
        for key, value in VALUES.items():
            assert cache.get("t", key) in (None, value)
        cache.put("t", b"new", b"new value")
        assert cache.get("t", b"new") in (None, b"new value")
        assert cache.get("other", b"new") is None
    cache.close()
    if not ours:
        assert path.read_bytes() == before
        assert cache.get("t", b"new") is None


@fuzzed(quick=40, sweep=800)
@given(st.data())
def test_a_damaged_database(data):
    path = emptied()
    path.write_bytes(data.draw(changed(_whole)))
    check(path)


@fuzzed(quick=20, sweep=500)
@given(st.data())
def test_damaged_files_beside_it(data):
    """What a process that was killed has left there."""
    path = emptied()
    path.write_bytes(_whole)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute(f"UPDATE entries{_cache.VERSION} SET used=used-1")
        log = Path(f"{path}-wal").read_bytes()
    end = data.draw(st.sampled_from(sorted(_cache.BESIDE)))
    Path(f"{path}{end}").write_bytes(data.draw(changed(log)))
    check(path)


cells: Any = st.one_of(
    st.binary(max_size=40), st.text(max_size=5), st.integers(-(1 << 62), 1 << 62), st.floats(), st.none()
)
rows = st.tuples(st.sampled_from(["t", "other"]), st.sampled_from([*VALUES, b"new"]), cells, cells, cells)
changes = st.one_of(
    rows.map(lambda row: ("INSERT OR REPLACE INTO {} VALUES (?, ?, ?, ?, ?)", row)),
    cells.map(lambda cell: ("UPDATE {} SET value=?", (cell,))),
    cells.map(lambda cell: ("UPDATE {} SET hash=?", (cell,))),
    cells.map(lambda cell: ("UPDATE {} SET used=?", (cell,))),
    st.just(("UPDATE {} SET key=key||x'00'", ())),
    st.just(("DELETE FROM {} WHERE rowid=1", ())),
    st.just(("ALTER TABLE {} RENAME TO moved", ())),
    st.just(("CREATE TRIGGER run AFTER DELETE ON {} BEGIN DELETE FROM entries1; END", ())),
    st.just(("PRAGMA application_id=0", ())),
    st.just(("PRAGMA user_version=7", ())),
)


@fuzzed(quick=40, sweep=800)
@given(st.lists(changes, min_size=1, max_size=4))
def test_rows_that_somebody_else_wrote(found):
    path = emptied()
    path.write_bytes(_whole)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        for statement, values in found:
            with contextlib.suppress(sqlite3.Error):
                other.execute(statement.format(f"entries{_cache.VERSION}"), values)
    check(path)

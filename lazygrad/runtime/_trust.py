"""Who can have written a file: whether its folders keep others out, and this user's key for what is in it.

Native code lies in the disk cache, and whoever can write it would run what he likes as us. Two things stand
against that. Its folder must be one that nobody else can write, and no folder above may let others put
another in its place (as sshd asks of `~/.ssh`). And what is kept is signed with a key that only this user can
read: a file that somebody copied, restored or wrote for us holds nothing, wherever it lies.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys

if sys.platform != "win32":
    import grp
    import pwd

KEY_BYTES = 32


class Untrusted(Exception):
    """Why a place or a key is not relied on."""


# *** places


def require_trusted(path: str) -> None:
    """Raise Untrusted where others can write a file or folder, or put another in its place.

    A folder above may be written by others if it is sticky, as /tmp: there all move only what is their own.
    """
    if not hasattr(os, "geteuid"):
        return
    _require_own(path, sticky_is_fine=False)
    above = os.path.dirname(path)
    while True:
        _require_own(above, sticky_is_fine=True)
        if above == os.path.dirname(above):
            return
        above = os.path.dirname(above)


def _require_own(path: str, sticky_is_fine: bool) -> None:
    found = os.stat(path)
    if found.st_uid not in (os.geteuid(), 0):
        raise Untrusted(f"{path} belongs to another user")
    if sticky_is_fine and found.st_mode & stat.S_ISVTX:
        return
    if found.st_mode & stat.S_IWOTH:
        raise Untrusted(f"everyone may write {path}")
    if found.st_mode & stat.S_IWGRP and not _is_own_group(found.st_gid):
        raise Untrusted(f"others of its group may write {path}")


def _is_own_group(gid: int) -> bool:
    """Whether a group is that of this user alone, which many systems make for each."""
    if sys.platform == "win32":
        return False
    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(gid)
    except KeyError:
        return False
    return (user.pw_gid, user.pw_name) == (gid, group.gr_name) and set(group.gr_mem) <= {user.pw_name}


def make_private(folder: str) -> None:
    """Make a folder, and those above that are missing, for this user alone."""
    missing = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for each in reversed(missing):
        with contextlib.suppress(FileExistsError):
            os.mkdir(each, 0o700)


# *** the key

_keys: dict[str, bytes] = {}


def key_path() -> str:
    """Where the key is: not beside the cache, with which it would be copied."""
    import platformdirs

    return os.path.join(platformdirs.user_state_dir("lazygrad", appauthor=False), "cache.key")


def user_key() -> bytes:
    """The key of this user, made when it is first asked for. Untrusted says why there is none."""
    path = key_path()
    found = _keys.get(path)
    if found is None:
        try:
            found = _keys[path] = _stored_or_new(
                os.path.realpath(os.path.dirname(path)), os.path.basename(path)
            )
        except OSError as error:
            raise Untrusted(f"the key {path} cannot be had ({error.strerror})") from None
    return found


def _stored_or_new(folder: str, name: str) -> bytes:
    make_private(folder)
    require_trusted(folder)
    path = os.path.join(folder, name)
    try:
        return _read(path)
    except FileNotFoundError:
        _make(path)
        return _read(path)


def _read(path: str) -> bytes:
    flags = (
        os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    )
    with open(os.open(path, flags), "rb") as file:
        found = os.fstat(file.fileno())
        if hasattr(os, "geteuid"):
            if found.st_uid != os.geteuid():
                raise Untrusted(f"the key {path} belongs to another user")
            if found.st_mode & 0o077:
                raise Untrusted(f"others may read the key {path}: delete it, and a new one is made")
        if not stat.S_ISREG(found.st_mode) or found.st_size != KEY_BYTES:
            raise Untrusted(f"{path} is not a key: delete it, and a new one is made")
        return file.read()


def _make(path: str) -> None:
    """A new key, whole from the first moment on; another process may have been faster."""
    part = f"{path}.{os.urandom(8).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        with open(os.open(part, flags, 0o600), "wb") as file:
            file.write(os.urandom(KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(part, path)
        except FileExistsError:
            pass
        except OSError:  # a file system without links: two at once may make two keys, and one is kept
            os.replace(part, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part)

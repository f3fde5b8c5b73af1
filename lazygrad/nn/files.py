"""Files that a script works with: downloads, fetched once and kept, and temporary ones."""

from __future__ import annotations

import hashlib
import os
import pathlib

from ..config import CACHEDB
from ..progress import bar_class
from ..runtime._cache import default_path
from ..runtime._trust import Untrusted, make_private, require_trusted
from .formats.writing import atomic_file

#: What `fetch` reads from; others (such as ftp:) are refused.
_SCHEMES = ("http://", "https://", "file://")


def fetch(
    url: str | os.PathLike[str],
    name: str | None = None,
    subdir: str | None = None,
    allow_caching: bool = True,
) -> pathlib.Path:
    """The path of a file that is downloaded once and kept beside the program cache.

    url            http, https or file; a path begins with `/` or `.` and is given back as it is
    name           the name it is kept under; a digest of the address if not given
    subdir         a folder among the downloads
    allow_caching  False downloads it again

    PermissionError says where others could have put another file in its place.
    """
    address = os.fspath(url)
    if address.startswith(("/", ".")):
        return pathlib.Path(address)
    if not address.startswith(_SCHEMES):
        raise ValueError(
            f"fetch reads {', '.join(_SCHEMES)} and paths that begin with / or ., not {address!r}"
        )
    file_name = name or hashlib.sha256(address.encode()).hexdigest()[:32]
    path = _downloads() / (subdir or "") / file_name
    if not path.resolve().is_relative_to(_downloads().resolve()):
        raise ValueError(f"a download is kept under {_downloads()}, which {file_name!r} would leave")
    make_private(os.path.realpath(path.parent))
    try:
        require_trusted(os.path.realpath(path.parent))
    except Untrusted as problem:
        raise PermissionError(
            f"{problem}: a download there may be another's; let CACHEDB name a file in a folder of your own"
        ) from None
    if path.is_file() and allow_caching:
        return path
    _download(address, path)
    return path


def _downloads() -> pathlib.Path:
    return pathlib.Path(CACHEDB.value or default_path()).parent / "downloads"


def _download(address: str, path: pathlib.Path) -> None:
    """Write it beside its place first: whoever sees the file sees all of it."""
    import urllib.error
    import urllib.request

    try:
        with atomic_file(path) as file, urllib.request.urlopen(address, timeout=10) as answer:
            total = int(answer.headers.get("content-length") or 0)
            with bar_class()(desc=address, unit="B", unit_scale=True, total=total or None) as bar:
                while chunk := answer.read(1 << 16):
                    file.write(chunk)
                    bar.update(len(chunk))
            size = file.tell()
            if total and size != total:
                raise OSError(f"{address} ended after {size} of {total} bytes; try again")
    except urllib.error.URLError as error:
        raise OSError(f"cannot fetch {address}: {error}") from error


def temp(name: str, append_user: bool = False) -> str:
    """The path of a temporary file of this name; with `append_user` one for each user of the machine."""
    import getpass
    import tempfile

    file_name = f"{name}.{getpass.getuser()}" if append_user else name
    return (pathlib.Path(tempfile.gettempdir()) / file_name).as_posix()

"""Downloads and temporary files."""

from __future__ import annotations

import os
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from lazygrad import Context
from lazygrad.nn.files import fetch, temp


@pytest.fixture
def downloads(tmp_path):
    with Context(CACHEDB=str(tmp_path / "cache" / "cache.db")):
        yield tmp_path / "cache" / "downloads"


@pytest.fixture
def server():
    """Serves `/data` whole and `/cut` short of what it promises; counts requests."""

    class Handler(BaseHTTPRequestHandler):
        count = 0

        def do_GET(self):
            Handler.count += 1
            if self.path == "/missing":
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("content-length", "4" if self.path == "/data" else "9")
            self.end_headers()
            self.wfile.write(b"abcd")

        def log_message(self, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", Handler
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_download_is_kept(downloads, server):
    address, handler = server
    path = fetch(f"{address}/data", "letters", subdir="models")
    assert path == downloads / "models" / "letters"
    assert path.read_bytes() == b"abcd"
    assert fetch(f"{address}/data", "letters", subdir="models") == path
    assert handler.count == 1
    fetch(f"{address}/data", "letters", subdir="models", allow_caching=False)
    assert handler.count == 2
    assert fetch(f"{address}/data").parent == downloads


@pytest.mark.parametrize(
    ("page", "message"), [("/cut", "retrieval|ended after|IncompleteRead"), ("/missing", "cannot fetch")]
)
def test_a_download_that_fails_leaves_nothing(downloads, server, page, message):
    with pytest.raises(OSError, match=message):
        fetch(server[0] + page)
    assert list(downloads.iterdir()) == []


def test_nothing_is_taken_from_where_others_write(downloads, server):
    downloads.mkdir(parents=True)
    (downloads / "letters").write_bytes(b"another's")
    downloads.chmod(0o777)
    with pytest.raises(PermissionError, match=r"everyone may write .*downloads: a download there may be"):
        fetch(f"{server[0]}/data", "letters")
    downloads.chmod(0o700)
    assert fetch(f"{server[0]}/data", "letters").read_bytes() == b"another's"


def test_paths_are_files_that_are_there(tmp_path):
    assert fetch(str(tmp_path / "x")) == tmp_path / "x"
    assert fetch("./x").name == "x"


def test_what_is_refused(downloads):
    with pytest.raises(ValueError, match="fetch reads http://, https://, file:// and paths"):
        fetch("ftp://host/file")
    with pytest.raises(ValueError, match="a download is kept under"):
        fetch("file:///etc/hostname", "../../outside")


def test_temporary_names():
    assert temp("weights") == os.path.join(tempfile.gettempdir(), "weights")
    assert temp("weights", append_user=True).startswith(temp("weights."))

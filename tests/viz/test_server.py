"""Who may ask the viewer's server, and what it says; the pictures without a browser; the command; VIZ=1."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import textwrap
import urllib.error
import urllib.parse
import urllib.request
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from lazygrad.__main__ import main
from lazygrad.nn.logs import Log
from lazygrad.serving import connections
from lazygrad.viz.files import read_recording, write_recording
from lazygrad.viz.schedule_text import largest_plan
from lazygrad.viz.server import PAGE, PARTS
from lazygrad.viz.svg import schedule_svg
from tests.helpers import PATIENCE, ROOT, needs
from tests.viz.conftest import serving

SCRIPT = """
    import sys
    from lazygrad import Tensor
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    print((x * 2).sum(1).tolist(), *sys.argv[1:])
"""


def asked(url: str, **headers: str) -> tuple[int, bytes, dict[str, str]]:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=names), timeout=PATIENCE) as answer:
            return answer.status, answer.read(), dict(answer.headers)
    except urllib.error.HTTPError as error:
        return error.code, error.read(), dict(error.headers)


@pytest.fixture
def script(tmp_path) -> Path:
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(SCRIPT))
    return path


@needs("starlette", "uvicorn")
def test_the_recording_is_served_in_parts(recorded):
    with serving(recorded) as url:
        status, body, headers = asked(f"{url}recording.json")
        assert status == 200
        found = json.loads(body)
        assert [k["name"] for k in found["kernels"]] == [k["name"] for k in recorded["kernels"]]
        assert all("details" not in kernel for kernel in found["kernels"])
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        number = next(k["number"] for k in recorded["kernels"] if "details" in k)
        details = json.loads(asked(f"{url}kernels/{number}.json")[1])
        assert details == json.loads(json.dumps(recorded["kernels"][number]["details"]))
        assert asked(f"{url}kernels/999.json")[0] == 404
        for name in PARTS:
            assert json.loads(asked(f"{url}parts/{name}.json")[1]) == json.loads(json.dumps(recorded[name]))
            assert name not in found
            assert found["counts"][name] == len(recorded[name])
        assert json.loads(asked(f"{url}plans/0.json")[1])["steps"] == recorded["plans"][0]["steps"]
        assert "steps" not in found["plans"][0]
        assert asked(f"{url}plans/999.json")[0] == asked(f"{url}parts/kernels.json")[0] == 404
        assert json.loads(asked(f"{url}trace.json")[1])["traceEvents"]
        for path in PAGE.iterdir():
            where = "" if path.name == "index.html" else path.name
            assert asked(url + where)[:2] == (200, path.read_bytes())
        assert asked(f"{url}../server.py")[0] == 404


@needs("starlette", "uvicorn")
@pytest.mark.parametrize(
    "path",
    [
        "",
        "page.js",
        "recording.json",
        "parts/graphs.json",
        "kernels/0.json",
        "plans/0.json",
        "trace.json",
        "kernels/999.json",
        "parts/none.json",
        "nowhere",
    ],
)
def test_foreign_requests_are_refused(recorded, path):
    with serving(recorded) as url:
        own = url[len("http://") : -1]
        for headers in (
            {"Host": "evil.example"},
            {"Host": "127.0.0.1.evil.example:80"},
            {"Origin": "http://evil.example"},
            {"Origin": "null"},
            {"Origin": "http://127.0.0.1:1"},
            {"Sec_Fetch_Site": "cross-site"},
            {"Sec_Fetch_Site": "same-site"},
        ):
            status, body, _ = asked(url + path, **headers)
            assert (status, body) == (403, b"this page answers to browsers on this machine only"), headers
        for headers in ({"Host": own}, {"Host": "localhost"}, {"Origin": f"http://{own}"}):
            assert asked(url + path, **headers)[0] == (404 if re.search("999|none|nowhere", path) else 200)


@needs("starlette", "uvicorn")
@pytest.mark.parametrize("kind", ["kernels", "plans"])
@pytest.mark.parametrize("name", ["9" * 5000, "-1", "1.0", "٣", "0x0", " 0", "x"])
def test_numbers_of_nothing(recorded, kind, name):
    with serving(recorded) as url:
        assert asked(f"{url}{kind}/{urllib.parse.quote(name)}.json")[0] == 404


def connected(url: str) -> socket.socket:
    sock = socket.socket()
    sock.settimeout(PATIENCE)
    sock.connect(("127.0.0.1", int(url.rstrip("/").rpartition(":")[2])))
    return sock


def until_closed(sock: socket.socket) -> int:
    """How many bytes come until the server closes; a connection that is cut is closed too."""
    count = 0
    with contextlib.suppress(ConnectionError):
        while part := sock.recv(1 << 20):
            count += len(part)
    return count


@needs("starlette", "uvicorn")
def test_connections_that_ask_for_nothing_lock_nobody_out(recorded, monkeypatch):
    monkeypatch.setattr(connections, "HEAD_S", 0.2)
    with serving(recorded) as url, contextlib.ExitStack() as stack:
        sleeping = [stack.enter_context(connected(url)) for _ in range(80)]
        for sock in sleeping:
            sock.sendall(b"GET /recording.json HT")
        assert asked(f"{url}recording.json")[0] == 200
        assert [until_closed(sock) for sock in sleeping] == [0] * 80


@needs("starlette", "uvicorn")
def test_a_loss_that_became_nan_is_json(recorded, tmp_path):
    log = Log(tmp_path / "run.jsonl")
    for loss in (1.0, float("nan"), float("inf")):
        log(loss=loss)

    def no_constant(text):
        raise AssertionError(text)

    with serving(recorded, log.path) as url:
        (run,) = json.loads(asked(f"{url}logs.json")[1], parse_constant=no_constant)
    assert [row["loss"] for row in run["rows"]] == [1.0, "nan", "inf"]


# ---- pictures ----


def hostile(recorded: dict) -> dict:
    """The recording with names that are markup."""
    found = json.loads(json.dumps(recorded))
    for kernel in found["kernels"]:
        kernel["name"] = f"<script>alert({kernel['number']})</script>"
        kernel["shape"] = '"><img src=x onerror=alert(1)>'
    found["calls"] = [
        ["<b>call</b>", "a&b<i>.py:1", "x = '</pre><script>alert(2)</script>' \x00\ud800"]
    ] * len(found["calls"])
    for plan in found["plans"]:
        for step in plan["steps"]:
            step["heading"] = "<script>alert(4)</script>"
            step["lines"] = [[mark, f"<img src=x onerror=alert(5)>{line}"] for mark, line in step["lines"]]
    for row in found["without"]:
        row["wanted"] = row["refused"] = "<b>bold</b>"
    for kernel in found["kernels"]:
        for row in kernel.get("details", {}).get("text_loops", {}).get("own", []):
            row[0] = "</span><script>alert(6)</script>"
    found["names"] = [f"<u>{name}</u>" for name in found["names"]]
    found["made"]["script"] = "</title><script>alert(3)</script>"
    return found


@pytest.mark.parametrize("change", [lambda recorded: recorded, hostile], ids=["plain", "hostile"])
def test_the_picture_has_a_box_for_each_kernel(recorded, change):
    text = schedule_svg(change(recorded))
    tree = ElementTree.fromstring(text)
    names = {element.tag.rpartition("}")[2] for element in tree.iter()}
    assert names == {"svg", "title", "style", "rect", "path", "text", "g"}
    boxes = [element for element in tree.iter() if element.tag.endswith("rect")]
    assert len(boxes) == len(largest_plan(recorded))
    if change is hostile:
        assert "&lt;script&gt;alert(" in text


# ---- the command ----


@pytest.fixture
def wide(monkeypatch) -> None:
    """A terminal in which no column is cut, however many digits a time has."""
    monkeypatch.setenv("COLUMNS", "300")


def test_a_script_as_text_and_picture(script, tmp_path, capsys, wide):
    assert main(["viz", str(script), "--text", "--svg", str(tmp_path / "a.svg"), "--", "word"]) == 0
    said = capsys.readouterr()
    assert re.search(r"r_\w+ .*sum.*it is a result", said.out)
    assert said.err.strip() == "[6.0, 14.0] word"  # the script's output; stdout is the command's
    assert ElementTree.parse(tmp_path / "a.svg").getroot().tag.endswith("svg")


def test_a_recording_is_saved_and_shown_again(script, tmp_path, capsys, wide):
    file, trace = str(tmp_path / "a.json.gz"), tmp_path / "trace.json"
    assert main(["viz", str(script), "--save", file]) == 0
    found = read_recording(file)
    assert found["made"]["script"] == str(script)
    assert any("details" in kernel for kernel in found["kernels"])
    assert main(["viz", file, "--text", "--trace", str(trace)]) == 0
    assert "it is a result" in capsys.readouterr().out
    assert len([e for e in json.loads(trace.read_text())["traceEvents"] if e["ph"] == "X"]) == len(
        found["events"]
    )


def test_names_of_a_recording_tell_the_terminal_nothing(recorded, tmp_path, capsys, wide, monkeypatch):
    monkeypatch.setenv("LINES", "200")  # all kernels
    kernels = [{**kernel, "name": "\x1b]0;x\x07\ud800"} for kernel in recorded["kernels"]]
    write_recording({**recorded, "kernels": kernels}, tmp_path / "a.json")
    for option in (["--text"], ["--depth", "4"]):
        assert main(["viz", str(tmp_path / "a.json"), *option]) == 0
        said = capsys.readouterr().out
        assert "\x1b" not in said
        assert "\ufffd]0;x\ufffd\ufffd" in said


def test_what_cannot_be_shown(tmp_path, capsys):
    path = tmp_path / "none.py"
    path.write_text("print(1)")
    assert main(["viz", str(path), "--text"]) == 1
    assert f"{path} runs no kernel" in capsys.readouterr().err
    assert main(["viz", str(tmp_path / "no.json"), "--text"]) == 1
    assert "cannot be read" in capsys.readouterr().err
    path.write_text("from lazygrad import Tensor\n(Tensor([1.0]) + 1).tolist()\nraise SystemExit(3)")
    assert main(["viz", str(path), "--text"]) == 3


@pytest.mark.parametrize("ending", ["", "raise SystemExit(3)"])
def test_the_flag_records_a_process(script, tmp_path, ending):
    script.write_text(script.read_text() + ending)
    env = {**os.environ, "PYTHONPATH": str(ROOT), "VIZ": "1", "TMPDIR": str(tmp_path)}
    line = [sys.executable, str(script)]
    done = subprocess.run(line, capture_output=True, text=True, env=env, timeout=PATIENCE)
    assert done.returncode == (3 if ending else 0), done.stderr
    assert done.stdout.splitlines()[-1] == "[6.0, 14.0]"
    (file,) = re.findall(r"VIZ: python -m lazygrad viz (\S+)  shows it", done.stderr)
    found = read_recording(file)
    assert {kernel["kind"] for kernel in found["kernels"]} == {"copy", "kernel"}
    assert any(line.endswith("script.py:4") for _, line, _ in found["calls"])

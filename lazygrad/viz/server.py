"""The page of a recording, served on the loopback to this machine's browsers only.

Nothing is written and nothing leaves the machine. A request that names another host than this one, or comes
from another site's page, is refused: a name that somebody lets lead to 127.0.0.1 must not read recordings.
"""

from __future__ import annotations

import json
import math
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..nn.logs import read_log
from ..serving.connections import timed_protocol
from .timeline import trace_events

PAGE = Path(__file__).parent / "page"
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
#: What the first view does not need is asked for when a view does.
PARTS = ("graphs", "events", "allocations", "arenas")
#: How many connections are open at most; those that ask for nothing are cut after some seconds.
CONNECTIONS = 512
#: Names of this machine.
HOSTS = ("localhost", "127.0.0.1", "[::1]")
#: What a page of ours may do: nothing with another host, no code that is not one of its files.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "worker-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def _row(rows: Sequence[Any], text: str) -> Any:
    """The row of this number; None for none such."""
    is_number = text.isascii() and text.isdecimal() and len(text) < 10
    return rows[int(text)] if is_number and int(text) < len(rows) else None


def application(recording: dict[str, Any], logs: Sequence[Path] = ()) -> Any:
    """The ASGI application: the page's files, `/recording.json` with what every view needs,
    `/parts/NAME.json` with what some need, `/kernels/N.json` and `/plans/N.json` with what there is to see
    of one, `/trace.json` for Perfetto, `/logs.json` with learning curves.
    """
    from starlette.applications import Starlette
    from starlette.datastructures import Headers
    from starlette.responses import Response
    from starlette.routing import Route

    plans = recording.get("plans", [])
    steps = ("steps", "steps_left_out")
    brief = [{k: v for k, v in kernel.items() if k != "details"} for kernel in recording["kernels"]]
    for row, each in zip(brief, recording["kernels"], strict=True):
        found = each.get("details")
        row["has_details"], row["cycles"] = found is not None, found["cycles"] if found else None
    whole = {
        **{name: value for name, value in recording.items() if name not in PARTS},
        "kernels": brief,
        "plans": [{k: v for k, v in plan.items() if k not in steps} for plan in plans],
        "counts": {name: len(recording[name]) for name in PARTS},
        "logs": [path.name for path in logs],
    }
    texts: dict[str, bytes] = {}

    def answer(kind: str, content: bytes) -> Any:
        return Response(content, 200, HEADERS, kind)

    def as_json(value: Any) -> Any:
        text = json.dumps(value, separators=(",", ":"), allow_nan=False)
        return answer("application/json", text.encode())

    def cached(name: str, value: Any) -> Any:
        """What does not change is written once."""
        if name not in texts:
            texts[name] = json.dumps(value, separators=(",", ":")).encode()
        return answer("application/json", texts[name])

    def missing(what: str) -> Any:
        return Response(f"there is no such {what}", 404, HEADERS, "text/plain")

    async def all_of_it(request: Any) -> Any:
        return cached("", whole)

    async def part(request: Any) -> Any:
        name = request.path_params["name"]
        return cached(name, recording[name]) if name in PARTS else missing("part")

    async def kernel(request: Any) -> Any:
        found = _row(recording["kernels"], request.path_params["number"])
        return missing("kernel") if found is None else as_json(found.get("details"))

    async def plan(request: Any) -> Any:
        found = _row(plans, request.path_params["number"])
        return missing("plan") if found is None else as_json({name: found[name] for name in steps})

    async def trace(request: Any) -> Any:
        return as_json(trace_events(recording))

    async def curves(request: Any) -> Any:
        return as_json([{"name": path.name, "rows": _rows(path)} for path in logs])

    routes = [
        Route("/recording.json", all_of_it),
        Route("/parts/{name}.json", part),
        Route("/kernels/{number}.json", kernel),
        Route("/plans/{number}.json", plan),
        Route("/trace.json", trace),
        Route("/logs.json", curves),
    ]
    for path in sorted(PAGE.iterdir()):
        if path.suffix in TYPES:
            where = "/" if path.name == "index.html" else f"/{path.name}"
            routes.append(Route(where, _file(path, answer)))
    inner = Starlette(routes=routes)

    async def of_this_machine(scope: Any, receive: Any, send: Any) -> None:
        refused = Response("this page answers to browsers on this machine only", 403, HEADERS, "text/plain")
        await (inner if _is_ours(Headers(scope=scope)) else refused)(scope, receive, send)

    return of_this_machine


def _file(path: Path, answer: Any) -> Any:
    content, kind = path.read_bytes(), TYPES[path.suffix]

    async def give(request: Any) -> Any:
        return answer(kind, content)

    return give


def _rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a log; a number that JSON does not have, as of a loss that became NaN, is a word."""
    try:
        rows = read_log(path)
    except (OSError, ValueError):
        return []
    return [{name: _json_number(value) for name, value in row.items()} for row in rows]


def _json_number(value: Any) -> Any:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _is_ours(headers: Any) -> bool:
    """Whether a request is meant for this machine, and comes from this page or from no page."""
    host = headers.get("host", "")
    if _without_port(host) not in HOSTS:
        return False
    origin = headers.get("origin")
    if origin is not None and origin != f"http://{host}":
        return False
    return headers.get("sec-fetch-site", "none") in ("none", "same-origin")


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() else host


class Server:
    """A recording at `url`, as soon as it is made; `run` answers until Ctrl-C, or `stop` from any thread.

    OSError where the port is taken; port 0 takes a free one.
    """

    def __init__(self, recording: dict[str, Any], port: int = 0, logs: Sequence[Path] = ()) -> None:
        try:
            import starlette  # noqa: F401
            import uvicorn
        except ModuleNotFoundError as error:
            name = (error.name or "").partition(".")[0]
            raise ModuleNotFoundError(f'the viewer needs {name}: pip install "lazygrad[viz]"') from None
        config = uvicorn.Config(
            application(recording, logs),
            ws="none",
            lifespan="off",
            log_level="warning",
            access_log=False,
            server_header=False,
            http=timed_protocol(),
            limit_concurrency=CONNECTIONS,
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self._socket = socket.create_server(("127.0.0.1", port))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/"

    def run(self) -> None:
        """Answer until told to end."""
        try:
            self._server.run(sockets=[self._socket])
        except KeyboardInterrupt:  # which uvicorn raises again when it has ended
            return
        finally:
            self._socket.close()

    def stop(self) -> None:
        """End, as Ctrl-C does."""
        self._server.should_exit = True

"""The HTTP server: uvicorn on a socket of our own, until Ctrl-C or SIGTERM.

When it is told to end it takes no new requests, gives those that are being computed some seconds to finish,
and then ends them with an error that says so.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Sequence
from typing import Any

from .app import LOOPBACK, Api, Limits, Served
from .connections import timed_protocol
from .engine import Engine

#: Seconds by which connections that stay after the engine has ended are cut.
CUT_S = 3.0
#: How many connections are open at most besides those whose requests are computed or wait.
MORE_CONNECTIONS = 256


class Server:
    """A model served at `url` as soon as it is made; `run` answers until it is told to end.

    host, port  where; port 0 takes a free one       waiting  how many answers may wait for one of `slots`
    key         what clients must send, if not None  grace_s  how long answers may go on when it is to end

    OSError where the address cannot be had.
    """

    def __init__(
        self,
        model: Served,
        host: str = "127.0.0.1",
        port: int = 8000,
        slots: int = 4,
        waiting: int = 32,
        key: str | None = None,
        limits: Limits | None = None,
        grace_s: float = 10.0,
        unread: int = 256,
    ) -> None:
        self.engine = Engine(model.batch, slots, waiting, unread)
        self.grace_s = grace_s
        self.api = Api(model, self.engine, limits, key, LOOPBACK if is_loopback(host) else None)
        self._server = self._make(slots + waiting + MORE_CONNECTIONS)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, port), family=family)
        self.port: int = self._socket.getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self.port}/v1"

    def run(self) -> None:
        """Answer until Ctrl-C or SIGTERM (on the main thread), or `stop`."""
        self.engine.start()
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._socket.close()
            self.engine.stop()
            self.engine.wait()

    def stop(self) -> None:
        """End as on SIGTERM; from any thread."""
        self._server.should_exit = True

    def _make(self, connections: int) -> Any:
        import asyncio

        try:
            import starlette  # noqa: F401
            import uvicorn
        except ModuleNotFoundError as error:
            name = (error.name or "").partition(".")[0]
            raise ModuleNotFoundError(f'the server needs {name}: pip install "lazygrad[serve]"') from None

        engine = self.engine

        grace_s = self.grace_s

        class Ending(uvicorn.Server):  # type: ignore[misc]
            """A server that lets answers finish when it ends."""

            def handle_exit(self, number: int, frame: Any) -> None:
                """Being told to end is no failure of the process. The second time it waits for nothing."""
                self.force_exit: bool = self.should_exit
                self.should_exit: bool = True

            async def shutdown(self, sockets: Sequence[socket.socket] | None = None) -> None:
                engine.close()
                later = asyncio.get_running_loop().call_later(grace_s, engine.stop)
                await super().shutdown(sockets)
                later.cancel()

        config = uvicorn.Config(
            self.api.app(),
            http=timed_protocol(),
            ws="none",
            lifespan="off",
            log_level="warning",
            access_log=False,
            server_header=False,
            limit_concurrency=connections,
            timeout_graceful_shutdown=grace_s + CUT_S,
        )
        return Ending(config)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server at that address."""
    return host in LOOPBACK or host.startswith("127.")


def warn_of_openness(host: str, key: str | None) -> None:
    """Say so where everyone may ask."""
    if key is None and not is_loopback(host):
        text = f"warning: whoever reaches {host} may use the model; --api-key or LAZYGRAD_API_KEY sets a key"
        print(text, file=sys.stderr)

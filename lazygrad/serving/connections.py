"""Connections that nobody can hold open for nothing: a client must say what it wants in time, and take what
it is sent. Of the servers of lazygrad, each of which has room for so many connections.
"""

from __future__ import annotations

import functools
from typing import Any

#: Seconds in which the head of a request must have come.
HEAD_S = 10.0
#: Seconds in which a client must have taken something of what waits for it.
TAKE_S = 60.0


@functools.cache
def timed_protocol() -> Any:
    """uvicorn's protocol of HTTP with these limits; `scope["state"]["abort"]()` cuts a connection.

    ModuleNotFoundError where uvicorn is not there.
    """
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Connection(H11Protocol):  # type: ignore[misc]
        """A connection that can be cut, and whose client may not sleep."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.app_state: Any = {**self.app_state, "abort": transport.abort}
            self._head: Any = None
            self._unsent = 0
            self._taking: Any = self.loop.call_later(TAKE_S, self._expect_progress)
            self._expect_head()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._expect_head()

        def _expect_head(self) -> None:
            """Begin to wait for a head, if none is waited for; between requests uvicorn waits itself."""
            begun = self.cycle is not None and not self.cycle.response_complete
            if begun and self._head is not None:
                self._head.cancel()
                self._head = None
            elif not begun and self._head is None:
                self._head = self.loop.call_later(HEAD_S, self._too_slow)

        def _too_slow(self) -> None:
            self._head = None
            if self.cycle is None or self.cycle.response_complete:
                self.transport.abort()

        def _expect_progress(self) -> None:
            """Cut a connection of whose bytes no fewer wait than some time ago, also one that is to close."""
            unsent = self.transport.get_write_buffer_size()
            if unsent and unsent >= self._unsent > 0:
                self.transport.abort()
                return
            self._unsent = unsent
            self._taking = self.loop.call_later(TAKE_S, self._expect_progress)

        def connection_lost(self, error: Exception | None) -> None:
            for timer in (self._head, self._taking):
                if timer is not None:
                    timer.cancel()
            super().connection_lost(error)

    return Connection

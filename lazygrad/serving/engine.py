"""Requests of many clients, computed together: one thread takes steps, and every row of the batch is a
request's.

A request (`Ticket`) has one or more rows; a row is one answer to one prompt. Rows wait until the batch has
a place for them, join it at any step, and leave it when they end or when their client does. Only the
engine's thread touches the batch. What a step gives is put into the ticket's own queue and the ticket's
`notify` is called, which must return at once: so nobody who reads slowly holds up the others. A queue is
bounded, and a ticket whose queue is full is dropped.
"""

from __future__ import annotations

import itertools
import sys
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from ..locks import Working
from .errors import ApiError


class Batch(Protocol):
    """Sequences at different positions that decode together: what the engine needs of a model."""

    def add(self, prompt: Sequence[int], sampling: Any, max_tokens: int, stop: Sequence[str]) -> Any:
        """Begin a sequence; a name for it."""

    def step(self) -> Iterable[tuple[Any, int | None, str, str | None, Exception | None]]:
        """The next token of every sequence: (name, token, text that is certain, why it ended or None, what it
        failed with or None).
        """

    def cancel(self, handle: Any) -> None:
        """End a sequence."""


class Row(NamedTuple):
    """One answer that is wanted."""

    prompt: Sequence[int]  # tokens
    sampling: Any  # how tokens are chosen, as the batch takes it
    max_tokens: int
    stop: Sequence[str] = ()  # texts before which the answer ends


class Token(NamedTuple):
    """A row's next token, or text that was held back until now (token None)."""

    row: int
    token: int | None
    piece: str


class End(NamedTuple):
    """A row ended: at a stop (`"stop"`) or because it is as long as was allowed (`"length"`)."""

    row: int
    reason: str


class Failed(NamedTuple):
    """The whole request ended without its answer."""

    error: ApiError


Event = Token | End | Failed

SHUTTING_DOWN = "the server is shutting down"
#: How much the newest row weighs in what is known of how long rows take.
SMOOTHING = 0.3


class Ticket:
    """A request in the engine. `take()` gives what happened since it was last asked."""

    def __init__(
        self, rows: Sequence[Row], client: Hashable, notify: Callable[[], None], unread: int
    ) -> None:
        self.rows, self.client, self.notify, self.unread = rows, client, notify, unread
        self.dropped = False  #: whether its client read too slowly
        self.over = False  #: whether the last event is in the queue
        self._left = len(rows)
        self._events: deque[Event] = deque()

    def take(self) -> list[Event]:
        """The events since the last call, in order; this makes room in the queue."""
        found: list[Event] = []
        while self._events:
            found.append(self._events.popleft())
        return found

    def _put(self, event: Event) -> bool:
        """Add an event; False where there is no room for it. By the engine's thread."""
        if self.over:
            return True
        if isinstance(event, Token) and len(self._events) >= self.unread:
            return False
        self._left -= isinstance(event, End)
        self.over = isinstance(event, Failed) or self._left == 0
        self._events.append(event)
        self.notify()
        return True


class Engine:
    """Runs a batch on a thread of its own.

    make_batch  gives the batch, and a new one where a step of it failed
    slots       how many rows are computed at once
    waiting     how many rows wait besides, before requests are refused with status 429
    unread      how many events of a row its client may leave unread before it is dropped
    """

    def __init__(
        self, make_batch: Callable[[], Batch], slots: int = 4, waiting: int = 32, unread: int = 256
    ) -> None:
        self.slots, self.most_waiting, self.unread = slots, waiting, unread
        self.counts: Counter[str] = (
            Counter()
        )  #: steps, tokens, requests, refused, dropped, cancelled, failures
        self._make_batch = make_batch
        self._batch: Batch | None = None
        self._change = threading.Condition()
        self._waiting: list[tuple[int, Ticket, int]] = []  # (its number in the order of coming, ticket, row)
        self._active: dict[Hashable, tuple[Ticket, int]] = {}  # changed by the thread alone
        self._leaving: list[Ticket] = []  # their clients are gone
        self._number = itertools.count()
        self._closed = False  # takes no more requests
        self._stopping = False
        self._busy = 0.0  # seconds computed since a row ended
        self._per_row = 1.0  # seconds computed from the end of one row to that of the next, about
        self._thread: Working | None = None

    # ---- what clients call, on any thread ----

    def start(self) -> None:
        """Begin: the thread runs until `stop`."""
        self._thread = Working(self._run)

    def submit(self, rows: Sequence[Row], notify: Callable[[], None], client: Hashable = None) -> Ticket:
        """Ask for answers. `notify()` is called on the engine's thread whenever `take()` has something new.

        Raises ApiError 429 where too many are waiting, and 503 where the engine is closing.
        """
        ticket = Ticket(rows, client, notify, self.unread * len(rows))
        with self._change:
            self._require_room(len(rows))
            self.counts["requests"] += 1
            self._waiting += [(next(self._number), ticket, row) for row in range(len(rows))]
            self._change.notify()
        return ticket

    def require_room(self, rows: int) -> None:
        """Raise what `submit` of so many rows would raise now: before work is done for them."""
        with self._change:
            self._require_room(rows)

    def _require_room(self, rows: int) -> None:
        if self._closed:
            raise ApiError(503, SHUTTING_DOWN, code="shutting_down")
        if len(self._active) + len(self._waiting) + rows > self.slots + self.most_waiting:
            self.counts["refused"] += 1
            raise self._too_busy(rows)

    def cancel(self, ticket: Ticket) -> None:
        """Its client is gone: its places in the batch and in the queue are free from the next step on."""
        with self._change:
            if not ticket.over:
                self._leaving.append(ticket)
                self._change.notify()

    def close(self) -> None:
        """Take no more requests, and end those that wait; those that are being computed go on."""
        with self._change:
            self._closed = True
            waiting = {id(ticket): ticket for _, ticket, _ in self._waiting}
            begun = {id(ticket) for ticket, _ in self._active.values()}
            ended = [ticket for name, ticket in waiting.items() if name not in begun]
            self._waiting = [entry for entry in self._waiting if id(entry[1]) in begun]
        for ticket in ended:
            ticket._put(Failed(ApiError(503, SHUTTING_DOWN, code="shutting_down")))

    def stop(self) -> None:
        """End everything; the thread ends after the step that it is in. `wait` waits for it."""
        with self._change:
            self._closed = self._stopping = True
            self._change.notify()

    def wait(self) -> None:
        """Wait for the thread's end."""
        if self._thread is not None:
            self._thread.wait()

    def state(self) -> dict[str, int]:
        """How many rows are computed and wait now, and what was done since the start."""
        with self._change:
            now = {"active": len(self._active), "waiting": len(self._waiting), "slots": self.slots}
            return {**now, **self.counts}

    def _too_busy(self, wanted: int) -> ApiError:
        seconds = min(max(round(wanted * self._per_row), 1), 60)  # until so many places are free
        message = (
            f"{len(self._active)} answers are being computed and {len(self._waiting)} wait, of at most "
            f"{self.slots} and {self.most_waiting}: try again in {seconds} s"
        )
        return ApiError(429, message, code="rate_limit_exceeded", retry_after=str(seconds))

    # ---- the thread ----

    def _run(self) -> None:
        while True:
            with self._change:
                while not (self._waiting or self._active or self._leaving or self._stopping):
                    self._change.wait()
                if self._stopping:
                    break
                leaving, self._leaving = self._leaving, []
                for ticket in leaving:
                    self.counts["cancelled"] += 1
                    ticket.over = True
                gone = {id(ticket) for ticket in leaving}
                self._waiting = [entry for entry in self._waiting if id(entry[1]) not in gone]
            try:
                for ticket in leaving:
                    self._free(ticket)
                self._admit()
                if self._active:
                    self._step()
            except Exception as error:  # a bug, or no memory: this batch is lost, the server goes on
                self._fail(error)
        self._end_all(ApiError(503, SHUTTING_DOWN, code="shutting_down"))

    def _admit(self) -> None:
        """Rows that wait take free places: first those of the client that has fewest, then who came first."""
        batch = self._batch = self._batch or self._make_batch()
        while len(self._active) < self.slots:
            having = Counter(ticket.client for ticket, _ in self._active.values())
            with self._change:
                if not self._waiting:
                    return
                entry = min(self._waiting, key=lambda entry: (having[entry[1].client], entry[0]))
                self._waiting.remove(entry)
            _, ticket, number = entry
            row = ticket.rows[number]
            try:
                handle = batch.add(row.prompt, row.sampling, row.max_tokens, row.stop)
            except Exception as error:  # of this row; the batch is as it was
                is_wrong = isinstance(error, ValueError)
                self._end_alone(ticket, error, ApiError(400, str(error)) if is_wrong else _lost(error))
                continue
            self._active[handle] = ticket, number

    def _step(self) -> None:
        batch, active = self._batch, self._active
        assert batch is not None
        start = time.perf_counter()
        slow: list[Ticket] = []
        rows_now = len(active)
        ended = 0
        for handle, token, piece, reason, error in batch.step():
            found = active.get(handle)
            if found is None:
                continue
            ticket, row = found
            self.counts["tokens"] += token is not None
            if (token is not None or piece) and not ticket._put(Token(row, token, piece)):
                slow.append(ticket)
            if error is not None:
                del active[handle]
                self._end_alone(ticket, error, _lost(error))
            elif reason is not None:
                del active[handle]
                ended += 1
                ticket._put(End(row, reason))
        self.counts["steps"] += 1
        self.counts["most_together"] = max(self.counts["most_together"], rows_now)
        self._note_time(time.perf_counter() - start, ended)
        for ticket in slow:
            self._drop(ticket)

    def _note_time(self, seconds: float, ended: int) -> None:
        self._busy += seconds
        if ended:
            self._per_row += SMOOTHING * (self._busy / ended - self._per_row)
            self._busy = 0.0

    def _drop(self, ticket: Ticket) -> None:
        if ticket.over:
            return
        self.counts["dropped"] += 1
        ticket.dropped = True
        self._free(ticket)
        self._forget(ticket)
        ticket._put(Failed(ApiError(503, "the client reads too slowly", code="client_too_slow")))

    def _free(self, ticket: Ticket) -> None:
        """Take a ticket's rows out of the batch."""
        for handle in [handle for handle, (owner, _) in self._active.items() if owner is ticket]:
            del self._active[handle]
            assert self._batch is not None
            self._batch.cancel(handle)

    def _forget(self, ticket: Ticket) -> None:
        with self._change:
            self._waiting = [entry for entry in self._waiting if entry[1] is not ticket]

    def _end_alone(self, ticket: Ticket, error: Exception, said: ApiError) -> None:
        """End a request one of whose rows failed; all others go on."""
        self._free(ticket)
        self._forget(ticket)
        if said.status >= 500:
            self.counts["failures"] += 1
            print("lazygrad serving: an answer failed", file=sys.stderr)
            traceback.print_exception(error)
        ticket._put(Failed(said))

    def _fail(self, error: Exception) -> None:
        self.counts["failures"] += 1
        print(f"lazygrad serving: a step failed, {len(self._active)} answers are lost", file=sys.stderr)
        traceback.print_exception(error)
        tickets = {id(ticket): ticket for ticket, _ in self._active.values()}
        if self._batch is None:  # not even a batch can be made: whoever waits would wait for ever
            tickets |= {id(ticket): ticket for _, ticket, _ in self._waiting}
        self._end(list(tickets.values()), _lost(error))

    def _end_all(self, error: ApiError) -> None:
        tickets = {id(ticket): ticket for ticket, _ in self._active.values()}
        tickets |= {id(ticket): ticket for _, ticket, _ in self._waiting}
        self._end(list(tickets.values()), error)

    def _end(self, tickets: list[Ticket], error: ApiError) -> None:
        """End these tickets, and the batch."""
        self._batch = None
        self._active.clear()
        for ticket in tickets:
            self._forget(ticket)
            ticket._put(Failed(error))


def _lost(error: Exception) -> ApiError:
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return ApiError(500, f"computing the answer failed: {said}", code="engine_failure")

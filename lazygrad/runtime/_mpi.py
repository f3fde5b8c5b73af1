"""Collectives between processes, by MPI's messages on the memory of buffers: nothing is copied on the way.

A collective is begun by `start`, and is a few phases of messages (_rank_messages.py). It goes on whenever a
request is asked or waited for, so whoever waits for other ranks in another way goes on with what was begun,
too: `until`.
"""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..dtype import DType
from ._rank_messages import COLLECTIVES, Group, Phase

#: A wait asks without a pause for so many seconds, then lets others run in between, then sleeps.
SPIN, PAUSE, SLEEP = 0.0002, 0.002, 0.0002

#: Seconds between two tellings that a collective begins: that takes 20 µs.
TELL = 0.02


class Request:
    """A collective that was begun. Its buffers must be left alone until it is done."""

    __slots__ = ("_pending", "_phases", "_transport", "done", "label")

    def __init__(self, transport: Transport, label: str, phases: Iterator[Phase]) -> None:
        self._transport, self.label, self._phases = transport, label, phases
        self._pending: Phase = []
        self.done = False

    def test(self) -> bool:
        """Whether it is done; it goes on as far as it can, and so does everything else that was begun."""
        self._transport.advance()
        return self.done

    def wait(self) -> None:
        """Return when it is done."""
        if not self.test():
            self._transport.wait(self)

    def go_on(self, are_done: Callable[[Phase], bool]) -> bool:
        """Begin each phase whose messages are there: whether there are none left."""
        while not self._pending or are_done(self._pending):
            following = next(self._phases, None)
            if following is None:
                self.done = True
                return True
            self._pending = following
            self._transport.steps += 1
        return False


class Transport:
    """The messages of this process with the others of its world.

    rank, size   which process this is, and how many there are
    last         the collective that was begun last, in words: what is told of a rank that dies
    waiting      the one that is waited for; None while the program runs
    steps        how many phases have begun: a sign of life

    All ranks must begin the collectives that concern them in one order. Messages of different collectives do
    not match, so ranks that do not agree wait forever, and somebody has to look for that (_side_channel.py).
    """

    def __init__(self, communicator: Any = None) -> None:
        from mpi4py import MPI

        self.comm = MPI.COMM_WORLD.Dup() if communicator is None else communicator
        self.rank: int = self.comm.Get_rank()
        self.size: int = self.comm.Get_size()
        self.last = "none"
        self.waiting: str | None = None
        self.steps = self.begun = 0
        self._bytes, self._are_done = MPI.BYTE, MPI.Request.Testall
        self._most_tag = int(self.comm.Get_attr(MPI.TAG_UB) or 0)
        self._active: list[Request] = []
        self._counts = [0] * self.size  # collectives together with each rank, the same number on both sides
        self._spare: dict[int, list[Any]] = {}
        #: Told that a collective begins, now and then.
        self.tell: Callable[[], None] | None = None
        self._reported = 0.0
        #: What a device waits in, while the host does not: of collectives that go another way.
        self.waits_elsewhere: Callable[[], str | None] = lambda: None
        self._known: dict[Any, tuple[int, str]] = {}

    def prepare(
        self,
        kind: str,
        ranks: tuple[int, ...],
        op: str | None,
        sends: Sequence[Any],
        receives: Sequence[Any],
        dtype: DType,
    ) -> Callable[[], Request]:
        """What begins a collective of `ranks`, which all have to call it, as often as it is called, with
        contiguous memory on the host.

        kind            sends                          receives
        all_reduce      one                            one: all of them combined
        reduce_scatter  one for each of the ranks      one: those for this rank combined
        all_gather      one                            one from each of the ranks
        all_to_all      one for each of the ranks      one from each of the ranks
        broadcast       one, on the first of `ranks`   one, on the others (the first may have one too)
        send            as all_to_all, empty but for one other rank at most

        op  how values are combined (`_rank_sums.OPS`); None where they are not

        Lengths may differ between ranks, and be 0. Only all_reduce may have its result where its input is.
        """
        if self.rank not in ranks:
            raise ValueError(f"rank {self.rank} takes no part in a collective of the ranks {ranks}")
        make = COLLECTIVES.get(kind)
        if make is None:
            raise ValueError(f"a collective is one of {', '.join(COLLECTIVES)}, not {kind!r}")
        me, size = ranks.index(self.rank), len(ranks)
        out, into = [*map(_bytes_of, sends)], [*map(_bytes_of, receives)]
        phases = make(me, size, op, out, into, dtype)
        check, label = self._words(kind, ranks, op, dtype, max(sum(map(len, out)), sum(map(len, into))))
        # From the next rank on, so that not all begin with the same one.
        peers = tuple([(me + step) % size for step in range(1, size)])

        def begin() -> Request:
            self.last = label
            self._note_begin()
            tags = {place: self.tag(ranks[place], check) for place in peers}
            request = Request(self, label, phases(Group(self, ranks, me, peers, tags)))
            if not request.go_on(self._are_done):
                self._active.append(request)
            return request

        return begin

    def start(self, *what: Any) -> Request:
        """Begin a collective: what `prepare` is given."""
        return self.prepare(*what)()

    def broadcast(self, value: Any) -> Any:
        """What rank 0 was given, on all ranks: any value that can be pickled."""
        return self._of_all("broadcast of a Python value", self.comm.bcast, value)

    def gather(self, value: Any) -> list[Any]:
        """What each rank was given, on all ranks, in their order: values that can be pickled."""
        found: list[Any] = self._of_all("gathering of Python values", self.comm.allgather, value)
        return found

    def _of_all(self, label: str, function: Callable[[Any], Any], value: Any) -> Any:
        self.last = self.waiting = label
        self._note_begin()
        try:
            self.until(self.comm.Ibarrier().Test)
            return function(value)
        finally:
            self.waiting = None

    def note(self, kind: str, ranks: tuple[int, ...], op: str | None, dtype: DType, nbytes: int) -> str:
        """Count a collective that goes another way (_nccl.py) as begun; what people are told of it."""
        _, self.last = self._words(kind, ranks, op, dtype, nbytes)
        self._note_begin()
        return self.last

    def _note_begin(self) -> None:
        self.begun += 1
        if self.tell is not None:
            now = time.perf_counter()
            if now - self._reported > TELL:
                self._reported = now
                self.tell()

    def advance(self) -> None:
        """Go on with everything that was begun: other ranks may wait for a later collective first."""
        ended = [request.go_on(self._are_done) for request in self._active]
        if True in ended:
            self._active = [request for request in self._active if not request.done]

    def wait(self, request: Request) -> None:
        """Go on with everything until this is done."""
        self.waiting = request.label
        try:
            self.until(lambda: request.done)
        finally:
            self.waiting = None

    def finish(self) -> None:
        """Go on until everything that was begun is done: other ranks wait for this one's part of it."""
        while self._active:
            self.wait(self._active[0])

    @property
    def is_busy(self) -> bool:
        """Whether something that was begun is not done."""
        return bool(self._active)

    def until(self, is_over: Callable[[], bool]) -> None:
        """Go on with everything that was begun until something else is over."""
        begun = time.perf_counter()
        while not is_over():
            self.advance()
            waited = time.perf_counter() - begun
            if waited > PAUSE:
                time.sleep(SLEEP)
            elif waited > SPIN:
                os.sched_yield() if hasattr(os, "sched_yield") else time.sleep(0)

    def _words(
        self, kind: str, ranks: tuple[int, ...], op: str | None, dtype: DType, nbytes: int
    ) -> tuple[int, str]:
        """A number of 16 bits that other collectives probably do not have, and what people are told."""
        key = kind, ranks, op, dtype, nbytes
        found = self._known.get(key)
        if found is None:
            whole = ranks == tuple(range(self.size))
            among = "all ranks" if whole else f"ranks {', '.join(map(str, ranks))}"
            what = f"{kind} ({op})" if op else kind
            # All ranks tell the same, so nothing of what is another length on each.
            size = "" if kind in ("all_to_all", "send") else f"{nbytes} bytes of "
            label = f"{what} of {size}{str(dtype).removeprefix('dtypes.')} between {among}"
            alike = kind, ranks, op, dtype.name
            if len(self._known) > 4096:
                self._known.clear()
            found = self._known[key] = zlib.crc32(repr(alike).encode()) & 0xFFFF, label
        return found

    def tag(self, peer: int, check: int) -> int:
        """What the next collective's messages with a rank are known by, but for their phase (two bits)."""
        self._counts[peer] += 1
        count = self._counts[peer] % (1 << 12)
        return count << 2 | check << 14 if self._most_tag >= 1 << 30 else count << 2

    def isend(self, part: Any, peer: int, tag: int) -> Any:
        return self.comm.Isend((part, self._bytes), peer, tag)

    def irecv(self, part: Any, peer: int, tag: int) -> Any:
        return self.comm.Irecv((part, self._bytes), peer, tag)

    def borrow(self, nbytes: int) -> Any:
        """Memory for what comes in; `give_back` keeps it for the next collective."""
        kept = self._spare.get(nbytes)
        return kept.pop() if kept else memoryview(bytearray(nbytes))

    def give_back(self, memory: Sequence[Any]) -> None:
        for each in memory:
            kept = self._spare.setdefault(len(each), [])
            if len(kept) < 64:
                kept.append(each)


_EMPTY = memoryview(bytearray())


def _bytes_of(buffer: Any) -> Any:
    view = memoryview(buffer)
    return view.cast("B") if view.nbytes else _EMPTY

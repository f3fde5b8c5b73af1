"""Collectives between processes, by MPI's messages on the memory of buffers: nothing is copied on the way.

A collective is begun by `start`, and is a few phases of messages (a generator that yields what it waits for).
It goes on whenever a request is asked or waited for, so whoever waits for other ranks in another way goes on
with what was begun, too: `until`. Sums are not MPI's own: those differ in their last bits
with what arrives first, may be other ones on other ranks where there are NaNs, and MPI has no floats of 16
bits. Each rank adds up its part, in the order of the ranks, and sends it to the others.
"""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..dtype import DType
from ._rank_sums import combiner

#: Bytes that are summed at once: they stay in a cache, and the sum goes out while the next ones come in.
PIECE = 1 << 20
#: How many pieces come in at once.
AHEAD = 3
#: A sum of so many bytes, over all ranks, is done by each of them: one message is faster than two.
SMALL = 1 << 16
#: Bytes of one message: MPI counts in 31 bits.
MOST = 1 << 30
#: A wait asks without a pause for so many seconds, then lets others run in between, then sleeps.
SPIN, PAUSE, SLEEP = 0.0002, 0.002, 0.0002

#: Seconds between two tellings that a collective begins: that takes 20 µs.
TELL = 0.02

#: What the messages of one phase wait for.
Phase = list[Any]


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
        self._told = 0.0
        #: What a device waits in, while the host does not: of collectives that go another way.
        self.waits_elsewhere: Callable[[], str | None] = lambda: None
        self._known: dict[Any, tuple[int, str]] = {}

    def start(
        self,
        kind: str,
        ranks: tuple[int, ...],
        op: str | None,
        sends: Sequence[Any],
        receives: Sequence[Any],
        dtype: DType,
    ) -> Request:
        """Begin a collective of `ranks`, which all have to call this, with contiguous memory on the host.

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
        phases = _KINDS.get(kind)
        if phases is None:
            raise ValueError(f"a collective is one of {', '.join(_KINDS)}, not {kind!r}")
        out, into = [_bytes_of(each) for each in sends], [_bytes_of(each) for each in receives]
        nbytes = max(sum(map(len, out)), sum(map(len, into)))
        check, self.last = self._words(kind, ranks, op, dtype, nbytes)
        self._note_begin()
        request = Request(self, self.last, phases(Group(self, ranks, check), op, out, into, dtype))
        if not request.go_on(self._are_done):
            self._active.append(request)
        return request

    def broadcast(self, value: Any) -> Any:
        """What rank 0 was given, on all ranks: any value that can be pickled."""
        self.last = self.waiting = "broadcast of a Python value"
        self._note_begin()
        try:
            self.until(self.comm.Ibarrier().Test)
            return self.comm.bcast(value)
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
            if now - self._told > TELL:
                self._told = now
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


class Group:
    """One collective's ranks, and its messages with each of them."""

    __slots__ = ("me", "peers", "ranks", "tags", "transport")

    def __init__(self, transport: Transport, ranks: tuple[int, ...], check: int) -> None:
        self.transport, self.ranks, self.me = transport, ranks, ranks.index(transport.rank)
        #: The other ranks by their places, from the next one on: so not all begin with the same rank.
        size = len(ranks)
        self.peers = [(self.me + step) % size for step in range(1, size)]
        self.tags = {place: transport.tag(ranks[place], check) for place in self.peers}

    def send(self, place: int, part: Any, phase: int = 0) -> Phase:
        tag, peer = self.tags[place] | phase, self.ranks[place]
        return [self.transport.isend(part[at : at + MOST], peer, tag) for at in range(0, len(part), MOST)]

    def receive(self, place: int, part: Any, phase: int = 0) -> Phase:
        tag, peer = self.tags[place] | phase, self.ranks[place]
        return [self.transport.irecv(part[at : at + MOST], peer, tag) for at in range(0, len(part), MOST)]


def _expect(what: str, found: Sequence[Any], count: int) -> None:
    if len(found) != count:
        raise ValueError(f"{what} {count} of them, not {len(found)}")


def _same_length(out: Any, into: Any) -> None:
    if len(out) != len(into):
        raise ValueError(f"a result of {len(into)} bytes cannot take the {len(out)} bytes that are combined")


def _all_reduce(
    group: Group, op: str | None, sends: list[Any], receives: list[Any], dtype: DType
) -> Iterator[Phase]:
    _expect("all_reduce takes buffers and results, one each:", [*sends, *receives], 2)
    out, into = sends[0], receives[0]
    _same_length(out, into)
    combine, size = combiner(op, dtype), len(group.ranks)
    if len(out) * size <= SMALL or size == 1:
        yield from _summed_by_each(group, combine, out, into)
        return
    # Each rank sums its part, the first ones larger by an element.
    count, item = len(out) // dtype.itemsize, dtype.itemsize
    bounds = [(count // size * place + min(place, count % size)) * item for place in range(size + 1)]
    parts = [slice(bounds[place], bounds[place + 1]) for place in range(size)]
    in_place = out.obj is into.obj and out.nbytes and _address(out) == _address(into)
    begun = _sent(group, [out[part] for part in parts])
    results: Phase = []

    def receive_results() -> None:
        for place in group.peers:
            for piece in _pieces(into[parts[place]]):
                results.extend(group.receive(place, piece, 1))

    if not in_place:
        receive_results()
    sent: Phase = []

    def send_result(piece: Any) -> None:
        for place in group.peers:
            sent.extend(group.send(place, piece, 1))

    yield from _summed(group, combine, out[parts[group.me]], into[parts[group.me]], send_result)
    yield begun
    if in_place:  # the memory of what was sent has become free
        receive_results()
    yield results + sent


def _summed_by_each(group: Group, combine: Any, out: Any, into: Any) -> Iterator[Phase]:
    """Everybody sends everything to everybody, and sums it in the same order."""
    transport = group.transport
    borrowed = {place: transport.borrow(len(out)) for place in group.peers}
    waits: Phase = []
    for place, memory in borrowed.items():
        waits += group.receive(place, memory)
    for place in group.peers:
        waits += group.send(place, out)
    yield waits
    combine([borrowed.get(place, out) for place in range(len(group.ranks))], group.me, into)
    transport.give_back(list(borrowed.values()))


def _summed(
    group: Group, combine: Any, own: Any, into: Any, tell: Callable[[Any], None] | None = None
) -> Iterator[Phase]:
    """The part of this rank, summed piece by piece while the next pieces come in; `tell` is given each."""
    if not group.peers:
        combine([own], 0, into)
        return
    transport = group.transport
    coming: list[tuple[Phase, dict[int, Any]]] = []
    pieces = list(zip(_pieces(own), _pieces(into), strict=True))

    def receive(number: int) -> None:
        if number < len(pieces):
            borrowed = {place: transport.borrow(len(pieces[number][0])) for place in group.peers}
            waits: Phase = []
            for place, memory in borrowed.items():
                waits += group.receive(place, memory)
            coming.append((waits, borrowed))

    for number in range(AHEAD):
        receive(number)
    for number, (mine, result) in enumerate(pieces):
        waits, borrowed = coming[number]
        yield waits
        combine([borrowed.get(place, mine) for place in range(len(group.ranks))], group.me, result)
        transport.give_back(list(borrowed.values()))
        receive(number + AHEAD)
        if tell is not None:
            tell(result)


def _sent(group: Group, parts: Sequence[Any]) -> Phase:
    """To each rank its part, in the pieces that it sums."""
    return [
        wait for place in group.peers for piece in _pieces(parts[place]) for wait in group.send(place, piece)
    ]


def _pieces(memory: Any) -> list[Any]:
    return [memory[at : at + PIECE] for at in range(0, len(memory), PIECE)]


def _address(memory: Any) -> int:
    import numpy as np

    return int(np.frombuffer(memory, np.uint8).ctypes.data)


def _reduce_scatter(
    group: Group, op: str | None, sends: list[Any], receives: list[Any], dtype: DType
) -> Iterator[Phase]:
    _expect("reduce_scatter sends a buffer to each rank:", sends, len(group.ranks))
    _expect("reduce_scatter has results,", receives, 1)
    own, into = sends[group.me], receives[0]
    _same_length(own, into)
    begun = _sent(group, sends)
    yield from _summed(group, combiner(op, dtype), own, into)
    yield begun


def _all_gather(
    group: Group, op: str | None, sends: list[Any], receives: list[Any], dtype: DType
) -> Iterator[Phase]:
    _expect("all_gather sends buffers,", sends, 1)
    return _all_to_all(group, op, sends * len(group.ranks), receives, dtype)


def _all_to_all(
    group: Group, op: str | None, sends: list[Any], receives: list[Any], dtype: DType
) -> Iterator[Phase]:
    _expect("a buffer is sent to each rank:", sends, len(group.ranks))
    _expect("a buffer is received from each rank:", receives, len(group.ranks))
    _same_length(sends[group.me], receives[group.me])
    waits: Phase = []
    for place in group.peers:
        waits += group.receive(place, receives[place])
    for place in group.peers:
        waits += group.send(place, sends[place])
    receives[group.me][:] = sends[group.me]
    yield waits


def _broadcast(
    group: Group, op: str | None, sends: list[Any], receives: list[Any], dtype: DType
) -> Iterator[Phase]:
    """Down a binomial tree: the rank at place p has it from p without its highest bit."""
    size, me = len(group.ranks), group.me
    if me == 0:
        _expect("broadcast sends from the first rank buffers,", sends, 1)
        memory = sends[0]
        if receives:
            receives[0][:] = memory
    else:
        _expect("broadcast receives buffers,", receives, 1)
        memory = receives[0]
        yield group.receive(me - (1 << me.bit_length() - 1), memory)
    waits: Phase = []
    step = 1 << me.bit_length()
    while me + step < size:
        waits += group.send(me + step, memory)
        step *= 2
    yield waits


_KINDS: dict[str, Callable[..., Iterator[Phase]]] = {
    "all_reduce": _all_reduce,
    "reduce_scatter": _reduce_scatter,
    "all_gather": _all_gather,
    "all_to_all": _all_to_all,
    "broadcast": _broadcast,
    "send": _all_to_all,
}

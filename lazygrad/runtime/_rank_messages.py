"""What each kind of collective sends and receives, in phases: a generator yields what it waits for.

Sums are not MPI's own: those differ in their last bits with what arrives first, may be other ones on other
ranks where there are NaNs, and MPI has no floats of 16 bits. Each rank adds up its part, in the order of the
ranks, and sends it to the others.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from ..dtype import DType
from ._rank_sums import Combine, combiner

#: Bytes that are summed at once: they stay in a cache, and the sum goes out while the next ones come in.
PIECE = 1 << 20
#: How many pieces come in at once.
AHEAD = 3
#: A sum of so many bytes, over all ranks, is done by each of them: one message is faster than two.
SMALL = 1 << 16
#: Bytes of one message: MPI counts in 31 bits.
MOST = 1 << 30

#: What the messages of one phase wait for.
Phase = list[Any]


class Messages(Protocol):
    """What brings them to other ranks, and has memory for what comes."""

    def isend(self, part: Any, peer: int, tag: int) -> Any:
        """What says whether a part has been sent."""

    def irecv(self, part: Any, peer: int, tag: int) -> Any:
        """What says whether a part has come."""

    def borrow(self, nbytes: int) -> Any:
        """Memory for what comes in."""

    def give_back(self, memory: Sequence[Any]) -> None:
        """Memory that was borrowed."""


class Group(NamedTuple):
    """One collective's ranks, and its messages with each of them.

    me     the place of this rank among them          peers  those of the others
    tags   what the messages with each are known by
    """

    transport: Messages
    ranks: tuple[int, ...]
    me: int
    peers: tuple[int, ...]
    tags: dict[int, int]

    def send(self, place: int, part: Any, phase: int = 0) -> Phase:
        tag, peer = self.tags[place] | phase, self.ranks[place]
        return [self.transport.isend(each, peer, tag) for each in _messages(part)]

    def receive(self, place: int, part: Any, phase: int = 0) -> Phase:
        tag, peer = self.tags[place] | phase, self.ranks[place]
        return [self.transport.irecv(each, peer, tag) for each in _messages(part)]


#: What runs with the messages of one call.
Phases = Callable[[Group], Iterator[Phase]]


def _messages(part: Any) -> Sequence[Any]:
    """Memory in as many pieces as it takes messages; none for nothing."""
    size = len(part)
    return (part,) if 0 < size <= MOST else [part[at : at + MOST] for at in range(0, size, MOST)]


def _expect(what: str, found: Sequence[Any], count: int) -> None:
    if len(found) != count:
        raise ValueError(f"{what} {count} of them, not {len(found)}")


def _same_length(out: Any, into: Any) -> None:
    if len(out) != len(into):
        raise ValueError(f"a result of {len(into)} bytes cannot take the {len(out)} bytes that are combined")


def _all_reduce(
    me: int, size: int, op: str | None, sends: list[Any], receives: list[Any], dtype: DType
) -> Phases:
    _expect("all_reduce takes buffers and results, one each:", [*sends, *receives], 2)
    out, into = sends[0], receives[0]
    _same_length(out, into)
    combine = combiner(op, dtype)
    if len(out) * size <= SMALL or size == 1:
        return functools.partial(_summed_by_each, combine, out, into)
    return functools.partial(_reduce_scattered, combine, out, into, dtype.itemsize)


def _reduce_scattered(combine: Combine, out: Any, into: Any, item: int, group: Group) -> Iterator[Phase]:
    """Each rank sums its part, the first ones larger by an element, and sends it to all."""
    size, count = len(group.ranks), len(out) // item
    bounds = [(count // size * place + min(place, count % size)) * item for place in range(size + 1)]
    parts = [slice(bounds[place], bounds[place + 1]) for place in range(size)]
    in_place = out.obj is into.obj and out.nbytes and _address(out) == _address(into)
    begun = _sent(group, [out[part] for part in parts])
    results: Phase = []

    def receive_results() -> None:
        for place in group.peers:
            for piece in _chunks(into[parts[place]]):
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


def _summed_by_each(combine: Combine, out: Any, into: Any, group: Group) -> Iterator[Phase]:
    """Everybody sends everything to everybody, and sums it in the same order."""
    transport, size = group.transport, len(out)
    values = [out] * len(group.ranks)
    waits: Phase = []
    for place in group.peers:
        values[place] = memory = transport.borrow(size)
        waits += group.receive(place, memory)
    for place in group.peers:
        waits += group.send(place, out)
    yield waits
    combine(values, group.me, into)
    del values[group.me]
    transport.give_back(values)


def _summed(
    group: Group, combine: Combine, own: Any, into: Any, tell: Callable[[Any], None] | None = None
) -> Iterator[Phase]:
    """The part of this rank, summed piece by piece while the next pieces come in; `tell` is given each."""
    if not group.peers:
        combine([own], 0, into)
        return
    transport = group.transport
    coming: list[tuple[Phase, dict[int, Any]]] = []
    pieces = list(zip(_chunks(own), _chunks(into), strict=True))

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
        wait for place in group.peers for piece in _chunks(parts[place]) for wait in group.send(place, piece)
    ]


def _chunks(memory: Any) -> list[Any]:
    return [memory[at : at + PIECE] for at in range(0, len(memory), PIECE)]


def _address(memory: Any) -> int:
    import numpy as np

    return int(np.frombuffer(memory, np.uint8).ctypes.data)


def _reduce_scatter(
    me: int, size: int, op: str | None, sends: list[Any], receives: list[Any], dtype: DType
) -> Phases:
    _expect("reduce_scatter sends a buffer to each rank:", sends, size)
    _expect("reduce_scatter has results,", receives, 1)
    own, into, combine = sends[me], receives[0], combiner(op, dtype)
    _same_length(own, into)

    def phases(group: Group) -> Iterator[Phase]:
        begun = _sent(group, sends)
        yield from _summed(group, combine, own, into)
        yield begun

    return phases


def _all_gather(
    me: int, size: int, op: str | None, sends: list[Any], receives: list[Any], dtype: DType
) -> Phases:
    _expect("all_gather sends buffers,", sends, 1)
    return _all_to_all(me, size, op, sends * size, receives, dtype)


def _all_to_all(
    me: int, size: int, op: str | None, sends: list[Any], receives: list[Any], dtype: DType
) -> Phases:
    _expect("a buffer is sent to each rank:", sends, size)
    _expect("a buffer is received from each rank:", receives, size)
    _same_length(sends[me], receives[me])

    def phases(group: Group) -> Iterator[Phase]:
        waits: Phase = []
        for place in group.peers:
            waits += group.receive(place, receives[place])
        for place in group.peers:
            waits += group.send(place, sends[place])
        receives[me][:] = sends[me]
        yield waits

    return phases


def _broadcast(
    me: int, size: int, op: str | None, sends: list[Any], receives: list[Any], dtype: DType
) -> Phases:
    """Down a binomial tree: the rank at place p has it from p without its highest bit."""
    if me == 0:
        _expect("broadcast sends from the first rank buffers,", sends, 1)
    else:
        _expect("broadcast receives buffers,", receives, 1)
    memory = (receives if me else sends)[0]

    def phases(group: Group) -> Iterator[Phase]:
        if me:
            yield group.receive(me - (1 << me.bit_length() - 1), memory)
        elif receives:
            receives[0][:] = memory
        waits: Phase = []
        step = 1 << me.bit_length()
        while me + step < size:
            waits += group.send(me + step, memory)
            step *= 2
        yield waits

    return phases


#: Of each kind: what checks the memory that it is given, and says what runs with each call's messages. It is
#: given the place of this rank, the number of ranks, and the rest as `Transport.prepare` has it.
COLLECTIVES: dict[str, Callable[..., Phases]] = {
    "all_reduce": _all_reduce,
    "reduce_scatter": _reduce_scatter,
    "all_gather": _all_gather,
    "all_to_all": _all_to_all,
    "broadcast": _broadcast,
    "send": _all_to_all,
}

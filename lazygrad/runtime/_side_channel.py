"""How the processes of a world know of each other: a line of text now and then, beside MPI.

Each rank is connected to rank 0 by a socket, and tells it four times a second what it is doing. From that
rank 0 sees which rank died, stands still, has ended too soon, or waits for something that the others do not
do. It says so once, and tells all to end. Ranks agree through it too, before they run what could block.

Numbers of tensors never come this way; they are MPI's. What MPI does not have is a connection that the system
closes when a process dies, and that another thread can use while the program waits.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import selectors
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ._mpi import SLEEP, Transport

#: Seconds between two lines of a rank.
BEAT = 0.25
#: Seconds in which nothing changes while all ranks wait for different things: at least so many, or this part
#: of the limit, since a rank that has its part of a large message goes on while others still get theirs. For
#: one thing it may take so many times the limit.
DIFFERENT, DIFFERENT_PART, SAME_TIMES = 2.0, 0.25, 6
#: Seconds that a rank which ended may be waited for: its last line may still be on its way.
ENDED = 1.0
#: Seconds that a rank leaves to the one before it, to say that rank 0 is gone.
LATER = 0.5
#: Seconds between saying why and ending all, for the line to pass through the launcher. Where a rank has died
#: the launcher sees that itself: it says so, too, and ends all 0.3 s later; asked to end them before, it does
#: not, and may drop what it has not read yet.
PASSING, AFTER_DEATH = 0.3, 1.5


class Rank:
    """What rank 0 knows of a rank."""

    def __init__(self, number: int, host: str, pid: int) -> None:
        self.number, self.host, self.pid = number, host, pid
        now = time.monotonic()
        self.heard = self.changed = now
        self.last, self.waiting, self.life = "none", None, None
        self.begun = 0  #: how many collectives
        self.ended = False

    @property
    def still(self) -> float:
        """For how many seconds it has said that it does the same. What it does since it was heard of is not
        known: it may only have got no core to say so.
        """
        return self.heard - self.changed

    def name(self) -> str:
        """What people know it by."""
        return f"rank {self.number} (host {self.host}, process {self.pid})"

    def doing(self) -> str:
        if self.ended:
            return f"{self.name()} has ended; its last collective was {self.last}"
        if self.waiting is not None:
            return f"{self.name()} waits in {self.waiting}"
        return f"{self.name()} is in no collective; its last one was {self.last}"

    def silent(self, seconds: float) -> str:
        return (
            f"{self.name()} has not been heard of for {seconds:g} s: it was stopped, or its host cannot be "
            "reached"
        )

    def hear(self, line: dict[str, Any]) -> None:
        now = time.monotonic()
        self.heard = now
        if line["life"] != self.life or line["waiting"] != self.waiting or line["last"] != self.last:
            self.changed = now
        self.last, self.waiting, self.life = line["last"], line["waiting"], line["life"]
        self.begun = line["begun"]
        self.ended = self.ended or line["ended"]


class Vote(NamedTuple):
    """What a rank is about to do: in words, and what must be the same on all ranks, and on groups of them."""

    what: str
    digest: str
    groups: dict[str, str]


def differ(one: int, vote: Vote, other: int, others: Vote) -> bool:
    """Whether two ranks are not about to do the same."""
    if vote.digest != others.digest:
        return True
    common = {
        group for group in {**vote.groups, **others.groups} if {one, other} <= set(map(int, group.split(",")))
    }
    return any(vote.groups.get(group) != others.groups.get(group) for group in common)


#: Which agreement: how many collectives the rank has begun before, and which one since then. All begin as
#: many: each rank has a part in every mesh (tensor/sharding.py), and in one group along each of its axes.
Number = tuple[int, int]
_NO_GROUPS: Mapping[tuple[int, ...], bytes] = {}


class SideChannel:
    """This rank's end of it; on rank 0 also the one who looks at all.

    timeout  seconds after which a rank that does nothing, while others wait for it, ends the job
    life     what changes as long as this rank does something: any value that JSON can say
    end      ends all processes, and does not return
    """

    def __init__(
        self, transport: Transport, timeout: float, life: Callable[[], Any], end: Callable[[], None]
    ) -> None:
        self.transport, self.timeout, self._life, self._end = transport, timeout, life, end
        self.rank, self.size = transport.rank, transport.size
        self._lock = threading.RLock()
        self._heard = threading.Condition(self._lock)
        self._agreed: Number = (-1, 0)
        self._requested: Number = (-1, 0)
        self._votes: dict[Number, dict[int, Vote]] = {}
        self._ended = False
        self.fault: str | None = None  #: why the job ends
        self.leaving = False  #: whether the launcher has told this rank to end
        host, pid = socket.gethostname(), os.getpid()
        about = transport.comm.allgather((host, pid))
        self.ranks = [Rank(number, *each) for number, each in enumerate(about)]
        alone = len({each for each, _ in about}) == 1
        self._sockets: dict[int, socket.socket] = {}
        self._connect(alone)
        self._texts = dict.fromkeys(self._sockets, b"")
        loop = self._watch if self.rank == 0 else self._follow
        self._thread = threading.Thread(
            target=self._guarded, args=(loop,), name="lazygrad-ranks", daemon=True
        )
        self._thread.start()
        transport.tell = self._beat

    def _guarded(self, loop: Callable[[], None]) -> None:
        try:
            loop()
        except BaseException:
            self._stop(f"the watch of rank {self.rank} failed:\n{traceback.format_exc()}")

    # ---- connecting ----

    def _connect(self, alone: bool) -> None:
        """Rank 0 listens, the others come, with a word that only they have been told by MPI."""
        comm = self.transport.comm
        if self.rank:
            places, port, word = comm.bcast(None)
            self._sockets[0] = _reach(places, port, word, self.rank)
            comm.Barrier()
            return
        word = secrets.token_hex(16)
        with socket.create_server(("127.0.0.1" if alone else "", 0), backlog=self.size) as server:
            comm.bcast((["127.0.0.1"] if alone else _own_addresses(), server.getsockname()[1], word))
            server.settimeout(60)
            while len(self._sockets) < self.size - 1:
                came, _ = server.accept()
                came.settimeout(10)
                said = _one_line(came).split()
                number = int(said[1]) if len(said) == 2 and said[0] == word and said[1].isdigit() else 0
                if 0 < number < self.size and number not in self._sockets:
                    self._sockets[number] = came
                else:  # a stranger
                    came.close()
        comm.Barrier()

    # ---- what this rank says ----

    def agree(
        self,
        what: str,
        digest: bytes,
        groups: Mapping[tuple[int, ...], bytes] = _NO_GROUPS,
        waits: bool = True,
    ) -> None:
        """Return when all ranks have called this with the same; if one has not, the job ends and says which.

        what    in words, for the message         digest  what must be the same
        groups  ranks, and what must be the same on those
        waits   False where this rank knows it already and goes on at once. What others know is theirs: one to
                which it is new compares it with what this one says, and one that replays it says nothing, and
                agrees by having begun more.
        """
        among = {",".join(map(str, ranks)): each.hex() for ranks, each in groups.items()}
        with self._lock:  # no beat comes in between, which would say that more was begun
            begun, last = self.transport.begun, self._requested
            number = self._requested = (begun, last[1] + 1 if last[0] == begun else 0)
            self._say({"agree": number, "what": what, "digest": digest.hex(), "groups": among})
        if not waits:
            return
        self.transport.waiting = f"the agreement on {what}"
        try:
            while not self._is_agreed(number):
                self.transport.advance()  # another rank may wait for what this one has begun
        finally:
            self.transport.waiting = None

    def _is_agreed(self, number: Number) -> bool:
        """Whether all ranks agree on this by now; it waits for a moment if they do not."""
        with self._heard:
            return self._heard.wait_for(
                lambda: self._agreed >= number, SLEEP if self.transport.is_busy else 0.1
            )

    def fail(self, text: str) -> None:
        """Tell why this rank ends, and end all."""
        with contextlib.suppress(OSError):  # where rank 0 is gone, the first that is left says that
            self._say({"failed": text})
        if self.rank == 0:
            return
        time.sleep(2)  # rank 0 says it and ends all; if it cannot, this one does
        self._end()

    def close(self) -> None:
        """This rank's program is over. Rank 0 stays until all others are."""
        self._ended = True
        with contextlib.suppress(OSError):
            self._beat()
        if self.rank == 0:
            while not all(rank.ended for rank in self.ranks):
                time.sleep(0.02)

    def _beat(self) -> None:
        transport = self.transport
        self._say(
            {
                "last": f"{transport.last} (number {transport.begun})",
                "waiting": transport.waiting or transport.waits_elsewhere(),
                "ended": self._ended,
                "begun": transport.begun,
                "life": [transport.steps, transport.begun, self._life()],
            }
        )

    def _say(self, line: dict[str, Any]) -> None:
        if self.rank == 0:
            self._hear(0, line)
        else:
            with self._lock:
                self._sockets[0].sendall(json.dumps(line).encode() + b"\n")

    # ---- the other ranks ----

    def _follow(self) -> None:
        """Say what this rank does, until rank 0 says that the job ends."""
        hub = self._sockets[0]
        hub.settimeout(BEAT)
        heard = turn = time.monotonic()
        while True:
            before, turn = turn, time.monotonic()
            try:
                self._beat()
                data = hub.recv(1 << 16)
            except TimeoutError:
                data = None
            except OSError:
                data = b""
            if data == b"":
                if self._ended:
                    return
                if time.monotonic() - before > self.timeout / 2:  # it was this rank that did not go on
                    self._end()
                self._leave_to_others()
                self._stop(f"{self.ranks[0].name()} died; {self._own()}", AFTER_DEATH)
            now = time.monotonic()
            if data is None:
                if now - heard > self.timeout:
                    if self._ended:  # rank 0 stops looking when all have ended; this one may still write
                        return
                    self._leave_to_others()
                    self._stop(f"{self.ranks[0].silent(self.timeout)}; {self._own()}")
                continue
            heard = now
            for line in self._lines(0, data):
                if "agreed" in line:
                    with self._heard:
                        self._agreed = tuple(line["agreed"])
                        self._heard.notify_all()
                elif "stop" in line:
                    self.fault = line["stop"]
                    time.sleep(2 * AFTER_DEATH)  # rank 0 ends all; if it cannot, this one does
                    self._end()

    def _leave_to_others(self) -> None:
        """Without rank 0 the first that is left says why, and ends all."""
        time.sleep(LATER * (self.rank - 1))
        if self.rank > 1 and self.leaving:  # an earlier one has, or the launcher
            time.sleep(AFTER_DEATH)
            self._end()

    def _own(self) -> str:
        return f"the last collective of {self.ranks[self.rank].name()} was {self.transport.last}"

    # ---- rank 0 ----

    def _watch(self) -> None:
        """Hear all ranks, and look whether each goes on."""
        selector = selectors.DefaultSelector()
        for number, connection in self._sockets.items():
            connection.setblocking(True)
            selector.register(connection, selectors.EVENT_READ, number)
        beaten = 0.0
        while True:
            for key, _ in selector.select(BEAT):
                number = key.data
                try:
                    data = self._sockets[number].recv(1 << 16)
                except OSError:
                    data = b""
                if data:
                    for line in self._lines(number, data):
                        self._hear(number, line)
                    continue
                selector.unregister(self._sockets[number])
                if not self.ranks[number].ended:
                    rank = self.ranks[number]
                    self._stop(f"{rank.name()} died; its last collective was {rank.last}", AFTER_DEATH)
            now = time.monotonic()
            if now - beaten >= BEAT:
                beaten = now
                self._beat()
                self._tell_all({"beat": True})
                fault = find_fault(self.ranks, now, self.timeout)
                if fault is not None:
                    self._stop(fault)
            if all(rank.ended for rank in self.ranks):
                return

    def _hear(self, number: int, line: dict[str, Any]) -> None:
        rank = self.ranks[number]
        if "agree" in line:
            self._vote(number, tuple(line["agree"]), Vote(line["what"], line["digest"], line["groups"]))
        elif "failed" in line:
            self._stop(f"{rank.name()} {line['failed']}; its last collective was {rank.last}")
        else:
            begun = rank.begun
            rank.hear(line)
            if rank.begun > begun and self._votes:
                with self._heard:
                    self._count_votes()

    def _vote(self, number: int, about: Number, vote: Vote) -> None:
        with self._heard:
            votes = self._votes.setdefault(about, {})
            others = [each for each in votes if differ(each, votes[each], number, vote)]
            votes[number] = vote
            self.ranks[number].begun = max(self.ranks[number].begun, about[0])
            if others:
                names = sorted([*others[:3], number])
                texts = "; ".join([f"{self.ranks[each].name()}: {votes[each].what}" for each in names])
                rank = self.ranks[number]
                self._stop(
                    f"ranks are about to do different things, and would wait for each other: {texts}. All "
                    "must run the same code on the same shapes, and hold the same tensors (one that only a "
                    "cycle of references holds is there until Python collects it); the last collective of "
                    f"{rank.name()} was {rank.last}"
                )
            self._count_votes()

    def _count_votes(self) -> None:
        """Tell what all agree on: each rank has said so, or has begun what comes behind it."""
        done = [
            about
            for about, votes in self._votes.items()
            if all(rank.number in votes or rank.begun > about[0] for rank in self.ranks)
        ]
        if done:
            for about in done:
                del self._votes[about]
            self._agreed = max(self._agreed, *done)
            self._heard.notify_all()
            self._tell_all({"agreed": self._agreed})

    def _tell_all(self, line: dict[str, Any]) -> None:
        data = json.dumps(line).encode() + b"\n"
        for number, connection in self._sockets.items():
            if not self.ranks[number].ended:
                with contextlib.suppress(OSError):  # who is gone is noticed by what comes from there
                    connection.sendall(data)

    # ---- the end ----

    def _stop(self, text: str, pause: float = PASSING) -> None:
        """Say why, once, and end all ranks."""
        with self._lock:
            if self.fault is None:
                self.fault = text
                print(f"\nlazygrad.distributed: the job ends: {text}", file=sys.stderr, flush=True)
                if self.rank == 0:
                    self._tell_all({"stop": text})
        time.sleep(pause)
        self._end()

    def _lines(self, number: int, data: bytes) -> list[dict[str, Any]]:
        *lines, self._texts[number] = (self._texts[number] + data).split(b"\n")
        return [json.loads(line) for line in lines]


def find_fault(ranks: Sequence[Rank], now: float, timeout: float) -> str | None:
    """What keeps the ranks from going on, if it has lasted long enough."""
    for rank in ranks:
        if not rank.ended and now - rank.heard > timeout:
            return f"{rank.silent(timeout)}; its last collective was {rank.last}"
    waiting = [rank for rank in ranks if rank.waiting is not None]
    if not waiting:
        return None
    still = min(rank.still for rank in waiting)
    others = [rank for rank in ranks if rank.waiting is None]
    ended = [rank for rank in others if rank.ended]
    if ended and still > ENDED and len(ended) == len(others):
        return f"{_first(ended)}, and others wait for it: {_first(waiting)}"
    idle = [rank for rank in others if not rank.ended and rank.still > timeout]
    if idle and still > timeout and len(idle) + len(ended) == len(others):
        return (
            f"{idle[0].name()} hangs: for {timeout:g} s it has run nothing of lazygrad, while "
            f"{_first(waiting)}. Its last collective was {idle[0].last} (if it does something that takes "
            "long: lazygrad.distributed.init(timeout=...))"
        )
    if not others:
        alike = len({rank.waiting for rank in waiting}) == 1
        if still > (timeout * SAME_TIMES if alike else max(DIFFERENT, timeout * DIFFERENT_PART)):
            what = "no message has come" if alike else "all ranks wait, for different things"
            return f"{what}: {'; '.join(rank.doing() for rank in ranks[:8])}"
    return None


def _first(ranks: Sequence[Rank]) -> str:
    more = f" (and {len(ranks) - 1} more)" if len(ranks) > 1 else ""
    return ranks[0].doing() + more


def _own_addresses() -> list[str]:
    """What other hosts may reach this one by."""
    found = []
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing: asks the system which address it would send from
        found.append(probe.getsockname()[0])
    name = socket.gethostname()
    with contextlib.suppress(OSError):
        found += [each[4][0] for each in socket.getaddrinfo(name, None, socket.AF_INET)]
    return list(dict.fromkeys([*found, name]))


def _reach(places: Sequence[str], port: int, word: str, rank: int) -> socket.socket:
    problems = []
    for place in places:
        try:
            connection = socket.create_connection((place, port), timeout=10)
            connection.sendall(f"{word} {rank}\n".encode())
            return connection
        except OSError as error:
            problems.append(f"{place}: {error}")
    raise ConnectionError(f"rank {rank} cannot reach rank 0 at port {port} ({'; '.join(problems)})")


def _one_line(connection: socket.socket) -> str:
    text = b""
    while not text.endswith(b"\n") and len(text) < 100:
        data = connection.recv(1)
        if not data:
            break
        text += data
    return text.decode("ascii", "replace").strip()

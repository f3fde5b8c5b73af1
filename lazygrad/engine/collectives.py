"""Runs what ranks send each other: started when its turn comes, waited for when its memory is needed.

What a transfer reads must not be written, and what it writes not be touched, until it is done. Kernels that
do neither run meanwhile.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..device import Device, DeviceError
from ..device.world import Request, owners, world
from ..dtype import DType
from ..ir.args import CollectiveArg
from ..ir.uop import UOp
from ..schedule.extensions import sharding


def start(ast: UOp, target: Any, source: Any) -> Request | None:
    """Begin what a COLLECTIVE says on the memory behind two handles; None where nothing is sent, since the
    device only counts.
    """
    return prepare(ast, target, source)()


def prepare(ast: UOp, target: Any, source: Any) -> Callable[[], Request | None]:
    """What begins a COLLECTIVE on the memory behind two handles, as often as it is called."""
    arg: CollectiveArg = ast.arg
    device = arg.group[arg.position]
    if device.startswith("NULL"):
        return lambda: None
    transport = world().transport
    if transport is None:
        raise DeviceError(f"{text_of(arg)}: there is no way to other ranks (lazygrad.distributed.init)")
    allocator = Device[device].allocator
    into, read = (allocator._as_buffer(handle) for handle in (target, source))
    ranks = owners(arg.group)
    op = None if arg.op is None else arg.op.name
    dtype: DType = ast.dtype
    size = dtype.itemsize
    if into is None or read is None:
        own = Device[device].transport(transport)
        if own is None:
            raise NotImplementedError(f"{arg.kind} of memory of {device}, which the host does not see")
        part, ends = allocator._offset, [0, *itertools.accumulate(arg.receives)]
        from_here = [part(source, (end - begin) * size, begin * size) for begin, end in arg.sends]
        to_here = [part(target, n * size, at * size) for n, at in zip(arg.receives, ends, strict=False)]
        begin: Callable[[], Request] = own.prepare(arg.kind, ranks, op, from_here, to_here, dtype)
        return begin
    sends = [read[begin * size : end * size] for begin, end in arg.sends]
    return transport.prepare(arg.kind, ranks, op, sends, _shards(into, arg.receives, size), dtype)


#: What this rank has agreed on with all others, and so many at most. It waits for no answer then.
_agreed: set[bytes] = set()
_MOST_AGREED = 4096


def agree(asts: Iterable[UOp]) -> None:
    """Before the collectives of a plan run: compare them with those of the other ranks.

    A rank that begins others would wait in vain, or take other numbers for its own. What a group of ranks
    sends must be the same on those ranks; what is sent by how many, and what was planned, on all. A rank says
    so each time, since it does not know to whom of the others it is new.
    """
    world_agrees, planned = world().agree, sharding().take_planned()
    if world_agrees is None:
        return
    plan = [(ast.arg, ast.dtype) for ast in asts]
    kinds = [f"{arg.kind} {arg.op} of {dtype} by {len(arg.group)}" for arg, dtype in plan]
    alike = _digest([*kinds, planned.hex()])
    groups: dict[tuple[int, ...], list[str]] = {}
    for (arg, _), kind in zip(plan, kinds, strict=True):
        ranks = owners(arg.group)
        groups.setdefault(ranks, []).append(f"{kind}: {_lengths(arg)}")
    digests = {ranks: _digest(each) for ranks, each in groups.items()}
    known = b"".join([alike, *digests.values()])
    first = ", ".join([f"{arg.kind} of {dtype} {_lengths(arg)}" for arg, dtype in plan[:3]])
    more = ", ..." if len(plan) > 3 else ""
    what = f"graph {alike.hex()[:6]} with {len(plan)} collectives ({first}{more})"
    world_agrees(what, alike, digests, known not in _agreed)
    if len(_agreed) >= _MOST_AGREED:
        _agreed.clear()
    _agreed.add(known)


#: Called after each run of a list in which ranks send each other something, on all ranks alike.
after_sending: list[Callable[[], None]] = []


def note_sent() -> None:
    """A list in which ranks send each other something has run."""
    for each in after_sending:
        each()


def _lengths(arg: CollectiveArg) -> str:
    """The elements that all of the group say alike; what two send each other differs from pair to pair."""
    alike = {"all_reduce": arg.receives, "reduce_scatter": arg.sends, "all_gather": arg.receives}
    alike |= dict.fromkeys(("broadcast", "send"), arg.spans)
    return str(alike.get(arg.kind, ""))


def _digest(texts: Sequence[str]) -> bytes:
    return hashlib.sha256("\n".join(texts).encode()).digest()


def _shards(memory: memoryview, counts: Sequence[int], size: int) -> list[memoryview]:
    """The parts of memory that so many elements take, one after another."""
    found, begin = [], 0
    for count in counts:
        end = begin + count * size
        found.append(memory[begin:end])
        begin = end
    return found


def text_of(arg: CollectiveArg) -> str:
    """A collective in words, for rows and errors."""
    return f"{arg.kind} {', '.join(arg.group[:4])}{', ...' if len(arg.group) > 4 else ''}"


class Flying:
    """The transfers under way in a list of what runs; `number` is the place of one in the list."""

    def __init__(self) -> None:
        self.requests: dict[int, Request] = {}

    def add(self, number: int, request: Request | None) -> None:
        """Note one that was started."""
        if request is not None:
            self.requests[number] = request

    def wait(self, numbers: Iterable[int]) -> None:
        """Wait for some of them, in the order in which they were started."""
        if self.requests:
            for number in sorted(numbers):
                request = self.requests.pop(number, None)
                if request is not None:
                    request.wait()

    def wait_for_all(self) -> None:
        """Wait for what is left."""
        self.wait(list(self.requests))


class Hazards:
    """Which transfers must be done before something else runs, from the memory that each touches.

    Memory is told by a key and the bytes [begin, end) of it.
    """

    def __init__(self) -> None:
        self._open: dict[int, tuple[list[Any], list[Any]]] = {}

    def begin(self, number: int, writes: list[Any], reads: list[Any]) -> None:
        """A transfer is started."""
        self._open[number] = writes, reads

    def before(self, writes: Sequence[Any], reads: Sequence[Any]) -> list[int]:
        """The transfers to be waited for; they count as done then."""
        if not self._open:
            return []
        found = []
        for number, (written, read) in self._open.items():
            if _meet(writes, written) or _meet(writes, read) or _meet(reads, written):
                found.append(number)
        for number in found:
            del self._open[number]
        return found


def _meet(some: Sequence[Any], others: Sequence[Any]) -> bool:
    return any(
        key == other and begin < last and first < end
        for key, begin, end in some
        for other, first, last in others
    )

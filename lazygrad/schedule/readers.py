"""What reads memory that a write is about to change: it is computed with the write, before it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence

from ..ir.ops import Ops
from ..ir.uop import UOp
from ..ir.walks import reached
from ..shape.movement import below_movement
from .extensions import at_hand, on_several, sharding
from .graph.requested import Request, is_materialized, toposort_effective
from .graph.versions import below_looks, effective, latest, memory_read

Pending = Callable[[], Iterable[UOp]]


def add_readers(asked: Request, pending: Pending) -> Request:
    """What reads a version of memory that a write of the plan ends is planned with it, and comes first."""
    try:
        return _with_readers(asked, pending)
    finally:
        for node in at_hand.alone:
            sharding().not_found_again(node)
        at_hand.alone = ()


def _with_readers(asked: Request, pending: Pending) -> Request:
    roots, order = asked.roots, asked.order
    ended, known = _ended_versions(order), set[UOp]()
    walked, waiting = set(order), dict[UOp, list[UOp]]()
    while ended != known:  # the readers that join the plan may write too
        known = ended
        readers, waiting = _readers_of_ended(order, roots, ended, pending)
        if on_several(toposort_effective(readers)):
            wanted = set(roots)
            last = next((root for root in reversed(roots) if root.op is Ops.COLLECTIVE), None)
            readers = [reader for reader in sharding().separated(readers, last) if reader not in wanted]
        if readers:
            roots = roots + readers
            order = order + toposort_effective(readers, walked)
            ended = _ended_versions(order)
    return Request(roots, order, waiting)


def _ended_versions(order: Sequence[UOp]) -> set[UOp]:
    """The versions of buffers that writes of this plan end: existing memory, or what an earlier write
    made; and, among ranks, those that a write to other memory supersedes.
    """
    ended = set()
    for node in order:
        if node.op is Ops.ASSIGN and not is_materialized(node):
            before = effective(node.src[0])
            superseded = before.facts["supersedes"]() if "supersedes" in before.facts else None
            if "fresh" not in before.facts:
                ended.add(before)
            elif superseded is not None:
                ended.add(effective(superseded))
    return ended


def _readers_of_ended(
    order: list[UOp], wanted: list[UOp], ended: set[UOp], pending: Pending
) -> tuple[list[UOp], dict[UOp, list[UOp]]]:
    """Values that somebody holds and that read a version about to end: they are to be computed too.

    Returns them, and version → kernels planned earlier that read it and have not run.
    """
    others = [base for p in pending() for base in open_or_planned(latest(p))]
    everything = order + toposort_effective(others, set(order))
    reads: dict[UOp, bool] = {}
    waiting: dict[UOp, list[UOp]] = {}
    planned = [node for node in everything if is_materialized(node) and node.op is Ops.ASSIGN]
    memory_of = functools.cache(_reads)
    for assign in reached(planned, lambda node: [m for m in memory_of(node) if m.op is Ops.ASSIGN]):
        for memory in memory_of(assign):
            if memory in ended:
                waiting.setdefault(memory, []).append(assign)
    for node in everything:
        touched = node in ended
        if not touched and not is_materialized(node):
            continues = node.op is Ops.ASSIGN and _is_assigned(effective(node.src[0]))
            sources = node.src[1:] if node.op is Ops.ASSIGN and not continues else node.src
            touched = any(reads.get(effective(s) if "forwarded_to" in s.facts else s, False) for s in sources)
        reads[node] = touched
    asked = set(wanted)
    readers = dict.fromkeys(p for p in others if reads[p] and p not in asked and not is_materialized(p))
    return list(readers), waiting


def _reads(assign: UOp) -> list[UOp]:
    """The memory that the kernel of a planned ASSIGN reads."""
    return [memory_read(source) for source in assign.src[1].src]


def open_or_planned(node: UOp) -> list[UOp]:
    """What a value is computed from that is not in memory: of one that several devices hold, its parts."""
    node = below_looks(node)
    if node.op is Ops.MULTI:
        return [below for part in node.src for below in open_or_planned(part)]
    return [] if node.op in (Ops.BUFFER, Ops.CONST) else [node]


def _is_assigned(memory: UOp) -> bool:
    """Whether a version of memory is what an ASSIGN will write."""
    if memory.op is Ops.MULTI:
        return any(_is_assigned(below_movement(part)) for part in memory.src)
    return memory.op is Ops.ASSIGN

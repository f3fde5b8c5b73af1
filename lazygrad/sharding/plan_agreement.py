"""What all ranks plan alike, for them to compare before they run it (engine/collectives.py).

What several devices hold together is the same graph on all ranks, down to the parts that a rank has; what
one device holds may be another one on each rank. Of graphs in which nothing is sent nothing is noted: one
rank may print, or look at a value.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from ..ir.ops import Ops
from ..ir.uop import UOp
from ..ir.walks import device_of
from ..schedule.graph.versions import effective
from ..shape.rules import shape_of

#: Of each graph that was planned since ranks compared them last.
_planned: list[bytes] = []


def digest_of(roots: Sequence[UOp], order: Iterable[UOp]) -> bytes:
    """A graph: the operations, types and shapes of what several devices hold, and what is sent.

    order  all of its nodes, sources first
    """
    found: dict[UOp, bytes] = {}
    for node in order:
        if node.op is Ops.MULTI:
            about = f"{node.dtype} {node.arg._replace(here=())}"
        elif node.op is Ops.COLLECTIVE:
            about = f"{node.dtype} {node.arg.kind} {node.arg.op} {len(node.arg.group)}"
        elif node.op is not Ops.DEVICE and isinstance(device_of(node), tuple):
            about = f"{node.dtype} {shape_of(node)}"
        else:
            found[node] = b""
            continue
        below = [found.get(effective(source), b"") for source in node.src if node.op is not Ops.MULTI]
        found[node] = hashlib.sha256(f"{node.op} {about}".encode() + b"".join(below)).digest()
    sent = [digest for node, digest in found.items() if node.op is Ops.COLLECTIVE]
    return b"".join([found[effective(root)] for root in roots] + sorted(sent))


def note_planned(graph: bytes) -> None:
    """Note a graph in which ranks send each other something."""
    if graph:
        _planned.append(hashlib.sha256(graph).digest())


def take_planned() -> bytes:
    """All that was noted; from now on what comes after it."""
    taken = b"".join(_planned)
    _planned.clear()
    return taken

"""What all ranks plan alike, for them to compare before they run it (engine/collectives.py).

A graph in which ranks send each other something is the same on all of them, up to the parts that a rank has.
Of graphs in which nothing is sent, nothing is noted: one rank may print, or look at a value.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from ..ir.ops import Ops
from ..ir.uop import UOp
from ..shape.rules import shape_of
from .versions import effective

#: Of each graph that was planned since ranks compared them last.
_planned: list[bytes] = []


def note_planned(roots: Iterable[UOp]) -> None:
    """Note a graph: its operations, types and shapes, down to what devices hold together."""
    numbers: dict[UOp, int] = {}
    found = hashlib.sha256()
    todo = [(effective(root), False) for root in roots]
    while todo:
        node, sources_are_done = todo.pop()
        if node in numbers:
            continue
        is_leaf = node.op is Ops.MULTI
        if not sources_are_done and node.src and not is_leaf:
            todo.append((node, True))
            todo.extend([(effective(source), False) for source in node.src])
            continue
        sources = [] if is_leaf else [numbers[effective(source)] for source in node.src]
        lies = node.arg._replace(here=()) if is_leaf else None
        has_shape = node.op not in _WITHOUT_SHAPE
        shape = shape_of(node) if has_shape and not is_leaf else None
        found.update(f"{node.op} {node.dtype} {shape} {lies} {sources}\n".encode())
        numbers[node] = len(numbers)
    _planned.append(found.digest())


_WITHOUT_SHAPE = (Ops.DEVICE, Ops.UNIQUE, Ops.KERNEL, Ops.ASSIGN)


def take_planned() -> bytes:
    """All that was noted; from now on what comes after it."""
    taken = b"".join(_planned)
    _planned.clear()
    return taken

"""Of BARRIERs that threads of a workgroup meet at (form 7) those stay that something depends on."""

from __future__ import annotations

from ...ir.linear import in_loops
from ...ir.ops import Ops
from ...ir.uop import UOp


def without_repeated_barriers(program: list[UOp]) -> list[UOp]:
    """The list without BARRIERs that another follows before anything shared is read, or a loop turns in which
    that happens; nor the WAITs before them.
    """
    meeting = _loops_that_meet(program)
    remaining: list[UOp] = []
    follows = False
    branches = 0
    dropped = False  # the BARRIER that was met last
    for node in reversed(program):
        branches += (node.op is Ops.ENDIF) - (node.op is Ops.IF)
        if node.op is Ops.BARRIER:
            dropped = follows
            if dropped:
                continue
            follows = branches == 0
        elif node.op is Ops.WAIT and dropped:
            continue
        elif _reads_local(node) or node in meeting or (node.op is Ops.ENDRANGE and node.src[0] in meeting):
            follows = False
        remaining.append(node)
    remaining.reverse()
    return remaining if len(remaining) < len(program) else program


def _loops_that_meet(program: list[UOp]) -> set[UOp]:
    """The RANGEs of loops in which threads wait for each other, or read what they share."""
    found: set[UOp] = set()
    for node, around in in_loops(program):
        if node.op is Ops.BARRIER or _reads_local(node):
            found.update(around)
    return found


def _reads_local(node: UOp) -> bool:
    if node.op is Ops.WMMA:
        return bool(node.arg.columns)
    return node.op is Ops.LOAD and node.src[0].src[0].op is Ops.DEFINE_LOCAL

"""Where the threads of a workgroup wait for each other (form 7).

    STAGE                  WAIT; BARRIER                       after what all of them read was filled
    RANGE ... ENDRANGE     RANGE ... BARRIER ENDRANGE          a loop that fills anew in each turn

Where a loop fills what its later turns read, each turn waits for what it reads, and a COMMIT ends what it
fetches; before the loop are as many as there are copies. Of BARRIERs those stay that something depends on.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...dtype import dtypes
from ...ir.linear import in_loops
from ...ir.ops import Ops
from ...ir.uop import UOp
from ...ir.walks import has_op


def synchronize(program: list[UOp]) -> list[UOp]:
    """The list with BARRIERs, WAITs and COMMITs in the place of STAGEs."""
    filled: dict[UOp | None, list[UOp]] = {}  # loop → the STAGEs right in it
    for node, around in in_loops(program):
        if node.op is Ops.STAGE:
            filled.setdefault(around[-1] if around else None, []).append(node)
    waits = has_op(program, Ops.FETCH)
    made: list[UOp] = []

    def wait(memory: UOp, groups: int) -> Iterator[UOp]:
        if waits:
            yield UOp(Ops.WAIT, dtypes.void, (), groups)
        yield UOp(Ops.BARRIER, dtypes.void, (memory,))

    def commit(copies: int) -> None:
        """End a group of FETCHes, where threads wait for some of them only. Each COMMIT has a number."""
        if waits and copies > 2:
            made.append(UOp(Ops.COMMIT, dtypes.void, (), sum(step.op is Ops.COMMIT for step in made)))

    for node, around in in_loops(program):
        own = filled.get(node.src[0] if node.op is Ops.ENDRANGE else node, [])
        if node.op is Ops.STAGE:
            copies = node.arg.copies
            if node.arg.later:
                if node is [each for each in filled[around[-1]] if each.arg.later][-1]:
                    commit(copies)
            elif copies is None:
                made += wait(node.src[0], 0)
            else:
                for _ in range(copies - 1):  # one is for what was fetched, and the last ones are empty
                    commit(copies)
            continue
        if node.op is Ops.ENDRANGE and not all(each.arg.later for each in own):
            made.append(UOp(Ops.BARRIER, dtypes.void, (node.src[0],)))
        made.append(node)
        if node.op is Ops.RANGE:
            for first in [each for each in own if each.arg.later][:1]:
                made += wait(first.src[0], first.arg.copies - 2)
    return made


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

"""CHECKs of a linear program become reports: where one fails in any lane, a bad index is stored, and that
there is one.

That stands at the end of a loop: there it is one branch with a store that is left out for the same reason.
"""

from __future__ import annotations

from ...dtype import dtypes
from ...ir.linear import LinearWriter, is_declared
from ...ir.ops import Ops
from ...ir.reports import FAILED, FOUND, WORDS, report_memory
from ...ir.uop import UOp, toposort
from ..expressions.constants import lane_of


def report_checks(program: list[UOp]) -> list[UOp]:
    """The linear program with a branch in the place of each CHECK."""
    written = LinearWriter()
    again: set[UOp] = set()  # what a report computed too
    for node in program:
        if node.op is Ops.CHECK:
            again |= _report(written, node)
        elif not (node in again and node in written.visible):
            written.add(node)
    return written.listed()


def _report(written: LinearWriter, check: UOp) -> set[UOp]:
    """Write what is done where a CHECK fails; what it computed that others may ask for."""
    good, place = check.src
    true = good.const_like(True)
    if good is true:
        return set()
    bad = UOp(Ops.CMPNE, good.dtype, (good, true))
    memory = report_memory(check.arg.memory, check.arg.checks)
    words = [UOp.const(dtypes.int32, WORDS * check.arg.number + word) for word in (FAILED, FOUND)]
    flag, found = (UOp(Ops.INDEX, memory.dtype, (memory, word)) for word in words)
    opened = UOp(Ops.IF, dtypes.void, (bad, flag, place))
    made = [node for node in toposort((bad, flag, found), done=written.visible) if node not in written.head]
    if opened in written.visible:
        return set()
    for node in (*made, opened):
        written.add(node)
    index = lane_of(place, 0)
    for lane in range(1, bad.dtype.count):
        index = UOp(Ops.WHERE, index.dtype, (lane_of(bad, lane), lane_of(place, lane), index))
    one = UOp.const(memory.dtype.base, 1)
    for store in ((found, index.cast(memory.dtype.base)), (flag, one)):
        # what only the branch needs does not count as written: what follows writes its own
        for node in toposort((UOp(Ops.STORE, dtypes.void, store),), done=set(written.visible)):
            if is_declared(node):
                written.add(node)
            else:
                written.body.append(node)
    written.add(UOp(Ops.ENDIF, dtypes.void, (opened,)))
    return set(made)

"""Which branches are an `else`: where a check fails, a kernel leaves out what it does everywhere else.

    IF(c), ..., ENDIF, CMPNE(c, True), IF(CMPNE), ..., ENDIF

A compiler of C finds this by itself. Of LLVM only code generation runs, which keeps both branches; in a loop
that waits for memory, such as one that adds to places that were loaded, less of the loop is under way then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ..ir.ops import Ops
from ..ir.uop import UOp


def alternatives(uops: Sequence[UOp], carried: Mapping[UOp, Sequence[UOp]]) -> dict[UOp, UOp]:
    """IF → the IF directly behind it that has the opposite condition, where neither changes an accumulator.

    carried  the accumulators that an IF changes
    """
    found: dict[UOp, UOp] = {}
    closed: UOp | None = None
    opposite: UOp | None = None
    for node in uops:
        if node.op is Ops.ENDIF:
            closed, opposite = node.src[0], None
        elif closed is None or node.op is Ops.INDEX:  # an INDEX is written where it is used
            continue
        elif node.op is Ops.CMPNE and node.src[0] is closed.src[0] and node.src[1].arg is True:
            opposite = node
        else:
            if node.op is Ops.IF and node.src[0] is opposite:
                found[closed] = node
            closed = None
    if not found:
        return found
    uses = Counter(source for node in uops for source in node.src)
    return {
        first: other
        for first, other in found.items()
        if uses[other.src[0]] == 1 and not carried[first] and not carried[other]
    }

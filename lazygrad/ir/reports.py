"""Where a kernel reports the indices that its CHECKs found out of range."""

from __future__ import annotations

from ..dtype import dtypes
from .ops import Ops
from .uop import UOp

#: Of each CHECK: whether it failed, and an index that did. All are 0 until then.
WORDS = 2
FAILED, FOUND = range(WORDS)


def report_memory(number: int, count: int) -> UOp:
    """The kernel's buffer, the last of its arguments, for so many CHECKs."""
    return UOp(Ops.DEFINE_GLOBAL, dtypes.int64.ptr(WORDS * count, role="bad"), (), number)

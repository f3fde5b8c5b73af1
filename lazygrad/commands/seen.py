"""The kernels that a script runs, noted while it does."""

from __future__ import annotations

from ..ir.ops import Ops
from ..ir.uop import UOp
from ..schedule.items import ScheduleItem


class Seen:
    """The different kernels that ran, in their order: how often each did, and for how many seconds in all."""

    def __init__(self) -> None:
        self.items: dict[UOp, ScheduleItem] = {}
        self.runs: dict[UOp, int] = {}
        self.seconds: dict[UOp, float] = {}

    def note(self, item: ScheduleItem, name: str, seconds: float | None, ops: int, moved: int) -> None:
        """Called after each kernel and copy; copies are none."""
        if item.ast.op is Ops.COPY:
            return
        self.items.setdefault(item.ast, item)
        self.runs[item.ast] = self.runs.get(item.ast, 0) + 1
        self.seconds[item.ast] = self.seconds.get(item.ast, 0.0) + (seconds or 0.0)

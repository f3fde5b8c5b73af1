"""The kernels that a script runs, noted while it does."""

from __future__ import annotations

import _thread
import contextlib
import threading
from collections.abc import Iterator

from ..inspection.choosing import is_meant
from ..ir.ops import TRANSFERS
from ..ir.uop import UOp
from ..report.profile import output_shape
from ..report.rows import plain_name
from ..schedule.kernels.items import ScheduleItem


class Enough(BaseException):
    """No more of the script is needed."""


@contextlib.contextmanager
def ended_after(seconds: float) -> Iterator[list[bool]]:
    """Within the block, the main thread is interrupted after so long, as by Ctrl-C; says whether it was."""
    late: list[bool] = []

    def end() -> None:
        late.append(True)
        _thread.interrupt_main()

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield late
    except KeyboardInterrupt:
        if not late:
            raise
    finally:
        timer.cancel()


class Recorded:
    """The different kernels that ran, in their order: how often each did, and for how many seconds in all.

    names  as DEBUG=2 shows them
    """

    def __init__(self) -> None:
        self.items: dict[UOp, ScheduleItem] = {}
        self.names: dict[UOp, str] = {}
        self.runs: dict[UOp, int] = {}
        self.seconds: dict[UOp, float] = {}

    def note(self, item: ScheduleItem, name: str, seconds: float | None, ops: int, moved: int) -> None:
        """Called after each kernel and copy; copies are none."""
        ast = item.ast
        if ast.op in TRANSFERS:
            return
        if ast not in self.items:
            self.items[ast], self.names[ast] = item, plain_name(ast, name)
        self.runs[ast] = self.runs.get(ast, 0) + 1
        self.seconds[ast] = self.seconds.get(ast, 0.0) + (seconds or 0.0)

    def selected(self, words: list[str] | None) -> list[UOp]:
        """The kernels that one of the words means, in their order; all where there are no words."""
        return [ast for ast in self.items if not words or any(self.is_meant(ast, word) for word in words)]

    def is_meant(self, ast: UOp, word: str) -> bool:
        """Whether a word means a kernel: its name, shape, method or line."""
        item = self.items[ast]
        return is_meant(word, self.names[ast], output_shape(ast, item.bufs), item.metadata)

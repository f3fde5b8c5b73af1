"""`lazygrad.profile()`: what ran in a block, by kernel and by line."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from ..config import TRACEMETA, Context
from ..engine.realize import observe_kernels
from ..report.profile import Profile


@contextlib.contextmanager
def profile() -> Iterator[Profile]:
    """Within the block, time each kernel and copy that runs.

    The Profile has a row for each kernel (`rows`) and for each line of your program (`lines`); `print()`
    shows both tables, `trace(path)` writes a timeline for ui.perfetto.dev. Kernels of a TinyJit run one by
    one, so that each has its time. The line of a kernel is that of the latest call that it computes; it is
    known where the operation was recorded in the block.

    >>> with profile() as seen:
    ...     _ = Tensor([1.0, 2.0]).mul(2).realize()
    >>> seen.count
    2
    """
    made = Profile()
    with Context(TRACEMETA=max(TRACEMETA.value, 2)), observe_kernels(made.note):
        try:
            yield made
        finally:
            made.wall = time.perf_counter() - made._begin

"""Work that Python's garbage collector does not interrupt."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager

#: How many blocks are open that have stopped the collector, in all threads.
_open = 0


@contextmanager
def uncollected() -> Iterator[None]:
    """Within the block nothing is collected that refers to itself.

    Planning, lowering, loading a model and capturing a step make hundreds of thousands of objects of which
    next to none are garbage, and no code of the user's runs; looking at them again and again takes a tenth
    of the time, and up to half where there are many.
    """
    global _open
    if not gc.isenabled():
        yield
        return
    gc.disable()
    _open += 1
    try:
        yield
    finally:
        _open -= 1
        gc.enable()


def _collect_again() -> None:
    """In a forked child no other thread ends its block."""
    global _open
    if _open:
        _open = 0
        gc.enable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_collect_again)

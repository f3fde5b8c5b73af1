"""Work that Python's garbage collector does not interrupt."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Within the block nothing is collected that refers to itself.

    Loading a model and capturing a step make hundreds of thousands of objects of which next to none are
    garbage; looking at them again and again takes up to half of the time.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()

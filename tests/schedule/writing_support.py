"""What tests of writing share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lazygrad import Tensor
from lazygrad.device import GlobalCounters


def kernels(work: Callable[[], Any]) -> int:
    """How many kernels and copies it runs."""
    before = GlobalCounters.kernel_count
    work()
    return GlobalCounters.kernel_count - before


def memory(values: Any, **more: Any) -> Tensor:
    """A tensor that is in memory of its own."""
    return Tensor(values, **more).contiguous().realize()

"""What MEMORY_BUDGET says: what it did to a plan, and once where a budget cannot be kept."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from ...config import DEBUG
from ..kernels.template import Rematerialized

#: What was said already.
_said: set[str] = set()


def report_rematerialized(spared: Rematerialized) -> None:
    """Print what was done, with DEBUG; warn where it is not enough."""
    if DEBUG >= 1:
        print(f"MEMORY_BUDGET: {rematerialized_text(spared)}")
    if spared.after <= spared.budget:
        return
    text = _missed_text(spared)
    if text in _said:
        return
    _said.add(text)
    warnings.warn(text, RuntimeWarning, stacklevel=_level_of_user())


def _level_of_user() -> int:
    """The level for `warnings.warn`, called where this is called, of the first frame outside of lazygrad."""
    package = __name__.partition(".")[0]
    level, frame = 1, sys._getframe(1)
    while frame.f_globals.get("__name__", "").partition(".")[0] == package and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    return level


def rematerialized_text(spared: Rematerialized) -> str:
    """In words: `peak 812 -> 598 MB; 14 values computed again, 9 % more operations`."""
    percent = 100 * spared.added / max(spared.operations, 1)
    return (
        f"peak {megabytes(spared.before)} -> {megabytes(spared.after)} MB; {spared.again} values computed "
        f"again, {percent:.0f} % more operations"
    )


def _missed_text(spared: Rematerialized) -> str:
    values = ", ".join(f"{megabytes(nbytes)} MB of {_said_of(origin)}" for nbytes, origin in spared.largest)
    return (
        f"MEMORY_BUDGET={megabytes(spared.budget)}MB cannot be kept: with {spared.again} values computed "
        f"again, {megabytes(spared.after)} MB are needed at once (without a budget "
        f"{megabytes(spared.before)} MB); the largest values there: {values}; "
        "compute less at once (a smaller batch, or parts of it one after another), or allow more"
    )


def _said_of(origin: Any) -> str:
    if origin is None:
        return "a value of no call"
    line = _line_of(origin)
    return f"{origin.name} at {line}" if line else str(origin)


def _line_of(origin: Any) -> str:
    return getattr(origin, "line", "") or ""


def megabytes(nbytes: int) -> str:
    """A number of bytes in MB, with three digits."""
    count = nbytes / 1e6
    return f"{count:.0f}" if count >= 100 else f"{count:.3g}"

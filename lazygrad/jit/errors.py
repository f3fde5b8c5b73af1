"""Why a call is not captured, or not replayed, and how messages say it."""

from __future__ import annotations

import sys
from typing import Any

from ..engine.frames import PACKAGE


class JitError(RuntimeError):
    """A function cannot be captured, or its arguments are unlike those it was captured with."""


class NothingToCapture(JitError):
    """A function ran no kernel."""


class Changed(Exception):
    """Something that a capture read has changed: `name` had the value `was` and has `now`."""

    def __init__(self, name: str, was: Any, now: Any) -> None:
        super().__init__(f"{name} was {was}, now {now}")
        self.name, self.was, self.now = name, was, now


class Mismatch(Exception):
    """A tensor argument is not like the one that was captured."""


def user_level() -> int:
    """The level for `warnings.warn`, called where this is called, of the first frame outside of lazygrad."""
    level, frame = 1, sys._getframe(1)
    while frame.f_code.co_filename.startswith(PACKAGE) and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    return level


def describe_fn(fxn: Any) -> str:
    """What a function is called."""
    return getattr(fxn, "__qualname__", None) or type(fxn).__name__

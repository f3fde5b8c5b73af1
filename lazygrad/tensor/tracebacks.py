"""Tracebacks without the frames that say nothing to a user: the user's lines, and the method that was called.

An exception that leaves lazygrad keeps the frames of other code, and of ours the first behind the last of
these. `TRACEBACK=1` and `DEBUG=1` keep all.
"""

from __future__ import annotations

import sys
import types

from ..config import DEBUG, TRACEBACK
from ..engine.frames import PACKAGE

#: The code objects of what only calls on: their frames never count as the method's.
_wrappers: set[types.CodeType] = set()


def wraps_only(*functions: types.FunctionType) -> None:
    """Declare functions that only call what they wrap."""
    _wrappers.update(function.__code__ for function in functions)


def shows_all() -> bool:
    """Whether tracebacks are left as they are."""
    return bool(TRACEBACK.value or DEBUG.value >= 1)


def shorten(error: BaseException, depth: int = 1) -> None:
    """Leave out frames of an exception that is about to leave lazygrad; to be raised on by a bare `raise`.

    Called by a wrapper, `depth` calls up. One that another wrapper called leaves all as it is: that one may
    say the error in other words, and looks for where it was raised.
    """
    if shows_all():
        return
    frame = sys._getframe(depth).f_back
    while frame is not None:
        if frame.f_code in _wrappers:
            return
        frame = frame.f_back
    error.__traceback__ = _shortened(error.__traceback__)


def _shortened(entries: types.TracebackType | None) -> types.TracebackType | None:
    retained: list[types.TracebackType] = []
    ours: types.TracebackType | None = None
    while entries is not None:
        code = entries.tb_frame.f_code
        if not code.co_filename.startswith(PACKAGE):
            retained.append(entries)
            ours = None
        elif ours is None and code not in _wrappers:
            ours = entries
        entries = entries.tb_next
    if ours is not None:
        retained.append(ours)
    result: types.TracebackType | None = None
    for entry in reversed(retained):
        result = types.TracebackType(result, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return result
